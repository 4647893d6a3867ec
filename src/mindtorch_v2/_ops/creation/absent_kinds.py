"""Methods of tensors about kinds that there are not here: quantized, nested, those of other devices; and what PyTorch has removed or deprecated."""

from __future__ import annotations

import warnings
from typing import Any, NoReturn

import numpy as np

from ..._tensor import Tensor
from ..machinery.declare import public

__all__: list[str] = []


def _for_others(name: str, kind: str) -> None:
    """A method for tensors of a kind that none is of: as for all others in PyTorch, it raises."""

    def method(self: Tensor, *args: Any, **kwargs: Any) -> NoReturn:
        raise NotImplementedError(
            f"Could not run 'aten::{name}' with arguments from the 'CPU' backend: it is for {kind} tensors, which are not part of the runtime"
        )

    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"For {kind} tensors, which there are not: raises NotImplementedError."
    public("method", name=name)(method)


for _name in "q_scale q_zero_point q_per_channel_axis q_per_channel_scales q_per_channel_zero_points qscheme int_repr".split():
    _for_others(_name, "quantized")
_for_others("to_padded_tensor", "nested")


def _to_device(name: str, error: Exception) -> None:
    def method(self: Tensor, *args: Any, **kwargs: Any) -> NoReturn:
        raise error

    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"Raises: there is no {name.upper()} here."
    public("method", name=name)(method)


_to_device("xpu", AssertionError("Torch not compiled with XPU enabled"))
_to_device("mtia", AssertionError("Torch not compiled with MTIA enabled."))
_to_device("ipu", RuntimeError("PyTorch is not linked with support for ipu devices"))


@public("function method")
def is_distributed(input: Tensor) -> bool:
    """False: a tensor is in one process."""
    return False


@public("function")
def cudnn_is_acceptable(tensor: Tensor) -> bool:
    """False: there is no cuDNN here."""
    return False


@public("method")
def reinforce(self: Tensor, *args: Any, **kwargs: Any) -> NoReturn:
    """Removed from PyTorch; raises."""
    raise RuntimeError(
        "reinforce() was removed.\nUse torch.distributions instead: sample from a distribution, and differentiate -log_prob(sample) * reward."
    )


@public("method")
def resize(self: Tensor, *sizes: Any) -> Tensor:
    """Deprecated: the elements in another shape, as by `reshape`, of the same number of elements."""
    warnings.warn("non-inplace resize is deprecated", stacklevel=2)
    shape = sizes[0] if len(sizes) == 1 and not isinstance(sizes[0], int) else sizes
    if int(np.prod(shape)) != self.numel():
        raise RuntimeError(
            f"requested resize to {tuple(shape)} ({int(np.prod(shape))} elements in total), but the given tensor has {self.numel()}"
        )
    return self.contiguous().view(shape)


@public("method")
def resize_as(self: Tensor, tensor: Tensor) -> Tensor:
    """Deprecated: the elements in the shape of another tensor."""
    warnings.warn("non-inplace resize_as is deprecated", stacklevel=2)
    if tensor.numel() != self.numel():
        raise RuntimeError(f"requested resize to {tuple(tensor.shape)}, but the given tensor has {self.numel()} elements")
    return self.contiguous().view(tensor.shape)


@public("method")
def const_data_ptr(self: Tensor) -> int:
    """The address of the first element, for reading."""
    return self.data_ptr()


@public("method")
def to_sparse_coo(self: Tensor) -> Tensor:
    """The tensor in coordinate form."""
    return self.to_sparse()


def _volatile(self: Tensor) -> bool:
    warnings.warn("volatile was removed (Variable.volatile is always False)", stacklevel=2)
    return False


public("method", name="volatile")(property(_volatile, doc="Removed from PyTorch; False."))
