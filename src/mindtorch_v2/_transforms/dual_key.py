"""The Dual key: an operator called with dual tensors gives its results their tangents."""

from __future__ import annotations

import gc
import sys
from typing import TYPE_CHECKING, Any, NoReturn

from .._autograd.saved import OperatorNode
from .._dispatch import dispatcher, keys, registry
from .._dispatch.codegen import Body, indent
from .._dispatch.op import Op
from .._dispatch.tls import state
from .._ops.machinery.declare import MissingDerivative
from .._tensor import Tensor
from .batched import BatchedStorage, Level, SharedWriteError, batched, unwrapped
from .forward_rules import outgoing
from .tangents import carry_over, levels_of, set_tangent, stripped, tangent_of

if TYPE_CHECKING:
    from .._autograd.node import Node
    from .._types import TensorOrTensors

__all__ = ["written_tangent"]

# In-place operators that change a tensor's shape and not its elements.
RESHAPING = frozenset("squeeze_ unsqueeze_ t_ transpose_ as_strided_ swapaxes_ swapdims_".split())


def _tensors(arguments: tuple[Any, ...]) -> list[Tensor]:
    return [t for a in arguments for t in (a if isinstance(a, list | tuple) else (a,)) if isinstance(t, Tensor)]


def _levels(arguments: tuple[Any, ...]) -> list[int]:
    """The levels at which an argument has a tangent, outermost first."""
    return sorted({number for t in _tensors(arguments) for number in levels_of(t)})


def _strip(value: Any, level: int) -> Any:
    if isinstance(value, Tensor):
        return stripped(value, level)
    if isinstance(value, list | tuple) and any(isinstance(t, Tensor) for t in value):
        return [_strip(t, level) for t in value]
    return value


