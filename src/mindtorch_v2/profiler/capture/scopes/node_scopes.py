"""Backward in profiles: `autograd::engine::evaluate_function: MulBackward0` around `MulBackward0`, as torch shows them."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Any

from ...._autograd.engine import accumulate
from ...._dispatch.codegen import compile_function
from ...._dispatch.tls import state
from ...model.session import BACKWARD_FUNCTION, FUNCTION, Label, ModulePart
from .. import tasks
from ..labels import label_number
from ..memory import roles
from ..operators import call_inputs, recorder
from ..operators.recorder import Log
from ..stacks import stack_walk

__all__ = ["NodeScopes", "NodeScopesWithRoles", "Owner", "PlainNodeScopes", "forget_names", "gradients_of"]

LEAF = 2
ACCUMULATE = "torch::autograd::AccumulateGrad"

Owner = Callable[[Any], tuple[ModulePart, ...]]


class _Names:
    """Numbers of the labels of nodes in one recording, by name and module; and the classes of nodes that keep theirs."""

    def __init__(self) -> None:
        self.numbers: dict[str | tuple[str, tuple[ModulePart, ...]], tuple[int, int]] = {}
        self.classes: list[Any] = []


_names = _Names()


def forget_names() -> None:
    """Forget the labels of the recording."""
    global _names
    names, _names = _names, _Names()
    for of_node in names.classes:
        of_node._labels = None


def _made_labels(name: str, module: tuple[ModulePart, ...]) -> tuple[int, int]:
    return (
        label_number(Label(f"autograd::engine::evaluate_function: {name}", "op", FUNCTION, module=module)),
        label_number(Label(name, "op", BACKWARD_FUNCTION, module=module)),
    )


def _labels_of(target: Any, owner: Owner | None) -> tuple[int, int]:
    is_leaf = target._kind == LEAF
    name = ACCUMULATE if is_leaf else target.name()
    module = owner(target) if is_leaf and owner is not None else ()
    key, numbers = (name, module) if module else name, _names.numbers
    found = numbers.get(key)
    if found is None:
        found = numbers[key] = _made_labels(name, module)
    return found


def gradients_of(target: Any, grad: Any) -> list[Any]:
    """Return the arguments of a target: the gradients of those results that can have one."""
    if target._kind != LEAF and target._multi and target._differentiable is not None:
        return [grad[i] for i in target._differentiable]
    return grad if isinstance(grad, list) else [grad]


class NodeScopes:
    """Watches the engine. A token is the record of what has begun, but for its end. `owner` tells the module that has a parameter."""

    def __init__(self, log: Log, owner: Owner | None = None) -> None:
        self._log = log
        self._owner = owner

    def begin(self, target: Any, grad: Any, function_id: int = 0) -> Any:
        # torch: gradients are inputs of the node alone
        return self._open(target, call_inputs.no_inputs() if self._log.shapes else -1, 0, function_id)

    def begin_run(self, target: Any, grad: Any, function_id: int = 0) -> Any:
        return self._open(target, _gradient_inputs(target, grad) if self._log.shapes else -1, 1, function_id)

    def _open(self, target: Any, inputs: int, which: int, function_id: int) -> Any:
        stack = stack_walk.stack_number(sys._getframe(2)) if self._log.stacks else -1
        sequence = -1 if target._kind == LEAF else target._seq
        heap_before = self._log.heap_bytes()
        return (_labels_of(target, self._owner)[which], recorder.clock(), sequence, inputs, stack, function_id, heap_before)

    def end(self, token: Any) -> None:
        label, start, *facts = token
        self._log.write(label, start, recorder.clock(), tasks.track_number(), *facts)

    end_run = end

    def plain(self) -> PlainNodeScopes | None:
        """The shorter way to watch the same, when nobody else does."""
        simple = type(self) is NodeScopes and not self._log.heap
        return PlainNodeScopes(self._log, self._owner) if simple else None


class PlainNodeScopes:
    """`NodeScopes` for records without heap: its functions are generated for the form of the records."""

    def __init__(self, log: Log, owner: Owner | None) -> None:
        self.clock = recorder.clock
        names = {
            "clock": recorder.clock, "extend": log.records.extend, "tracks": tasks.tracks, "track_number": tasks.track_number,
            "get_ident": threading.get_ident, "note_labels": _note_labels, "accumulate": accumulate, "inputs_of": _gradient_inputs,
            "labels_of": _labels_of, "owner": owner, "stack_number": stack_walk.stack_number, "frame": sys._getframe, "tls": state,
            "stacks": {}, "labels": _made_labels(ACCUMULATE, ()), "no_inputs": call_inputs.no_inputs(),
        }  # fmt: skip
        nothing = ", stack" * log.stacks + "".join(f", {value}" for value in log.nothing[log.shapes + log.stacks :])
        none = ", no_inputs" if log.shapes else ""
        inputs = ", inputs" if log.shapes else ""
        # of a pass, all nodes have the stack that it was called with
        stack = [
            "stack = stacks.get(tls.backward_id)",
            "if stack is None:",
            "    stack = stacks[tls.backward_id] = stack_number(frame(1))",
        ] * log.stacks
        thread = "track_number() if tracks else get_ident()"
        of_node = "extend(((node._labels or note_labels(node))[{}], start, clock(), " + thread + ", node._seq{}))"
        run = [
            *["inputs = inputs_of(node, grad)"] * log.shapes,
            *stack,
            "start = clock()",
            *_ending("outs = node._run(grad, edges)", of_node.format(1, inputs + nothing)),
            "return outs",
        ]
        self.run: Callable[..., Any] = compile_function("run", "node, grad, edges", run, names)
        self.end: Callable[..., Any] = compile_function("end", "node, start", [*stack, of_node.format(0, none + nothing)], names)
        inner = f"labels[1], run_start, clock(), thread, -1{inputs}{nothing}"
        outer = f"labels[0], start, clock(), thread, -1{none}{nothing}"
        accumulating = [
            *["labels = labels_of(leaf, owner)"] * (owner is not None),
            *stack,
            "start = clock()",
            f"thread = {thread}",
            *["inputs = inputs_of(leaf, buffers.get(leaf))"] * log.shapes,
            "run_start = clock()",
            *_ending("accumulate(leaf, buffers.pop(leaf, None))", f"extend(({inner}, {outer}))"),
        ]
        self.accumulate: Callable[..., Any] = compile_function("accumulate_recorded", "leaf, buffers", accumulating, names)


def _ending(statement: str, finish: str) -> list[str]:
    """A statement, and another after it whether it fails or not."""
    return ["try:", f"    {statement}", "except BaseException:", f"    {finish}", "    raise", finish]


def _gradient_inputs(target: Any, grad: Any) -> int:
    return call_inputs.gradient_inputs(gradients_of(target, grad))


def _note_labels(node: Any) -> tuple[int, int]:
    names, of_node = _names, type(node)
    names.classes.append(of_node)
    labels: tuple[int, int] = _made_labels(node.name(), ())
    of_node._labels = labels
    if names is not _names:  # another thread has ended the recording meanwhile
        of_node._labels = None
    return labels


class NodeScopesWithRoles(NodeScopes):
    """Notes the gradients that leaves got, too."""

    def begin_run(self, target: Any, grad: Any, function_id: int = 0) -> Any:
        return super().begin_run(target, grad, function_id), target if target._kind == LEAF else None

    def end_run(self, token: Any) -> None:
        token, leaf = token
        self.end(token)
        if leaf is not None:
            roles.note_leaf(leaf)
