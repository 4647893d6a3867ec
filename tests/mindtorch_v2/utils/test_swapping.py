"""Swapping of tensors, and what modules do with it."""

from __future__ import annotations

import weakref

import pytest

import mindtorch_v2 as torch


@pytest.fixture
def switch():
    future = torch.__future__
    yield future
    future.set_swap_module_params_on_conversion(False)
    future.set_overwrite_module_params_on_conversion(False)


def test_everything_is_exchanged_but_identity():
    x = torch.nn.Parameter(torch.ones(2))
    x.grad = torch.full((2,), 3.0)
    x.note = "x"
    y = torch.zeros(3, dtype=torch.float64)
    before = id(x), id(y)
    torch.utils.swap_tensors(x, y)
    assert (id(x), id(y)) == before
    assert (type(x), x.tolist(), x.dtype, x.grad, hasattr(x, "note")) == (torch.Tensor, [0, 0, 0], torch.float64, None, False)
    assert (type(y), y.tolist(), y.grad.tolist(), y.note, y.requires_grad) == (torch.nn.Parameter, [1, 1], [3, 3], "x", True)
    (y * 2).sum().backward()
    assert y.grad.tolist() == [5, 5]


def test_what_cannot_be_swapped():
    x, y = torch.ones(1), torch.ones(1)
    reference = weakref.ref(x)
    with pytest.raises(RuntimeError, match="Cannot swap t1 because it has weakref"):
        torch.utils.swap_tensors(x, y)
    assert reference() is x

    class Slotted(torch.Tensor):
        __slots__ = ("elem",)

    with pytest.raises(RuntimeError, match="different slots"):
        torch.utils.swap_tensors(y, torch.ones(1).as_subclass(Slotted))


def test_conversion_in_place_by_default():
    m = torch.nn.Linear(2, 2)
    p = m.weight
    m.double()
    assert m.weight is p
    m.to("meta")
    assert m.weight is not p  # torch: no tensor of the meta device becomes one of another


def test_conversion_by_new_parameters(switch):
    switch.set_overwrite_module_params_on_conversion(True)
    m = torch.nn.Linear(2, 2)
    m(torch.ones(1, 2)).sum().backward()
    p = m.weight
    m.double()
    assert m.weight is not p
    assert (p.dtype, m.weight.dtype, m.weight.grad.dtype) == (torch.float32, torch.float64, torch.float64)


def test_conversion_by_swaps(switch):
    switch.set_swap_module_params_on_conversion(True)
    m = torch.nn.Linear(2, 2)
    m(torch.ones(1, 2)).sum().backward()
    p, g = m.weight, m.weight.grad
    m.double()
    assert m.weight is p
    assert m.weight.grad is g
    assert p.dtype is g.dtype is torch.float64
    reference = weakref.ref(p)
    with pytest.raises(RuntimeError, match=r"_apply\(\): Couldn't swap Linear.weight"):
        m.float()
    assert reference() is p
    assert p.grad is g


@pytest.mark.parametrize("assign", [False, True])
def test_loading_by_swaps(switch, assign):
    switch.set_swap_module_params_on_conversion(True)
    m = torch.nn.Linear(2, 2)
    p = m.weight
    m.load_state_dict({"weight": torch.ones(2, 2, dtype=torch.float64), "bias": torch.zeros(2)}, assign=assign)
    assert m.weight is p
    assert type(p) is torch.nn.Parameter
    assert p.dtype is (torch.float64 if assign else torch.float32)
    assert p.tolist() == [[1, 1], [1, 1]]


class Wrapper(torch.Tensor):
    @staticmethod
    def __new__(cls, elem):
        made = torch.Tensor._make_wrapper_subclass(cls, elem.shape, dtype=elem.dtype, requires_grad=elem.requires_grad)
        made.elem = elem
        return made

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        plain = [a.elem if isinstance(a, Wrapper) else a for a in args]
        made = func(*plain, **(kwargs or {}))
        return Wrapper(made) if isinstance(made, torch.Tensor) else made


