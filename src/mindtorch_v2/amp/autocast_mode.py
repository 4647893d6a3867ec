"""torch.amp.autocast_mode: operators in lower precision, chosen one by one. For devices that are not there it is disabled, as in torch."""

from __future__ import annotations

import functools
import warnings
from typing import Any

from .. import _dtype
from .._device import device
from .._refusals import refuse

__all__ = ["autocast", "custom_bwd", "custom_fwd", "is_autocast_available"]

_DTYPES = {"cpu": _dtype.bfloat16, "cuda": _dtype.float16, "xpu": _dtype.float16, "mps": _dtype.float16}
_DISABLING = {
    "cuda": "CUDA is not available or torch_xla is imported. Disabling autocast.",
    "xpu": "XPU is not available. Disabling autocast.",
    "mps": "MPS is not available. Disabling autocast.",
}


def is_autocast_available(device_type: str) -> bool:
    """False: no operator is computed in a lower precision than its operands'."""
    device(device_type)  # an unknown one is refused
    return False


def get_autocast_dtype(device_type: str) -> _dtype.dtype:
    """The dtype that autocast would use on a device."""
    return _DTYPES[device(device_type).type]


def is_autocast_enabled(device_type: str = "cuda", /) -> bool:
    """False."""
    device(device_type)
    return False


class autocast:  # noqa: N801 - torch's spelling
    """A context, or decorator, that changes nothing.

    For CUDA it is disabled with a warning, as in a PyTorch without CUDA. On the CPU PyTorch computes some operators in bfloat16; here that is
    refused, because results would have other dtypes than the program was written for. `enabled=False` is accepted everywhere.
    """

    def __init__(self, device_type: str, dtype: Any = None, enabled: bool = True, cache_enabled: bool | None = None) -> None:
        if not isinstance(device_type, str):
            raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
        self.device = device(device_type).type
        self.fast_dtype = dtype or _DTYPES.get(self.device, _dtype.float16)
        if enabled and self.device in _DISABLING:
            warnings.warn(_DISABLING[self.device], stacklevel=2)
        elif enabled:
            refuse(
                f"torch.autocast({device_type!r})",
                "operators compute in the dtype of their operands; pass enabled=False, or convert with .bfloat16()",
            )
        self._enabled = False

    def __enter__(self) -> autocast:
        return self

    def __exit__(self, *exception: object) -> None:
        pass

    def __call__(self, func: Any) -> Any:
        @functools.wraps(func)
        def without_autocast(*args: Any, **kwargs: Any) -> Any:
            with self:
                return func(*args, **kwargs)

        return without_autocast


def custom_fwd(fwd: Any = None, *, device_type: str, cast_inputs: Any = None) -> Any:
    """Mark the forward of an autograd function; without autocast it is called as it is."""
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)

    @functools.wraps(fwd)
    def forward(*args: Any, **kwargs: Any) -> Any:
        args[0]._dtype, args[0]._fwd_used_autocast = get_autocast_dtype(device_type), False
        return fwd(*args, **kwargs)

    return forward


def custom_bwd(bwd: Any = None, *, device_type: str) -> Any:
    """Mark the backward of an autograd function; without autocast it is called as it is."""
    return functools.partial(custom_bwd, device_type=device_type) if bwd is None else bwd
