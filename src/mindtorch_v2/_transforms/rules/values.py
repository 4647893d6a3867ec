"""What batching rules share: values with their batch in front, calls of operators on them, and results made batched again."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from ..._dispatch import keys, registry
from ..._dispatch.entry import NUMBERS
from ..._dispatch.op import Op
from ..._dispatch.tls import state
from ..._ops.machinery.calling import call_op
from ..._tensor import Tensor, set_array
from ..batch_key import Rule, rules
from ..batched import Level, SharedWriteError, batched, unwrapped

if TYPE_CHECKING:
    pass

__all__ = [
    "bind",
    "call",
    "check_inplace",
    "expanded",
    "front",
    "is_batched",
    "rank",
    "rule",
    "try_sample",
    "use",
    "with_front",
    "wrapped",
    "written",
    "zero_sample",
]


def rule(*names: str) -> Callable[[Rule], Rule]:
    """Register a function as the rule of these operators."""

    def register(function: Rule) -> Rule:
        use(names, function)
        return function

    return register


def use(names: Iterable[str], function: Rule) -> None:
    """Register one rule for several operators, which must be declared."""
    for name in names:
        base, _, overload = name.partition(".")
        known = registry.overloads("aten::" + base)
        if not known or (overload and overload not in known):
            raise LookupError(f"a batching rule names {name}, which is not declared")
        rules[name] = function


def call(name: str, *args: Any) -> Any:
    """Call an overload, `name.overload`, with the arguments of its schema in order; those left out have their defaults."""
    base, _, overload = name.partition(".")
    op = registry.aten(base, overload or "default")
    missing = op.schema.arguments[len(args) :]
    return call_op(op, (*args, *[a.default for a in missing]))


def bind(op: Op, args: tuple[Any, ...]) -> dict[str, Any]:
    return dict(zip(op.schema.argument_names, args, strict=True))


def is_batched(t: object, level: Level) -> bool:
    """Whether a tensor differs between the samples of a level."""
    return isinstance(t, Tensor) and unwrapped(t, level)[1] is not None


def rank(t: Tensor) -> int:
    """The number of dimensions that a sample has."""
    return t._array.ndim


def front(t: Tensor, level: Level) -> Tensor:
    """The value behind a tensor, with the batch first if there is one."""
    value, bdim = unwrapped(t, level)
    if not bdim:
        return value
    order = [bdim, *[d for d in range(value._array.ndim) if d != bdim]]
    return call("permute", value, order)


def with_front(t: Any, level: Level) -> Any:
    """The value with the batch first, expanded if it is the same for all samples; None for None, numbers as they are."""
    if t is None or t.__class__ in NUMBERS:
        return t
    value, bdim = unwrapped(t, level)
    if bdim is not None:
        return front(t, level)
    return expanded(value, level)


def expanded(value: Tensor, level: Level) -> Tensor:
    """One value for all samples, with a batch in front that takes no memory."""
    found: Tensor = call("expand", value, [level.batch_size, *value._array.shape])
    return found


def wrapped(result: Any, level: Level, bdim: int | None = 0) -> Any:
    """The results of a rule as batched tensors."""
    if isinstance(result, Tensor):
        return batched(result, bdim, level)
    if isinstance(result, list | tuple):
        return (
            [wrapped(r, level, bdim) for r in result]
            if isinstance(result, list)
            else tuple(wrapped(r, level, bdim) for r in result)
        )
    return result


def zero_sample(a: Any, level: Level) -> Any:
    """An argument as one sample has it, with zeros for what differs between samples."""
    if isinstance(a, list | tuple):
        return [zero_sample(x, level) for x in a]
    if not isinstance(a, Tensor):
        return a
    value, bdim = unwrapped(a, level)
    return value if bdim is None else call("new_zeros", value, list(a._array.shape))


def try_sample(op: Op, level: Level, args: tuple[Any, ...]) -> None:
    """Call the operator for one sample of zeros: it refuses a shape that it would take with the batch as one more dimension."""
    call_op(op, tuple(zero_sample(a, level) for a in args))


def check_inplace(op: Op, args: tuple[Any, ...], level: Level) -> None:
    """Refuse to write what differs between samples into a tensor that is the same for all."""
    target = args[0]
    targets = target if isinstance(target, list | tuple) else [target]
    others = [t for a in args[1:] for t in (a if isinstance(a, list | tuple) else (a,))]
    if any(is_batched(t, level) for t in others) and not all(is_batched(t, level) for t in targets):
        # what a formula has just made; a view of it would be written apart from the rest
        if state.backward_depth and all(t._base is None for t in targets):
            for t in targets:
                _spread(t, level)
            return
        raise SharedWriteError(
            f"vmap: {op.name}(self, *extra_args) is not possible because there exists a Tensor `other` in extra_args that has "
            "more elements than `self`. This happened due to `other` being vmapped over but `self` not being vmapped over in a vmap. "
            "Please try to use out-of-place operators instead of "
            f"{op.name}. If said operator is being called inside the PyTorch framework, please file a bug report instead."
        )


def _spread(t: Tensor, level: Level) -> None:
    """Make a tensor that a backward formula has just made, the same for all samples, into one for each."""
    if is_batched(t, level):
        return
    made = batched(expanded(unwrapped(t, level)[0].detach(), level).clone(), 0, level)
    t._storage, t._keys = made._storage, made._keys | (t._keys & keys.AUTOGRAD)
    set_array(t, made._array)


def written(op: Op, args: tuple[Any, ...], level: Level, values: tuple[Any, ...], bdim: int | None = 0) -> Any:
    """Call an operator on values: what was written in place is the tensor itself, any other result a new batched one."""
    result = call_op(op, values)
    if op.schema.is_inplace:
        return args[0]
    return wrapped(result, level, bdim)
