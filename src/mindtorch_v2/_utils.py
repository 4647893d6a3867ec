"""torch._utils: an exception on its way to another process or thread, with its traceback as text, and what pickles of PyTorch call."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
import traceback
from types import ModuleType
from typing import Any, NoReturn

from . import _dtype
from ._checkpoints.rebuild import device_tensor as _rebuild_device_tensor_from_cpu_tensor
from ._checkpoints.rebuild import meta as _rebuild_meta_tensor_no_storage
from ._checkpoints.rebuild import parameter as _rebuild_parameter
from ._checkpoints.rebuild import parameter as _rebuild_parameter_with_state
from ._checkpoints.rebuild import sparse as _rebuild_sparse_tensor
from ._checkpoints.rebuild import tensor as _rebuild_tensor
from ._checkpoints.rebuild import tensor as _rebuild_tensor_v2
from ._checkpoints.rebuild import tensor_v3 as _rebuild_tensor_v3
from ._checkpoints.rebuild import wrapper as _rebuild_wrapper_subclass
from ._types import OptionalDType

__all__ = [
    "ExceptionWrapper",
    "KeyErrorMessage",
    "_element_size",
    "_rebuild_device_tensor_from_cpu_tensor",
    "_rebuild_meta_tensor_no_storage",
    "_rebuild_parameter",
    "_rebuild_parameter_with_state",
    "_rebuild_sparse_tensor",
    "_rebuild_tensor",
    "_rebuild_tensor_v2",
    "_rebuild_tensor_v3",
    "_rebuild_wrapper_subclass",
    "cpu_count",
    "try_import",
]


class KeyErrorMessage(str):
    """A text that is its own repr: `KeyError` shows its argument by repr, which would put a traceback on one line."""

    __slots__ = ()

    def __repr__(self) -> str:
        return self


class ExceptionWrapper:
    """The type and the traceback of an exception. The exception itself is not kept, for its frames would be."""

    def __init__(self, exc_info: Any = None, where: str = "in background") -> None:
        kind, error, frames = exc_info or sys.exc_info()
        self.exc_type: Any = kind
        self.exc_msg = "".join(traceback.format_exception(kind, error, frames))
        self.where = where

    def reraise(self) -> NoReturn:
        """Raise an exception of the same type, whose text has the traceback."""
        text = f"Caught {self.exc_type.__name__} {self.where}.\nOriginal {self.exc_msg}"
        if self.exc_type is KeyError:
            text = KeyErrorMessage(text)
        elif getattr(self.exc_type, "message", None):
            raise self.exc_type(message=text)  # torch: the text is an argument of this name where the class has such an attribute
        try:
            error = self.exc_type(text)
        except Exception:  # it takes other arguments
            raise RuntimeError(text) from None
        raise error


def _element_size(dtype: OptionalDType) -> int:
    """The bytes of one element."""
    if not isinstance(dtype, _dtype.dtype):
        raise RuntimeError(f"expected torch.dtype, but got {type(dtype)}")
    return dtype.itemsize


def cpu_count() -> int | None:
    """The number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()


def try_import(module_name: str) -> ModuleType | None:
    """A module, or None if it is not installed."""
    if module_name in sys.modules:
        return sys.modules[module_name]
    return importlib.import_module(module_name) if importlib.util.find_spec(module_name) is not None else None
