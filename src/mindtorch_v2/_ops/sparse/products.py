"""Products of matrices of which at least one is sparse."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._dispatch import keys
from ..._memory_format import sparse_csr
from ..._scipy import sparse as scipy_sparse
from ..._scipy import sparsetools
from ..._tensor import Tensor, wrap
from ..._types import Number
from ..linalg.matmul import addmm, maybe_multiply
from ..machinery.declare import op, public
from ..shapes.reshaping import zeros
from . import compressed
from .arithmetic import WITH_DENSE, is_sparse
from .compressed import as_coo, compress_coordinates, in_layout_of
from .layouts import to_dense
from .storage import Array, kernel, parts, sparse_tensor

__all__ = ["sparse_addmm", "sparse_mm", "sparse_mm_reduce"]

_SCIPY = frozenset(map(np.dtype, "bBhHiIlLqQfdFD"))


def _matrix(t: Tensor) -> Any:
    """SciPy's matrix over the parts of a sparse one."""
    if t._array.ndim != 2 or t.dense_dim():
        raise RuntimeError(f"expected a sparse matrix, but got {t.sparse_dim()}D sparse with {t.dense_dim()}D values")
    if t.layout is sparse_csr:
        starts, places, values = compressed.flat_parts(t)
        return scipy_sparse.csr_array((_known(values[0, :, 0, 0]), places[0], starts[0]), shape=t._array.shape)
    indices, values = parts(as_coo(t))
    return scipy_sparse.coo_array((_known(values), tuple(indices)), shape=t._array.shape)


def _known(values: Array) -> Array:
    """Values of a type that SciPy multiplies: half precision is computed in float32."""
    return values if values.dtype in _SCIPY else values.astype(np.float32)


def _compressed(t: Tensor) -> tuple[Array, Array, Array]:
    """Where rows start, columns and values of a sparse matrix."""
    if t._array.ndim != 2 or t.dense_dim():
        raise RuntimeError(f"expected a sparse matrix, but got {t.sparse_dim()}D sparse with {t.dense_dim()}D values")
    if t.layout is sparse_csr:
        starts, places, values = compressed.flat_parts(t)
        return starts[0].astype(np.int64, copy=False), places[0].astype(np.int64, copy=False), _known(values[0, :, 0, 0])
    indices, values = parts(as_coo(t))
    rows, columns = (np.ascontiguousarray(i, np.int64) for i in indices)
    values = np.ascontiguousarray(_known(values))
    made = np.empty(t._array.shape[0] + 1, np.int64), np.empty_like(columns), np.empty_like(values)
    sparsetools.coo_tocsr(*t._array.shape, values.size, rows, columns, values, *made)
    return made


def _with_dense(t: Tensor, dense: Array, *, transposed: bool = False) -> Array:
    """The product of a sparse matrix, or of its transpose, and a dense one. SciPy's own matrix would take 70 ms to import."""
    starts, columns, values = _compressed(t)
    # rows of a matrix are the columns of its transpose
    multiply, shape = (sparsetools.csc_matvecs, t._array.shape[::-1]) if transposed else (sparsetools.csr_matvecs, t._array.shape)
    out = np.zeros((shape[0], dense.shape[1]), values.dtype)
    flat = np.ascontiguousarray(_known(dense)).reshape(-1)
    multiply(*shape, dense.shape[1], starts, columns, np.ascontiguousarray(values), flat, out.reshape(-1))
    return out


def _check_product(mat1: Tensor, mat2: Tensor) -> None:
    a, b = mat1._array.shape, mat2._array.shape
    if len(a) != 2:
        raise RuntimeError(f"mm: Expected dim 0 to be 2D, got {len(a)}D tensor")
    if len(b) != 2:
        raise RuntimeError(f"mm: Expected dim 1 to be 2D, got {len(b)}D tensor")
    if a[1] != b[0]:
        raise RuntimeError(f"mm: Argument #3 (dense): Expected dim 0 size {a[1]}, got {b[0]}")
    if mat1.dtype is not mat2.dtype:
        raise RuntimeError(f"mm: expected both matrices to have the same dtype, but got {mat1.dtype} and {mat2.dtype}")


