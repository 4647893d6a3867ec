"""Names of torch that this package does not have: what is said when one is asked for, and the submodules that are imported when asked for."""

from __future__ import annotations

import difflib
import dis
import importlib
import importlib.util
import re
import sys
from collections.abc import Callable
from types import FrameType, ModuleType
from typing import Any

from ._torch_names import NAMES

__all__ = ["PAGE", "REASONS", "install", "no_module", "reason_for"]

PACKAGE = __name__.partition(".")[0]
PAGE = "docs/compatibility.md"

# Why a name of torch is not here, and what to use instead: the first pattern that matches the name behind `torch.`.
REASONS: dict[str, str] = {
    r"_higher_order_ops": "control flow for exported graphs is not needed here; write it in Python",
    r".*quant.*|q_.*|q?u?int\d(x\d)?|quint.*|qint.*|.*_qparams.*|qscheme|per_(channel|tensor)_.*|int_repr|fbgemm_.*|ao|QU?Int.*Storage|nn\.(intrinsic|qat)": "quantized tensors are not part of the runtime",
    r"bit": "NumPy has no such type",
    r"nested(\..*)?|Nested.*|jagged|Tensor\.to_padded_tensor": "nested tensors are not part of the runtime",
    r"sparse\..*": "sparse tensors have conversions, arithmetic with dense ones, mm, addmm, sums and softmax; this function is not among them",
    r"cudnn_.*|miopen_.*|batch_norm_(stats|elemt|gather.*|backward.*|update_stats)|cuda\..*|cudart|_C\._cuda.*": "there is no CUDA here; the runtime computes on the CPU",
    r"mkldnn_.*|_mkldnn.*": "there is no oneDNN here; the plain operators compute the same",
    r"Script.*|RecursiveScript.*|CompilationUnit|\w+Type|Graph|Block|Node|Value|Use|ArgumentSpec|parse_.*|import_ir.*|Execution.*|Static.*|Tracing.*|jit\..*|(Lite|Concrete).*|classes|.*Logger.*|Code|CallStack|Capsule|AliasDb|IODescriptor|merge_type.*|unify_type.*|CompleteArgumentSpec|Gradient": "TorchScript is not part of the package; models run as Python",
    r"Sym.*": "shapes are Python integers here; there are no symbolic ones",
    r"distributed\.(rpc|autograd|remote_device|optim|nn)(\..*)?|rpc": "functions are not called in other processes here; torch.distributed has operations of all processes, and messages",
    r"distributed\.elastic(\..*)?": "processes that end are not started anew here; torch.distributed.run starts those of one machine",
    r"distributed\..*": "torch.distributed is processes over TCP here, with DistributedDataParallel; this part is not in it",
    r"fx\.experimental(\..*)?|_inductor.*|_dynamo\..*|export\..*|_export.*|_prims.*|_refs.*|_decomp.*|_subclasses.*|_lazy": "nothing is traced or compiled here; models run as Python",
    r"onnx\..*": "models are not exported here; save the state_dict and export it with PyTorch",
    r"utils\.(_triton|mobile_optimizer|bundled_inputs)|cpp|ThroughputBenchmark": "the package is pure Python, without extensions in C++",
    r"_C|_C\..*": "the package is pure Python; what torch has in C++ is not reachable by these names",
    r"lobpcg": "torch.linalg.eigh gives eigenvalues",
    r"Tensor\.(grad_dtype|index)": "gradients have the dtype of their tensor, and dimensions have no names here",
    r"autograd\.((grad_mode|graph)\.)?(enforce_grad_layout_policy|region_activation_memory_budget)": "gradients keep the layout of their tensors, and nothing is compiled",
    r"autograd\.graph\.set_(override_stale_capture_stream|warn_on_accumulate_grad_stream_mismatch)": "there are no streams here; the runtime computes on the CPU",
    r"compiler\.(config|load_compiled_function)": "nothing is compiled here; models run as Python",
    r"library\.get_ctx": "shapes are Python integers here; a fake kernel returns tensors of them",
    r"overrides\.(enable_reentrant_dispatch|redispatch_function)": "call super().__torch_function__ to run a function without your own override",
    r"utils\.backcompat(\..*)?": "it warns about the rules of PyTorch 0.1, which nothing follows any more",
    r"utils\.cmake_prefix_path": "the package is pure Python, without extensions in C++",
    r"utils\.hooks\.BackwardHook": "it is a part of how PyTorch calls hooks of modules; use register_full_backward_hook",
    r"utils\._python_dispatch\.(DispatchKey|autograd_would_have_decomposed|.*ignore_compile_internals)": "keys are bits of an integer here, and nothing is compiled",
    r"package(\..*)?": "programs are not packed into archives here; save a state_dict, and install the code",
    r"mtia|Tensor\.(record_stream|to_mkldnn)|mps\.(Event|load_metallib|profiler)|backends\.mps\..*": "there is no such device here; the runtime computes on the CPU",
    r"backends\.cuda\..*|nn\.functional\.(scaled_(grouped_)?mm|ScalingType|SwizzleType)": "it is for kernels of GPUs",
    r"library\.(triton_op|wrap_triton|get_kernel|fallthrough_kernel)": "operators have kernels in Python; register them with torch.library.custom_op or impl",
    r"utils\.data\.(.*DataPipe|DataChunk|functional_datapipe|.*determini.*|argument_validation|runtime_validation.*)": "data pipes are deprecated in PyTorch; use datasets and DataLoader",
    r"masked\.(MaskedTensor|as_masked_tensor|is_masked_tensor|masked_tensor)": "it is a prototype in PyTorch; torch.masked has reductions with a mask=",
    r"(DispatchKey(Set)?|ExcludeDispatchKeyGuard|BenchmarkConfig|BenchmarkExecutionStats|DeepCopyMemoTable|(Des|S)erializationStorageContext|ErrorReport|FatalError|GraphExecutorState|OperatorInfo|BufferDict|ModuleDict|ParameterDict|AVG|SUM|Type|init_num_threads|native_norm)": "it is a part of PyTorch's C++, and no part of its documented interface",
}
_NOT_YET = "PyTorch has it, and this package does not yet"

