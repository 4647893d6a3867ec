"""The graph of operators and storages, from recordings written down by hand."""

import numpy as np

from mindtorch_v2.profiler.model.data_flow import graph_of
from mindtorch_v2.profiler.model.memory_categories import Category, categories_of
from mindtorch_v2.profiler.model.memory_timeline import Action, sums_by_category, timeline_of
from mindtorch_v2.profiler.model.session import BACKWARD_FUNCTION, GRADIENT, OPTIMIZER_STATE, PARAMETER, DataFlow, Label, MemoryLog

from .by_hand import Event, op, record, scope

NODE = Label("MulBackward0", scope=BACKWARD_FUNCTION)
EVALUATE = "autograd::engine::evaluate_function: MulBackward0"


def recorded(events, *, operands=(), changes=(), held=(), roles=(), began=(0,)):
    """A session with memory.

    operands: (row, address, negative if written); changes: (time, address, bytes, row); held: (address, bytes) or (time, address,
    bytes); roles: (time, address, role).
    """
    session = record(events)
    held = [(0, *row) if len(row) == 2 else row for row in held]

    def columns(rows, count):
        return [np.array(column, np.int64) for column in zip(*rows, strict=True)] if rows else [np.empty(0, np.int64)] * count

    time, address, size, event = columns(list(changes), 4)
    row, operand = columns(list(operands), 2)
    flow = DataFlow(row, operand, *columns(list(roles), 3), *columns(held, 3), np.array(began, np.int64))
    return session.replace(memory=MemoryLog(time, np.zeros(len(time), np.int32), address, size, np.cumsum(size), event), flow=flow)


def test_an_operator_with_all_that_it_calls_is_one_node():
    events = [op("aten::linear", 10, 50, op("aten::t", 11, 12), op("aten::addmm", 20, 40))]
    session = recorded(events, operands=[(0, 1), (0, 2), (1, 2), (2, 2), (2, 1)], held=[(1, 8), (2, 16)], changes=[(40, 3, 4, 2)])
    graph = graph_of(session)
    (node,) = graph.nodes
    assert (node.row, node.start_ns, node.is_backward) == (0, 10, False)
    assert node.inputs == ((0, 0), (1, 0))
    assert node.outputs == ((2, 0),)
    assert [s.size_bytes for s in graph.storages] == [8, 16, 4]
    assert [s.made_ns for s in graph.storages] == [None, None, 40]


def test_operators_inside_scopes_and_functions_are_nodes_of_their_own():
    events = [scope("mine", 0, 100, op("MyFunction", 1, 90, op("aten::mul", 2, 3), op("aten::add", 4, 5)))]
    session = recorded(events, operands=[(2, 1), (3, 1)], held=[(1, 8)])
    assert [node.row for node in graph_of(session).nodes] == [2, 3]


def test_a_write_begins_a_new_version():
    events = [op("aten::add_", 10, 20), op("aten::neg", 30, 40), op("aten::add_", 50, 60)]
    session = recorded(events, operands=[(0, -1), (1, 1), (2, -1)], held=[(1, 8)])
    graph = graph_of(session)
    assert [(node.inputs, node.outputs) for node in graph.nodes] == [
        (((0, 0),), ((0, 1),)),
        (((0, 1),), ()),
        (((0, 1),), ((0, 2),)),
    ]
    assert graph.storages[0].writes == [10, 50]


def test_what_is_made_and_freed_inside_is_temporary_even_if_written():
    events = [op("aten::var", 10, 50, op("aten::sub", 20, 25), op("aten::mul_", 30, 35))]
    session = recorded(events, operands=[(0, 1), (1, 1), (2, -2)], held=[(1, 8)], changes=[(25, 2, 8, 1), (40, 2, -8, 0)])
    (node,) = graph_of(session).nodes
    assert graph_of(session).temporaries.tolist() == [1]
    assert node.outputs == ()
    assert categories_of(graph_of(session)).get((1, 0)) is Category.TEMPORARY


def test_an_address_that_is_used_again_is_another_storage():
    events = [op("aten::neg", 10, 20), op("aten::neg", 30, 40), op("aten::neg", 60, 70)]
    changes = [(20, 5, 8, 0), (25, 5, -8, -1), (40, 5, 16, 1)]
    session = recorded(events, operands=[(0, 1), (1, 1), (2, 5)], held=[(1, 8)], changes=changes)
    graph = graph_of(session)
    assert [(s.address, s.size_bytes, s.made_ns, s.freed_ns) for s in list(graph.storages)[1:]] == [
        (5, 8, 20, 25),
        (5, 16, 40, None),
    ]
    assert graph.nodes[-1].inputs == ((2, 0),)