def _product(mat1: Tensor, mat2: Tensor) -> Tensor:
    """The product, dense if one factor is, and otherwise in the layout of the first."""
    _check_product(mat1, mat2)
    if not is_sparse(mat2):
        return wrap(_with_dense(mat1, mat2._array).astype(mat1.dtype.np, copy=False), mat1.dtype)
    if not is_sparse(mat1):
        made = _with_dense(mat2, mat1._array.T, transposed=True).T
        return wrap(np.ascontiguousarray(made, mat1.dtype.np), mat1.dtype)
    made = (_matrix(mat1) @ _matrix(mat2)).tocoo()
    made.sum_duplicates()
    order = np.lexsort((made.col, made.row))
    indices = np.stack([made.row[order], made.col[order]]).astype(np.int64)
    values = made.data[order].astype(mat1.dtype.np, copy=False)
    coo = sparse_tensor(wrap(indices), wrap(values, mat1.dtype), made.shape, coalesced=True)
    return coo if mat1._keys & keys.SPARSE else compress_coordinates(coo, sparse_csr, None)


# --- addmm ------------------------------------------------------------------------------------------------------------


def _addmm(self: Tensor, mat1: Tensor, mat2: Tensor, beta: Number, alpha: Number) -> Tensor:
    if is_sparse(mat2) and is_sparse(mat1) and not is_sparse(self):
        mat2 = to_dense(mat2, None)
    product = maybe_multiply(_product(mat1, mat2), alpha)
    if beta == 0:
        return product
    if is_sparse(product) != is_sparse(self):
        raise RuntimeError(f"addmm: a product of layout {product.layout} is not added to a tensor of layout {self.layout}; use to_dense() or to_sparse()")  # fmt: skip
    return maybe_multiply(self, beta) + product


def _addmm_(self: Tensor, mat1: Tensor, mat2: Tensor, beta: Number, alpha: Number) -> Tensor:
    return self.copy_(_addmm(self, mat1, mat2, beta, alpha))


for _key in (*WITH_DENSE, keys.SPARSE, keys.SPARSE_COMPRESSED):
    kernel("addmm", key=_key)(_addmm)
    kernel("addmm_", key=_key)(_addmm_)


def _sparse_addmm_call(self: Tensor, mat1: Tensor, mat2: Tensor, beta: Number, alpha: Number) -> Tensor:
    return addmm(self, mat1, mat2, beta=beta, alpha=alpha)


sparse_addmm = op(
    "_sparse_addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
    composite=_sparse_addmm_call,
    grad={
        "self": lambda grad, beta: maybe_multiply(grad, beta),
        "mat1": lambda grad, mat1, mat2, alpha: _grad_of_sparse(grad, mat1, mat2, alpha),
        "mat2": lambda grad, mat1, alpha: maybe_multiply(_transposed(mat1).mm(grad), alpha),
    },
    variants="function",
)


def _transposed(mat: Tensor) -> Tensor:
    """The conjugate transpose."""
    turned = mat.t()
    return turned.conj_physical() if mat.dtype.is_complex else turned


def _grad_of_sparse(grad: Tensor, mat1: Tensor, mat2: Tensor, alpha: Number) -> Tensor:
    """The gradient of a sparse factor, at its own places only."""
    coo = as_coo(mat1)
    rows, columns = parts(coo)[0]
    right = mat2._array.conj() if mat2.dtype.is_complex else mat2._array
    values = np.einsum("ij,ij->i", grad._array[rows], right[columns])
    if alpha != 1:
        values = values * np.conj(alpha)
    made = sparse_tensor(
        wrap(np.stack([rows, columns])),
        wrap(values.astype(mat1.dtype.np), mat1.dtype),
        mat1._array.shape,
        coalesced=coo.is_coalesced(),
    )
    return in_layout_of(made, mat1)


# --- mm ---------------------------------------------------------------------------------------------------------------


def _mm(self: Tensor, mat2: Tensor) -> Tensor:
    if is_sparse(self) and not is_sparse(mat2):
        _check_product(self, mat2)
        shape = (self._array.shape[0], mat2._array.shape[1])
        return sparse_addmm(zeros(shape, mat2), self, mat2, beta=0)
    if is_sparse(self):
        return sparse_sparse(self, mat2)
    return _product(self, mat2)


for _key in (*WITH_DENSE, keys.SPARSE, keys.SPARSE_COMPRESSED):
    kernel("mm", key=_key)(_mm)
    kernel("mv", key=_key)(lambda self, vec: _mm(self, _column(vec)).squeeze(1))


def _addmv(self: Tensor, mat: Tensor, vec: Tensor, beta: Number, alpha: Number) -> Tensor:
    product = maybe_multiply(mat.mv(vec), alpha)
    return product if beta == 0 else maybe_multiply(self, beta) + product


for _key in WITH_DENSE[:2]:
    kernel("addmv", key=_key)(_addmv)


def _column(vec: Tensor) -> Tensor:
    if is_sparse(vec) or vec._array.ndim != 1:
        raise RuntimeError(f"mv: expected a dense vector, but got {vec._array.ndim}D of layout {vec.layout}")
    return vec.unsqueeze(1)


