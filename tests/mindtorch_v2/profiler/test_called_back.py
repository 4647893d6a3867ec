"""Functions of the program that autograd calls back (`Function`s and hooks): where their operators are called from, and their own times."""

import pytest

import mindtorch_v2 as torch
from mindtorch_v2.profiler import Results, profile
from mindtorch_v2.profiler.model.session import BACKWARD_FUNCTION, FUNCTION, Frame, Info, Label

from .by_hand import Event, op, python_function, record


def marked(t):
    """The operator that tests look for."""
    return t.sinh()


def in_a_backward():
    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, t):
            return t * 2

        @staticmethod
        def backward(ctx, grad):
            marked(grad)
            return grad * 2

    Double.apply(torch.ones(3, requires_grad=True)).sum().backward()


def in_a_tensor_hook():
    w = torch.ones(3, requires_grad=True)
    (h := w * 2).register_hook(marked)
    h.sum().backward()


def in_a_leafs_hook():
    w = torch.ones(3, requires_grad=True)
    w.register_hook(marked)
    w.sum().backward()


def after_accumulation():
    w = torch.ones(3, requires_grad=True)
    w.register_post_accumulate_grad_hook(marked_gradient)
    w.sum().backward()


def marked_gradient(leaf):
    marked(leaf.grad)


def before_a_node():
    w = torch.ones(3, requires_grad=True)
    h = w.sum()
    h.grad_fn.register_prehook(lambda grads: (marked(grads[0]),))
    h.backward()


def after_a_node():
    w = torch.ones(3, requires_grad=True)
    h = w.sum()
    h.grad_fn.register_hook(lambda outs, grads: (marked(outs[0]),))
    h.backward()


def in_a_modules_forward_hooks():
    layer = torch.nn.Linear(3, 2)
    layer.register_forward_hook(lambda module, args, result: marked(result))
    layer(torch.ones(1, 3))


def in_a_modules_backward_hook():
    layer = torch.nn.Linear(3, 2)
    layer.register_full_backward_hook(lambda module, grad_input, grad_output: (marked(grad_input[0]),))
    layer(torch.ones(1, 3, requires_grad=True)).sum().backward()


def in_a_hook_of_several_tensors():
    a, b = torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)
    torch.autograd.graph.register_multi_grad_hook((a, b), lambda grads: marked(grads[0]))
    (a * b).sum().backward()


def in_unpacking():
    w = torch.ones(3, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t, marked):
        (w * w).sum().backward()


def in_a_forward():
    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, t):
            return marked(t)

    Double.apply(torch.ones(3))


PROGRAMS = [
    in_a_backward,
    in_a_tensor_hook,
    in_a_leafs_hook,
    after_accumulation,
    before_a_node,
    after_a_node,
    in_a_modules_forward_hooks,
    in_a_modules_backward_hook,
    in_a_hook_of_several_tensors,
    in_unpacking,
    in_a_forward,
]


def functions_of(stack):
    return [place.rpartition(": ")[2] for place in stack]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_the_stack_is_where_the_operator_is_called_from(program, tmp_path):
    program()
    with profile(with_stack=True) as prof:
        program()
    (sinh, *_) = [event for event in prof.events() if event.name == "aten::sinh"]
    found = functions_of(sinh.stack)
    assert found[0] == "marked"
    assert found.index(program.__name__) < found.index("test_the_stack_is_where_the_operator_is_called_from")
    assert [place.rpartition(":")[2] for place in sinh["stack"]] == found
    (row, *_) = [row for row in prof.key_averages(group_by_stack_n=1) if row.key == "aten::sinh"]
    assert functions_of(row.stack) == ["marked"]


def test_the_lines_of_a_flame_graph(tmp_path):
    """By hand, so that every event takes long enough to have a line."""
    at = [Frame("a.py", line, name) for line, name in enumerate(("main", "loss", "hook"))]
    node = Event(
        Label("MulBackward0", "op", BACKWARD_FUNCTION),
        30_000,
        90_000,
        (
            op("aten::mul", 40_000, 50_000, stack=(at[0],)),
            python_function("hook", 60_000, 80_000, op("aten::sin", 61_000, 79_000, stack=(at[2], at[0]))),
        ),
        sequence=1,
        stack=(at[0],),
    )
    session = record([op("aten::mul", 0, 20_000, sequence=1, stack=(at[1], at[0])), node], info=Info(with_stack=True))
    Results(session).export_stacks(str(tmp_path / "stacks.txt"))
    lines = (tmp_path / "stacks.txt").read_text().splitlines()
    loss = "a.py(0):_main;a.py(1):_loss"
    # the node and its operators where the forward pass made it, what the hook calls below the hook
    assert lines == [f"{loss} 20", f"{loss} 30", f"{loss} 10", "a.py(0):_main;a.py(2):_hook 18"]


class TestSelfTimes:
    """Times belong to who spent them; by hand."""

    @staticmethod
    def self_us(*events):
        return {row.key: row.self_cpu_time_total for row in Results(record(events)).key_averages()}

    def test_a_helper_of_a_function_has_its_own(self):
        helper = python_function("helper", 200, 900)
        forward = python_function("forward", 100, 1000, helper)
        assert self.self_us(op("Double", 0, 1100, forward)) == {"Double": 0.2, "forward": 0.2, "helper": 0.7}

    def test_a_hook_has_its_own(self):
        hook = python_function("hook", 100, 1000, op("aten::sin", 200, 900))
        node = Event(Label("MulBackward0", "op", BACKWARD_FUNCTION), 0, 1100, (hook,))
        evaluate = Event(Label("autograd::engine::evaluate_function: MulBackward0", "op", FUNCTION), 0, 1200, (node,))
        found = self.self_us(evaluate)
        assert list(found.values()) == [0.1, 0.2, 0.2, 0.7]

    def test_what_a_dispatched_operator_calls_has_none(self):
        """An operator's time does not depend on whether the functions that its kernel is made of were recorded."""
        kernel = python_function("kernel", 100, 1000)
        assert self.self_us(op("mylib::twice", 0, 1100, kernel)) == {"mylib::twice": 1.1, "kernel": 0}


def test_a_helper_that_sleeps_inside_of_a_function():
    import time

    def helper():
        time.sleep(0.02)

    class Slow(torch.autograd.Function):
        @staticmethod
        def forward(ctx, t):
            helper()
            return t * 2

    Slow.apply(torch.ones(3))
    with profile(with_stack=True) as prof:
        Slow.apply(torch.ones(3))
    rows = {row.key.rpartition(": ")[2]: row.self_cpu_time_total for row in prof.key_averages()}
    assert rows["helper"] >= 20_000
    assert rows["Slow"] + rows["forward"] < rows["helper"]
