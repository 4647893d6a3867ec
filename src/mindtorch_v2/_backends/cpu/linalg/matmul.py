"""Matrix products over NumPy arrays: BLAS for float32, float64 and complex; half precision by way of float32."""

from __future__ import annotations

from typing import Any

import numpy as np

from .... import _dtype, _promotion
from ...._checks import no_dimensions
from ...._types import Number
from ..machinery.dtype_rules import unimplemented
from ..machinery.dtypes import HALVES, cpp_name, scalar_name
from ..machinery.floating_errors import silent
from ..machinery.promotion import result_type

Array = np.ndarray[Any, Any]

_BLAS = frozenset("fdFD")
_FEW_ROWS, _WIDE, _LARGE = 48, 128, 16_384  # rows of one matrix; columns and elements of the other


def _mm_error(self: Array, mat2: Array) -> Exception:
    for name, x in (("self", self), ("mat2", mat2)):
        if x.ndim != 2:
            return RuntimeError(f"{name} must be a matrix")
    if self.shape[1] != mat2.shape[0]:
        return _shapes_error(self, mat2)
    return RuntimeError(f"expected m1 and m2 to have the same dtype, but got: {cpp_name(self)} != {cpp_name(mat2)}")


def _shapes_error(a: Array, b: Array) -> RuntimeError:
    (m, k), (n, p) = a.shape, b.shape
    return RuntimeError(f"mat1 and mat2 shapes cannot be multiplied ({m}x{k} and {n}x{p})")


def _addmm_error(self: Array, mat1: Array, mat2: Array) -> Exception:
    for name, x in (("mat1", mat1), ("mat2", mat2)):
        if x.ndim != 2:
            return RuntimeError(f"{name} must be a matrix, got {x.ndim}-D tensor")
    if mat1.shape[1] != mat2.shape[0]:
        return _shapes_error(mat1, mat2)
    if self.dtype != mat2.dtype:
        return RuntimeError(f"self and mat2 must have the same dtype, but got {scalar_name(self)} and {scalar_name(mat2)}")
    return RuntimeError(f"mat1 and mat2 must have the same dtype, but got {scalar_name(mat1)} and {scalar_name(mat2)}")


def check_batches(batch1: Array, batch2: Array, *, sized: bool = True) -> None:
    """`sized`: torch asks for sizes before it counts dimensions."""
    for name, x in (("batch1", batch1), ("batch2", batch2)):
        if sized and not x.ndim:
            raise no_dimensions(0 if name == "batch1" else 2)
        if x.ndim != 3:
            raise RuntimeError(f"{name} must be a 3D tensor")
    if batch2.shape[:2] != (batch1.shape[0], batch1.shape[2]):
        raise RuntimeError(
            f"Expected size for first two dimensions of batch2 tensor to be: [{batch1.shape[0]}, {batch1.shape[2]}] "
            f"but got: [{batch2.shape[0]}, {batch2.shape[1]}]."
        )


def _no_product(a: Array, b: Array, kernel: str) -> Array:
    """The product of bools: only one of no terms, which torch knows before it chooses a kernel."""
    if a.ndim == 1 or (a.size and b.size):
        raise unimplemented(kernel, a)
    return np.zeros((*a.shape[:-1], *b.shape[-1:][: b.ndim - 1]), bool)


def _is_skewed(a: Array, b: Array) -> bool:
    """Whether few rows are multiplied by a large matrix that is the transpose of another, as the weights of linear layers are."""
    return len(a) <= _FEW_ROWS and b.size >= _LARGE and len(a) * b.shape[1] > 1200 and b.flags.f_contiguous


def _transposed_product(a: Array, b: Array) -> Array:
    """The transpose of the product, by its transposed factors, for `_is_skewed` ones.

    OpenBLAS copies a transposed second factor whole, for however few rows: 4×200 by 200×800 takes 90 µs, in this way 17, with 32 rows 174 and 132. It
    does not do so for results of up to 1,200 elements.
    """
    return b.T.dot(np.ascontiguousarray(a.T))


def product_into(out: Array, a: Array, b: Array) -> None:
    """Write the product of two matrices that BLAS knows to a contiguous one."""
    if b.shape[1] >= _WIDE and _is_skewed(a, b):
        out[...] = _transposed_product(a, b).T
    else:
        a.dot(b, out)


