"""Greatest and least elements, and where they are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ... import _checks, _dtype
from ..._backends.cpu.machinery.dtype_rules import refuse, unimplemented
from ..._backends.cpu.machinery.dtypes import FLOAT
from ..._backends.cpu.machinery.floating_errors import silent
from ..._backends.cpu.reductions import sums as kernels
from ..._dispatch import keys
from ..._dispatch.entry import MISSING
from ..._dispatch.tls import state
from ..._tensor import Tensor
from ..._types import Number, TensorOrTensors
from ..machinery.calling import retry_call
from ..machinery.declare import op, public
from ..machinery.lookup import aten
from .sums import axes, check_nonempty, reduced_meta, reduced_shape, selected_meta, unalias

if TYPE_CHECKING:
    from ..._dispatch.op import Entry

Array = np.ndarray[Any, Any]


def _refuse_complex(name: str, self: Array) -> None:
    if self.dtype.kind == "c":
        raise unimplemented(name, self)


@silent
def _max_all(ufunc: np.ufunc, name: str, self: Array) -> Array:
    n = self.size
    if self.dtype is FLOAT and n:
        if n <= 4096:  # by way of its position: 0.4 µs where a reduction takes 1.1
            return self.ravel()[self.argmax() if name == "max" else self.argmin()]
        return ufunc.reduce(self, None)
    check_nonempty(name, self, None)
    _refuse_complex(f"{name}_all", self)
    return kernels.extremum(ufunc, self, axes(None, self.ndim), False)


@silent
def _max_dim(name: str, self: Array, dim: int, keepdim: bool) -> tuple[Array, Array]:
    if self.dtype is FLOAT and not keepdim and -self.ndim <= dim < self.ndim and self.flags.c_contiguous and 0 < self.size <= 4096:
        if name == "max":
            return np.maximum.reduce(self, dim), np.asarray(self.argmax(dim))
        return np.minimum.reduce(self, dim), np.asarray(self.argmin(dim))
    dim = _checks.wrap_dim(dim, self.ndim)
    if self.dtype.kind == "c":
        raise RuntimeError(f"{name}(): does not support complex input")
    check_nonempty(name, self, dim)
    return kernels.extremum_with_index(self, dim, keepdim, largest=name == "max")


def evenly_distributed(grad: Tensor, self: Tensor, result: Tensor) -> Tensor:
    """The gradient of a whole-tensor pick, shared by the elements that equal it."""
    if (self._keys | result._keys) & keys.BATCHED:  # what holds for one sample may not for another
        mask = (self == result) | (self.isnan() & result.isnan())
    else:
        mask = self.isnan() if bool(result.isnan().item()) else self == result
    zeros: Tensor = grad.new_zeros(self._array.shape)
    return zeros.masked_fill_(mask, grad / mask.sum())


def _value_selecting_backward(grad: Tensor, dim: int, indices: Tensor, sizes: Sequence[int], keepdim: bool) -> Tensor:
    if not keepdim and len(sizes):
        grad = grad.unsqueeze(dim)
        indices = indices.unsqueeze(dim)
    zeros: Tensor = grad.new_zeros(sizes) if grad._keys & (2 | keys.BATCHED) else _zeros(sizes, grad)
    return zeros.scatter_(dim, indices, grad)


def _zeros(sizes: Sequence[int], like: Tensor) -> Tensor:
    return aten.zeros(tuple(sizes), dtype=like.dtype, device=like.device)


value_selecting_reduction_backward = op(
    "value_selecting_reduction_backward(Tensor grad, int dim, Tensor indices, SymInt[] sizes, bool keepdim) -> Tensor",
    composite=_value_selecting_backward,
    variants="",
)
SELECTED = {
    "self": lambda grad, dim, indices, self_shape, keepdim: value_selecting_reduction_backward(
        grad, dim, indices, self_shape, keepdim
    ),
}


def _selection(name: str, ufunc: np.ufunc) -> tuple[Any, Any]:
    title = name.capitalize()
    whole = op(
        f"{name}(Tensor self) -> Tensor",
        cpu=silent(lambda self: _max_all(ufunc, name, self)),
        shape=lambda self: (),
        node=f"{title}Backward1",
        grad={"self": evenly_distributed_formula},
    )
    by_dim = op(
        f"{name}.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
        cpu=silent(lambda self, dim, keepdim: _max_dim(name, self, dim, keepdim)),
        shape=selected_meta,
        nondifferentiable=("indices",),
        grad=SELECTED,
        tags=("exact_out",),
    )
    other = op(
        f"{name}.other(Tensor self, Tensor other) -> Tensor",
        composite=lambda self, other: self.maximum(other) if name == "max" else self.minimum(other),
    )
    _selection_front(name, whole, by_dim, other)
    return whole, by_dim


def evenly_distributed_formula(grad: Tensor, self: Tensor, result: Tensor) -> Tensor:
    return evenly_distributed(grad, self, result)


def _selection_front(name: str, whole: Entry, by_dim: Entry, other_entry: Entry) -> None:
    table, by_dim_table = whole.op.table, by_dim.op.table

    def front(
        input: Tensor,
        dim: int | Sequence[int] | None = MISSING,
        keepdim: bool = False,
        *,
        other: Tensor | Number = MISSING,
        out: TensorOrTensors | None = None,
        **aliases: Any,
    ) -> TensorOrTensors:
        if dim is MISSING and other is MISSING and out is None and not aliases:
            try:
                function = table[input._keys]
            except AttributeError:
                return retry_call(whole.op, (input,))
            return function(input)
        if aliases:
            dim, keepdim = unalias(name, aliases, dim, keepdim)
        if (
            other is MISSING
            and isinstance(dim, Tensor)
            and not (dim._array.ndim == 0 and dim.dtype.category == _dtype.INTEGER and keepdim)
        ):
            other = dim
        if other is not MISSING:
            return other_entry(input, other, out=out)
        if dim is MISSING:
            return whole(input, out=out)
        if isinstance(dim, Tensor) or not hasattr(dim, "__index__") or isinstance(dim, bool):
            raise TypeError(
                f"{name}() received an invalid combination of arguments - got (Tensor, {type(dim).__name__}), but expected one of:\n"
                f" * (Tensor input, *, Tensor out = None)\n * (Tensor input, Tensor other, *, Tensor out = None)\n"
                f" * (Tensor input, int dim, bool keepdim = False, *, tuple of Tensors out = None)\n"
                f" * (Tensor input, name dim, bool keepdim = False, *, tuple of Tensors out = None)\n"
            )
        if out is None and input.__class__ is Tensor and dim.__class__ is int:
            return by_dim_table[input._keys](input, dim, keepdim)
        return by_dim(input, dim, keepdim, out=out)

    front.__name__ = front.__qualname__ = name
    front.__module__ = "torch"
    public(name=name)(front)


max_all, max_dim = _selection("max", np.maximum)
min_all, min_dim = _selection("min", np.minimum)


def _shared_by_count(grad: Tensor, self: Tensor, result: Tensor, dim: Any, keepdim: bool) -> Tensor:
    """The gradient of `amax`: shared equally by the elements that reach it."""
    dims = [] if dim is None else [dim] if dim.__class__ is int else list(dim)
    mask = self == _with_dims(result, dims, keepdim)
    grad = _with_dims(grad, dims, keepdim)
    return grad / mask.sum(dims, True) * mask


def _with_dims(reduced: Tensor, dims: list[int], keepdim: bool) -> Tensor:
    """A result with the reduced dimensions back, if these were named."""
    if keepdim:
        return reduced
    left = list(reduced._array.shape)
    for i in sorted([d % (reduced._array.ndim + len(dims)) for d in dims]):
        left.insert(i, 1)
    return reduced.reshape(left)


@silent
def _amax(ufunc: Any, name: str, self: Array, dim: int | None, keepdim: bool) -> Array:
    if self.dtype is FLOAT and dim.__class__ is int and -self.ndim <= dim < self.ndim and self.flags.c_contiguous and self.size:
        return ufunc.reduce(self, dim, None, None, keepdim)
    gone = axes(dim, self.ndim)
    check_nonempty(name, self, dim)
    _refuse_complex(f"{name[1:]}_values_cpu", self)
    return kernels.extremum(ufunc, self, gone, keepdim)


def _amax_operator(name: str, ufunc: np.ufunc) -> Callable[..., Any]:
    return op(
        f"{name}(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor",
        cpu=silent(lambda self, dim, keepdim: _amax(ufunc, name, self, dim, keepdim)),
        shape=reduced_shape,
        tags=("exact_out",),
        grad={"self": lambda grad, self, result, dim, keepdim: _shared_by_count(grad, self, result, dim, keepdim)},
    )


amax = _amax_operator("amax", np.maximum)
amin = _amax_operator("amin", np.minimum)


def _aminmax(self: Array, dim: int | None, keepdim: bool) -> tuple[Array, Array]:
    gone = axes(dim, self.ndim)
    if dim is None and not self.size:
        raise RuntimeError("aminmax(): cannot compute aminmax over an empty dimension as the operation has no identity.")
    if dim is not None and self.ndim and not self.shape[gone[0]]:
        raise IndexError(f"aminmax: Expected reduction dim {gone[0]} to have non-zero size.")
    if dim is not None and not self.ndim:
        refuse("aminmax not implemented for {}", self, "c")
    _refuse_complex("aminmax_cpu", self)
    if dim is None and not keepdim and self.size <= 4096 and self.dtype.char in "fdl":
        flat = self.ravel()
        return flat[flat.argmin()], flat[flat.argmax()]
    return kernels.extremum(np.minimum, self, gone, keepdim), kernels.extremum(np.maximum, self, gone, keepdim)


def _aminmax_grad(grads: Sequence[Tensor | None], self: Tensor, dim: int, keepdim: bool, min: Tensor, max: Tensor) -> Tensor | None:
    total = None
    for grad, result in zip(grads, (min, max), strict=True):
        if grad is not None:
            part = _shared_by_count(grad, self, result, dim, keepdim)
            total = part if total is None else total + part if state.grad_enabled else total.add_(part)
    return total


aminmax = op(
    "aminmax(Tensor self, *, int? dim=None, bool keepdim=False) -> (Tensor min, Tensor max)",
    cpu=_aminmax,
    tags=("exact_out",),
    grad={"self": _aminmax_grad},
)


def _position_operator(name: str) -> Callable[..., Any]:
    @silent
    def kernel(self: Array, dim: int | None, keepdim: bool) -> Array:
        if dim is not None:
            dim = _checks.wrap_dim(dim, self.ndim)
        check_nonempty(name, self, dim)
        if self.dtype.kind in "bc":
            raise RuntimeError(f"{name}(): does not support {'bool' if self.dtype.kind == 'b' else 'complex'} input")
        return kernels.position(self, dim, keepdim, largest=name == "argmax")

    return op(
        f"{name}(Tensor self, int? dim=None, bool keepdim=False) -> Tensor",
        cpu=kernel,
        shape=lambda self, dim, keepdim: reduced_meta(self, dim, keepdim, _dtype.int64),
        tags=("nondifferentiable", "exact_out"),
    )


argmax = _position_operator("argmax")
argmin = _position_operator("argmin")
