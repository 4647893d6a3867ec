"""Small programs at the edges of operators: the same values, dtypes, strides and errors as under torch."""

import math
import warnings

import numpy as np
import pytest
import torch

import mindtorch_v2 as mt

pytestmark = pytest.mark.parity

ASSIGNMENT = """
x = lib.zeros(3, dtype=lib.bool); x[0] = 0.5; result = x
x = lib.zeros(3, dtype=lib.bool); x[lib.tensor([True, False, True])] = 0.5; result = x
x = lib.zeros(3, dtype=lib.int64); x[0] = 2.7; result = x
a = lib.zeros(3, 3); a.diagonal()[lib.tensor([True, False, True])] = 5; result = a
a = lib.zeros(3, 3); a.diagonal().masked_fill_(lib.tensor([True, False, True]), 3); result = a
a = lib.zeros(1, 3).expand(2, 3); a[lib.ones(2, 3, dtype=lib.bool)] = 1; result = a
a = lib.zeros(3, 1).expand(3, 2)[:, 0]; a[lib.tensor([True, False, True])] = 1; result = a
a = lib.zeros(3, 1).expand(3, 2); a[0] = 1
x = lib.arange(6.0); x[1:].copy_(x[:-1])
x = lib.arange(9.0).view(3, 3); x.copy_(x.t())
x = lib.arange(9.0).view(3, 3); x.copy_(x); result = x
x = lib.arange(6.0); x[1:].add_(x[:-1])
x = lib.arange(9.0).view(3, 3); x.add_(x.t())
x = lib.arange(6.0); x[::2].add_(x[1::2]); result = x
"""

CREATION = """
result = lib.logspace(0, 2.5, 6, dtype=lib.int64)
result = lib.logspace(1, 2.5, 5, base=2, dtype=lib.int32)
o = lib.zeros(10)[::2]; lib.linspace(0, 1, 5, out=o); result = o
o = lib.zeros(10)[::2]; lib.logspace(0, 1, 5, out=o); result = o
o = lib.zeros(10)[::2]; lib.range(0, 4, out=o); result = o
o = lib.zeros(2, 3).t(); lib.linspace(0, 1, 6, out=o); result = o
o = lib.ones(2, 3); lib.arange(6, out=o); result = o
lib.empty(3).uniform_(-3e38, 3e38)
lib.empty(3, dtype=lib.float16).uniform_(0, 1e6)
lib.empty(3).uniform_(1, 0)
lib.manual_seed(0); result = lib.empty(5, dtype=lib.float64).uniform_(-1e300, 1e300)
lib.manual_seed(0); result = lib.empty(5).uniform_(-40000, 40000)
"""

