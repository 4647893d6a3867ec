"""Reductions and normalisations over the elements that a mask leaves: `torch.masked`.

Elements outside of the mask count as the operation's identity (zero in a sum, minus infinity in a maximum).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from . import _checks, _dtype, _masked_sparse
from ._creation import tensor
from ._masked_sparse import where as _where
from ._memory_format import sparse_coo, sparse_csr, strided
from ._ops.machinery.lookup import aten
from ._tensor import Tensor
from ._types import OptionalDType

__all__ = [
    "amax", "amin", "argmax", "argmin", "cumprod", "cumsum", "log_softmax", "logaddexp", "logsumexp", "mean", "median", "norm",
    "normalize", "prod", "softmax", "softmin", "std", "sum", "var",
]  # fmt: skip

Dims = int | tuple[int, ...] | list[int] | None


def _input_mask(input: Tensor, *args: Any, mask: Tensor | None = None, **options: Any) -> Tensor:
    """The mask as bools of the input's shape, with an element for each; what else the operation is called with does not matter."""
    if mask is None:
        raise ValueError("_input_mask requires explicit mask")
    if mask.shape != input.shape:
        if mask.dim() > input.dim():
            raise IndexError("_input_mask expected broadcastable mask (got mask dimensionality higher than of the input)")
        mask = aten.broadcast_to(mask.to_dense(), input.shape)
    if mask.layout is not strided:
        mask = mask.to_dense()
    return mask if mask.dtype.category == _dtype.BOOL else mask.to(_dtype.bool_)


def _output_mask(op: Callable[..., Tensor], input: Tensor, *args: Any, **options: Any) -> Tensor:
    """Which elements of a result of one of these functions come from elements that the mask leaves."""
    name = getattr(op, "__name__", type(op).__name__)
    inside = _input_mask(input, *args, **options)
    if name in _NORMALIZATIONS:
        return inside
    if name not in _REDUCTIONS:
        raise ValueError(f"_output_mask expected masked operation (got {name})")
    if name == "norm":
        args = args[1:]  # its order
    dims = _canonical_dim(args[0] if args else options.get("dim"), input.dim())
    return aten.any(inside, list(dims), bool(options.get("keepdim", False)))


_NORMALIZATIONS = frozenset("softmax log_softmax softmin normalize cumsum cumprod".split())
_REDUCTIONS = frozenset("sum prod amax amin argmax argmin mean median norm var std logsumexp".split())


def _filled(input: Tensor, mask: Tensor | None, identity: Any) -> Tensor:
    if mask is None:
        return input
    fill = tensor(identity, dtype=input.dtype, device=input.device)
    return aten.where(_input_mask(input, mask=mask), input, fill)


def _canonical_dim(dim: Dims, ndim: int) -> tuple[int, ...]:
    """The dimensions in order; all of them for None and for `()`. torch: an empty list names none."""
    if dim is None or dim == ():
        return tuple(range(ndim))
    found: list[int] = []
    for d in (dim,) if isinstance(dim, int) else dim:
        wrapped = _checks.wrap_dim(d, ndim)
        if wrapped in found:
            raise RuntimeError(f"dim={wrapped} appears multiple times in the list of dims")
        found.append(wrapped)
    return tuple(sorted(found))


def _accumulating(d: _dtype.dtype, dtype: OptionalDType) -> Any:
    """The dtype of sums and products: integers add up in int64."""
    if dtype is not None:
        return dtype
    return d if d.inexact else _dtype.int64


def _converted(input: Tensor, dtype: OptionalDType) -> Tensor:
    return input if dtype is None or dtype is input.dtype else input.to(dtype)


def _greatest(d: _dtype.dtype) -> Any:
    if d.is_floating_point:
        return math.inf
    return True if d.category == _dtype.BOOL else int(np.iinfo(d.np).max)


def _least(d: _dtype.dtype) -> Any:
    if d.is_floating_point:
        return -math.inf
    return False if d.category == _dtype.BOOL else int(np.iinfo(d.np).min)


# --- reductions of sparse tensors -----------------------------------------------------------------------------------


