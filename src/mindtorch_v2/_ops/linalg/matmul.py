"""Matrix products: the kernels' operators, and `matmul` and `linear` over them."""

from __future__ import annotations

from math import prod
from typing import Any

from ... import _checks
from ..._backends.cpu.linalg import matmul as kernels
from ..._dispatch import keys
from ..._tensor import Tensor, wrap
from ..._types import Number
from ..machinery.declare import op
from ..shapes.reshaping import _unsafe_view, t

Shape = tuple[int, ...]


def conj(x: Tensor) -> Tensor:
    """The conjugate; for real tensors the tensor itself, without an operator."""
    return x.conj() if x.dtype.is_complex else x


def maybe_multiply(x: Tensor, factor: Number) -> Tensor:
    """The tensor times a number, unless that number is one."""
    if factor.__class__ is complex:
        factor = factor.conjugate()
    return x if factor == 1 else x * factor


def _column_major(shape: Shape, steps: Shape, itemsize: int) -> bool:
    return steps[0] == itemsize and steps[1] == itemsize * shape[0]


def _mat1_grad(grad: Tensor, mat2: Tensor, shape: Shape, steps: Shape, alpha: Number = 1) -> Tensor:
    """Gradient of the left factor, in that factor's memory order."""
    if _column_major(shape, steps, grad.dtype.itemsize):
        return maybe_multiply(mm(conj(mat2), grad.t()).t(), alpha)
    return maybe_multiply(mm(grad, conj(mat2.t())), alpha)


def _mat2_grad(grad: Tensor, mat1: Tensor, shape: Shape, steps: Shape, alpha: Number = 1) -> Tensor:
    """Gradient of the right factor, in that factor's memory order."""
    if _column_major(shape, steps, grad.dtype.itemsize):
        return maybe_multiply(mm(grad.t(), conj(mat1)).t(), alpha)
    return maybe_multiply(mm(conj(mat1.t()), grad), alpha)


mm = op(
    "mm(Tensor self, Tensor mat2) -> Tensor",
    cpu=kernels.mm,
    shape=lambda self, mat2: (self.shape[0], mat2.shape[1]),
    grad={
        "self": lambda grad, mat2, self_shape, self_byte_steps: _mat1_grad(grad, mat2, self_shape, self_byte_steps),
        "mat2": lambda grad, self, mat2_shape, mat2_byte_steps: _mat2_grad(grad, self, mat2_shape, mat2_byte_steps),
    },
)
_ADDMM: dict[Any, Any] = {
    "self": lambda grad, beta: maybe_multiply(grad, beta),
    "mat1": lambda grad, mat2, alpha, mat1_shape, mat1_byte_steps: _mat1_grad(grad, mat2, mat1_shape, mat1_byte_steps, alpha),
    "mat2": lambda grad, mat1, alpha, mat2_shape, mat2_byte_steps: _mat2_grad(grad, mat1, mat2_shape, mat2_byte_steps, alpha),
}
addmm = op(
    "addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
    cpu=kernels.addmm,
    shape=lambda mat1, mat2: (mat1.shape[0], mat2.shape[1]),
    grad=_ADDMM,
)
addmm_ = op(
    "addmm_(Tensor(a!) self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor(a!)",
    cpu=kernels.addmm_,
    grad=_ADDMM,
    variants="method",
)
bmm = op(
    "bmm(Tensor self, Tensor mat2) -> Tensor",
    cpu=kernels.bmm,
    shape=lambda self, mat2: (self.shape[0], self.shape[1], mat2.shape[2]),
    grad={
        "self": lambda grad, mat2: bmm(grad, conj(mat2.transpose(1, 2))),
        "mat2": lambda grad, self: bmm(conj(self.transpose(1, 2)), grad),
    },
)
_BADDBMM: dict[Any, Any] = {
    "self": lambda grad, beta: maybe_multiply(grad, beta),
    "batch1": lambda grad, batch2, alpha: maybe_multiply(bmm(grad, conj(batch2.transpose(1, 2))), alpha),
    "batch2": lambda grad, batch1, alpha: maybe_multiply(bmm(conj(batch1.transpose(1, 2)), grad), alpha),
}
baddbmm = op(
    "baddbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
    cpu=kernels.baddbmm,
    shape=lambda batch1, batch2: (batch1.shape[0], batch1.shape[1], batch2.shape[2]),
    grad=_BADDBMM,
)
baddbmm_ = op(
    "baddbmm_(Tensor(a!) self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor(a!)",
    cpu=kernels.baddbmm_,
    grad=_BADDBMM,
    variants="method",
)


