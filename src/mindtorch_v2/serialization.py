"""torch.save and torch.load: checkpoints in torch's own formats, readable by either side.

An archive holds `data.pkl`, a pickle in which tensors name their storages, and one file `data/<key>` for each storage. Names in
the pickle are torch's; here they are translated to this package's, and by default nothing outside of a list is ever imported.
"""

from __future__ import annotations

import contextlib
import io
import os
import pickle
import re
import shutil
import tempfile
import warnings
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import IO, Any

from . import _device, _dtype
from ._checkpoints import options
from ._checkpoints.archive import CheckpointError, CheckpointFile, Window, begins_as_zip
from ._checkpoints.legacy import RestrictedReader, SourceChangeWarning, TrustingReader, check_seekable, content_of, load_legacy
from ._checkpoints.locations import (
    UserError,
    default_restore_location,
    is_meta,
    location_tag,
    register_package,
    restorer,
    validate_device,
)
from ._checkpoints.names import StorageType, torch_module
from ._checkpoints.options import (
    LoadEndianness,
    get_crc32_options,
    get_default_load_endianness,
    get_default_mmap_options,
    set_crc32_options,
    set_default_load_endianness,
    set_default_mmap_options,
    skip_data,
)
from ._checkpoints.pickler import pickled
from ._checkpoints.rebuild import NAMES
from ._checkpoints.safe_globals import (
    add_safe_globals,
    allowed_by_user,
    clear_safe_globals,
    get_safe_globals,
    globals_of,
    safe_globals,
)
from ._checkpoints.tar import is_tar, load_tar
from ._checkpoints.tensor_file import load_tensor_file
from ._checkpoints.unpickler import trusting
from ._checkpoints.weights_only import WeightsOnlyUnpickler, python3_name
from ._checkpoints.writing import write_archive, write_legacy
from ._legacy import TENSOR_TYPES
from .storage import STORAGE_CLASSES
from .utils.serialization import config

__all__ = [
    "MAP_LOCATION",
    "LoadEndianness",
    "SourceChangeWarning",
    "StorageType",
    "add_safe_globals",
    "check_module_version_greater_or_equal",
    "clear_safe_globals",
    "default_restore_location",
    "get_crc32_options",
    "get_default_load_endianness",
    "get_default_mmap_options",
    "get_safe_globals",
    "get_unsafe_globals_in_checkpoint",
    "load",
    "location_tag",
    "mkdtemp",
    "normalize_storage_type",
    "register_package",
    "safe_globals",
    "save",
    "set_crc32_options",
    "set_default_load_endianness",
    "set_default_mmap_options",
    "skip_data",
    "storage_to_tensor_type",
    "validate_cuda_device",
    "validate_hpu_device",
]

DEFAULT_PROTOCOL = 2
MAP_LOCATION = Callable[[Any, str], Any] | _device.device | str | dict[str, str] | None  # for annotations
_TRUE = ("1", "y", "yes", "true")
_ADVICE = (
    "Since PyTorch 2.6 `weights_only` is True by default. Loading with `weights_only=False` will likely succeed, and can run code that "
    "the file brings along: do it only if you trust where the file comes from. "
)


# --- saving ---------------------------------------------------------------------------------------------------------


def save(
    obj: object,
    f: Any,
    pickle_module: ModuleType = pickle,
    pickle_protocol: int = DEFAULT_PROTOCOL,
    _use_new_zipfile_serialization: bool = True,
    _disable_byteorder_record: bool = False,
) -> None:
    """Write an object with its tensors to a file, by name or open for writing bytes."""
    _check_dill_version(pickle_module)
    is_path = isinstance(f, str | os.PathLike)
    if not is_path and not hasattr(f, "write"):
        raise AttributeError("expected 'f' to be string, path, or a file-like object with a 'write' attribute")
    if not is_path and not callable(f.write):
        raise TypeError(f"Buffer of {str(type(f)).strip('<>')} has no callable attribute 'write'")
    if not _use_new_zipfile_serialization and options.skips_data():
        raise RuntimeError("Cannot use skip_data=True with _use_new_zipfile_serialization=False")
    made = pickled(obj, pickle_module, pickle_protocol, legacy=not _use_new_zipfile_serialization)
    with contextlib.ExitStack() as stack:
        file = stack.enter_context(_created(os.fspath(f))) if is_path else f
        if _use_new_zipfile_serialization:
            write_archive(file, _root(os.fspath(f)) if is_path else "archive", made, byteorder=not _disable_byteorder_record)
        else:
            write_legacy(file, made, pickle_protocol)
        if not is_path:
            file.flush()


