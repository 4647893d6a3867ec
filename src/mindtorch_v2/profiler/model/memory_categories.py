"""Categories of memory: parameters, gradients, optimizer state, activations, inputs, temporaries, details of autograd, or unknown.

What the runtime knows comes first: parameters, gradients and the state of optimizers. The rest follows from the data flow, with
torch's definitions: an input is what gradients come from and what comes from no gradient or parameter; an activation is what the
forward pass makes of inputs; a temporary lives inside one operator; what else a backward pass makes is a detail of autograd. Of what
torch leaves unknown, two things are known here: what lives inside one step of an optimizer is temporary, and what the forward pass
made and nobody but autograd kept is an activation.
"""

from __future__ import annotations

import enum

from .data_flow import Column, DataFlowGraph, Value
from .session import GRADIENT, OPTIMIZER_STATE, PARAMETER

__all__ = ["Categories", "Category", "categories_of"]


class Category(enum.Enum):
    """The purpose of a piece of memory; None is unknown."""

    INPUT = enum.auto()
    TEMPORARY = enum.auto()
    ACTIVATION = enum.auto()
    GRADIENT = enum.auto()
    AUTOGRAD_DETAIL = enum.auto()
    PARAMETER = enum.auto()
    OPTIMIZER_STATE = enum.auto()


class Categories:
    """The category of each version of each storage. What is known of the storage as a whole comes first."""

    def __init__(self) -> None:
        self.of_storage: dict[int, Category] = {}
        self.of_value: dict[Value, Category] = {}

    def get(self, value: Value) -> Category | None:
        return self.of_storage.get(value[0]) or self.of_value.get(value)

    def storages_of(self, *categories: Category) -> set[int]:
        """Storages that are of one of these categories as a whole."""
        return {number for number, category in self.of_storage.items() if category in categories}


def categories_of(graph: DataFlowGraph) -> Categories:
    """Decide for every value of a data flow."""
    found = Categories()
    for number, storage in enumerate(graph.storages):
        if PARAMETER in storage.roles:
            found.of_storage[number] = Category.PARAMETER
        elif GRADIENT in storage.roles:
            found.of_storage[number] = Category.GRADIENT
    for node in graph.nodes:
        for number in node.temporaries:
            found.of_storage.setdefault(number, Category.TEMPORARY)
    depending = _depending_on_gradients(graph, found)
    _find_inputs(graph, found, depending)
    _find_parameters(graph, found, depending)
    _find_activations(graph, found)
    for number, storage in enumerate(graph.storages):
        if OPTIMIZER_STATE in storage.roles:
            found.of_storage[number] = Category.OPTIMIZER_STATE
    _find_autograd_details(graph, found)
    _find_by_lifetime(graph, found)
    return found


def _depending_on_gradients(graph: DataFlowGraph, found: Categories) -> set[int]:
    """Storages of which some version comes from a gradient, a parameter or an optimizer's state."""
    depending = found.storages_of(Category.GRADIENT, Category.PARAMETER)
    depending |= {number for number, storage in enumerate(graph.storages) if OPTIMIZER_STATE in storage.roles}
    before = -1
    # a storage counts with its earlier versions too, so what one pass finds may matter to nodes before
    while before != len(depending):
        before = len(depending)
        for node in graph.nodes:
            if node.outputs and not depending.isdisjoint(node.input_storages):
                depending.update(node.output_storages)
    return depending


def _find_inputs(graph: DataFlowGraph, found: Categories, depending: set[int]) -> None:
    learned = found.storages_of(Category.GRADIENT, Category.PARAMETER)
    contributing: set[Value] = set()
    for node in reversed(graph.nodes):
        values = node.inputs + node.outputs
        if not (contributing.isdisjoint(values) and learned.isdisjoint(node.input_storages + node.output_storages)):
            contributing.update(values)
    for node in graph.nodes:
        if node.is_backward:
            contributing.difference_update(node.outputs)
    for value in contributing:
        if value[0] not in depending:
            found.of_value.setdefault(value, Category.INPUT)


def _find_parameters(graph: DataFlowGraph, found: Categories, depending: set[int]) -> None:
    """Tensors that are parameters without being called so: combined with inputs, used for a gradient, and updated by one."""
    gradients = found.storages_of(Category.GRADIENT)
    forward = {value for value, category in found.of_value.items() if category is Category.INPUT}
    candidates: set[Value] = set()
    for node in graph.nodes:
        if node.is_backward or forward.isdisjoint(node.inputs):
            continue
        if gradients.isdisjoint(node.input_storages + node.output_storages):
            forward.update(node.outputs)
            candidates.update(value for value in node.inputs if value not in forward)
    used: set[Value] = set()
    for node in reversed(graph.nodes):
        if not (used.isdisjoint(node.outputs) and gradients.isdisjoint(node.output_storages)):
            used.update(node.inputs)
    for number, _ in candidates & used:
        if number in depending:
            found.of_storage[number] = Category.PARAMETER


def _find_activations(graph: DataFlowGraph, found: Categories) -> None:
    sources: set[Category | None] = {Category.INPUT, Category.ACTIVATION}
    allowed = sources | {Category.PARAMETER, Category.TEMPORARY}
    for node in graph.nodes:
        if node.is_backward:
            continue
        categories = {found.get(value) for value in node.inputs}
        if categories & sources and categories <= allowed:
            for value in node.outputs:
                found.of_value.setdefault(value, Category.ACTIVATION)


def _find_autograd_details(graph: DataFlowGraph, found: Categories) -> None:
    for node in graph.nodes:
        if node.is_backward:
            for number, version in node.outputs:
                if version == 0 or found.get((number, version - 1)) in (None, Category.AUTOGRAD_DETAIL):
                    found.of_value.setdefault((number, version), Category.AUTOGRAD_DETAIL)


def _find_by_lifetime(graph: DataFlowGraph, found: Categories) -> None:
    """Tell what is still unknown by where it was made and freed."""

    def around(column: Column, row: int) -> int:
        return -1 if row < 0 else int(column.item(row))

    for number, storage in enumerate(graph.storages):
        if storage.made_ns is None or storage.freed_ns is None or number in found.of_storage:
            continue
        step = around(graph.optimizer_step, storage.made_by)
        kept_by_autograd = around(graph.evaluation, storage.made_by) < 0 <= around(graph.evaluation, storage.freed_by)
        inside_step = 0 <= step == around(graph.optimizer_step, storage.freed_by)
        if inside_step or kept_by_autograd:
            for version in range(len(storage.writes) + 1):
                category = Category.TEMPORARY if inside_step else Category.ACTIVATION
                found.of_value.setdefault((number, version), category)
