"""torch in pure Python: an eager tensor runtime with PyTorch's API on NumPy kernels, built around its profiler."""

from __future__ import annotations

import math
import sys as _sys
from typing import TYPE_CHECKING, Any

from . import _autograd, _backends, _dtype, _indexing, autograd, masked, return_types, special
from ._autograd.grad_mode import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
)
from ._autograd.leaf import is_inference
from ._control_flow import cond, while_loop
from ._creation import as_tensor, asarray, get_default_device, set_default_device, tensor
from ._device import device
from ._dispatch import registry as _registry
from ._dtype import NARROW as _NARROW_DTYPES
from ._dtype import (
    bfloat16,
    complex64,
    complex128,
    dtype,
    float16,
    float32,
    float64,
    get_default_dtype,
    int8,
    int16,
    int32,
    int64,
    set_default_dtype,
    uint8,
    uint16,
    uint32,
    uint64,
)
from ._dtype import bool_ as bool  # noqa: A004 - torch's name
from ._dtype_info import finfo, iinfo
from ._errors import AcceleratorError, OutOfMemoryError
from ._file_check import FileCheck
from ._function_schema import Argument, FunctionSchema, parse_schema
from ._functions import PREFIXES as _PREFIXES
from ._functions import functions as _public_functions
from ._interop import from_dlpack, from_numpy, frombuffer, to_dlpack
from ._legacy import TENSOR_TYPES as _TENSOR_TYPES
from ._legacy import set_default_tensor_type
from ._memory_format import (
    channels_last,
    channels_last_3d,
    contiguous_format,
    jagged,
    layout,
    memory_format,
    preserve_format,
    sparse_bsc,
    sparse_bsr,
    sparse_coo,
    sparse_csc,
    sparse_csr,
    strided,
)
from ._op_packet import ops
from ._printing import set_printoptions
from ._promotion import can_cast, promote_types, result_type
from ._random import Generator, default_generator, get_rng_state, initial_seed, manual_seed, seed, set_rng_state
from ._refusals import set_warn_always
from ._refusals import warn_always as is_warn_always_enabled
from ._schema_types import CLASSES as _SCHEMA_CLASSES
from ._settings import (
    are_deterministic_algorithms_enabled,
    get_deterministic_debug_mode,
    get_float32_matmul_precision,
    is_deterministic_algorithms_warn_only_enabled,
    set_deterministic_debug_mode,
    set_float32_matmul_precision,
    set_flush_denormal,
    use_deterministic_algorithms,
)
from ._stream import Event, Stream
from ._symbolic import CLASSES as _SYMBOLIC_CLASSES
from ._symbolic import sym_float, sym_fresh_size, sym_int, sym_ite, sym_max, sym_min, sym_not, sym_sqrt, sym_sum
from ._tag import Tag
from ._tensor import Size, Tensor
from ._threads import get_num_interop_threads, get_num_threads, set_num_interop_threads, set_num_threads
from .autograd.anomaly_mode import is_anomaly_check_nan_enabled, is_anomaly_enabled, set_anomaly_enabled
from .torch_version import __version__

half, float, double = float16, float32, float64
short, int, long = int16, int32, int64
cfloat, cdouble = complex64, complex128
e, pi, inf, nan = math.e, math.pi, math.inf, math.nan
newaxis = None
has_lapack = has_openmp = has_spectral = True  # torch: facts of the build; NumPy and SciPy bring all of it
has_mkl = False
legacy_contiguous_format = contiguous_format

return_types.offer(op.schema for op in _registry.all_ops())
globals().update(_TENSOR_TYPES)
_tensor_classes = set(_TENSOR_TYPES.values())
globals().update(_SYMBOLIC_CLASSES)
globals().update(_SCHEMA_CLASSES)
globals().update({d.name: d for d in _NARROW_DTYPES})
chalf = _dtype.complex32

globals().update(
    {name: function for name, function in _public_functions.items() if name not in globals() and not name.startswith(_PREFIXES)}
)

# these build on the functions above
from . import (  # noqa: E402
    _VF,
    _vmap_internals,
    cpu,
    fft,
    func,
    library,
    linalg,
    multiprocessing,
    nn,
    npu,
    optim,
    overrides,
    random,
    signal,
    sparse,
    storage,
    utils,
)
from ._C import PyTorchFileReader, PyTorchFileWriter  # noqa: E402
from ._device_modules import get_device_module  # noqa: E402
from ._missing import install as _install_lookup  # noqa: E402
from ._override_points import ask_in_functions as _ask_in_functions  # noqa: E402
from ._override_points import ask_in_methods as _ask_in_methods  # noqa: E402
from ._transforms.vmap import vmap  # noqa: E402
from .amp import GradScaler, autocast  # noqa: E402
from .amp.autocast_state import (  # noqa: E402
    autocast_decrement_nesting,
    autocast_increment_nesting,
    clear_autocast_cache,
    get_autocast_dtype,
    is_autocast_cache_enabled,
    is_autocast_enabled,
    set_autocast_cache_enabled,
    set_autocast_dtype,
    set_autocast_enabled,
)
from .amp.autocast_state import older_names as _older_autocast_names  # noqa: E402
from .compiler import compile  # noqa: A004, E402
from .futures import Future  # noqa: E402
from .jit import Error as JITException  # noqa: E402
from .jit import ScriptModule, fork, wait  # noqa: E402
from .overrides import (  # noqa: E402
    DisableTorchFunction,
    DisableTorchFunctionSubclass,
    _assert,
)
from .random import thread_safe_generator  # noqa: E402
from .serialization import load, save  # noqa: E402
from .storage import STORAGE_CLASSES as _STORAGE_CLASSES  # noqa: E402
from .storage import TypedStorage, UntypedStorage  # noqa: E402
from .utils import _python_dispatch as _python_dispatch  # noqa: E402
from .utils import data as _data  # noqa: E402 - torch.utils.data is there without an import of its own

torch = _sys.modules[__name__]  # programs write `torch.torch`, which torch has by an import of itself
globals().update(_older_autocast_names())
globals().update(_STORAGE_CLASSES)
_ask_in_functions(_public_functions)
_ask_in_functions({name: getattr(nn.functional, name) for name in nn.functional.__all__})
_ask_in_methods()
_install_lookup()

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...
