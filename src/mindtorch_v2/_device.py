"""Where a tensor lives: `device("cpu")`, `device("meta")`, `device("npu:0")`."""

from __future__ import annotations

import functools
import re
from typing import Any

from ._dispatch import keys
from ._dispatch.tls import state

__all__ = ["device"]

# Names that torch knows; those without a backend here are refused when a tensor is put on them, not when named.
KNOWN_TYPES = ("cpu", "cuda", "npu", "meta", "mps", "xpu", "hpu", "xla", "mtia", "vulkan", "ipu", "privateuseone")


class device:  # noqa: N801 - torch's spelling
    """A device type with an optional index. Equal devices hash alike; `cpu` and `meta` are shared objects."""

    __slots__ = ("index", "key", "type")
    type: str
    index: int | None
    key: int

    def __new__(cls, type: str | int | device | None = None, index: int | None = None) -> device:
        if isinstance(type, device):
            return type
        if isinstance(type, bool) or type is None:
            raise TypeError("device(): argument 'type' must be str, int or device, not " + _type_name(type))
        if isinstance(type, int):
            return _shared("npu", type)
        if not isinstance(type, str):
            raise TypeError(f"device(): argument 'type' (position 1) must be str, not {_type_name(type)}")
        match = re.fullmatch(r"([a-z_]+)(?::(\d+))?", type)
        if match is None:
            raise RuntimeError(f"Invalid device string: '{type}'")
        name, number = match[1], match[2]
        if name not in KNOWN_TYPES:
            raise RuntimeError(f"Expected one of {', '.join(KNOWN_TYPES)} device type at start of device string: {name}")
        if number is not None:
            if index is not None:
                raise RuntimeError(f"type (string) must not include an index because index was passed explicitly: {type}")
            index = int(number)
        return _shared(name, index)

    def __repr__(self) -> str:
        return f"device(type='{self.type}')" if self.index is None else f"device(type='{self.type}', index={self.index})"

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, device) and self.type == other.type and self.index == other.index

    def __hash__(self) -> int:
        return hash((self.type, self.index))

    def __enter__(self) -> device:
        push_default(self)
        return self

    def __exit__(self, *exc: object) -> None:
        pop_default()

    def __call__(self, function: Any) -> Any:
        """Decorate a function so that the tensors it makes are on this device."""

        @functools.wraps(function)
        def on_device(*args: Any, **kwargs: Any) -> Any:
            with self:
                return function(*args, **kwargs)

        return on_device

    def __reduce__(self) -> tuple[Any, ...]:
        return (device, (self.type,) if self.index is None else (self.type, self.index))


# Defaults in force in any thread. Factories ask this first: a global is read in a third of the time of a thread's own state.
defaults_in_force: list[device] = []


def push_default(where: device) -> None:
    state.default_devices.append(where)
    defaults_in_force.append(where)


def pop_default() -> None:
    defaults_in_force.remove(state.default_devices.pop())


_instances: dict[tuple[str, int | None], device] = {}


def _type_name(value: object) -> str:
    return type(value).__name__


def _shared(name: str, index: int | None) -> device:
    found = _instances.get((name, index))
    if found is None:
        found = object.__new__(device)
        found.type, found.index = name, index
        found.key = keys.BACKEND_OF_DEVICE.get(name, 0)
        _instances[name, index] = found
    return found


cpu = device("cpu")
meta = device("meta")
