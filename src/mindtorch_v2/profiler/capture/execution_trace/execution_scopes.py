"""Scopes and backward nodes in an execution trace. Operators are written by `execution_layer`."""

from __future__ import annotations

import functools
import threading
from typing import TYPE_CHECKING, Any, NamedTuple

from ...._dispatch import keys
from ...._storage import next_identity
from ...._tensor import Tensor
from ...model.session import BACKWARD_FUNCTION, FUNCTION, USER_SCOPE
from ...writing.json_text import json_text
from .. import tasks
from ..scopes.node_scopes import ACCUMULATE, LEAF, gradients_of
from . import execution_values
from .execution_nodes import ID, NO_SEQUENCE, NOTHING, NodeFile, Open, Track, next_function_id, node_text

if TYPE_CHECKING:
    from ...._autograd.observing import Gradients, Target

__all__ = ["ExecutionScopes"]


class Token(NamedTuple):
    """A node that has begun."""

    track: Track
    entry: Open
    function_id: int


class ExecutionScopes:
    """Watches scopes and the engine for one file. A token is the node that has begun, with its text."""

    def __init__(self, file: NodeFile) -> None:
        self._file = file

    # --- scopes -----------------------------------------------------------------------------------------------------

    def begin_scope(
        self,
        name: str,
        args: str | None = None,
        *,
        of_thread: bool = False,
        call: tuple[tuple[Any, ...], int | None] | None = None,
    ) -> Token:
        """The same as `scopes.begin`."""
        number = threading.get_ident() if of_thread else tasks.own_track() if call is None else tasks.track_number()
        if call is None:
            inputs = NOTHING if args is None else execution_values.object_of([execution_values.described(args)])
            return self._open(self._file.track_of(number), name, USER_SCOPE, inputs)
        # torch: other arguments are left out
        operands = [o for o in call[0] if isinstance(o, Tensor | int | float)]
        kind, sequence = (USER_SCOPE, -1) if call[1] is None else (FUNCTION, call[1])
        return self._open(self._file.track_of(number), name, kind, self._values(operands), sequence=sequence)

    def end(self, token: Token) -> None:
        if token.track.leave(token.entry):
            self._file.write(token.entry[-1])

    end_scope = end

    # --- the engine -------------------------------------------------------------------------------------------------

    def begin(self, target: Target, grad: Gradients) -> Token:
        return self._open(self._file.track(), f"autograd::engine::evaluate_function: {_name(target)}", FUNCTION, NOTHING)

    def begin_run(self, target: Target, grad: Gradients) -> Token:
        track = self._file.track()
        forward = track if target._kind == LEAF or target._track is None or target._track.file is not self._file else target._track
        return self._open(
            track,
            _name(target),
            BACKWARD_FUNCTION,
            self._values(gradients_of(target, grad)),
            sequence=-1 if target._kind == LEAF else target._seq,
            # torch: not the operator that made the node, but what the thread that made it is in now
            forward_parent=forward[-1][ID],
            forward_thread=forward.tid,
        )

    end_run = end

    def _values(self, values: list[Any]) -> str:
        """Return the description of a node's arguments. What cannot be described does not keep it from running."""
        try:
            if len(values) == 1 and isinstance(values[0], Tensor) and values[0]._keys & keys.BACKENDS == keys.CPU:
                return execution_values.object_of_tensor(values[0])
            undefined = execution_values.undefined(self._file.undefined)
            return execution_values.object_of([undefined if v is None else execution_values.described(v) for v in values])
        except Exception:
            return NOTHING

    def _open(self, track: Track, name: str, scope: int, inputs: str, **facts: int) -> Token:
        node, function_id = next_identity(), next_function_id()
        text = _template(name, scope) % {
            **NO_FACTS,
            **facts,
            "node": node,
            "parent": track[-1][ID],
            "inputs": inputs,
            "function_id": function_id,
            "thread": track.tid,
        }
        entry = [node, NO_SEQUENCE, name, scope, function_id, text]
        track.append(entry)
        return Token(track, entry, function_id)


NO_FACTS = {"forward_parent": 0, "sequence": -1, "forward_thread": 0}


@functools.lru_cache(1024)
def _template(name: str, scope: int) -> str:
    """The text of nodes of this name, in which everything else is a hole."""
    holes = {key: f"%({key})s" for key in ("inputs", "function_id", "thread", *NO_FACTS)}
    return node_text("%(node)d", json_text(name).replace("%", "%%"), "%(parent)d", scope=scope, **holes)


def _name(target: Target) -> str:
    return ACCUMULATE if target._kind == LEAF else str(target.name())