CALLS = """
x = lib.ones(2); result = [x.to(bool), x.to(float), x.to(int), x.to(complex), x.to(float, copy=True), x.to("cpu", float)]
x = lib.ones(2); result = [x.type(lib.DoubleTensor), x.type(lib.LongTensor), x.type(float), x.type("torch.LongTensor")]
lib.ones(2).type(3)
result = [lib.roll(lib.arange(6).view(2, 3), 1, None), lib.roll(lib.arange(6).view(2, 3), 1, dims=None)]
y = lib.tensor([3.0, 1, 2]); i = lib.empty(3, dtype=lib.int64); lib.sort(y, out=(y, i)); result = [y, i]
a, b, c = lib.ones(2), lib.ones(2), lib.ones(2) * 2; result = [lib.addcdiv(a, 2, b, c), lib.addcmul(a, 2, b, c), a.addcmul_(2, b, c)]
x = lib.ones(2, 2); result = [lib.addmm(0.5, x, 2, x, x), x.addmm(2, x, x), x.addmm(2, 3, x, x), x.clone().addmm_(2, x, x)]
a, b, c = lib.ones(2), lib.ones(2, 2), lib.ones(2) * 2; result = a.addmv_(2, b, c)
result = [lib.add(lib.ones(2), 2, lib.ones(2)), lib.ones(2).add_(2, lib.ones(2)), lib.sub(lib.ones(2), 2, lib.ones(2))]
lib.arange(4).flip()
lib.flip(lib.arange(4))
result = [lib.arange(4).flip(()), lib.arange(4).flip(0), lib.arange(4).view(2, 2).flip(0, 1)]
lib.ones(2).repeat()
lib.ones(2, 1).expand()
n = float("nan"); result = lib.unique(lib.tensor([[n, 1], [n, 1], [1, 2]]), dim=0, return_counts=True, return_inverse=True)
n = float("nan"); result = lib.unique(lib.tensor([[2.0, n], [1.0, 3.0], [1.0, 3.0]]), dim=0, return_inverse=True)
import copy; result = [copy.deepcopy(lib.ops.aten.add) is lib.ops.aten.add, copy.deepcopy(lib.ops.aten.add.Tensor) is lib.ops.aten.add.Tensor]
xs = [lib.ones(2), lib.ones(3)]; result = [lib._foreach_add_(xs, 1.0) is xs, lib._foreach_abs_(xs) is xs, lib._foreach_zero_(xs) is xs]
xs = [lib.ones(2)]; result = [lib._foreach_copy_(xs, [lib.zeros(2)]) is xs, lib.ops.aten._foreach_abs_(xs) is None]
result = [lib.empty(5, 4, 3)[2:2].stride(), lib.empty(5, 4, 3)[:, 2:2].stride(), lib.empty(5, 4, 3)[:, 2:2, ::2].stride()]
result = lib.empty(5, 4, 3).transpose(0, 1)[2:2].stride()
result = [t.shape for t in lib.linalg.lstsq(lib.eye(3, 2), lib.ones(3, 0))]
"""

CONVOLUTIONS = """
result = lib.nn.functional.conv2d(lib.ones(2, 0, 4, 4), lib.ones(3, 0, 2, 2)).shape
result = lib.nn.functional.conv1d(lib.ones(2, 0, 4), lib.ones(3, 0, 2), lib.ones(3)).shape
result = lib.nn.functional.conv_transpose2d(lib.ones(2, 0, 4, 4), lib.ones(0, 3, 2, 2)).shape
x = lib.ones(2, 0, 4, 4, requires_grad=True); w = lib.ones(3, 0, 2, 2, requires_grad=True); lib.nn.functional.conv2d(x, w).sum().backward(); result = [x.grad, w.grad]
result = lib.nn.ConvTranspose2d(2, 3, 3, stride=2)(lib.ones(2, 4, 4), output_size=(3, 10, 10)).shape
result = lib.nn.ConvTranspose2d(2, 3, 3, stride=2)(lib.ones(2, 4, 4), output_size=(10, 10)).shape
lib.nn.ConvTranspose2d(2, 3, 3, stride=2)(lib.ones(2, 4, 4), output_size=(1, 3, 10, 10))
"""

LAYOUTS = """
x = lib.ones(2, 3, 4, 5).to(memory_format=lib.channels_last); y = lib.ones(2, 3, 4, 5); result = [t.stride() for t in (x + y, y + x, x + 1, x + y[:1], x > y)]
x = lib.ones(2, 3, 4, 5).to(memory_format=lib.channels_last); y = lib.ones(2, 3, 4, 5); result = [t.stride() for t in (lib.maximum(x, y), lib.addcmul(y, x, x), x + x)]
x = lib.ones(2, 3, 4, 5).to(memory_format=lib.channels_last); y = lib.ones(2, 3, 4, 5); m = y.mean((2, 3), keepdim=True); result = [(x * m).stride(), (m * x).stride()]
x = lib.ones(2, 3, 4, 5).to(memory_format=lib.channels_last); y = lib.ones(2, 3, 4, 5); result = (x.transpose(2, 3) + y.transpose(2, 3)).stride()
x = lib.ones(2, 3, 4, 5, 2).to(memory_format=lib.channels_last_3d); y = lib.ones(2, 3, 4, 5, 2); result = [(x + y).stride(), (y * x).stride()]
"""

