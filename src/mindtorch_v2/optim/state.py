"""State of optimisers as plain containers, and back."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .._dtype import float32
from .._tensor import Tensor

__all__ = ["cast_state", "ids_of", "pack_groups"]


def ids_of(groups: list[dict[str, Any]]) -> dict[Tensor, int]:
    """A number for each parameter: its place in the order of all; torch: of one that is twice in a group, the last."""
    ids: dict[Tensor, int] = {}
    start = 0
    for group in groups:
        ids.update({p: i for i, p in enumerate(group["params"], start) if p not in ids})
        start += len(group["params"])
    return ids


def pack_groups(groups: list[dict[str, Any]], ids: dict[Tensor, int]) -> list[dict[str, Any]]:
    return [{**{k: v for k, v in g.items() if k != "params"}, "params": [ids[p] for p in g["params"]]} for g in groups]


def cast_state(param: Tensor, value: Any, param_id: int, groups: list[dict[str, Any]], key: str | None = None) -> Any:
    """Loaded state with the dtype and device of its parameter, in new containers."""
    if isinstance(value, Tensor):
        return _cast_tensor(param, value, param_id, groups, key)
    if isinstance(value, dict):
        return {k: cast_state(param, v, param_id, groups, key=k) for k, v in value.items()}
    if isinstance(value, Iterable) and not isinstance(value, str | bytes):
        return type(value)(cast_state(param, v, param_id, groups) for v in value)  # type: ignore[call-arg]
    return value


def _cast_tensor(param: Tensor, value: Tensor, param_id: int, groups: list[dict[str, Any]], key: str | None) -> Tensor:
    if key == "step":
        # torch: a step count stays as it is, unless the implementation needs it next to the parameter
        group = next((g for g in groups if param_id in g["params"]), {})
        if group.get("capturable") or group.get("fused"):
            return value.to(dtype=float32, device=param.device)
        return value
    if param.dtype.is_floating_point:
        return value.to(dtype=param.dtype, device=param.device)
    return value.to(device=param.device)
