"""Backward in profiles: `autograd::engine::evaluate_function: MulBackward0` around `MulBackward0`, as torch shows them."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ...._autograd.accumulating import accumulate, finish_leaf
from ...._autograd.node_loop import Watch, compile_loop
from ...._dispatch.codegen import compile_function, indent
from ...model.session import BACKWARD_FUNCTION, FUNCTION, Label, ModulePart
from .. import tasks
from ..labels import label_number
from ..memory import roles
from ..operators import call_inputs, recorder
from ..operators.recorder import Log
from ..stacks import stack_walk

if TYPE_CHECKING:
    from ...._autograd.node import Node
    from ...._autograd.observing import Gradients, Target

__all__ = ["NodeScopes", "NodeScopesWithRoles", "Owner", "forget_names", "gradients_of"]

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


def _labels_of(target: Target, owner: Owner | None) -> tuple[int, int]:
    is_leaf = target._kind == LEAF
    name = ACCUMULATE if is_leaf else target.name()
    module = owner(target) if is_leaf and owner is not None else ()
    key, numbers = (name, module) if module else name, _names.numbers
    found = numbers.get(key)
    if found is None:
        found = numbers[key] = _made_labels(name, module)
    return found


def gradients_of(target: Target, grad: Any) -> list[Any]:
    """Return the arguments of a target: the gradients of those results that can have one."""
    if target._kind != LEAF and target._multi and target._differentiable is not None:
        return [grad[i] for i in target._differentiable]
    return grad if isinstance(grad, list) else [grad]


NANOSECOND = 1e-9  # in seconds, which the recorder's clock tells


class NodeScopes:
    """Watches the engine. A token is the record of what has begun, but for its end. `owner` tells the module that has a parameter."""

    def __init__(self, log: Log, owner: Owner | None = None) -> None:
        self._log = log
        self._owner = owner

    def begin(self, target: Target, grad: Gradients, function_id: int = 0) -> tuple[float, ...]:
        # torch: gradients are inputs of the node alone
        return self._open(target, call_inputs.no_inputs() if self._log.shapes else -1, 0, function_id)

    def begin_run(self, target: Target, grad: Gradients, function_id: int = 0) -> tuple[float, ...]:
        return self._open(target, _gradient_inputs(target, grad) if self._log.shapes else -1, 1, function_id)

    def _open(self, target: Target, inputs: int, which: int, function_id: int) -> tuple[float, ...]:
        stack = stack_walk.stack_number(sys._getframe(2)) if self._log.stacks else -1
        sequence = -1 if target._kind == LEAF else target._seq
        heap_before = self._log.heap_bytes()
        return (_labels_of(target, self._owner)[which], recorder.clock(), sequence, inputs, stack, function_id, heap_before)

    def end(self, token: Any) -> None:
        label, start, *facts = token
        self._log.write(label, start, recorder.clock(), tasks.track_number(), *facts)

    end_run = end

    def loop(self) -> Callable[..., None] | None:
        """The engine's loop with these records in it, when they are all there is to observe."""
        if type(self) is not NodeScopes or self._log.heap:
            return None
        return _recorded_loop(self._log, self._owner)


def _recorded_loop(log: Log, owner: Owner | None) -> Callable[..., None]:
    """Compile the engine's loop with the lines that record its nodes, for the form of the log's records.

    A node's evaluation begins a nanosecond after the one before it ends (a reader of traces takes slices that touch for nested), and its computation when its evaluation does, unless hooks run in between or
    shapes are looked up: two readings of the clock a node, and one for a leaf, for which the engine does nothing else.
    """
    names = {
        "clock": recorder.clock, "extend": log.records.extend, "tracks": tasks.tracks, "track_number": tasks.track_number,
        "get_ident": threading.get_ident, "note_labels": _note_labels, "inputs_of": _gradient_inputs,
        "no_inputs": call_inputs.no_inputs(), "one_gradient": call_inputs.one_gradient, "geometries_": call_inputs.geometries, "pass_stack": stack_walk.pass_stack, "running": stack_walk.running,
        "frame": sys._getframe,
    }  # fmt: skip
    inner = "(label := node._labels or note_labels(node))[1], began, {}, (track := track_number() if tracks else thread), node._seq"
    outer = "label[0], start, (end := clock()), track, node._seq"
    inner += _extras(log, "inputs")
    outer += _extras(log, "no_inputs")
    alone = outer.replace("label[0]", "(node._labels or note_labels(node))[0]").replace(
        "track,", "track_number() if tracks else thread,"
    )
    # Python looks for signals when a call returns: after `start = None` there is none before the record is written
    both = [f"record = ({inner.format('ran')}, {outer})", "start = began = None", "extend(record)"]
    watch = Watch(
        first=[
            f"start = began = {'here = ' * log.stacks}None",
            "thread = get_ident()",
            *["here = frame(0)", "stack = pass_stack(here, thread)"] * log.stacks,  # that the pass was called with
            "end = clock()",
        ],
        finish_leaves=[f"end = finish_leaves(leaves, buffers, capture, observer, end, thread{', stack' * log.stacks})"],
        begin=[f"start = end + {NANOSECOND}"],
        before_run=[*_look_up_inputs("node"), "began = clock()"] if log.shapes else ["began = clock() if hooked else start"],
        after_run=["ran = clock()"],
        end=both,
        end_unwanted=[f"record = ({alone})", "start = None", "extend(record)"],
        failed=[
            "if began is not None:",
            f"    extend(({inner.format('clock()')}, {outer}))",
            "elif start is not None:",
            f"    extend(({alone}))",
        ],
        last=["running.pop(here, None)", "here = None"] * log.stacks,  # without `frame()`, at whose end a handler may raise
        names={**names, "finish_leaves": _recorded_leaves(log, owner, names)},
    )
    return compile_loop(watch)