AUTOGRAD = """
a = lib.arange(8.0, requires_grad=True); b = lib.view_as_complex(a.clone().view(2, 2, 2)).reshape(-1); b.mul_(2j); b.abs().sum().backward(); result = a.grad
a = lib.arange(4.0, requires_grad=True); b = lib.view_as_complex(a.clone().view(2, 2)).reshape(-1); b.mul_(2j); lib.view_as_real(b).sum().backward(); result = a.grad
x = lib.ones(3, dtype=lib.complex64).requires_grad_(); y = x * 1; y.imag.mul_(3); y.abs().sum().backward(); result = x.grad
x = lib.tensor([1 + 2j, 3 + 1j]).requires_grad_(); y = x * 1; lib.view_as_real(y)[:, 1].mul_(3); (y * y.conj()).real.sum().backward(); result = x.grad
x = lib.ones(4, requires_grad=True).clone(); x.chunk(2)[0].view(-1).mul_(2)
x = lib.ones(4, requires_grad=True).clone(); x.split(2)[0][:1].mul_(2)
x = lib.ones(4, requires_grad=True).clone(); x.unbind(0)[0].view(-1).mul_(2)
x = lib.ones(4, requires_grad=True).clone(); x.view(2, 2)[0].mul_(2); result = x
p = lib.ones(2, requires_grad=True); p._grad = lib.ones(2); result = [p.grad, p._grad is p.grad]
"""

PENDING = """
x = lib.ones(2, dtype=lib.complex64); result = [x.conj().is_conj(), x.conj().imag.is_neg(), x.conj().conj().is_conj(), x.conj().clone().is_conj(), (x.conj() + 1).is_conj()]
x = lib.ones(2, dtype=lib.complex64); x.conj().numpy()
x = lib.ones(2, dtype=lib.complex64); x.conj().imag.numpy()
x = lib.ones(2, dtype=lib.complex64); x.conj().__dlpack__()
x = lib.ones(2, dtype=lib.complex64) * 1j; y = x.conj(); y.mul_(1j); result = [x, y]
x = lib.ones(2, dtype=lib.complex64) * 1j; y = x.conj(); y[0] = 3 + 4j; result = [x, y, y.data_ptr() == x.data_ptr(), y._base is x, x._version]
x = lib.tensor([1 + 2j, 3 - 1j]); result = [repr(x.conj()), repr(x.conj().imag), x.conj().tolist(), x.conj()[0].item(), complex(x.conj()[1])]
x = lib.tensor([[1 + 2j, 3 - 1j]]); result = [x.mH, x.H, x.adjoint(), x.mH.is_conj(), x @ x.mH, x.mH @ x]
x = lib.tensor([1 + 2j, 3 - 1j], requires_grad=True); (x.conj() * x.conj()).sum().abs().backward(); result = x.grad
x = lib.tensor([1 + 2j, 3 - 1j], requires_grad=True); z = x * 2; z.conj().mul_(1j); (z * z).sum().abs().backward(); result = x.grad
x = lib.tensor([1 + 2j, 3 - 1j], requires_grad=True); z = x * 2; z.conj().imag.mul_(3); (z * z).sum().abs().backward(); result = x.grad
x = lib.tensor([1 + 2j, 3 - 1j]); lib.view_as_real(x.conj())
x = lib.tensor([1 + 2j, 3 - 1j]); x.conj().view(lib.float32)
x = lib.tensor([1 + 2j, 3 - 1j]); o = x.conj(); lib.add(x, 1, out=o); result = [x, o]
x = lib.tensor([1 + 2j, 3 - 1j]); result = [lib.cat([x.conj(), x]), lib.stack([x.conj(), x]), lib.where(lib.tensor([True, False]), x.conj(), x)]
import copy; x = lib.tensor([1 + 2j, 3 - 1j]); result = [copy.deepcopy(x.conj()), copy.deepcopy(x.conj()).is_conj()]
import pickle; x = lib.tensor([1 + 2j, 3 - 1j]); result = pickle.loads(pickle.dumps(x.conj()))
x = lib.tensor([1 + 2j, 3 - 1j]); y = x.conj(); y.copy_(lib.tensor([5j, 6j])); result = [x, y]
x = lib.tensor([1 + 2j, 3 - 1j]); y = x.conj(); y[lib.tensor([True, False])] = 7j; result = [x, y]
x = lib.tensor([1 + 2j, 3 - 1j]); y = x.conj(); result = [y.conj_physical_(), x, y.conj_physical()]
x = lib.tensor([1 + 2j, 3 - 1j]); y = x.conj(); y.unsqueeze_(0); result = [y, y.is_conj(), y.t().is_conj(), y[0].is_conj(), y.view(2, 1).is_conj(), y.expand(3, 2).is_conj()]
x = lib.tensor([1 + 2j, 3 - 1j]).conj(); result = [x.detach().is_conj(), x.reshape(2, 1).is_conj(), x.chunk(2)[0].is_conj(), x.unbind(0)[0].is_conj(), x.contiguous().is_conj()]
x = lib.tensor([1.0, 2]); y = lib._neg_view(x); result = [y, y.is_neg(), y + 1, y.neg(), y.add_(1), x, lib.resolve_neg(y).is_neg()]
x = lib.tensor([1 + 2j]); result = [lib.real(x.conj()), lib.imag(x.conj()), x.conj().real.is_neg(), lib.angle(x.conj()), x.conj().abs(), x.conj().exp()]
x = lib.tensor([1 + 2j]); result = [x.conj().numpy(force=True), x.conj().imag.numpy(force=True)]
a = lib.tensor([1 + 2j, 3 - 1j]); result = [lib.dot(a.conj(), a), lib.vdot(a, a), lib.inner(a.conj(), a), lib.einsum("i,i->", a.conj(), a)]
a = lib.tensor([1 + 2j, 3 - 1j]); b = a.conj(); b.zero_(); result = [a, b, a._version, b._version]
x = lib.tensor([1 + 2j], requires_grad=True); result = lib.autograd.grad((x.conj() * x).real.sum(), x, create_graph=True)[0].detach()
x = lib.empty(3, 2, dtype=lib.complex64, device="meta"); result = [x.mH.is_conj(), (x.mH + 1).shape]
"""

