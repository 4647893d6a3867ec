"""Triangles and diagonals of matrices."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from ..._backends.cpu.machinery.floating_errors import silent
from ..._backends.cpu.shapes import repeating as kernels
from ..._checks import wrap_dim
from ..._promotion import promote_types
from ..._tensor import Tensor
from ..machinery.declare import copy_into, op, public
from ..machinery.lookup import aten
from .reshaping import view, zeros
from .slicing import diagonal, slice_


def _declare_triangle(name: str, *, lower: bool) -> Callable[..., Any]:
    grad = {"self": lambda grad, diagonal: entry(grad, diagonal)}
    entry = op(
        f"{name}(Tensor self, SymInt diagonal=0) -> Tensor",
        cpu=silent(lambda self, diagonal: kernels.triangle(self, diagonal, lower=lower)),
        grad=grad,
    )
    op(
        f"{name}_(Tensor(a!) self, SymInt diagonal=0) -> Tensor(a!)",
        cpu=lambda self, diagonal: copy_into(self, kernels.triangle(self, diagonal, lower=lower)),
        grad=grad,
        variants="method",
    )
    return entry


tril = _declare_triangle("tril", lower=True)
triu = _declare_triangle("triu", lower=False)

# --- diagonals ------------------------------------------------------------------------------------------------------


def _diag_embed(self: Tensor, offset: int, dim1: int, dim2: int) -> Tensor:
    ndim = self.dim() + 1
    d1, d2 = wrap_dim(dim1, ndim), wrap_dim(dim2, ndim)
    if d1 == d2:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    n = abs(offset) + self._array.shape[-1]
    shape = list(self._array.shape[:-1])
    for d in sorted((d1, d2)):
        shape.insert(d, n)
    result = zeros(shape, self)
    diagonal(result, offset, d1, d2).copy_(self)
    return result


diag_embed = op(
    "diag_embed(Tensor self, int offset=0, int dim1=-2, int dim2=-1) -> Tensor",
    composite=_diag_embed,
    grad={"self": lambda grad, offset, dim1, dim2: diagonal(grad, offset, dim1, dim2)},
)


def _diag(self: Tensor, diagonal: int) -> Tensor:
    if self.dim() == 1:
        return diag_embed(self, diagonal)
    if self.dim() == 2:
        return aten.diagonal_copy(self, diagonal)
    raise RuntimeError(f"diag(): Supports 1D or 2D tensors. Got {self.dim()}D")


diag = op("diag(Tensor self, int diagonal=0) -> Tensor", composite=_diag)
diagflat = op(
    "diagflat(Tensor self, int offset=0) -> Tensor",
    composite=lambda self, offset: diag(view(self.contiguous(), (-1,)), offset),
)

# --- trace ----------------------------------------------------------------------------------------------------------

trace = op(
    "trace(Tensor self) -> Tensor",
    cpu=kernels.trace,
    grad={"self": lambda grad, self_shape: trace_backward(grad, self_shape)},
    refuses=("trace", "b"),
)


def _trace_backward(grad: Tensor, sizes: Sequence[int]) -> Tensor:
    rows, columns = sizes
    flat = zeros((rows * columns,), grad)
    on_diagonal = aten.arange(0, min(rows, columns) * (columns + 1), columns + 1, device=grad.device)
    return view(flat.index_fill_(0, on_diagonal, grad), (rows, columns))


trace_backward = op("trace_backward(Tensor grad, SymInt[] sizes) -> Tensor", composite=_trace_backward, variants="")

# --- matrices along a diagonal --------------------------------------------------------------------------------------


def _block_diag(tensors: Sequence[Tensor]) -> Tensor:
    for i, t in enumerate(tensors):
        if t.dim() > 2:
            raise RuntimeError(
                f"torch.block_diag: Input tensors must have 2 or fewer dimensions. Input {i} has {t.dim()} dimensions"
            )
    if not tensors:
        return aten.empty(size=(1, 0))
    shapes = [_as_matrix(t._array.shape) for t in tensors]
    dtype = tensors[0].dtype
    for t in tensors[1:]:
        dtype = promote_types(dtype, t.dtype)
    result = aten.zeros(size=(sum(r for r, _ in shapes), sum(c for _, c in shapes)), dtype=dtype, device=tensors[0].device)
    row = column = 0
    for t, (r, c) in zip(tensors, shapes, strict=True):
        slice_(slice_(result, 0, row, row + r), 1, column, column + c).copy_(t)
        row, column = row + r, column + c
    return result


def _as_matrix(shape: Sequence[int]) -> tuple[int, int]:
    if len(shape) == 2:
        return shape[0], shape[1]
    return 1, math.prod(shape)


def _block_diag_grads(grad: Tensor, tensors_shape: list[Sequence[int]]) -> list[Tensor]:
    found = []
    row = column = 0
    for shape in tensors_shape:
        r, c = _as_matrix(shape)
        block = slice_(slice_(grad, 0, row, row + r), 1, column, column + c)
        for _ in range(2 - len(shape)):
            block = block.squeeze(-1)  # the engine brings a row to its shape
        found.append(block)
        row, column = row + r, column + c
    return found


_block_diag_op = op(
    "block_diag(Tensor[] tensors) -> Tensor", composite=_block_diag, grad={"tensors": _block_diag_grads}, variants="function"
)


@public("function")
def block_diag(*tensors: Tensor) -> Tensor:
    """A matrix with the given ones along its diagonal."""
    return _block_diag_op(list(tensors))