def _root(path: str) -> str:
    """The folder in the archive: the file's name without its extension, where that is ASCII."""
    name = os.path.basename(path).rpartition(".")[0] or os.path.basename(path)
    return name if path.isascii() else "archive"


def _created(path: str) -> Any:
    """A new file; a folder that is not there is a RuntimeError, as in torch."""
    folder = os.path.dirname(path)
    if folder and not os.path.isdir(folder):
        raise RuntimeError(f"Parent directory {folder} does not exist.")
    return open(path, "wb")


# --- loading --------------------------------------------------------------------------------------------------------


def load(
    f: Any,
    map_location: Any = None,
    pickle_module: ModuleType | None = None,
    *,
    weights_only: bool | None = None,
    mmap: bool | None = None,
    **pickle_load_args: Any,
) -> Any:
    """Read what `save` or torch wrote. By default only data is accepted: tensors, numbers, strings, containers.

    A file that is damaged, or is no checkpoint, is a RuntimeError, a `pickle.UnpicklingError` or an EOFError that names it. With
    `weights_only=False` its pickle may import and call anything, and raise anything.
    """
    restricted = _is_restricted(pickle_module, weights_only)
    if restricted and pickle_module is not None:
        raise RuntimeError("Can not safely load weights when explicit pickle_module is specified")
    if restricted and pickle_load_args:
        warnings.warn("pickle_load_args only works if `weights_only=False`.", stacklevel=2)
        for name in pickle_load_args.keys() - {"encoding"}:
            raise TypeError(f"load() got an unexpected keyword argument '{name}'")
    _check_dill_version(pickle_module)
    pickle_load_args.setdefault("encoding", "utf-8")
    is_path = isinstance(f, str | os.PathLike)
    if is_path and os.fspath(f).endswith(".safetensors"):
        return load_tensor_file(os.fspath(f), _device_for_tensors(map_location))
    call = _Load(f if is_path else None, map_location, None if restricted else pickle_module or pickle, pickle_load_args)
    call.mmap = config.load.mmap if mmap is None else mmap
    if call.mmap and not is_path:
        raise ValueError("f must be a file path in order to use the mmap argument")
    with contextlib.ExitStack() as stack:
        file = stack.enter_context(open(f, "rb")) if is_path else f
        stack.enter_context(_naming(os.fspath(f) if is_path else f"the checkpoint ({type(f).__name__})", restricted=restricted))
        return call.read(file)


def _is_restricted(pickle_module: ModuleType | None, weights_only: bool | None) -> bool:
    forced, freed = (
        os.environ.get(name, "0").lower() in _TRUE for name in ("TORCH_FORCE_WEIGHTS_ONLY_LOAD", "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD")
    )
    if forced and freed:
        raise RuntimeError(
            "Only one of `TORCH_FORCE_WEIGHTS_ONLY_LOAD` or `TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD` should be set, but both were set."
        )
    if forced:
        return True
    if freed and weights_only is None:
        warnings.warn(
            "Environment variable TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD detected, since the `weights_only` argument was not explicitly "
            "passed to `torch.load`, forcing weights_only=False.",
            UserWarning,
            stacklevel=3,
        )
        return False
    return pickle_module is None if weights_only is None else bool(weights_only)