def _sparse_reduction(name: str, input: Tensor, dims: tuple[int, ...], keepdim: bool, mask: Tensor | None) -> Tensor:
    """A reduction of a sparse tensor, which is one of the same layout."""
    if name == "mean" and input.layout is not sparse_csr:
        raise ValueError(f"masked mean expects strided or sparse_csr tensor (got {input.layout} tensor)")
    if input.layout not in (sparse_coo, sparse_csr):
        raise ValueError(f"masked {name} expects strided, sparse_coo or sparse_csr tensor (got {input.layout} tensor)")
    if mask is None and name != "sum":
        layout = str(input.layout).removeprefix("torch.")
        raise ValueError(
            f"masked {name} expects explicit mask for {layout} tensor input; without one, elements that are not stored are zeros"
        )
    if input.layout is sparse_csr and not keepdim:
        error = RuntimeError if name in ("sum", "prod") else AssertionError
        raise error("reduction operations on CSR tensors with keepdim=False is unsupported; pass keepdim=True")
    if mask is not None:
        inside = _input_mask(input, mask=mask)
        inside = inside.to_sparse_csr() if input.layout is sparse_csr else inside.to_sparse(input.sparse_dim())
        input = _where(inside, input, tensor(_IDENTITIES[name](input.dtype), dtype=input.dtype))
    return _masked_sparse.reduce(_REDUCE[name], _IDENTITIES[name](input.dtype), input, dims, keepdim)


def _mean_of_known(x: Tensor, dims: Any, keepdim: bool) -> Tensor:
    """The mean of the elements that are numbers: NaN is what changes nothing in it."""
    return x.nanmean(list(dims), keepdim)


def _product(x: Tensor, dims: Any, keepdim: bool) -> Tensor:
    for d in reversed(dims):
        x = x.prod(d, keepdim)
    return x


_REDUCE: dict[str, _masked_sparse.Reduce] = {
    "sum": lambda x, dims, keepdim: aten.sum(x, list(dims), keepdim),
    "prod": _product,
    "amax": lambda x, dims, keepdim: x.amax(list(dims), keepdim),
    "amin": lambda x, dims, keepdim: x.amin(list(dims), keepdim),
    "mean": _mean_of_known,
}
_IDENTITIES: dict[str, Callable[[_dtype.dtype], Any]] = {
    "sum": lambda d: 0,
    "prod": lambda d: 1,
    "amax": _least,
    "amin": _greatest,
    "mean": lambda d: math.nan,
}


# --- reductions -----------------------------------------------------------------------------------------------------


def sum(
    input: Tensor, dim: Dims = None, *, keepdim: bool = False, dtype: OptionalDType = None, mask: Tensor | None = None
) -> Tensor:
    """The sum of the elements in the mask."""
    dims = _canonical_dim(dim, input.dim())
    wanted = _accumulating(input.dtype, dtype)
    if _masked_sparse.is_sparse(input):
        return _sparse_reduction("sum", _converted(input, wanted), dims, bool(keepdim), mask)
    return aten.sum(_filled(input, mask, 0), list(dims), bool(keepdim), dtype=wanted)


def prod(
    input: Tensor, dim: Dims = None, *, keepdim: bool = False, dtype: OptionalDType = None, mask: Tensor | None = None
) -> Tensor:
    """The product of the elements in the mask."""
    dims, wanted = _canonical_dim(dim, input.dim()), _accumulating(input.dtype, dtype)
    if _masked_sparse.is_sparse(input):
        return _sparse_reduction("prod", _converted(input, wanted), dims, bool(keepdim), mask)
    return _product(_converted(_filled(input, mask, 1), wanted), dims, bool(keepdim))


def _extremum(name: str, identity: Callable[[_dtype.dtype], Any]) -> Callable[..., Tensor]:
    def reduce(
        input: Tensor, dim: Dims = None, *, keepdim: bool = False, dtype: OptionalDType = None, mask: Tensor | None = None
    ) -> Tensor:
        dims = _canonical_dim(dim, input.dim())
        if _masked_sparse.is_sparse(input):
            return _sparse_reduction(name, _converted(input, dtype), dims, bool(keepdim), mask)
        result: Tensor = getattr(_filled(input, mask, identity(input.dtype)), name)(list(dims), bool(keepdim))
        return _converted(result, dtype)

    reduce.__name__ = reduce.__qualname__ = name
    reduce.__doc__ = f"The {'greatest' if name == 'amax' else 'least'} of the elements in the mask."
    return reduce