# Submodules that `import torch` makes reachable in PyTorch. Those that exist here are imported when they are asked for.
SUBMODULES: dict[str, tuple[str, ...]] = {
    "": tuple(
        "_C __config__ _custom_ops _dynamo _utils accelerator amp ao backends compiler cuda distributed distributions export func functional futures fx hub jit"
        " monitor mps multiprocessing nested onnx package profiler quasirandom sparse testing torch_version types utils version xpu".split()
    ),
    "autograd": ("profiler", "profiler_util"),
    "cpu": ("memory",),
    "nn": ("parallel", "qat", "quantizable", "quantized", "intrinsic"),
    "utils": ("backcompat", "checkpoint", "collect_env", "data", "deterministic", "hooks", "weak"),
    "nn.utils": ("parametrizations", "parametrize", "rnn", "stateless"),
    "optim": ("lr_scheduler", "swa_utils"),
    "cuda": ("amp", "comm", "graphs", "jiterator", "memory", "nccl", "nvtx", "profiler", "random", "sparse", "streams", "tunable"),
    "backends": tuple("cpu cuda cudnn mkl mkldnn mps nnpack openmp opt_einsum quantized".split()),
    "distributed": tuple(
        "algorithms autograd c10d_logger config device_mesh distributed_c10d elastic fsdp launch logging_handlers nn optim remote_device rpc run"
        " tensor utils".split()
    ),
}

# Modules with a counterpart in torch that say why a name is missing.
MODULES = (
    "", "nn", "nn.functional", "nn.init", "nn.utils", "nn.modules", "optim", "optim.lr_scheduler", "autograd", "linalg", "fft", "special",
    "signal", "sparse", "masked", "utils", "cpu", "random", "library", "overrides", "serialization", "storage",
)  # fmt: skip