class _Load:
    """One call of `load`: what it was asked, and how the file's format is read."""

    mmap: bool

    def __init__(self, path: Any, map_location: Any, pickle_module: ModuleType | None, pickle_load_args: dict[str, Any]) -> None:
        self.path, self.map_location = path, map_location
        self.restore = restorer(map_location)
        self.pickle_module, self.arguments = pickle_module, pickle_load_args  # no module: restricted to data

    def read(self, file: IO[bytes]) -> Any:
        if not hasattr(file, "read") or not hasattr(file, "readline"):
            missing = "read" if not hasattr(file, "read") else "readline"
            raise AttributeError(
                f"'{type(file).__name__}' object has no attribute '{missing}': torch.load needs a file or its name"
            )
        check_seekable(file)
        if begins_as_zip(file):
            return self._archive(file)
        if self.mmap:
            raise RuntimeError(
                "mmap can only be used with files saved with `torch.save(_use_new_zipfile_serialization=True), please torch.save your "
                "checkpoint with this option in order to use mmap."
            )
        if file.tell() == 0 and is_tar(file):
            if self.pickle_module is None:
                raise RuntimeError(f"Cannot use ``weights_only=True`` with files saved in the legacy .tar format. {_ADVICE}")
            return load_tar(file, self.restore, self.pickle_module, self.arguments)
        return self._legacy(file)

    def _archive(self, file: IO[bytes]) -> Any:
        mapped = os.fspath(self.path) if self.mmap else None
        whole = file if file.tell() == 0 and hasattr(file, "seekable") else Window(file)
        checkpoint = CheckpointFile(whole, self.restore, to_meta=is_meta(self.map_location), mapped_path=mapped)
        if checkpoint.is_torchscript:
            warnings.warn(
                "'torch.load' received a zip file that looks like a TorchScript archive, which is not supported here", stacklevel=5
            )
            raise RuntimeError(
                "Cannot use ``weights_only=True`` with TorchScript archives passed to ``torch.load``: TorchScript is not supported. Save "
                "the module's state dict under PyTorch, and load that"
            )
        content = checkpoint.pickled()
        if self.pickle_module is not None:
            return trusting(self.pickle_module, io.BytesIO(content), checkpoint.typed_storage, self.arguments).load()
        return WeightsOnlyUnpickler(
            content,
            checkpoint.typed_storage,
            allowed=allowed_by_user(),
            encoding=self.arguments["encoding"],
            file_bytes=checkpoint.size_bytes,
        ).load()

    def _legacy(self, file: IO[bytes]) -> Any:
        content = content_of(file)
        if self.pickle_module is None:
            return load_legacy(RestrictedReader(content, allowed_by_user(), self.arguments["encoding"]), self.restore)
        return load_legacy(TrustingReader(content, self.pickle_module, self.arguments), self.restore)


@contextlib.contextmanager
def _naming(name: str, *, restricted: bool) -> Iterator[None]:
    """Errors of the file name it; those of the user's own code come through as they are."""
    try:
        yield
    except UserError as wrapped:
        raise wrapped.error from wrapped.error.__cause__
    except pickle.UnpicklingError as error:
        reason = f"Weights only load failed for {name}. WeightsUnpickler error: " if restricted else f"{name}: "
        raise pickle.UnpicklingError(f"{reason}{error}") from error.__cause__
    except EOFError as error:
        raise EOFError(f"{name}: {error}") from error.__cause__
    except RuntimeError as error:
        if not restricted and not isinstance(error, CheckpointError):
            raise
        raise CheckpointError(f"{name}: {error}") from error.__cause__


def _device_for_tensors(map_location: Any) -> _device.device:
    """The device that tensors of a safetensors file, which names none, are put on."""
    if map_location is None:
        return _device.cpu
    if isinstance(map_location, str | bytes | _device.device):
        return _device.device(map_location.decode() if isinstance(map_location, bytes) else map_location)
    kind = "dict" if isinstance(map_location, dict) else "callable"
    raise RuntimeError(
        f"Loading safetensors file with {kind} map_location is not supported. Use a device string or torch.device instead."
    )


