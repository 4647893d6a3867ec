"""Checkpoints with `use_reentrant=False`: hooks keep nothing of what is saved for backward, and compute it again when it is asked for.

Each saved tensor is replaced by an empty `Holder`. The first of them that backward opens has the function run again, with hooks that
put the tensors it saves into the holders, in the same order. What an inner checkpoint saves goes to its own hooks; its inputs are
saved like tensors of the outer one, so that opening them computes the outer one again first.
"""

from __future__ import annotations

import itertools
import threading
import weakref
from collections.abc import Callable
from typing import Any

from ..._autograd.grad_mode import enable_grad
from ..._autograd.saved import Packed, pack
from ..._dispatch.tls import state
from ..._tensor import Tensor
from ...autograd.graph import saved_tensors_hooks

__all__ = ["DETERMINISM_CHECKS", "CheckpointError", "Frame", "GraphExecGroup"]

TIP = (
    "To see the operators of both computations, pass debug=True to torch.utils.checkpoint.checkpoint(...), or run it in "
    "`with torch.utils.checkpoint.set_checkpoint_debug_enabled(True):`."
)


class CheckpointError(RuntimeError):
    """What was computed again is not what was computed first."""


class _Stop(Exception):  # noqa: N818 - not an error
    """All that is needed has been computed again."""


def _metadata(x: Tensor) -> dict[str, Any]:
    return {"shape": x.shape, "dtype": x.dtype, "device": x.device}


# What of saved tensors must be the same in both computations.
DETERMINISM_CHECKS: dict[str, Callable[[Tensor], Any]] = {"default": _metadata, "none": lambda x: None}


class GraphExecGroup:
    """Backward passes in this context compute each checkpoint again at most once. They must not need the same saved tensors."""

    _of_thread = threading.local()

    def __enter__(self) -> GraphExecGroup:
        current = self._get_current_group()
        if current is not None:
            raise RuntimeError(f"GraphExecGroup contexts cannot be nested. Already inside group {current}")
        self._of_thread.group = self
        return self

    def __exit__(self, *exception: object) -> None:
        self._of_thread.group = None

    @classmethod
    def _get_current_group(cls) -> GraphExecGroup | None:
        group: GraphExecGroup | None = vars(cls._of_thread).get("group")
        return group


_outside = itertools.count(-1, -1)


def _current_pass() -> int | GraphExecGroup:
    """What tells passes apart: a group of them, the backward pass that runs, or a number of its own for whoever asks outside of one."""
    return GraphExecGroup._get_current_group() or (state.backward_id if state.backward_depth else next(_outside))


class Holder:
    """The place of a saved tensor: filled in each pass, and emptied when the tensor is taken."""

    __slots__ = ("__weakref__", "tensors")

    def __init__(self) -> None:
        self.tensors: dict[Any, Tensor] = {}  # by pass


class Frame:
    """One call of a function: how it is called again, with which inputs, and the places of what it saved."""

    def __init__(self, call_again: Callable[..., None], *, early_stop: bool, metadata_of: Callable[[Tensor], Any]) -> None:
        self.call_again, self.early_stop, self.metadata_of = call_again, early_stop, metadata_of
        self.inputs: list[Any] = []
        self.holders: list[weakref.ref[Holder]] = []
        self.metadata: list[Any] = []
        self.is_complete = False  # the first computation has ended
        self.explain: Callable[[CheckpointError], CheckpointError] | None = None
        self._done: set[Any] = set()  # passes in which it was called again

    def save_inputs(self, args: tuple[Any, ...]) -> None:
        """Keep the inputs, in the care of the checkpoint around this one, if there is any."""
        self.inputs = [pack(x) if isinstance(x, Tensor) else x for x in args]

    def hooks(self) -> saved_tensors_hooks:
        """The hooks for the first computation."""
        return saved_tensors_hooks(self._leave, self._fetch)

    def _leave(self, x: Tensor) -> Holder:
        holder = Holder()
        self.holders.append(weakref.ref(holder))
        self.metadata.append(self.metadata_of(x))
        return holder

    def _fetch(self, holder: Holder) -> Tensor:
        try:
            return self._recomputed(holder)
        except CheckpointError as error:
            if self.explain is None:
                raise
            raise self.explain(error) from error

    def _recomputed(self, holder: Holder) -> Tensor:
        which = _current_pass()
        if which not in self._done:
            self._recompute(which)
        if which not in holder.tensors:
            in_group = isinstance(which, GraphExecGroup)
            hint = "Backward passes of one GraphExecGroup must not need the same saved tensors. " if in_group else ""
            raise CheckpointError(
                f"torch.utils.checkpoint: Unpack is being triggered for a tensor that was already unpacked once. {hint}If you are "
                "calling ctx.saved_tensors in backward, make sure to do so only once."
            )
        return holder.tensors.pop(which)

    def _recompute(self, which: int | GraphExecGroup) -> None:
        run = _Recomputation(self, which)
        inputs = [_opened(x) for x in self.inputs]
        try:
            with saved_tensors_hooks(run.keep, _same), enable_grad():
                self.call_again(*inputs)
        except _Stop:
            pass
        self._done.add(which)
        run.check()


def _opened(saved: Any) -> Tensor | None:
    if not isinstance(saved, Packed):
        return saved
    if saved.unpack_hook is None and saved.payload._storage.version != saved.version:
        raise RuntimeError(
            "one of the variables needed for gradient computation has been modified by an inplace operation: an input of a "
            f"checkpoint is at version {saved.payload._storage.version}; expected version {saved.version} instead."
        )
    return saved.open(None)  # type: ignore[arg-type]  # asked for in the error above only


def _same(x: Tensor) -> Tensor:
    return x


class _Recomputation:
    """A function runs again, and what it saves is put where it is missing."""

    def __init__(self, frame: Frame, which: int | GraphExecGroup) -> None:
        self.frame, self.which = frame, which
        self.count = 0
        self.different: list[str] = []
        self.is_longer = False  # than a first computation that has not ended, in which backward was called

    def keep(self, x: Tensor) -> Tensor:
        """The pack hook."""
        frame, position = self.frame, self.count
        self.count += 1
        x = x.detach() if x.requires_grad else x
        if position >= len(frame.holders):
            if frame.is_complete:
                raise CheckpointError(
                    "torch.utils.checkpoint: trying to save more tensors during recomputation than during the original forward "
                    f"pass.\n{TIP}"
                )
            self.is_longer = True
            return x
        holder = frame.holders[position]()
        if holder is not None:
            holder.tensors[self.which] = x
            self._compare(position, frame.metadata_of(x))
        if frame.early_stop and self.count == len(frame.holders):
            raise _Stop
        return x

    def _compare(self, position: int, metadata: dict[str, Any] | None) -> None:
        saved = self.frame.metadata[position]
        if metadata != saved:
            self.different.append(f"tensor at position {position}:\nsaved metadata: {saved}\nrecomputed metadata: {metadata}\n")

    def check(self) -> None:
        """Complain about what differs from the first computation."""
        expected = len(self.frame.holders)
        if self.is_longer:
            return
        if self.count != expected:
            raise CheckpointError(
                "torch.utils.checkpoint: A different number of tensors was saved during the original forward and recomputation.\n"
                f"Number of tensors saved during forward: {expected}\nNumber of tensors saved during recomputation: {self.count}.\n{TIP}"
            )
        if self.different:
            raise CheckpointError(
                "torch.utils.checkpoint: Recomputed values for the following tensors have different metadata than during the "
                f"forward pass.\n{''.join(self.different)}.\n{TIP}"
            )
