"""The engine: deep graphs, threads, nesting, failures, memory."""

from __future__ import annotations

import gc
import sys
import threading
import weakref

import numpy as np
import pytest

import mindtorch_v2 as torch
from mindtorch_v2._autograd import observing
from mindtorch_v2._dispatch import keys
from mindtorch_v2._dispatch.op import Op
from mindtorch_v2.autograd import Function

DEPTH = 100_000


def leaf(*values):
    return torch.tensor(list(values), dtype=torch.float64, requires_grad=True)


def test_deep_graphs_run_and_are_freed_without_recursion():
    x = leaf(1.0)
    y = x
    for _ in range(DEPTH):
        y = y + 1
    y.sum().backward()
    assert x.grad.item() == 1
    del y  # frees the chain


def test_deep_graphs_that_never_ran_are_freed():
    x = leaf(1.0)
    y = x
    for _ in range(DEPTH):
        y = y * 1.0
    node = weakref.ref(y.grad_fn)
    del y
    assert node() is None


def test_deep_graph_to_inputs():
    x = leaf(1.0)
    y = x
    for _ in range(20_000):
        y = y * 1.0
    assert torch.autograd.grad(y.sum(), x)[0].item() == 1


def test_wide_graphs():
    x = leaf(1.0)
    y = x * 0
    for i in range(2000):
        y = y + x * float(i)
    y.sum().backward()
    assert x.grad.item() == sum(range(2000))


def test_later_nodes_run_first():
    order = []

    def watch(name, t):
        t.grad_fn.register_prehook(lambda grads: order.append(name))
        return t

    x = leaf(1.0)
    a = watch("a", x * 1)
    b = watch("b", x * 2)
    c = watch("c", a * 3)
    (b + c).sum().backward()
    assert order == ["c", "b", "a"]


def test_threads_accumulate_into_one_leaf():
    x = leaf(1.0)
    errors = []

    def work():
        try:
            for _ in range(50):
                (x * 2 + x).sum().backward()
        except Exception as e:
            errors.append(e)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not errors
    assert x.grad.item() == 3 * 50 * 8


def test_threads_share_a_retained_graph():
    x = leaf(2.0)
    y = (x * x * x).sum()
    results = []

    def work():
        for _ in range(20):
            results.append(torch.autograd.grad(y, x, retain_graph=True)[0].item())

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert results == [12.0] * 80


def test_grad_mode_belongs_to_the_thread():
    seen = []
    with torch.no_grad():
        thread = threading.Thread(target=lambda: seen.append(torch.is_grad_enabled()))
        thread.start()
        thread.join()
    assert seen == [True]


class Nested(Function):
    """Calls backward in its backward, `depth` times over."""

    @staticmethod
    def forward(ctx, x, depth):
        ctx.depth = depth
        return x * 1

    @staticmethod
    def backward(ctx, g):
        if ctx.depth:
            with torch.enable_grad():
                y = torch.ones(1, dtype=torch.float64, requires_grad=True)
                Nested.apply(y, ctx.depth - 1).sum().backward()
            return y.grad * g, None
        return g * 2, None


@pytest.mark.parametrize("depth", [1, 10, 500])
def test_backward_inside_backward(depth):
    x = leaf(1.0)
    Nested.apply(x, depth).sum().backward()
    assert x.grad.item() == 2


