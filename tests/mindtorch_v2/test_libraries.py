"""What libraries written for torch import and do before they compute."""

import importlib

import pytest

import mindtorch_v2 as torch

# What torchvision, timm, torchmetrics, accelerate, pytorch-lightning, captum, kornia, opacus and Pyro import beside the documented names
IMPORTS = {
    "_C": "DisableTorchFunctionSubclass DispatchKey DispatchKeySet Generator _TensorMeta _get_tracing_state _log_api_usage_once",
    "_custom_ops": "get_ctx impl_abstract",
    "_dynamo": "assume_constant_result eval_frame",
    "_dynamo._trace_wrapped_higher_order_op": "TransformGetItemToIndex",
    "_dynamo.eval_frame": "OptimizedModule is_dynamo_supported",
    "_dynamo.utils": "is_compile_supported",
    "_subclasses": "FakeTensor FakeTensorMode",
    "_subclasses.fake_tensor": "is_fake",
    "ao.quantization": "DeQuantStub QuantStub fuse_modules prepare_qat",
    "distributed._tensor": "DTensor Shard",
    "distributed._tensor.experimental": "implicit_replication",
    "distributed.device_mesh": "DeviceMesh init_device_mesh",
    "distributed.fsdp": "FullyShardedDataParallel ShardingStrategy fully_shard",
    "distributed.tensor": "DTensor Replicate distribute_tensor",
    "fx": "graph_module node proxy",
    "fx.experimental.proxy_tensor": "get_proxy_mode",
    "fx.node": "Target",
    "fx.graph_module": "GraphModule _CodeOnlyModule _copy_attr",
    "hub": "HASH_REGEX _get_torch_home load_state_dict_from_url tqdm",
    "jit.annotations": "BroadcastingList2 List",
    "nn.attention.flex_attention": "BlockMask create_block_mask flex_attention",
    "nn.modules.module": "_IncompatibleKeys",
    "nn.modules.transformer": "_get_activation_fn",
    "nn.parallel.distributed": "DistributedDataParallel",
    "nn.parallel.scatter_gather": "gather scatter scatter_kwargs",
    "onnx": "register_custom_op_symbolic",
    "onnx.symbolic_helper": "parse_args",
    "onnx.symbolic_opset11": "unsqueeze",
    "serialization": "MAP_LOCATION",
    "utils._foreach_utils": "_group_tensors_by_device_and_dtype",
    "utils._pytree": "LeafSpec PyTree SUPPORTED_NODES TreeSpec _dict_flatten _dict_flatten_with_keys _dict_unflatten _get_node_type",
    "utils.data.dataloader": "_collate_fn_t _worker_init_fn_t",
    "utils.model_zoo": "load_url tqdm",
}


@pytest.mark.parametrize("module", IMPORTS)
def test_imports(module):
    found = importlib.import_module(f"mindtorch_v2.{module}")
    assert [name for name in IMPORTS[module].split() if not hasattr(found, name)] == []


def test_no_tensor_is_a_distributed_one():
    assert not isinstance(torch.ones(2), torch.distributed.tensor.DTensor)
    with pytest.raises(NotImplementedError, match=r"torch\.distributed\.tensor\.DTensor .*not spread over processes"):
        torch.distributed.tensor.DTensor()


def test_no_tensor_stands_for_another():
    x = torch.ones(2)
    assert not isinstance(x, torch._subclasses.FakeTensor)
    assert not torch._subclasses.fake_tensor.is_fake(x)
    assert torch.fx.experimental.proxy_tensor.get_proxy_mode() is None


def test_tensors_by_device_and_dtype():
    a, b, c = torch.ones(1), torch.ones(2, dtype=torch.double), torch.zeros(1)
    from mindtorch_v2.utils import _foreach_utils as utils

    cpu = torch.device("cpu")
    assert utils._group_tensors_by_device_and_dtype([[a, b, c], [c, None, a]], with_indices=True) == {
        (cpu, torch.double): ([[b], [None]], [1]),
        (cpu, torch.float): ([[a, c], [c, a]], [0, 2]),
    }
    assert utils._has_foreach_support([a, None], cpu)
    assert not utils._has_foreach_support([torch.nn.Parameter(a)], cpu)
    assert not utils._device_has_foreach_support(torch.device("mps"))