INDEXING = """
lib.zeros(5, 5)[1.0:2]
result = lib.zeros(5, 5)[lib.tensor(1) : 3].shape
v = lib.tensor([[[[1], [2]], [[3], [4]]]]); m = lib.tensor([[1, 0], [0, 1]], dtype=lib.bool); lib.ops.aten.index_put_(v, [None, m, None], lib.tensor(0)); result = v
lib.ops.aten.index.Tensor(lib.ones(2), [])
lib.rand([]).index_put([], lib.tensor([1.0]), True)
a = lib.arange(4); a[a > -1] = lib.tensor([])
a = lib.arange(4); a[a > -1] = lib.tensor([1.0, 2, 3, 4])
lib.ones(4, 4, 3)[:, :, 1:].view(lib.float64)
result = lib.view_as_complex(lib.ones(6, 2, 1).transpose(1, 2).contiguous()).shape
lib.broadcast_shapes(-12)
lib.broadcast_shapes((1, 2), (3, 4))
lib.broadcast_shapes([1, 2, 3], [-1, 2])
lib.broadcast_shapes((5,), (2, 5), (3,))
lib.broadcast_shapes(1.5, 2)
result = [lib.broadcast_shapes(), lib.broadcast_shapes(None, 2), lib.broadcast_shapes((2, 1), [3]), lib.broadcast_shapes((0,), 1)]
x = lib.empty(0, 5, 10, dtype=lib.float64); result = [(x.view(d).shape, x.view(d).stride()) for d in (lib.float32, lib.int64, lib.complex128, lib.uint8)]
x = lib.empty(5, 0, 10); result = [(x.view(d).shape, x.view(d).stride()) for d in (lib.float64, lib.int64, lib.complex64, lib.uint8)]
lib.empty(5, 4, 0).view(lib.float64)
result = lib.empty(5, 4, 0).view(lib.uint8).stride()
x = lib.ones(2, 3, 4, 5).to(memory_format=lib.channels_last); result = [lib.empty(n).resize_as_(x, memory_format=f).stride() for n in (0, 120) for f in (lib.preserve_format, None, lib.channels_last)]
x = lib.ones(2, 3, 4, 5, 6).to(memory_format=lib.channels_last_3d); result = lib.empty(0).resize_as_(x, memory_format=lib.preserve_format).stride()
x = lib.ones(3, 4, 5).permute(2, 0, 1); result = lib.empty(0).resize_as_(x, memory_format=lib.preserve_format).stride()
lib.unravel_index(lib.tensor(0.5), (2, 2))
lib.unravel_index(lib.tensor(2), (2.0, 2))
lib.unravel_index(lib.tensor(2), 2.0)
lib.unravel_index(lib.tensor(2), (2, (1, 2)))
result = lib.unravel_index(lib.tensor(5), lib.Size([2, 3]))
x = lib.ones(2); del x[0]
lib.ops.aten.unfold_backward(lib.ones(2, 3), input_sizes=[2, 3], dim=1, size=3, step=0)
lib.ops.aten.unfold_backward(lib.ones(2, 3), input_sizes=[2, 3], dim=1, size=-3, step=1)
lib.ones(2).as_strided((1,), (1,), 2**63 - 1)
lib.ones(2).resize_((2**40, 2**40))
result = lib.ones(2).type(lib.Tensor)
lib.Size([1]) + [2]
result = [lib.Size([1]) + (2,), (1,) + lib.Size([2]), 2 * lib.Size([1])]
result = [lib.empty(0).is_set_to(lib.empty(0))]
ad = lib.autograd.forward_ad; ad.enter_dual_level(); d = ad.make_dual(lib.ones(2), lib.ones(2)); drawn = [lib.normal(d, 1.0), lib.normal(d, d), lib.normal(0.0, d), lib.bernoulli(d), lib.poisson(d)]; result = [ad.unpack_dual(y).tangent for y in drawn]; ad.exit_dual_level()
a = lib.zeros(2, 3, 4, 5).to(memory_format=lib.channels_last); result = [a.lerp(a.contiguous(), 0.5).stride(), lib.lerp(a.contiguous(), a, a).stride()]
lib._foreach_add([lib.ones(2)], [])
"""

