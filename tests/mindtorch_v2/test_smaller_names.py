"""Names that programs ask for and that have little to do here: what they answer, and what they refuse."""

import importlib

import numpy as np
import pytest

import mindtorch_v2 as torch
from mindtorch_v2.utils import _python_dispatch as dispatch


class TestTensors:
    @pytest.mark.parametrize("name", ["q_scale", "q_zero_point", "q_per_channel_axis", "qscheme", "int_repr", "to_padded_tensor"])
    def test_methods_of_other_kinds(self, name):
        with pytest.raises(NotImplementedError, match=f"Could not run 'aten::{name}'"):
            getattr(torch.ones(1), name)()

    @pytest.mark.parametrize(("name", "error"), [("xpu", AssertionError), ("mtia", AssertionError), ("ipu", RuntimeError)])
    def test_other_devices(self, name, error):
        with pytest.raises(error):
            getattr(torch.ones(1), name)()

    def test_what_is_deprecated(self):
        x = torch.arange(4.0)
        with pytest.warns(UserWarning, match="volatile was removed"):
            assert x.volatile is False
        with pytest.warns(UserWarning, match="non-inplace resize is deprecated"):
            assert x.resize(2, 2).shape == (2, 2)
        with pytest.warns(UserWarning, match="non-inplace resize_as is deprecated"):
            assert x.resize_as(torch.ones(2, 2)).tolist() == [[0, 1], [2, 3]]
        with pytest.raises(RuntimeError, match="was removed"):
            x.reinforce(1)

    def test_functions_of_three_elements(self):
        x = torch.tensor([1.0, 2.0])
        before = x._version
        assert x.map2_(x, torch.tensor([3.0, 4.0]), lambda a, b, c: a + b * c).tolist() == [4.0, 10.0]
        assert x._version == before + 1

    def test_facts(self):
        x = torch.ones(1)
        assert not x.is_distributed()
        assert x.const_data_ptr() == x.data_ptr()
        assert torch.eye(2).to_sparse_coo().is_sparse


class TestModes:
    def test_the_stack(self):
        assert dispatch._get_current_dispatch_mode() is None
        with dispatch.BaseTorchDispatchMode() as mode:
            assert dispatch.is_in_torch_dispatch_mode()
            assert dispatch._get_current_dispatch_mode() is mode
            assert dispatch._get_current_dispatch_mode_stack() == [mode]
            with dispatch._pop_mode_temporarily() as popped:
                assert popped is mode
                assert not dispatch.any_torch_dispatch_mode_on_stack()
            with dispatch._disable_current_modes() as modes:
                assert modes == [mode]
                assert not dispatch.is_in_torch_dispatch_mode()
            assert (torch.ones(2) + 1).tolist() == [2, 2]

    def test_tensors_that_can_be_taken_apart(self):
        class Pair(torch.Tensor):
            @classmethod
            def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
                raise AssertionError

            def __tensor_flatten__(self):
                return ["part"], "context"

            @staticmethod
            def __tensor_unflatten__(parts, context, size, stride):
                assert context == "context"
                return made(parts["part"])

        def made(part):
            new = torch.Tensor._make_subclass(Pair, torch.zeros(2))
            new.part = part
            return new

        pair = made(torch.ones(2))
        assert dispatch.is_traceable_wrapper_subclass(pair)
        assert not dispatch.is_traceable_wrapper_subclass(torch.ones(1))
        assert not dispatch.is_traceable_wrapper_subclass_type(torch.nn.Parameter)
        assert dispatch.transform_subclass(pair, lambda name, part: part * 3).part.tolist() == [3, 3]


