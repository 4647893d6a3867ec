"""torch._C: names of PyTorch's C++ module that libraries reach for, and that have a meaning without C++."""

from __future__ import annotations

import enum
import re
import weakref
from typing import Any, NoReturn

from .. import _dtype
from .._autograd.grad_mode import is_grad_enabled, no_grad
from .._device import device
from .._dispatch.tls import state
from .._dtype import dtype
from .._memory_format import layout, memory_format
from .._missing import PAGE, reason_for
from .._random import Generator
from .._refusals import refused
from .._tensor import Size, Tensor, _disabled_torch_dispatch_impl, _disabled_torch_function_impl
from .._transforms.rules.loop import switches
from ..overrides import DisableTorchFunction, DisableTorchFunctionSubclass, _enable_torch_function
from . import _autograd, _functions, _functorch, _nn

__all__ = [
    "DisableTorchFunction",
    "DisableTorchFunctionSubclass",
    "DispatchKey",
    "DispatchKeySet",
    "Generator",
    "Size",
    "device",
    "dtype",
    "is_grad_enabled",
    "layout",
    "memory_format",
]

_TensorMeta = type(Tensor)


class _AutoDispatchBelowAutograd(no_grad):
    """Inside, operators run their kernels, and none records: an operator's autograd kernel calls it so."""


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

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DispatchKeySet) and other._keys == self._keys

    def __hash__(self) -> int:
        return hash(self._keys)

    def __repr__(self) -> str:
        return f"DispatchKeySet({', '.join(sorted(key.name for key in self._keys))})"


class _DisableTorchDispatch:
    """As long as it lives, neither modes nor subclasses see operators below autograd."""

    def __init__(self) -> None:
        state.dispatch_override_off += 1

    def __del__(self) -> None:
        state.dispatch_override_off -= 1


class _EnableTorchFunction:
    """As long as it lives, subclasses and modes override torch functions."""

    def __init__(self) -> None:
        self._context = _enable_torch_function()
        self._context.__enter__()

    def __del__(self) -> None:
        self._context.__exit__()


class _WeakTensorRef:
    """A reference that does not keep a tensor alive."""

    def __init__(self, tensor: Tensor) -> None:
        self._reference = weakref.ref(tensor)

    def expired(self) -> bool:
        """Whether the tensor is gone."""
        return self._reference() is None


def _is_torch_function_enabled() -> bool:
    """Whether subclasses override torch functions on this thread."""
    return not state.subclass_override_off


def _is_torch_function_all_disabled() -> bool:
    """Whether neither subclasses nor modes override torch functions on this thread."""
    return bool(state.subclass_override_off and state.function_override_off)


def _len_torch_function_stack() -> int:
    """How many modes are entered on this thread."""
    return len(state.function_modes)


def _get_function_stack_at(level: int) -> Any:
    """One of the modes that are entered on this thread, the outermost first."""
    return state.function_modes[level]


def _len_torch_dispatch_stack() -> int:
    """How many modes below autograd are entered on this thread."""
    return len(state.dispatch_modes)


def _get_all_dtypes() -> list[dtype]:
    """All element types but those of less than a byte that have no values of their own."""
    return [d for d in (*_dtype.ALL, *_dtype.NARROW) if not re.fullmatch("u?int[1-7]", d.name)]


def _set_grad_enabled(mode: bool) -> None:
    """Switch recording for backward on or off on this thread."""
    state.grad_enabled = mode


def _current_graph_task_id() -> int:
    """The number of the backward pass that runs on this thread, -1 outside of one."""
    return state.backward_id if state.backward_depth else -1


def _log_api_usage_once(event: str) -> None:
    """Nothing: nobody listens to which parts of the package are used."""


def _get_tracing_state() -> None:
    """None: nothing is traced by TorchScript."""


def _debug_only_are_vmap_fallback_warnings_enabled() -> bool:
    return switches.displays


def _debug_only_display_vmap_fallback_warnings(enabled: bool) -> None:
    """Keep a switch of PyTorch's first `vmap`, which is gone; that of today has its own, in `_functorch`."""
    switches.displays = bool(enabled)


def _get_privateuse1_backend_name() -> str:
    """The name of a device that a program may rename; nobody does here."""
    return "privateuseone"


def __dir__() -> list[str]:
    """The names that PyTorch has, too, and none that is only imported here."""
    return sorted(name for name in globals() if name in __all__ or name.startswith("_"))


def __getattr__(name: str) -> NoReturn:
    raise AttributeError(f"module 'torch._C' has no attribute {name!r}: {reason_for(f'_C.{name}')}. See {PAGE}")