def test_errors_of_nested_backward_reach_the_caller():
    class Fails(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            raise ValueError("in backward")

    x = leaf(1.0)
    with pytest.raises(ValueError, match=r"in backward"):
        Fails.apply(x * 2).sum().backward()
    assert torch.is_grad_enabled()
    (x * 2).sum().backward()
    assert x.grad.item() == 2


def test_a_failing_hook_leaves_the_engine_usable():
    x = leaf(1.0)

    def fail(g):
        raise KeyError("hook")

    handle = x.register_hook(fail)
    y = (x * 2).sum()
    with pytest.raises(KeyError):
        y.backward(retain_graph=True)
    handle.remove()
    y.backward()
    assert x.grad.item() == 2


def test_graph_is_freed_without_the_garbage_collector():
    x = leaf(1.0, 2.0)
    gc.collect()
    gc.disable()
    try:
        y = (x.exp() * x).tanh().sum()
        node = weakref.ref(y.grad_fn)
        del y
        assert node() is None
    finally:
        gc.enable()


def test_backward_frees_saved_tensors():
    x = leaf(1.0, 2.0)
    a = x * 2
    y = a * a
    kept = weakref.ref(a)
    y.sum().backward()
    del a
    assert kept() is None
    assert y.grad_fn is not None


def test_the_first_gradient_is_taken_over_without_a_copy():
    class Gives(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            made = g * 3
            addresses.append(made.data_ptr())
            return made

    addresses = []
    x = leaf(1.0, 2.0)
    Gives.apply(x).sum().backward()
    assert x.grad.data_ptr() == addresses[0]


def test_a_gradient_that_somebody_holds_is_copied():
    held = []
    x = leaf(1.0, 2.0)
    x.register_hook(held.append)
    (x * 3).sum().backward()
    x.grad.add_(1)
    assert held[0].tolist() == [3, 3]
    y, z = leaf(1.0), leaf(1.0)
    (y + z).backward(torch.ones(1, dtype=torch.float64))
    y.grad.add_(1)
    assert z.grad.item() == 1


def test_buffered_gradients_of_others_are_not_written():
    x = leaf(1.0)
    a, b = x * 1, x * 1
    held = []
    a.register_hook(held.append)
    (a + b + x).backward(torch.ones(1, dtype=torch.float64))
    assert held[0].item() == 1
    assert x.grad.item() == 3


class Watcher:
    """An engine observer that writes down what it sees."""

    def __init__(self):
        self.log = []

    def begin(self, target, grad):
        name = "AccumulateGrad" if isinstance(target, torch.Tensor) else target.name()
        self.log.append(("begin", name))
        return name

    def end(self, token):
        self.log.append(("end", token))

    def begin_run(self, target, grad):
        name = self.log[-1][1]
        self.log.append(("run", name))
        return name

    def end_run(self, token):
        self.log.append(("ran", token))


def test_an_observer_sees_evaluation_around_computation():
    watcher = Watcher()
    observing.observe(watcher)
    try:
        x = leaf(1.0)
        (x * 2).sum().backward()
    finally:
        observing.observe(None)
    names = ["SumBackward0", "MulBackward0", "AccumulateGrad"]
    assert watcher.log == [(what, n) for n in names for what in ("begin", "run", "ran", "end")]


def test_a_complex_gradient_of_a_real_input_is_its_real_part():
    x = leaf(1.0, 2.0)
    y = x * torch.tensor([1 + 2j, 3j])
    y.backward(torch.ones(2, dtype=torch.complex128))
    np.testing.assert_allclose(x.grad.numpy(), [1, 0])


def test_recursion_limit_is_not_touched():
    limit = sys.getrecursionlimit()
    Nested.apply(leaf(1.0), 60).sum().backward()
    assert sys.getrecursionlimit() == limit


def test_a_training_step_leaves_no_garbage():
    w = torch.ones(4, 4, requires_grad=True)
    optimizer = torch.optim.Adam([w], lr=1e-3)

    def step():
        optimizer.zero_grad()
        (torch.ones(4, 4) @ w.t()).tanh().sum().backward()
        optimizer.step()

    for _ in range(3):
        step()
    gc.collect()
    gc.disable()
    try:
        for _ in range(20):
            step()
        assert gc.collect() == 0
    finally:
        gc.enable()


def test_a_formula_with_too_few_gradients_for_a_list_is_named():
    joined = Op(
        "joined(Tensor[] tensors) -> Tensor", cpu=lambda tensors: np.concatenate(tensors), grad={"tensors": lambda grad: [grad[:2]]}
    )
    x = torch.ones(2, requires_grad=True)
    result = joined.table[keys.CPU | keys.AUTOGRAD]([x, x])
    with pytest.raises(RuntimeError, match="JoinedBackward0 returned an invalid number of gradients - expected 2, but got 1"):
        result.sum().backward()


def test_multithreading_is_a_setting():
    assert torch.autograd.is_multithreading_enabled()
    with torch.autograd.set_multithreading_enabled(False):
        assert not torch.autograd.is_multithreading_enabled()
    assert torch.autograd.is_multithreading_enabled()
    assert not torch.autograd.set_multithreading_enabled(False)(torch.autograd.is_multithreading_enabled)()
    assert torch.autograd.is_multithreading_enabled()
