"""Indexing: positions in samples become positions in the value, with the number of the sample before them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..._checks import broadcast_shapes, wrap_dim
from ..._dispatch.op import Op
from ..._dtype import bool_, int64, uint8
from ..._ops.machinery.calling import call_op
from ..._tensor import Tensor
from ..batched import Level, UnreadableError, unwrapped
from .loop import quietly_one_by_one
from .values import bind, call, check_inplace, front, is_batched, rank, rule, use, with_front, wrapped

__all__: list[str] = []


def _numbers(level: Level, ndim: int) -> Tensor:
    """The number of each sample, broadcasting against positions with so many dimensions."""
    found: Tensor = call("arange", level.batch_size, int64)
    return call("view", found, [level.batch_size, *[1] * ndim])


class _Key:
    """A key of `x[...]` whose tensors may differ between samples, as one for the value of x."""

    def __init__(self, indices: Sequence[Tensor | None], level: Level, *, join: bool) -> None:
        kept = [t for t in indices if t is not None]
        if any(t.dtype in (bool_, uint8) and is_batched(t, level) for t in kept):
            raise UnreadableError(
                "vmap: It looks like you're attempting to index with a mask that differs between samples: the result has a dynamic shape. "
                "Use torch.where or masked_fill instead."
            )
        plain = _positions(indices, level)
        given = [t for t in plain if t is not None]
        self.shape = broadcast_shapes(*[t._array.shape for t in given])
        at = [i for i, t in enumerate(plain) if t is not None]
        self.start = at[0] if at else 0
        self.adjacent = at == list(range(self.start, self.start + len(at)))
        self.varies = any(is_batched(t, level) for t in given) or join
        if self.varies:
            n = len(self.shape)
            moved = [None if t is None else _aligned(t, level, n) for t in plain]
            self.values: list[Any] = [_numbers(level, n), *moved]
        else:
            self.values = [None, *[None if t is None else unwrapped(t, level)[0] for t in plain]]

    def moves(self) -> bool:
        """Whether the positions' dimensions come first in the value's result, and not in a sample's."""
        return self.varies and self.adjacent and self.start > 0

    def to_sample(self, found: Tensor) -> tuple[Tensor, int]:
        """A result of indexing the value, and which of its dimensions is the batch."""
        n = len(self.shape)
        if not self.varies:
            return found, 0 if self.adjacent else n
        if not self.moves():
            return found, 0
        rest = range(1 + n + self.start, found._array.ndim)
        order = [0, *range(1 + n, 1 + n + self.start), *range(1, 1 + n), *rest]
        return call("permute", found, order), 0

    def from_sample(self, value: Tensor, shape: Sequence[int]) -> Tensor:
        """What is to be written to such a result, given with its batch in front and in a sample's shape."""
        n = len(self.shape)
        whole = call("expand", value, [value._array.shape[0], *shape])
        if not self.varies:
            if self.adjacent:
                return whole
            return call("permute", whole, [*range(1, 1 + n), 0, *range(1 + n, whole._array.ndim)])
        if not self.moves():
            return whole
        order = [
            0,
            *range(1 + self.start, 1 + self.start + n),
            *range(1, 1 + self.start),
            *range(1 + self.start + n, whole._array.ndim),
        ]
        return call("permute", whole, order)


def _positions(indices: Sequence[Tensor | None], level: Level) -> list[Tensor | None]:
    """The key with masks as positions."""
    found: list[Tensor | None] = []
    for t in indices:
        if t is not None and t.dtype in (bool_, uint8):
            mask = unwrapped(t, level)[0]
            found += (
                call("unbind.int", call("nonzero", mask), 1) if mask._array.ndim else [call("nonzero", mask.unsqueeze(0))[:, 0]]
            )
        else:
            found.append(t)
    return found


def _aligned(t: Tensor, level: Level, ndim: int) -> Tensor:
    value = front(t, level)
    if is_batched(t, level):
        for _ in range(ndim - rank(t)):
            value = call("unsqueeze", value, 1)
    return value


