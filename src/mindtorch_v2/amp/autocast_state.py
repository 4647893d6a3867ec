"""The state of autocast on this thread: for which devices it is on, its dtypes, its depth, and whether casts of weights are kept."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable
from typing import Any

from .. import _dtype
from .._device import device
from .._dispatch import dispatcher, keys
from .._dispatch.tls import state
from . import cast_cache

__all__ = [
    "autocast_decrement_nesting",
    "autocast_increment_nesting",
    "clear_autocast_cache",
    "get_autocast_dtype",
    "is_any_autocast_enabled",
    "is_autocast_available",
    "is_autocast_cache_enabled",
    "is_autocast_enabled",
    "set_autocast_cache_enabled",
    "set_autocast_dtype",
    "set_autocast_enabled",
]

_LOWER = {"cpu": _dtype.bfloat16, "hpu": _dtype.bfloat16, "xla": _dtype.bfloat16, "maia": _dtype.bfloat16}
_AVAILABLE = frozenset({*_LOWER, "cuda", "ipu", "mps", "mtia", "privateuseone", "xpu"})


class _ThreadState(threading.local):
    cache_enabled: bool = True
    nesting: int = 0

    def __init__(self) -> None:
        self.dtypes: dict[str, _dtype.dtype] = {}
        self.enabled: set[str] = set()  # devices other than the CPU, which has a place in the dispatcher's state


_thread = _ThreadState()


def is_autocast_available(device_type: str) -> bool:
    """Whether a device has autocast in PyTorch. Only the CPU has tensors here."""
    return device(device_type).type in _AVAILABLE


def get_autocast_dtype(device_type: str) -> _dtype.dtype:
    """The lower precision of a device."""
    type = _known(device_type)
    return _thread.dtypes.get(type) or _LOWER.get(type, _dtype.float16)


def set_autocast_dtype(device_type: str, dtype: _dtype.dtype) -> None:
    """Choose the lower precision of a device, on this thread."""
    if not isinstance(dtype, _dtype.dtype):
        raise TypeError(f"set_autocast_dtype(): argument 'dtype' (position 2) must be torch.dtype, not {_type_name(dtype)}")
    _thread.dtypes[_known(device_type)] = dtype


def is_autocast_enabled(device_type: str = "cuda") -> bool:
    """Whether operators on a device have their operands cast, on this thread. Inside an operator that was called so they have not."""
    if not isinstance(device_type, str):
        raise TypeError(f"is_autocast_enabled(): argument 'device_type' (position 1) must be str, not {_type_name(device_type)}")
    type = _known(device_type)
    return state.autocast if type == "cpu" else type in _thread.enabled


def is_any_autocast_enabled() -> bool:
    """Whether autocast is on for some device."""
    return state.autocast or bool(_thread.enabled)


def set_autocast_enabled(*args: Any) -> None:
    """Switch autocast on or off on this thread: `set_autocast_enabled(device_type, enabled)`. Without a device, for CUDA."""
    enabled = args[-1] if args else None
    if not isinstance(enabled, bool):
        raise TypeError(
            f"set_autocast_enabled(): argument 'enabled' (position {len(args) or 1}) must be bool, not {_type_name(enabled)}"
        )
    type = _known(args[0] if len(args) > 1 else "cuda")
    if type == "cpu":
        _switch_cpu(on=enabled)
    elif enabled:
        _thread.enabled.add(type)
    else:
        _thread.enabled.discard(type)


def _switch_cpu(*, on: bool) -> None:
    if on == state.autocast:
        return
    state.autocast = on
    (dispatcher.activate if on else dispatcher.deactivate)(keys.AUTOCAST)


def autocast_increment_nesting() -> int:
    """The depth of regions on this thread, with one more."""
    _thread.nesting += 1
    return _thread.nesting


def autocast_decrement_nesting() -> int:
    """The depth of regions on this thread, with one less."""
    _thread.nesting -= 1
    return _thread.nesting


def is_autocast_cache_enabled() -> bool:
    """Whether casts of weights are kept, on this thread."""
    return _thread.cache_enabled


def set_autocast_cache_enabled(enabled: bool) -> None:
    """Choose that."""
    _thread.cache_enabled = enabled


def clear_autocast_cache() -> None:
    """Forget casts of weights, of all threads."""
    cast_cache.clear()


def _known(device_type: str) -> str:
    type = device(device_type).type
    if type not in _AVAILABLE:
        raise RuntimeError(f"unknown device type for autocast: {type!r}")
    return type


def _type_name(value: object) -> str:
    return value.__class__.__name__


def _deprecated(old: str, new: str, call: Callable[..., Any], arguments: str) -> Callable[..., Any]:
    """A function under its older name, which has the device in it."""
    device_type = {"gpu": "cuda"}.get(old.split("_")[2], old.split("_")[2])
    given = f"'{device_type}', {arguments}" if arguments else f"'{device_type}'"

    def older(*args: Any) -> Any:
        warnings.warn(
            f"torch.{old}({arguments}) is deprecated. Please use torch.{new}({given}) instead.", DeprecationWarning, stacklevel=2
        )
        return call(device_type, *args)

    older.__name__ = older.__qualname__ = old
    older.__doc__ = f"`torch.{new}({given})`."
    return older


def older_names() -> dict[str, Callable[..., Any]]:
    """The functions that have a device in their names."""
    functions: dict[str, tuple[Callable[..., Any], str, str]] = {
        "is_autocast_enabled": (is_autocast_enabled, "", "cpu ipu xla"),
        "set_autocast_enabled": (set_autocast_enabled, "enabled", "cpu ipu xla"),
        "get_autocast_dtype": (get_autocast_dtype, "", "cpu gpu ipu xla"),
        "set_autocast_dtype": (set_autocast_dtype, "dtype", "cpu gpu ipu xla"),
    }
    return {
        (old := new.replace("autocast", f"autocast_{name}")): _deprecated(old, new, call, arguments)
        for new, (call, arguments, names) in functions.items()
        for name in names.split()
    }
