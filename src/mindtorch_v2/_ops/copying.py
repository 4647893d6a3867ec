"""Copying elements: clone, copy_, fill_, contiguous, and detach, which copies nothing."""

from __future__ import annotations

from typing import Any

from .._backends.cpu import copying as kernels
from .._dispatch import keys
from .._tensor import Tensor, shallow_copy
from .declare import op


def _zeros_like(grad: Tensor) -> Tensor:
    return grad.new_zeros(grad.shape)


clone = op(
    "clone(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor",
    cpu=kernels.clone,
    grad={"self": lambda grad: grad},
)
copy_ = op(
    "copy_(Tensor(a!) self, Tensor src, bool non_blocking=False) -> Tensor(a!)",
    cpu=kernels.copy_,
    grad={"self": lambda grad: _zeros_like(grad), "src": lambda grad: grad},
    node="CopyBackwards",
    variants="method",
)
detach = op("detach(Tensor(a) self) -> Tensor(a)", composite=lambda self: shallow_copy(self))


def _detach_(self: Tensor) -> Tensor:
    if self._base is not None and self._keys & keys.AUTOGRAD:
        raise RuntimeError(
            "Can't detach views in-place. Use detach() instead. If you are using DistributedDataParallel (DDP) for training, and "
            "gradient_as_bucket_view is set as True, gradients are views of DDP buckets, and hence detach_() cannot be called on "
            "these gradients. To fix this error, please refer to the Optimizer.zero_grad() function in torch/optim/optimizer.py "
            "as a solution."
        )
    self._node = None
    self._keys &= ~keys.AUTOGRAD
    return self


detach_ = op("detach_(Tensor(a!) self) -> Tensor(a!)", composite=_detach_)
fill_scalar_ = op(
    "fill_.Scalar(Tensor(a!) self, Scalar value) -> Tensor(a!)",
    cpu=kernels.fill_,
    grad={"self": lambda grad: _zeros_like(grad)},
)
fill_tensor_ = op(
    "fill_.Tensor(Tensor(a!) self, Tensor value) -> Tensor(a!)",
    cpu=kernels.fill_,
    grad={"self": lambda grad: _zeros_like(grad), "value": lambda grad: grad.sum()},
    node="FillBackward1",
)
fill_scalar = op("fill.Scalar(Tensor self, Scalar value) -> Tensor", composite=lambda self, value: self.clone().fill_(value), variants="function")
fill_tensor = op("fill.Tensor(Tensor self, Tensor value) -> Tensor", composite=lambda self, value: self.clone().fill_(value), variants="function")
zero_ = op("zero_(Tensor(a!) self) -> Tensor(a!)", cpu=kernels.zero_, grad={"self": lambda grad: _zeros_like(grad)})


def _contiguous(self: Tensor, memory_format: Any) -> Tensor:
    if kernels.is_contiguous(self._array, memory_format):
        return self
    copied: Tensor = clone(self, memory_format=memory_format)
    return copied


contiguous = op(
    "contiguous(Tensor(a) self, *, MemoryFormat memory_format=contiguous_format) -> Tensor(a)", composite=_contiguous, variants="method"
)