def _over_batch(grad: Tensor, batch: int) -> Tensor:
    return grad.unsqueeze(0).expand((batch, *grad.shape))


_ADDBMM: dict[Any, Any] = {
    "self": lambda grad, beta: maybe_multiply(grad, beta),
    "batch1": lambda grad, batch2, alpha: maybe_multiply(
        bmm(_over_batch(grad, batch2.shape[0]), conj(batch2.transpose(1, 2))), alpha
    ),
    "batch2": lambda grad, batch1, alpha: maybe_multiply(
        bmm(conj(batch1.transpose(1, 2)), _over_batch(grad, batch1.shape[0])), alpha
    ),
}
addbmm = op(
    "addbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
    cpu=kernels.addbmm,
    shape=lambda batch1, batch2: (batch1.shape[1], batch2.shape[2]),
    grad=_ADDBMM,
)
addbmm_ = op(
    "addbmm_(Tensor(a!) self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor(a!)",
    cpu=kernels.addbmm_,
    grad=_ADDBMM,
    variants="method",
)


def _mv(self: Tensor, vec: Tensor) -> Tensor:
    if not self._array.ndim:
        raise _checks.no_dimensions(0)
    return self.new_empty(self.shape[:1]).addmv_(self, vec, beta=0)


mv = op(
    "mv(Tensor self, Tensor vec) -> Tensor",
    over_tensors=_mv,
    shape=lambda self: (self.shape[0],),
    grad={
        "self": lambda grad, vec: grad.ger(conj(vec)),
        "vec": lambda grad, self: mv(conj(self).t(), grad),
    },
)
_ADDMV: dict[Any, Any] = {
    "self": lambda grad, beta: maybe_multiply(grad, beta),
    "mat": lambda grad, vec, alpha: maybe_multiply(grad.ger(conj(vec)), alpha),
    "vec": lambda grad, mat, alpha: maybe_multiply(mv(conj(mat.t()), grad), alpha),
}
addmv = op(
    "addmv(Tensor self, Tensor mat, Tensor vec, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
    cpu=kernels.addmv,
    shape=lambda mat: (mat.shape[0],),
    grad=_ADDMV,
)
addmv_ = op(
    "addmv_(Tensor(a!) self, Tensor mat, Tensor vec, *, Scalar beta=1, Scalar alpha=1) -> Tensor(a!)",
    cpu=kernels.addmv_,
    grad=_ADDMV,
)
dot = op(
    "dot(Tensor self, Tensor tensor) -> Tensor",
    cpu=kernels.dot,
    shape=lambda: (),
    grad={"self": lambda grad, tensor: grad * conj(tensor), "tensor": lambda grad, self: grad * conj(self)},
)


def _vdot(self: Tensor, other: Tensor) -> Tensor:
    if not self.dtype.is_complex:
        return dot(self, other)
    return _complex_vdot(self, other)


def _complex_vdot(self: Tensor, other: Tensor) -> Tensor:
    return wrap(kernels.vdot(self._array, other._array))


vdot = op(
    "vdot(Tensor self, Tensor other) -> Tensor",
    composite=_vdot,
    grad={"self": lambda grad, other: conj(grad) * other, "other": lambda grad, self: grad * self},
)


# --- matmul -----------------------------------------------------------------------------------------------------------


def _folds(tensor1: Tensor, tensor2: Tensor, first_larger: bool) -> bool:
    """Whether the larger operand's batch dimensions join its rows, so that one `mm` or `mv` does it all.

    It costs no copy when they are contiguous; when the smaller operand wants a gradient, folding saves summing one per batch.
    """
    larger = tensor1._array if first_larger else tensor2.mT._array
    smaller = tensor2 if first_larger else tensor1
    if larger.ndim < 3 or smaller._array.ndim > 2:
        return False
    if smaller._keys & keys.AUTOGRAD:
        return True
    if tensor1._array.ndim == 2:
        return False
    if larger.flags.c_contiguous or not larger.size:
        return True
    shape, strides = larger.shape, larger.strides
    return all(strides[i] == strides[i + 1] * shape[i + 1] for i in range(len(shape) - 2))


