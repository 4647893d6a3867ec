"""Functions of matrices over the factorisations: pseudo-inverse, rank, norms, condition, powers, exponential, tensor systems."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from .. import _checks, _dtype
from .._backends.cpu import linalg as kernels
from .._backends.cpu.matmul import scalar_name
from .._tensor import Tensor, wrap
from .declare import op
from .decomposition import linalg_eigh, linalg_eigvalsh, linalg_svdvals, svd
from .linalg_checks import check_errors, check_floating, check_matrix, check_square
from .lookup import aten
from .matmul import matmul
from .solve import linalg_inv, linalg_inv_ex, linalg_solve

Array = np.ndarray[Any, Any]


def _scalar(value: float, dtype: _dtype.dtype) -> Tensor:
    return wrap(np.asarray(value, dtype.np))


# --- pseudo-inverse and rank ------------------------------------------------------------------------------------------


def _tolerances(x: Tensor, atol: Any, rtol: Any, function: str) -> tuple[Tensor, Tensor]:
    """Absolute and relative tolerance as tensors; the relative one is eps · max(m, n) unless either is given."""
    dtype = x.dtype.to_real()
    if dtype not in (_dtype.float32, _dtype.float64):
        raise RuntimeError("This function doesn't handle types other than float and double")
    default = float(np.finfo(dtype.np).eps) * max(x.shape[-2:])
    for name, given in (("atol", atol), ("rtol", rtol)):
        if isinstance(given, Tensor) and given.dtype.is_complex:
            raise RuntimeError(f"{function}: {name} tensor of complex type is not supported.")
    absolute = atol if isinstance(atol, Tensor) else _scalar(0.0 if atol is None else atol, dtype)
    if rtol is not None:
        return absolute, rtol if isinstance(rtol, Tensor) else _scalar(rtol, dtype)
    if isinstance(atol, Tensor):
        return absolute, _scalar(default, dtype).where(absolute <= 0, _scalar(0.0, dtype))
    return absolute, _scalar(0.0 if atol else default, dtype)


def _check_pinv(x: Tensor) -> None:
    if x.ndim < 2 or x._array.dtype.char not in "fdFD":
        raise RuntimeError(
            f"linalg.pinv({scalar_name(x._array)}{{{list(x.shape)}}}): expected a tensor with 2 or more dimensions of float, "
            "double, cfloat or cdouble types"
        )


def _pinv(self: Tensor, atol: Any, rtol: Any, hermitian: bool) -> Tensor:
    _check_pinv(self)
    absolute, relative = _tolerances(self, atol, rtol, "torch.linalg.pinv")
    if not self.numel():
        return self.new_empty((*self.shape[:-2], self.shape[-1], self.shape[-2]))  # type: ignore[no-any-return]
    if hermitian:
        values, vectors = linalg_eigh(self)
        magnitude = values.abs()
        inverse = _cut_reciprocal(values, magnitude, magnitude.amax(-1, True), absolute, relative)
        return matmul(vectors * inverse.to(self.dtype).unsqueeze(-2), vectors.mH)  # type: ignore[no-any-return]
    u, s, v = svd(self)
    inverse = _cut_reciprocal(s, s, s.narrow(-1, 0, 1), absolute, relative)
    return matmul(v * inverse.to(self.dtype).unsqueeze(-2), u.mH)  # type: ignore[no-any-return]


def _cut_reciprocal(values: Tensor, magnitude: Tensor, largest: Tensor, absolute: Tensor, relative: Tensor) -> Tensor:
    """1 / value, and zero for those below the tolerance."""
    tolerance = absolute.unsqueeze(-1).max(relative.unsqueeze(-1) * largest)
    return values.reciprocal().where(magnitude > tolerance, _scalar(0.0, values.dtype))  # type: ignore[no-any-return]


def _pinv_grad(grad: Tensor, self: Tensor, result: Tensor) -> Tensor:
    m, n = self.shape[-2:]
    pinv, pinv_h, grad_h = result, result.mH, grad.mH
    if m <= n:
        k = matmul(grad_h, pinv)
        k_pinv_h = matmul(k, pinv_h)
        return (  # type: ignore[no-any-return]
            -matmul(pinv, k).mH
            + k_pinv_h
            - matmul(matmul(self, pinv), k_pinv_h)
            + matmul(matmul(pinv_h, pinv), grad_h - matmul(k, self))
        )
    k = matmul(pinv, grad_h)
    pinv_h_k = matmul(pinv_h, k)
    return (  # type: ignore[no-any-return]
        -matmul(k, pinv).mH
        + matmul(matmul(grad_h - matmul(self, k), pinv), pinv_h)
        + pinv_h_k
        - matmul(matmul(pinv_h_k, pinv), self)
    )


linalg_pinv = op(
    "linalg_pinv.atol_rtol_tensor(Tensor self, *, Tensor? atol=None, Tensor? rtol=None, bool hermitian=False) -> Tensor",
    composite=_pinv,
    grad={"self": _pinv_grad},
    variants="function",
)


op(
    "linalg_pinv.atol_rtol_float(Tensor self, *, float? atol=None, float? rtol=None, bool hermitian=False) -> Tensor",
    composite=lambda self, atol, rtol, hermitian: _pinv_from_numbers(self, atol, rtol, hermitian),
    variants="function",
)
op(
    "linalg_pinv(Tensor self, float rcond, bool hermitian=False) -> Tensor",
    composite=lambda self, rcond, hermitian: _pinv_from_numbers(self, 0.0, rcond, hermitian),
    variants="function",
)
op(
    "linalg_pinv.rcond_tensor(Tensor self, Tensor rcond, bool hermitian=False) -> Tensor",
    composite=lambda self, rcond, hermitian: linalg_pinv(
        self, atol=_scalar(0.0, self.dtype.to_real()), rtol=rcond, hermitian=hermitian
    ),
    variants="function",
)


def _pinv_from_numbers(self: Tensor, atol: Any, rtol: Any, hermitian: bool) -> Tensor:
    _check_pinv(self)
    absolute, relative = _tolerances(self, atol, rtol, "torch.linalg.pinv")
    return linalg_pinv(self, atol=absolute, rtol=relative, hermitian=hermitian)  # type: ignore[no-any-return]


pinverse = op(
    "pinverse(Tensor self, float rcond=1e-15) -> Tensor",
    composite=lambda self, rcond: _pinv_from_numbers(self, 0.0, rcond, False),
)


def _matrix_rank(input: Tensor, atol: Any, rtol: Any, hermitian: bool) -> Tensor:
    check_matrix(input, "torch.linalg.matrix_rank", "input")
    absolute, relative = _tolerances(input, atol, rtol, "torch.linalg.matrix_rank")
    if not input.numel():
        return wrap(np.zeros(input.shape[:-2], np.int64))
    values = linalg_eigvalsh(input).abs() if hermitian else linalg_svdvals(input)
    largest = values.amax(-1, True) if hermitian else values.narrow(-1, 0, 1)
    tolerance = absolute.unsqueeze(-1).max(relative.unsqueeze(-1) * largest)
    return (values > tolerance).sum(-1)  # type: ignore[no-any-return]


linalg_matrix_rank = op(
    "linalg_matrix_rank.atol_rtol_tensor(Tensor input, *, Tensor? atol=None, Tensor? rtol=None, bool hermitian=False) -> Tensor",
    composite=_matrix_rank,
    variants="function",
)
op(
    "linalg_matrix_rank.atol_rtol_float(Tensor self, *, float? atol=None, float? rtol=None, bool hermitian=False) -> Tensor",
    composite=lambda self, atol, rtol, hermitian: _matrix_rank(self, atol, rtol, hermitian),
    variants="function",
)
op(
    "linalg_matrix_rank(Tensor self, float tol, bool hermitian=False) -> Tensor",
    composite=lambda self, tol, hermitian: _matrix_rank(self, tol, 0.0, hermitian),
    variants="function",
)
op(
    "linalg_matrix_rank.tol_tensor(Tensor input, Tensor tol, bool hermitian=False) -> Tensor",
    composite=lambda input, tol, hermitian: _matrix_rank(input, tol, 0.0, hermitian),
    variants="function",
)


# --- norms and condition ----------------------------------------------------------------------------------------------


def _vector_norm(x: Tensor, order: Any, dim: Any, keepdim: bool, dtype: Any = None) -> Tensor:
    return aten.linalg_vector_norm(x, order, dim, keepdim, dtype=dtype)  # type: ignore[no-any-return]


def _norm_dims(x: Tensor, dim: Any, dtype: Any) -> tuple[int, int]:
    check_matrix(x, "linalg.matrix_norm")
    check_floating(x._array, "linalg.matrix_norm")
    if len(dim) != 2:
        raise RuntimeError(f"linalg.matrix_norm: dim must be a 2-tuple. Got {', '.join(map(str, dim))}")
    first, second = (_checks.wrap_dim(d, x.ndim) for d in dim)
    if first == second:
        raise RuntimeError(f"linalg.matrix_norm: dims must be different. Got ({dim[0]}, {dim[1]})")
    return first, second


def _converted(x: Tensor, dtype: Any) -> Tensor:
    return x if dtype is None or dtype is x.dtype else x.to(dtype)


def _singular_values(x: Tensor, first: int, second: int) -> Tensor:
    order = [d for d in range(x.ndim) if d not in (first, second)] + [first, second]
    return linalg_svdvals(x.permute(order))  # type: ignore[no-any-return]


def _kept(x: Tensor, keepdim: bool, first: int, second: int) -> Tensor:
    """Put back the dimensions of the matrices, with extent one."""
    if keepdim:
        for d in sorted((first, second)):
            x = x.unsqueeze(d)
    return x


def _matrix_norm_number(self: Tensor, ord: Any, dim: Any, keepdim: bool, dtype: Any) -> Tensor:
    first, second = _norm_dims(self, dim, dtype)
    magnitude = abs(ord)
    if magnitude not in (1, 2, float("inf")):
        raise RuntimeError(f"linalg.matrix_norm: Order {ord} not supported.")
    x = _converted(self, dtype)
    if magnitude == 2:
        check_floating(x._array, "linalg.matrix_norm", low_precision=False)
        values = _singular_values(x, first, second)
        return _kept(_largest(values, -1, False) if ord > 0 else values.amin(-1), keepdim, first, second)
    if magnitude == float("inf"):
        first, second = second, first
    sums = _vector_norm(x, 1, [first], keepdim)
    if not keepdim and first < second:
        second -= 1
    return _largest(sums, second, keepdim) if ord > 0 else sums.amin(second, keepdim)  # type: ignore[no-any-return]


def _largest(x: Tensor, dim: int, keepdim: bool) -> Tensor:
    """The maximum; zero of nothing, which is the norm of an empty matrix."""
    return x.amax(dim, keepdim) if x.shape[dim] else x.sum(dim, keepdim)  # type: ignore[no-any-return]


def _matrix_norm_name(self: Tensor, ord: str, dim: Any, keepdim: bool, dtype: Any) -> Tensor:
    first, second = _norm_dims(self, dim, dtype)
    if ord not in ("fro", "nuc"):
        raise RuntimeError(f"linalg.matrix_norm: Order {ord} not supported.")
    if ord == "fro":
        return _vector_norm(self, 2, [first, second], keepdim, dtype)
    x = _converted(self, dtype)
    check_floating(x._array, "linalg.matrix_norm", low_precision=False)
    values = _singular_values(x, first, second)
    return _kept(values.sum(-1), keepdim, first, second)


_matrix_norm_by_number = op(
    "linalg_matrix_norm(Tensor self, Scalar ord, int[] dim=[-2,-1], bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
    composite=_matrix_norm_number,
    variants="function",
)
_matrix_norm_by_name = op(
    "linalg_matrix_norm.str_ord(Tensor self, str ord='fro', int[] dim=[-2,-1], bool keepdim=False, *, ScalarType? dtype=None)"
    " -> Tensor",
    composite=_matrix_norm_name,
    variants="function",
)


def matrix_norm(x: Tensor, order: Any, dim: Any = (-2, -1), keepdim: bool = False, dtype: Any = None) -> Tensor:
    by = _matrix_norm_by_name if isinstance(order, str) else _matrix_norm_by_number
    return by(x, order, dim, keepdim, dtype=dtype)  # type: ignore[no-any-return]


def _linalg_norm(self: Tensor, ord: Any, dim: Any, keepdim: bool, dtype: Any) -> Tensor:
    if dim is not None and not isinstance(dim, int) and len(dim) not in (1, 2):
        raise RuntimeError(f"linalg.norm: If dim is specified, it must be of length 1 or 2. Got {list(dim)}")
    dims = None if dim is None else (dim,) if isinstance(dim, int) else tuple(dim)
    if ord is None:
        return _vector_norm(self, 2, dims, keepdim, dtype)
    if dims is None and self.ndim not in (1, 2):
        raise RuntimeError(f"linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got {self.ndim}D.")
    if (len(dims) if dims is not None else self.ndim) == 2:
        return matrix_norm(self, ord, (0, 1) if dims is None else dims, keepdim, dtype)
    return _vector_norm(self, ord, (0,) if dims is None else dims, keepdim, dtype)


def _linalg_norm_name(self: Tensor, ord: str, dim: Any, keepdim: bool, dtype: Any) -> Tensor:
    dims = (0, 1) if dim is None else (dim,) if isinstance(dim, int) else tuple(dim)
    if dim is not None and len(dims) not in (1, 2):
        raise RuntimeError(f"linalg.norm: If dim is specified, it must be of length 1 or 2. Got {list(dims)}")
    if dim is None and self.ndim not in (1, 2):
        raise RuntimeError(f"linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got {self.ndim}D.")
    return matrix_norm(self, ord, dims, keepdim, dtype)


linalg_norm = op(
    "linalg_norm(Tensor self, Scalar? ord=None, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
    composite=_linalg_norm,
    variants="function",
)
op(
    "linalg_norm.ord_str(Tensor self, str ord, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
    composite=_linalg_norm_name,
    variants="function",
)
nuclear_norm = op(
    "nuclear_norm(Tensor self, bool keepdim=False) -> Tensor",
    composite=lambda self, keepdim: matrix_norm(self, "nuc", (-2, -1), keepdim),
    variants="function",
)
op(
    "nuclear_norm.dim(Tensor self, int[2] dim, bool keepdim=False) -> Tensor",
    composite=lambda self, dim, keepdim: matrix_norm(self, "nuc", dim, keepdim),
    variants="function",
)


def _cond(self: Tensor, p: Any) -> Tensor:
    if self.ndim < 2:
        raise RuntimeError("linalg.cond: The input tensor must have at least 2 dimensions.")
    if p is not None and not isinstance(p, str) and abs(p) not in (1, 2, float("inf")):
        raise RuntimeError(f"linalg.cond got an invalid norm type: {p}")
    if p is None or p in (2, -2):
        values = linalg_svdvals(self)
        if not values.numel():
            return values.new_zeros(values.shape[:-1])  # type: ignore[no-any-return]
        largest, smallest = values.narrow(-1, 0, 1), values.narrow(-1, -1, 1)
        return (smallest / largest if p == -2 else largest / smallest).squeeze(-1)  # type: ignore[no-any-return]
    check_square(self, f"linalg.cond(ord={_order_text(p)})")
    return _cond_by_inverse(self, p)


def _order_text(p: Any) -> str:
    return p if isinstance(p, str) else f"{p:g}"


def _cond_by_inverse(self: Tensor, p: Any) -> Tensor:
    inverted, info = linalg_inv_ex(self)
    singular = info.unsqueeze(-1).unsqueeze(-1) > 0
    inverted = inverted.masked_fill(singular, float("inf"))
    result = matrix_norm(self, p) * matrix_norm(inverted, p)
    # torch: a matrix of zeros gives 0 · inf, which is called infinite
    return result.nan_to_num(float("inf"), float("inf"), float("-inf"))  # type: ignore[no-any-return]


def _cond_name(self: Tensor, p: str) -> Tensor:
    if self.ndim < 2:
        raise RuntimeError("linalg.cond: The input tensor must have at least 2 dimensions.")
    if p not in ("fro", "nuc"):
        raise RuntimeError(f"linalg.cond got an invalid norm type: {p}")
    check_square(self, f"linalg.cond(ord={p})")
    if p == "nuc":
        values = linalg_svdvals(self)
        return values.sum(-1) * values.reciprocal().sum(-1)  # type: ignore[no-any-return]
    return _cond_by_inverse(self, p)


linalg_cond = op("linalg_cond(Tensor self, Scalar? p=None) -> Tensor", composite=_cond, variants="function")
op("linalg_cond.p_str(Tensor self, str p) -> Tensor", composite=_cond_name, variants="function")


# --- powers and exponential -------------------------------------------------------------------------------------------


def _matrix_power(self: Tensor, n: int) -> Tensor:
    check_square(self, "linalg.matrix_power")
    if n == 0:
        # torch: the identity hangs on the input, with a gradient of zero
        eye = wrap(np.eye(self.shape[-1], dtype=self.dtype.np))
        return self.clone().copy_(eye.expand(self.shape))  # type: ignore[no-any-return]
    if n < 0:
        return _positive_power(linalg_inv(self), -n)
    return self.clone() if n == 1 else _positive_power(self, n)  # type: ignore[no-any-return]


def _positive_power(x: Tensor, n: int) -> Tensor:
    if n == 1:
        return x
    if n == 2:
        return matmul(x, x)  # type: ignore[no-any-return]
    if n == 3:
        return matmul(matmul(x, x), x)  # type: ignore[no-any-return]
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
    from .joining import cat

    n = self.shape[-1]
    a = self.mH
    top = cat([a, grad], -1)
    bottom = cat([a.new_zeros(a.shape), a], -1)
    whole = linalg_matrix_exp(cat([top, bottom], -2))
    return whole.narrow(-2, 0, n).narrow(-1, n, n)  # type: ignore[no-any-return]


linalg_matrix_exp = op(
    "linalg_matrix_exp(Tensor self) -> Tensor",
    cpu=_matrix_exp_kernel,
    grad={"self": _matrix_exp_grad},
    variants="function",
)
matrix_exp = op("matrix_exp(Tensor self) -> Tensor", composite=lambda self: linalg_matrix_exp(self))


# --- tensors as linear maps -------------------------------------------------------------------------------------------


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
    return inverted.reshape((*shape[ind:], *shape[:ind]))  # type: ignore[no-any-return]


linalg_tensorinv = op("linalg_tensorinv(Tensor self, int ind=2) -> Tensor", composite=_tensorinv, variants="function")


def _tensorsolve(self: Tensor, other: Tensor, dims: Any) -> Tensor:
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
    return linalg_solve(moved.reshape((rows, rows)), other.flatten()).reshape(unknowns)  # type: ignore[no-any-return]


linalg_tensorsolve = op(
    "linalg_tensorsolve(Tensor self, Tensor other, int[]? dims=None) -> Tensor", composite=_tensorsolve, variants="function"
)
linalg_diagonal = op(
    "linalg_diagonal(Tensor(a) A, *, int offset=0, int dim1=-2, int dim2=-1) -> Tensor(a)",
    composite=lambda A, offset, dim1, dim2: A.diagonal(offset, dim1, dim2),
    variants="function",
)


def _linalg_vander(x: Tensor, N: int | None) -> Tensor:
    from .joining import cat

    x = x if x.ndim else x.unsqueeze(-1)
    n = x.shape[-1] if N is None else N
    if n <= 1:
        raise RuntimeError("N must be greater than 1.")
    powers = x.unsqueeze(-1).expand((*x.shape, n - 1)).cumprod(-1)
    ones = powers.new_ones((*powers.shape[:-1], 1))
    return cat([ones, powers], -1)  # type: ignore[no-any-return]


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
    return result if increasing else result.flip((1,))  # type: ignore[no-any-return]


vander = op("vander(Tensor x, int? N=None, bool increasing=False) -> Tensor", composite=_vander, variants="function")


# --- least squares ----------------------------------------------------------------------------------------------------


def _lstsq(self: Tensor, b: Tensor, rcond: float | None, driver: str | None) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    name = "torch.linalg.lstsq"
    for label, x, least in (("input", self, 2), ("other", b, 1)):
        if x.ndim < least:
            raise RuntimeError(f"{name}: {label} must have at least {least} dimension{'s' if least > 1 else ''}.")
    if self.dtype is not b.dtype:
        raise RuntimeError(
            f"{name}: Expected input and other to have the same dtype, but got input's dtype {scalar_name(self._array)} and other's "
            f"dtype {scalar_name(b._array)}"
        )
    gap = self.ndim - b.ndim
    if not 0 <= gap <= 1:
        raise RuntimeError(f"{name}: input.dim() must be greater or equal to other.dim() and (input.dim() - other.dim()) <= 1")
    vector = gap == 1
    if self.shape[-2] != b.shape[-1 if vector else -2]:
        raise RuntimeError(f"{name}: input.size(-2) should match other.size({-1 if vector else -2})")
    chosen = "gelsy" if driver is None else driver
    if chosen not in ("gels", "gelsy", "gelsd", "gelss"):
        raise RuntimeError(f"{name}: parameter `driver` should be one of (gels, gelsy, gelsd, gelss)")
    real = self.dtype.to_real()
    if real not in (_dtype.float32, _dtype.float64):
        raise RuntimeError("This function doesn't handle types other than float and double")
    cutoff = float(np.finfo(real.np).eps) * max(self.shape[-2:]) if rcond is None else rcond
    right = b._array[..., None] if vector else b._array
    batch = _checks.broadcast_shapes(self.shape[:-2], right.shape[:-2])
    a = np.broadcast_to(self._array, batch + self._array.shape[-2:])
    right = np.broadcast_to(right, batch + right.shape[-2:])
    solution, residuals, rank, values = kernels.lstsq(a, right, cutoff, chosen)
    return wrap(solution[..., 0] if vector else solution), wrap(residuals), wrap(rank), wrap(values)


def _lstsq_grad(grads: Any, self: Tensor, b: Tensor, solution: Tensor, needs: Any) -> tuple[Any, Any]:
    """Through the pseudo-inverse: X = A⁺ B; residuals are |A X - B|²."""
    grad_x, grad_r = grads[:2]
    if grad_r is not None and not grad_r.numel():
        grad_r = None
    if grad_x is None and grad_r is None:
        return None, None
    vector = self.ndim - b.ndim == 1
    rhs = b.unsqueeze(-1) if vector else b
    x = solution.unsqueeze(-1) if vector else solution
    grad_a = grad_b = None
    if grad_x is not None:
        g = grad_x.unsqueeze(-1) if vector else grad_x
        pinv = linalg_pinv(self)
        grad_a = _pinv_grad(matmul(g, rhs.mH), self, pinv) if needs[0] else None
        grad_b = matmul(pinv.mH, g) if needs[1] else None
    if grad_r is not None:
        # X minimises the residuals, so that they change with A and B alone
        error = (matmul(self, x) - rhs) * (2 * grad_r.unsqueeze(-2))
        if needs[0]:
            through = matmul(error, x.mH)
            grad_a = through if grad_a is None else grad_a + through
        if needs[1]:
            grad_b = -error if grad_b is None else grad_b - error
    return grad_a, grad_b.squeeze(-1) if vector and grad_b is not None else grad_b


linalg_lstsq = op(
    "linalg_lstsq(Tensor self, Tensor b, float? rcond=None, *, str? driver=None)"
    " -> (Tensor solution, Tensor residuals, Tensor rank, Tensor singular_values)",
    composite=_lstsq,
    grad={("self", "b"): _lstsq_grad},
    nondifferentiable=("rank", "singular_values"),
    variants="function",
)