amax = _extremum("amax", _least)
amin = _extremum("amin", _greatest)


def _position(name: str, identity: Callable[[_dtype.dtype], Any]) -> Callable[..., Tensor]:
    def find(
        input: Tensor, dim: int | None = None, *, keepdim: bool = False, dtype: OptionalDType = None, mask: Tensor | None = None
    ) -> Tensor:
        result: Tensor = getattr(_filled(input, mask, identity(input.dtype)), name)(dim, bool(keepdim))
        # torch: indices come in the input's dtype unless another is asked for
        return result.to(input.dtype if dtype is None else dtype)

    find.__name__ = find.__qualname__ = name
    find.__doc__ = f"The index of the {'greatest' if name == 'argmax' else 'least'} element in the mask."
    return find


argmax = _position("argmax", _least)
argmin = _position("argmin", _greatest)


def logsumexp(
    input: Tensor, dim: Dims = None, *, keepdim: bool = False, dtype: OptionalDType = None, mask: Tensor | None = None
) -> Tensor:
    """The logarithm of the summed exponentials of the elements in the mask."""
    dims = _canonical_dim(dim, input.dim())
    x = _converted(input, dtype)
    wanted = x.dtype
    if not wanted.inexact:
        x = x.to(_dtype.float32)
    # torch: the result has the input's dtype, integers too
    return _converted(_filled(x, mask, -math.inf).logsumexp(list(dims), bool(keepdim)), wanted)


def logaddexp(
    input: Tensor,
    other: Tensor,
    *,
    dtype: OptionalDType = None,
    input_mask: Tensor | None = None,
    other_mask: Tensor | None = None,
) -> Tensor:
    """The logarithm of the sum of two exponentials, of which those outside of their mask are left out."""
    left, right = _filled(input, input_mask, -math.inf), _filled(other, other_mask, -math.inf)
    return _converted(left.logaddexp(right), dtype)


def _number_of(input: Tensor, dims: tuple[int, ...], keepdim: bool, mask: Tensor | None) -> Tensor:
    """Count the elements that each result is made of."""
    if mask is None:
        ones = aten.ones(input._array.shape, dtype=_dtype.int64, device=input.device)
    else:
        ones = _input_mask(input, mask=mask)
    return aten.sum(ones, list(dims), keepdim, dtype=_dtype.int64)


def mean(
    input: Tensor, dim: Dims = None, *, keepdim: bool = False, dtype: OptionalDType = None, mask: Tensor | None = None
) -> Tensor:
    """The mean of the elements in the mask; NaN where it leaves none."""
    if dtype is None and not input.dtype.inexact:
        raise ValueError(
            f"mean(): Could not infer output dtype. Input dtype must be either a floating point or complex dtype. Got: {input.dtype}"
        )
    dims = _canonical_dim(dim, input.dim())
    if _masked_sparse.is_sparse(input):
        return _sparse_reduction("mean", _converted(input, dtype), dims, bool(keepdim), mask)
    mask = None if mask is None else _input_mask(input, mask=mask)
    number = _number_of(input, dims, bool(keepdim), mask)
    total = sum(input, list(dims), keepdim=keepdim, dtype=input.dtype if dtype is None else dtype, mask=mask)
    return total / number


def median(
    input: Tensor, dim: int = -1, *, keepdim: bool = False, dtype: OptionalDType = None, mask: Tensor | None = None
) -> Tensor:
    """The lower median of the elements in the mask; NaN where it leaves none."""
    x = _converted(input, dtype)
    wanted = x.dtype
    if not wanted.is_floating_point:
        x = x.to(_dtype.float32)
    return _converted(_filled(x, mask, math.nan).nanmedian(dim, bool(keepdim))[0], wanted)


