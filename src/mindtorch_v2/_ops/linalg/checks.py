"""Checks of the arguments of linear algebra operators, and errors about matrices that cannot be factored."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._backends.cpu.machinery.dtypes import scalar_name
from ..._tensor import Tensor
from ..machinery.declare import op

Array = np.ndarray[Any, Any]


class LinAlgError(RuntimeError):
    """A matrix that an algorithm cannot handle: singular, not positive-definite, …"""


LinAlgError.__name__ = LinAlgError.__qualname__ = "_LinAlgError"
LinAlgError.__module__ = "torch._C"


def check_matrix(a: Array | Tensor, function: str, name: str = "A") -> None:
    if a.ndim < 2:
        raise RuntimeError(f"{function}: The input tensor {name} must have at least 2 dimensions.")


def check_square(a: Array | Tensor, function: str, name: str = "A") -> None:
    """Refuse anything but batches of square matrices."""
    check_matrix(a, function, name)
    m, n = a.shape[-2:]
    if m != n:
        raise RuntimeError(f"{function}: {name} must be batches of square matrices, but they are {m} by {n} matrices")


def check_floating(a: Array, function: str, *, low_precision: bool = True) -> None:
    """Refuse integers and, where LAPACK is needed at once, half precision."""
    if a.dtype.kind not in "fcV":
        raise RuntimeError(f"{function}: Expected a floating point or complex tensor as input. Got {scalar_name(a)}")
    if not low_precision and a.dtype.char not in "fdFD":
        raise RuntimeError(f"{function}: Low precision dtypes not supported. Got {scalar_name(a)}")


def check_system(a: Array | Tensor, b: Array | Tensor, left: bool, function: str) -> None:
    """Refuse A and B that do not fit in A X = B, or X A = B."""
    if a.shape[-1] != b.shape[-2 if left else -1]:
        equation = "AX = B" if left else "XA = B"
        (m, n), (p, q) = a.shape[-2:], b.shape[-2:]
        raise RuntimeError(f"{function}: Incompatible shapes of A and B for the equation {equation} ({m}x{n} and {p}x{q})")


_REASONS = (
    (
        ("inv", "cholesky_inverse"),
        "The diagonal element {code} is zero, the inversion could not be completed because the input matrix is singular.",
    ),
    (("solve",), "The solver failed because the input matrix is singular."),
    (
        ("cholesky",),
        "The factorization could not be completed because the input is not positive-definite (the leading minor of order "
        "{code} is not positive-definite).",
    ),
    (("svd",), "The algorithm failed to converge because the input matrix is ill-conditioned or has too many repeated singular values (error code: {code})."),
    (("eig", "syevd"), "The algorithm failed to converge because the input matrix is ill-conditioned or has too many repeated eigenvalues (error code: {code})."),
    (("lstsq",), "The least squares solution could not be computed because the input matrix does not have full rank (error code: {code})."),
)  # fmt: skip


def factorisation_error(api_name: str, code: int, element: int | None) -> RuntimeError:
    """The error for a LAPACK code; `element` is the first matrix of a batch that failed."""
    where = f"{api_name}: " if element is None else f"{api_name}: (Batch element {element}): "
    if "lu_factor" in api_name:
        return RuntimeError(
            f"{where}U[{code},{code}] is zero and using it on lu_solve would result in a division by zero. If you still want to "
            "perform the factorization, consider calling linalg.lu(A, pivot) or linalg.lu_factor_ex(A, pivot)"
        )
    for names, reason in _REASONS:
        if any(n in api_name for n in names):
            return LinAlgError(where + reason.format(code=code))
    return LinAlgError(f"{where}The factorization met a zero pivot at {code}: the input matrix is singular.")


def raise_first_failure(info: Array, api_name: str) -> None:
    """Raise for the first matrix that LAPACK gave a code for, if any."""
    if info.any():
        codes = info.reshape(-1)
        element = int(np.flatnonzero(codes)[0])
        raise factorisation_error(api_name, int(codes[element]), element if info.ndim else None)


def _check_errors(info: Tensor, api_name: str, is_matrix: bool) -> None:
    if info.any().item():
        codes = info._array
        raise_first_failure(codes.reshape(()) if is_matrix else codes.reshape(-1), api_name)


check_errors = op(
    "_linalg_check_errors(Tensor info, str api_name, *, bool is_matrix) -> ()",
    over_tensors=_check_errors,
    variants="function",
)
