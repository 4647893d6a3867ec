"""In-place writes to tensors that are saved for backward: what is about to be overwritten is copied first, if somebody saved it."""

from __future__ import annotations

import contextlib
import weakref
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from .._autograd.saved_hooks import saved_tensors_hooks
from .._dispatch.op import Op
from .._tensor import Tensor
from ..utils._python_dispatch import TorchDispatchMode

if TYPE_CHECKING:
    from .._op_packet import OpOverload

__all__ = ["allow_mutation_on_saved_tensors"]


class _Handle:
    """Stands for a saved tensor in the graph."""

    __slots__ = ("__weakref__",)


class Saved:
    """The tensors that a graph saved: as they are, or, once they were written to, as copies of what they were."""

    def __init__(self) -> None:
        self.original: weakref.WeakKeyDictionary[_Handle, Tensor] = weakref.WeakKeyDictionary()
        self.cloned: weakref.WeakKeyDictionary[_Handle, Tensor] = weakref.WeakKeyDictionary()
        self.tid_to_weakhandle: weakref.WeakValueDictionary[Any, _Handle] = weakref.WeakValueDictionary()
        self.sid_to_tid: defaultdict[Any, set[Any]] = defaultdict(set)

    def clear(self) -> None:
        for held in (self.original, self.cloned, self.tid_to_weakhandle, self.sid_to_tid):
            held.clear()

    def pack(self, t: Tensor) -> _Handle:
        memory = _memory_of(t)
        number = (id(t), *memory)
        self.sid_to_tid[memory].add(number)
        handle = self.tid_to_weakhandle.get(number)
        if handle is None:
            handle = self.tid_to_weakhandle[number] = _Handle()
            self.original[handle] = t
        return handle

    def unpack(self, handle: _Handle) -> Tensor:
        found = self.cloned.get(handle, self.original.get(handle))
        if found is None:
            raise AssertionError(
                "Trying to backward outside of the 'allow_mutation_on_saved_tensors' context in which the graph was originally recorded."
            )
        return found

    def keep(self, written: Tensor) -> None:
        """Copy what was saved of a tensor's memory in its present state."""
        for number in self.sid_to_tid.get(_memory_of(written), ()):
            handle = self.tid_to_weakhandle.get(number)
            if handle is not None and handle not in self.cloned:
                self.cloned[handle] = self.original.pop(handle).clone()


def _memory_of(t: Tensor) -> tuple[int, int]:
    """A storage in one of its states."""
    return (t._storage.data_ptr(), t._storage.version)


class _CopyBeforeWriting(TorchDispatchMode):
    def __init__(self, saved: Saved) -> None:
        super().__init__()
        self.saved = saved

    def __torch_dispatch__(
        self, func: OpOverload, types: Sequence[type], args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        op: Op = func.op
        for i, a in enumerate(op.schema.arguments):
            if a.is_written:
                written = args[i] if i < len(args) else kwargs.get(a.name)
                for t in written if isinstance(written, list | tuple) else (written,):
                    if isinstance(t, Tensor):
                        self.saved.keep(t)
        return func(*args, **kwargs)


_active = False


@contextlib.contextmanager
def allow_mutation_on_saved_tensors() -> Iterator[Saved]:
    """Inside, tensors that were saved for backward may be written to in place; backward must run inside, too."""
    global _active
    if _active:
        raise RuntimeError("allow_mutation_on_saved_tensors contexts cannot be nested")
    saved = Saved()
    with saved_tensors_hooks(saved.pack, saved.unpack), _CopyBeforeWriting(saved):
        _active = True
        try:
            yield saved
        finally:
            saved.clear()
            _active = False
