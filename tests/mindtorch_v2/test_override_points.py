"""Python functions and methods ask `__torch_function__`, and are what they were where nobody overrides them."""

import inspect
import pickle
import subprocess
import sys
import threading
import warnings

import pytest

import mindtorch_v2 as torch
from mindtorch_v2 import _override_points
from mindtorch_v2.nn import functional as F
from mindtorch_v2.overrides import TorchFunctionMode


class Log(TorchFunctionMode):
    def __init__(self):
        super().__init__()
        self.calls = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.calls.append((func, args, kwargs or {}))
        return func(*args, **(kwargs or {}))


class Foreign:
    """No tensor, and overrides functions."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        return func, args, kwargs


def _logged():
    calls = []

    class Logged(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            calls.append(func)
            return super().__torch_function__(func, types, args, kwargs)

    return Logged, calls


def test_an_object_overrides_a_function_in_its_first_call():
    x = Foreign()
    assert F.relu(x) == (F.relu, (x,), {"inplace": False})
    assert F.dropout(x, 0.1) == (F.dropout, (x,), {"p": 0.1, "training": True, "inplace": False})


def test_an_object_among_the_other_tensors_is_asked():
    x, target = torch.ones(2, 3), Foreign()
    assert F.cross_entropy(x, target)[:2] == (F.cross_entropy, (x, target))


def test_an_object_in_a_list_of_sizes_is_asked_once():
    x, size = torch.ones(2, 3), Foreign()
    assert F.pad(x, [1, size, 0, 0])[:2] == (F.pad, (x, [1, size, 0, 0]))


def test_an_object_among_starred_tensors_is_asked():
    x = Foreign()
    assert torch.broadcast_tensors(torch.ones(1), x)[0] is torch.broadcast_tensors


def test_a_handler_is_called_on_the_object_that_has_it():
    x = Foreign()
    x.seen = True
    assert F.relu(x)[1][0].seen


def test_a_mode_sees_functions_written_in_python_and_their_arguments():
    x = torch.ones(2, 2)
    with Log() as log:
        F.relu(x, inplace=False)
        x.tolist()
        x.shape  # noqa: B018 - the property is asked about
        torch.norm(x)
    assert [c[0] for c in log.calls] == [F.relu, torch.Tensor.tolist, torch.Tensor.shape.__get__, torch.norm]
    assert log.calls[0][1:] == ((x,), {"inplace": False})


def test_a_subclass_sees_methods_and_properties():
    kind, calls = _logged()
    x = torch.ones(2, 2).as_subclass(kind)
    del calls[:]
    assert (x.dim(), x.shape, len(x)) == (2, (2, 2), 2)
    x.requires_grad = True
    names = [c.__name__ for c in calls]
    assert names == ["dim", "__get__", "__len__", "__set__"]


def test_the_gradient_keeps_its_class():
    kind, _ = _logged()
    x = torch.ones(2).as_subclass(kind).requires_grad_()
    x.sum().backward()
    assert type(x.grad) is torch.Tensor


def test_functions_have_their_own_code_again_after_a_mode():
    before = [(p.function, p.function.__code__) for p in (*_override_points._functions, *_override_points._methods)]
    with Log(), Log():
        assert all(f.__code__ is not code for f, code in before[:1])
    assert all(f.__code__ is code for f, code in before)


def test_a_function_keeps_its_signature_its_source_and_its_name():
    assert str(inspect.signature(F.softmax)).startswith("(input: 'Tensor', dim: 'int | None' = None, _stacklevel")
    assert "def softmax" in inspect.getsource(F.softmax)
    assert pickle.loads(pickle.dumps(F.softmax)) is F.softmax
    assert list(inspect.signature(F.leaky_relu).parameters) == ["input", "negative_slope", "inplace"]


def test_a_class_that_overrides_nothing_is_asked_once():
    p = torch.nn.Parameter(torch.ones(2))
    F.softmax(p, dim=0)
    assert torch.nn.Parameter in _override_points._plain


def test_warnings_are_about_the_line_that_calls():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        F.softmax(torch.ones(2))
        F.l1_loss(torch.ones(2), torch.ones(1))
        torch.meshgrid(torch.ones(2), torch.ones(2))
    assert {w.filename for w in caught} == {__file__}
    assert len(caught) == 3


def test_a_power_gives_way_to_the_other_operand():
    class Nothing(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return NotImplemented

    class Reflected(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return -1 if func is torch.Tensor.__rpow__ else NotImplemented

    assert Nothing() ** Reflected() == -1
    with pytest.raises(TypeError, match="unsupported operand"):
        Nothing() ** Nothing()


def test_a_tensor_made_of_another_is_a_view_of_it():
    class Kind(torch.Tensor):
        pass

    x = torch.ones(2, requires_grad=True)
    for made in (torch.Tensor(x), Kind(x), x.as_subclass(Kind)):
        assert made._is_view()
        assert made._base is x
    assert type(Kind(x)) is Kind
    torch.Tensor(x).sum().backward()
    assert x.grad.tolist() == [1, 1]


def test_grad_of_objects_gets_tuples():
    x = Foreign()
    assert torch.autograd.grad(x, x)[1] == ((x,), (x,))


def test_functions_that_ask_by_themselves_are_left_alone():
    made = torch.sparse_coo_tensor(torch.tensor([[0]]), torch.ones(1), torch.Size([2]), is_coalesced=True)
    assert made.to_dense().tolist() == [1, 0]
    with pytest.raises(TypeError, match="asked"):
        torch.sparse_coo_tensor(_Raising(), torch.ones(1))


class _Raising:
    def __torch_function__(self, func, types, args=(), kwargs=None):
        raise TypeError(f"asked about {func.__name__}")


def test_functions_around_others_keep_their_parameters():
    pooled = torch.nn.functional.fractional_max_pool2d_with_indices(
        torch.nn.Parameter(torch.ones(1, 1, 4, 4)), 2, output_size=[2, 2]
    )
    assert pooled[0].shape == (1, 1, 2, 2)


VARIABLES_OF_FRAMES = """
import sys
import mindtorch_v2 as torch
from mindtorch_v2 import _override_points
from mindtorch_v2.overrides import BaseTorchFunctionMode

