"""Where the storages of a checkpoint are put: the location that a file names, or the one that `map_location` says."""

from __future__ import annotations

import contextlib
import functools
import importlib
from collections.abc import Callable, Iterator
from typing import Any

from .. import _device
from .._creation import device_of
from .._pickling import meta_storage
from .._storage import UntypedStorage
from ..storage import TypedStorage
from .names import PACKAGE

__all__ = [
    "Restore",
    "UserError",
    "default_restore_location",
    "is_meta",
    "location_tag",
    "passing_through",
    "register_package",
    "restorer",
]

Restore = Callable[[UntypedStorage, str], UntypedStorage]
_Package = tuple[int, int, Callable[[Any], Any], Callable[[Any, str], Any]]
_packages: list[_Package] = []  # by priority, and then by age
_ABSENT = ("cuda", "mps", "xpu", "hpu", "mtia")


class UserError(Exception):
    """Carries an exception of the user's own code past the handlers of damaged files."""

    def __init__(self, error: Exception) -> None:
        self.error = error


@contextlib.contextmanager
def passing_through() -> Iterator[None]:
    """Exceptions of the block are the user's."""
    try:
        yield
    except UserError:
        raise
    except Exception as error:
        raise UserError(error) from None


def register_package(priority: int, tagger: Callable[[Any], Any], deserializer: Callable[[Any, str], Any]) -> None:
    """Have storages of another kind of device saved and loaded.

    `tagger(storage)` gives the location's name or None, `deserializer(storage, location)` a storage there or None. Those of lower
    priority are asked first.
    """
    _packages.append((priority, len(_packages), tagger, deserializer))
    _packages.sort(key=lambda package: package[:2])


def _tag_of(kind: str, storage: UntypedStorage) -> str | None:
    where = storage.device
    return (kind if where.index is None else f"{kind}:{where.index}") if where.type == kind else None


def _to_cpu(storage: UntypedStorage, location: str) -> UntypedStorage | None:
    return storage if location == "cpu" else None


def _to_meta(storage: UntypedStorage, location: str) -> UntypedStorage | None:
    return meta_storage(storage.nbytes()) if location == "meta" else None


def _to_npu(storage: UntypedStorage, location: str) -> UntypedStorage | None:
    return storage.to(device=device_of(location)) if _names(location, "npu") else None


def _to_absent(kind: str, storage: UntypedStorage, location: str) -> UntypedStorage | None:
    if _names(location, kind):
        validate_device(location, kind)
    return None


def _names(location: str, kind: str) -> bool:
    return location == kind or (location.startswith(kind) and (location[len(kind)] == ":" or location[len(kind) :].isdigit()))


def validate_device(location: str, kind: str) -> _device.device:
    """The device that a location names, if it is there."""
    with contextlib.suppress(ImportError):
        module = importlib.import_module(f"{PACKAGE}.{kind}")
        if module.is_available():
            return _device.device(location)
    raise RuntimeError(
        f"Attempting to deserialize object on a {kind.upper()} device but torch.{kind}.is_available() is False. If you are "
        "running on a CPU-only machine, please use torch.load with map_location=torch.device('cpu') to map your storages to the CPU."
    )


register_package(10, functools.partial(_tag_of, "cpu"), _to_cpu)
register_package(22, functools.partial(_tag_of, "meta"), _to_meta)
register_package(23, functools.partial(_tag_of, "npu"), _to_npu)
for _priority, _kind in enumerate(_ABSENT, 24):
    register_package(_priority, functools.partial(_tag_of, _kind), functools.partial(_to_absent, _kind))


def location_tag(storage: UntypedStorage) -> str:
    """The name that checkpoints have for the place of a storage."""
    for _, _, tagger, _ in _packages:
        tag = tagger(storage)
        if tag:
            return str(tag)
    raise RuntimeError(f"don't know how to determine data location of {_typename(storage)}")


def default_restore_location(storage: UntypedStorage, location: str) -> UntypedStorage:
    """The storage at the place that a checkpoint names: there, or a copy that is."""
    for _, number, _, deserializer in _packages:
        if number < _own:
            found = deserializer(storage, location)
        else:
            with passing_through():
                found = deserializer(storage, location)
        if found is not None:
            return found
    raise RuntimeError(f"don't know how to restore data location of {_typename(storage)} (tagged with {location})")


_own = len(_packages)  # those registered so far are this module's


def _typename(storage: UntypedStorage) -> str:
    kind = (
        "TypedStorage" if isinstance(storage, TypedStorage) else "UntypedStorage" if isinstance(storage, UntypedStorage) else None
    )
    return f"torch.storage.{kind}" if kind else f"{type(storage).__module__}.{type(storage).__qualname__}"


def is_meta(map_location: object) -> bool:
    """Whether storages are put on the meta device, which needs none of their bytes."""
    return isinstance(map_location, str | _device.device) and str(map_location) == "meta"


def restorer(map_location: Any) -> Restore:
    """The function that puts a storage where `map_location` says, by the location that the checkpoint names."""
    if map_location is None:
        return default_restore_location
    if isinstance(map_location, bytes):
        map_location = map_location.decode()
    if isinstance(map_location, str | _device.device):
        return lambda storage, location: _chosen(storage, str(map_location))
    if isinstance(map_location, dict):
        return lambda storage, location: (
            _chosen(storage, map_location[location]) if location in map_location else default_restore_location(storage, location)
        )
    if not callable(map_location):
        raise TypeError(f"map_location must be a device, a string, a dict or a function, not {type(map_location).__name__}")

    def called(storage: UntypedStorage, location: str) -> UntypedStorage:
        with passing_through():
            answer = map_location(storage, location)
        if answer is None:
            return default_restore_location(storage, location)
        if isinstance(answer, TypedStorage):
            return answer._untyped_storage
        return answer if isinstance(answer, UntypedStorage) else _chosen(storage, str(answer))

    return called


def _chosen(storage: UntypedStorage, location: str) -> UntypedStorage:
    """The storage where the user, not the file, wants it."""
    with passing_through():
        return default_restore_location(storage, str(location))
