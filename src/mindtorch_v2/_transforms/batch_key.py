"""The Batched key: an operator called with batched tensors runs its batching rule over their values.

Levels nest: the rule of the innermost `vmap` calls operators on values, which may belong to an outer one. What autograd and forward
mode know of a batched tensor belongs to its own level; a tensor from further out joins a call as one that is the same for all samples.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._dispatch import dispatcher, keys
from .._dispatch.codegen import Body, indent
from .._dispatch.op import Op
from .._dispatch.tls import state
from .._ops.machinery.calling import call_op
from .._tensor import Tensor, set_array
from .batched import BatchedStorage, Level, SharedWriteError, UnreadableError, batched, join_level, level_of, unwrapped

__all__ = ["Rule", "always", "fallbacks", "find_rule", "rules", "run_below"]

# From an operator, the level and all arguments (batched ones as tensors of that level) to the result.
Rule = Callable[[Op, Level, tuple[Any, ...]], Any]
rules: dict[str, Rule] = {}  # by operator: "name.overload", or "name" for all overloads; filled by `rules/`


class _Fallbacks:
    """What is done without a rule; set by `rules/`, which imports this module."""

    operator: Rule
    composite: Callable[[Op, tuple[Any, ...]], Any]  # one that reads values itself


fallbacks = _Fallbacks()
always: set[str] = set()  # operators whose rule runs even if nothing differs between samples
TRACKED = keys.AUTOGRAD | keys.DUAL


def find_rule(op: Op) -> Rule | None:
    """The rule of an operator; that of the functional one serves its in-place variant where none is named."""
    if op.schema.namespace != "aten":
        return rules.get(op.qualified_name)
    return rules.get(f"{op.name}.{op.overload_name}") or rules.get(op.name)


def _top(arguments: tuple[Any, ...]) -> Level:
    """The innermost level that one of these tensors belongs to."""
    found: Level | None = None
    for a in arguments:
        for t in a if isinstance(a, list | tuple) else (a,):
            if isinstance(t, Tensor) and isinstance(t._storage, BatchedStorage):
                level = t._storage.level
                if found is None or level.number > found.number:
                    found = level
    assert found is not None
    if found.ended:
        raise RuntimeError(
            "your tensor may have escaped from inside a function being vmapped: it stands for the samples of a vmap that has ended. "
            "Return it from the function to have their values"
        )
    return found


def _lift_outer(arguments: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """The arguments with tracked tensors from outer levels as tensors of this level; None where there are none of these."""
    level = _top(arguments)
    changed = False

    def lift(t: object) -> object:
        nonlocal changed
        if isinstance(t, Tensor) and t._keys & TRACKED and level_of(t) < level.number:
            changed = True
            return batched(t, None, level)
        return t

    found = tuple(type(a)(map(lift, a)) if type(a) in (list, tuple) else lift(a) for a in arguments)
    return found if changed else None


def _join_target(arguments: tuple[Any, ...]) -> None:
    """What is written with a tensor that this level tracks is tracked here too."""
    level = _top(arguments)
    target = arguments[0]
    if level_of(target) < level.number:
        others = [t for a in arguments[1:] for t in (a if isinstance(a, list | tuple) else (a,)) if isinstance(t, Tensor)]
        if any(t._keys & TRACKED and level_of(t) == level.number for t in others):
            join_level(target, level)


def run_below(rule: Callable[..., Any], level: Level, *args: Any) -> Any:
    """Run a rule as a part of what is around a level: with the grad mode and the random state that hold there."""
    held = state.level, state.below, state.records_below, state.grad_enabled, state.carrying
    mode = state.grad_enabled if state.below is None else state.below
    state.level, state.below, state.carrying = level.outer, None, 0
    state.grad_enabled = mode and state.records_below
    state.records_below = level.records_below
    try:
        return rule(*args)
    finally:
        state.level, state.below, state.records_below, state.grad_enabled, state.carrying = held


def _call_rule(op: Op, rule: Rule, arguments: tuple[Any, ...]) -> Any:
    level = _top(arguments)
    values = None if op.qualified_name in always else _shared_values(arguments, level)
    if values is None:
        result = run_below(rule, level, op, level, arguments)
    else:
        result = run_below(_call_once, level, op, level, arguments, values)
    if op.schema.is_view:
        _note_base(result, arguments[0])
    return result


def _note_base(result: Any, viewed: Tensor) -> None:
    """Results of a view know what they are views of, which writes to them concern."""
    base = viewed if viewed._base is None else viewed._base
    for t in [result] if isinstance(result, Tensor) else result:
        t._base = base


def _shared_values(arguments: tuple[Any, ...], level: Level) -> tuple[Any, ...] | None:
    """The values of arguments that are all the same for all samples; None if one differs."""
    found: list[Any] = []
    for a in arguments:
        if isinstance(a, Tensor):
            value, bdim = unwrapped(a, level)
            if bdim is not None:
                return None
            found.append(value)
        elif isinstance(a, list | tuple) and any(isinstance(t, Tensor) for t in a):
            values = _shared_values(tuple(a), level)
            if values is None:
                return None
            found.append(type(a)(values) if type(a) in (list, tuple) else list(values))
        else:
            found.append(a)
    return tuple(found)


def _call_once(op: Op, level: Level, arguments: tuple[Any, ...], values: tuple[Any, ...]) -> Any:
    """Call an operator once for all samples."""
    result = call_op(op, values)
    if op.schema.is_inplace:
        target = arguments[0]
        if isinstance(target, Tensor) and values[0]._array.shape != target._array.shape:
            made = batched(values[0], None, level)
            target._storage = made._storage
            set_array(target, made._array)
        return target
    if isinstance(result, Tensor):
        return batched(result, None, level)
    if isinstance(result, list | tuple):
        parts = [batched(r, None, level) if isinstance(r, Tensor) else r for r in result]
        return parts if isinstance(result, list) else tuple(parts)
    return result


def _call_composite(op: Op, arguments: tuple[Any, ...]) -> Any:
    """Run the parts of a composite, or sample by sample where its function reads elements itself."""
    assert op.composite is not None
    try:
        return op.composite(*arguments)
    except (UnreadableError, SharedWriteError):
        if op.schema.is_inplace:
            raise
        return fallbacks.composite(op, arguments)


def batch_body(op: Op, full: int) -> Body:
    """The body that takes the place of a backend's."""
    packed = "(" + "".join(f"{n}, " for n in op.schema.argument_names) + ")"
    rule = find_rule(op)
    if rule is None and op.composite is not None:
        names: dict[str, Any] = {"op": op, "call_composite": _call_composite}
        return Body([f"result = call_composite(op, {packed})"], names, calls_operators=True)
    names = {"op": op, "call_rule": _call_rule, "rule_": rule or fallbacks.operator}
    return Body([f"result = call_rule(op, rule_, {packed})"], names, calls_operators=True)


def _batch_layer(op: Op, full: int, body: Body) -> Body:
    """What is tracked further out joins below; autograd of this level must not keep what is below from being recorded."""
    if op.composite is not None and not op.formulas and find_rule(op) is None:
        return body
    lines = [
        "below_ = tls.below",
        "if below_ is None:",
        "    tls.below = tls.grad_enabled",
        "try:",
        *indent(body.lines),
        "finally:",
        "    tls.below = below_",
    ]
    names: dict[str, Any] = {"tls": state}
    if full & TRACKED:
        packed = "(" + "".join(f"{n}, " for n in op.schema.argument_names) + ")"
        if op.schema.is_inplace and op.schema.arguments[0].type == "Tensor":
            lines = [f"join_target({packed})", *lines]
            names["join_target"] = _join_target
        lines = [
            f"lifted_ = lift_outer({packed})",
            "if lifted_ is not None:",
            "    result = call_op(op, lifted_)",
            "else:",
            *indent(lines),
        ]
        names |= {"lift_outer": _lift_outer, "call_op": call_op, "op": op}
    return body.edited(lines, names)


dispatcher.register_backend(keys.BATCHED, batch_body)
dispatcher.register_layer(keys.BATCHED, _batch_layer)
