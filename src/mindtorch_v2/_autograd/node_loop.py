"""The engine's loop over nodes: pieces of source, which are compiled to one function.

A call for each piece would cost a tenth of a small node, and so would asking at each node whether somebody observes it. So the loop is
compiled in several forms: for nobody, for an observer that is called, and with the lines of a recorder in it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from heapq import heappop, heappush, heappushpop
from typing import Any

from .._dispatch import keys
from .._dispatch.codegen import compile_function, indent
from .._dispatch.tls import state
from .._tensor import Tensor
from .accumulating import finish_leaves
from .fitting import fit
from .gradient_memory import is_alone
from .hook_calls import run_post_hooks, run_pre_hooks, run_result_hooks
from .node import LEAF, NODE, OUTPUT

__all__ = ["PARAMETERS", "Watch", "compile_loop", "observed_loop", "put_gradient", "unobserved_loop"]

Loop = Callable[..., None]

# A heap of ready nodes, latest made first; leaves that are ready; how many gradients each target waits for; target → the sum of its gradients
# so far, or a list of such sums for several results. `call` computes a node's gradients for an observer.
PARAMETERS = "ready, leaves, waiting, buffers, keep_graph, create_graph, capture, observer, call"


@dataclass(frozen=True)
class Watch:
    """Lines of someone who watches the loop, and the objects that they name."""

    first: list[str] = field(default_factory=list)  # before the loop; `last` comes after them, too, if one of them raises
    finish_leaves: list[str] = field(default_factory=lambda: ["finish_leaves(leaves, buffers, capture, observer)"])
    begin: list[str] = field(default_factory=list)  # of a node's evaluation
    before_run: list[str] = field(
        default_factory=list
    )  # of its own computation; `hooked` says whether there may have been hooks before
    run: str = "node._run(grad, edges)"
    after_run: list[str] = field(default_factory=list)
    end: list[str] = field(default_factory=list)
    end_unwanted: list[str] = field(
        default_factory=list
    )  # in place of `end` where a node's gradients are not wanted: it did not run
    failed: list[str] = field(default_factory=list)  # an exception leaves the loop
    last: list[str] = field(default_factory=list)  # when it is left, however that happens
    names: Mapping[str, Any] = field(default_factory=dict)


# `following` is a ready node that is kept out of the heap: a chain of nodes never touches it.
TAKE_NEXT = """\
if following is None:
    if not ready:
        return
    node = heappop(ready)[1]
elif ready and -ready[0][0] > following._seq:
    node = heappushpop(ready, (-following._seq, following))[1]
else:
    node = following
following = None
edges = node._edges
grad = buffers.pop(node, None)""".splitlines()

BEFORE_HOOKS = """\
if grad is None and node._multi:
    grad = [None] * len(node._metas)
hooked = capture is not None or node._hooks is not None
if hooked:
    edges, grad = before_run(node, grad, capture)
    if edges is None:""".splitlines()  # its gradients are not wanted

AFTER_HOOKS = """\
if hooked and node._hooks is not None and node._hooks.post:
    outs = run_post_hooks(node, outs, grad)
grad = None""".splitlines()

# Each gradient is brought to the shape and dtype of what it is the gradient of. As in torch, all are before what was saved is freed, and they are
# summed after. (`at` is counted by hand: `enumerate` takes 60 ns.)
PASS_ON = """\
at = -1
for edge in edges:
    at += 1
    if edge is None:
        continue
    target = edge
    kind = edge._kind
    out = outs[at]
    if out is not None:
        if kind == NODE:
            shape = edge._shape
            dtype = edge._dtype
        elif kind == LEAF:
            shape = edge._array.shape
            dtype = edge.dtype
        else:
            target = edge.node
            shape, dtype = target._metas[edge.index]
        if out._array.shape != shape or out.dtype is not dtype:
            out = fit(out, shape, dtype, node, at)
        if target is edge and edge not in buffers:
            buffers[edge] = out
        else:
            sums.append((edge, out))
    elif kind == OUTPUT:
        target = edge.node""".splitlines()

COUNT_DOWN = """\
left = waiting[target] - 1
if left:
    waiting[target] = left
elif kind == LEAF:
    leaves.append(target)
elif following is None:
    following = target
elif target._seq > following._seq:
    heappush(ready, (-following._seq, following))
    following = target
else:
    heappush(ready, (-target._seq, target))""".splitlines()

FREE_AND_SUM = """\
if not keep_graph:
    node._release()
