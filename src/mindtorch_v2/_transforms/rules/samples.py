"""Single samples of a batch, and batches made of them again, as differentiable operators.

A composite that reads values in Python cannot be mapped: it runs for one sample at a time, and autograd and forward mode follow it
from the batch to each sample and back.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from ..._dispatch import keys
from ..._dispatch.entry import make_entry
from ..._dispatch.op import Op
from ..._ops.machinery.calling import call_op, device_key, retry_call
from ..._ops.machinery.out import call_with_out
from ..._tensor import Tensor
from ..batch_key import Rule, _top, always, fallbacks, rules
from ..batched import Level, level_of, lifted, unwrapped
from ..forward_rules import LINEAR
from .loop import check_loop
from .values import call, wrapped

__all__ = ["composite_one_by_one"]

TRACKED = keys.AUTOGRAD | keys.DUAL


def _declare(schema: str, grad: dict[str, Any], rule: Rule) -> Callable[..., Any]:
    op = Op(schema, composite=_misplaced, grad=grad, tags=("function",))
    op.entry = make_entry(op, retry=retry_call, with_out=call_with_out, device_key=device_key)
    rules[op.qualified_name] = rule
    always.add(op.qualified_name)
    return op.entry


def _misplaced(*args: Any) -> NoReturn:
    raise AssertionError("samples are taken of batched tensors only")


def _sample_rule(op: Op, level: Level, args: tuple[Any, ...]) -> Tensor:
    value, bdim = unwrapped(args[0], level)
    return wrapped(value if bdim is None else call("select.int", value, bdim, args[1]), level, None)


def _place_rule(op: Op, level: Level, args: tuple[Any, ...]) -> Tensor:
    value, bdim = unwrapped(args[0], level)
    if bdim is not None:
        value = call("select.int", value, bdim, args[1])
    return wrapped(call("select_backward", value, [level.batch_size, *value._array.shape], 0, args[1]), level)


def _join_rule(op: Op, level: Level, args: tuple[Any, ...]) -> Tensor:
    values = []
    for i, t in enumerate(args[0]):
        value, bdim = unwrapped(t, level)
        values.append(value if bdim is None else call("select.int", value, bdim, i))
    return wrapped(call("stack", values), level)


sample = _declare("vmap::sample(Tensor self, int index) -> Tensor", {"self": lambda grad, index: place(grad, index)}, _sample_rule)
place = _declare("vmap::place(Tensor self, int index) -> Tensor", {"self": lambda grad, index: sample(grad, index)}, _place_rule)
join = _declare(
    "vmap::join(Tensor[] tensors) -> Tensor",
    {"tensors": lambda grad, tensors: [sample(grad, i) for i in range(len(tensors))]},
    _join_rule,
)
LINEAR.update({"sample": ("self",), "place": ("self",), "join": ("tensors",)})


def composite_one_by_one(op: Op, arguments: tuple[Any, ...]) -> Any:
    """Call a composite for each sample, and join the results."""
    check_loop(op)
    level = _top(arguments)
    found = [call_op(op, tuple(_of_sample(a, level, i) for a in arguments)) for i in range(level.batch_size)]
    if isinstance(found[0], Tensor):
        return _joined(found, level)
    columns = [_joined(list(column), level) for column in zip(*found, strict=True)]
    return columns if isinstance(found[0], list) else tuple(columns)


def _of_sample(a: Any, level: Level, i: int) -> Any:
    if isinstance(a, list | tuple):
        return [_of_sample(x, level, i) for x in a]
    if not isinstance(a, Tensor) or level_of(a) != level.number:
        return a
    if a._keys & TRACKED:
        return sample(a, i)
    value, bdim = unwrapped(a, level)
    return value if bdim is None else call("select.int", value, bdim, i)


def _joined(results: list[Any], level: Level) -> Any:
    if not isinstance(results[0], Tensor):
        return results[0]
    if any(level_of(t) == level.number for t in results):
        return join([lifted(t, level) for t in results])
    return wrapped(call("stack", results), level)


fallbacks.composite = composite_one_by_one
