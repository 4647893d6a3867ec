"""Batched tensors: what a function sees inside `vmap`.

A batched tensor stands for one sample. Its storage holds the *value*, a tensor with one more dimension, and which dimension that
is; its array has a sample's shape and strides, and refuses to be read. A value may be batched itself, by an outer `vmap`.
"""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from .._dispatch import keys
from .._dispatch.tls import state
from .._storage import UntypedStorage
from .._tensor import Tensor, set_array, shallow_copy

__all__ = [
    "BatchedStorage",
    "Level",
    "SharedWriteError",
    "UnreadableError",
    "batched",
    "join_level",
    "level_of",
    "lifted",
    "unwrapped",
]

Array = np.ndarray[Any, Any]


class Level:
    """One `vmap` whose function runs."""

    __slots__ = ("batch_size", "ended", "number", "outer", "randomness", "records_below")

    def __init__(self, batch_size: int, randomness: str) -> None:
        self.outer: Level | None = state.level
        self.number: int = 1 if self.outer is None else self.outer.number + 1
        self.batch_size = batch_size
        self.randomness = randomness
        self.ended = False  # its function has returned
        self.records_below: bool = state.records_below  # of what is around this level


class UnreadableError(RuntimeError):
    """A kernel was about to read a single sample, which has no memory of its own."""


class SharedWriteError(RuntimeError):
    """What differs between samples was about to be written into a tensor that is the same for all."""


def _refuse(*args: Any, **kwargs: Any) -> NoReturn:
    raise UnreadableError("vmap: the elements of a batched tensor cannot be read in Python; use operators of torch on it")


class SampleArray(np.ndarray[Any, Any]):
    """The shape and strides of one sample. Elements are refused: those of the first sample would be a silent error."""

    __array_ufunc__ = _refuse
    __array_function__ = _refuse
    __getitem__ = __setitem__ = __iter__ = __bool__ = __int__ = __float__ = __index__ = __complex__ = _refuse
    item = tolist = take = astype = copy = ravel = flatten = fill = tobytes = byteswap = _refuse


class BatchedStorage(UntypedStorage):
    """The value of a batched tensor, and where in it the batch is (None: the same for all samples)."""

    __slots__ = ("bdim", "level", "logical", "value")
    value: Tensor
    bdim: int | None
    level: Level
    logical: Array  # the array of the tensors over this storage: another one would be of another shape
    memory = property()  # is that of the value

    @property
    def version(self) -> int:
        """Writes to a batched tensor are writes to its value."""
        return self.value._storage.version

    @version.setter
    def version(self, number: int) -> None:
        self.value._storage.version = number

    def alias(self, version: int = 0) -> BatchedStorage:
        return _storage(self.value.detach(), self.bdim, self.level)


def batched(value: Tensor, bdim: int | None, level: Level) -> Tensor:
    """A tensor that stands for each sample of a value at once."""
    if value._keys & keys.PENDING:  # whoever asks the sample whether it is a conjugate sees none
        value = value.resolve_conj().resolve_neg()
    t: Tensor = object.__new__(Tensor)
    t._storage = storage = _storage(value, bdim, level)
    t._array = storage.logical
    t.dtype, t.device, t._keys = value.dtype, value.device, keys.BATCHED
    t._node = t._base = t._extra = t._geometry = None
    return t


def _storage(value: Tensor, bdim: int | None, level: Level) -> BatchedStorage:
    storage = BatchedStorage()
    storage.value, storage.bdim, storage.level = value, bdim, level
    storage.array = value._storage.array
    storage.logical = _sample(value._array, bdim)
    return storage


def _sample(array: Array, bdim: int | None) -> Array:
    """The geometry of the first sample."""
    array = array.view(np.ndarray)
    if bdim is not None:
        if array.shape[bdim]:
            array = array[(slice(None),) * bdim + (0,)]
        else:
            array = np.empty(array.shape[:bdim] + array.shape[bdim + 1 :], array.dtype)
    if array.__class__ is not np.ndarray:  # one element
        array = np.asarray(array)
    found = array.view(SampleArray)
    found.flags.writeable = False
    return found


def level_of(t: Tensor) -> int:
    """The number of the level that a tensor belongs to; 0 for one outside of all."""
    storage = t._storage
    return storage.level.number if isinstance(storage, BatchedStorage) else 0


def unwrapped(t: Tensor, level: Level) -> tuple[Any, int | None]:
    """The value behind a tensor at a level, and which of its dimensions is the batch."""
    storage = t._storage
    if not isinstance(storage, BatchedStorage) or storage.level is not level:
        return t, None
    if storage.logical is not t._array:
        raise UnreadableError("vmap: a batched tensor was given another shape behind its back")
    return storage.value, storage.bdim


def lifted(t: Tensor, level: Level | None) -> Tensor:
    """A tensor of this level that is the same for all samples, unless it is of this level already."""
    if level is None or level_of(t) >= level.number:
        return t
    return batched(t, None, level)


def join_level(t: Tensor, level: Level) -> None:
    """Make a tensor from further out, and its base, into ones of this level in place: what is written to them belongs to it."""
    if level_of(t) >= level.number:
        return
    if t._base is not None:
        join_level(t._base, level)
    value = shallow_copy(t)
    value._base, value._node, value._keys = t._base, t._node, t._keys
    t._storage = storage = _storage(value, None, level)
    t._node = None
    t._keys = keys.BATCHED
    set_array(t, storage.logical)