def get_unsafe_globals_in_checkpoint(f: Any) -> list[str]:
    """Names in a checkpoint that `weights_only=True` would refuse, found without loading it."""
    allowed = {*NAMES, "torch.nn.parameter.Parameter", *allowed_by_user()}
    is_path = isinstance(f, str | os.PathLike)
    with contextlib.ExitStack() as stack:
        file = stack.enter_context(open(f, "rb")) if is_path else f
        stack.enter_context(_naming(os.fspath(f) if is_path else f"the checkpoint ({type(f).__name__})", restricted=True))
        if not begins_as_zip(file):
            raise ValueError("Expected input to be a checkpoint returned by torch.save")
        checkpoint = CheckpointFile(file if file.tell() == 0 else Window(file), default_restore_location)
        if checkpoint.is_torchscript:
            raise ValueError("Expected input to be a checkpoint returned by torch.save but got a torchscript checkpoint")
        content = checkpoint.pickled()
        try:
            named = globals_of(content)
        except ValueError as error:
            raise pickle.UnpicklingError(f"The pickle is damaged ({error!s:.200})") from None
    names = dict.fromkeys(f"{torch_module(module)}.{name}" for module, name in (python3_name(*pair) for pair in named))
    return [name for name in names if name not in allowed]


def _is_zipfile(f: Any) -> bool:
    """Whether a file goes on as an archive does."""
    try:
        return begins_as_zip(f)
    except EOFError:
        return False


# --- what programs ask besides --------------------------------------------------------------------------------------


@contextlib.contextmanager
def mkdtemp() -> Iterator[str]:
    """A folder that is removed at the end of the block."""
    path = tempfile.mkdtemp()
    try:
        yield path
    finally:
        shutil.rmtree(path)


def check_module_version_greater_or_equal(module: Any, req_version_tuple: Any, error_if_malformed: bool = True) -> bool:
    """Whether a module's `__version__` is at least this one, compared field by field."""
    fields = module.__version__.split(".")
    try:
        version = tuple(type(wanted)(fields[i]) for i, wanted in enumerate(req_version_tuple))
        return bool(version >= req_version_tuple)
    except Exception as error:
        message = (
            f"'{module.__name__}' module version string is malformed '{module.__version__}' and cannot be compared with tuple "
            f"{req_version_tuple!s}"
        )
        if error_if_malformed:
            raise RuntimeError(message) from error
        warnings.warn(f"{message}, but continuing assuming that requirement is met", stacklevel=2)
        return True


def _check_dill_version(pickle_module: ModuleType | None) -> None:
    if pickle_module is None or pickle_module.__name__ != "dill":
        return
    if not check_module_version_greater_or_equal(pickle_module, (0, 3, 1), False):
        raise ValueError(
            f"'torch' supports dill >= 0.3.1, but you have dill {pickle_module.__version__}. Please upgrade dill or switch to 'pickle'"
        )


def validate_cuda_device(location: str) -> int | None:
    """The number of the CUDA device that a location names, if it is there."""
    return validate_device(location, "cuda").index


def validate_hpu_device(location: str) -> int | None:
    """The number of the HPU that a location names, if it is there."""
    return validate_device(location, "hpu").index


def normalize_storage_type(storage_type: Any) -> Any:
    """The class of storages on the CPU with this one's name."""
    return STORAGE_CLASSES.get(storage_type.__name__, storage_type)


def storage_to_tensor_type(storage: Any) -> Any:
    """The class of tensors that goes with a storage's class."""
    name = re.sub("Storage$", "Tensor", type(storage).__name__)
    dtype = getattr(storage, "dtype", None)
    return TENSOR_TYPES[f"{dtype.scalar_name}Tensor" if isinstance(dtype, _dtype.dtype) else name]
