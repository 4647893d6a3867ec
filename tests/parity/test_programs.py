"""What programs ask of torch before they compute: the answers are those of a PyTorch for the CPU."""

import warnings

import pytest

import mindtorch_v2 as mt

pytestmark = pytest.mark.parity

SAME = """
torch.cuda.is_available()
torch.cuda.device_count()
torch.cuda.is_initialized()
torch.cuda.is_bf16_supported()
torch.cuda.is_tf32_supported()
torch.cuda.get_arch_list()
torch.cuda.get_gencode_flags()
torch.cuda.get_rng_state_all()
torch.cuda.set_rng_state_all([])
torch.cuda.manual_seed(1)
torch.cuda.manual_seed_all(1)
torch.cuda.manual_seed('a')
torch.cuda.seed()
torch.cuda.seed_all()
torch.cuda.empty_cache()
torch.cuda.memory_allocated()
torch.cuda.max_memory_allocated()
torch.cuda.memory_reserved()
torch.cuda.memory_stats()
torch.cuda.memory_stats_as_nested_dict()
torch.cuda.synchronize()
torch.cuda.current_device()
torch.cuda.get_device_name()
torch.cuda.get_device_name(0)
torch.cuda.get_device_properties(0)
torch.cuda.get_device_capability()
torch.cuda.mem_get_info()
torch.cuda.current_stream()
torch.cuda.get_rng_state()
torch.cuda.initial_seed()
torch.cuda.init()
torch.cuda.ipc_collect()
torch.cuda.can_device_access_peer(0, 1)
torch.cuda.set_device(-1)
torch.cuda.Stream()
torch.cuda.Event(enable_timing=True)
torch.cuda.stream(None).__enter__()
torch.cuda.device(0).__enter__()
torch.cuda.device_of(torch.ones(2)).__enter__()
torch.cuda.FloatTensor([1])
torch.cuda.LongTensor(2)
isinstance(torch.ones(2), torch.cuda.FloatTensor)
torch.cuda.nvtx.range_push('a')
torch.cuda.default_generators
torch.cuda.has_half
torch.cuda.amp.amp_definitely_not_available()
torch.xpu.is_available()
torch.xpu.device_count()
torch.xpu.synchronize()
torch.xpu.manual_seed_all(0)
torch.xpu.empty_cache()
torch.mps.is_available()
torch.mps.device_count()
torch.mps.manual_seed(0)
torch.accelerator.is_available()
torch.accelerator.current_accelerator()
torch.accelerator.current_accelerator(check_available=True)
torch.accelerator.device_count()
torch.accelerator.current_device_index()
torch.accelerator.synchronize()
torch.accelerator.set_device_index(-1)
torch.accelerator.set_device_index(0)
torch.device('cuda')
torch.device('cuda', 1).index
torch.device('cuda:1')
torch.device('mps')
torch.ones(2, device='cuda')
torch.zeros(2, device='cuda:3')
torch.tensor([1.0], device='cuda')
torch.empty_like(torch.ones(2), device='cuda')
torch.ones(2).to('cuda')
torch.ones(2).cuda()
torch.ones(2, device='xpu')
torch.ones(2).to('xpu')
torch.nn.Linear(2, 2).cuda()
torch.nn.Linear(2, 2).to('cuda')
torch.nn.Linear(2, 2, device='cuda')
torch.get_device_module().__name__.rpartition('.')[2]
torch.get_device_module('cuda').__name__.rpartition('.')[2]
torch.get_device_module(3)
torch.backends.cudnn.is_available()
torch.backends.cudnn.version()
torch.backends.cudnn.enabled
torch.backends.cudnn.benchmark
torch.backends.cudnn.benchmark_limit
torch.backends.cudnn.deterministic
torch.backends.cudnn.allow_tf32
torch.backends.cudnn.is_acceptable(torch.ones(2))
torch.backends.cudnn.flags(enabled=True).__enter__()
torch.backends.cuda.is_built()
torch.backends.cuda.matmul.allow_tf32
torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction
torch.backends.cuda.matmul.fp32_precision
torch.backends.cuda.matmul.nothing
setattr(torch.backends.cuda.matmul, 'nothing', 1)
torch.backends.cuda.cufft_plan_cache.size
torch.backends.cuda.math_sdp_enabled()
torch.backends.mps.is_available()
torch.backends.mps.is_built()
torch.backends.mkldnn.enabled
torch.backends.mkldnn.deterministic
torch.backends.opt_einsum.is_available()
torch.backends.opt_einsum.enabled
torch.backends.opt_einsum.strategy
torch.backends.cpu.get_cpu_capability()
torch.get_float32_matmul_precision()
torch.set_float32_matmul_precision('high')
torch.get_float32_matmul_precision()
torch.set_float32_matmul_precision('highest')
torch.are_deterministic_algorithms_enabled()
torch.use_deterministic_algorithms(1)
torch.use_deterministic_algorithms(True, warn_only=True)
torch.get_deterministic_debug_mode()
torch.is_deterministic_algorithms_warn_only_enabled()
torch.set_deterministic_debug_mode('error')
torch.get_deterministic_debug_mode()
torch.set_deterministic_debug_mode('x')
torch.set_deterministic_debug_mode(7)
torch.set_deterministic_debug_mode(1.5)
torch.set_deterministic_debug_mode(0)
torch.set_warn_always('x')
torch.is_warn_always_enabled()
torch.set_num_threads(0)
torch.set_num_threads('a')
torch.set_num_threads(True)
torch.set_num_threads(1)
torch.get_num_threads()
torch.set_num_interop_threads(0)
torch.version.cuda
torch.version.hip
torch.version.debug
torch.__version__ > '2.0'
torch.__version__ >= (2, 0)
torch.__version__ >= (2, 13)
torch.__version__ < '2.14.0.dev1'
torch.__version__ > '2.13.0rc1'
torch.__version__ >= '2.13'
torch.__version__ < (3,)
torch.__version__ >= 'parrot'
torch.__version__.split('.')[:2]
torch.distributed.is_initialized()
torch.distributed.is_nccl_available()
torch.distributed.ReduceOp.SUM == torch.distributed.ReduceOp.SUM
torch.jit.is_scripting()
torch.jit.is_tracing()
torch.jit.annotate(int, 3)
torch.jit.isinstance([1], list)
torch.jit.isinstance([1], list[int])
torch.jit.isinstance([1, 'a'], list[int])
torch.jit.isinstance({'a': 1}, dict[str, int])
torch.jit.isinstance(None, int | None)
torch.jit.isinstance((1, 'a'), tuple[int, str])
torch.jit.fork(max, 1, 2).wait()
torch.compiler.is_compiling()
torch.compile(5)
torch.ones(2).is_pinned()
torch.ones(2).pin_memory()
torch.ops.aten._pin_memory(torch.ones(2))
torch.onnx.is_in_onnx_export()
torch.is_autocast_enabled()
torch.is_autocast_enabled('cpu')
torch.get_autocast_dtype('cpu')
torch.get_autocast_dtype('cuda')
torch.autocast('cuda', enabled=False).__enter__() is None
torch.amp.GradScaler('cpu').get_scale()
torch.amp.GradScaler('cuda', enabled=False).state_dict()
torch.amp.GradScaler('cpu', growth_factor=0.5)
torch.nn.DataParallel(torch.nn.Linear(2, 2)).device_ids
sorted(torch.nn.DataParallel(torch.nn.Linear(2, 2)).state_dict())
torch.multiprocessing.get_sharing_strategy()
torch.hub.load('a/b', 'x', source='z')
torch.hub.load('nowhere', 'x', source='local')
torch.hub.get_dir()
torch.functional.einsum('i,i', torch.ones(3), torch.ones(3))
torch.sym_int(-3.7), torch.sym_float(3), torch.sym_not(3), torch.sym_sqrt(2), torch.sym_ite(True, 1, 2)
torch.sym_max(1, 2.5), torch.sym_max(2, 2.0), torch.sym_min(1, 2.5), torch.sym_min(1, 2), torch.sym_sum([1, 2]), torch.sym_sum(1, 2)
torch.sym_ite(1, 1, 2)
torch.sym_ite(True, 1, 2.0)
torch.sym_max('a', 1)
torch.cond(True, lambda x: x + 1, lambda x: x - 1, (torch.ones(2),)).tolist()
torch.cond(torch.ones(2) > 0, lambda x: x + 1, lambda x: x - 1, (torch.ones(2),))
[t.tolist() for t in torch.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x * 2), (torch.tensor(0), torch.ones(2)))]
torch.Stream(), torch.Event()
torch.Stream().query(), torch.Stream().device
torch.Event().record()
torch.Event().elapsed_time(torch.Event())
torch.Stream('cuda')
torch.is_distributed(torch.ones(1)), torch.cudnn_is_acceptable(torch.ones(1)), torch.is_inference(torch.ones(1))
torch.return_types.max._fields if hasattr(torch.return_types.max, '_fields') else ('values', 'indices')
torch.ones(1).xpu()
torch.ones(1).ipu()
torch._assert_tensor_metadata(torch.ones(2), [3])
torch._assert_tensor_metadata(torch.ones(2), [2], [1], torch.float32)
""".strip().splitlines()