class TestModules:
    @pytest.mark.parametrize(
        "name",
        [
            "utils.cpp_extension.load",
            "utils.cpp_extension.BuildExtension",
            "utils.rename_privateuse1_backend",
            "utils.ThroughputBenchmark",
        ],
    )
    def test_what_is_refused(self, name):
        module, _, attribute = f"mindtorch_v2.{name}".rpartition(".")
        with pytest.raises(NotImplementedError, match="is not part of mindtorch_v2"):
            getattr(importlib.import_module(module), attribute)("x")

    @pytest.mark.parametrize("name", ["package", "nested"])
    def test_modules_that_are_missing_say_why(self, name):
        with pytest.raises(AttributeError, match=f"module 'torch' has no attribute '{name}': .*See docs/compatibility.md"):
            getattr(torch, name)

    def test_environment(self):
        from mindtorch_v2.utils import collect_env

        text = collect_env.get_pretty_env_info()
        assert f"numpy=={np.__version__}" in text
        assert "is cuda available: False" in text

    def test_helpers(self):
        def f():
            pass

        torch.utils.set_module(f, "elsewhere")
        assert f.__module__ == "elsewhere"
        with pytest.raises(TypeError, match="should be a string"):
            torch.utils.set_module(f, 3)
        assert torch.utils.get_cpp_backtrace() == ""

    def test_compiler(self):
        assert torch.compiler.wrap_numpy(np.add)(torch.ones(2), torch.ones(2)).tolist() == [2, 2]
        assert torch.compiler.nested_compile_region(len) is len
        assert torch.compiler.save_cache_artifacts() is None
        torch.compiler.set_default_backend("eager")
        try:
            assert torch.compiler.get_default_backend() == "eager"
        finally:
            torch.compiler.set_default_backend("inductor")

    def test_devices(self):
        assert torch.xpu.memory_snapshot() == []
        with pytest.raises(RuntimeError, match="dummy base class Stream"):
            torch.xpu.Stream()
        assert isinstance(torch.cpu.get_capabilities(), dict)
        assert torch.thread_safe_generator() is None
        assert torch.nn.attention.current_flash_attention_impl() is None
        with pytest.raises(NotImplementedError, match="for GPUs"):
            torch.nn.attention.activate_flash_attention_impl("FA3")

    def test_switches(self):
        assert not torch.is_anomaly_enabled()
        torch.set_anomaly_enabled(True, False)
        try:
            assert torch.is_anomaly_enabled()
            assert not torch.is_anomaly_check_nan_enabled()
        finally:
            torch.set_anomaly_enabled(False)

    def test_types_of_results(self):
        assert torch.return_types.qr._fields == ("Q", "R")
        with pytest.raises(AttributeError, match="no attribute 'nothing'"):
            _ = torch.return_types.nothing

    def test_operators_by_their_names_in_cpp(self):
        assert torch._C._nn.gelu(torch.zeros(2)).tolist() == [0, 0]
        assert torch._C._nn.linear(torch.ones(1, 2), torch.ones(3, 2)).tolist() == [[2, 2, 2]]

    def test_facts_of_tensors_can_be_asserted(self):
        x = torch.ones(2, 3)
        torch._assert_tensor_metadata(x, [2, 3], [3, 1], torch.float32, device="cpu", layout=torch.strided)
        torch._assert_tensor_metadata(x)
        for wrong in ({"size": [2]}, {"stride": [1, 2]}, {"dtype": torch.int64}, {"device": "meta"}, {"layout": torch.sparse_coo}):
            with pytest.raises(RuntimeError, match="mismatch! Expected"):
                torch._assert_tensor_metadata(x, **wrong)

    def test_inference(self):
        assert not torch.is_inference(torch.ones(1))
        with torch.inference_mode():
            assert torch.is_inference(torch.ones(1))

    def test_streams_of_the_cpu(self):
        stream, event = torch.Stream(), torch.Event()
        assert (stream.device.type, stream.query(), event.query()) == ("cpu", True, True)
        assert stream == torch.Stream("cpu")
        with stream:
            stream.synchronize()
        with pytest.raises(RuntimeError, match="cpu backend doesn't support events"):
            stream.record_event()
        with pytest.raises(ValueError, match="enable_timing=True"):
            event.elapsed_time(torch.Event())
        with pytest.raises(RuntimeError, match="not linked with support for cuda"):
            torch.Stream("cuda")

    def test_answers(self):
        assert not torch.is_distributed(torch.ones(1))
        assert not torch.cudnn_is_acceptable(torch.ones(1))
        assert torch.Future is torch.futures.Future

    def test_numbers_of_devices(self):
        assert torch.utils.dlpack.DLDeviceType(torch.ones(1).__dlpack_device__()[0]).name == "kDLCPU"

    def test_modules_that_may_be_installed(self):
        from mindtorch_v2 import _utils

        assert _utils.try_import("importlib") is importlib
        assert _utils.try_import("colorsys").rgb_to_hsv(0, 0, 0) == (0, 0, 0)
        assert _utils.try_import("not_installed_at_all") is None

    def test_names_of_cpp_are_listed_without_imports(self):
        listed = dir(torch._C)
        assert {"Generator", "Size", "_nn"} <= set(listed)
        assert not {"Any", "annotations", "enum"} & set(listed)