if sums:
    for edge, out in sums:
        held = buffers.pop(edge, None)  # an Output is no key
        if held is None:
            put_gradient(buffers, edge, out)
        else:
            buffers[edge] = sum_gradients(held, out, create_graph, outs)
    sums.clear()
outs = out = held = None""".splitlines()


def compile_loop(watch: Watch) -> Loop:
    """Run the nodes of a heap and those that become ready, latest made first. Leaves are finished as soon as they are ready."""
    each_node = [
        "if leaves:",
        *indent(watch.finish_leaves),
        *TAKE_NEXT,
        *watch.begin,
        *BEFORE_HOOKS,
        *indent(indent([*watch.end_unwanted, "continue"])),
        *watch.before_run,
        f"outs = {watch.run}",
        *watch.after_run,
        *AFTER_HOOKS,
        *PASS_ON,
        *indent(COUNT_DOWN),
        *FREE_AND_SUM,
        *watch.end,
    ]
    loop = ["while True:", *indent(each_node)]
    if watch.failed:
        loop = ["try:", *indent(loop), "except BaseException:", *indent([*watch.failed, "raise"])]
    loop = [*watch.first, *loop]
    if watch.last:
        loop = ["try:", *indent(loop), "finally:", *indent(watch.last)]
    lines = ["following = None", "sums = []  # edges and gradients to add to what is there", *loop]
    return compile_function("run_nodes", PARAMETERS, lines, {**_NAMES, **watch.names}, keep=True)


def _before_run(node: Any, grad: Any, capture: Any) -> tuple[tuple[Any, ...] | None, Any]:
    """The edges along which a node's gradients are to go, None if nowhere, and the gradient that its hooks leave."""
    edges = node._edges
    hooks = node._hooks
    if hooks is not None:
        grad = run_result_hooks(node, grad)
    if capture is not None:
        if node in capture.positions:
            capture.store(node, grad)
        if node not in capture.needed:
            return None, None
        wanted = capture.wanted
        edges = tuple([e if e is not None and (e.node if e._kind == OUTPUT else e) in wanted else None for e in edges])
    if hooks is not None and hooks.pre:
        grad = run_pre_hooks(node, grad)
    return edges, grad


def put_gradient(buffers: dict[Any, Any], edge: Any, grad: Any) -> None:
    """Add a gradient to what has arrived for an edge's target."""
    if edge._kind == OUTPUT:
        node, index = edge.node, edge.index
        buffer = buffers.get(node)
        if buffer is None:
            buffer = buffers[node] = [None] * len(node._metas)
        held, buffer[index] = buffer[index], None
        buffer[index] = grad if held is None else _sum_gradients(held, grad, state.grad_enabled)
    else:
        held = buffers.pop(edge, None)
        buffers[edge] = grad if held is None else _sum_gradients(held, grad, state.grad_enabled)


FOREIGN = keys.BATCHED | keys.DUAL  # a gradient with one of these is not added to one without it in place


def _sum_gradients(held: Tensor, grad: Tensor, create_graph: bool, outs: Any = ()) -> Tensor:
    """Add to a buffered gradient, in place when nobody else can see it but the gradients `outs` that the node has just made."""
    # the caller's variable and the argument here; torch: a view is added out of place, because it shares its memory with its base
    seen = 2 + sum([out is held for out in outs])
    if (
        not create_graph
        and held.dtype is grad.dtype
        and held._base is None
        and is_alone(held, seen, held._array)
        and not grad._keys & FOREIGN
    ):
        return held.add_(grad)
    return held + grad


_NAMES: dict[str, Any] = {
    "LEAF": LEAF, "NODE": NODE, "OUTPUT": OUTPUT, "heappop": heappop, "heappush": heappush, "heappushpop": heappushpop, "fit": fit,
    "before_run": _before_run, "run_post_hooks": run_post_hooks, "put_gradient": put_gradient, "sum_gradients": _sum_gradients,
    "finish_leaves": finish_leaves,
}  # fmt: skip

unobserved_loop = compile_loop(Watch())
# `call` tells the observer of a node's own computation.
observed_loop = compile_loop(
    Watch(
        first=["scope = None"],
        begin=["if observer is not None:", "    scope = observer.begin(node, grad)"],
        run="call(node, grad, edges)",
        end=["if observer is not None:", "    observer.end(scope)", "    scope = None"],
        end_unwanted=["if observer is not None:", "    observer.end(scope)", "    scope = None"],
        failed=["if scope is not None:", "    observer.end(scope)"],
    )
)
