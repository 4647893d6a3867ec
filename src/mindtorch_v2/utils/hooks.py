"""Handles of registered hooks."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, MutableMapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from .._tensor import Tensor

__all__ = ["RemovableHandle", "unserializable_hook", "warn_if_has_hooks"]

F = TypeVar("F", bound=Callable[..., Any])
_next_id = itertools.count().__next__


class RemovableHandle:
    """Removes a hook again: by `remove()`, or at the end of a `with` block."""

    def __init__(self, hooks_dict: MutableMapping[int, Any], *, extra_dict: Any = None) -> None:
        # a plain dict cannot be referred to weakly, and its owner outlives the handle's use anyway
        self._hooks: MutableMapping[int, Any] | None = hooks_dict
        self.id: int = _next_id()
        extras = extra_dict if isinstance(extra_dict, list) else [] if extra_dict is None else [extra_dict]
        self._extras: list[MutableMapping[int, Any]] = extras

    def hooks_dict_ref(self) -> Any:
        """The registry that the hook is in, as torch's weak reference of this name gives it."""
        return self._hooks

    def remove(self) -> None:
        """Take the hook out; harmless when it is out already."""
        for hooks in (self._hooks, *self._extras):
            if hooks is not None:
                hooks.pop(self.id, None)

    def __getstate__(self) -> tuple[Any, ...]:
        return (self._hooks, self.id, tuple(self._extras))  # torch's, whose files have handles of lazy modules in them

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        global _next_id
        self._hooks, self.id = state[:2]
        self._extras = list(state[2] or ()) if len(state) > 2 else []
        if _next_id() <= self.id:  # the hooks that came with it have their ids: none of them is given again
            _next_id = itertools.count(self.id + 1).__next__

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *exc: object) -> None:
        self.remove()


def add_hook(
    hooks: Any,
    hook: Callable[..., Any],
    *,
    prepend: bool = False,
    marks: Sequence[tuple[MutableMapping[int, bool], bool]] = (),
) -> RemovableHandle:
    """Put a hook last (or first) into its registry, and its id into each of the `marks` (registry, wanted) that is wanted."""
    handle = RemovableHandle(hooks, extra_dict=[registry for registry, _ in marks])
    hooks[handle.id] = hook
    for registry, wanted in marks:
        if wanted:
            registry[handle.id] = True
    if prepend:
        hooks.move_to_end(handle.id, last=False)
    return handle


def unserializable_hook(f: F) -> F:
    """Mark a hook that is not to be saved with its tensor, so that nobody is warned of that."""
    f.__torch_unserializable__ = True  # type: ignore[attr-defined]
    return f


def warn_if_has_hooks(tensor: Tensor) -> None:
    """Warn of hooks of a tensor, which a file or another process does not get."""
    extra = tensor._extra
    for hook in (extra.hooks or {}).values() if extra is not None else ():
        if not hasattr(hook, "__torch_unserializable__"):
            warnings.warn(
                f"backward hook {hook!r} on tensor will not be serialized.  If this is expected, you can decorate the function with"
                " @torch.utils.hooks.unserializable_hook to suppress this warning",
                stacklevel=2,
            )