FUNCTIONAL = """
x = lib.ones(2, requires_grad=True); lib.autograd.functional.jvp(lambda a: a.clone(), x, lib.ones(2), create_graph=True, strict=True)
x = lib.ones(2, requires_grad=True); lib.autograd.functional.vjp(lambda a: a.clone(), x, lib.ones(2), create_graph=True, strict=True)
x = lib.ones(2, requires_grad=True); lib.autograd.functional.vhp(lambda a: (a**2).sum(), x, lib.ones(2), create_graph=True, strict=True)
x = lib.ones(2, requires_grad=True); lib.autograd.functional.hvp(lambda a: (a**2).sum(), x, lib.ones(2), create_graph=True, strict=True)
x = lib.ones(2, requires_grad=True); result = lib.autograd.functional.hvp(lambda a: (a**3).sum(), x, lib.ones(2), create_graph=True, strict=True)[1].detach()
c = lib.inference_mode()(lambda: lib.ones(2))(); lib.mul(lib.ones(2), 2, out=c)
result = lib.autograd.functional.vjp(lambda x: x.sum(), lib.ones(2), (lib.tensor(1.),lib.ones(2)))
result = lib.autograd.functional.hessian(lambda x: x, lib.ones(2))
result = lib.autograd.functional.hvp(lambda x: x, lib.ones(2), lib.ones(2))
result = lib.autograd.functional.jvp(lambda x: lib.ones(2), lib.ones(2), lib.ones(2), strict=True)
result = lib.autograd.functional.jacobian(lambda x: lib.ones(2), lib.ones(2), strict=True)
result = lib.autograd.functional.hessian(lambda x: x.sum(), lib.ones(2), strict=True)
result = lib.autograd.functional.hvp(lambda x: x.sum(), lib.ones(2), lib.ones(2), strict=True)
result = lib.autograd.functional.vhp(lambda x: x.sum(), lib.ones(2), lib.ones(2), strict=True)
result = lib.autograd.functional.vjp(lambda x: x*2, lib.ones(2))
result = lib.autograd.functional.vjp(lambda x: x*2, lib.ones(2), lib.ones(3))
result = lib.autograd.functional.vjp(lambda x: (x*2, 3), lib.ones(2), lib.ones(2))
result = lib.autograd.functional.vjp(lambda x: x*2, (lib.ones(2), 3), lib.ones(2))
result = lib.autograd.functional.jvp(lambda x: x*2, lib.ones(2), (lib.ones(2),lib.ones(2)))
result = lib.autograd.functional.hessian(lambda x: (x.sum(),x.sum()), lib.ones(2))
result = lib.autograd.functional.hvp(lambda x: (x.sum(),x.sum()), lib.ones(2), lib.ones(2))
result = lib.autograd.functional.vhp(lambda x: (x.sum(),x.sum()), lib.ones(2), lib.ones(2))
result = lib.autograd.functional.vhp(lambda x: x.sum(), lib.ones(2), lib.ones(3))
result = lib.autograd.functional.hvp(lambda x,y: (x+y).sum(), (lib.ones(2),lib.ones(2)))
result = lib.autograd.functional.jacobian(lambda x: x.long(), lib.ones(2))
result = lib.autograd.functional.jvp(lambda x: x.sum(), lib.ones(2))
result = lib.autograd.functional.vjp(lambda x: x.sum().detach(), lib.ones(2), strict=True)
result = lib.autograd.functional.vjp(lambda x,y: x.sum(), (lib.ones(2),lib.ones(2)), strict=True)
result = lib.autograd.functional.jvp(lambda x,y: x.sum(), (lib.ones(2),lib.ones(2)),(lib.ones(2),lib.ones(2)), strict=True)
result = lib.autograd.functional.jacobian(lambda x,y: x.sum(), (lib.ones(2),lib.ones(2)), strict=True)
result = lib.autograd.functional.hessian(lambda x,y: (x**2).sum(), (lib.ones(2),lib.ones(2)), strict=True)
"""