@silent
def product(a: Array, b: Array, kernel: str = "addmm_impl_cpu_") -> Array:
    """The product of two matrices or batches of them, of one dtype."""
    char = a.dtype.char
    if char in _BLAS:
        # ndarray.dot takes half of the time of np.matmul for small matrices (0.64 µs, 8×8), and is level for large ones
        return a.dot(b) if a.ndim == 2 else np.matmul(a, b)
    if a.dtype in HALVES:
        return np.matmul(a.astype(np.float32), b.astype(np.float32)).astype(a.dtype)
    if char == "?":
        return _no_product(a, b, kernel)
    if a.dtype.itemsize <= 2 and a.shape[-1] < 1 << 21:
        # exact in float64, whose BLAS is many times faster than NumPy's integer loops; the cast wraps as torch does
        return np.matmul(a.astype(np.float64), b.astype(np.float64)).astype(np.int64).astype(a.dtype)
    return np.matmul(a, b)


def _integer(number: Any, out: Array) -> Any:
    """A factor as an integer kernel takes it: torch drops the fraction."""
    return int(number) if out.dtype.kind in "iu" else number


@silent
def _accumulate(out: Array, self: Array, beta: Number, alpha: Number) -> Array:
    """alpha * out + beta * self, in place of `out`."""
    if alpha != 1:
        np.multiply(out, np.asarray(_integer(alpha, out), out.dtype), out=out)
    if beta == 1:
        np.add(out, self, out=out)
    elif beta != 0:
        np.add(out, np.asarray(_integer(beta, out), out.dtype) * self, out=out)
    return out


@silent
def _affine(self: Array, a: Array, b: Array, beta: Number, alpha: Number, kernel: str) -> Array:
    if a.dtype.char not in _BLAS and a.dtype in HALVES:
        out = np.matmul(a.astype(np.float32), b.astype(np.float32))
        return _accumulate(out, self.astype(np.float32), beta, alpha).astype(a.dtype)
    return _accumulate(product(a, b, kernel), self, beta, alpha)


@silent
def mm(self: Array, mat2: Array) -> Array:
    d, shape1, shape2 = self.dtype, self.shape, mat2.shape
    # identity first: comparing dtypes takes longer than multiplying small matrices
    if len(shape1) != 2 or len(shape2) != 2 or shape1[1] != shape2[0] or (d is not mat2.dtype and d != mat2.dtype):
        raise _mm_error(self, mat2)
    if d.char in _BLAS:
        if shape2[1] >= _WIDE and _is_skewed(self, mat2):
            return np.ascontiguousarray(_transposed_product(self, mat2).T)
        return self.dot(mat2)
    return product(self, mat2)


def _bmm_of_two_dtypes(self: Array, mat2: Array) -> Array:
    if not self.size or not mat2.size:  # torch: the result is of the second dtype, where there is nothing to multiply
        return np.zeros((*self.shape[:2], mat2.shape[2]), mat2.dtype)
    if self.dtype.char == "?":
        raise unimplemented("bmm", self)
    raise RuntimeError(f"expected scalar type {scalar_name(self)} but found {scalar_name(mat2)}")


@silent
def bmm(self: Array, mat2: Array) -> Array:
    shape1, shape2 = self.shape, mat2.shape
    if len(shape1) != 3 or len(shape2) != 3 or shape1[0] != shape2[0] or shape1[2] != shape2[1]:
        check_batches(self, mat2, sized=False)
    if self.dtype != mat2.dtype:
        return _bmm_of_two_dtypes(self, mat2)
    return product(self, mat2, "bmm")


def expand_error(shape: tuple[int, ...], target: tuple[int, ...], scalar: str) -> RuntimeError | None:
    """torch's complaint when `shape` does not expand to `target`; None when it does."""
    if len(shape) > len(target):
        kind = "CPUBoolType" if scalar == "Bool" else f"torch.{scalar}Tensor"
        return RuntimeError(
            f"expand({kind}{{{list(shape)}}}, size={list(target)}): the number of sizes provided ({len(target)}) "
            f"must be greater or equal to the number of dimensions in the tensor ({len(shape)})"
        )
    offset = len(target) - len(shape)
    for i in range(len(shape) - 1, -1, -1):
        if shape[i] not in (1, target[i + offset]):
            return RuntimeError(
                f"The expanded size of the tensor ({target[i + offset]}) must match the existing size ({shape[i]}) at "
                f"non-singleton dimension {i + offset}.  Target sizes: {list(target)}.  Tensor sizes: {list(shape)}"
            )
    return None


