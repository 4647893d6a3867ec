"""Categories of memory: parameters, gradients, optimizer state, activations, inputs, temporaries, details of autograd, or unknown.

What the runtime knows comes first: parameters, gradients and the state of optimizers. The rest follows from the data flow, with
torch's definitions: an input is what gradients come from and what comes from no gradient or parameter; an activation is what the
forward pass makes of inputs; a temporary lives inside one operator; what else a backward pass makes is a detail of autograd. Of what
torch leaves unknown, two things are known here: what lives inside one step of an optimizer is temporary, and what the forward pass
made and nobody but autograd kept is an activation.
"""

from __future__ import annotations

import enum

import numpy as np

from .data_flow import Column, DataFlowGraph, Links, Value
from .session import GRADIENT, OPTIMIZER_STATE, PARAMETER
from .storage_lives import NEVER

__all__ = ["BY_NUMBER", "Categories", "Category", "categories_of"]


class Category(enum.Enum):
    """The purpose of a piece of memory; None is unknown."""

    INPUT = enum.auto()
    TEMPORARY = enum.auto()
    ACTIVATION = enum.auto()
    GRADIENT = enum.auto()
    AUTOGRAD_DETAIL = enum.auto()
    PARAMETER = enum.auto()
    OPTIMIZER_STATE = enum.auto()


UNKNOWN = 0
BY_NUMBER: tuple[Category | None, ...] = (None, *Category)


class Categories:
    """The category of each version of each storage, by number; 0 is unknown. What is known of the storage as a whole comes first."""

    def __init__(self, graph: DataFlowGraph) -> None:
        self.first_value, self.storage = graph.storages.first_value, graph.storages.of_value
        self.of_storage = np.zeros(len(graph.storages), np.int8)
        self.of_value = np.zeros(len(self.storage), np.int8)

    @property
    def all(self) -> Column:
        """The category of each value."""
        whole = self.of_storage[self.storage]
        return np.where(whole == UNKNOWN, self.of_value, whole)

    def get(self, value: Value) -> Category | None:
        storage, version = value
        return BY_NUMBER[self.of_storage[storage] or self.of_value[self.first_value[storage] + version]]

    def is_whole(self, *categories: Category) -> Column:
        """Whether each storage is of one of these categories as a whole."""
        return np.isin(self.of_storage, [category.value for category in categories])

    def set_default(self, values: Column, category: Category) -> None:
        """Set the category of these values, where none is known."""
        self.of_value[values[self.of_value[values] == UNKNOWN]] = category.value


def categories_of(graph: DataFlowGraph) -> Categories:
    """Decide for every value of a data flow."""
    found = Categories(graph)
    found.of_storage[graph.storages.has_role(GRADIENT)] = Category.GRADIENT.value
    found.of_storage[graph.storages.has_role(PARAMETER)] = Category.PARAMETER.value
    temporary = graph.temporaries
    found.of_storage[temporary[found.of_storage[temporary] == UNKNOWN]] = Category.TEMPORARY.value
    depending = _depending_on_gradients(graph, found)
    _find_inputs(graph, found, depending)
    _find_parameters(graph, found, depending)
    _find_activations(graph, found)
    found.of_storage[graph.storages.has_role(OPTIMIZER_STATE)] = Category.OPTIMIZER_STATE.value
    _find_autograd_details(graph, found)
    _find_by_lifetime(graph, found)
    return found


def _reached(marks: Column, source: Column, target: Column) -> Column:
    """The marks after one pass over these arrows in their order: an arrow from what is marked marks what it points to."""
    reached = bytearray(marks.astype(np.uint8).tobytes())
    for i, k in zip(source.tolist(), target.tolist(), strict=True):
        if reached[i]:
            reached[k] = 1
    return np.frombuffer(reached, bool)


def _touches(graph: DataFlowGraph, is_marked: Column, *links: Links) -> Column:
    """Whether each node has a marked value among these."""
    touching = np.zeros(len(graph.row), bool)
    for nodes, values in links:
        touching[nodes[is_marked[values]]] = True
    return touching


def _in_order(*links: Links) -> tuple[Column, Column, Column]:
    """The nodes, the values, and of which links each is, node by node; of a node in the order of the links."""
    node, value = (np.concatenate(columns) for columns in zip(*links, strict=True))
    which = np.repeat(np.arange(len(links)), [len(link.node) for link in links])
    order = np.argsort(node, kind="stable")
    return node[order], value[order], which[order]


def _depending_on_gradients(graph: DataFlowGraph, found: Categories) -> Column:
    """Whether some version of each storage comes from a gradient, a parameter or an optimizer's state."""
    depending = found.is_whole(Category.GRADIENT, Category.PARAMETER) | graph.storages.has_role(OPTIMIZER_STATE)
    node, value, is_output = _in_order(graph.inputs, graph.outputs)
    storage, node = found.storage[value], node + len(depending)
    source, target = np.where(is_output, node, storage), np.where(is_output, storage, node)
    marks = np.concatenate([depending, np.zeros(len(graph.row), bool)])
    # a storage counts with its earlier versions too, so what one pass finds may matter to nodes before
    while (reached := _reached(marks, source, target)).sum() > marks.sum():
        marks = reached
    return marks[: len(depending)]