STORAGES = """
result = lib.tensor(lib.arange(4.0).untyped_storage(), dtype=lib.float32)
result = lib.tensor(lib.arange(4.0).untyped_storage(), dtype=lib.float64)
result = lib.tensor(lib.arange(4.0).untyped_storage())
result = lib.tensor(lib.arange(4.0).storage())
lib.tensor(lib.arange(4.0).storage(), dtype=lib.int64)
result = [str(lib.storage._dtype_to_storage_type_map()[d]) for d in (lib.float32, lib.bool, lib.complex128)]
lib.TypedStorage([1, 2], device="meta", dtype=lib.float32).cpu()
t = lib.zeros(4, dtype=lib.int64); lib.bernoulli(lib.ones(4), out=t); result = t
lib.manual_seed(0); result = (lib.view_as_real(lib.randn(20, dtype=lib.complex32).to(lib.complex64)) * 500).round()
lib.manual_seed(0); result = lib.rand(3, dtype=lib.complex32).to(lib.complex64)
result = lib.as_tensor([1, 2], dtype=lib.complex32).to(lib.complex64)
x = lib.ones(3, 3); result = x.map2_(lib.ones(3) * 2, lib.ones(1, 3) * 3, lambda a, b, c: a + b * c)
x = lib.ones(3, requires_grad=True); lib.ones(3).map_(x, lambda a, b: a)
result = lib.linalg.solve_triangular(lib.eye(2), lib.ones(2, 0), upper=True, out=lib.ones(1, 0).expand(2, 0))
x = lib.ones(2, 3); y = lib.utils.dlpack.from_dlpack(lib.utils.dlpack.to_dlpack(x.t())); y[0].add_(1); result = [x, y]
result = [str(lib.backends.cuda.preferred_blas_library()), str(lib.backends.cuda.preferred_blas_library("cublas"))]
LD, p, _ = lib.linalg.ldl_factor_ex(lib.eye(3)); p[0] = 0; lib.linalg.ldl_solve(LD, p, lib.ones(3, 1))
LD, p, _ = lib.linalg.ldl_factor_ex(lib.eye(3)); p[0] = 4; lib.linalg.ldl_solve(LD, p, lib.ones(3, 1))
lib.linalg.lstsq(lib.ones(1, 1, 1), lib.ones(3, 1))
lib.linalg.lstsq(lib.ones(2, 3, 2), lib.ones(1, 3))
result = [d.abbr for d in (lib.float32, lib.bfloat16, lib.bool, lib.uint8, lib.float8_e4m3fn, lib.bits16)]
"""

