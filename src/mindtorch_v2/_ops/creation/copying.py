"""Copying elements: clone, copy_, fill_, contiguous, and detach, which copies nothing."""

from __future__ import annotations

from ..._backends.cpu.creation import copying as kernels
from ..._backends.meta.adapter import meta_tensor
from ..._dispatch import keys
from ..._memory_format import contiguous_format
from ..._tensor import Tensor, shallow_copy
from ..._types import Number, OptionalMemoryFormat
from ..elementwise.arithmetic import zeros_like
from ..machinery.declare import op, public
from .constants import empty_like

clone = op(
    "clone(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor",
    cpu=kernels.clone,
    shape=lambda self, memory_format: meta_tensor(
        self._array.shape,
        self.dtype,
        tuple(s * self.dtype.itemsize for s in kernels.strides_of_copy(self._array, memory_format)),
    ),
    grad={"self": lambda grad: grad},
)
copy_ = op(
    "copy_(Tensor(a!) self, Tensor src, bool non_blocking=False) -> Tensor(a!)",
    cpu=kernels.copy_,
    grad={"self": lambda grad: zeros_like(grad), "src": lambda grad: grad},
    node="torch::autograd::CopyBackwards",
    numbers=("src",),
    variants="method",
)
detach = op("detach(Tensor(a) self) -> Tensor(a)", composite=lambda self: shallow_copy(self), tags=("explicit",))


def _detach_(self: Tensor) -> Tensor:
    if self._base is not None and self._keys & keys.AUTOGRAD:
        raise RuntimeError(
            "Can't detach views in-place. Use detach() instead. If you are using DistributedDataParallel (DDP) for training, and "
            "gradient_as_bucket_view is set as True, gradients are views of DDP buckets, and hence detach_() cannot be called on "
            "these gradients. To fix this error, please refer to the Optimizer.zero_grad() function in torch/optim/optimizer.py "
            "as the solution."
        )
    self._node = None
    self._keys &= ~keys.AUTOGRAD
    return self


detach_ = op("detach_(Tensor(a!) self) -> Tensor(a!)", composite=_detach_)
fill_tensor_ = op(
    "fill_.Tensor(Tensor(a!) self, Tensor value) -> Tensor(a!)",
    cpu=kernels.fill_,
    grad={"self": lambda grad: zeros_like(grad), "value": lambda grad: grad.sum()},
    node="FillBackward3",
)
fill_scalar_ = op(
    "fill_.Scalar(Tensor(a!) self, Scalar value) -> Tensor(a!)",
    cpu=kernels.fill_,
    grad={"self": lambda grad: zeros_like(grad)},
    node="FillBackward2",
)
fill_tensor = op(
    "fill.Tensor(Tensor self, Tensor value) -> Tensor",
    composite=lambda self, value: _empty_like(self).fill_(value),
    grad={"self": lambda grad: zeros_like(grad), "value": lambda grad: grad.sum()},
    node="FillBackward1",
    variants="function",
)
fill_scalar = op(
    "fill.Scalar(Tensor self, Scalar value) -> Tensor",
    composite=lambda self, value: _empty_like(self).fill_(value),
    grad={"self": lambda grad: zeros_like(grad)},
    variants="function",
)


def _empty_like(self: Tensor) -> Tensor:
    return empty_like(self)


zero_ = op("zero_(Tensor(a!) self) -> Tensor(a!)", cpu=kernels.zero_, grad={"self": lambda grad: zeros_like(grad)})


_contiguous = op(
    "contiguous(Tensor(a) self, *, MemoryFormat memory_format=contiguous_format) -> Tensor(a)",
    composite=lambda self, memory_format: (
        self if kernels.is_contiguous(self._array, memory_format) else clone(self, memory_format=memory_format)
    ),
    variants="",
)


@public("method")
def contiguous(self: Tensor, memory_format: OptionalMemoryFormat = contiguous_format) -> Tensor:
    """The tensor itself if its elements lie in the order of the format, a copy otherwise."""
    # torch: without a copy there is no operator either
    if (self._array.flags.c_contiguous and memory_format is contiguous_format) or kernels.is_contiguous(self._array, memory_format):
        return self
    return _contiguous(self, memory_format=memory_format)


def _fill_diagonal_(self: Tensor, fill_value: Number, wrap: bool) -> Tensor:
    if self.dim() < 2:
        raise RuntimeError("dimensions must larger than 1")
    shape = self._array.shape
    if self.dim() > 2 and len(set(shape)) > 1:
        raise RuntimeError("all dimensions of input must be of equal length")
    step = sum(self.stride())
    length = min(shape)
    self.as_strided((length,), (step,), self.storage_offset()).fill_(fill_value)
    rows, columns = shape[0], shape[1]
    if wrap and self.dim() == 2 and rows > columns + 1:
        # the diagonal goes on below, one free row after each square block
        row_step, column_step = self.stride()
        for top in range(columns + 1, rows, columns + 1):
            rest = min(rows - top, columns)
            self.as_strided((rest,), (row_step + column_step,), self.storage_offset() + top * row_step).fill_(fill_value)
    return self


fill_diagonal_ = op(
    "fill_diagonal_(Tensor(a!) self, Scalar fill_value, bool wrap=False) -> Tensor(a!)",
    composite=_fill_diagonal_,
    variants="method",
)
detach_copy = op(
    "detach_copy(Tensor self) -> Tensor",
    composite=lambda self: clone(detach(self), memory_format=contiguous_format),
    variants="function",
    tags=("no_derivative",),
)
