"""Views: the same view of the value, whose first dimension is the batch. Results share the value's memory."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ..._checks import wrap_dim
from ..._dispatch import registry
from ..._dispatch.op import Op
from ..._ops.machinery.calling import call_op
from ..._tensor import Tensor, set_array
from ..batch_key import Rule, find_rule
from ..batched import Level, unwrapped
from .values import bind, call, front, is_batched, rank, rule, use, with_front, wrapped

if TYPE_CHECKING:
    from ..._types import TensorOrTensors

__all__: list[str] = []


def _plain(op: Op, level: Level, args: tuple[Any, ...]) -> Any:
    """What is the same for all samples stays so."""
    value, _ = unwrapped(args[0], level)
    return wrapped(call_op(op, (value, *args[1:])), level, None)


def _view(shape_rule: Callable[..., TensorOrTensors]) -> Rule:
    """A rule that gives the arguments after `self` from the value, the sample and those of the call."""

    def view_rule(op: Op, level: Level, args: tuple[Any, ...]) -> TensorOrTensors:
        if not is_batched(args[0], level):
            return _plain(op, level, args)
        value = front(args[0], level)
        return wrapped(shape_rule(op, value, args[0], *args[1:]), level)

    return view_rule


def _sized(op: Op, value: Tensor, sample: Tensor, size: Sequence[int], *rest: Any) -> Tensor:
    size = [int(n) for n in size]
    if -1 in size and not sample._array.size:
        sample.new_empty(sample.shape)  # an ambiguous size is the operator's to refuse
    if -1 in size:
        known = math.prod(n for n in size if n != -1)
        if known and size.count(-1) == 1 and sample._array.size % known == 0:
            size[size.index(-1)] = sample._array.size // known
    name = "view" if op.name == "_reshape_alias" else op.name
    return call(name, value, [value._array.shape[0], *size])


use(["view.default", "_reshape_alias", "_unsafe_view", "view_copy.default"], _view(_sized))


def _expand(op: Op, value: Tensor, sample: Tensor, size: Sequence[int], implicit: bool = False) -> Tensor:
    for _ in range(len(size) - rank(sample)):
        value = call("unsqueeze", value, 1)
    return call(op.name, value, [value._array.shape[0], *size])


use(["expand", "expand_copy"], _view(_expand))


def _dims(*names: str, extra: int = 0) -> Rule:
    """A rule for views along dimensions. `extra`: the result has so many more of them, which dimensions may name."""

    def shape_rule(op: Op, value: Tensor, sample: Tensor, *rest: Any) -> TensorOrTensors:
        ndim = rank(sample)
        given = []
        for a, v in zip(op.schema.arguments[1:], rest, strict=True):
            if a.name in names:
                many = isinstance(v, list | tuple)
                dims = [wrap_dim(d, max(ndim + extra, 1)) + 1 for d in (v if many else [v])]
                v = dims if many else dims[0]
            given.append(v)
        if not ndim and not extra:
            return _of_scalar(op, value, given)
        return call_op(op, (value, *given))

    return _view(shape_rule)


def _of_scalar(op: Op, value: Tensor, given: list[Any]) -> TensorOrTensors:
    """A sample without dimensions is taken for one with one, where the operator does so."""
    if op.name.removesuffix("_copy") in ("squeeze", "transpose"):
        return call("alias", value)
    if op.name.removesuffix("_copy") == "unfold":  # torch: a window of one element, whatever its size
        return call("unsqueeze", value, 1) if given[1] else call("unsqueeze", value, 1)[:, :0]
    return call_op(op, (call("unsqueeze", value, 1), *given))


use(["transpose.int", "transpose_copy.int"], _dims("dim0", "dim1"))
use(["select.int", "select_copy.int", "slice.Tensor", "slice_copy.Tensor", "unbind.int", "unbind_copy.int"], _dims("dim"))
use(["split.Tensor", "split_copy.Tensor", "split_with_sizes", "split_with_sizes_copy"], _dims("dim"))
use(
    ["unsafe_split.Tensor", "unsafe_split_with_sizes", "squeeze.dim", "squeeze.dims", "squeeze_copy.dim", "squeeze_copy.dims"],
    _dims("dim"),
)
use(["unsqueeze", "unsqueeze_copy"], _dims("dim", extra=1))
use(["diagonal", "diagonal_copy"], _dims("dim1", "dim2"))
use(["unfold", "unfold_copy"], _dims("dimension"))
use(["narrow_copy"], _dims("dim"))


@rule("permute", "permute_copy")
def _permute(op: Op, level: Level, args: tuple[Any, ...]) -> Tensor:
    if not is_batched(args[0], level):
        return _plain(op, level, args)
    ndim = rank(args[0])
    dims = [wrap_dim(d, max(ndim, 1)) + 1 for d in args[1]]
    if len(dims) != ndim:
        raise RuntimeError(
            "permute(sparse_coo): number of dimensions in the tensor input does not match the length of the desired ordering of "
            f"dimensions i.e. input.dim() = {ndim} is not equal to len(dims) = {len(dims)}"
        )
    return wrapped(call(op.name, front(args[0], level), [0, *dims]), level)


@rule("squeeze.default", "squeeze_copy.default")
def _squeeze(op: Op, level: Level, args: tuple[Any, ...]) -> Tensor:
    if not is_batched(args[0], level):
        return _plain(op, level, args)
    ones = [d + 1 for d, n in enumerate(args[0]._array.shape) if n == 1]
    return wrapped(call(f"{op.name}.dims", front(args[0], level), ones), level)


@rule("t", "t_copy")
def _t(op: Op, level: Level, args: tuple[Any, ...]) -> Tensor:
    if not is_batched(args[0], level):
        return _plain(op, level, args)
    if rank(args[0]) > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {rank(args[0])}D")
    value = front(args[0], level)
    return wrapped(call("transpose.int", value, 1, 2) if rank(args[0]) == 2 else call("alias", value), level)


@rule("view_as_complex")
def _as_complex(op: Op, level: Level, args: tuple[Any, ...]) -> Tensor:
    return wrapped(call(op.name, with_front(args[0], level)), level)


@rule("view.dtype", "view_copy.dtype")
def _as_dtype(op: Op, level: Level, args: tuple[Any, ...]) -> Tensor:
    return wrapped(call_op(op, (with_front(args[0], level), args[1])), level)


def _rows(value: Tensor) -> int:
    return value.stride(0) if value._array.shape[0] > 1 else 0


@rule("as_strided", "as_strided_copy")
def _as_strided(op: Op, level: Level, args: tuple[Any, ...]) -> Tensor:
    sample, size, stride, offset = args
    if not is_batched(sample, level):
        return _plain(op, level, args)
    value = front(sample, level)
    step = value.stride(0)
    return wrapped(call(op.name, value, [level.batch_size, *size], [step, *stride], offset), level)


# --- of the sample's shape in place -----------------------------------------------------------------------------------


def _reshape_in_place(op: Op, level: Level, args: tuple[Any, ...]) -> Tensor:
    """Give the tensor the view of its value that the operator without `_` makes."""
    target: Tensor = args[0]
    overload = {"squeeze_": op.overload_name, "transpose_": "int"}.get(op.name, "default")
    functional = registry.aten(op.name.rstrip("_"), overload)
    found = find_rule(functional)
    assert found is not None
    made = found(functional, level, args)
    target._storage = made._storage
    set_array(target, made._array)
    return target


use(["squeeze_", "unsqueeze_", "t_", "transpose_", "as_strided_"], _reshape_in_place)


# --- backward of views ------------------------------------------------------------------------------------------------


def _backward_of_view(dims: tuple[str, ...], *, sizes: str) -> Rule:
    def rule_of_backward(op: Op, level: Level, args: tuple[Any, ...]) -> Tensor:
        given = bind(op, args)
        ndim = len(given[sizes])
        if not ndim and op.name == "unfold_backward":  # of a window of one element
            return wrapped(call("reshape", with_front(args[0], level), [level.batch_size]), level)
        values = []
        for a in op.schema.arguments:
            v = given[a.name]
            if a.is_tensor:
                v = with_front(v, level)
            elif a.name == sizes:
                v = [level.batch_size, *v]
            elif a.name in dims:
                v = wrap_dim(v, max(ndim, 1)) + 1
            values.append(v)
        return wrapped(call_op(op, tuple(values)), level)

    return rule_of_backward


use(["select_backward", "slice_backward", "unfold_backward"], _backward_of_view(("dim",), sizes="input_sizes"))
use(["diagonal_backward"], _backward_of_view(("dim1", "dim2"), sizes="input_sizes"))
use(
    ["tril", "triu", "pixel_shuffle", "pixel_unshuffle"],
    lambda op, level, args: wrapped(call_op(op, (with_front(args[0], level), *args[1:])), level),
)


@rule("tril_", "triu_")
def _triangle_(op: Op, level: Level, args: tuple[Any, ...]) -> Tensor:
    call_op(op, (front(args[0], level), *args[1:]))
    return args[0]


@rule("repeat")
def _repeat(op: Op, level: Level, args: tuple[Any, ...]) -> Tensor:
    sample, repeats = args
    value = with_front(sample, level)
    for _ in range(len(repeats) - rank(sample)):
        value = call("unsqueeze", value, 1)
    return wrapped(call("repeat", value, [1, *repeats]), level)


@rule("constant_pad_nd")
def _pad(op: Op, level: Level, args: tuple[Any, ...]) -> Tensor:
    return wrapped(call_op(op, (with_front(args[0], level), *args[1:])), level)


@rule("diag_embed")
def _diag_embed(op: Op, level: Level, args: tuple[Any, ...]) -> Tensor:
    x, offset, dim1, dim2 = args
    n = rank(x) + 1
    return wrapped(call("diag_embed", with_front(x, level), offset, wrap_dim(dim1, n) + 1, wrap_dim(dim2, n) + 1), level)


def _joined(op: Op, level: Level, args: tuple[Any, ...]) -> Tensor:
    """Concatenate or stack values along the next dimension."""
    tensors, dim = args
    if op.name == "cat" and any(rank(t) for t in tensors):
        tensors = [t for t in tensors if not (rank(t) == 1 and not t._array.size and any(rank(u) > 1 for u in tensors))] or tensors
    ndim = rank(tensors[0]) + (op.name == "stack")
    return wrapped(call(op.name, [with_front(t, level) for t in tensors], wrap_dim(dim, max(ndim, 1)) + 1), level)


use(["cat", "stack"], _joined)


def _scattered(op: Op, level: Level, args: tuple[Any, ...]) -> Tensor:
    """`select_scatter` and its siblings: both tensors with their batch in front."""
    given = bind(op, args)
    ndim = rank(args[0])
    values = [
        with_front(given[a.name], level)
        if a.is_tensor
        else wrap_dim(given[a.name], max(ndim, 1)) + 1
        if a.name in ("dim", "dim1", "dim2")
        else given[a.name]
        for a in op.schema.arguments
    ]
    return wrapped(call_op(op, tuple(values)), level)


use(["select_scatter", "slice_scatter", "diagonal_scatter"], _scattered)