def check_expands(self: Array, target: tuple[int, ...]) -> None:
    if self.shape != target:
        error = expand_error(self.shape, target, scalar_name(self))
        if error is not None:
            raise error


def _without_terms(self: Array, shape: tuple[int, ...], beta: Number) -> Array:
    """beta * self, in its dtype, for the sum with a product of no terms."""
    if beta == 0 or 0 in shape:
        return np.zeros(shape, self.dtype)
    found = result_type(self, beta)
    wanted = _dtype.FROM_NUMPY[self.dtype]
    if not _promotion.can_cast(found, wanted):
        raise RuntimeError(f"result type {found.scalar_name} can't be cast to the desired output type {wanted.scalar_name}")
    return np.multiply(np.broadcast_to(self, shape), _promotion.number_array(beta, wanted), order="C")


@silent
def addmm(self: Array, mat1: Array, mat2: Array, beta: Number, alpha: Number) -> Array:
    d, shape1, shape2 = self.dtype, mat1.shape, mat2.shape
    if (
        len(shape1) != 2
        or len(shape2) != 2
        or shape1[1] != shape2[0]
        or ((d is not mat1.dtype or d is not mat2.dtype) and not (d == mat1.dtype == mat2.dtype))
    ):
        raise _addmm_error(self, mat1, mat2)
    if self.shape != shape2[1:]:
        check_expands(self, (shape1[0], shape2[1]))
    if beta == 1 and alpha == 1 and d.char in _BLAS:
        if shape2[1] >= _WIDE and _is_skewed(mat1, mat2):
            return np.add(_transposed_product(mat1, mat2).T, self, order="C")
        out: Array = mat1.dot(mat2)
        out += self
        return out
    if not mat1.size:
        return _without_terms(self, (shape1[0], shape2[1]), beta)
    return _affine(self, mat1, mat2, beta, alpha, "addmm_impl_cpu_")


def _write(self: Array, value: Array) -> None:
    if self.shape != value.shape:
        raise RuntimeError(
            f"Bad in-place call: input tensor size {list(self.shape)} and output tensor size {list(value.shape)} should match"
        )
    self[...] = value


def addmm_(self: Array, mat1: Array, mat2: Array, beta: Number, alpha: Number) -> None:
    _write(self, addmm(self, mat1, mat2, beta, alpha))


def baddbmm(self: Array, batch1: Array, batch2: Array, beta: Number, alpha: Number) -> Array:
    if batch1.ndim == 3 and batch2.ndim == 3:
        check_expands(self, (batch1.shape[0], batch1.shape[1], batch2.shape[2]))
    check_batches(batch1, batch2)
    if not (self.dtype == batch1.dtype == batch2.dtype):
        raise RuntimeError(
            f"Input dtypes must be the same, got: input {cpp_name(self)}, batch1: {cpp_name(batch1)}, batch2: {cpp_name(batch2)}"
        )
    return _affine(self, batch1, batch2, beta, alpha, "baddbmm")


def baddbmm_(self: Array, batch1: Array, batch2: Array, beta: Number, alpha: Number) -> None:
    _write(self, baddbmm(self, batch1, batch2, beta, alpha))


def addbmm(self: Array, batch1: Array, batch2: Array, beta: Number, alpha: Number) -> Array:
    if batch1.ndim == 3 and batch2.ndim == 3:
        check_expands(self, (batch1.shape[1], batch2.shape[2]))
    check_batches(batch1, batch2)
    if not (self.dtype == batch1.dtype == batch2.dtype):
        raise _addmm_error(self, batch1[0], batch2[0])
    b, n, m = batch1.shape
    if b and batch1.dtype.char not in _BLAS and batch1.dtype in HALVES:
        # torch: one product after the other, rounded each time
        for x, y in zip(batch1, batch2, strict=True):
            self, beta = addmm(self, x, y, beta, alpha), 1
        return self
    # a sum of products is one product along both the batch and the inner dimension
    left = batch1.transpose(1, 0, 2).reshape(n, b * m)
    return _affine(self, left, batch2.reshape(b * m, batch2.shape[2]), beta, alpha, "addmm_impl_cpu_")


