"""Sums, means, products, truth values and log-sum-exps over dimensions."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ... import _checks, _dtype
from ..._backends.cpu.machinery.dtype_rules import refusal
from ..._backends.cpu.machinery.floating_errors import silent
from ..._backends.cpu.reductions import sums as kernels
from ..._backends.cpu.reductions.sums import truth
from ..._backends.meta.adapter import meta_tensor
from ..._dispatch import keys, registry
from ..._dispatch.entry import ALIASES, MISSING
from ..._dispatch.resolver import make_resolver
from ..._dispatch.tls import state
from ..._tensor import Tensor
from ..._types import OptionalDType
from ..machinery.calling import retry_call
from ..machinery.computing import computed
from ..machinery.declare import op, public
from ..machinery.lookup import aten

if TYPE_CHECKING:
    from ..._dispatch.op import Entry

Array = np.ndarray[Any, Any]
axes = kernels.axes
reduced_shape = kernels.reduced_shape


# --- what many reductions share -------------------------------------------------------------------------------------


def reduced_meta(self: Tensor, dim: Any, keepdim: bool, d: _dtype.dtype) -> Tensor:
    """The shape rule of a reduction whose result has this dtype."""
    return meta_tensor(reduced_shape(self, dim, keepdim), d)


def accumulated(d: _dtype.dtype, dtype: _dtype.dtype | None) -> _dtype.dtype:
    """The dtype of sums and products: integers add up in int64."""
    return dtype or (d if d.inexact else _dtype.int64)


def selected_meta(self: Tensor, dim: int, keepdim: bool) -> tuple[Tensor, Tensor]:
    """The shape rule of elements picked along a dimension, with their indices."""
    return reduced_meta(self, dim, keepdim, self.dtype), reduced_meta(self, dim, keepdim, _dtype.int64)


def restore_dims(t: Tensor, dim: int | Sequence[int] | None, keepdim: bool, ndim: int) -> Tensor:
    """A reduced tensor with its reduced dimensions back, of extent one."""
    if keepdim or not ndim:
        return t
    for i in sorted(axes(dim, ndim)):
        t = t.unsqueeze(i)
    return t


def check_nonempty(name: str, self: Array, dim: Any) -> None:
    """Refuse to pick an element of a dimension without elements."""
    if self.size:
        return
    if dim is None or (dim.__class__ is not int and not len(dim)):
        missing = f"{name}(): Expected reduction dim to be specified for input.numel() == 0."
        if name.startswith("arg"):
            raise IndexError(missing)
        raise RuntimeError(missing + " Specify the reduction dim with the 'dim' argument.")
    for d in axes(dim, self.ndim):
        if not self.shape[d]:
            raise IndexError(f"{name}(): Expected reduction dim {d} to have non-zero size.")


def count(shape: Sequence[int], dim: int | Sequence[int] | None) -> int:
    """Count the elements that one result is made of."""
    return math.prod(shape[i] for i in axes(dim, len(shape)))


# --- sum and mean ---------------------------------------------------------------------------------------------------

_sum_all = op(
    "sum(Tensor self, *, ScalarType? dtype=None) -> Tensor",
    cpu=kernels.sum_all,
    shape=lambda self, dtype: meta_tensor((), accumulated(self.dtype, dtype)),
    grad={"self": lambda grad, self_shape: grad.expand(self_shape)},
)
_sum_dims = op(
    "sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
    cpu=kernels.sum_dims,
    shape=lambda self, dim, keepdim, dtype: reduced_meta(self, dim, keepdim, accumulated(self.dtype, dtype)),
    tags=("dtype_of_out",),
    node="SumBackward1",
    grad={"self": lambda grad, self_shape, dim, keepdim: _expand_back(grad, self_shape, dim, keepdim)},
)


def _expand_back(grad: Tensor, shape: tuple[int, ...], dim: int | Sequence[int] | None, keepdim: bool) -> Tensor:
    if not keepdim and len(shape) > 0:
        grad = restore_dims(grad, dim, keepdim, len(shape)) if dim is not None and dim != () and dim != [] else grad
    return grad.expand(shape)


def _mean_meta(self: Tensor, dim: int | None, keepdim: bool, dtype: _dtype.dtype | None) -> Tensor:
    kernels.check_mean_dtype(self.dtype, dtype)
    return reduced_meta(self, dim, keepdim, dtype or self.dtype)


_mean_all = op(
    "mean(Tensor self, *, ScalarType? dtype=None) -> Tensor",
    cpu=kernels.mean_all,
    shape=lambda self, dtype: _mean_meta(self, None, False, dtype),
    grad={"self": lambda grad, self_shape: grad.expand(self_shape) / math.prod(self_shape)},
)
_mean_dims = op(
    "mean.dim(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
    cpu=kernels.mean_dims,
    shape=_mean_meta,
    node="MeanBackward1",
    grad={
        "self": lambda grad, self_shape, dim, keepdim: _expand_back(grad, self_shape, dim, keepdim) / count(self_shape, dim),
    },
)


def _front(name: str, whole: Entry, by_dim: Entry) -> Callable[..., Any]:
    """`torch.sum` and its like: without `dim` the whole tensor, told apart without a search through overloads."""
    table, by_dim_table = whole.op.table, by_dim.op.table

    def front(
        input: Tensor,
        dim: int | None = MISSING,
        keepdim: bool = False,
        *,
        dtype: OptionalDType = None,
        out: Tensor | None = None,
        **aliases: Any,
    ) -> Tensor:
        if dtype is not None:
            dtype = _dtype.as_dtype(dtype, name)
        if dim is MISSING and out is None and not aliases:
            try:
                function = table[input._keys]
            except AttributeError:
                return retry_call(whole.op, (input, dtype))
            return function(input, dtype)
        if aliases:
            dim, keepdim = unalias(name, aliases, dim, keepdim)
        if dim is MISSING:
            return whole(input, dtype=dtype, out=out)
        if dim.__class__ is not int or keepdim.__class__ is not bool:
            dim = _plain_dims(name, dim, keepdim)
        if out is None and input.__class__ is Tensor:
            return by_dim_table[input._keys](input, dim, keepdim, dtype)
        return by_dim(input, dim, keepdim, dtype=dtype, out=out)

    front.__name__ = front.__qualname__ = name
    front.__module__ = "torch"
    return public(name=name)(front)


def _plain_dims(name: str, dim: int | None, keepdim: Any) -> Any:
    """Dimensions as an int, a sequence of ints or None; other types are refused."""
    if not isinstance(keepdim, bool | np.bool_):
        raise TypeError(f"{name}(): argument 'keepdim' (position 2) must be bool, not {type(keepdim).__name__}")
    if dim is None or (isinstance(dim, list | tuple) and all(isinstance(d, int) and not isinstance(d, bool) for d in dim)):
        return dim
    try:
        return [operator.index(d) for d in dim] if isinstance(dim, list | tuple) else operator.index(dim)
    except TypeError:
        raise TypeError(
            f"{name}() received an invalid combination of arguments - got (Tensor, {type(dim).__name__}), but expected one of:\n"
            " * (Tensor input, *, torch.dtype dtype = None)\n"
            " * (Tensor input, tuple of ints dim, bool keepdim = False, *, torch.dtype dtype = None, Tensor out = None)\n"
        ) from None


def unalias(name: str, aliases: dict[str, Any], dim: int | Sequence[int] | None, keepdim: Any) -> tuple[Any, Any]:
    for key, value in aliases.items():
        target = ALIASES.get(key)
        if target == "dim":
            dim = value
        elif target == "keepdim":
            keepdim = value
        else:
            raise TypeError(f"{name}() got an unexpected keyword argument '{key}'")
    return dim, keepdim


sum_ = _front("sum", _sum_all, _sum_dims)
mean = _front("mean", _mean_all, _mean_dims)


def _sum_to_size(self: Tensor, size: Sequence[int]) -> Tensor:
    shape = self._array.shape
    target = tuple(size)
    if not target:
        return _sum_all(self)
    lead = len(shape) - len(target)
    if lead < 0 or any(b not in (1, a) for a, b in zip(shape[lead:], target, strict=True)):
        raise RuntimeError(f"size {{{list(target)}}} is not expandable to size {{{list(shape)}}}.")
    gone = [*range(lead), *(i for i in range(lead, len(shape)) if target[i - lead] == 1 and shape[i] != 1)]
    if gone:
        self = _sum_dims.op.table[self._keys](self, gone[0] if len(gone) == 1 else gone, True, None)
    return self.view(target) if lead > 0 else self


sum_to_size = op("sum_to_size(Tensor self, SymInt[] size) -> Tensor", composite=_sum_to_size, variants="method")

nansum = op(
    "nansum(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
    cpu=lambda self, dim, keepdim, dtype: _nansum(self, dim, keepdim, dtype),
    grad={
        "self": lambda grad, self, dim, keepdim: (
            _expand_back(grad.to(self.dtype), self._array.shape, dim, keepdim) * self.isnan().logical_not()
        ),
    },
)


def _nansum(self: Array, dim: int | Sequence[int] | None, keepdim: bool, dtype: _dtype.dtype | None) -> Array:
    if self.dtype.kind == "c":
        raise RuntimeError("nansum on CPU does not support complex inputs")
    if dtype is not None and dtype.is_complex:
        raise refusal("nansum_cpu", dtype)
    out = np.asarray(kernels.sum_dims(self, dim, keepdim, dtype))
    if self.dtype.kind in "biu" or not np.isnan(out).any():
        return out
    return kernels.sum_dims(np.where(np.isnan(self), self.dtype.type(0), self), dim, keepdim, dtype)


def _is_number(x: Tensor) -> Tensor:
    return (x != x).logical_not_()


def _nanmean(self: Tensor, dim: int | Sequence[int] | None, keepdim: bool, dtype: OptionalDType) -> Tensor:
    if not self.dtype.inexact:
        raise RuntimeError(f"nanmean(): expected input to have floating point or complex dtype but got {self.dtype.scalar_name}")
    if dtype is not None and not dtype.inexact:
        raise RuntimeError(
            "nanmean(): could not infer output dtype. Optional dtype must be either a floating point or complex dtype. "
            f"Got: {dtype.scalar_name}"
        )
    n: Tensor = _sum_dims(_is_number(self.detach()), dim, keepdim)
    return nansum(self, dim, keepdim, dtype=dtype).div(n)


nanmean = op("nanmean(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor", composite=_nanmean)

# --- any, all, count_nonzero ----------------------------------------------------------------------------------------


def _truth_operators(name: str, ufunc: np.ufunc) -> None:
    tags = ("nondifferentiable", "exact_out")
    whole = op(
        f"{name}(Tensor self) -> Tensor",
        cpu=silent(lambda self: truth(ufunc, self, None, False)),
        shape=lambda self: meta_tensor((), _truth_dtype(self)),
        tags=tags,
    )
    for overload, dim in (("dim", "int dim"), ("dims", "int[]? dim=None")):
        op(
            f"{name}.{overload}(Tensor self, {dim}, bool keepdim=False) -> Tensor",
            cpu=silent(lambda self, dim, keepdim: truth(ufunc, self, _truth_axes(dim, self.ndim), keepdim)),
            shape=_truth_meta,
            tags=tags,
        )
    _truth_front(name, whole)


def _truth_front(name: str, whole: Entry) -> None:
    """`torch.any` and `torch.all`: the whole tensor without a search through overloads, which takes 0.5 µs."""
    table = whole.op.table
    ops = tuple(registry.overloads(f"aten::{name}").values())
    resolved = make_resolver(name, ops, Tensor)

    def front(*args: Any, **kwargs: Any) -> Tensor:
        if len(args) == 1 and not kwargs and args[0].__class__ is Tensor:
            return table[args[0]._keys](args[0])
        return resolved(*args, **kwargs)

    functools.update_wrapper(front, resolved)
    public(name=name)(front)


def _truth_axes(dim: Any, ndim: int) -> tuple[int, ...]:
    # torch: an empty list of dimensions reduces none here
    return () if dim is not None and dim.__class__ is not int and not len(dim) else axes(dim, ndim)


def _truth_dtype(self: Tensor) -> _dtype.dtype:
    return self.dtype if self.dtype is _dtype.uint8 else _dtype.bool_


def _truth_meta(self: Tensor, dim: int, keepdim: bool) -> Tensor:
    gone = _truth_axes(dim, self._array.ndim)
    return reduced_meta(self, gone, keepdim, _truth_dtype(self)) if gone else meta_tensor(self._array.shape, _truth_dtype(self))


_truth_operators("any", np.logical_or)
_truth_operators("all", np.logical_and)

_is_all_true = op("_is_all_true(Tensor self) -> Tensor", composite=lambda self: aten.all(self))
_is_any_true = op("_is_any_true(Tensor self) -> Tensor", composite=lambda self: aten.any(self))
count_nonzero_dims = op(
    "count_nonzero.dim_IntList(Tensor self, int[] dim) -> Tensor",
    over_tensors=lambda self, dim: (self != 0).sum(dim) if dim else computed(np.count_nonzero, self),
    shape=lambda self, dim: reduced_meta(self, dim, False, _dtype.int64),
    tags=("nondifferentiable",),
)
count_nonzero = op(
    "count_nonzero(Tensor self, int? dim=None) -> Tensor",
    composite=lambda self, dim: count_nonzero_dims(self, [] if dim is None else [dim]),
    tags=("nondifferentiable",),
)


# --- prod -----------------------------------------------------------------------------------------------------------


def _prod_backward(grad: Tensor, self: Tensor, result: Tensor) -> Tensor:
    if self._array.ndim == 0:
        return grad
    if self._keys & keys.BATCHED:  # what holds for one sample may not for another
        return _prod_safe_backward(grad, self.contiguous().view(-1), 0).view(self._array.shape)
    zeros = (self == 0).nonzero()._array.shape[0]
    if not zeros:
        return grad * _conj(result / self)
    if zeros > 1 and not state.grad_enabled:
        return aten.zeros_like(self)
    return _prod_safe_backward(grad, self.contiguous().view(-1), 0).view(self._array.shape)


def _prod_dim_backward(grad: Tensor, self: Tensor, result: Tensor, dim: int, keepdim: bool) -> Tensor:
    if self._array.ndim == 0:
        return grad
    dim = _checks.wrap_dim(dim, self._array.ndim)
    if not keepdim:
        grad = grad.unsqueeze(dim)
        result = result.unsqueeze(dim)
    if not self._keys & keys.BATCHED and not (self == 0).sum(dim).sum().item():
        return grad * _conj(result / self)
    return _prod_safe_backward(grad, self, dim)


def _conj(x: Tensor) -> Tensor:
    return x.conj() if x.dtype.is_complex else x


def _prod_safe_backward(grad: Tensor, self: Tensor, dim: int) -> Tensor:
    """Products of all the other elements, from cumulative products of both directions: right where elements are zero."""
    n = self._array.shape[dim]
    if n == 1:
        return grad.expand(self._array.shape).clone() if grad._array.shape != self._array.shape else grad.clone()
    shape = list(self._array.shape)
    shape[dim] = 1
    ones = aten.ones(shape, dtype=self.dtype, device=self.device)
    before = aten.cat([ones, self.narrow(dim, 0, n - 1)], dim).cumprod(dim)
    after = aten.cat([ones, self.narrow(dim, 1, n - 1).flip(dim)], dim).cumprod(dim).flip(dim)
    return grad * _conj(before * after)


prod_all = op(
    "prod(Tensor self, *, ScalarType? dtype=None) -> Tensor",
    cpu=kernels.prod_all,
    shape=lambda self, dtype: meta_tensor((), accumulated(self.dtype, dtype)),
    grad={"self": lambda grad, self, result: _prod_backward(grad.to(self.dtype), self.to(grad.dtype), result)},
)
prod_dim = op(
    "prod.dim_int(Tensor self, int dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
    cpu=lambda self, dim, keepdim, dtype: kernels.prod(self, axes(dim, self.ndim), keepdim, dtype),
    node="ProdBackward1",
    shape=lambda self, dim, keepdim, dtype: reduced_meta(self, dim, keepdim, accumulated(self.dtype, dtype)),
    tags=("dtype_of_out",),
    grad={
        "self": lambda grad, self, result, dim, keepdim: _prod_dim_backward(
            grad.to(self.dtype), self.to(grad.dtype), result, dim, keepdim
        ),
    },
)

# --- logsumexp ------------------------------------------------------------------------------------------------------


def _logsumexp(self: Tensor, dim: int | Sequence[int], keepdim: bool) -> Tensor:
    if not self.dtype.inexact:
        self = self.to(_dtype.get_default_dtype())
    gone = list(axes(dim, self._array.ndim))
    if not self._array.size:
        return _sum_dims(self.exp(), gone, keepdim).log()
    top: Tensor = aten.amax(aten.real(self), gone, True)
    squeezed = top if keepdim else top.squeeze(tuple(gone))
    squeezed = squeezed.masked_fill_(squeezed.abs() == math.inf, 0)
    if keepdim:
        top = squeezed
    total: Tensor = _sum_dims((self - top).exp_(), gone, keepdim)
    return total.log_().add_(squeezed)


def _logsumexp_backward(grad: Tensor, self: Tensor, result: Tensor, dim: int | Sequence[int] | None, keepdim: bool) -> Tensor:
    ndim = self._array.ndim
    grad = restore_dims(grad, dim, keepdim, ndim)
    result = restore_dims(result, dim, keepdim, ndim)
    weights = (self - result).exp()
    return grad * (weights.conj() if self.dtype.is_complex else weights)


logsumexp = op(
    "logsumexp(Tensor self, int[1] dim, bool keepdim=False) -> Tensor",
    composite=_logsumexp,
    grad={"self": _logsumexp_backward},
    tags=("fresh",),
)
special_logsumexp = op(
    "special_logsumexp(Tensor self, int[1] dim, bool keepdim=False) -> Tensor",
    composite=lambda self, dim, keepdim: logsumexp(self, dim, keepdim),
    variants="function",
)
