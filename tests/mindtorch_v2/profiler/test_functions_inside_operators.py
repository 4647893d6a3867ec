"""Functions of the program that operators and backward call: all are recorded, and so is what runs after them.

Before Python 3.12 the tracer is switched off inside of operators, so that each way back into the program has to switch it on.
"""

import cProfile
import dis
import gc
import signal
import sys
import threading
import weakref

import numpy as np
import pytest

import mindtorch_v2 as torch
from mindtorch_v2._dispatch import quiet
from mindtorch_v2.overrides import TorchFunctionMode
from mindtorch_v2.profiler import profile, validate
from mindtorch_v2.utils._python_dispatch import TorchDispatchMode

x = torch.ones(3)


def functions(prof):
    return [e["name"].rpartition(": ")[2] for e in prof.events() if e["kind"] == "python_function"]


def mine(result=None):
    return result


def later():
    pass


def in_a_tensor_hook():
    w = torch.ones(3, requires_grad=True)
    (h := w * 2).register_hook(mine)
    h.sum().backward()


def in_a_leafs_hook():
    w = torch.ones(3, requires_grad=True)
    w.register_hook(mine)
    w.sum().backward()


def after_accumulation():
    w = torch.ones(3, requires_grad=True)
    w.register_post_accumulate_grad_hook(lambda leaf: mine())
    w.sum().backward()


def before_a_node():
    w = torch.ones(3, requires_grad=True)
    h = w.sum()
    h.grad_fn.register_prehook(lambda grads: mine())
    h.backward()


def after_a_node():
    w = torch.ones(3, requires_grad=True)
    h = w.sum()
    h.grad_fn.register_hook(lambda outs, grads: mine())
    h.backward()


def in_a_modules_backward_hook():
    layer = torch.nn.Linear(3, 2)
    layer.register_full_backward_hook(lambda module, grad_input, grad_output: mine())
    layer(torch.ones(1, 3, requires_grad=True)).sum().backward()


def in_a_hook_of_several_tensors():
    a, b = torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)
    torch.autograd.graph.register_multi_grad_hook((a, b), lambda grads: mine())
    (a * b).sum().backward()


def at_the_end_of_backward():
    w = torch.ones(3, requires_grad=True)
    w.register_hook(lambda grad: torch.autograd.Variable._execution_engine.queue_callback(mine))
    w.sum().backward()


def in_packing():
    w = torch.ones(3, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(mine, lambda kept: kept):
        (w * w).sum().backward()


def in_unpacking():
    w = torch.ones(3, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t, mine):
        (w * w).sum().backward()


def in_a_custom_backward():
    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, t):
            return t * 2

        @staticmethod
        def backward(ctx, grad):
            return mine(grad * 2)

    Double.apply(torch.ones(3, requires_grad=True)).sum().backward()


def in_a_custom_forward():
    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, t):
            return mine(t * 2)

    Double.apply(x)


def in_a_subclass():
    class Logged(torch.Tensor):
        @classmethod
        def __torch_function__(cls, function, types, args=(), kwargs=None):
            mine()
            return super().__torch_function__(function, types, args, kwargs or {})

    x.as_subclass(Logged) + 1


def in_an_argument_that_overrides():
    class Own:
        @classmethod
        def __torch_function__(cls, function, types, args=(), kwargs=None):
            return mine(3)

    assert torch.add(x, Own()) == 3


