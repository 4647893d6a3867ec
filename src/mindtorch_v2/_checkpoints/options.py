"""What can be set about reading and writing checkpoints."""

from __future__ import annotations

import enum
import mmap
import sys
import threading
from typing import Any

from ..utils.serialization import config

__all__ = [
    "LoadEndianness",
    "assumed_byte_order",
    "get_crc32_options",
    "get_default_load_endianness",
    "get_default_mmap_options",
    "set_crc32_options",
    "set_default_load_endianness",
    "set_default_mmap_options",
    "skip_data",
    "skips_data",
]

MAP_PRIVATE, MAP_SHARED = getattr(mmap, "MAP_PRIVATE", None), getattr(mmap, "MAP_SHARED", None)


class LoadEndianness(enum.Enum):
    """The byte order of checkpoints that do not say theirs."""

    NATIVE = 1
    LITTLE = 2
    BIG = 3


def get_default_load_endianness() -> LoadEndianness | None:
    """The byte order that is assumed of checkpoints that do not say theirs; None stands for little."""
    found: LoadEndianness | None = config.load.endianness
    return found


def set_default_load_endianness(endianness: LoadEndianness | None) -> None:
    """Assume this byte order of checkpoints that do not say theirs."""
    if endianness is not None and not isinstance(endianness, LoadEndianness):
        raise TypeError("Invalid argument type in function set_default_load_endianness")
    config.load.endianness = endianness


def assumed_byte_order() -> str:
    """The byte order of a checkpoint that does not say it: "little" or "big"."""
    if config.load.endianness is LoadEndianness.NATIVE:
        return sys.byteorder
    return "big" if config.load.endianness is LoadEndianness.BIG else "little"


def get_crc32_options() -> bool:
    """Whether `torch.save` writes a checksum for each record."""
    return config.save.compute_crc32


def set_crc32_options(compute_crc32: bool) -> None:
    """Have `torch.save` write checksums, or not. Records without one are loaded unchecked."""
    config.save.compute_crc32 = compute_crc32


def get_default_mmap_options() -> int | None:
    """How `torch.load(mmap=True)` maps files: `mmap.MAP_PRIVATE` or `mmap.MAP_SHARED`."""
    return config.load.mmap_flags


class set_default_mmap_options:  # noqa: N801 - torch's spelling
    """Map files for reading alone (`mmap.MAP_PRIVATE`), or so that writes to tensors go to the file (`mmap.MAP_SHARED`).

    It holds from the call on; as a context manager, to the end of the block.
    """

    def __init__(self, flags: int) -> None:
        if MAP_PRIVATE is None:
            raise RuntimeError("Changing the default mmap options is currently not supported for Windows")
        if flags not in (MAP_PRIVATE, MAP_SHARED):
            raise ValueError(
                "Invalid argument in function set_default_mmap_options, expected mmap.MAP_PRIVATE or mmap.MAP_SHARED, but got "
                f"{flags}"
            )
        self.prev = config.load.mmap_flags
        config.load.mmap_flags = flags

    def __enter__(self) -> None:
        """The flags are set already."""

    def __exit__(self, *exc: Any) -> None:
        config.load.mmap_flags = self.prev


class _Local(threading.local):
    skip_data = False


_local = _Local()


class skip_data:  # noqa: N801 - torch's spelling
    """Save and load checkpoints without the bytes of storages: space is left for them in the file, and loaded tensors are zero."""

    def __init__(self, materialize_fake_tensors: bool = False) -> None:
        if materialize_fake_tensors:
            raise NotImplementedError("skip_data: there are no fake tensors here to materialize; use the meta device")

    def __enter__(self) -> None:
        self._before = _local.skip_data
        _local.skip_data = True

    def __exit__(self, *exc: Any) -> None:
        _local.skip_data = self._before


def skips_data() -> bool:
    """Whether this thread is inside of `skip_data`."""
    return _local.skip_data