sparse_sparse = op(
    "_sparse_sparse_matmul(Tensor self, Tensor other) -> Tensor",
    composite=lambda self, other: _product(self, other),
    grad={
        "self": lambda grad, self, other: _product(grad, _transposed(other)).sparse_mask(self),
        "other": lambda grad, self, other: _product(_transposed(self), grad).sparse_mask(other),
    },
    variants="function",
)


@public("function")
def spmm(input: Tensor, mat2: Tensor) -> Tensor:
    """The product of a sparse and a dense matrix."""
    return input.mm(mat2)


sparse_mm = op("_sparse_mm(Tensor sparse, Tensor dense) -> Tensor", composite=_mm, variants="function")


@kernel("bmm", key=keys.CPU | keys.SPARSE)
def _bmm(self: Tensor, mat2: Tensor) -> Tensor:
    """A batch of products of sparse matrices with dense ones."""
    if not is_sparse(self) or is_sparse(mat2):
        raise NotImplementedError("bmm: only its first operand may be sparse; use to_dense() on the other")
    if self._array.ndim != 3 or mat2._array.ndim != 3:
        raise RuntimeError(f"bmm_sparse: Tensors 'self' and 'mat2' must be 3D, but got {self.dim()}D and {mat2.dim()}D")
    if self._array.shape[0] != mat2._array.shape[0] or self._array.shape[2] != mat2._array.shape[1]:
        raise RuntimeError(f"bmm_sparse: sizes {list(self._array.shape)} and {list(mat2._array.shape)} do not fit")
    outs = [_product(self.select(0, i), mat2.select(0, i))._array for i in range(self._array.shape[0])]
    shape = (self._array.shape[0], self._array.shape[1], mat2._array.shape[2])
    return wrap(np.stack(outs) if outs else np.zeros(shape, self.dtype.np), self.dtype)


# --- a dense product at the places of a sparse matrix -----------------------------------------------------------------


def _sampled(self: Tensor, mat1: Tensor, mat2: Tensor, beta: Number, alpha: Number) -> Tensor:
    if not self._keys & keys.SPARSE_COMPRESSED:
        raise RuntimeError(f"sparse_sampled_addmm: Expected self to be in a compressed sparse layout, but got {self.layout}")
    if mat1._array.ndim < 2 or mat1._array.shape[-1] != mat2._array.shape[-2]:
        raise RuntimeError(f"sparse_sampled_addmm: mat1 and mat2 shapes cannot be multiplied ({list(mat1._array.shape)} and {list(mat2._array.shape)})")  # fmt: skip
    sampled = maybe_multiply(mat1.matmul(mat2), alpha).sparse_mask(self)
    return sampled if beta == 0 else maybe_multiply(self, beta) + sampled


op(
    "sparse_sampled_addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
    composite=_sampled,
    grad={
        "self": lambda grad, beta: maybe_multiply(grad, beta),
        "mat1": lambda grad, self, mat2, alpha: maybe_multiply(grad.sparse_mask(self).mm(_transposed(mat2)), alpha),
        "mat2": lambda grad, self, mat1, alpha: maybe_multiply(_transposed(mat1).mm(grad.sparse_mask(self)), alpha),
    },
    variants="",
)

# --- sums, means and extrema over the elements of a row --------------------------------------------------------------


def _reduced(sparse: Tensor, dense: Tensor, reduce: str) -> Tensor:
    if sparse.layout is not sparse_csr:
        raise RuntimeError(
            f"sparse.mm with reduce expects a matrix of layout torch.sparse_csr, but got {sparse.layout}; use to_sparse_csr()"
        )
    if reduce in ("sum", "mean"):
        total = sparse_mm(sparse, dense)
        if reduce == "sum":
            return total
        counts = sparse.crow_indices().diff().clamp(min=1)
        return total / counts.unsqueeze(1).to(total.dtype)
    if reduce not in ("amax", "amin"):
        raise RuntimeError(f"sparse.mm expects reduce to be one of sum, mean, amax, amin, but got {reduce}")
    rows = parts(as_coo(sparse))[0][0]
    terms = sparse.values().unsqueeze(1) * dense[sparse.col_indices()]
    index = wrap(rows).unsqueeze(1).expand(terms.shape)
    out = terms.new_zeros((sparse._array.shape[0], dense._array.shape[1]))
    return out.scatter_reduce(0, index, terms, reduce, include_self=False)


sparse_mm_reduce = op("_sparse_mm.reduce(Tensor sparse, Tensor dense, str reduce) -> Tensor", composite=_reduced, variants="")
