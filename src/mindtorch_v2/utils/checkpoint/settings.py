"""What holds for all checkpoints: early stops, messages for debugging, kinds of devices."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from ...random import fork_rng

__all__ = [
    "DefaultDeviceType",
    "debug_or",
    "early_stop_or",
    "forked_rng",
    "get_device_states",
    "set_checkpoint_debug_enabled",
    "set_checkpoint_early_stop",
    "set_device_states",
]

_early_stop: bool | None = None
_debug: bool | None = None


@contextlib.contextmanager
def set_checkpoint_early_stop(enable: bool) -> Iterator[None]:
    """A context whose checkpoints stop computing again as soon as all that is needed is there, or never do, whatever `early_stop=` says."""
    global _early_stop
    previous, _early_stop = _early_stop, enable
    try:
        yield
    finally:
        _early_stop = previous


@contextlib.contextmanager
def set_checkpoint_debug_enabled(enabled: bool | None) -> Iterator[None]:
    """A context whose checkpoints list the operators of both computations when these differ, or do not, whatever `debug=` says."""
    global _debug
    previous, _debug = _debug, enabled
    try:
        yield
    finally:
        _debug = previous


def early_stop_or(given: bool) -> bool:
    """What the context says about early stops, or else the argument."""
    return given if _early_stop is None else _early_stop


def debug_or(given: bool) -> bool:
    """What the context says about messages, or else the argument."""
    return given if _debug is None else _debug


class DefaultDeviceType:
    """The kind of device whose random numbers are kept beside those of the CPU. None has a generator here."""

    _default_device_type: str | None = None

    @staticmethod
    def set_device_type(device: str = "cuda") -> None:
        """Choose the kind."""
        DefaultDeviceType._default_device_type = device

    @staticmethod
    def get_device_type() -> str:
        """The kind; the CPU, unless another was chosen."""
        return DefaultDeviceType._default_device_type or "cpu"


def get_device_states(*args: Any) -> tuple[list[int], list[Any]]:
    """Numbers and random states of the devices of tensors: none, as no device but the CPU has a generator."""
    return [], []


def set_device_states(devices: list[int], states: list[Any], *, device_type: str | None = None) -> None:
    """Set random states that `get_device_states` returned."""
    if list(devices):
        raise RuntimeError(f"no device has random numbers of its own here; devices={devices!r} must be empty")


def forked_rng(*, enabled: bool) -> contextlib.AbstractContextManager[None]:
    """A context after which the default generator goes on as before."""
    return fork_rng(devices=[], enabled=enabled)