def outcome(torch, expression):
    """The value of an expression as a text, or its error, and the texts of warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            value = repr(eval(expression, {"torch": torch}))
        except Exception as error:
            value = f"{type(error).__name__}: {error}"
    texts = [str(warning.message) for warning in caught]
    return value.replace("mindtorch_v2", "torch"), [text for text in texts if "torch.jit." not in text]  # all of that is deprecated


def test_answers():
    """In order: some set what others read."""
    import torch

    expected = {expression: outcome(torch, expression) for expression in SAME}
    got = {expression: outcome(mt, expression) for expression in SAME}
    assert [(e, o, expected[e]) for e, o in got.items() if o != expected[e]] == []


WARNING = [
    "torch.autocast('cuda')",
    "torch.cuda.amp.autocast()",
    "torch.cuda.amp.GradScaler()",
    "torch.amp.GradScaler()",
]


@pytest.mark.parametrize("expression", WARNING)
def test_warnings(expression):
    import torch

    assert outcome(mt, expression)[1] == outcome(torch, expression)[1]


def test_a_scaled_training():
    import torch

    def trained(torch):
        torch.manual_seed(0)
        model = torch.nn.Linear(3, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        scaler = torch.amp.GradScaler("cpu", init_scale=8.0, growth_interval=2)
        scales = []
        for step in range(6):
            x = torch.arange(6.0).reshape(2, 3) / 6
            if step == 3:
                x = x * float("inf")
            optimizer.zero_grad()
            scaler.scale(model(x).square().mean()).backward()
            if step == 4:
                scaler.unscale_(optimizer)
            scaler.step(optimizer)
            scaler.update()
            scales.append(scaler.get_scale())
        return scales, scaler.state_dict(), model.weight.tolist()[0]

    ours, theirs = trained(mt), trained(torch)
    assert ours[:2] == theirs[:2]
    assert ours[2] == pytest.approx(theirs[2], rel=1e-6)


class TestAssertClose:
    CASES = """
    assert_close(a, torch.tensor([1., 2., 4.]))
    assert_close(a, a.double())
    assert_close(a, a.double(), check_dtype=False)
    assert_close(a, torch.ones(2))
    assert_close(torch.tensor(1.), torch.tensor(2.))
    assert_close(1., 2.)
    assert_close(1., 1. + 1e-9)
    assert_close(1, 2)
    assert_close(1, 2.0)
    assert_close(1, 2.0, check_dtype=False)
    assert_close(torch.tensor([1, 2]), torch.tensor([1, 3]))
    assert_close([a, a], [a, a + 1])
    assert_close({'x': a}, {'x': a + 1})
    assert_close({'x': a}, {'y': a + 1})
    assert_close([a], [a, a])
    assert_close(a, [1., 2., 3.])
    assert_close('a', 'a')
    assert_close(None, None)
    assert_close(a, None)
    assert_close(a, a.clone(), rtol=1)
    assert_close(a, a.clone(), atol=1)
    assert_close(a, a + 1, rtol=0, atol=2)
    assert_close(nan, nan)
    assert_close(nan, nan, equal_nan=True)
    assert_close(float('nan'), float('nan'))
    assert_close(a, a + 1, msg='mine')
    assert_close(a, a + 1, msg=lambda text: 'before ' + text)
    assert_close(a, a.numpy())
    assert_close(a.numpy(), a.numpy() + 1)
    assert_close(a.expand(2, 3), a.expand(2, 3).clone(), check_stride=True)
    assert_close(a.expand(2, 3), a.expand(2, 3).clone())
    assert_close(torch.tensor([True, False]), torch.tensor([True, True]))
    assert_close(torch.ones(2, 2), torch.zeros(2, 2))
    assert_close(torch.tensor([1 + 1j]), torch.tensor([1 + 2j]))
    assert_close(torch.tensor([1 + 1j, 2]), torch.tensor([1 + 2j, 2]))
    assert_close(True, False)
    assert_close(a, a.to_sparse())
    assert_close(torch.tensor([float('inf'), 1.]), torch.tensor([float('inf'), 2.]))
    assert_close(torch.tensor([float('inf'), 1.]), torch.tensor([float('-inf'), 1.]))
    assert_close(a.bfloat16(), (a * 1.02).bfloat16())
    assert_close(a.half(), (a * 1.0005).half())
    assert_close(a, a + 1, rtol=0, atol=0)
    assert_close(a, torch.nn.Parameter(a))
    assert_close(a, torch.nn.Parameter(a), allow_subclasses=False)
    assert_close(torch.empty(0), torch.empty(0))
    assert_close([[1.0]], [[1.5]])
    assert_close((1, [2, {'k': 3}]), (1, [2, {'k': 4}]))
    assert_close(torch.tensor([200, 3], dtype=torch.uint8), torch.tensor([3, 3], dtype=torch.uint8))
    assert_close(2 + 1j, 2 + 2j)
    """.strip().splitlines()

    @pytest.mark.parametrize("case", [case.strip() for case in CASES])
    def test_same_verdict(self, case):
        import torch

        def verdict(torch):
            names = {
                "torch": torch,
                "assert_close": torch.testing.assert_close,
                "a": torch.tensor([1.0, 2.0, 3.0]),
                "nan": torch.tensor(float("nan")),
            }
            try:
                return eval(case, names)
            except Exception as error:
                return type(error).__name__, str(error).replace("mindtorch_v2._tensor.", "torch.").replace("mindtorch_v2", "torch")

        assert verdict(mt) == verdict(torch)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16", "int64", "int8", "uint8", "bool", "complex64"])
@pytest.mark.parametrize(
    "options", [{}, {"low": 0, "high": 2}, {"noncontiguous": True}, {"exclude_zero": True}, {"low": 1e9, "high": 1e99}]
)
def test_make_tensor(dtype, options):
    import torch

    def made(torch):
        torch.manual_seed(3)
        try:
            t = torch.testing.make_tensor((3, 4), dtype=getattr(torch, dtype), device="cpu", **options)
        except (ValueError, RuntimeError) as error:
            return type(error).__name__
        return t.tolist(), t.stride(), str(t.dtype)

    assert made(mt) == made(torch)


def test_names_that_are_missing_are_known():
    """`_torch_names` has what PyTorch has and this package has not."""
    import types

    import torch

    from mindtorch_v2._missing import MODULES, NAMES, SUBMODULES

    unknown, invented = [], []
    for path in MODULES:
        theirs, ours = torch, mt
        for part in path.split(".") if path else ():
            theirs, ours = getattr(theirs, part), getattr(ours, part)
        invented += [f"{path}.{name}" for name in NAMES.get(path, ()) if not hasattr(theirs, name)]
        known = {*NAMES.get(path, ()), *SUBMODULES.get(path, ()), *dir(ours)}
        for name in getattr(theirs, "__all__", ()):
            if (
                name not in known
                and hasattr(theirs, name)
                and name != "Tensor"
                and not isinstance(getattr(theirs, name, None), types.ModuleType)
                and not name.startswith("_")
            ):
                unknown.append(f"{path}.{name}")
    assert unknown == []
    assert invented == []


def test_a_plain_pickle_of_pytorch():
    import pickle
    import subprocess
    import sys

    import torch

    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3))
    content = pickle.dumps([model, torch.arange(6).reshape(2, 3).t(), torch.float16, torch.device("cpu"), torch.Size([2])])
    program = (
        "import sys, pickle, mindtorch_v2.as_torch\nmodel, *rest = pickle.loads(sys.stdin.buffer.read())\nimport torch\n"
        "torch.manual_seed(0)\nassert type(model[0]) is torch.nn.Linear\nprint(rest, [p.tolist() for p in model.parameters()])"
    )
    import os
    from pathlib import Path

    environment = {**os.environ, "PYTHONPATH": str(Path(mt.__file__).parent.parent)}
    done = subprocess.run([sys.executable, "-c", program], input=content, capture_output=True, check=True, env=environment)
    expected = f"{[torch.arange(6).reshape(2, 3).t(), torch.float16, torch.device('cpu'), torch.Size([2])]} {[p.tolist() for p in model.parameters()]}\n"
    assert done.stdout.decode() == expected