def _incoming(op: Op, arguments: tuple[Any, ...], level: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for a, value in zip(op.schema.arguments, arguments, strict=True):
        if isinstance(value, list | tuple):
            tangents = [tangent_of(t, level) for t in value]
            if any(t is not None for t in tangents):
                found[a.name] = tangents
        else:
            tangent = tangent_of(value, level)
            if tangent is not None:
                found[a.name] = tangent
    return found


def _carry(op: Op, arguments: tuple[Any, ...], result: TensorOrTensors, node: Node | None) -> None:
    """Give the results of an operator their tangents, at each level in turn: those further in may use those further out."""
    if state.carrying:
        return  # the operator that this is a part of does it
    for level in _levels(arguments):
        tangents = _incoming(op, arguments, level)
        try:
            made = outgoing(op, tuple(_strip(a, level) for a in arguments), tangents, _strip(result, level))
        except NotImplementedError as error:
            if not MissingDerivative.raised(error):
                raise
            _no_forward(op)
        for r, t in zip([result] if isinstance(result, Tensor) else result, made, strict=True):
            if t is not None and r is not None and r.dtype.inexact:
                set_tangent(r, level, t)
    _share(node, result)


def _share(node: Node | None, result: TensorOrTensors) -> None:
    """Give a node's copies of its results their tangents too: they are made before."""
    if not isinstance(node, OperatorNode):
        return
    results = [result] if isinstance(result, Tensor) else result
    for name, index in node._results.items():
        kept = getattr(node, "s_" + name)
        if isinstance(kept, Tensor):
            carry_over(results[index], kept)
        elif isinstance(kept, list):
            for r, k in zip(results, kept, strict=True):
                carry_over(r, k)


def _before(op: Op, arguments: tuple[Any, ...]) -> Any:
    """What an in-place operator needs of its arguments, before it writes."""
    found: list[Any] = []
    if state.carrying:
        return found
    for level in _levels(arguments):
        primals = [_strip(a, level) for a in arguments]
        if op.name not in ("copy_", "zero_", "fill_") and op.name not in RESHAPING:
            primals[0] = primals[0].clone()
        tangents = _incoming(op, arguments, level)
        if "self" in tangents and op.name not in RESHAPING:
            tangents["self"] = tangents["self"].clone()
        found.append((level, tuple(primals), tangents))
    return found


def _after(op: Op, before: Any, arguments: tuple[Any, ...], result: Tensor, node: Node | None) -> None:
    """Write the tangents of an in-place operator's result."""
    for level, primals, tangents in before:
        if op.name in RESHAPING:
            overload = {"transpose_": "int", "squeeze_": op.overload_name}.get(op.name, "default")
            functional = registry.aten(op.name.rstrip("_"), overload)
            set_tangent(result, level, outgoing(functional, primals, tangents, result)[0])
            continue
        made = outgoing(op, primals, tangents, _strip(result, level))[0]
        if made is None:
            made = registry.entry("zeros_like")(_strip(result, level))
        written_tangent(result, level, made)
    _share(node, result)


def written_tangent(t: Tensor, level: int, tangent: Tensor) -> None:
    """Set the tangent of a tensor that was written in place: in place too, as views and their base share theirs."""
    held = tangent_of(t, level)
    if held is None and t._base is not None:
        held = _shared_with_base(t, t._base, level)
    if held is None:
        views = _views_of(t)
        if views:
            tangent = stripped(t, level).new_empty_strided(t.shape, t.stride()).copy_(tangent)
        set_tangent(t, level, tangent.clone() if tangent._base is not None else tangent)
        for view in views:
            _shared_with_base(view, t, level)
        return
    try:
        held.copy_(tangent)
    except SharedWriteError:  # it was the same for all samples
        if t._base is None:
            set_tangent(t, level, tangent.clone())
            return
        whole = tangent_of(t._base, level)
        top = tangent._storage
        assert whole is not None
        assert isinstance(top, BatchedStorage)
        set_tangent(t._base, level, batched(expanded(unwrapped(whole, top.level)[0], top.level).clone(), 0, top.level))
        assert t._extra is not None
        assert t._extra.tangents is not None
        del t._extra.tangents[level]
        _shared_with_base(t, t._base, level).copy_(tangent)


def expanded(value: Tensor, level: Level) -> Tensor:
    """One value for all samples, with a batch in front that takes no memory."""
    found: Tensor = registry.entry("expand")(value, [level.batch_size, *value._array.shape])
    return found


def _views_of(base: Tensor) -> list[Tensor]:
    """The views of a tensor, which it does not know: they are searched for when it gets its first tangent by a write."""
    if not base._keys & keys.BATCHED and sys.getrefcount(base._storage) <= 2:  # nobody else has its memory
        return []
    return [t for t in gc.get_referrers(base) if isinstance(t, Tensor) and t._base is base and t.dtype is base.dtype]


def _shared_with_base(t: Tensor, base: Tensor, level: int) -> Tensor:
    """The part of a base's tangent that belongs to a view of it."""
    whole = tangent_of(base, level)
    if whole is None:
        whole = stripped(base, level).new_empty_strided(base.shape, base.stride()).zero_()
        set_tangent(base, level, whole)
        for view in _views_of(base):
            if view is not t:
                _shared_with_base(view, base, level)
    held: Tensor = whole.as_strided(t.shape, t.stride(), t.storage_offset() - base.storage_offset() + whole.storage_offset())
    set_tangent(t, level, held)
    return held


def _no_forward(op: Op) -> NoReturn:
    raise NotImplementedError(
        f"Trying to use forward AD with {op.name} that does not support it because it has not been implemented yet. The operator has no "
        "derivative; compute what it gives with operators that have one."
    )


def _dual_layer(op: Op, full: int, body: Body) -> Body:
    """Carry tangents past the operator; a composite without formulas does so by its parts."""
    has_formulas = bool(op.formulas)
    if op.composite is not None and not has_formulas and "no_derivative" not in op.tags:
        return body
    if keys.AUTOGRAD in op.kernels or "nondifferentiable" in op.tags:
        return body
    if not any(r.type.startswith("Tensor") for r in op.schema.returns):
        return body
    packed = "(" + "".join(f"{n}, " for n in op.schema.argument_names) + ")"
    names: dict[str, Any] = {"op": op}
    if not has_formulas:
        names["refuse_dual"] = _refuse_if_inexact
        return body.edited([*body.lines, "refuse_dual(op, result)"], names)
    if op.composite is not None:
        names["covered"] = frozenset(t for f in op.formulas for t in f.targets)
        names["tls"] = state
        names["all_covered"] = _all_covered
        lines = [
            f"by_formulas_ = all_covered(op, covered, {packed})",
            "tls.carrying += by_formulas_",
            "try:",
            *indent(body.lines),
            "finally:",
        ]
        body = body.edited([*lines, "    tls.carrying -= by_formulas_"], names)
    elif body.calls_operators:
        names["tls"] = state
        body = body.edited(["tls.carrying += 1", "try:", *indent(body.lines), "finally:", "    tls.carrying -= 1"], names)
    start = [] if not body.makes_node else ["node = None"]
    node = "node" if body.makes_node else "None"
    if op.schema.is_inplace:
        names |= {"before_write": _before, "after_write": _after}
        lines = [f"before_ = before_write(op, {packed})", *body.lines, f"after_write(op, before_, {packed}, result, {node})"]
        return body.edited([*start, *lines], names)
    names["carry"] = _carry
    carry = [f"carry(op, {packed}, result, {node})"]
    if op.composite is not None:  # else its parts have done it
        carry = ["if by_formulas_:", *indent(carry)]
    return body.edited([*start, *body.lines, *carry], names)


def _all_covered(op: Op, covered: frozenset[str], arguments: tuple[Any, ...]) -> bool:
    """Whether formulas say what happens to all tangents that a composite is given."""
    if op.schema.is_inplace:
        return True
    return all(
        a.name in covered or not any(levels_of(t) for t in (value if isinstance(value, list | tuple) else (value,)))
        for a, value in zip(op.schema.arguments, arguments, strict=True)
    )


def _refuse_if_inexact(op: Op, result: TensorOrTensors) -> None:
    for r in [result] if isinstance(result, Tensor) else result:
        if isinstance(r, Tensor) and r.dtype.inexact and not state.carrying:
            _no_forward(op)


dispatcher.register_layer(keys.DUAL, _dual_layer)
