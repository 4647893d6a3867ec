"""Overriding torch functions for tensor subclasses and tensor-like objects: `__torch_function__`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ._dispatch.tls import state
from ._tensor import Tensor

__all__ = ["DisableTorchFunctionSubclass", "default_torch_function", "foreign_override", "has_torch_function"]


class DisableTorchFunctionSubclass:
    """Inside, tensor subclasses are treated as plain tensors."""

    def __enter__(self) -> None:
        state.subclass_override_off += 1

    def __exit__(self, *exc: object) -> None:
        state.subclass_override_off -= 1


def has_torch_function(relevant_args: Any) -> bool:
    """Whether any of these objects overrides torch functions."""
    return any(type(a) is not Tensor and hasattr(type(a), "__torch_function__") and not _disabled(type(a)) for a in relevant_args)


def _disabled(cls: type) -> bool:
    return issubclass(cls, Tensor) and not cls._class_keys


def default_torch_function(cls: type, func: Callable[..., Any], types: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """Run the function as for plain tensors, and give results the subclass's type."""
    if not all(issubclass(cls, t) for t in types):
        return NotImplemented
    with DisableTorchFunctionSubclass():
        result = func(*args, **kwargs)
    return _as_subclass(result, cls)


def _as_subclass(result: Any, cls: Any) -> Any:
    if isinstance(result, Tensor) and not isinstance(result, cls):
        return result.as_subclass(cls)  # type: ignore[attr-defined]
    if type(result) in (list, tuple):
        return type(result)(_as_subclass(r, cls) for r in result)
    return result


def foreign_override(arguments: Any) -> Callable[..., Any] | None:
    """The handler of the first argument that is no tensor but overrides torch functions."""
    for a in arguments:
        if not isinstance(a, Tensor) and hasattr(type(a), "__torch_function__"):
            return lambda func, args, _a=a: type(_a).__torch_function__(func, (type(_a),), args, {})
    return None
