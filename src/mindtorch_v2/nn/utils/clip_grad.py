"""Clipping gradients by norm and by value."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from types import GeneratorType
from typing import Any

from ..._autograd.grad_mode import no_grad
from ..._ops.machinery.lookup import aten
from ..._tensor import Tensor

__all__ = ["clip_grad_norm", "clip_grad_norm_", "clip_grad_value_", "clip_grads_with_norm_", "get_total_norm"]


def _as_list(parameters: Tensor | Iterable[Tensor]) -> list[Tensor]:
    return [parameters] if isinstance(parameters, Tensor) else list(parameters)


def _by_kind(tensors: Iterable[Tensor]) -> list[list[Tensor]]:
    """Tensors grouped by device and dtype, as the operators on lists want them."""
    groups: dict[Any, list[Tensor]] = {}
    for t in tensors:
        groups.setdefault((str(t.device), t.dtype), []).append(t)
    return list(groups.values())


def get_total_norm(
    tensors: Tensor | Iterable[Tensor], norm_type: float = 2.0, error_if_nonfinite: bool = False, foreach: bool | None = None
) -> Tensor:
    """The norm of all tensors as if they were one vector."""
    tensors = [tensors] if isinstance(tensors, Tensor) else list(tensors)
    norm_type = float(norm_type)
    with no_grad():
        if not tensors:
            return aten.scalar_tensor(0.0)
        norms: list[Tensor] = []
        for group in _by_kind(tensors):
            if foreach is False:
                norms += [aten.linalg_vector_norm(t, norm_type) for t in group]
            else:
                norms += aten._foreach_norm(group, norm_type)
        first = tensors[0].device
        total: Tensor = aten.linalg_vector_norm(aten.stack([n.to(first) for n in norms]), norm_type)
        if error_if_nonfinite and bool(aten.logical_or(total.isnan(), total.isinf())):
            raise RuntimeError(
                f"The total norm of order {norm_type} for gradients from `parameters` is non-finite, so it cannot be clipped. To "
                "disable this error and scale the gradients by the non-finite norm anyway, set `error_if_nonfinite=False`"
            )
        return total


def clip_grads_with_norm_(
    parameters: Tensor | Iterable[Tensor], max_norm: float, total_norm: Tensor, foreach: bool | None = None
) -> None:
    """Scale gradients in place so that a total norm above `max_norm` becomes `max_norm`."""
    listed = _as_list(parameters)
    grads = [p.grad for p in listed if p.grad is not None]
    if not grads:
        return
    with no_grad():
        factor = aten.clamp(max_norm / (total_norm + 1e-6), max=1.0)
        for group in _by_kind(grads):
            scale = factor.to(group[0].device)
            if foreach is False:
                for g in group:
                    g.mul_(scale)
            else:
                aten._foreach_mul_(group, scale)


def clip_grad_norm_(
    parameters: Tensor | Iterable[Tensor],
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Scale the gradients of parameters in place to a total norm of at most `max_norm`; returns the norm before."""
    listed = _as_list(parameters)
    if isinstance(parameters, GeneratorType) and not listed:
        warnings.warn("`parameters` is an empty generator, no gradient clipping will occur.", stacklevel=2)
    grads = [p.grad for p in listed if p.grad is not None]
    total = get_total_norm(grads, norm_type, error_if_nonfinite, foreach)
    clip_grads_with_norm_(listed, max_norm, total, foreach)
    return total


def clip_grad_norm(
    parameters: Tensor | Iterable[Tensor],
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Deprecated name of `clip_grad_norm_`."""
    warnings.warn(
        "`torch.nn.utils.clip_grad_norm` is now deprecated in favor of `torch.nn.utils.clip_grad_norm_`.",
        FutureWarning,
        stacklevel=2,
    )
    return clip_grad_norm_(parameters, max_norm, norm_type, error_if_nonfinite, foreach)


def clip_grad_value_(parameters: Tensor | Iterable[Tensor], clip_value: float, foreach: bool | None = None) -> None:
    """Clamp the gradients of parameters in place to [-clip_value, clip_value]."""
    value = float(clip_value)
    grads = [p.grad for p in _as_list(parameters) if p.grad is not None]
    with no_grad():
        for group in _by_kind(grads):
            if foreach is False:
                for g in group:
                    g.clamp_(min=-value, max=value)
            else:
                aten._foreach_clamp_min_(group, -value)
                aten._foreach_clamp_max_(group, value)