def test_what_the_engine_does_itself_belongs_to_backward():
    events = [op(EVALUATE, 10, 50, Event(NODE, 12, 30, (op("aten::mul", 14, 20),)), op("aten::add", 35, 40))]
    session = recorded(events, operands=[(2, 1), (3, 2)], held=[(1, 8)], changes=[(20, 2, 8, 2), (40, 3, 8, 3)])
    graph = graph_of(session)
    assert [(node.row, node.is_backward) for node in graph.nodes] == [(1, True), (3, True)]
    categories = categories_of(graph)
    assert [categories.get((n, 0)) for n in range(3)] == [None, Category.AUTOGRAD_DETAIL, Category.AUTOGRAD_DETAIL]


def test_what_the_runtime_knows_and_which_comes_first():
    roles = [(0, 1, GRADIENT), (0, 1, PARAMETER), (0, 2, PARAMETER), (0, 2, OPTIMIZER_STATE), (0, 3, GRADIENT), (0, 9, PARAMETER)]
    categories = categories_of(graph_of(recorded([op("aten::neg", 1, 2)], held=[(1, 8), (2, 8), (3, 8)], roles=roles)))
    assert [categories.get((n, 0)) for n in range(3)] == [Category.PARAMETER, Category.OPTIMIZER_STATE, Category.GRADIENT]


def test_a_role_is_of_the_storage_that_is_there_then():
    changes = [(10, 5, 8, -1), (20, 5, -8, -1), (30, 5, 8, -1)]
    session = recorded([op("aten::neg", 1, 2)], changes=changes, roles=[(35, 5, PARAMETER)])
    categories = categories_of(graph_of(session))
    assert [categories.get((n, 0)) for n in range(2)] == [None, Category.PARAMETER]


def test_a_batch_its_activation_and_what_autograd_kept():
    """relu(x·w), where the product of parameters alone is kept for backward."""
    events = [
        op("aten::mul", 10, 20),  # of parameters
        op("aten::mul", 30, 40),  # with the batch
        op(EVALUATE, 50, 90, Event(NODE, 60, 70)),
    ]
    operands = [(0, 1), (0, 1), (1, 2), (1, 1)]
    changes = [(20, 3, 8, 0), (40, 4, 8, 1), (80, 3, -8, 2)]
    session = recorded(events, operands=operands, changes=changes, held=[(1, 8), (2, 8)], roles=[(0, 1, PARAMETER)])
    categories = categories_of(graph_of(session))
    assert [categories.get((n, 0)) for n in range(4)] == [
        Category.PARAMETER,
        Category.INPUT,
        Category.ACTIVATION,
        Category.ACTIVATION,
    ]


def test_between_two_recordings_memory_comes_and_goes():
    session = recorded(
        [op("aten::neg", 10, 20), op("aten::neg", 110, 120)],
        began=(0, 100),
        held=[(0, 1, 8), (0, 2, 8), (100, 1, 8), (100, 3, 32)],
        changes=[(20, 4, 16, 0), (120, 5, 64, 1)],
    )
    storages = {s.address: (s.size_bytes, s.made_ns, s.freed_ns) for s in graph_of(session).storages}
    assert storages == {
        1: (8, None, None),
        2: (8, None, 100),
        3: (32, 100, None),
        4: (16, 20, 100),
        5: (64, 120, None),
    }


def test_a_recording_that_does_not_say_when_it_began():
    session = recorded([op("aten::neg", 10, 20)], operands=[(0, 1)], changes=[(5, 1, 8, -1), (20, 2, 8, 0)], began=())
    graph = graph_of(session)
    assert [(s.address, s.made_ns) for s in graph.storages] == [(1, 5), (2, 20)]
    assert graph.nodes[-1].inputs == ((0, 0),)


def test_changes_and_sums():
    events = [op("aten::neg", 10_000, 20_000), op("aten::add_", 30_000, 40_000)]
    changes = [(20_000, 3, 100, 0), (50_000, 3, -100, -1)]
    session = recorded(events, operands=[(0, 1), (1, -3)], held=[(1, 8)], changes=changes)
    timeline = timeline_of(session)
    assert [(c.time_ns, c.action, c.storage, c.version, c.size_bytes) for c in timeline.changes] == [
        (-1, Action.PREEXISTING, 0, 0, 8),
        (20_000, Action.CREATE, 1, 0, 100),
        (30_000, Action.INCREMENT_VERSION, 1, 0, 100),
        (50_000, Action.DESTROY, 1, 1, 100),
    ]
    times, sizes = sums_by_category(timeline)
    assert times == [20, 20, 30, 50]
    assert [sum(row) for row in sizes] == [8, 108, 108, 8]
    assert sums_by_category(timeline.of_device("npu:0")) == ([], [])
