"""Autocast on the CPU: which operators cast, to what, when casts are kept, and that nothing of it is there outside."""

import threading

import pytest

import mindtorch_v2 as torch
from mindtorch_v2._dispatch import dispatcher, keys, registry
from mindtorch_v2.profiler import profile


def casts(call):
    """The number of casts in a call."""
    with profile() as prof:
        call()
    return sum(event.name == "aten::_to_copy" for event in prof.events())


class TestOperators:
    def test_products_have_the_lower_precision(self):
        x = torch.ones(2, 2)
        with torch.autocast("cpu"):
            assert (x @ x).dtype is torch.bfloat16
        with torch.autocast("cpu", dtype=torch.float16):
            assert torch.nn.functional.linear(x, x, x[0]).dtype is torch.float16
        assert (x @ x).dtype is torch.float32

    def test_the_values_are_those_of_rounded_operands(self):
        x = torch.tensor([[1.0, 1 + 2**-9]])  # the second is 1 in bfloat16
        with torch.autocast("cpu"):
            assert torch.mm(x, x.t()).item() == 2.0

    def test_what_loses_by_it_is_computed_in_float32(self):
        x = torch.full((4,), 3.0, dtype=torch.bfloat16)
        with torch.autocast("cpu"):
            assert torch.prod(x).dtype is torch.float32
            assert torch.nn.functional.mse_loss(x, x).dtype is torch.float32

    def test_lists_are_joined_in_the_wider_dtype(self):
        narrow, wide = torch.ones(2, dtype=torch.bfloat16), torch.ones(2)
        with torch.autocast("cpu"):
            assert torch.cat([narrow, wide]).dtype is torch.float32
            assert torch.stack([narrow, narrow]).dtype is torch.bfloat16
            with pytest.raises(RuntimeError, match="Unexpected floating ScalarType"):
                torch.cat([narrow, narrow.half()])

    def test_other_operators_and_dtypes_are_left_alone(self):
        x = torch.ones(2, 2)
        with torch.autocast("cpu"):
            assert (x + x).dtype is torch.float32
            assert (x.double() @ x.double()).dtype is torch.float64
            assert (x.long() @ x.long()).dtype is torch.int64
            assert torch.mm(x, x, out=torch.empty(2, 2)).dtype is torch.float32
            meta = torch.ones(2, 2, device="meta")
            assert (meta @ meta).dtype is torch.float32

    def test_modules_of_another_dtype_than_their_input(self):
        layer = torch.nn.LSTM(1, 1).to(torch.bfloat16)
        with pytest.raises(ValueError, match="does not match weight dtype"):
            layer(torch.ones(1, 2, 1))
        with torch.autocast("cpu"):
            layer(torch.ones(1, 2, 1), (torch.ones(1, 2, 1), torch.ones(1, 2, 1)))


class TestCasts:
    def test_weights_are_cast_once_in_a_region(self):
        layer, x = torch.nn.Linear(2, 2), torch.ones(1, 2)
        with torch.autocast("cpu"):
            assert casts(lambda: layer(x)) == 3
            assert casts(lambda: layer(x)) == 1
            torch.clear_autocast_cache()
            assert casts(lambda: layer(x)) == 3
        with torch.autocast("cpu", cache_enabled=False):
            assert [casts(lambda: layer(x)) for _ in range(2)] == [3, 3]

    def test_of_each_dtype_there_is_one(self):
        layer, x = torch.nn.Linear(2, 2), torch.ones(1, 2)
        with torch.autocast("cpu"):
            assert layer(x).dtype is torch.bfloat16
            with torch.autocast("cpu", dtype=torch.float16):
                assert layer(x).dtype is torch.float16

    def test_a_cast_made_without_gradients_has_one_later(self):
        layer, x = torch.nn.Linear(2, 2), torch.ones(1, 2)
        with torch.autocast("cpu"):
            with torch.no_grad():
                assert not layer(x).requires_grad
            layer(x).sum().backward()
        assert layer.weight.grad.tolist() == [[1.0, 1.0], [1.0, 1.0]]

    def test_inference_mode_keeps_none(self):
        layer, x = torch.nn.Linear(2, 2), torch.ones(1, 2)
        with torch.autocast("cpu"):
            with torch.inference_mode():
                assert [casts(lambda: layer(x)) for _ in range(2)] == [3, 3]
            assert layer(x).requires_grad

    def test_gradients_have_the_dtype_of_the_weights(self):
        layer = torch.nn.Linear(2, 2)
        with torch.autocast("cpu"):
            loss = layer(torch.ones(3, 2)).float().sum()
        loss.backward()
        assert (layer.weight.grad.dtype, layer.bias.grad.tolist()) == (torch.float32, [3.0, 3.0])


