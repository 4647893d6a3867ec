"""Settings of `torch.save` and `torch.load`: attributes of `load` and `save`, to be assigned, or patched for a while.

`with config.patch({"load.mmap": True}):` and `@config.patch("save.compute_crc32", False)` set them back afterwards.
"""

from __future__ import annotations

import contextlib
import mmap as _mmap
from collections.abc import Iterator
from typing import Any

__all__ = ["load", "patch", "save"]


class _Settings:
    """Settings with fixed names."""

    def __setattr__(self, name: str, value: object) -> None:
        if not hasattr(type(self), name):
            raise AttributeError(f"torch.utils.serialization.config.{type(self).__name__.lstrip('_')} has no setting {name!r}")
        super().__setattr__(name, value)


class _Load(_Settings):
    mmap: bool = False  # map files where `mmap` is not given
    endianness: Any = None  # a LoadEndianness, of files that do not say; None is little
    mmap_flags: int | None = getattr(_mmap, "MAP_PRIVATE", None)
    calculate_storage_offsets: bool = False  # find mapped storages without reading each header


class _Save(_Settings):
    compute_crc32: bool = True
    use_pinned_memory_for_d2h: bool = False  # of storages on an accelerator, of which there is none
    storage_alignment: int = 64


load, save = _Load(), _Save()
_SECTIONS: dict[str, _Settings] = {"load": load, "save": save}


def _found(name: str) -> tuple[_Settings, str]:
    section, _, setting = name.partition(".")
    if section not in _SECTIONS or not hasattr(_SECTIONS[section], setting):
        raise AttributeError(f"torch.utils.serialization.config.{name} does not exist")
    return _SECTIONS[section], setting


@contextlib.contextmanager
def patch(names: Any = None, value: Any = None, /, **settings: Any) -> Iterator[None]:
    """Set one setting, or a dict of them, for a `with` block or a decorated function."""
    changes = {**(names if isinstance(names, dict) else {} if names is None else {names: value}), **settings}
    places = [(*_found(name), new) for name, new in changes.items()]
    before = [getattr(section, setting) for section, setting, _ in places]
    try:
        for section, setting, new in places:
            setattr(section, setting, new)
        yield
    finally:
        for (section, setting, _), old in zip(places, before, strict=True):
            setattr(section, setting, old)