def addbmm_(self: Array, batch1: Array, batch2: Array, beta: Number, alpha: Number) -> None:
    _write(self, addbmm(self, batch1, batch2, beta, alpha))


def check_mv(self_shape: tuple[int, ...], mat: Array, vec: Array) -> None:
    if mat.ndim != 2 or vec.ndim != 1 or len(self_shape) > 1:
        raise RuntimeError(f"vector + matrix @ vector expected, got {len(self_shape)}, {mat.ndim}, {vec.ndim}")
    if not self_shape and mat.shape[1] != vec.shape[0]:
        raise no_dimensions(0)  # torch: asks for self's size, to complain about all three
    rows = self_shape[0] if self_shape else mat.shape[0]
    if mat.shape[1] != vec.shape[0] or rows not in (1, mat.shape[0]):
        m, n = mat.shape
        raise RuntimeError(f"size mismatch, got input ({rows}), mat ({m}x{n}), vec ({vec.shape[0]})")


def mv(self: Array, vec: Array) -> Array:
    check_mv(self.shape[:1] or (1,), self, vec)
    if self.dtype != vec.dtype:
        raise _addmv_dtype_error(vec, self, vec)
    return self.dot(vec) if self.dtype.char in _BLAS else product(self, vec, "addmv_impl_cpu")


def _addmv_dtype_error(self: Array, mat: Array, vec: Array) -> RuntimeError:
    names = f"{scalar_name(self)}, {scalar_name(mat)}, and {scalar_name(vec)}"
    return RuntimeError(f"addmv input tensors must have the same dtype, but got {names}")


def addmv(self: Array, mat: Array, vec: Array, beta: Number, alpha: Number) -> Array:
    check_mv(self.shape, mat, vec)
    if not (self.dtype == mat.dtype == vec.dtype):
        raise _addmv_dtype_error(self, mat, vec)
    if not mat.size:
        return _without_terms(self, self.shape, beta)  # torch: of self's shape, then
    return _affine(self, mat, vec, beta, alpha, "addmv_impl_cpu")


def addmv_(self: Array, mat: Array, vec: Array, beta: Number, alpha: Number) -> None:
    value = addmv(self, mat, vec, beta, alpha)
    _write(self, value if mat.size else value.reshape(self.shape) if self.shape == mat.shape[:1] else np.empty(mat.shape[0]))


def check_dot(self: Array, other: Array) -> None:
    if self.ndim != 1 or other.ndim != 1:
        raise RuntimeError(f"1D tensors expected, but got {self.ndim}D and {other.ndim}D tensors")
    if self.dtype != other.dtype:
        raise RuntimeError(
            f"dot : expected both vectors to have same dtype, but found {scalar_name(self)} and {scalar_name(other)}"
        )
    if self.size != other.size:
        raise RuntimeError(
            f"inconsistent tensor size, expected tensor [{self.size}] and src [{other.size}] to have the same number of "
            f"elements, but got {self.size} and {other.size} elements respectively"
        )


def dot(self: Array, tensor: Array) -> Array:
    check_dot(self, tensor)
    return self.dot(tensor) if self.dtype.char in _BLAS else product(self, tensor, "dot")


def vdot(self: Array, other: Array) -> Any:
    check_dot(self, other)
    return np.vdot(self, other)


def cross(self: Array, other: Array, dim: int) -> Array:
    """The vector product along a dimension of extent 3."""
    at = [(slice(None),) * dim + (slice(i, i + 1),) for i in range(3)]
    a, b = [self[i] for i in at], [other[i] for i in at]
    out = np.empty(self.shape if self.shape == other.shape else np.broadcast_shapes(self.shape, other.shape), self.dtype)
    for i in range(3):
        j, k = (i + 1) % 3, (i + 2) % 3
        c = out[at[i]]
        np.multiply(a[j], b[k], out=c)
        c -= a[k] * b[j]
    return out