def reason_for(name: str) -> str:
    """Why `torch.<name>`, which PyTorch has, is not here; in one sentence."""
    return _reason(name) or _NOT_YET


def _reason(name: str) -> str | None:
    return next((reason for pattern, reason in REASONS.items() if re.fullmatch(pattern, name)), None)


def no_module(name: str) -> ModuleNotFoundError:
    """The error for an import of `torch.xyz` that does not exist."""
    reason = _reason(name.removeprefix("torch.")) or "there is no such part"
    return ModuleNotFoundError(f"No module named {name!r} in {PACKAGE}: {reason}. See {PAGE}", name=name)


def install(names: tuple[str, ...] = MODULES) -> None:
    """Give modules that have been imported a `__getattr__` and a `__dir__`. A `__getattr__` that one has is asked first."""
    for name in names:
        module = sys.modules[f"{PACKAGE}.{name}" if name else PACKAGE]
        vars(module)["__getattr__"] = _lookup(module, name, vars(module).get("__getattr__"))
        vars(module).setdefault("__dir__", _listing(module, name))


def _lookup(module: ModuleType, path: str, first: Callable[[str], Any] | None) -> Callable[[str], Any]:
    """What is called for a name that the module does not have."""
    submodules = SUBMODULES.get(path, ())

    def __getattr__(name: str) -> Any:  # noqa: N807
        if first is not None:
            try:
                return first(name)
            except AttributeError:
                pass
        if name in submodules:
            try:
                return _submodule(module, path, name)
            except ModuleNotFoundError as error:
                if error.name != f"{module.__name__}.{name}":
                    raise
        if name.startswith("__"):
            raise AttributeError(f"module {module.__name__!r} has no attribute {name!r}", name=name, obj=module)
        if _is_import_of_name(sys._getframe(1)):
            raise ImportError(
                f"cannot import name {name!r} from {_torch_name(path)!r}{_why(module, path, name)}", name=module.__name__
            )
        raise AttributeError(f"module {_torch_name(path)!r} has no attribute {name!r}{_why(module, path, name)}")

    return __getattr__


def _submodule(module: ModuleType, path: str, name: str) -> ModuleType:
    found = importlib.import_module(f"{module.__name__}.{name}")
    if sys.modules.get("torch") is sys.modules[PACKAGE]:
        sys.modules.setdefault(f"{_torch_name(path)}.{name}", found)
    return found


def _listing(module: ModuleType, path: str) -> Callable[[], list[str]]:
    """The names of a module, with the submodules that it imports when they are asked for."""

    def __dir__() -> list[str]:  # noqa: N807
        waiting = [name for name in SUBMODULES.get(path, ()) if importlib.util.find_spec(f"{module.__name__}.{name}")]
        return sorted({*vars(module), *waiting} - {"__getattr__", "__dir__"})

    return __dir__


def _torch_name(path: str) -> str:
    return f"torch.{path}" if path else "torch"


def _why(module: ModuleType, path: str, name: str) -> str:
    """What follows in an error: the reason, where PyTorch has the name, and names that are spelled alike."""
    if name in NAMES.get(path, ()) or name in SUBMODULES.get(path, ()) or (name.startswith("_") and not path):
        return f": {reason_for(f'{path}.{name}' if path else name)}. See {PAGE}"
    # near names differ little in length and start alike: comparing with all 1,000 would take 15 ms for each hasattr()
    alike = [known for known in vars(module) if known[:1] == name[:1] and abs(len(known) - len(name)) <= 2]
    near = difflib.get_close_matches(name, alike, n=2, cutoff=0.75)
    return f". Did you mean {' or '.join(map(repr, near))}?" if near else ""


def _is_import_of_name(frame: FrameType) -> bool:
    """Whether a frame is at `from module import name`, whose own error would not give the reason."""
    return frame.f_code.co_code[frame.f_lasti] == dis.opmap["IMPORT_FROM"]
