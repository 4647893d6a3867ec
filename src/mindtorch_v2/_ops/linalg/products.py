"""Products of vectors and of several tensors: outer, inner, tensordot, kron, chains of matrices, cross, bilinear."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from ... import _checks, _dtype, _promotion
from ..._backends.cpu.creation.copying import number_in
from ..._backends.cpu.linalg import matmul as kernels
from ..._backends.cpu.machinery.dtype_rules import refuse
from ..._backends.cpu.machinery.dtypes import scalar_name
from ..._tensor import Tensor
from ..._types import Number
from ..machinery.declare import op, public
from ..machinery.lookup import aten
from ..shapes.reshaping import _unsafe_view
from .einsum import sumproduct_pair
from .matmul import conj, dot, maybe_multiply, mm, mv, vdot

Array = np.ndarray[Any, Any]


def _check_vector(function: str, name: str, ndim: int) -> None:
    if ndim != 1:
        raise RuntimeError(f"{function}: Expected 1-D argument {name}, but got {ndim}-D")


def _outer(self: Tensor, vec2: Tensor) -> Tensor:
    _check_vector("outer", "self", self.ndim)
    _check_vector("outer", "vec2", vec2.ndim)
    return self.reshape((self.shape[0], 1)) * vec2


outer = op("outer(Tensor self, Tensor vec2) -> Tensor", composite=_outer)
ger = op("ger(Tensor self, Tensor vec2) -> Tensor", composite=lambda self, vec2: outer(self, vec2))


def _addr_factor(name: str, value: Number, dtype: _dtype.dtype) -> Array:
    if isinstance(value, bool) and dtype.category != _dtype.BOOL:
        raise RuntimeError(f"Boolean {name} only supported for Boolean results.")
    if not dtype.inexact and isinstance(value, float | complex):
        raise RuntimeError(f"For integral input tensors, argument {name} must not be a floating point number.")
    return number_in(value, dtype)


def _addr_kernel(self: Array, vec1: Array, vec2: Array, beta: Number, alpha: Number) -> Array:
    _check_vector("addr", "vec1", vec1.ndim)
    _check_vector("addr", "vec2", vec2.ndim)
    kernels.check_expands(self, (vec1.shape[0], vec2.shape[0]))
    d = _dtype.FROM_NUMPY[self.dtype]
    for x in (vec1, vec2):
        d = _promotion.promote_types(d, _dtype.FROM_NUMPY[x.dtype])
    share, scale = _addr_factor("beta", beta, d), _addr_factor("alpha", alpha, d)
    if d is _dtype.bool_:
        product = (vec1[:, None] & vec2) & scale
        return product | self if share else product
    column = vec1.astype(d.np)
    if alpha != 1:
        column *= scale
    out = column[:, None] * vec2.astype(d.np)
    if beta != 0:
        out += self.astype(d.np) * share
    return out


def _addr_inplace(self: Array, vec1: Array, vec2: Array, beta: Number, alpha: Number) -> None:
    value = _addr_kernel(self, vec1, vec2, beta, alpha)
    if value.shape != self.shape:
        raise RuntimeError(f"output with shape {list(self.shape)} doesn't match the broadcast shape {list(value.shape)}")
    if not _promotion.can_cast(_dtype.FROM_NUMPY[value.dtype], _dtype.FROM_NUMPY[self.dtype]):
        names = scalar_name(value), scalar_name(self)
        raise RuntimeError(f"result type {names[0]} can't be cast to the desired output type {names[1]}")
    self[...] = value


_ADDR: dict[Any, Any] = {
    "self": lambda grad, beta: maybe_multiply(grad, beta),
    "vec1": lambda grad, vec2, alpha: maybe_multiply(mv(grad, conj(vec2)), alpha),
    "vec2": lambda grad, vec1, alpha: maybe_multiply(mv(grad.t(), conj(vec1)), alpha),
}
addr = op(
    "addr(Tensor self, Tensor vec1, Tensor vec2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
    cpu=_addr_kernel,
    shape=lambda vec1, vec2: (vec1.shape[0], vec2.shape[0]),
    grad=_ADDR,
)
addr_ = op(
    "addr_(Tensor(a!) self, Tensor vec1, Tensor vec2, *, Scalar beta=1, Scalar alpha=1) -> Tensor(a!)",
    cpu=_addr_inplace,
    grad=_ADDR,
    variants="method",
)


def _inner(self: Tensor, other: Tensor) -> Tensor:
    if self.ndim == 0 or other.ndim == 0:
        return self * other
    if self.shape[-1] != other.shape[-1]:
        raise RuntimeError(
            f"inner() the last dimension must match on both input tensors but got shapes {list(self.shape)} and {list(other.shape)}"
        )
    return _tensordot_op(self, other, (-1,), (-1,))


inner = op("inner(Tensor self, Tensor other) -> Tensor", composite=_inner)


# --- tensordot --------------------------------------------------------------------------------------------------------


def _tensordot(self: Tensor, other: Tensor, dims_self: Sequence[int], dims_other: Sequence[int]) -> Tensor:
    if len(dims_self) != len(dims_other):
        raise RuntimeError("both dimension lists should have same length")
    if self.dtype is not other.dtype:
        raise RuntimeError("both inputs should have same dtype")
    dims1 = [_checks.wrap_dim(d, self.ndim) for d in dims_self]
    dims2 = [_checks.wrap_dim(d, other.ndim) for d in dims_other]
    if dims1 and not (self.ndim and other.ndim):
        raise _checks.no_dimensions(dims_other[0] if self.ndim else dims_self[0])
    t1, t2 = self, other
    contracted = 1
    for i, (d1, d2) in enumerate(zip(dims1, dims2, strict=True)):
        s1, s2 = self.shape[d1], other.shape[d2]
        contracted *= s1
        if s2 == 1 and s1 != 1:
            t1 = t1.sum(d1, keepdim=True, dtype=self.dtype)
            contracted //= s1
        elif s1 == 1 and s2 != 1:
            t2 = t2.sum(d2, keepdim=True, dtype=other.dtype)
        elif s1 != s2:
            raise RuntimeError(
                f"contracted dimensions need to match, but first has size {s1} in dim {dims_self[i]} and second has size "
                f"{s2} in dim {dims_other[i]}"
            )
    free1 = [d for d in range(self.ndim) if d not in dims1]
    free2 = [d for d in range(other.ndim) if d not in dims2]
    shape = tuple(self.shape[d] for d in free1) + tuple(other.shape[d] for d in free2)
    rows, columns = prod(self.shape[d] for d in free1), prod(other.shape[d] for d in free2)
    t1 = t1.permute((*free1, *dims1))
    if rows == columns == 1:
        t2 = t2.permute((*dims2, *free2))
        if t1.is_contiguous() and t2.is_contiguous():
            return dot(t1.flatten(), t2.flatten()).reshape(shape)
        return (t1.squeeze() * t2.squeeze()).sum().reshape(shape)
    t1 = t1.reshape((rows, contracted))
    t2 = t2.permute((*dims2, *free2)).reshape((contracted, columns))
    return mm(t1, t2).reshape(shape)


_tensordot_op = op(
    "tensordot(Tensor self, Tensor other, int[] dims_self, int[] dims_other) -> Tensor", composite=_tensordot, variants=""
)


@public("function")
def tensordot(a: Tensor, b: Tensor, dims: Any = 2, out: Tensor | None = None) -> Tensor:
    """Contract dimensions of two tensors: the last `dims` of one with the first of the other, or two lists of them."""
    if not isinstance(dims, tuple | list | Tensor | int):
        raise RuntimeError(
            f"tensordot expects dims to be int or tuple[list[int], list[int]] or list[list[int]] containing two lists, but got dims={dims}"
        )
    if isinstance(dims, Tensor) and dims.numel() > 1:
        if len(dims.shape) != 2 or dims.shape[0] != 2:
            raise AssertionError(f"dims tensor must have size 2 in dim 0, got {dims.shape[0]}")
        dims = (dims[0].tolist(), dims[1].tolist())
    if isinstance(dims, tuple | list):
        dims_a, dims_b = dims
        dims_a = dims_a if isinstance(dims_a, tuple | list) else (dims_a,)
        dims_b = dims_b if isinstance(dims_b, tuple | list) else (dims_b,)
    else:
        n = int(dims)
        if n < 0:
            raise RuntimeError(f"tensordot expects dims >= 0, but got dims={n}")
        if n > min(a.dim(), b.dim()):
            raise RuntimeError(f"tensordot expects dims < ndim_a or ndim_b, but got dims={n}")
        dims_a, dims_b = tuple(range(-n, 0)), tuple(range(n))
    return _tensordot_op(a, b, tuple(dims_a), tuple(dims_b), out=out)


# --- kron and chains --------------------------------------------------------------------------------------------------


def _kron(self: Tensor, other: Tensor) -> Tensor:
    ndim = max(self.ndim, other.ndim)
    a = (1,) * (ndim - self.ndim) + tuple(self.shape)
    b = (1,) * (ndim - other.ndim) + tuple(other.shape)
    left = _unsafe_view(self, tuple(n for s in a for n in (s, 1)))
    right = _unsafe_view(other, tuple(n for s in b for n in (1, s)))
    product = left * right
    if not product._array.flags.c_contiguous:
        product = product.contiguous()
    return _unsafe_view(product, tuple(x * y for x, y in zip(a, b, strict=True)))


kron = op("kron(Tensor self, Tensor other) -> Tensor", composite=_kron)


def _chain_order(sizes: list[int]) -> list[list[int]]:
    """Find the splits of a chain of matrices that need the fewest multiplications."""
    n = len(sizes) - 1
    cost = [[0] * n for _ in range(n)]
    split = [[0] * n for _ in range(n)]
    for span in range(1, n):
        for i in range(n - span):
            j = i + span
            best: int | None = None
            for k in range(i, j):
                q = cost[i][k] + cost[k + 1][j] + sizes[i] * sizes[k + 1] * sizes[j + 1]
                if best is None or q < best:
                    best, split[i][j] = q, k
            cost[i][j] = best or 0
    return split


def _multiply_chain(tensors: list[Tensor], split: list[list[int]], i: int, j: int) -> Tensor:
    if i == j:
        return tensors[i]
    k = split[i][j]
    left = _multiply_chain(tensors, split, i, k)
    return mm(left, _multiply_chain(tensors, split, k + 1, j))


def _multi_dot(tensors: list[Tensor]) -> Tensor:
    n = len(tensors)
    if n < 2:
        raise RuntimeError(f"multi_dot(): expected at least 2 tensors but got {n}")
    chain = list(tensors)
    shape: list[int] = []
    for i, which in ((0, "first"), (n - 1, "last")):
        t = tensors[i]
        if t.ndim not in (1, 2):
            raise RuntimeError(f"multi_dot(): the {which} tensor must be 1D or 2D but got {t.ndim}D")
        if t.ndim == 1:
            chain[i] = t.unsqueeze(0 if i == 0 else -1)
        else:
            shape.append(t.shape[0 if i == 0 else 1])
    for i in range(1, n - 1):
        if tensors[i].ndim != 2:
            raise RuntimeError(f"multi_dot(): tensor {i} must be 2D but got {tensors[i].ndim}D")
    for i in range(1, n):
        if tensors[i].dtype is not tensors[0].dtype:
            names = tensors[0].dtype.cpp_name, tensors[i].dtype.cpp_name
            raise RuntimeError(
                f"multi_dot(): all tensors must have be the same dtype but tensor 0 is {names[0]} and tensor {i} {names[1]}"
            )
        if chain[i - 1].shape[-1] != chain[i].shape[0]:
            raise RuntimeError(
                f"multi_dot(): tensors {i - 1} and {i} with shapes {list(tensors[i - 1].shape)} and {list(tensors[i].shape)} "
                "cannot be multiplied"
            )
    if n == 2:
        return mm(chain[0], chain[1]).view(shape)
    if n == 3:
        return _three(chain).view(shape)
    split = _chain_order([chain[0].shape[0], *(t.shape[1] for t in chain)])
    return _multiply_chain(chain, split, 0, n - 1).view(shape)


def _three(chain: list[Tensor]) -> Tensor:
    a, b, c = chain
    left_first = a.shape[0] * c.shape[0] * (a.shape[1] + c.shape[1])
    right_first = a.shape[1] * c.shape[1] * (a.shape[0] + c.shape[0])
    return mm(mm(a, b), c) if left_first < right_first else mm(a, mm(b, c))


linalg_multi_dot = op("linalg_multi_dot(Tensor[] tensors) -> Tensor", composite=_multi_dot, variants="function")


def _chain_matmul(matrices: list[Tensor]) -> Tensor:
    if not matrices:
        raise RuntimeError("chain_matmul(): Expected one or more matrices")
    for m in matrices:
        if m.ndim != 2:
            raise RuntimeError(f"Tensor dimension is {m.ndim}, expected 2 instead.")
    return matrices[0] if len(matrices) == 1 else _multi_dot(matrices)


_chain_matmul_op = op("chain_matmul(Tensor[] matrices) -> Tensor", composite=_chain_matmul)


@public("function")
def chain_matmul(*matrices: Tensor, out: Tensor | None = None) -> Tensor:
    """The product of a chain of matrices, in the order that needs the fewest multiplications."""
    return _chain_matmul_op(list(matrices), out=out)


# --- vecdot and cross -------------------------------------------------------------------------------------------------


def check_inexact(x: Tensor, function: str) -> None:
    """Refuse integers as torch does."""
    if not x.dtype.inexact:
        raise RuntimeError(f"{function}: Expected a floating point or complex tensor as input. Got {x.dtype.scalar_name}")


def _vecdot(x: Tensor, y: Tensor, dim: int) -> Tensor:
    check_inexact(x, "linalg.vecdot")
    if x.dtype is not y.dtype:
        raise RuntimeError(
            f"linalg.vecdot: Expected x and y to have the same dtype, but found x of type {x.dtype.scalar_name} and y of type "
            f"{y.dtype.scalar_name} instead"
        )
    if x.ndim == 1 and y.ndim == 1:
        return vdot(x, y)
    return (conj(x) * y).sum(dim)


linalg_vecdot = op("linalg_vecdot(Tensor x, Tensor y, *, int dim=-1) -> Tensor", composite=_vecdot, variants="function")


def _linalg_cross_kernel(self: Array, other: Array, dim: int) -> Array:
    if self.ndim != other.ndim:
        raise RuntimeError("linalg.cross: inputs must have the same number of dimensions.")
    d = _checks.wrap_dim(dim, self.ndim)
    if self.shape[d] != 3 or other.shape[d] != 3:
        raise RuntimeError(f"linalg.cross: inputs dimension {dim} must have length 3. Got {self.shape[d]} and {other.shape[d]}")
    refuse("cross", self, "b")
    if self.dtype != other.dtype:
        raise RuntimeError(f"expected scalar type {scalar_name(self)} but found {scalar_name(other)}")
    _checks.broadcast_shapes(self.shape, other.shape)
    return kernels.cross(self, other, d)


linalg_cross = op(
    "linalg_cross(Tensor self, Tensor other, *, int dim=-1) -> Tensor",
    cpu=_linalg_cross_kernel,
    grad={
        "self": lambda grad, other, dim: linalg_cross(conj(other), grad, dim=dim),
        "other": lambda grad, self, dim: linalg_cross(grad, conj(self), dim=dim),
    },
    variants="function",
)


def _cross(self: Tensor, other: Tensor, dim: int | None) -> Tensor:
    if dim is None:
        if self.ndim != other.ndim:
            raise RuntimeError("linalg.cross: inputs must have the same number of dimensions.")
        dim = next((i for i, n in enumerate(self.shape) if n == 3), None)
        if dim is None:
            raise RuntimeError("no dimension of size 3 in input")
    return linalg_cross(self, other, dim=dim)


cross = op("cross(Tensor self, Tensor other, int? dim=None) -> Tensor", composite=_cross)


# --- bilinear ---------------------------------------------------------------------------------------------------------


def _trilinear_sum(
    i1: Tensor,
    i2: Tensor,
    i3: Tensor,
    expand1: Sequence[int],
    expand2: Sequence[int],
    expand3: Sequence[int],
    sumdim: Sequence[int],
    unroll_dim: int,
) -> Tensor:
    """Sum over `sumdim` of a product of three tensors, each lacking the dimensions of its `expand`; one slice at a time."""
    total = i1.ndim + len(expand1)
    tensors = [i1, i2, i3]
    expands = [{_checks.wrap_dim(d, total) for d in e} for e in (expand1, expand2, expand3)]
    summed = {_checks.wrap_dim(d, total) for d in sumdim}
    unroll_dim = _checks.wrap_dim(unroll_dim, total)
    extents = []
    for d in range(total):
        extent = 1
        for k in range(3):
            if d in expands[k]:
                tensors[k] = tensors[k].unsqueeze(d)
            else:
                extent = tensors[k].shape[d]
        extents.append(extent)
    # the unrolled dimension is summed by adding up its slices
    first = tuple(d for d in sorted(summed - {unroll_dim}) if d in expands[2])
    second = tuple(d for d in sorted(summed - {unroll_dim}) if d not in expands[2])
    shape = [1 if d in summed else n for d, n in enumerate(extents)]
    output = aten.zeros(shape, dtype=i1.dtype, device=i1.device)
    step = [0 if unroll_dim in e else 1 for e in expands]
    if all(t.numel() for t in tensors):
        for k in range(extents[unroll_dim]):
            a, b, c = (t.narrow(unroll_dim, k * s, 1) for t, s in zip(tensors, step, strict=True))
            part = sumproduct_pair(sumproduct_pair(a, b, first, keepdim=True), c, second, keepdim=True)
            target = output if unroll_dim in summed else output.narrow(unroll_dim, k, 1)
            target.add_(part)
    for d in sorted(summed, reverse=True):
        output.squeeze_(d)
    return output


def _trilinear_grad(
    grad: Tensor,
    i1: Tensor,
    i2: Tensor,
    i3: Tensor,
    expand1: Sequence[int],
    expand2: Sequence[int],
    expand3: Sequence[int],
    sumdim: Sequence[int],
    needs: Sequence[bool],
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    return (
        _trilinear(grad, i2, i3, sumdim, expand2, expand3, expand1) if needs[0] else None,
        _trilinear(i1, grad, i3, expand1, sumdim, expand3, expand2) if needs[1] else None,
        _trilinear(i1, i2, grad, expand1, expand2, sumdim, expand3) if needs[2] else None,
    )


_trilinear = op(
    "_trilinear(Tensor i1, Tensor i2, Tensor i3, int[] expand1, int[] expand2, int[] expand3, int[] sumdim, int unroll_dim=1)"
    " -> Tensor",
    composite=_trilinear_sum,
    grad={("i1", "i2", "i3"): _trilinear_grad},
    variants="function",
)


def _bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    if any(x is not None and x.dtype is not input1.dtype for x in (input2, weight, bias)):
        operands = {"input1": input1, "input2": input2, "weight": weight} | ({} if bias is None else {"bias": bias})
        found = ", ".join(f"{name}: {x.dtype.cpp_name}" for name, x in operands.items())
        raise RuntimeError(f"All tensors must have the same dtype, got {found}")
    if input1.ndim != input2.ndim:
        raise RuntimeError(f"bilinear(): input dimensions do not match: got {input1.ndim} and {input2.ndim}")
    for d in range(input1.ndim - 1):
        if input1.shape[d] != input2.shape[d]:
            raise RuntimeError(
                f"bilinear(): input batch dimensions do not match at dim {d}: got {input1.shape[d]} and {input2.shape[d]}"
            )
    if not weight.ndim:
        raise _checks.no_dimensions(1)
    if bias is not None and not bias.ndim:
        raise _checks.no_dimensions(0)
    for name, x, d in (("input1", input1, 1), ("input2", input2, 2)):
        if x.shape[-1] != weight.shape[d]:
            raise RuntimeError(
                f"bilinear(): {name} size does not match weight size: got {x.shape[-1]} but expected {weight.shape[d]}"
            )
    if bias is not None and bias.shape[0] != weight.shape[0]:
        raise RuntimeError(f"bilinear(): bias size does not match weight size: got {bias.shape[0]} but expected {weight.shape[0]}")
    lead = tuple(input1.shape[:-1])
    rows = prod(lead)
    flat1, flat2 = input1.reshape((rows, input1.shape[-1])), input2.reshape((rows, input2.shape[-1]))
    output = _trilinear(flat1, weight, flat2, (1, 3), (0,), (1, 2), (2, 3)).reshape((*lead, weight.shape[0]))
    return output if bias is None else output + bias


bilinear = op(
    "bilinear(Tensor input1, Tensor input2, Tensor weight, Tensor? bias=None) -> Tensor", composite=_bilinear, variants="function"
)
