"""torch._C: names of PyTorch's C++ module that libraries reach for, and that have a meaning without C++."""

from __future__ import annotations

import enum
from typing import Any, NoReturn

from .._device import device
from .._dtype import dtype
from .._memory_format import layout, memory_format
from .._missing import PAGE, reason_for
from .._random import Generator
from .._refusals import refused
from .._tensor import Size, Tensor
from ..overrides import DisableTorchFunction, DisableTorchFunctionSubclass
from . import _nn

__all__ = [
    "DisableTorchFunction",
    "DisableTorchFunctionSubclass",
    "DispatchKey",
    "DispatchKeySet",
    "Generator",
    "Size",
    "device",
    "dtype",
    "layout",
    "memory_format",
]

_TensorMeta = type(Tensor)

globals().update(
    refused(
        "mindtorch_v2", "torch.load reads checkpoints and torch.save writes them", classes="PyTorchFileReader PyTorchFileWriter"
    )
    | refused(
        __name__,
        "PyTorch's dispatch keys have names here and no effect; modes and contexts switch things off",
        classes="_ExcludeDispatchKeyGuard",
    )
)

# the names that kernels are registered under, for libraries that sort by them
DispatchKey = enum.Enum(
    "DispatchKey",
    "Undefined CompositeExplicitAutograd CompositeImplicitAutograd Autograd AutogradCPU AutogradCUDA AutogradMPS AutogradXPU AutogradMeta"
    " AutogradPrivateUse1 AutocastCPU AutocastCUDA AutocastMPS AutocastXPU AutocastPrivateUse1 ADInplaceOrView BackendSelect Conjugate"
    " Negative ZeroTensor Python PythonTLSSnapshot PythonDispatcher Functionalize CPU CUDA MPS XPU HPU XLA MTIA Meta PrivateUse1 SparseCPU"
    " SparseCsrCPU QuantizedCPU NestedTensorCPU",
)


class DispatchKeySet:
    """Several dispatch keys; one to begin with."""

    def __init__(self, *keys: Any) -> None:
        self._keys = frozenset(keys)

    def __or__(self, other: DispatchKeySet) -> DispatchKeySet:
        return DispatchKeySet(*(self._keys | other._keys))

    def __and__(self, other: DispatchKeySet) -> DispatchKeySet:
        return DispatchKeySet(*(self._keys & other._keys))

    def __sub__(self, other: DispatchKeySet) -> DispatchKeySet:
        return DispatchKeySet(*(self._keys - other._keys))

    def has(self, key: Any) -> bool:
        """Whether a key is among these."""
        return key in self._keys

    def add(self, key: Any) -> DispatchKeySet:
        """The set with one more."""
        return DispatchKeySet(*self._keys, key)

    def remove(self, key: Any) -> DispatchKeySet:
        """The set without one."""
        return DispatchKeySet(*(self._keys - {key}))

    def __repr__(self) -> str:
        return f"DispatchKeySet({', '.join(sorted(key.name for key in self._keys))})"


def _log_api_usage_once(event: str) -> None:
    """Nothing: nobody listens to which parts of the package are used."""


def _get_tracing_state() -> None:
    """None: nothing is traced by TorchScript."""


def _get_privateuse1_backend_name() -> str:
    """The name of a device that a program may rename; nobody does here."""
    return "privateuseone"


def __dir__() -> list[str]:
    """The names that PyTorch has, too, and none that is only imported here."""
    return sorted(name for name in globals() if name in __all__ or name.startswith("_"))


def __getattr__(name: str) -> NoReturn:
    raise AttributeError(f"module 'torch._C' has no attribute {name!r}: {reason_for(f'_C.{name}')}. See {PAGE}")