class TestRegions:
    def test_nested_and_disabled(self):
        x = torch.ones(2, 2)
        with torch.autocast("cpu"):
            with torch.autocast("cpu", enabled=False):
                assert not torch.is_autocast_enabled("cpu")
                assert (x @ x).dtype is torch.float32
            assert torch.is_autocast_enabled("cpu")
            assert (x @ x).dtype is torch.bfloat16
        assert not torch.is_autocast_enabled("cpu")

    def test_an_error_ends_it(self):
        with pytest.raises(ZeroDivisionError), torch.autocast("cpu"):
            raise ZeroDivisionError
        assert not torch.is_autocast_enabled("cpu")
        with torch.autocast("cpu"):
            with pytest.raises(RuntimeError):
                torch.mm(torch.ones(2, 3), torch.ones(2, 3))
            assert torch.is_autocast_enabled("cpu")

    def test_it_is_for_one_thread(self):
        found = []
        x = torch.ones(2, 2)
        with torch.autocast("cpu"):
            thread = threading.Thread(target=lambda: found.append((x @ x).dtype))
            thread.start()
            thread.join()
        assert found == [torch.float32]

    def test_as_a_decorator(self):
        @torch.autocast("cpu")
        def squared(x):
            """Its square."""
            return x @ x

        assert (squared(torch.ones(2, 2)).dtype, squared.__doc__) == (torch.bfloat16, "Its square.")
        with pytest.raises(TypeError, match=r"requires a callable, but got Tensor"):
            torch.autocast("cpu")(torch.ones(2))

    def test_backward_inside_a_region_is_cast_too(self):
        seen = []

        class Seen(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x.clone()

            @staticmethod
            def backward(ctx, grad):
                seen.append((torch.is_autocast_enabled("cpu"), (grad @ grad).dtype))
                return grad

        result = Seen.apply(torch.ones(2, 2, requires_grad=True)).sum()
        with torch.autocast("cpu"):
            result.backward()
        assert seen == [(True, torch.bfloat16)]

    def test_outside_nothing_is_left_of_it(self):
        x = torch.ones(2, 2)
        with torch.autocast("cpu"):
            x @ x
            x + x
        assert not dispatcher.active_keys() & keys.AUTOCAST
        matmul, add = registry.aten("matmul"), registry.aten("add", "Tensor")
        x @ x
        assert not any(full & keys.AUTOCAST for full in add.compiled)
        outside = dispatcher._full_set(matmul, keys.CPU)  # with the key of layouts, if a tensor of this process was channels-last
        assert not outside & keys.AUTOCAST
        assert matmul.table[keys.CPU] is matmul.compiled[outside]

    def test_unknown_dtypes_and_devices(self):
        with pytest.warns(UserWarning, match="In CPU autocast, but the target dtype is not supported"):
            region = torch.autocast("cpu", dtype=torch.float64)
        with region:
            assert not torch.is_autocast_enabled("cpu")
        with pytest.raises(RuntimeError, match="unsupported autocast device_type 'meta'"):
            torch.autocast("meta")
        with pytest.raises(ValueError, match="Expected `device_type` of type `str`"):
            torch.autocast(torch.device("cpu"))


class TestCustomFunctions:
    @staticmethod
    def function(**options):
        class Product(torch.autograd.Function):
            @staticmethod
            @torch.amp.custom_fwd(device_type="cpu", **options)
            def forward(ctx, a, b):
                ctx.save_for_backward(a, b)
                seen.append(("forward", torch.is_autocast_enabled("cpu"), a.dtype))
                return a @ b

            @staticmethod
            @torch.amp.custom_bwd(device_type="cpu")
            def backward(ctx, grad):
                a, b = ctx.saved_tensors
                seen.append(("backward", torch.is_autocast_enabled("cpu"), a.dtype))
                return grad @ b.t(), a.t() @ grad

        seen = []
        return Product, seen

    def test_backward_runs_as_forward_did(self):
        product, seen = self.function()
        x = torch.ones(2, 2, requires_grad=True)
        with torch.autocast("cpu"):
            result = product.apply(x, x)
        result.sum().backward()
        assert seen == [("forward", True, torch.float32), ("backward", True, torch.float32)]

    def test_inputs_are_cast_inside_autocast_alone(self):
        product, seen = self.function(cast_inputs=torch.float16)
        x = torch.ones(2, 2, requires_grad=True)
        with torch.autocast("cpu"):
            product.apply(x, x)
        product.apply(x, x)
        assert seen == [("forward", False, torch.float16), ("forward", False, torch.float32)]


class TestState:
    def test_dtypes(self):
        assert torch.get_autocast_dtype("cpu") is torch.bfloat16
        assert torch.get_autocast_dtype("cuda") is torch.float16
        torch.set_autocast_dtype("cpu", torch.float16)
        try:
            with torch.autocast("cpu") as region:
                assert region.fast_dtype is torch.float16
        finally:
            torch.set_autocast_dtype("cpu", torch.bfloat16)
        with pytest.raises(TypeError, match=r"must be torch.dtype, not int"):
            torch.set_autocast_dtype("cpu", 3)

    def test_switches(self):
        torch.set_autocast_enabled("cpu", True)
        try:
            assert (torch.ones(1, 1) @ torch.ones(1, 1)).dtype is torch.bfloat16
        finally:
            torch.set_autocast_enabled("cpu", False)
        with pytest.raises(TypeError, match=r"argument 'enabled' \(position 1\) must be bool, not str"):
            torch.set_autocast_enabled("cpu")

    def test_depth(self):
        assert torch.autocast_increment_nesting() == 1
        assert torch.autocast_decrement_nesting() == 0

    def test_older_names(self):
        with pytest.warns(DeprecationWarning, match=r"Please use torch.is_autocast_enabled\('cpu'\) instead"):
            assert torch.is_autocast_cpu_enabled() is False
        with pytest.warns(DeprecationWarning, match=r"torch.get_autocast_dtype\('cuda'\)"):
            assert torch.get_autocast_gpu_dtype() is torch.float16
        with pytest.warns(FutureWarning, match=r"torch.amp.autocast\('cpu', args...\)"), torch.cpu.amp.autocast():
            assert torch.is_autocast_enabled("cpu")


class TestRegisteredOperators:
    def test_inputs_are_cast_to_one_dtype(self):
        seen = []

        @torch.library.custom_op("autocast_test::seen", mutates_args=())
        def operator(x: torch.Tensor, n: torch.Tensor) -> torch.Tensor:
            seen.append((x.dtype, n.dtype, torch.is_autocast_enabled("cpu")))
            return x.clone()

        operator.register_autocast("cpu", torch.float16)
        operator(torch.ones(1), torch.ones(1, dtype=torch.int64))
        with torch.autocast("cpu", dtype=torch.bfloat16):
            assert operator(torch.ones(1), torch.ones(1, dtype=torch.int64)).dtype is torch.float16
        assert seen == [(torch.float32, torch.int64, False), (torch.float16, torch.int64, False)]
        with pytest.raises(ValueError, match="Unknown device type: xyz"):
            torch.library.register_autocast("autocast_test::seen", "xyz", torch.float16)