def norm(
    input: Tensor,
    ord: float | None = 2.0,
    dim: Dims = None,
    *,
    keepdim: bool = False,
    dtype: OptionalDType = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The vector norm of the elements in the mask."""
    ord = 2.0 if ord is None else ord
    dims = _canonical_dim(dim, input.dim())
    filled = _filled(_converted(input, dtype), mask, math.inf if ord < 0 else 0)
    return aten.linalg_vector_norm(filled, ord, list(dims), bool(keepdim), dtype=dtype)


def _degrees(unbiased: Any, correction: Any) -> Any:
    if unbiased is not None and correction is not None:
        raise AssertionError("Only one of unbiased and correction may be given")
    if correction is not None:
        return correction
    return 1 if unbiased is None or unbiased else 0


def _spread(
    input: Tensor,
    dim: Dims,
    correction: Any,
    keepdim: bool,
    dtype: OptionalDType,
    mask: Tensor | None,
    *,
    root: bool,
) -> Tensor:
    wanted = dtype if dtype is not None else input.dtype if input.dtype.inexact else _dtype.float32
    x = _converted(input, wanted)
    dims = _canonical_dim(dim, x.dim())
    mask = None if mask is None else _input_mask(x, mask=mask)
    number = _number_of(x, dims, True, mask)
    average = aten.divide(sum(x, list(dims), keepdim=True, mask=mask), number)
    centred = aten.subtract(x, average)
    squares = centred * centred.conj() if x.dtype.is_complex else centred * centred
    total = sum(squares, list(dims), keepdim=keepdim, mask=mask)
    if not keepdim:
        number = number.reshape(total._array.shape)
    if correction != 0:
        real = wanted.to_real()
        number = (
            aten.subtract(number, correction).to(real) if not isinstance(correction, int) else aten.subtract(number, correction)
        )
        number = aten.maximum(number, number.new_zeros([]))
    out = aten.divide(total, number)
    return out.sqrt() if root else out


def var(
    input: Tensor,
    dim: Dims = None,
    unbiased: bool | None = None,
    *,
    correction: Any = None,
    keepdim: bool = False,
    dtype: OptionalDType = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The variance of the elements in the mask."""
    return _spread(input, dim, _degrees(unbiased, correction), bool(keepdim), dtype, mask, root=False)


def std(
    input: Tensor,
    dim: Dims = None,
    unbiased: bool | None = None,
    *,
    correction: Any = None,
    keepdim: bool = False,
    dtype: OptionalDType = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The standard deviation of the elements in the mask."""
    return _spread(input, dim, _degrees(unbiased, correction), bool(keepdim), dtype, mask, root=True)


# --- normalisations and running sums --------------------------------------------------------------------------------


def softmax(input: Tensor, dim: int, *, dtype: OptionalDType = None, mask: Tensor | None = None) -> Tensor:
    """Softmax over the elements in the mask; zero outside of it."""
    return _filled(input, mask, -math.inf).softmax(dim, dtype=dtype)


def log_softmax(input: Tensor, dim: int, *, dtype: OptionalDType = None, mask: Tensor | None = None) -> Tensor:
    """The logarithm of `softmax`."""
    return _filled(input, mask, -math.inf).log_softmax(dim, dtype=dtype)


def softmin(input: Tensor, dim: int, *, dtype: OptionalDType = None, mask: Tensor | None = None) -> Tensor:
    """Softmax of the negated elements in the mask."""
    return (-_filled(input, mask, math.inf)).softmax(dim, dtype=dtype)


def normalize(
    input: Tensor, ord: float, dim: int, *, eps: float = 1e-12, dtype: OptionalDType = None, mask: Tensor | None = None
) -> Tensor:
    """The elements in the mask divided by their norm, or by `eps` where that is greater."""
    x = _converted(input, dtype)
    length = norm(x, ord, dim, keepdim=True, dtype=dtype, mask=mask)
    denominator = aten.maximum(length, length.new_full([], eps))
    return aten.divide(_filled(x, mask, 0), denominator)


def cumsum(input: Tensor, dim: int, *, dtype: OptionalDType = None, mask: Tensor | None = None) -> Tensor:
    """Running sums of the elements in the mask."""
    return _filled(input, mask, 0).cumsum(dim, dtype=input.dtype if dtype is None else dtype)


def cumprod(input: Tensor, dim: int, *, dtype: OptionalDType = None, mask: Tensor | None = None) -> Tensor:
    """Running products of the elements in the mask."""
    return _filled(input, mask, 1).cumprod(dim, dtype=input.dtype if dtype is None else dtype)