def _look_up_inputs(target: str) -> list[str]:
    """Of the one gradient that most nodes get; a `try` that nothing leaves costs nothing."""
    return [
        "try:",
        "    if grad._geometry is None:",
        f"        grad._geometry = {call_inputs.GEOMETRY.format('grad')}",
        "    inputs = one_gradient[grad._geometry]",
        "except AttributeError:",
        f"    inputs = inputs_of({target}, grad)",  # there is none, or a list, or it was made where geometries are not noted
    ]


def _recorded_leaves(log: Log, owner: Owner | None, names: dict[str, Any]) -> Callable[..., float]:
    """Compile the function that finishes leaves and records it; it returns when the last one ended."""
    began = "began" if log.shapes else "start"
    record = (
        f"labels[1], {began}, (end := clock()), (track := track_number() if tracks else thread), -1{_extras(log, 'inputs')}, "
        f"labels[0], start, end, track, -1{_extras(log, 'no_inputs')}"
    )
    lines = [
        "for leaf in leaves:",
        "    if capture is not None or leaf._extra is None or leaf._extra.hooks:",
        "        finish_leaf(leaf, buffers, capture, observer)",
        "        end = clock()",
        "        continue",
        f"    start = end + {NANOSECOND}",
        *["    labels = labels_of(leaf, owner)"] * (owner is not None),
        *indent(["grad = buffers.get(leaf)", *_look_up_inputs("leaf"), "grad = None", "began = clock()"] if log.shapes else []),
        "    try:",
        "        accumulate(leaf, buffers.pop(leaf, None))",
        f"        record = ({record})",
        "    except BaseException:",
        f"        extend(({record}))",
        "        raise",
        "    extend(record)",
        "leaves.clear()",
        "return end",
    ]
    own = {
        "accumulate": accumulate, "finish_leaf": finish_leaf, "labels_of": _labels_of, "labels": _made_labels(ACCUMULATE, ()), "owner": owner,
    }  # fmt: skip
    parameters = "leaves, buffers, capture, observer, end, thread" + ", stack" * log.stacks
    return compile_function("finish_leaves", parameters, lines, {**names, **own}, keep=True)


def _extras(log: Log, inputs: str) -> str:
    """What stands in a record behind the sequence number."""
    nothing = "".join([f", {value}" for value in log.nothing[log.shapes + log.stacks :]])
    return f", {inputs}" * log.shapes + ", stack" * log.stacks + nothing


def _gradient_inputs(target: Target, grad: Gradients) -> int:
    return call_inputs.gradient_inputs(gradients_of(target, grad))


def _note_labels(node: Node) -> tuple[int, int]:
    names, of_node = _names, type(node)
    names.classes.append(of_node)
    labels: tuple[int, int] = _made_labels(node.name(), ())
    of_node._labels = labels
    if names is not _names:  # another thread has ended the recording meanwhile
        of_node._labels = None
    return labels


class NodeScopesWithRoles(NodeScopes):
    """Notes the gradients that leaves got, too."""

    def begin_run(self, target: Target, grad: Gradients, function_id: int = 0) -> Any:
        return super().begin_run(target, grad, function_id), target if target._kind == LEAF else None

    def end_run(self, token: Any) -> None:
        token, leaf = token
        self.end(token)
        if leaf is not None:
            roles.note_leaf(leaf)