seen = set()

def look(frame, event, arg):
    if id(frame.f_code) in codes:
        frame.f_locals
        hash(frame.f_code)  # as coverage tools do
        seen.add(frame.f_code.co_name)

codes = {id(code) for p in _override_points._functions + _override_points._methods for code in (p.quiet, p.asking)}
mine = [torch.ones(2)]
torch._foreach_abs_(mine)
for mode in (None, BaseTorchFunctionMode()):
    if mode is not None:
        mode.__enter__()
    sys.setprofile(look)
    torch._foreach_abs_(mine)
    torch.atleast_2d(mine[0])
    torch.nn.functional.linear(mine[0], torch.ones(3, 2))
    mine[0].reshape_as(mine[0])
    sys.setprofile(None)
print(*sorted(seen))
"""


def test_a_debugger_can_look_at_the_variables_of_their_frames():
    """A frame whose code lists free variables that it never got ends the process."""
    done = subprocess.run([sys.executable, "-c", VARIABLES_OF_FRAMES], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]
    assert {"_foreach_abs_", "atleast_2d"} <= set(done.stdout.split())


def test_modes_of_several_threads_are_counted_together():
    before = [(p.function, p.function.__code__) for p in _override_points._functions]
    entered, leave = threading.Barrier(4), threading.Event()

    def enter():
        with Log():
            entered.wait()
            leave.wait()

    threads = [threading.Thread(target=enter) for _ in range(3)]
    for thread in threads:
        thread.start()
    entered.wait()
    assert all(f.__code__ is not code for f, code in before)
    leave.set()
    for thread in threads:
        thread.join()
    assert all(f.__code__ is code for f, code in before)


def test_sizes_and_numbers_are_not_asked_about(monkeypatch):
    """`randint` took 27 µs, of which looking for overrides was 19."""

    def asked(self, values):
        raise AssertionError(f"asked about {values}")

    monkeypatch.setattr(_override_points._Point, "ask_bound", asked)
    assert torch.randint(0, 3, (2, 4)).shape == (2, 4)
    assert torch.randint(5, [3], generator=torch.Generator()).shape == (3,)


def test_an_object_that_overrides_functions_is_found_in_a_list_among_arguments():
    class Size:
        @classmethod
        def __torch_function__(cls, function, types, args=(), kwargs=None):
            return function.__name__, len(args)

    assert torch.randint(0, 3, (2, Size())) == ("randint", 3)
