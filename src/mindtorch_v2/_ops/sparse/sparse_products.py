"""Products of a sparse and a dense matrix whose result is sparse: `sspaddmm`, `smm`, `hspmm`, and their older names."""

from __future__ import annotations

import numpy as np

from ..._dispatch import keys
from ..._memory_format import sparse_coo
from ..._scipy import sparse as scipy_sparse
from ..._tensor import Tensor, wrap
from ..._types import Number
from ..machinery.declare import op, public
from .construction import empty_coo
from .storage import Array, coalesced, layout_name, parts, sparse_tensor

__all__ = ["hspmm", "smm", "sspaddmm"]


def _check(name: str, mat1: Tensor, mat2: Tensor) -> None:
    for position, t in ((2, mat1), (3, mat2)):
        if t.dim() != 2:
            raise RuntimeError(f"{name}: Argument #{position}: 2D matrix expected, got {t.dim()}D tensor")
    if mat2._array.shape[0] != mat1._array.shape[1]:
        raise RuntimeError(f"{name}: Argument #3: Expected dim 0 size {mat1._array.shape[1]}, got {mat2._array.shape[0]}")
    if mat1.dtype is not mat2.dtype:
        raise RuntimeError(f"expected scalar type {mat1.dtype.scalar_name} but found {mat2.dtype.scalar_name}")


def _product_rows(mat1: Tensor, mat2: Tensor) -> tuple[Array, Array]:
    """The rows of a sparse matrix that have elements, and those of the product with a dense one."""
    indices, values = parts(coalesced(mat1))
    rows, at = np.unique(indices[0], return_inverse=True)
    wide = (
        np.float32 if values.dtype.itemsize == 2 and values.dtype.kind not in "iu" else values.dtype
    )  # SciPy has no half precision
    picked = scipy_sparse.csr_array((values.astype(wide), (at.reshape(-1), indices[1])), shape=(rows.size, mat1._array.shape[1]))
    return rows, np.asarray(picked @ mat2._array.astype(wide)).astype(values.dtype, copy=False)


def _sspaddmm(self: Tensor, mat1: Tensor, mat2: Tensor, beta: Number, alpha: Number) -> Tensor:
    """Elements of `self` first, and those of the product behind them: the result is not coalesced."""
    for name, t, wanted in (("mat1", mat1, "sparse"), ("mat2", mat2, "strided")):
        if (t.layout is sparse_coo) != (wanted == "sparse"):
            raise RuntimeError(f"sspaddmm: expected '{name}' to have {wanted} layout, got '{name}' with layout {layout_name(t)}")
    if self.layout is not sparse_coo:
        raise RuntimeError(f"sspaddmm: expected 'self' to have sparse layout, got 'self' with layout {layout_name(self)}")
    _check("sspaddmm", mat1, mat2)
    wanted_size = (mat1._array.shape[0], mat2._array.shape[1])
    for dim, (found, size) in enumerate(zip(self._array.shape, wanted_size, strict=True)):
        if found != size:
            raise RuntimeError(f"sspaddmm: Argument #1: Expected dim {dim} size {size}, got {found}")
    rows, product = _product_rows(mat1, mat2)
    own_indices, own_values = parts(self)
    places = np.stack([np.repeat(rows, wanted_size[1]), np.tile(np.arange(wanted_size[1]), rows.size)])
    indices = np.concatenate([own_indices, places], 1)
    kind = self.dtype.np.type
    values = np.concatenate([own_values * kind(beta), (product * kind(alpha)).reshape(-1)])
    return sparse_tensor(wrap(indices), wrap(values, self.dtype), wanted_size)


sspaddmm = op(
    "sspaddmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
    composite=_sspaddmm,
    tags=("no_derivative",),
)


def _smm(self: Tensor, mat2: Tensor) -> Tensor:
    if not self._keys & keys.SPARSE_LAYOUTS:
        raise RuntimeError("tensor.sspaddmm(...) can only be called on sparse tensors")
    if self.layout is not sparse_coo:
        raise RuntimeError(f"smm: expected a matrix of layout torch.sparse_coo, but got {self.layout}; use to_sparse_coo()")
    nothing = empty_coo((self._array.shape[0], mat2._array.shape[1] if mat2.dim() == 2 else 0), self.dtype)
    return sspaddmm(nothing, self, mat2, beta=0, alpha=1)


smm = op("smm(Tensor self, Tensor mat2) -> Tensor", composite=_smm)


def _hspmm(mat1: Tensor, mat2: Tensor) -> Tensor:
    if mat1.layout is not sparse_coo:
        raise NotImplementedError(f"Could not run 'aten::hspmm' with a first matrix of layout {mat1.layout}; use to_sparse_coo()")
    _check("hspmm", mat1, mat2)
    rows, product = _product_rows(mat1, mat2)
    size = (mat1._array.shape[0], mat2._array.shape[1])
    return sparse_tensor(wrap(rows[None]), wrap(product, mat1.dtype), size)


hspmm = op(
    "hspmm(Tensor mat1, Tensor mat2) -> Tensor",
    composite=_hspmm,
    tags=("no_derivative",),
    variants="function",
)


@public("function")
def saddmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Number = 1, alpha: Number = 1, out: Tensor | None = None) -> Tensor:
    """`sspaddmm` by its older name."""
    return sspaddmm(input, mat1, mat2, beta=beta, alpha=alpha, out=out)


@public("function")
def hsmm(mat1: Tensor, mat2: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`hspmm` by its older name."""
    return hspmm(mat1, mat2, out=out)


@public("function")
def dsmm(input: Tensor, mat2: Tensor) -> Tensor:
    """The product of two matrices by an older name of `mm`."""
    return input.mm(mat2)