def _find_inputs(graph: DataFlowGraph, found: Categories, depending: Column) -> None:
    learned = found.is_whole(Category.GRADIENT, Category.PARAMETER)[found.storage]
    # a node contributes if it is about what is learned, or about a value that a later node contributes with
    node, value, _ = _in_order(graph.inputs, graph.outputs)
    by_value = np.argsort(value, kind="stable")
    node, value = node[by_value], value[by_value]
    same = np.flatnonzero(value[1:] == value[:-1])
    later, earlier = node[same + 1], node[same]
    order = np.argsort(-later, kind="stable")
    contributes = _reached(_touches(graph, learned, graph.inputs, graph.outputs), later[order], earlier[order])
    contributing = np.zeros(len(found.storage), bool)
    contributing[value[contributes[node]]] = True
    contributing[graph.outputs.value[graph.is_backward[graph.outputs.node]]] = False
    found.set_default(np.flatnonzero(contributing & ~depending[found.storage]), Category.INPUT)


def _find_parameters(graph: DataFlowGraph, found: Categories, depending: Column) -> None:
    """Tensors that are parameters without being called so: combined with inputs, used for a gradient, and updated by one."""
    is_gradient = found.is_whole(Category.GRADIENT)[found.storage]
    values, nobody = len(found.storage), np.zeros(len(graph.row), bool)

    # forward nodes, from inputs on
    is_forward = ~graph.is_backward & ~_touches(graph, is_gradient, graph.inputs, graph.outputs)
    node, value, is_output = _in_order(*(_of_nodes(links, is_forward) for links in (graph.inputs, graph.outputs)))
    marks = np.concatenate([found.of_value == Category.INPUT.value, nobody])
    source, target = np.where(is_output, node + values, value), np.where(is_output, value, node + values)
    marks = _reached(marks, source, target)
    is_candidate = np.zeros(values, bool)
    is_candidate[graph.inputs.value[marks[values:][graph.inputs.node]]] = True
    is_candidate &= ~marks[:values]

    # nodes that gradients come from, backwards
    node, value, is_output = (column[::-1] for column in _in_order(graph.inputs, graph.outputs))
    marks = np.concatenate([np.zeros(values, bool), _touches(graph, is_gradient, graph.outputs)])
    source, target = np.where(is_output, value, node + values), np.where(is_output, node + values, value)
    is_used = _reached(marks, source, target)[:values]
    storages = found.storage[is_candidate & is_used]
    found.of_storage[storages[depending[storages]]] = Category.PARAMETER.value


def _of_nodes(links: Links, is_wanted: Column) -> Links:
    """Those of some nodes."""
    wanted = is_wanted[links.node]
    return Links(links.node[wanted], links.value[wanted])


def _find_activations(graph: DataFlowGraph, found: Categories) -> None:
    """What forward nodes make of inputs and activations, if all else that they take is known to be no gradient."""
    is_source, is_other = 1, 2
    effect = [is_other] * len(BY_NUMBER)
    for category in (Category.PARAMETER, Category.TEMPORARY):
        effect[category.value] = 0
    for category in (Category.INPUT, Category.ACTIVATION):
        effect[category.value] = is_source
    kinds = bytearray(found.all.tobytes())
    of_node = bytearray(len(graph.row))
    links = _in_order(*(_of_nodes(links, ~graph.is_backward) for links in (graph.inputs, graph.outputs)))
    for node, value, is_output in zip(*(column.tolist() for column in links), strict=True):
        if not is_output:
            of_node[node] |= effect[kinds[value]]
        elif of_node[node] == is_source and kinds[value] == UNKNOWN:
            kinds[value] = Category.ACTIVATION.value
    found.set_default(np.flatnonzero(np.frombuffer(kinds, np.int8) == Category.ACTIVATION.value), Category.ACTIVATION)


def _find_autograd_details(graph: DataFlowGraph, found: Categories) -> None:
    """What backward nodes make, and what they write to if that was unknown before."""
    made = graph.outputs.value[graph.is_backward[graph.outputs.node]]
    is_new = made == found.first_value[found.storage[made]]
    found.set_default(made[is_new], Category.AUTOGRAD_DETAIL)
    for value in made[~is_new].tolist():
        before = found.of_storage[found.storage[value]] or found.of_value[value - 1]
        if before in (UNKNOWN, Category.AUTOGRAD_DETAIL.value) and found.of_value[value] == UNKNOWN:
            found.of_value[value] = Category.AUTOGRAD_DETAIL.value


def _find_by_lifetime(graph: DataFlowGraph, found: Categories) -> None:
    """Tell what is still unknown by where it was made and freed."""
    storages = graph.storages

    def around(column: Column, rows: Column) -> Column:
        return np.append(column, -1)[rows]  # outside of all events, nothing is around

    is_known = (storages.made_ns != NEVER) & (storages.freed_ns != NEVER) & (found.of_storage == UNKNOWN)
    step = around(graph.optimizer_step, storages.made_by)
    is_in_step = is_known & (step >= 0) & (step == around(graph.optimizer_step, storages.freed_by))
    is_backward = [around(graph.evaluation, rows) >= 0 for rows in (storages.made_by, storages.freed_by)]
    is_kept = is_known & ~is_backward[0] & is_backward[1]
    found.set_default(np.flatnonzero(is_in_step[found.storage]), Category.TEMPORARY)
    found.set_default(np.flatnonzero(is_kept[found.storage]), Category.ACTIVATION)
