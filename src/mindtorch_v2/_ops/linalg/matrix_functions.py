"""Powers and the exponential of matrices; tensors as linear maps; Vandermonde matrices."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from ... import _dtype
from ..._backends.cpu.linalg import factorizations as kernels
from ..._backends.cpu.machinery.dtype_rules import refuse
from ..._dispatch import keys
from ..._memory_format import contiguous_format
from ..._tensor import Tensor
from ..machinery.declare import op
from ..machinery.lookup import aten
from ..shapes.joining import cat
from .checks import check_errors, check_floating, check_square
from .matmul import conj, matmul
from .solve import linalg_inv, linalg_inv_ex, linalg_solve

Array = np.ndarray[Any, Any]


def _matrix_power(self: Tensor, n: int) -> Tensor:
    check_square(self, "linalg.matrix_power")
    if n == 0:
        # torch: the identity hangs on the input, with a gradient of zero
        eye = aten.eye(self.shape[-1], dtype=self.dtype, device=self.device)
        return self.clone(memory_format=contiguous_format).copy_(eye.expand(self.shape))
    if n < 0:
        return _positive_power(linalg_inv(self), -n)
    return self.clone(memory_format=contiguous_format) if n == 1 else _positive_power(self, n)


def _positive_power(x: Tensor, n: int) -> Tensor:
    if n == 1:
        return x
    if n == 2:
        return matmul(x, x)
    if n == 3:
        return matmul(matmul(x, x), x)
    square: Tensor | None = None
    result: Tensor | None = None
    while n:
        square = x if square is None else matmul(square, square)
        if n % 2:
            result = square if result is None else matmul(result, square)
        n //= 2
    assert result is not None
    return result


linalg_matrix_power = op("linalg_matrix_power(Tensor self, int n) -> Tensor", composite=_matrix_power, variants="function")
matrix_power = op("matrix_power(Tensor self, int n) -> Tensor", composite=lambda self, n: linalg_matrix_power(self, n))


def _matrix_exp_kernel(self: Array) -> Array:
    check_square(self, "linalg.matrix_exp")
    check_floating(self, "linalg.matrix_exp")
    return kernels.matrix_exp(self)


def _matrix_exp_grad(grad: Tensor, self: Tensor) -> Tensor:
    """The upper right block of the exponential of [[Aᴴ, G], [0, Aᴴ]]."""
    n = self.shape[-1]
    a = conj(self.transpose(-2, -1))
    if (grad._keys | a._keys) & keys.BATCHED:  # what differs between samples is not written into what does not
        blocks = aten.cat([aten.cat([a, grad], -1), aten.cat([aten.zeros_like(a), a], -1)], -2)
    else:
        blocks = aten.zeros((*a.shape[:-2], 2 * n, 2 * n), dtype=a.dtype, device=a.device)
        blocks.narrow(-2, 0, n).narrow(-1, 0, n).copy_(a)
        blocks.narrow(-2, n, n).narrow(-1, n, n).copy_(a)
        blocks.narrow(-2, 0, n).narrow(-1, n, n).copy_(grad)
    whole = linalg_matrix_exp(blocks)
    return whole.narrow(-2, 0, n).narrow(-1, n, n)


linalg_matrix_exp = op(
    "linalg_matrix_exp(Tensor self) -> Tensor",
    cpu=_matrix_exp_kernel,
    grad={"self": _matrix_exp_grad},
    variants="function",
)
matrix_exp = op("matrix_exp(Tensor self) -> Tensor", composite=lambda self: linalg_matrix_exp(self))


# --- tensors as linear maps --------------------------------------------------------------------------------------------


def _tensorinv(self: Tensor, ind: int) -> Tensor:
    if ind <= 0:
        raise RuntimeError(f"Expected a strictly positive integer for 'ind', but got {ind}")
    if ind > self.ndim:
        raise RuntimeError(f"ArrayRef: invalid slice, N = {ind}; size = {self.ndim}")
    shape = tuple(self.shape)
    rows, columns = prod(shape[:ind]), prod(shape[ind:])
    if rows != columns:
        raise RuntimeError(
            "Expected self to satisfy the requirement prod(self.shape[ind:]) == prod(self.shape[:ind]), but got "
            f"{columns} != {rows}"
        )
    inverted, info = linalg_inv_ex(self.reshape((columns, rows)))
    check_errors(info, "inv", is_matrix=True)
    return inverted.reshape((*shape[ind:], *shape[:ind]))


linalg_tensorinv = op("linalg_tensorinv(Tensor self, int ind=2) -> Tensor", composite=_tensorinv, variants="function")


def _tensorsolve(self: Tensor, other: Tensor, dims: Sequence[int] | None) -> Tensor:
    moved = self if dims is None else self.movedim(list(dims), list(range(self.ndim - len(dims), self.ndim)))
    shape = tuple(moved.shape)
    unknowns = shape[other.ndim :]
    rows = prod(shape[: other.ndim])
    if prod(unknowns) != rows:
        raise RuntimeError(
            "Expected self to satisfy the requirement prod(self.shape[other.ndim:]) == prod(self.shape[:other.ndim]), but got "
            f"{prod(unknowns)} != {rows}"
        )
    if rows != other.numel():
        raise RuntimeError(
            "Expected self to satisfy the requirement prod(self.shape[other.ndim:]) == prod(self.shape[:other.ndim]), but got "
            f"{prod(unknowns)} != {other.numel()}"
        )
    return linalg_solve(moved.reshape((rows, rows)), other.flatten()).reshape(unknowns)


linalg_tensorsolve = op(
    "linalg_tensorsolve(Tensor self, Tensor other, int[]? dims=None) -> Tensor", composite=_tensorsolve, variants="function"
)
linalg_diagonal = op(
    "linalg_diagonal(Tensor(a) A, *, int offset=0, int dim1=-2, int dim2=-1) -> Tensor(a)",
    composite=lambda A, offset, dim1, dim2: A.diagonal(offset, dim1, dim2),
    variants="function",
)


def _linalg_vander(x: Tensor, N: int | None) -> Tensor:
    refuse("linalg.vander supports floating point, complex, and integer tensors, but got {}", x, "b")
    x = x if x.ndim else x.unsqueeze(-1)
    n = x.shape[-1] if N is None else N
    if n <= 1:
        raise RuntimeError("N must be greater than 1.")
    powers = x.unsqueeze(-1).expand((*x.shape, n - 1)).cumprod(-1)
    ones = powers.new_ones((*powers.shape[:-1], 1))
    return cat([ones, powers], -1)


linalg_vander = op("linalg_vander(Tensor x, *, SymInt? N=None) -> Tensor", composite=_linalg_vander, variants="function")


def _vander(x: Tensor, N: int | None, increasing: bool) -> Tensor:
    if x.ndim != 1:
        raise RuntimeError("x must be a one-dimensional tensor.")
    n = x.shape[0] if N is None else N
    if n < 0:
        raise RuntimeError("N must be non-negative.")
    dtype = x.dtype if x.dtype.category >= _dtype.FLOAT else _dtype.int64
    result = x.new_empty((x.shape[0], n), dtype=dtype)
    if n > 0:
        result.select(1, 0).fill_(1)
    if n > 1:
        rest = result.narrow(1, 1, n - 1)
        rest.copy_(x.unsqueeze(1))
        rest.copy_(rest.cumprod(1))
    return result if increasing else result.flip((1,))


vander = op("vander(Tensor x, int? N=None, bool increasing=False) -> Tensor", composite=_vander, variants="function")
