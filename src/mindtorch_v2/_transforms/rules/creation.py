"""Tensors made after others: one for each sample, so that it can be written with what differs between them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from ..._dispatch.op import Op
from ..._ops.machinery.calling import call_op
from ..batch_key import always
from ..batched import Level, UnreadableError, unwrapped
from .values import rule, use, wrapped

if TYPE_CHECKING:
    from ..._tensor import Tensor
    from ..._types import Number

__all__: list[str] = []


def _like(op: Op, level: Level, args: tuple[Any, ...]) -> Tensor:
    value, bdim = unwrapped(args[0], level)
    return wrapped(call_op(op, (value, *args[1:])), level, bdim)


use(["empty_like", "zeros_like", "ones_like", "full_like"], _like)


def _new(op: Op, level: Level, args: tuple[Any, ...]) -> Tensor:
    value, bdim = unwrapped(args[0], level)
    if bdim is None:
        return wrapped(call_op(op, (value, *args[1:])), level, None)
    return wrapped(call_op(op, (value, [level.batch_size, *args[1]], *args[2:])), level)


use(["new_empty", "new_zeros", "new_ones", "new_full"], _new)


always.add("aten::new_empty_strided")


@rule("new_empty_strided")
def _new_strided(op: Op, level: Level, args: tuple[Any, ...]) -> Tensor:
    """Samples one after the other, each with these strides."""
    value, size, stride, *options = args
    extent = 1 + sum((n - 1) * s for n, s in zip(size, stride, strict=True)) if all(size) else 0
    made = call_op(op, (unwrapped(value, level)[0], [level.batch_size, *size], [extent, *stride], *options))
    return wrapped(made, level)


@rule("_local_scalar_dense", "item")
def _item(op: Op, level: Level, args: tuple[Any, ...]) -> Number:
    value, bdim = unwrapped(args[0], level)
    if bdim is None:
        return value.item()
    raise UnreadableError(
        "vmap: It looks like you're calling .item() on a Tensor. We don't support vmap over calling .item() on a Tensor, please try to "
        "rewrite what you're doing with other operations. If error is occurring somewhere inside PyTorch internals, please file a bug "
        "report."
    )


@rule("is_nonzero")
def _is_nonzero(op: Op, level: Level, args: tuple[Any, ...]) -> bool:
    value, bdim = unwrapped(args[0], level)
    if bdim is None:
        return bool(value)
    raise UnreadableError(
        "vmap: It looks like you're attempting to use a Tensor in some data-dependent control flow. We don't support that yet, please "
        "shout over at https://github.com/pytorch/functorch/issues/257 ."
    )


@rule("_is_any_true", "_is_all_true")
def _of_all_samples(op: Op, level: Level, args: tuple[Any, ...]) -> Tensor:
    """torch: one answer about all samples together."""
    return call_op(op, (unwrapped(args[0], level)[0],))


@rule("equal", "allclose")
def _equal(op: Op, level: Level, args: tuple[Any, ...]) -> NoReturn:
    raise UnreadableError(
        f"vmap over {op.qualified_name} is not supported: it gives one answer for all samples; use torch.eq or isclose"
    )


@rule("detach")
def _detach(op: Op, level: Level, args: tuple[Any, ...]) -> Tensor:
    value, bdim = unwrapped(args[0], level)
    return wrapped(value.detach(), level, bdim)
