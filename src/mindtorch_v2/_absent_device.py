"""What the modules of devices that are not there have in common: none is available, there are none, and what needs one raises."""

from __future__ import annotations

import contextlib
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any

from . import _dtype
from ._tensor import Tensor
from ._types import OptionalDevice

__all__ = ["absent_device", "without_device"]


def without_device(message: str, names: str, error: type[Exception] = AssertionError) -> dict[str, Callable[..., Any]]:
    """Functions and classes (with capital letters) that need the device, by name: each raises when it is called."""
    return {name: (_raising_class if name[0].isupper() else _raising)(name, message, error) for name in names.split()}


def _raising(name: str, message: str, error: type[Exception]) -> Callable[..., Any]:
    def needs_device(*args: Any, **kwargs: Any) -> Any:
        raise error(message)

    needs_device.__name__ = needs_device.__qualname__ = name
    needs_device.__doc__ = f"Needs the device: raises {error.__name__}."
    return needs_device


def _raising_class(name: str, message: str, error: type[Exception]) -> type:
    """A class to be named in annotations and `isinstance`; none can be made."""

    def __new__(cls: type, *args: Any, **kwargs: Any) -> Any:  # noqa: N807
        raise error(message)

    return type(name, (), {"__new__": __new__, "__doc__": f"Needs the device: raises {error.__name__}."})


def is_available() -> bool:
    """False: the runtime has no such device."""
    return False


def device_count() -> int:
    """0."""
    return 0


def nothing(*args: Any, **kwargs: Any) -> None:
    """Nothing to do without the device, as in a PyTorch that was built without it."""


def manual_seed(seed: int) -> None:
    """Nothing to seed without the device; the number is checked."""
    int(seed)


def zero(device: OptionalDevice = None) -> int:
    """0: no memory of the device is in use."""
    return 0


def no_stats(device: OptionalDevice = None) -> OrderedDict[str, Any]:
    """No statistics."""
    return OrderedDict()


def no_stats_nested(device: OptionalDevice = None) -> dict[str, Any]:
    """No statistics."""
    return {}


@contextlib.contextmanager
def stream(stream: Any) -> Iterator[None]:
    """A context in which nothing changes; there are no streams but None."""
    yield


class device_of:  # noqa: N801 - torch's spelling
    """A context in which nothing changes: no tensor is on the device."""

    def __init__(self, obj: Any) -> None:
        self.obj = obj

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exception: object) -> None:
        pass


def absent_device(name: str, message: str) -> dict[str, Any]:
    """The names that `torch.cuda` and `torch.xpu` share, as a PyTorch without the device answers them."""

    class device:  # noqa: N801 - torch's spelling
        """A context that would choose a device."""

        def __init__(self, device: OptionalDevice) -> None:
            self.device = device

        def __enter__(self) -> None:
            raise RuntimeError(f"PyTorch was compiled without {name} support")

        def __exit__(self, *exception: object) -> None:
            pass

    def set_device(device: OptionalDevice) -> None:
        """Needs the device, but for a number below 0, which means none."""
        if not (isinstance(device, int) and device < 0):
            raise AssertionError(message)

    known: dict[str, Any] = {
        "is_available": is_available,
        "is_initialized": lambda: False,
        "is_bf16_supported": lambda including_emulation=True: False,
        "is_tf32_supported": lambda: False,
        "device_count": device_count,
        "default_generators": (),
        "get_arch_list": list,
        "get_gencode_flags": lambda: "",
        "get_rng_state_all": list,
        "set_rng_state": nothing,
        "set_rng_state_all": nothing,
        "manual_seed": manual_seed,
        "manual_seed_all": manual_seed,
        "seed": nothing,
        "seed_all": nothing,
        "empty_cache": nothing,
        "memory_stats": no_stats,
        "memory_stats_as_nested_dict": no_stats_nested,
        "stream": stream,
        "device": device,
        "device_of": device_of,
        "set_device": set_device,
    }
    for function in "max_memory_allocated max_memory_reserved memory_allocated memory_reserved".split():
        known[function] = zero
    needing = (
        "can_device_access_peer current_device current_stream get_device_capability get_device_name get_device_properties"
        " get_per_process_memory_fraction get_rng_state init initial_seed mem_get_info reset_accumulated_memory_stats"
        " reset_peak_memory_stats set_per_process_memory_fraction set_stream synchronize"
    )
    return {**known, **without_device(message, needing)}


def tensor_types(module: str) -> dict[str, type]:
    """`torch.cuda.FloatTensor` and its siblings: no tensor is of these types, and none can be made."""
    made = {}
    for d in _dtype.ALL:
        if not d.is_complex and d not in (_dtype.uint16, _dtype.uint32, _dtype.uint64):
            name = f"{d.scalar_name}Tensor"
            made[name] = _tensor_type(module, name)
    return made


def _tensor_type(module: str, name: str) -> type:
    def __new__(cls: type, *args: Any, **kwargs: Any) -> Tensor:  # noqa: N807
        raise TypeError(f"type {module}.{name} not available. Torch not compiled with CUDA enabled.")

    return type(name, (), {"__new__": __new__, "__module__": module, "__doc__": "Tensors of a device that is not there."})
