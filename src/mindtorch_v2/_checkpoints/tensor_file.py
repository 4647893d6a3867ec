"""safetensors files: a header of JSON that names tensors, and their bytes. Nothing in them can be run."""

from __future__ import annotations

import json
import math
from typing import IO, Any

import numpy as np

from .. import _device, _dtype
from .._creation import moved
from .._tensor import Tensor, wrap
from .archive import CheckpointError, read_into, size_of

__all__ = ["load_tensor_file"]

_HEADER_LIMIT = 100 << 20  # of the format
_DTYPES = {
    "BOOL": _dtype.bool_, "U8": _dtype.uint8, "I8": _dtype.int8, "I16": _dtype.int16, "U16": _dtype.uint16, "I32": _dtype.int32,
    "U32": _dtype.uint32, "I64": _dtype.int64, "U64": _dtype.uint64, "F16": _dtype.float16, "BF16": _dtype.bfloat16,
    "F32": _dtype.float32, "F64": _dtype.float64, "C64": _dtype.complex64,
}  # fmt: skip


def load_tensor_file(path: str, device: _device.device) -> dict[str, Tensor]:
    """The tensors of a safetensors file, by name."""
    with open(path, "rb") as file:
        size = size_of(file)
        file.seek(0)
        length = int.from_bytes(file.read(8), "little")
        if size < 8 or length > min(size - 8, _HEADER_LIMIT):
            raise CheckpointError(f"{path}: a header of {length} bytes does not fit a file of {size}; it is damaged or cut off")
        header = _header(path, file.read(length))
        header.pop("__metadata__", None)
        found = {name: _Entry(path, name, entry, size - 8 - length) for name, entry in header.items()}
        _check_overlap(path, list(found.values()))
        return {name: moved(entry.read(file, 8 + length), device) for name, entry in found.items()}


def _header(path: str, content: bytes) -> dict[str, Any]:
    try:
        header = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise CheckpointError(
            f"{path}: the header is no JSON ({error!s:.100}); the file is damaged, or no safetensors file"
        ) from None
    if not isinstance(header, dict):
        raise CheckpointError(f"{path}: the header names no tensors; the file is damaged, or no safetensors file")
    return header


class _Entry:
    """What the header says of one tensor, compared with the file."""

    def __init__(self, path: str, name: str, entry: Any, left: int) -> None:
        self.path, self.name = path, name
        try:
            self.dtype = _DTYPES[entry["dtype"]]
            self.shape = tuple(entry["shape"])
            self.start, self.end = entry["data_offsets"]
            fits = all(type(n) is int and n >= 0 for n in (*self.shape, self.start, self.end)) and self.end <= left
        except (KeyError, TypeError, ValueError):
            raise CheckpointError(f"{path}: the header's entry of {name:.100} is damaged, or of a dtype that is not here") from None
        if not fits or math.prod(self.shape) * self.dtype.itemsize != self.end - self.start:
            raise CheckpointError(f"{path}: {name:.100} does not fit its bytes in the file, which is damaged or cut off")

    def read(self, file: IO[bytes], start: int) -> Tensor:
        data = np.empty(self.end - self.start, np.uint8)
        file.seek(start + self.start)
        if read_into(file, data) != len(data):
            raise CheckpointError(f"{self.path}: the file ends inside of {self.name:.100}; copy or save it again")
        return wrap(data.view(self.dtype.np).reshape(self.shape), self.dtype)


def _check_overlap(path: str, entries: list[_Entry]) -> None:
    """Tensors have bytes of their own, so that a small file cannot name large ones again and again."""
    last = 0
    for entry in sorted(entries, key=lambda e: (e.start, e.end)):
        if entry.start < last:
            raise CheckpointError(f"{path}: {entry.name:.100} overlaps another tensor; the file is damaged")
        last = entry.end
