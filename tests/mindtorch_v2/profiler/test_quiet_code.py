"""Code behind a guard runs as it does without, and reports nothing; the guard dies with the frame, however that ends."""

import gc
import sys
import traceback

import pytest

import mindtorch_v2 as torch
from mindtorch_v2.overrides import TorchFunctionMode
from mindtorch_v2.profiler import profile

if sys.version_info >= (3, 12):
    pytest.skip("sys.monitoring is switched off for such code", allow_module_level=True)

from mindtorch_v2.profiler.capture.stacks import quiet_functions  # isort: skip - not for later versions
from mindtorch_v2.profiler.capture.stacks.quiet_code import Quieter, is_quiet  # isort: skip

reports = []


def tracer(frame, event, arg):
    reports.append((event, frame.f_code.co_name))


def called():
    return len("ab")


def with_handlers(fail_at, *more, factor=2, **named):
    """Nested blocks that catch, a loop with a value on the stack, cells, and `finally`."""
    seen = []
    try:
        with pytest.MonkeyPatch.context():
            for i in range(4):
                try:
                    if i == fail_at:
                        raise ValueError(i)
                    seen.append(called() * factor)
                except KeyError:
                    seen.append(None)
                finally:
                    seen.append(i)
    except ValueError as error:
        seen.append(str(error))
        if more:
            raise
    return seen, [i + factor for i in range(2)], named


class Base:
    def method(self):
        return "base"


class Derived(Base):
    def method(self):
        return super().method() + "!"


def counter():
    count = 0

    def add(by):
        nonlocal count
        count += by
        return count

    return add


WIDE_SOURCE = (
    "def many_constants():\n    return ["
    + ", ".join(f"{i}.5" for i in range(300))
    + "][-1] + {}".format(" + ".join(f"{i}.25" for i in range(300)))
)
namespace: dict = {}
exec(WIDE_SOURCE, namespace)
many_constants = namespace["many_constants"]

CALLS = {
    "nothing fails": (with_handlers, lambda f: f(9, factor=3, a=1)),
    "an exception is caught": (with_handlers, lambda f: f(2)),
    "a class cell": (Derived.method, lambda f: f(Derived())),
    "a free variable": (counter(), lambda f: f(0)),
    "more constants than a byte counts": (many_constants, lambda f: f()),
}


@pytest.fixture
def no_collection():
    """The recorder is told of runs of the collector, which come by chance."""
    gc.disable()
    yield
    gc.enable()


@pytest.fixture
def quieter():
    reports.clear()
    yield Quieter(tracer, lambda: False)
    sys.setprofile(None)


def traced(call, function):
    sys.setprofile(tracer)
    try:
        result = call(function)
        assert sys.getprofile() is tracer
    finally:
        sys.setprofile(None)
    return result


@pytest.mark.parametrize("name", CALLS)
def test_the_result_is_the_same_and_nothing_is_reported(quieter, monkeypatch, name):
    function, call = CALLS[name]
    expected = call(function)
    monkeypatch.setattr(function, "__code__", quieter(function.__code__))
    assert traced(call, function) == expected
    assert {n for _, n in reports} <= {"<lambda>", "traced"}


def test_an_exception_has_its_lines_and_its_traceback_does_not_keep_the_guard(quieter, monkeypatch):
    with pytest.raises(ValueError, match="2") as expected:
        with_handlers(2, "raise it")
    monkeypatch.setattr(with_handlers, "__code__", quieter(with_handlers.__code__))
    sys.setprofile(tracer)
    try:
        with_handlers(2, "raise it")
    except ValueError as error:
        kept = error
        assert sys.getprofile() is tracer
    sys.setprofile(None)
    lines = [[frame.lineno for frame in traceback.extract_tb(error.__traceback__)][1:] for error in (kept, expected.value)]
    assert lines[0] == lines[1]


def test_without_the_tracer_there_is_no_guard_unless_it_comes_back(monkeypatch):
    asked = []

    def regained():
        asked.append(sys._getframe(1).f_code.co_name)
        return False

    monkeypatch.setattr(called, "__code__", Quieter(tracer, regained)(called.__code__))
    assert called() == 2
    assert asked == ["test_without_the_tracer_there_is_no_guard_unless_it_comes_back"]  # the frame is not seen yet
    assert sys.getprofile() is None


def test_a_code_has_one_quiet_form(quieter):
    quiet = quieter(called.__code__)
    assert quieter(called.__code__) is quiet
    assert quieter(quiet) is quiet
    assert is_quiet(quiet)
    assert not is_quiet(called.__code__)


def test_functions_have_their_codes_again_when_a_recording_is_over():
    before = [function.__code__ for function in quiet_functions.functions()]
    with profile(with_stack=True):
        assert all(is_quiet(function.__code__) for function in quiet_functions.functions())
    assert [function.__code__ for function in quiet_functions.functions()] == before
    assert not any(map(is_quiet, before))


def test_a_mode_that_is_entered_in_one_recording_and_left_after_it():
    before = torch.Tensor.max.__code__
    mode = TorchFunctionMode.__new__(
        type("Passing", (TorchFunctionMode,), {"__torch_function__": lambda s, f, t, a, k: f(*a, **k)})
    )
    with profile(with_stack=True):
        mode.__enter__()
    assert torch.ones(2).max() == 1
    mode.__exit__(None, None, None)
    assert torch.Tensor.max.__code__ is before


def mine():
    pass


def keeping_exception(kept):
    def hook(grad):
        try:
            raise ValueError
        except ValueError as error:
            kept.append(error)

    return hook


def test_an_exception_that_a_hook_keeps_does_not_keep_it_quiet():
    kept = []
    w = torch.ones(3, requires_grad=True)
    w.register_hook(keeping_exception(kept))

    class Keeping(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            keeping_exception(kept)(None)
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad * 2

    with profile(with_stack=True) as prof:
        Keeping.apply(w).sum().backward()
        mine()
    assert len(kept) == 2
    names = [e["name"].rpartition(": ")[2] for e in prof.events() if e["kind"] == "python_function"]
    assert names.count("hook") == 2
    assert names[-1] == "mine"


def test_what_calls_no_code_of_the_program_is_not_reported(monkeypatch, no_collection):
    """Of the functions around operators, and of those beside them."""
    from mindtorch_v2.profiler.capture.stacks import python311, stack_walk

    x = torch.randn(4, 4)
    network, loss = torch.nn.Linear(4, 4), torch.nn.MSELoss()
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1)

    def work():
        x.max(), x.sum(0), x[0], x.shape, x.view(-1), x.to(torch.float64), torch.where(x > 0, x, 0.0)
        torch.randint(0, 3, (2,))
        optimizer.zero_grad()
        loss(network(x), x)
        optimizer.step()

    work()
    told, on_event = [], python311._on_event

    def telling(frame, event, arg):
        if event == "call" and stack_walk.is_internal(frame.f_code):
            told.append(frame.f_code.co_name)
        on_event(frame, event, arg)

    monkeypatch.setattr(python311, "_on_event", telling)
    with profile(with_stack=True):
        told.clear()
        work()
        inside = [*told]
    assert inside == ["mse_loss"]  # looks at the classes of its arguments, and calls a function of `nn`, which is shown