class TestWrappers:
    def test_operators_reach_the_class(self):
        x = Wrapper(torch.arange(3.0))
        assert (x.shape, x.dtype, x.device.type, x.is_meta) == ((3,), torch.float32, "cpu", False)
        assert (x + 1).elem.tolist() == [1, 2, 3]
        assert x.detach().elem.tolist() == [0, 1, 2]
        assert x[1].item() == 1
        p = torch.nn.Parameter(x)
        assert type(p) is Wrapper
        assert isinstance(p, torch.nn.Parameter)

    def test_copies_and_checkpoints(self, tmp_path):
        import copy

        x = Wrapper(torch.arange(3.0))
        assert copy.deepcopy(x).elem.tolist() == [0, 1, 2]
        torch.save(x, tmp_path / "x.pt")
        with torch.serialization.safe_globals([Wrapper]):
            loaded = torch.load(tmp_path / "x.pt")
        assert type(loaded) is Wrapper
        assert loaded.elem.tolist() == [0, 1, 2]
        assert loaded.shape == (3,)

    def test_refusals(self):
        with pytest.raises(TypeError, match="must define __torch_dispatch__"):
            torch.Tensor._make_wrapper_subclass(torch.Tensor, (2,))
        with pytest.raises(TypeError, match="subclass of Tensor"):
            torch.Tensor._make_wrapper_subclass(int, (2,))
        with pytest.raises(RuntimeError, match="floating point"):
            torch.Tensor._make_wrapper_subclass(Wrapper, (2,), dtype=torch.int64, requires_grad=True)
        with pytest.raises(RuntimeError, match="setting storage offset without stride not supported"):
            torch.Tensor._make_wrapper_subclass(Wrapper, (2,), storage_offset=1)
        with pytest.raises(ValueError, match="expected 'strides' or 'sizes'"):
            torch.Tensor._make_wrapper_subclass(Wrapper, (2,), dispatch_sizes_strides_policy="all")

    @pytest.mark.parametrize(
        "option",
        [{"dispatch_sizes_strides_policy": "sizes"}, {"dispatch_device": True}, {"dispatch_layout": True}, {"storage_size": 8}],
    )
    def test_geometry_is_not_asked_of_the_class(self, option):
        with pytest.raises(NotImplementedError, match=next(iter(option))):
            torch.Tensor._make_wrapper_subclass(Wrapper, (2,), **option)

    def test_storage_offset(self):
        made = torch.Tensor._make_wrapper_subclass(Wrapper, (2, 3), strides=(1, 2), storage_offset=2)
        assert (made.stride(), made.storage_offset(), made.is_contiguous()) == ((1, 2), 2, False)
        assert torch.Tensor._make_wrapper_subclass(Wrapper, (2, 3), strides=(3, 1), storage_offset=0).storage_offset() == 0

    def test_parameters_of_subclasses_say_so(self):
        p = torch.nn.Parameter(torch.ones(2).as_subclass(type("Own", (torch.Tensor,), {})))
        assert repr(p) == "Parameter(Own([1., 1.], requires_grad=True))"


def test_loading_into_the_meta_device_says_that_nothing_happens():
    with torch.device("meta"):
        m = torch.nn.Linear(2, 2)
    with pytest.warns(UserWarning, match="for weight: copying from a non-meta parameter in the checkpoint to a meta"):
        m.load_state_dict({"weight": torch.ones(2, 2), "bias": m.bias})
    assert m.weight.is_meta


def test_a_class_says_what_a_loaded_value_becomes(switch):
    class Doubling(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            if func is torch.Tensor.module_load:
                value = args[1]
                return (torch.Tensor.as_subclass(value, torch.Tensor) * 2).as_subclass(Doubling)
            return super().__torch_function__(func, types, args, kwargs or {})

    switch.set_swap_module_params_on_conversion(True)
    m = torch.nn.Linear(2, 2, bias=False)
    m.weight = torch.nn.Parameter(m.weight.detach().as_subclass(Doubling))
    m.load_state_dict({"weight": torch.ones(2, 2)})
    assert type(m.weight) is Doubling
    assert m.weight.tolist() == [[2, 2], [2, 2]]


def test_references_to_storages():
    from mindtorch_v2.multiprocessing.reductions import StorageWeakRef

    x = torch.ones(2)
    reference = StorageWeakRef(x.untyped_storage())
    assert reference == StorageWeakRef(x[1:].untyped_storage())
    assert hash(reference) == hash(StorageWeakRef(x.detach().untyped_storage()))
    assert reference != StorageWeakRef(torch.ones(2).untyped_storage())
    assert not reference.expired()
    del x
    assert reference.expired()
