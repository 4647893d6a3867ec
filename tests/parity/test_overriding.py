"""Subclasses and modes: the same programs see the same calls, in the same order, as under torch."""

import importlib

import pytest
import torch

import mindtorch_v2 as mt

pytestmark = pytest.mark.parity


def _under(lib, name):
    return importlib.import_module(f"{lib.__name__}.{name}")


def _logging(lib, log):
    """A subclass that writes down calls of functions."""

    class Logged(lib.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            log.append(func.__name__)
            return super().__torch_function__(func, types, args, kwargs)

    return Logged


def _wrapping(lib, log):
    """A subclass that stands for a tensor in its attribute, and writes down operators."""
    tree_map = _under(lib, "utils._pytree").tree_map

    class Wrapping(lib.Tensor):
        @staticmethod
        def __new__(cls, inner, requires_grad=False):
            made = lib.Tensor._make_wrapper_subclass(
                cls, inner.size(), strides=inner.stride(), dtype=inner.dtype, device=inner.device, requires_grad=requires_grad
            )
            made.inner = inner.detach() if requires_grad else inner
            return made

        def __repr__(self):
            return super().__repr__(tensor_contents=str(self.inner))

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            log.append(f"{func.__module__}.{func.__name__}")
            opened = tree_map(lambda t: t.inner if isinstance(t, cls) else t, (tuple(args), kwargs or {}))
            return tree_map(lambda t: cls(t) if isinstance(t, lib.Tensor) else t, func(*opened[0], **opened[1]))

    return Wrapping


def backward_asks_no_subclass(lib):
    log = []
    x = lib.ones(2, 2).as_subclass(_logging(lib, log)).requires_grad_()
    y = (x * x).exp() + x
    del log[:]
    y.sum().backward()
    return [name for name in log if name in ("mul", "exp", "add_", "ones_like", "expand")], type(x.grad).__name__


def backward_is_a_function(lib):
    log = []
    x = lib.ones(2, 2).as_subclass(_logging(lib, log)).requires_grad_()
    y, z = (x * x).sum(), x.exp().sum()
    del log[:]
    y.backward()
    grad = lib.autograd.grad(z, x)[0]
    return log, type(grad).__name__


def hooks_are_code_of_the_program(lib):
    log = []
    kind = _logging(lib, log)
    x = lib.ones(2, requires_grad=True)
    other = lib.full((2,), 3.0).as_subclass(kind)
    y = x * 2
    y.register_hook(lambda g: log.append("hook") or (g * other).as_subclass(lib.Tensor))
    lib.autograd.backward(y, lib.ones(2))
    return [name for name in log if name in ("hook", "mul")], x.grad.tolist()


def results_that_a_node_keeps_are_of_the_subclass(lib):
    log = []
    kind = _wrapping(lib, log)
    x = kind(lib.tensor([1.0, 2.0]), requires_grad=True)
    grad = lib.autograd.grad((x.exp() * x.sigmoid()).sum(), x, create_graph=True)[0]
    second = lib.autograd.grad(grad.sum(), x)[0]
    return type(grad).__name__, type(second).__name__, (grad.inner * 1000).round().tolist(), (second.inner * 1000).round().tolist()


def gradients_of_a_wrapper_are_checked(lib):
    kind = _wrapping(lib, [])
    x = kind(lib.tensor([1.0, 2.0], dtype=lib.float64), requires_grad=True)
    return [
        lib.autograd.gradcheck(lambda t: (t.sin() * t).exp(), (x,), check_batched_grad=True, fast_mode=fast)
        for fast in (False, True)
    ]


def vmap_of_a_wrapper(lib):
    log = []
    kind = _wrapping(lib, log)
    x = kind(lib.arange(4.0).reshape(2, 2), requires_grad=True)
    found = lib.autograd.functional.jacobian(lambda t: t * t, x, vectorize=True)
    return type(found).__name__, found.inner.tolist()


def dispatch_gives_results_no_other_type(lib):
    class Kernel(lib.Tensor):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            seen.append((str(func), [t.__name__ for t in types]))
            return super().__torch_dispatch__(func, types, args, kwargs)

    seen = []
    x = lib.Tensor._make_subclass(Kernel, lib.ones(2))
    return type(x + lib.ones(2)).__name__, seen


def subclasses_come_before_their_bases(lib):
    class Base(lib.Tensor):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            seen.append("Base")
            return NotImplemented

    class Derived(Base):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            seen.append("Derived")
            return super(Base, cls).__torch_dispatch__(func, types, args, kwargs)

    seen = []
    base, derived = (lib.Tensor._make_subclass(kind, lib.ones(2)) for kind in (Base, Derived))
    lib.add(base, derived)
    lib.add(derived, base)
    with pytest.raises(TypeError, match="Multiple dispatch failed"):
        lib.add(base, base)
    return seen


def a_handler_returns_tensors(lib):
    class Wrong(lib.Tensor):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            return "no tensor"

    x = lib.Tensor._make_subclass(Wrong, lib.ones(2))
    with pytest.raises(RuntimeError, match="Unable to cast"):
        x.neg()


def no_dispatch_runs_kernels(lib):
    no_dispatch = _under(lib, "utils._mode_utils").no_dispatch
    mode_class = _under(lib, "utils._python_dispatch").TorchDispatchMode

    class Mode(mode_class):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append(str(func))
            return func(*args, **(kwargs or {}))

    seen = []
    x = lib.ones(2)
    with Mode():
        x.neg()
        with no_dispatch():
            x.abs()
    return seen


def modes_come_before_subclasses(lib):
    class Kind(lib.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            log.append("subclass")
            return super().__torch_function__(func, types, args, kwargs)

    class Mode(lib.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            log.append(f"mode {[t.__name__ for t in types]}")
            return NotImplemented if types else func(*args, **(kwargs or {}))

    log = []
    x = lib.ones(2).as_subclass(Kind)
    del log[:]
    with Mode():
        lib.neg(x)
    return log


def modes_see_calls_without_tensors(lib):
    class Mode(lib.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            return -1

    with Mode():
        return lib.split(None, [2]), lib.sparse_coo_tensor(1, 1, 1), lib.sparse_csr_tensor(1, 1, 1), lib.einsum("i,i", [1], [2])


def handlers_of_modes_are_methods(lib):
    class Function(lib.overrides.TorchFunctionMode):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return -1

    class Dispatch(_under(lib, "utils._python_dispatch").TorchDispatchMode):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            return -1

    x = lib.ones(2)
    for mode in (Function, Dispatch):
        with pytest.raises(RuntimeError, match="classmethod is not supported"), mode():
            x.neg()


def einsum_of_objects_that_override(lib):
    class Like:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return func.__name__

    return lib.einsum("i,j->ij", Like(), Like()), lib.einsum("i,j->ij", [Like(), lib.ones(2)])


def arguments_are_asked_from_left_to_right(lib):
    class Like:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return "like"

    class Kind(lib.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return "subclass"

    x = lib.Tensor._make_subclass(Kind, lib.ones(2, 2))
    return lib.mm(x, Like()), lib.mm(Like(), x), lib.mm(lib.ones(2, 2), Like())


def overrides_are_switched_on_again(lib):
    class Kind(lib.Tensor):
        pass

    x = lib.ones(2).as_subclass(Kind)
    with lib._C.DisableTorchFunction():
        off = lib._C._is_torch_function_all_disabled(), type(x + 1) is Kind
        with lib.overrides._enable_torch_function():
            on = lib._C._is_torch_function_all_disabled(), type(x + 1) is Kind
    return off, on


def kernels_get_keyword_only_arguments_by_name(lib):
    @lib.library.custom_op(f"overriding_{lib.__name__}::scaled", mutates_args=())
    def scaled(x: lib.Tensor, *, scale: float, shift: float = 1.0) -> lib.Tensor:
        return x * scale + shift

    return scaled(lib.ones(2), scale=3.0).tolist(), scaled(lib.ones(2), scale=3.0, shift=0.0).tolist()


def kernels_are_registered_through_a_library(lib):
    made = lib.library.Library(f"through_{lib.__name__}", "DEF")
    made.define("twice(Tensor x) -> Tensor")

    @lib.library.impl(made, "twice", "CPU")
    def twice(x):
        return x * 2

    return getattr(lib.ops, f"through_{lib.__name__}").twice(lib.ones(2)).tolist()


def functions_written_in_python_are_overridden(lib):
    functional = lib.nn.functional

    class Like:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            given = {k: v for k, v in kwargs.items() if not k.startswith("_")}
            return func.__name__, len(args), given

    like, x = Like(), lib.ones(2, 3)
    return [
        functional.relu(like), functional.dropout(like, 0.25), functional.softmax(like, 1), functional.mse_loss(x, like),
        functional.cross_entropy(like, x), functional.batch_norm(like, None, None), functional.max_pool2d(like, 2)[0],
        lib.norm(like, 1), lib.unique(like), functional.interpolate(like, scale_factor=2), functional.embedding(x, like),
        functional.ctc_loss(x, x, like, x),
    ]  # fmt: skip


def modes_see_properties_and_methods(lib):
    log = []

    class Logging(lib.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            log.append(func.__name__)
            return func(*args, **(kwargs or {}))

    x = lib.ones(2, 2, requires_grad=True)
    with Logging():
        read = x.shape, x.dim(), x.size(0), x.numel(), len(x), x.is_leaf, x.requires_grad, x.tolist()
        x.register_hook(lambda g: None)
    return log, [tuple(r) if isinstance(r, tuple) else r for r in read]


def a_power_gives_way(lib):
    class Nothing(lib.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return NotImplemented

    class Reflected(lib.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return -1 if func is lib.Tensor.__rpow__ else NotImplemented

    return Nothing() ** Reflected()


def a_tensor_of_a_tensor_is_a_view(lib):
    class Kind(lib.Tensor):
        pass

    x = lib.ones(2, requires_grad=True)
    made = [lib.Tensor(x), Kind(x), x.as_subclass(Kind)]
    return [(type(m).__name__, m._is_view(), m._base is x, type(m.grad_fn).__name__) for m in made]


def wrappers_refuse_what_they_do_not_have(lib):
    x = _wrapping(lib, [])(lib.ones(2))
    plain = type("Plain", (lib.Tensor,), {})
    errors = []
    for call in (
        x.tolist, x.numpy, x.untyped_storage().data_ptr, lambda: x.as_subclass(plain), lambda: plain(x),
        lambda: lib.Tensor._make_subclass(plain, x), lambda: lib.library.Library(f"twice_{lib.__name__}", "DEF"),
    ):  # fmt: skip
        first = lib.library.Library(f"twice_{lib.__name__}", "DEF")
        try:
            call()
            errors.append(None)
        except RuntimeError as error:
            errors.append(str(error)[:13])
        first._destroy()
        del first
    return errors


def wrappers_have_the_offset_they_are_given(lib):
    kind = _wrapping(lib, [])
    x = lib.arange(24.0).reshape(4, 6).t().diagonal(offset=2)
    y = lib.Tensor._make_wrapper_subclass(kind, x.size(), strides=x.stride(), storage_offset=x.storage_offset(), dtype=x.dtype)
    return y.storage_offset(), x.storage_offset(), y.stride(), tuple(y.shape)


def results_of_views_are_put_into_the_storage_of_what_they_view(lib):
    dispatch = _under(lib, "utils._python_dispatch")
    tree_map = _under(lib, "utils._pytree").tree_map
    kind = _wrapping(lib, [])
    made = {}

    def handle(cls, func, types, args=(), kwargs=None):
        opened = tree_map(lambda t: t.inner if isinstance(t, cls) else t, (tuple(args), kwargs or {}))
        out = tree_map(lambda t: cls(t) if isinstance(t, lib.Tensor) else t, func(*opened[0], **opened[1]))
        return dispatch.return_and_correct_aliasing(func, args, kwargs, out)

    kind.__torch_dispatch__ = classmethod(handle)
    x = kind(lib.ones(4))
    view, halves, written = x.view(2, 2), x.split(2), x.add_(1)
    made["same"] = written is x
    made["views"] = [t.untyped_storage()._cdata == x.untyped_storage()._cdata for t in (view, *halves)]
    made["new"] = (x + 1).untyped_storage()._cdata == x.untyped_storage()._cdata
    return made


PROGRAMS = [value for value in dict(globals()).values() if callable(value) and getattr(value, "__module__", "") == __name__]
PROGRAMS = [program for program in PROGRAMS if not program.__name__.startswith("_")]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_same_calls(program):
    assert program(mt) == program(torch)