@rule("index.Tensor", "_unsafe_index.Tensor")
def _index(op: Op, level: Level, args: tuple[Any, ...]) -> Tensor:
    x, indices = args
    if not is_batched(x, level) and all(t is None or t.dtype not in (bool_, uint8) for t in indices):
        return _index_shared(op, level, x, indices)
    key = _Key(indices, level, join=False)
    found, bdim = key.to_sample(call("index.Tensor", with_front(x, level), key.values))
    return wrapped(found, level, bdim)


def _index_shared(op: Op, level: Level, x: Tensor, indices: Sequence[Tensor | None]) -> Tensor:
    """Elements of a tensor that is the same for all samples: positions with one more dimension name them."""
    value = unwrapped(x, level)[0]
    given = [t for t in indices if t is not None]
    ndim = max((rank(t) for t in given), default=0)
    at = [i for i, t in enumerate(indices) if t is not None]
    adjacent = at == list(range(at[0], at[0] + len(at)))
    found = call("index.Tensor", value, [None if t is None else _aligned(t, level, ndim) for t in indices])
    return wrapped(found, level, at[0] if adjacent else 0)


def _index_put(op: Op, level: Level, args: tuple[Any, ...]) -> Tensor:
    given = bind(op, args)
    x, indices, values = given["self"], given["indices"], given["values"]
    if op.schema.is_inplace:
        check_inplace(op, (x, list(indices), values), level)
    if len(indices) == 1 and indices[0] is not None and indices[0].dtype is bool_ and is_batched(indices[0], level):
        return _put_where(op, level, x, indices[0], values, given["accumulate"])
    key = _Key(indices, level, join=False)
    target = with_front(x, level)
    covered = len([t for t in key.values if t is not None]) - key.varies
    before = [d for i, d in enumerate(x._array.shape) if i < len(key.values) - 1 and key.values[i + 1] is None]
    after = list(x._array.shape[len(key.values) - 1 :])
    shape = _result_shape(key, before, after) if covered else list(x._array.shape)
    filled = key.from_sample(_padded(values, level, len(shape)), shape)
    rest = [given[a.name] for a in op.schema.arguments[3:]]
    found = call_op(op, (target, key.values, filled, *rest))
    return args[0] if op.schema.is_inplace else wrapped(found, level)


def _put_where(op: Op, level: Level, x: Tensor, mask: Tensor, values: Tensor, accumulate: bool) -> Tensor:
    """One value written by masks that differ between samples."""
    if rank(values) or accumulate:
        raise UnreadableError(
            "vmap: It looks like you're attempting to write several values by a mask that differs between samples. Use torch.where instead."
        )
    target, where, value = with_front(x, level), with_front(mask, level), with_front(values, level)
    where = where.reshape([*where.shape, *[1] * (target._array.ndim - where._array.ndim)])
    value = value.reshape([-1, *[1] * (target._array.ndim - 1)])
    found = call("where.self", where, value, target)
    if op.schema.is_inplace:
        target.copy_(found)
        return x
    return wrapped(found, level)


def _result_shape(key: _Key, before: list[int], after: list[int]) -> list[int]:
    if key.adjacent:
        return [*before[: key.start], *key.shape, *before[key.start :], *after]
    return [*key.shape, *before, *after]


def _padded(t: Tensor, level: Level, ndim: int) -> Tensor:
    value = with_front(t, level)
    for _ in range(ndim - rank(t)):
        value = call("unsqueeze", value, 1)
    return value


use(["index_put", "index_put_", "_index_put_impl_", "_unsafe_index_put"], _index_put)


# --- along one dimension ------------------------------------------------------------------------------------------------


@rule("index_select")
def _index_select(op: Op, level: Level, args: tuple[Any, ...]) -> Tensor:
    x, dim, index = args
    if not rank(x):
        return quietly_one_by_one(op, level, args)
    d = wrap_dim(dim, rank(x))
    if not is_batched(index, level):
        return wrapped(call("index_select", front(x, level), d + 1, unwrapped(index, level)[0]), level)
    if not rank(index):
        index = wrapped(call("unsqueeze", front(index, level), 1), level)
    return _index(op, level, (x, [*[None] * d, index]))