def test_pinned_memory_needs_an_accelerator():
    x = torch.ones(2)
    assert not x.is_pinned()
    assert not torch.ops.aten.is_pinned(x)
    for pin in (x.pin_memory, lambda: torch.ops.aten._pin_memory(x)):
        with pytest.raises(RuntimeError, match="Cannot access accelerator device"):
            pin()


def test_a_divergence_of_any_class():
    class Own:
        pass

    torch.distributions.register_kl(Own, Own)(lambda p, q: 7)
    try:
        assert torch.distributions.kl_divergence(Own(), Own()) == 7
    finally:
        del torch.distributions.kl._KL_REGISTRY[Own, Own]
    with pytest.raises(TypeError, match="type_q"):
        torch.distributions.register_kl(Own, 3)


def test_classes_of_an_absent_device_stand_in_annotations():
    assert torch.cuda.CUDAGraph | None
    with pytest.raises(AssertionError, match="not compiled with CUDA"):
        torch.cuda.CUDAGraph()


def test_names_of_c_say_why_they_are_missing():
    with pytest.raises(AttributeError, match=r"torch\._C.*'_no_such_thing'.*pure Python"):
        torch._C._no_such_thing  # noqa: B018


def test_sets_of_dispatch_keys():
    key = torch._C.DispatchKey
    both = torch._C.DispatchKeySet(key.AutocastCPU) | torch._C.DispatchKeySet(key.CPU)
    assert both.has(key.CPU)
    assert not (both - torch._C.DispatchKeySet(key.CPU)).has(key.CPU)
    assert repr(both & torch._C.DispatchKeySet(key.CPU)) == "DispatchKeySet(CPU)"


def test_libraries_of_operators_in_c_are_refused():
    with pytest.raises(OSError, match=r"operators\.so.*pure Python"):
        torch.ops.load_library("operators.so")


def test_shape_rules_may_come_before_their_operators():
    @torch.library.register_fake("ahead_of::doubled")
    def rule(x):
        return x.new_empty((2 * x.shape[0],))

    library = torch.library.Library("ahead_of", "DEF")
    try:
        library.define("doubled(Tensor x) -> Tensor")
        library.impl("doubled", lambda x: torch.cat([x, x]), "CPU")
        assert torch.ops.ahead_of.doubled(torch.ones(3, device="meta")).shape == (6,)
        assert torch.ops.ahead_of.doubled(torch.ones(3)).tolist() == [1] * 6
    finally:
        library._destroy()


@pytest.mark.parametrize("container", [torch.nn.ModuleList, torch.nn.ModuleDict, torch.nn.ParameterDict])
def test_containers_without_content_call_no_method_of_a_subclass(container):
    class Careful(container):
        def __init__(self):
            super().__init__()
            self.is_ready = True

        def update(self, *args):
            assert self.is_ready
            super().update(*args)

        def extend(self, *args):
            assert self.is_ready
            super().extend(*args)

    assert len(Careful()) == 0


def test_asserting():
    torch._assert(torch.tensor(True), "never")
    with pytest.raises(AssertionError, match="two and two"):
        torch._assert(torch.tensor(False), "two and two")


def test_arguments_of_to_are_told_apart():
    parsed = torch._C._nn._parse_to("cpu", torch.float64, non_blocking=True)
    assert parsed == (torch.device("cpu"), torch.float64, True, None)
    assert issubclass(torch.ScriptModule, torch.nn.Module)


def test_stubs_of_quantization_change_nothing():
    linear, x = torch.nn.Linear(3, 2), torch.ones(1, 3)
    wrapped = torch.ao.quantization.QuantWrapper(linear)
    assert torch.equal(wrapped(x), linear(x))
    with pytest.raises(NotImplementedError, match="floating point"):
        torch.ao.quantization.convert(wrapped)
