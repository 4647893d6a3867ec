"""What distributions have in common: broadcasting of parameters, probabilities and logits, values computed when asked for, triangles."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from .. import arange, broadcast_tensors, empty
from .._autograd.grad_mode import enable_grad
from .._creation import tensor
from .._dtype import get_default_dtype
from .._dtype_info import finfo
from .._tensor import Size, Tensor
from .._types import OptionalDevice, OptionalDType
from ..nn import functional as F
from ..overrides import is_tensor_like

__all__ = [
    "broadcast_all", "clamp_probs", "lazy_property", "logits_to_probs", "probs_to_logits", "tril_matrix_to_vec", "vec_to_tril_matrix",
]  # fmt: skip

euler_constant = 0.57721566490153286060
Number = int | float | bool | complex


def broadcast_all(*values: Any) -> tuple[Tensor, ...]:
    """Tensors of one shape; numbers become tensors with the dtype and device of the first tensor among the values."""
    if not all(is_tensor_like(v) or isinstance(v, Number) for v in values):
        raise ValueError(
            "Input arguments must all be instances of Number, torch.Tensor or objects implementing __torch_function__."
        )
    options: dict[str, Any] = {"dtype": get_default_dtype()}
    first = next((v for v in values if isinstance(v, Tensor)), None)
    if first is not None:
        options = {"dtype": first.dtype, "device": first.device}
    return broadcast_tensors(*(v if is_tensor_like(v) else tensor(v, **options) for v in values))


def _standard_normal(shape: Sequence[int], dtype: OptionalDType, device: OptionalDevice) -> Tensor:
    return empty(shape, dtype=dtype, device=device).normal_()


def _sum_rightmost(value: Tensor, dim: int) -> Tensor:
    """The sum over the last `dim` dimensions."""
    if dim == 0:
        return value
    return value.reshape(value.shape[:-dim] + (-1,)).sum(-1)


def logits_to_probs(logits: Tensor, is_binary: bool = False) -> Tensor:
    """Probabilities of logits: of log-odds, or of log-probabilities that need not be normalised."""
    if is_binary:
        return logits.sigmoid()
    return F.softmax(logits, dim=-1)


def clamp_probs(probs: Tensor) -> Tensor:
    """Probabilities that are neither 0 nor 1, by the distance between 1 and the next number."""
    eps = finfo(probs.dtype).eps
    return probs.clamp(min=eps, max=1 - eps)


def probs_to_logits(probs: Tensor, is_binary: bool = False) -> Tensor:
    """Log-odds of probabilities, or their logarithms; both finite."""
    clamped = clamp_probs(probs)
    return clamped.log() - (-clamped).log1p() if is_binary else clamped.log()


class lazy_property:  # noqa: N801 - torch's name
    """A value that is computed when it is first asked for, and then kept as an attribute. Gradients flow through it in any grad mode."""

    def __init__(self, wrapped: Callable[[Any], Any]) -> None:
        self.wrapped = wrapped
        functools.update_wrapper(self, wrapped)  # type: ignore[arg-type]

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        if instance is None:
            return _LazyOfClass(self.wrapped)
        with enable_grad():
            value = self.wrapped(instance)
        setattr(instance, self.wrapped.__name__, value)
        return value


class _LazyOfClass(lazy_property, property):
    """What a class shows of a lazy property: a property, so that tools for documentation take it for one."""

    def __init__(self, wrapped: Callable[[Any], Any]) -> None:
        property.__init__(self, wrapped)


def _lower_mask(n: int, diag: int, device: OptionalDevice) -> Tensor:
    """Which elements of an n × n matrix are on or below a diagonal."""
    steps = arange(n, device=device)
    return steps < steps.view(-1, 1) + (diag + 1)


def tril_matrix_to_vec(mat: Tensor, diag: int = 0) -> Tensor:
    """The lower triangles of matrices as vectors, row by row."""
    n = mat.shape[-1]
    if not -n <= diag < n:
        raise ValueError(f"diag ({diag}) provided is outside [{-n}, {n - 1}].")
    return mat[..., _lower_mask(n, diag, mat.device)]


def vec_to_tril_matrix(vec: Tensor, diag: int = 0) -> Tensor:
    """Matrices with these lower triangles, zero elsewhere: what `tril_matrix_to_vec` undoes."""
    length, odd = vec.shape[-1], 1 + 2 * diag
    n = (-odd + (odd**2 + 8 * length + 4 * abs(diag) * (diag + 1)) ** 0.5) / 2
    if round(n) - n > finfo(vec.dtype).eps:
        raise ValueError(
            f"The size of last dimension is {length} which cannot be expressed as the lower triangular part of a square D x D matrix."
        )
    size = round(n)
    mat = vec.new_zeros(vec.shape[:-1] + Size((size, size)))
    mat[..., _lower_mask(size, diag, vec.device)] = vec
    return mat