def in_a_function_mode():
    class Mode(TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            mine()
            return function(*args, **(kwargs or {}))

    with Mode():
        torch.add(x, x)


def in_a_dispatch_mode():
    class Mode(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            mine()
            return function(*args, **(kwargs or {}))

    with Mode():
        x + x


def in_an_operator_of_its_own():
    @torch.library.custom_op("inside::own", mutates_args=())
    def own(t: torch.Tensor) -> torch.Tensor:
        return mine(t.clone())

    own(x)


def in_a_kernel_that_replaces_ours():
    library = torch.library.Library("aten", "IMPL")
    library.impl("trunc", lambda t: mine(t.clone()), "CPU", allow_override=True)
    try:
        torch.trunc(x)
    finally:
        library._destroy()


def in_a_kernel_that_a_composite_calls():
    library = torch.library.Library("aten", "IMPL")
    library.impl("clamp_min_", lambda t, low: mine(t), "CPU", allow_override=True)
    try:
        torch.relu_(x.clone())
    finally:
        library._destroy()


def for_each_element():
    torch.ones(3).apply_(lambda value: mine(value))


def in_an_exceptions_handler():
    try:
        x + torch.ones(2)
    except RuntimeError:
        mine()


def while_an_exception_is_kept():
    try:
        x + torch.ones(2)
    except RuntimeError as error:
        kept = error
    mine()
    assert kept.__traceback__ is not None


def while_an_exception_of_backward_is_kept():
    w = torch.ones(3, requires_grad=True)
    w.register_hook(lambda grad: 1 / 0)
    try:
        (w * 1).sum().backward()
    except ZeroDivisionError as error:
        kept = error
    mine()
    assert kept.__traceback__ is not None


def when_the_arguments_do_not_fit():
    try:
        torch.add(x)
    except TypeError as error:
        kept = error
    mine()
    assert kept.__traceback__ is not None


WAYS = [
    in_a_tensor_hook, in_a_leafs_hook, after_accumulation, before_a_node, after_a_node,
    in_a_modules_backward_hook, in_a_hook_of_several_tensors, at_the_end_of_backward, in_packing, in_unpacking,
    in_a_custom_backward, in_a_custom_forward, in_a_subclass, in_an_argument_that_overrides, in_a_function_mode, in_a_dispatch_mode,
    in_an_operator_of_its_own, in_a_kernel_that_replaces_ours, in_a_kernel_that_a_composite_calls, for_each_element,
    in_an_exceptions_handler, while_an_exception_is_kept, while_an_exception_of_backward_is_kept, when_the_arguments_do_not_fit,
]  # fmt: skip


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_it_is_recorded(way, tmp_path):
    with profile(with_stack=True) as prof:
        way()
        later()
    found = functions(prof)
    assert "mine" in found
    assert found.index("mine") < found.index("later")
    prof.export_chrome_trace(str(tmp_path / "trace.json"))
    assert validate(tmp_path / "trace.json") == []


def test_a_finaliser_that_the_collector_calls_in_an_operator_is_recorded(no_other_collection):
    class Cyclic:
        def __del__(self):
            mine()

    with profile(with_stack=True) as prof:
        loop = Cyclic()
        loop.self = loop
        del loop
        guard = quiet.guard()  # as in an operator, where the collector comes by chance
        gc.collect()
        unseen = sys.version_info < (3, 12) and sys.getprofile() is None
        guard = None  # noqa: F841
        later()
    found = functions(prof)
    assert found.index("__del__") < found.index("mine") < found.index("later")
    assert unseen or sys.version_info >= (3, 12)  # quiet again after the collection


@pytest.mark.skipif(sys.platform == "win32", reason="no such signals")
@pytest.mark.parametrize("in_operator", [False, True])
def test_an_operator_in_a_signals_handler_has_its_stack(in_operator):
    def handler(number, frame):
        x * x

    def interrupted():
        if in_operator:
            in_operators_code()
        else:
            signal.raise_signal(signal.SIGUSR1)

    code = "def in_operators_code():\n    guard = guard_()\n    raise_signal(SIGUSR1)\n    guard = None\n"
    namespace = {"guard_": quiet.guard, "raise_signal": signal.raise_signal, "SIGUSR1": signal.SIGUSR1}
    exec(compile(code, "<mindtorch_v2 interrupted>", "exec"), namespace)
    in_operators_code = namespace["in_operators_code"]
    before = signal.signal(signal.SIGUSR1, handler)
    try:
        with profile(with_stack=True) as prof:
            interrupted()
            later()
    finally:
        signal.signal(signal.SIGUSR1, before)
    (mul,) = [e for e in prof.events() if e["name"] == "aten::mul"]
    assert [place.rpartition(":")[2] for place in mul["stack"]][:2] == ["handler", "interrupted"]
    assert "later" in functions(prof)


def test_a_profiler_that_is_stopped_in_a_hook_leaves_nothing_behind():
    w = torch.ones(3, requires_grad=True)
    prof = profile(with_stack=True)
    w.register_hook(lambda grad: prof.stop())
    prof.start()
    (w * 1).sum().backward()
    later()
    assert sys.getprofile() is None
    assert "backward" not in functions(prof)  # the package's own
    assert "later" not in functions(prof)


def test_functions_are_what_they_were():
    add = torch.Tensor.__add__
    x + x
    code = add.__code__
    with profile(with_stack=True):
        x + x
        assert torch.Tensor.__add__ is add
    assert add.__code__ is code
    assert sys.getprofile() is None


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="sys.monitoring is switched off for such code")
class TestBeforeMonitoring:
    def test_a_profiler_that_comes_meanwhile_is_left_alone(self):
        other = cProfile.Profile()
        unseen = pytest.warns(UserWarning, match="are missing")
        with unseen, profile(with_stack=True) as prof:
            x + x
            before = sys.getprofile()
            other.enable()
            x + x
            mine()
            assert sys.getprofile() is other
            other.disable()
            sys.setprofile(before)
            later()
        assert [e["name"] for e in prof.events() if e["name"] == "aten::add"] == ["aten::add"] * 2
        assert "mine" in [entry.code.co_name for entry in other.getstats() if not isinstance(entry.code, str)]
        assert "later" in functions(prof)

    def test_a_thread_that_ran_before_is_traced_from_its_first_operator_on(self):
        begun, go_on, seen = threading.Event(), threading.Event(), []

        def work():
            begun.set()
            go_on.wait(60)
            seen.append(sys.getprofile())
            in_a_tensor_hook()
            seen.append(sys.getprofile())
            over.wait(60)
            later()
            seen.append(sys.getprofile())

        over = threading.Event()
        thread = threading.Thread(target=work)
        thread.start()
        begun.wait(60)
        with profile(with_stack=True) as prof:
            go_on.set()
            while len(seen) < 2:
                mine()
        over.set()
        thread.join()
        assert seen[0] is None
        assert seen[1] is not None
        assert seen[2] is None
        found = [e for e in prof.events() if e["kind"] == "python_function" and e["thread_id"] == thread.native_id]
        names = [e["name"].rpartition(": ")[2] for e in found]
        assert names.index("work") < names.index("in_a_tensor_hook") < names.index("mine")

    def test_nothing_of_an_operator_is_reported(self, no_other_collection):
        reports = []

        def tracer(frame, event, arg):
            reports.append((event, frame.f_code.co_name))

        w = torch.ones(3, requires_grad=True)

        def work():
            h = w * 2 + x
            torch.add(h, x)
            torch.nn.functional.linear(h, torch.ones(2, 3)).sum()
            h.view(3, 1)

        work()
        from mindtorch_v2.profiler.capture.stacks import python311

        python311.keep_quiet(tracer, {sys._getframe(): None})
        try:
            sys.setprofile(tracer)
            work()
            sys.setprofile(None)
        finally:
            python311.keep_quiet_no_more()
        names = [name for _, name in reports]
        assert names[0] == "work"
        assert {"mul", "add", "add_Tensor", "__add__", "__mul__", "mul_Tensor", "ones"}.isdisjoint(names)
        assert ("return", "work") in reports

    def test_a_finaliser_that_runs_while_a_kernel_is_in_numpys_python(self, no_other_collection, monkeypatch):
        """The tracer notes NumPy's functions around it, and is not told that they return."""
        numeric = np._core.numeric
        normalize = numeric.normalize_axis_tuple  # that np.moveaxis calls

        class Garbage:
            def __init__(self):
                self.itself = self

            def __del__(self):
                mine()

        def collecting(*args):
            gc.collect()
            return normalize(*args)

        monkeypatch.setattr(numeric, "normalize_axis_tuple", collecting)
        with profile(with_stack=True) as prof:
            Garbage()
            torch.ones(2, 3).msort()
            later()
            x + x
        found = functions(prof)
        assert found.index("__del__") < found.index("mine") < found.index("later")

    def test_the_frame_of_a_quiet_function_is_as_any_other(self):
        with profile(with_stack=True) as prof:
            try:
                x + torch.ones(2)
            except RuntimeError as error:
                frames = []
                traceback = error.__traceback__
                while traceback is not None:
                    frames.append(traceback.tb_frame.f_code.co_name)
                    traceback = traceback.tb_next
        assert frames[:2] == ["test_the_frame_of_a_quiet_function_is_as_any_other", "__add__"]
        assert "aten::add" in [e["name"] for e in prof.events()]
        resumes = [i for i in dis.get_instructions(torch.Tensor.__add__.__code__) if i.opname == "RESUME"]
        assert [i.offset for i in resumes] == [0]  # as compiled: the recording is over

    def test_guards_of_no_tracer_are_none(self):
        assert quiet.guard() is None

    def test_a_frame_that_the_program_keeps_does_not_keep_it_quiet(self):
        held = []

        class Keeping(TorchFunctionMode):
            def __torch_function__(self, function, types, args=(), kwargs=None):
                held.append(sys._getframe())
                return function(*args, **(kwargs or {}))

        with profile(with_stack=True) as prof:
            with Keeping():
                torch.add(x, x)
            later()
        callers = [held[0].f_back]
        while callers[-1].f_back is not None:
            callers.append(callers[-1].f_back)
        from mindtorch_v2.profiler.capture.stacks.quiet_code import is_quiet

        assert any(is_quiet(frame.f_code) for frame in callers)  # or this would show nothing
        assert "later" in functions(prof)
        callers.clear()
        held.clear()  # the guard dies when the recording is over, and has the tracer told again
        later()  # of which it is told
        assert sys.getprofile() is None


def test_nothing_is_kept_alive():
    a = torch.ones(2)
    gone = weakref.ref(a)
    with profile(with_stack=True):
        a + a
        del a
        assert gone() is None
