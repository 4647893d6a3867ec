"""Reading and writing along one dimension by an index tensor: gather, scatter, index_add and their families."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..._backends.cpu.indexing import scatter as kernels
from ..._checks import broadcast_shapes, wrap_dim
from ..._dispatch.keys import META
from ..._dispatch.schema import parse
from ..._memory_format import contiguous_format
from ..._settings import alert_not_deterministic
from ..._tensor import Tensor
from ..._types import Array, Number
from ..machinery.declare import inplace_schema, op
from ..machinery.lookup import aten
from ..shapes.joining import cat
from ..shapes.reshaping import expand, reshape, view, zeros

Grads = Mapping[str | tuple[str, ...], Callable[..., Any]]


def both(
    schema: str, kernel: Callable[..., None], grad: Grads | None = None, node: str | None = None, **options: Any
) -> Callable[..., Any]:
    """Declare an operator and its in-place variant from a kernel that writes to `self`; returns the functional one."""
    entry = op(schema, cpu=kernels.on_copy(kernel), grad=grad, node=node, shape=lambda self: self._array.shape, **options)
    op(str(inplace_schema(parse(schema))), cpu=kernel, grad=grad, node=node or entry.op.node_name, variants="method")
    return entry


# --- gather ---------------------------------------------------------------------------------------------------------

gather = op(
    "gather(Tensor self, int dim, Tensor index, *, bool sparse_grad=False) -> Tensor",
    cpu=kernels.gather,
    shape=lambda index: index._array.shape,
    grad={"self": lambda grad, self, dim, index, sparse_grad: gather_backward(grad, self, dim, index, sparse_grad)},
    tags=("disjoint_out", "exact_out"),
)
gather_backward = op(
    "gather_backward(Tensor grad, Tensor self, int dim, Tensor index, bool sparse_grad) -> Tensor",
    composite=lambda grad, self, dim, index, sparse_grad: _gather_backward(grad, self, dim, index, sparse_grad),
    variants="",
)


def _gather_backward(grad: Tensor, self: Tensor, dim: int, index: Tensor, sparse_grad: bool) -> Tensor:
    if sparse_grad:
        return aten._gather_sparse_backward(self, dim, index, grad)
    return grad.new_zeros(self._array.shape).scatter_add_(dim, index, grad)


def _take_along_dim(self: Tensor, indices: Tensor, dim: int | None) -> Tensor:
    if indices.dtype.scalar_name != "Long":
        raise RuntimeError(
            f"torch.take_along_dim(): dtype of indices should be Long but got {indices.dtype.scalar_name}. "
            "Trying to cast indices to long"
        )
    if dim is None:
        return gather(view_flat(self), 0, view_flat(indices))
    if self.dim() != indices.dim():
        raise RuntimeError(
            f"torch.take_along_dim(): input and indices should have the same number of dimensions, but got {self.dim()} dimensions "
            f"for input, and {indices.dim()} dimensions for indices"
        )
    d = wrap_dim(dim, self.dim())
    mine, theirs = list(self._array.shape), list(indices._array.shape)
    extent = mine[d]
    mine[d], theirs[d] = theirs[d], mine[d]
    target = list(broadcast_shapes(tuple(mine), indices._array.shape))
    spread = aten.broadcast_to(indices, target)
    source = aten.broadcast_to(self, [*target[:d], extent, *target[d + 1 :]])
    return gather(source, d, aten.remainder(spread, extent))


def view_flat(t: Tensor) -> Tensor:
    return reshape(t, (-1,)) if not t._array.flags.c_contiguous else view(t, (-1,))


take_along_dim = op("take_along_dim(Tensor self, Tensor indices, int? dim=None) -> Tensor", composite=_take_along_dim)

# --- scatter --------------------------------------------------------------------------------------------------------

scatter_src = both(
    "scatter.src(Tensor self, int dim, Tensor index, Tensor src) -> Tensor",
    kernels.scatter_src,
    grad={
        "self": lambda grad, dim, index: scatter_value(grad, dim, index, 0),
        "src": lambda grad, dim, index: gather(grad, dim, index),
    },
)
scatter_value = both(
    "scatter.value(Tensor self, int dim, Tensor index, Scalar value) -> Tensor",
    kernels.scatter_value,
    grad={"self": lambda grad, dim, index: scatter_value(grad, dim, index, 0)},
    node="ScatterBackward1",
)


def _reduce_src(self: Array, dim: int, index: Array, src: Array, reduce: str) -> None:
    kernels.scatter_with(self, dim, index, src, reduce)


def _reduce_value(self: Array, dim: int, index: Array, value: Number, reduce: str) -> None:
    kernels.scatter_with(self, dim, index, value, reduce)


both("scatter.reduce(Tensor self, int dim, Tensor index, Tensor src, *, str reduce) -> Tensor", _reduce_src)
both("scatter.value_reduce(Tensor self, int dim, Tensor index, Scalar value, *, str reduce) -> Tensor", _reduce_value)
scatter_add = both(
    "scatter_add(Tensor self, int dim, Tensor index, Tensor src) -> Tensor",
    kernels.scatter_add,
    grad={"self": lambda grad: grad, "src": lambda grad, dim, index: gather(grad, dim, index)},
)


def _scatter_reduce_grads(
    grad: Tensor, self: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, include_self: bool, result: Tensor
) -> tuple[Tensor, Tensor]:
    if reduce == "sum":
        mine, theirs = grad, gather(grad, dim, index)
    elif reduce == "prod":
        mine, theirs = _product_grads(
            grad, self, dim, index, src, include_self, result, read=gather, add=scatter_add, reduce=scatter_reduce
        )
    elif reduce == "mean":
        count = aten.ones_like(grad) if include_self else aten.zeros_like(grad)
        count = scatter_add(count, dim, index, aten.ones_like(src))
        count = count.masked_fill_(count == 0, 1)
        mine, theirs = grad / count, gather(grad, dim, index) / gather(count, dim, index)
    else:
        value = gather(result, dim, index)
        reached = scatter_add((self == result).to(grad.dtype), dim, index, (src == value).to(grad.dtype))
        share = grad / reached
        mine, theirs = (self == result) * share, (src == value) * gather(share, dim, index)
    if not include_self:
        mine = scatter_value(mine, dim, index, 0)
    return mine, theirs


def _product_grads(
    grad: Tensor, self: Tensor, dim: int, index: Tensor, src: Tensor, include_self: bool, result: Tensor,
    *, read: Callable[..., Any], add: Callable[..., Any], reduce: Callable[..., Any],
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """A factor's gradient is the product of the others: the quotient, or that product itself where the factor is zero.

    `read`, `add` and `reduce` are the operators that read, add and multiply at positions of this kind of index.
    """
    safe_self = self.masked_fill(self == 0, 1)
    without_self = reduce(safe_self, dim, index, src, "prod", include_self=include_self)
    mine = grad * without_self / safe_self
    is_zero = src == 0
    zero_count = read(add(aten.zeros_like(self), dim, index, is_zero.to(self.dtype)), dim, index)
    only_zero = is_zero.bitwise_and(zero_count == 1)
    others = reduce(self, dim, index, src.masked_fill(only_zero, 1), "prod", include_self=include_self)
    theirs = aten.where(only_zero, read(grad * others, dim, index), read(grad * result, dim, index) / src.masked_fill(is_zero, 1))
    return mine, theirs


scatter_reduce = both(
    "scatter_reduce.two(Tensor self, int dim, Tensor index, Tensor src, str reduce, *, bool include_self=True) -> Tensor",
    kernels.scatter_reduce,
    grad={("self", "src"): _scatter_reduce_grads},
)

# --- rows along a dimension -----------------------------------------------------------------------------------------

index_select = op(
    "index_select(Tensor self, int dim, Tensor index) -> Tensor",
    cpu=kernels.index_select,
    grad={"self": lambda grad, self_shape, dim, index: index_select_backward(grad, self_shape, dim, index)},
)
index_select_backward = op(
    "index_select_backward(Tensor grad, SymInt[] self_sizes, int dim, Tensor index) -> Tensor",
    composite=lambda grad, self_sizes, dim, index: grad.new_zeros(self_sizes).index_add_(dim, index, grad),
    variants="",
)


def _source_grad(grad: Tensor, dim: int, index: Tensor, source_shape: Sequence[int]) -> Tensor:
    if not source_shape:
        return index_select(grad, dim, index.squeeze(0))
    return expand(index_select(grad, dim, index), source_shape)


def _index_add_source(grad: Tensor, dim: int, index: Tensor, source_shape: Sequence[int], alpha: Number) -> Tensor:
    found = _source_grad(grad, dim, index, source_shape)
    return found if alpha == 1 else found * alpha


index_add = both(
    "index_add(Tensor self, int dim, Tensor index, Tensor source, *, Scalar alpha=1) -> Tensor",
    kernels.index_add,
    grad={"self": lambda grad: grad, "source": _index_add_source},
)
index_copy = both(
    "index_copy(Tensor self, int dim, Tensor index, Tensor source) -> Tensor",
    kernels.index_copy,
    grad={"self": lambda grad, dim, index: index_fill(grad, dim, index, 0), "source": _source_grad},
)


# --- index_fill -----------------------------------------------------------------------------------------------------

_FILL_GRAD = {"self": lambda grad, dim, index: index_fill(grad, dim, index, 0)}
_FILL_TENSOR_GRAD = {
    **_FILL_GRAD,
    "value": lambda grad, dim, index: index_select(grad, dim, aten._unique(index, False)[0]).sum(),
}


def _fill_tensor(self: Tensor, dim: int, index: Tensor, value: Tensor) -> Tensor:
    if value.dim():
        raise RuntimeError(
            f"index_fill_ only supports a 0-dimensional value tensor, but got tensor with {value.dim()} dimension(s)."
        )
    return index_fill_(self, dim, index, 0 if value._keys & META else value.item())


_index_fill_tensor_ = op(
    "index_fill_.int_Tensor(Tensor(a!) self, int dim, Tensor index, Tensor value) -> Tensor(a!)",
    composite=_fill_tensor,
    grad=_FILL_TENSOR_GRAD,
    node="IndexFillBackward1",
    variants="method",
)
op(
    "index_fill.int_Tensor(Tensor self, int dim, Tensor index, Tensor value) -> Tensor",
    composite=lambda self, dim, index, value: _index_fill_tensor_(self.clone(), dim, index, value),
    grad=_FILL_TENSOR_GRAD,
    node="IndexFillBackward1",
)
# after the overloads with tensors: a number is also what a tensor of one element converts to
index_fill_ = op(
    "index_fill_.int_Scalar(Tensor(a!) self, int dim, Tensor index, Scalar value) -> Tensor(a!)",
    cpu=kernels.index_fill,
    grad=_FILL_GRAD,
    variants="method",
)
index_fill = op(
    "index_fill.int_Scalar(Tensor self, int dim, Tensor index, Scalar value) -> Tensor",
    composite=lambda self, dim, index, value: index_fill_(self.clone(), dim, index, value),
    grad=_FILL_GRAD,
)

# --- index_reduce ---------------------------------------------------------------------------------------------------


def _index_reduce_grads(
    grad: Tensor, self: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, include_self: bool, result: Tensor
) -> tuple[Tensor, Tensor]:
    if reduce == "prod":
        mine, theirs = _product_grads(
            grad, self, dim, index, source, include_self, result, read=index_select, add=index_add, reduce=index_reduce
        )
    elif reduce == "mean":
        count = aten.ones_like(grad) if include_self else aten.zeros_like(grad)
        count = index_add(count, dim, index, aten.ones_like(source))
        count = count.masked_fill_(count == 0, 1)
        mine, theirs = grad / count, index_select(grad, dim, index) / index_select(count, dim, index)
    else:
        is_mine = (self == result).to(grad.dtype)
        is_theirs = (source == index_select(result, dim, index)).to(grad.dtype)
        share = grad / index_add(is_mine, dim, index, is_theirs)
        mine, theirs = is_mine * share, is_theirs * index_select(share, dim, index)
    if not include_self:
        mine = index_fill(mine, dim, index, 0)
    return mine, theirs


index_reduce = both(
    "index_reduce(Tensor self, int dim, Tensor index, Tensor source, str reduce, *, bool include_self=True) -> Tensor",
    kernels.index_reduce,
    grad={("self", "source"): _index_reduce_grads},
)

# --- flat positions and masks ---------------------------------------------------------------------------------------

take = op(
    "take(Tensor self, Tensor index) -> Tensor",
    cpu=kernels.take,
    shape=lambda index: index._array.shape,
    grad={"self": lambda grad, self, index: aten.zeros_like(self).put_(index, grad, True)},
    tags=("disjoint_out", "exact_out"),
)
_PUT_GRADS: Grads = {
    "self": lambda grad, index, source_shape, accumulate: (
        grad if accumulate else put(grad, index, zeros(source_shape, grad), False)
    ),
    "source": lambda grad, index, source: take(grad, index).reshape_as(source),
}


def _put(self: Array, index: Array, source: Array, accumulate: bool) -> None:
    if not accumulate:
        alert_not_deterministic("put_")
    kernels.put(self, index, source, accumulate)


put_ = op(
    "put_(Tensor(a!) self, Tensor index, Tensor source, bool accumulate=False) -> Tensor(a!)",
    cpu=lambda self, index, source, accumulate: _put(self, index, source, accumulate),
    grad=_PUT_GRADS,
    variants="method",
)
put = op(
    "put(Tensor self, Tensor index, Tensor source, bool accumulate=False) -> Tensor",
    composite=lambda self, index, source, accumulate: put_(self.clone(), index, source, accumulate),
    grad=_PUT_GRADS,
)
masked_select = op(
    "masked_select(Tensor self, Tensor mask) -> Tensor",
    cpu=kernels.masked_select,
    grad={"self": lambda grad, self, mask: masked_select_backward(grad, self, mask)},
    tags=("data_dependent", "disjoint_out"),
)


def _masked_select_backward(grad: Tensor, input: Tensor, mask: Tensor) -> Tensor:
    shape = broadcast_shapes(input._array.shape, mask._array.shape)
    whole = aten.zeros_like(expand(input, shape), memory_format=contiguous_format)
    return whole.masked_scatter_(mask, grad)


masked_select_backward = op(
    "masked_select_backward(Tensor grad, Tensor input, Tensor mask) -> Tensor", composite=_masked_select_backward, variants=""
)


def _masked_scatter_backward(grad_output: Tensor, mask: Tensor, sizes: Sequence[int]) -> Tensor:
    count = 1
    for n in sizes:
        count *= n
    chosen = masked_select(grad_output, mask)
    if chosen.numel() < count:
        chosen = cat([chosen, zeros((count - chosen.numel(),), grad_output)], 0)
    return view(chosen, tuple(sizes))


def _masked_scatter_double_backward(grad: Tensor, mask: Tensor, shape: Sequence[int]) -> Tensor:
    return masked_scatter_(aten.zeros(list(shape), dtype=grad.dtype, device=grad.device), mask, grad)


masked_scatter_backward = op(
    "masked_scatter_backward(Tensor grad_output, Tensor mask, SymInt[] sizes) -> Tensor",
    composite=_masked_scatter_backward,
    variants="",
    grad={
        "grad_output": lambda grad, mask, grad_output_shape: _masked_scatter_double_backward(grad, mask, grad_output_shape),
    },
)
_MASKED_SCATTER_GRADS: Grads = {
    "self": lambda grad, mask: grad.masked_fill(mask, 0),
    "source": lambda grad, mask, source_shape: masked_scatter_backward(grad, mask, source_shape),
}
masked_scatter_ = op(
    "masked_scatter_(Tensor(a!) self, Tensor mask, Tensor source) -> Tensor(a!)",
    cpu=kernels.masked_scatter,
    grad=_MASKED_SCATTER_GRADS,
    variants="method",
)


def _masked_scatter(self: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    shape = broadcast_shapes(self._array.shape, mask._array.shape)
    if shape != self._array.shape:
        self = expand(self, shape)
    return masked_scatter_(self.clone(memory_format=contiguous_format), mask, source)


masked_scatter = op(
    "masked_scatter(Tensor self, Tensor mask, Tensor source) -> Tensor", composite=_masked_scatter, grad=_MASKED_SCATTER_GRADS
)
