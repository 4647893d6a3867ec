"""Reductions of whole samples: those of flat values along their second dimension."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..._dispatch.op import Op
from ..._tensor import Tensor
from ..batched import Level
from .dimensions import along
from .values import bind, call, rank, rule, use, with_front, wrapped

if TYPE_CHECKING:
    from ..batch_key import Rule

__all__ = ["flat"]


def flat(t: Tensor, level: Level) -> Tensor:
    """The value as a matrix with a row for each sample."""
    found: Tensor = call("reshape", with_front(t, level), [level.batch_size, t._array.size])
    return found


def _whole(reduce: Callable[..., Any]) -> Rule:
    """The rule of a reduction of everything, from that of rows; it gets the other arguments too."""

    def rule_of_whole(op: Op, level: Level, args: tuple[Any, ...]) -> Tensor:
        return wrapped(reduce(flat(args[0], level), *args[1:]), level)

    return rule_of_whole


WHOLE: dict[str, Callable[..., Any]] = {
    "sum.default": lambda x, dtype: call("sum.dim_IntList", x, [1], False, dtype),
    "mean.default": lambda x, dtype: call("mean.dim", x, [1], False, dtype),
    "prod.default": lambda x, dtype: call("prod.dim_int", x, 1, False, dtype),
    "any.default": lambda x: call("any.dim", x, 1, False),
    "all.default": lambda x: call("all.dim", x, 1, False),
    "max.default": lambda x: call("amax", x, [1], False),
    "min.default": lambda x: call("amin", x, [1], False),
    "median.default": lambda x: call("median.dim", x, 1, False)[0],
    "nanmedian.default": lambda x: call("nanmedian.dim", x, 1, False)[0],
    "norm.Scalar": lambda x, p: call("norm.ScalarOpt_dim", x, p, [1], False),
}
for name, reduce in WHOLE.items():
    use([name], _whole(reduce))


@rule("argmax", "argmin")
def _position(op: Op, level: Level, args: tuple[Any, ...]) -> Tensor:
    given = bind(op, args)
    if given["dim"] is not None:
        return along(op, level, args)
    found = call(op.name, flat(args[0], level), 1, False)
    if given["keepdim"]:
        found = call("view", found, [level.batch_size, *[1] * rank(args[0])])
    return wrapped(found, level)


@rule("aminmax")
def _aminmax(op: Op, level: Level, args: tuple[Any, ...]) -> tuple[Tensor, Tensor]:
    given = bind(op, args)
    if given["dim"] is not None:
        return along(op, level, args)
    shape = [level.batch_size, *[1] * (rank(args[0]) if given["keepdim"] else 0)]
    low, high = call("aminmax", flat(args[0], level), dim) if (dim := 1) else ()
    return wrapped((call("view", low, shape), call("view", high, shape)), level)


@rule("trace")
def _trace(op: Op, level: Level, args: tuple[Any, ...]) -> Tensor:
    return wrapped(call("sum.dim_IntList", call("diagonal", with_front(args[0], level), 0, 1, 2), [1]), level)


@rule("roll")
def _roll(op: Op, level: Level, args: tuple[Any, ...]) -> Tensor:
    x, shifts, dims = args
    if dims or not rank(x):
        return along(op, level, args, ("dims",))
    rolled = call("roll", flat(x, level), shifts, [1])
    return wrapped(call("view", rolled, [level.batch_size, *x._array.shape]), level)
