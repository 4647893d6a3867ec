"""Spectral and orthogonal factorisations: eigenvalues, singular values, QR."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._backends.cpu.linalg import factorizations as kernels
from ..._backends.cpu.machinery.dtypes import scalar_name
from ..._dispatch import keys
from ..._dispatch.tls import state
from ..._tensor import Tensor
from ..machinery.declare import op
from ..machinery.lookup import aten
from ..shapes.joining import cat
from .checks import check_floating, check_matrix, check_square
from .matmul import conj, matmul
from .solve import linalg_solve
from .triangular_systems import linalg_solve_triangular

if TYPE_CHECKING:
    from ..._dtype import dtype

Array = np.ndarray[Any, Any]


def may_require_grad(x: Tensor) -> bool:
    """Whether a derivative of this tensor may be asked for, so that vectors that only it needs are computed."""
    return bool(x._keys & keys.TRACKED) and (state.grad_enabled or bool(x._keys & (keys.DUAL | keys.BATCHED)))


def _converted(x: Tensor, like: Tensor) -> Tensor:
    """Real values in the dtype of complex vectors; without an operator for real ones."""
    return x if x.dtype is like.dtype else x.to(like.dtype)


def _differences(values: Tensor) -> Tensor:
    """values[j] - values[i] in row i, column j; ones on the diagonal, where it will divide."""
    gaps = values.unsqueeze(-2) - values.unsqueeze(-1)
    gaps.diagonal(0, -2, -1).fill_(1)
    return gaps


# --- eigenvalues ------------------------------------------------------------------------------------------------------


def _eigh_kernel(A: Array, UPLO: str, compute_v: bool) -> tuple[Array, Array]:
    check_square(A, "linalg.eigh")
    if UPLO.upper() not in ("L", "U"):
        raise RuntimeError(f"Expected UPLO argument to be 'L' or 'U', but got {UPLO}")
    if not A.size:
        return np.empty(A.shape[:-1], A.real.dtype), np.empty(A.shape if compute_v else (0,), A.dtype)
    return kernels.eigh(A, UPLO.upper(), compute_v)


def _eigh_grad(grads: Sequence[Any], eigenvalues: Tensor, eigenvectors: Tensor) -> Tensor | None:
    grad_l, grad_v = grads
    v = eigenvectors
    if grad_l is None and grad_v is None:
        return None
    if grad_v is None:
        v_h = v.mH
        return matmul(v * _converted(grad_l.unsqueeze(-2), v), v_h)
    inner = matmul(v.mH, grad_v)
    _check_phase(inner, "linalg_eigh_backward", "eigenvectors")
    inner = (inner - inner.mH).mul(0.5).div_(_converted(_differences(eigenvalues), v))
    if grad_l is not None:
        inner.diagonal(0, -2, -1).copy_(grad_l)
    v_h = v.mH
    return matmul(v, matmul(inner, v_h))


def _check_phase(inner: Tensor, function: str, what: str) -> Tensor:
    """The diagonal of the products; losses that depend on the arbitrary phase of complex vectors are refused."""
    diagonal = inner.diagonal(0, -2, -1)
    if not inner.dtype.is_complex:
        return diagonal
    imaginary = diagonal.imag
    if not imaginary._keys & keys.BATCHED and not aten.allclose(imaginary, aten.zeros_like(imaginary), rtol=1e-2, atol=1e-2):
        raise RuntimeError(
            f"{function}: The {what} in the complex case are specified up to multiplication by e^{{i phi}}. "
            "The specified loss function depends on this quantity, so it is ill-defined."
        )
    return diagonal


_linalg_eigh = op(
    '_linalg_eigh(Tensor A, str UPLO="L", bool compute_v=True) -> (Tensor eigenvalues, Tensor eigenvectors)',
    cpu=_eigh_kernel,
    grad={"A": _eigh_grad},
    variants="function",
)
linalg_eigh = op(
    'linalg_eigh(Tensor self, str UPLO="L") -> (Tensor eigenvalues, Tensor eigenvectors)',
    composite=lambda self, UPLO: tuple(_linalg_eigh(self, UPLO, True)),
    variants="function",
)
linalg_eigvalsh = op(
    'linalg_eigvalsh(Tensor self, str UPLO="L") -> Tensor',
    composite=lambda self, UPLO: _linalg_eigh(self, UPLO, may_require_grad(self))[0],
    variants="function",
)


def _check_eig(a: Array, function: str) -> None:
    check_square(a, function)
    if a.dtype.kind not in "fcV":
        raise RuntimeError(f"Unknown Complex ScalarType for {scalar_name(a)}")
    kernels.require_lapack(a, "linalg_eig_out_cpu")
    if not np.isfinite(a).all():
        raise RuntimeError(f"torch.{function}: input tensor should not contain infs or NaNs.")


def _eig_kernel(self: Array) -> tuple[Array, Array]:
    _check_eig(self, "linalg.eig")
    return kernels.eig(self)


def _eigvals_kernel(self: Array) -> Array:
    _check_eig(self, "linalg.eigvals")
    return kernels.eigvals(self)


def _eig_grad(grads: Sequence[Any], self_dtype: dtype, eigenvalues: Tensor, eigenvectors: Tensor) -> Tensor | None:
    grad_l, grad_v = grads
    v = eigenvectors
    if grad_l is None and grad_v is None:
        return None
    if grad_v is None:
        scaled = grad_l.unsqueeze(-1) * v.mH
        grad_a = linalg_solve(v.mH, scaled)
    else:
        inner = matmul(v.mH, grad_v)
        diagonal = _check_phase(inner, "linalg_eig_backward", "eigenvectors")
        norm = matmul(v.mH, v * diagonal.real.unsqueeze(-2).to(v.dtype))
        inner = (inner - norm).div_(_differences(conj(eigenvalues)))
        inner.diagonal(0, -2, -1).copy_(aten.zeros_like(eigenvalues) if grad_l is None else grad_l)
        grad_a = linalg_solve(v.mH, matmul(inner, v.mH))
    return grad_a if self_dtype.is_complex else grad_a.real


linalg_eig = op(
    "linalg_eig(Tensor self) -> (Tensor eigenvalues, Tensor eigenvectors)",
    cpu=_eig_kernel,
    grad={"self": _eig_grad},
    variants="function",
)
_linalg_eigvals = op("_linalg_eigvals(Tensor self) -> Tensor", cpu=_eigvals_kernel, variants="function")
linalg_eigvals = op(
    "linalg_eigvals(Tensor self) -> Tensor",
    composite=lambda self: linalg_eig(self)[0] if may_require_grad(self) else _linalg_eigvals(self),
    variants="function",
)


# --- singular values --------------------------------------------------------------------------------------------------


def _svd_kernel(A: Array, full_matrices: bool, compute_uv: bool, driver: str | None) -> tuple[Array, Array, Array]:
    check_matrix(A, "linalg.svd")
    check_floating(A, "linalg.svd")
    if driver is not None:
        raise RuntimeError("torch.linalg.svd: keyword argument `driver=` is only supported on CUDA inputs with cuSOLVER backend.")
    return kernels.svd(A, full_matrices, compute_uv)


def _svd_grad(grads: Sequence[Any], U: Tensor, S: Tensor, Vh: Tensor, full_matrices: bool, compute_uv: bool) -> Tensor | None:
    grad_u, grad_s, grad_vh = grads
    if grad_u is None and grad_s is None and grad_vh is None:
        return None
    if not compute_uv:
        raise RuntimeError(
            "svd_backward: Setting compute_uv to false in torch.svd doesn't compute singular matrices, and hence we cannot compute backward. Please use torch.svd(compute_uv=True)"
        )
    k = S.shape[-1]
    m, n = U.shape[-2], Vh.shape[-1]
    u, vh = (U.narrow(-1, 0, k), Vh.narrow(-2, 0, k)) if full_matrices else (U, Vh)
    if grad_u is None and grad_vh is None:
        s = _converted(grad_s, u)
        return matmul(u, s.unsqueeze(-1) * vh) if m >= n else matmul(u * s.unsqueeze(-2), vh)
    gu = grad_u if grad_u is None or not full_matrices else grad_u.narrow(-1, 0, k)
    gvh = grad_vh if grad_vh is None or not full_matrices else grad_vh.narrow(-2, 0, k)
    inner = _svd_inner(gu, grad_s, gvh, u, S, vh)
    s = _converted(S, u)
    if m > k and gu is not None:
        scaled = gu / s.unsqueeze(-2)
        return matmul(matmul(u, inner) + scaled - matmul(u, matmul(u.mH, scaled)), vh)
    if n > k and gvh is not None:
        scaled = gvh / s.unsqueeze(-1)
        return matmul(u, matmul(inner, vh) + scaled - matmul(matmul(scaled, vh.mH), vh))
    return matmul(u, matmul(inner, vh)) if m >= n else matmul(matmul(u, inner), vh)


def _skew(x: Tensor) -> Tensor:
    return x - x.mH


def _svd_inner(gu: Tensor | None, gs: Tensor | None, gvh: Tensor | None, u: Tensor, values: Tensor, vh: Tensor) -> Tensor:
    """The gradient in the basis of the singular vectors."""
    s = _converted(values, u)
    uhgu = None if gu is None else _skew(matmul(u.mH, gu))
    vhgv = None if gvh is None else _skew(matmul(vh, gvh.mH))
    if u.dtype.is_complex:
        total = uhgu if vhgv is None else vhgv if uhgu is None else uhgu + vhgv
        assert total is not None
        _check_phase(total, "svd_backward", "singular vectors")
    squares = values * values
    gaps = _converted(_differences(squares), u)
    if uhgu is not None and vhgv is not None:
        inner = (uhgu * s.unsqueeze(-2) + s.unsqueeze(-1) * vhgv) / gaps
    elif uhgu is not None:
        columns = s.unsqueeze(-2)
        inner = uhgu / gaps * columns
    else:
        assert vhgv is not None
        inner = s.unsqueeze(-1) * (vhgv / gaps)
    if gs is not None:
        inner = inner + _converted(gs, u).diag_embed()
    if u.dtype.is_complex and uhgu is not None and vhgv is not None:
        inner = inner + (uhgu.diagonal(0, -2, -1) / (2 * s)).diag_embed()
    return inner


_linalg_svd = op(
    "_linalg_svd(Tensor A, bool full_matrices=False, bool compute_uv=True, *, str? driver=None) -> (Tensor U, Tensor S, Tensor Vh)",
    cpu=_svd_kernel,
    grad={"A": _svd_grad},
    variants="function",
)
linalg_svd = op(
    "linalg_svd(Tensor A, bool full_matrices=True, *, str? driver=None) -> (Tensor U, Tensor S, Tensor Vh)",
    composite=lambda A, full_matrices, driver: tuple(_linalg_svd(A, full_matrices, True, driver=driver)),
    variants="function",
)
linalg_svdvals = op(
    "linalg_svdvals(Tensor A, *, str? driver=None) -> Tensor",
    composite=lambda A, driver: _linalg_svd(A, False, may_require_grad(A), driver=driver)[1],
    variants="function",
)


def _svd(self: Tensor, some: bool, compute_uv: bool) -> tuple[Tensor, Tensor, Tensor]:
    if self.ndim < 2:
        raise RuntimeError(f"linalg.svd: input should have at least 2 dimensions, but has {self.ndim} dimensions instead")
    if compute_uv:
        u, s, vh = linalg_svd(self, not some)
        return u, s, vh.mH
    s = linalg_svdvals(self)
    m, n = self.shape[-2:]
    batch = self.shape[:-2]
    return self.new_zeros((*batch, m, m)), s, self.new_zeros((*batch, n, n))


svd = op("svd(Tensor self, bool some=True, bool compute_uv=True) -> (Tensor U, Tensor S, Tensor V)", composite=_svd)


# --- QR ---------------------------------------------------------------------------------------------------------------


def _qr_kernel(A: Array, mode: str) -> tuple[Array, Array]:
    check_matrix(A, "linalg.qr")
    check_floating(A, "linalg.qr")
    if mode not in ("reduced", "complete", "r"):
        raise RuntimeError(f"qr received unrecognized mode '{mode}' but expected one of 'reduced' (default), 'r', or 'complete'")
    return kernels.qr(A, mode)


def _qr_grad(grads: Sequence[Tensor | None], Q: Tensor, R: Tensor, mode: str) -> Tensor | None:
    grad_q, grad_r = grads
    if grad_q is None and grad_r is None:
        return None
    if mode == "r":
        raise RuntimeError(
            "The derivative of linalg.qr depends on Q, which is not computed when mode='r'. Please use linalg.qr(A, mode='reduced') "
            "if you are going to require gradients"
        )
    m, n = Q.shape[-2], R.shape[-1]
    if mode == "complete" and m > n:
        raise RuntimeError("The QR decomposition is not differentiable when mode='complete' and nrows > ncols")
    inner = None if grad_r is None else matmul(grad_r, R.mH)
    if grad_q is not None:
        qhg = matmul(Q.mH, grad_q)
        inner = -qhg if inner is None else inner - qhg
    assert inner is not None
    return _tall_qr_grad(inner, grad_q, Q, R) if m >= n else _wide_qr_grad(inner, grad_r, Q, R)


def _tall_qr_grad(inner: Tensor, grad_q: Tensor | None, q: Tensor, r: Tensor) -> Tensor:
    out = matmul(q, _hermitian_from_upper(inner.triu()))
    if grad_q is not None:
        out = out + grad_q
    return linalg_solve_triangular(r.mH, out, upper=False, left=False)


def _hermitian_from_upper(x: Tensor) -> Tensor:
    """The matrix and its adjoint added up, with the diagonal's real part counted once."""
    both = x + x.mH
    diagonal = both.diagonal(0, -2, -1)
    if both.dtype.is_complex:
        return both - (0.5 * diagonal.real).to(both.dtype).diag_embed()
    aten.real(diagonal).mul_(0.5)
    return both


def _wide_qr_grad(inner: Tensor, grad_r: Tensor | None, q: Tensor, r: Tensor) -> Tensor:
    """A = [X Y] with X square: a change of X turns Q, by what lies below the diagonal, and changes R; one of Y changes R alone."""
    m, n = q._array.shape[-2], r._array.shape[-1]
    turned = -inner
    turned = (turned - turned.mH).tril()
    if turned.dtype.is_complex:
        turned = turned - (0.5 * turned.diagonal(0, -2, -1)).diag_embed()
    left = linalg_solve_triangular(r.narrow(-1, 0, m).mH, matmul(q, turned), upper=False, left=False)
    out = cat([left, left.new_zeros((*left._array.shape[:-1], n - m))], -1)
    return out if grad_r is None else out + matmul(q, grad_r)


linalg_qr = op(
    'linalg_qr(Tensor A, str mode="reduced") -> (Tensor Q, Tensor R)',
    cpu=_qr_kernel,
    grad={"A": _qr_grad},
    variants="function",
)
qr = op(
    "qr(Tensor self, bool some=True) -> (Tensor Q, Tensor R)",
    composite=lambda self, some: tuple(linalg_qr(self, "reduced" if some else "complete")),
)
