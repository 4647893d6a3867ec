"""The pseudo-inverse, the rank, and least squares."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ... import _checks, _dtype
from ..._backends.cpu.linalg import factorizations as kernels
from ..._backends.cpu.machinery.dtypes import scalar_name
from ..._tensor import Tensor, wrap
from ..machinery.declare import op
from ..machinery.lookup import aten
from .checks import check_matrix
from .decomposition import linalg_eigh, linalg_eigvalsh, linalg_svdvals, svd
from .matmul import matmul

Array = np.ndarray[Any, Any]


def _scalar(value: float | None, like: Tensor) -> Tensor:
    """A number, or zero for None, as a real tensor where `like` is, in its precision."""
    dtype, device = like.dtype.to_real(), like.device
    if value is None:
        return aten.zeros((), dtype=dtype, device=device)
    return aten.full((), value, dtype=dtype, device=device)


def _tolerances(x: Tensor, atol: Tensor | float | None, rtol: Tensor | float | None, function: str) -> tuple[Tensor, Tensor]:
    """Absolute and relative tolerance as tensors; the relative one is eps · max(m, n) unless either is given."""
    dtype = x.dtype.to_real()
    if dtype not in (_dtype.float32, _dtype.float64):
        if rtol is not None and not isinstance(rtol, Tensor) and not x._array.size:
            return (aten.zeros((), dtype=_dtype.float64, device=x.device),) * 2  # torch: nothing to compare with them
        raise RuntimeError("This function doesn't handle types other than float and double")
    default = float(np.finfo(dtype.np).eps) * max(x.shape[-2:])
    for name, given in (("atol", atol), ("rtol", rtol)):
        if isinstance(given, Tensor) and given.dtype.is_complex:
            raise RuntimeError(f"{function}: {name} tensor of complex type is not supported.")
    absolute = (
        atol
        if isinstance(atol, Tensor)
        else _scalar(0.0 if atol is None and rtol is not None and not isinstance(rtol, Tensor) else atol, x)
    )
    if rtol is not None:
        return absolute, rtol if isinstance(rtol, Tensor) else _scalar(rtol, x)
    if isinstance(atol, Tensor):
        return absolute, _scalar(default, x).where(absolute <= 0, _scalar(None, x))
    return absolute, _scalar(0.0 if atol else default, x)


def _check_pinv(x: Tensor) -> None:
    if x.ndim < 2 or x._array.dtype.char not in "fdFD":
        raise RuntimeError(
            f"linalg.pinv({scalar_name(x._array)}{{{list(x.shape)}}}): expected a tensor with 2 or more dimensions of float, "
            "double, cfloat or cdouble types"
        )


def _pinv(self: Tensor, atol: Tensor | None, rtol: Tensor | None, hermitian: bool) -> Tensor:
    _check_pinv(self)
    absolute, relative = _tolerances(self, atol, rtol, "torch.linalg.pinv")
    if not self.numel():
        left, values, right = svd(self)
        left = left.mH
        return matmul(right * values.reciprocal().unsqueeze(-2), left)
    if hermitian:
        values, vectors = linalg_eigh(self)
        magnitude = values.abs()
        inverse = _cut_reciprocal(values, magnitude, magnitude.amax(-1, True), absolute, relative)
        left, right = vectors, vectors
    else:
        right, s, left = svd(self)
        inverse = _cut_reciprocal(s, s, s.narrow(-1, 0, 1), absolute, relative)
    scale, right = inverse.to(self.dtype), right.mH
    return matmul(left * scale.unsqueeze(-2), right)


def _cut_reciprocal(values: Tensor, magnitude: Tensor, largest: Tensor, absolute: Tensor, relative: Tensor) -> Tensor:
    """1 / value, and zero for those below the tolerance."""
    tolerance = _larger(absolute, relative, largest)
    zero = _scalar(None, values)
    inverse = values.reciprocal()
    return inverse.where(magnitude > tolerance, zero)


def _larger(absolute: Tensor, relative: Tensor, largest: Tensor) -> Tensor:
    """Below this, values count as zero."""
    scaled = relative.unsqueeze(-1) * largest
    return absolute.unsqueeze(-1).max(scaled)


def _pinv_grad(grad: Tensor, self: Tensor, result: Tensor) -> Tensor:
    m, n = self.shape[-2:]
    pinv, pinv_h, grad_h = result, result.mH, grad.mH
    if m <= n:
        k = matmul(grad_h, pinv)
        k_pinv_h = matmul(k, pinv_h)
        rest = grad_h - matmul(k, self)
        outer = matmul(matmul(pinv_h, pinv), rest)
        inner = matmul(matmul(self, pinv), k_pinv_h)
        return -matmul(pinv, k).mH + k_pinv_h - inner + outer
    k = matmul(pinv, grad_h)
    pinv_h_k = matmul(pinv_h, k)
    inner = matmul(matmul(pinv_h_k, pinv), self)
    outer = matmul(matmul(grad_h - matmul(self, k), pinv), pinv_h)
    return -matmul(k, pinv).mH + outer + pinv_h_k - inner


linalg_pinv = op(
    "linalg_pinv.atol_rtol_tensor(Tensor self, *, Tensor? atol=None, Tensor? rtol=None, bool hermitian=False) -> Tensor",
    composite=_pinv,
    grad={"self": _pinv_grad},
    variants="function",
    fixed=("atol", "rtol"),
)


op(
    "linalg_pinv.atol_rtol_float(Tensor self, *, float? atol=None, float? rtol=None, bool hermitian=False) -> Tensor",
    composite=lambda self, atol, rtol, hermitian: _pinv_from_numbers(self, atol, rtol, hermitian),
    variants="function",
)
_pinv_of_rcond = op(
    "linalg_pinv(Tensor self, float rcond, bool hermitian=False) -> Tensor",
    composite=lambda self, rcond, hermitian: _pinv_from_numbers(self, 0.0, rcond, hermitian),
    variants="function",
)
op(
    "linalg_pinv.rcond_tensor(Tensor self, Tensor rcond, bool hermitian=False) -> Tensor",
    composite=lambda self, rcond, hermitian: linalg_pinv(self, atol=_scalar(None, self), rtol=rcond, hermitian=hermitian),
    variants="function",
)


def _pinv_from_numbers(self: Tensor, atol: float | None, rtol: float | None, hermitian: bool) -> Tensor:
    _check_pinv(self)
    absolute, relative = _tolerances(self, atol, rtol, "torch.linalg.pinv")
    return linalg_pinv(self, atol=absolute, rtol=relative, hermitian=hermitian)


pinverse = op(
    "pinverse(Tensor self, float rcond=1e-15) -> Tensor",
    composite=lambda self, rcond: _pinv_of_rcond(self, rcond, False),
)


def _matrix_rank(input: Tensor, atol: Tensor | float | None, rtol: Tensor | float | None, hermitian: bool) -> Tensor:
    check_matrix(input, "torch.linalg.matrix_rank", "input")
    absolute, relative = _tolerances(input, atol, rtol, "torch.linalg.matrix_rank")
    if not input.numel():
        return aten.empty(input.shape[:-2], dtype=_dtype.int64, device=input.device).fill_(0)
    values = linalg_eigvalsh(input).abs() if hermitian else linalg_svdvals(input)
    largest = values.amax(-1, True) if hermitian else values.narrow(-1, 0, 1)
    tolerance = _larger(absolute, relative, largest)
    return (values > tolerance).sum(-1)


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


# --- least squares -----------------------------------------------------------------------------------------------------


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
    # torch: vectors are those whose batch is that of the matrices, and not one that is broadcast
    vector = b.ndim == 1 or (gap == 1 and b.shape == self.shape[:-1])
    if self.shape[-2] != b.shape[-1 if vector else -2]:
        raise RuntimeError(f"{name}: input.size(-2) should match other.size({-1 if vector else -2})")
    if gap and not vector:
        raise RuntimeError(f"{name}: other has as many dimensions as input, or is of the shape of vectors, {list(self.shape[:-1])}")
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


def _lstsq_grad(
    grads: Sequence[Tensor | None], self: Tensor, b: Tensor, solution: Tensor, needs: Sequence[bool]
) -> tuple[Any, Any]:
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
        error = matmul(self, x) - rhs
        slope = grad_r.unsqueeze(-2)
        if needs[0]:
            through = 2 * matmul(slope * error, x.mH)
            grad_a = through if grad_a is None else grad_a + through
        if needs[1]:
            directly = -2 * slope * error
            grad_b = directly if grad_b is None else grad_b + directly
    return grad_a, grad_b.squeeze(-1) if vector and grad_b is not None else grad_b


linalg_lstsq = op(
    "linalg_lstsq(Tensor self, Tensor b, float? rcond=None, *, str? driver=None)"
    " -> (Tensor solution, Tensor residuals, Tensor rank, Tensor singular_values)",
    composite=_lstsq,
    grad={("self", "b"): _lstsq_grad},
    nondifferentiable=("rank", "singular_values"),
    variants="function",
)