# the same kind of error, in words of our own
REFUSED = """
lib.ones(2).as_subclass(int)
lib.arange(3).apply_(lambda k: "text")
lib.ones(2).map_(lib.ones(2), "text")
lib.set_num_threads(2**65)
lib.linalg.lstsq(lib.ones(2, 3, 2), lib.ones(3, 1))
lib.ops.aten._local_scalar_dense(lib.ones(0))
[1] + lib.Size([2])
"""

PROGRAMS = [
    line
    for text in (STORAGES, ASSIGNMENT, CREATION, CALLS, CONVOLUTIONS, LAYOUTS, AUTOGRAD, FUNCTIONAL, INDEXING, PENDING)
    for line in text.strip().splitlines()
]


def _outcome(lib, program):
    names = {"lib": lib, "result": None}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            exec(program, names)
        except Exception as error:
            return [type(error).__name__, str(error).splitlines()[0]]
        return _described(lib, names["result"])


def _described(lib, x):
    if isinstance(x, lib.Tensor):
        return [
            str(x.dtype),
            tuple(x.shape),
            x.stride() if x.numel() else None,
            _numbers(x.detach().resolve_conj().resolve_neg().tolist()),
        ]
    if isinstance(x, np.ndarray):
        return _numbers(x.tolist())
    if isinstance(x, list | tuple):
        return [_described(lib, v) for v in x]
    return x


def _numbers(values):
    """Numbers to six digits: the last bits of a product depend on the order of additions."""
    if isinstance(values, list):
        return [_numbers(v) for v in values]
    if isinstance(values, complex):
        return (_numbers(values.real), _numbers(values.imag))
    if isinstance(values, float):
        return "nan" if math.isnan(values) else float(f"{values:.5e}")
    return values


@pytest.mark.parametrize("program", PROGRAMS)
def test_program(program):
    assert _outcome(mt, program) == _outcome(torch, program)


@pytest.mark.parametrize("program", REFUSED.strip().splitlines())
def test_refused(program):
    assert _outcome(mt, program)[0] == _outcome(torch, program)[0]


def test_arrays_that_torch_warns_about():
    """Once in a process, or each time after `set_warn_always`."""
    array = np.arange(3)
    array.flags.writeable = False
    for lib in (torch, mt):
        lib.set_warn_always(True)
        try:
            with pytest.warns(UserWarning, match="is not writable"):
                lib.from_numpy(array)
            with pytest.warns(UserWarning, match="from a list of numpy.ndarrays is extremely slow"):
                lib.tensor([np.ones(2), np.ones(2)])
        finally:
            lib.set_warn_always(False)


def test_optimizers_that_unscale_themselves():
    for lib in (torch, mt):
        seen = []

        class Own(lib.optim.SGD):
            _step_supports_amp_scaling = True

            def step(self, closure=None):
                seen.append([None if t is None else t.item() for t in (self.grad_scale, self.found_inf)])  # noqa: B023

        parameter = lib.nn.Parameter(lib.ones(2))
        optimizer, scaler = Own([parameter], lr=0.1), lib.amp.GradScaler("cpu", init_scale=4.0)
        for value in (1.0, float("inf")):
            parameter.grad = lib.full((2,), value)
            scaler.scale(parameter.sum())
            scaler.step(optimizer)
            scaler.update()
        assert seen == [[4.0, 0.0], [4.0, 1.0]]
        assert scaler.get_scale() == 2.0
        assert not hasattr(optimizer, "found_inf")