def _write_along(op: Op, level: Level, args: tuple[Any, ...]) -> Tensor:
    """`index_add` and its siblings, where positions are the same for all samples; else sample by sample."""
    given = bind(op, args)
    x, index = given["self"], given["index"]
    if is_batched(index, level) or not rank(x):
        return quietly_one_by_one(op, level, args)
    if op.schema.is_inplace:
        check_inplace(op, args, level)
    values = []
    for a in op.schema.arguments:
        v = given[a.name]
        if a.name == "index":
            v = unwrapped(v, level)[0]
        elif a.name == "dim":
            v = wrap_dim(v, rank(x)) + 1
        elif a.name == "value" and isinstance(v, Tensor):
            if is_batched(v, level):
                return quietly_one_by_one(op, level, args)
            v = unwrapped(v, level)[0]
        elif a.is_tensor:
            if not rank(v):
                return quietly_one_by_one(op, level, args)
            v = with_front(v, level)
        values.append(v)
    found = call_op(op, tuple(values))
    return args[0] if op.schema.is_inplace else wrapped(found, level)


use(
    "index_add index_add_ index_copy index_copy_ index_fill index_fill_ index_reduce index_reduce_".split(),
    _write_along,
)


@rule("take")
def _take(op: Op, level: Level, args: tuple[Any, ...]) -> Tensor:
    x, index = args
    flat = call("reshape", with_front(x, level), [level.batch_size, x._array.size])
    positions = call("reshape", with_front(index, level), [level.batch_size, index._array.size])
    return wrapped(call("view", call("gather", flat, 1, positions), [level.batch_size, *index._array.shape]), level)


@rule("embedding")
def _embedding(op: Op, level: Level, args: tuple[Any, ...]) -> Tensor:
    weight, indices, *rest = args
    if not is_batched(weight, level):
        return wrapped(call_op(op, (unwrapped(weight, level)[0], front(indices, level), *rest)), level)
    n, width = weight._array.shape
    rows = call("reshape", front(weight, level), [level.batch_size * n, width])
    shift = _numbers(level, rank(indices)) * n
    return wrapped(call("embedding", rows, with_front(indices, level) + shift), level)


@rule("embedding_dense_backward")
def _embedding_backward(op: Op, level: Level, args: tuple[Any, ...]) -> Tensor:
    grad, indices, count, padding, by_frequency = args
    if by_frequency:
        return quietly_one_by_one(op, level, args)
    positions = with_front(indices, level)
    shift = _numbers(level, rank(indices)) * count
    if padding >= 0:  # rows of their own, which are dropped, for what has no gradient
        positions = call("where.self", positions == padding, call("full_like", positions, count), positions)
        shift = _numbers(level, rank(indices)) * (count + 1)
    size = count + (padding >= 0)
    found = call("embedding_dense_backward", with_front(grad, level), positions + shift, level.batch_size * size, -1, False)
    found = call("view", found, [level.batch_size, size, grad._array.shape[-1]])
    return wrapped(found[:, :count] if padding >= 0 else found, level)


@rule("bucketize.Tensor")
def _bucketize(op: Op, level: Level, args: tuple[Any, ...]) -> Tensor:
    if is_batched(args[1], level):
        return quietly_one_by_one(op, level, args)
    return wrapped(call_op(op, (front(args[0], level), unwrapped(args[1], level)[0], *args[2:])), level)


@rule("searchsorted.Tensor")
def _searchsorted(op: Op, level: Level, args: tuple[Any, ...]) -> Tensor:
    bounds, x, *rest = args
    sorter = rest[-1]
    if rank(bounds) == 1 and rank(x) != 1:
        return quietly_one_by_one(op, level, args)
    values = call("unsqueeze", with_front(x, level), 1) if not rank(x) else with_front(x, level)
    found = call_op(op, (with_front(bounds, level), values, *rest[:-1], with_front(sorter, level)))
    return wrapped(call("squeeze.dim", found, 1) if not rank(x) else found, level)


@rule("isin.Tensor_Tensor")
def _isin(op: Op, level: Level, args: tuple[Any, ...]) -> Tensor:
    if is_batched(args[1], level):
        return quietly_one_by_one(op, level, args)
    return wrapped(call_op(op, (front(args[0], level), unwrapped(args[1], level)[0], *args[2:])), level)


use(["masked_scatter", "masked_scatter_", "put", "put_", "renorm", "renorm_"], quietly_one_by_one)
