"""`replace_pattern`: other nodes in the place of those that look like a pattern."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ..nn.modules.module import Module
from ._symbolic_trace import symbolic_trace
from .graph import Graph
from .graph_module import GraphModule
from .node import Node

__all__ = ["Match", "replace_pattern"]


class Match(NamedTuple):
    """A place where the pattern was found: its last node, and the nodes of the graph for those of the pattern."""

    anchor: Node
    nodes_map: dict[Node, Node]


def _graph_of(source: Callable[..., Any] | GraphModule | Graph) -> Graph:
    if isinstance(source, GraphModule):
        return source.graph
    return source if isinstance(source, Graph) else symbolic_trace(source).graph


def replace_pattern(
    gm: GraphModule, pattern: Callable[..., Any] | GraphModule, replacement: Callable[..., Any] | GraphModule
) -> list[Match]:
    """Put the nodes of one function in the place of those of another, wherever these occur without overlap; returns the places.

    Args:
        gm: the module, which is changed.
        pattern, replacement: functions or modules with the same number of inputs.
    """
    wanted, new = _graph_of(pattern), _graph_of(replacement)
    matches = _find(gm.graph, wanted)
    inputs = [n for n in wanted.nodes if n.op == "placeholder"]
    new_inputs = [n for n in new.nodes if n.op == "placeholder"]
    if matches and len(inputs) != len(new_inputs):
        raise AssertionError(f"the pattern has {len(inputs)} inputs, the replacement {len(new_inputs)}")
    swapped: dict[Node, Node] = {}
    for match in matches:
        values = {new_input: _now(match.nodes_map[i], swapped) for i, new_input in zip(inputs, new_inputs, strict=True)}
        _replace(gm.graph, wanted, new, match, values, swapped)
    gm.recompile()
    for source in (replacement,):
        if isinstance(source, Module):
            _copy_modules(source, new, gm)
    return matches


def _now(node: Node, swapped: dict[Node, Node]) -> Node:
    """What stands in the place of a node that an earlier match has replaced."""
    while node in swapped:
        node = swapped[node]
    return node


def _replace(graph: Graph, wanted: Graph, new: Graph, match: Match, values: dict[Node, Node], swapped: dict[Node, Node]) -> None:
    with graph.inserting_before(match.anchor):
        results = graph.graph_copy(new, values)
    results = results if isinstance(results, tuple | list) else (results,)
    outputs = _outputs(wanted)
    if len(outputs) != len(results):
        raise AssertionError(f"the pattern has {len(outputs)} outputs, the replacement {len(results)}")
    for output, result in zip(outputs, results, strict=True):
        old = match.nodes_map[output]
        old.replace_all_uses_with(result)
        swapped[old] = result
    for node in reversed(wanted.nodes):
        if node.op not in ("placeholder", "output"):
            found = match.nodes_map[node]
            if not found.users and not found._erased:
                graph.erase_node(found)


def _copy_modules(source: Module, new: Graph, gm: GraphModule) -> None:
    for node in new.nodes:
        if node.op == "call_module" and not any(name == node.target for name, _ in gm.named_modules()):
            gm.add_submodule(str(node.target), source.get_submodule(str(node.target)))


def _outputs(graph: Graph) -> list[Node]:
    value = graph.output_node().args[0]
    return list(value) if isinstance(value, tuple | list) else [value]


def _find(graph: Graph, wanted: Graph) -> list[Match]:
    """The places of a pattern, from the first on, none of which shares inner nodes with another."""
    anchors = _outputs(wanted)
    taken: set[Node] = set()
    found = []
    for candidate in graph.nodes:
        mapping: dict[Node, Node] = {}
        if not _matches(anchors[0], candidate, mapping):
            continue
        if not all(output in mapping for output in anchors):
            continue
        inner = {real for node, real in mapping.items() if node.op != "placeholder"}
        if inner & taken or not _is_closed(wanted, mapping, anchors):
            continue
        taken |= inner
        last = max(inner, key=list(graph.nodes).index)
        found.append(Match(last, mapping))
    return found


def _is_closed(wanted: Graph, mapping: dict[Node, Node], outputs: list[Node]) -> bool:
    """Whether nothing outside uses an inner node of the place."""
    inner = set(mapping.values())
    return all(
        set(mapping[node].users) <= inner
        for node in wanted.nodes
        if node.op not in ("placeholder", "output") and node not in outputs
    )


def _matches(wanted: object, real: object, mapping: dict[Node, Node]) -> bool:
    if not isinstance(wanted, Node):
        if isinstance(wanted, list | tuple):
            return (
                isinstance(real, list | tuple)
                and len(wanted) == len(real)
                and all(_matches(w, r, mapping) for w, r in zip(wanted, real, strict=True))
            )
        return type(wanted) is type(real) and bool(wanted == real)
    if not isinstance(real, Node):
        return False
    if wanted in mapping:
        return mapping[wanted] is real
    if wanted.op == "placeholder":
        mapping[wanted] = real
        return True
    if wanted.op != real.op or wanted.target != real.target or len(wanted.args) != len(real.args):
        return False
    if wanted.kwargs.keys() != real.kwargs.keys():
        return False
    mapping[wanted] = real
    return all(_matches(w, r, mapping) for w, r in zip(wanted.args, real.args, strict=True)) and all(
        _matches(value, real.kwargs[key], mapping) for key, value in wanted.kwargs.items()
    )
