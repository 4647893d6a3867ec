"""Functions that torch itself writes in Python: randomised low-rank factorisations, `torch.lu`, and names it has removed."""

from __future__ import annotations

from typing import Any, NoReturn

from ..._tensor import Tensor
from ..machinery.declare import public
from ..machinery.lookup import aten
from ..machinery.out import write_out
from .decomposition import linalg_qr, linalg_svd
from .lu import _lu_with_info
from .matmul import matmul


def _approximate_basis(a: Tensor, q: int, niter: int, m: Tensor | None) -> Tensor:
    """Orthonormal columns that span most of A's range, by power iterations on random vectors."""
    if not niter >= 0:
        raise ValueError(f"niter must be non-negative, got {niter}")
    start = aten.randn((a.shape[-1], q), dtype=a.dtype, device=a.device)

    def forward(x: Tensor) -> Tensor:
        y = matmul(a, x)
        return y if m is None else y - matmul(m, x)

    def backward(x: Tensor) -> Tensor:
        y = matmul(a.mH, x)
        return y if m is None else y - matmul(m.mH, x)

    basis: Tensor = linalg_qr(forward(start))[0]
    for _ in range(niter):
        basis = linalg_qr(backward(basis))[0]
        basis = linalg_qr(forward(basis))[0]
    return basis


@public("function")
def svd_lowrank(A: Tensor, q: int | None = 6, niter: int | None = 2, M: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
    """The `q` largest singular values and vectors of A - M, approximately: U, S, V."""
    q = 6 if q is None else q
    niter = 2 if niter is None else niter
    m, n = A.shape[-2:]
    mean = None if M is None else aten.broadcast_to(M, A.shape)
    tall, mean = (A.mH, None if mean is None else mean.mH) if m < n else (A, mean)
    basis = _approximate_basis(tall, q, niter, mean)
    small = matmul(basis.mH, tall)
    if mean is not None:
        small = small - matmul(basis.mH, mean)
    u, s, vh = linalg_svd(small, False)
    left, right = matmul(basis, u), vh.mH
    return (right, s, left) if m < n else (left, s, right)


@public("function")
def pca_lowrank(A: Tensor, q: int | None = None, center: bool = True, niter: int = 2) -> tuple[Tensor, Tensor, Tensor]:
    """Principal components of the rows of A, approximately: U, S and the directions V."""
    m, n = A.shape[-2:]
    if q is None:
        q = min(6, m, n)
    elif not 0 <= q <= min(m, n):
        raise ValueError(f"q(={q}) must be non-negative integer and not greater than min(m, n)={min(m, n)}")
    if not niter >= 0:
        raise ValueError(f"niter(={niter}) must be non-negative integer")
    if not A.dtype.is_floating_point:
        raise ValueError(f"input is expected to be floating point or complex, got {A.dtype}")
    if center:
        A = A - A.mean(dim=(-2,), keepdim=True)
    return svd_lowrank(A, q, niter=niter, M=None)


@public("function method")
def lu(A: Tensor, pivot: bool = True, get_infos: bool = False, out: tuple[Tensor, ...] | None = None) -> tuple[Tensor, ...]:
    """The compact LU factors and pivots of A, and on request LAPACK's error codes."""
    factors = tuple(_lu_with_info(A, pivot=pivot, check_errors=not get_infos))
    results = factors if get_infos else factors[:2]
    if out is None:
        return results
    if not isinstance(out, tuple | list):
        raise TypeError(f"argument 'out' must be tuple of Tensors, not {type(out).__name__}")
    if len(out) != len(results):
        raise TypeError(f"expected tuple of {len(results)} elements but got {len(out)}")
    for target, value in zip(out, results, strict=True):
        write_out(target, value)
    return out


_REMOVED = {
    "eig": "torch.linalg.eig, whose results are complex",
    "lstsq": "torch.linalg.lstsq, whose arguments are the other way round",
    "matrix_rank": "torch.linalg.matrix_rank, where `symmetric` is called `hermitian`",
    "solve": "torch.linalg.solve, whose arguments are the other way round",
    "symeig": "torch.linalg.eigh or torch.linalg.eigvalsh, which read the lower triangle by default",
}


def _removed(name: str, successor: str) -> None:
    def refuse(*args: Any, **kwargs: Any) -> NoReturn:
        raise RuntimeError(f"This function was deprecated since version 1.9 and is now removed. `torch.{name}`: use {successor}.")

    refuse.__name__ = refuse.__qualname__ = name
    refuse.__doc__ = f"Removed from torch; use {successor}."
    public("function" if name == "matrix_rank" else "function method")(refuse)


for _name, _successor in _REMOVED.items():
    _removed(_name, _successor)