def _folded_matmul(tensor1: Tensor, tensor2: Tensor, first_larger: bool) -> Tensor:
    larger = tensor1 if first_larger else tensor2.mT
    smaller = tensor2 if first_larger else tensor1.t() if tensor1.ndim == 2 else tensor1
    shape = larger._array.shape
    lead = shape[:-1]
    folded = larger.reshape((prod(lead), shape[-1]))
    if smaller._array.ndim == 1:
        return _unsafe_view(mv(folded, smaller), lead)
    out = _unsafe_view(mm(folded, smaller), (*lead, smaller._array.shape[1]))
    return out if first_larger else out.mT.contiguous()


def _batched_matmul(tensor1: Tensor, tensor2: Tensor) -> Tensor:
    shape1, shape2 = tensor1._array.shape, tensor2._array.shape
    n = shape1[-2] if len(shape1) > 1 else 1
    m1 = shape1[-1]
    m2, p = shape2[-2:] if len(shape2) > 1 else (shape2[0], 1)
    batch1, batch2 = shape1[:-2], shape2[:-2]
    if batch1 != batch2:
        squeezed = _without_unit_batch(tensor1, tensor2, batch1, batch2)
        if squeezed is not None:
            return squeezed
    batch = batch1 if batch1 == batch2 else _checks.broadcast_shapes(batch1, batch2)
    count = prod(batch)
    left = tensor1.expand((*batch, n, m1)).reshape((count, n, m1))
    out_shape = (*batch, *((n,) if len(shape1) > 1 else ()), *((p,) if len(shape2) > 1 else ()))
    if len(shape2) == 1:
        right = tensor2.expand((*batch, m2)).reshape((count, m2)).unsqueeze(2)
        return _unsafe_view(bmm(left, right).squeeze(-1), out_shape)
    right = tensor2.expand((*batch, m2, p)).reshape((count, m2, p))
    return _unsafe_view(bmm(left, right), out_shape)


def _without_unit_batch(tensor1: Tensor, tensor2: Tensor, batch1: Shape, batch2: Shape) -> Tensor | None:
    """A batch of one against a larger one, when the one wants a gradient: multiplied as a matrix, which may fold."""
    if len(batch1) == len(batch2) == 1:
        if batch1[0] == 1 and tensor1.requires_grad:
            return _matmul(tensor1.squeeze(0), tensor2)
        if batch2[0] == 1 and tensor2.requires_grad:
            return _matmul(tensor1, tensor2.squeeze(0))
    return None


# looked up here rather than called by name: 0.1 µs less each
_mm_table, _addmm_table, _t_table = mm.op.table, addmm.op.table, t.op.table


def _matmul(self: Tensor, other: Tensor) -> Tensor:
    n1, n2 = self._array.ndim, other._array.ndim
    if n1 == 2 and n2 == 2:
        return _mm_table[self._keys | other._keys](self, other)
    if n1 == 0 or n2 == 0:
        raise RuntimeError(f"both arguments to matmul need to be at least 1D, but they are {n1}D and {n2}D")
    if n1 == 1 and n2 == 1:
        return dot(self, other)
    if n1 == 2 and n2 == 1:
        return mv(self, other)
    if n1 == 1 and n2 == 2:
        return mm(self.unsqueeze(0), other).squeeze_(0)
    if (n1 <= 2 or n2 <= 2) and _folds(self, other, n1 >= n2):
        return _folded_matmul(self, other, n1 >= n2)
    return _batched_matmul(self, other)


matmul = op("matmul(Tensor self, Tensor other) -> Tensor", composite=_matmul)
linalg_matmul = op(
    "linalg_matmul(Tensor self, Tensor other) -> Tensor", composite=lambda self, other: matmul(self, other), variants="function"
)


def _linear(input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    array = input._array
    if array.ndim == 2 and bias is not None:
        weight = _t_table[weight._keys](weight)
        return _addmm_table[bias._keys | input._keys | weight._keys](bias, input, weight, 1, 1)
    if array.ndim == 0 or weight._array.ndim == 0:
        raise RuntimeError(f"both arguments to linear need to be at least 1D, but they are {array.ndim}D and {weight.ndim}D")
    if bias is None:
        return matmul(input, t(weight))
    if (bias._array.ndim == 1 or sum(n != 1 for n in bias._array.shape) == 1) and array.flags.c_contiguous:
        *lead, features = array.shape
        flat = input.view((prod(lead), features))
        return addmm(bias, flat, t(weight)).view((*lead, weight._array.shape[0]))
    return matmul(input, t(weight)).add_(bias)


linear = op("linear(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor", composite=_linear, variants="")
