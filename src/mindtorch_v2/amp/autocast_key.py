"""The dispatcher's layer for autocast: operands are cast, and the operator is called again with them, outside of autocast.

It is above autograd, so that casts are differentiated and what is saved for backward has the lower precision; a profile shows the
operator, and inside it the casts and the operator that computed.
"""

from __future__ import annotations

from typing import Any

from .. import _dtype
from .._dispatch import dispatcher, keys
from .._dispatch.codegen import Body, indent
from .._dispatch.op import Op
from .._dispatch.tls import state
from .._ops.machinery.calling import argument_keys
from .._tensor import Tensor
from . import cast_cache
from .autocast_state import get_autocast_dtype, is_autocast_cache_enabled
from .policies import Policy, concerns, policy_of

__all__ = ["autocast_layer", "is_eligible"]

_FLOATING = frozenset({_dtype.float32, _dtype.float16, _dtype.bfloat16})


def autocast_layer(op: Op, full: int, body: Body) -> Body:
    """Call the operator with other operands while this thread is in autocast. Calls with `out=` are left alone, as in torch."""
    if full & keys.OUT_VARIANT or not full & (keys.CPU | keys.SPARSE_LAYOUTS):
        return body
    packed = "(" + "".join(f"{n}, " for n in op.schema.argument_names) + ")"
    lines = ["if tls.autocast:", f"    result = call_cast(op, policy, {packed})", "else:", *indent(body.lines)]
    body = body.edited(lines, {"tls": state, "op": op, "policy": policy_of(op), "call_cast": _call_cast})
    body.result_is_new, body.calls_operators = False, True
    return body


def is_eligible(value: object) -> bool:
    """Whether a value is a tensor of the CPU with floating-point elements, of no more precision than float32."""
    return isinstance(value, Tensor) and bool(value._keys & (keys.CPU | keys.SPARSE_LAYOUTS)) and value.dtype in _FLOATING


def _call_cast(op: Op, policy: Policy | _dtype.dtype, arguments: tuple[Any, ...]) -> Any:
    state.autocast = False
    try:
        lower = get_autocast_dtype("cpu")
        to = _target(op, policy, arguments, lower)
        changed = list(arguments)
        for position, _, is_list in op.schema.tensor_positions:
            value = arguments[position]
            changed[position] = [_cast(t, to, lower) for t in value] if is_list else _cast(value, to, lower)
        return op.table[argument_keys(op, tuple(changed))](*changed)
    finally:
        state.autocast = True


def _cast(value: Any, to: _dtype.dtype, lower: _dtype.dtype) -> Any:
    if not is_eligible(value) or value.dtype is to:
        return value
    return cast_cache.cast(value, to, is_lower=to is lower, enabled=is_autocast_cache_enabled())


def _target(op: Op, policy: Policy | _dtype.dtype, arguments: tuple[Any, ...], lower: _dtype.dtype) -> _dtype.dtype:
    """The dtype that the operands of a call are cast to."""
    if isinstance(policy, _dtype.dtype):
        return policy
    if policy is not Policy.PROMOTE:
        return lower if policy is Policy.LOWER else _dtype.float32
    to = lower
    for t in _tensors(op, arguments):
        if not is_eligible(t) or to is t.dtype:
            continue
        if _dtype.float32 not in (
            to,
            t.dtype,
        ):  # torch: an operand of another lower precision is refused, unless one of float32 comes first
            raise RuntimeError(
                f"Unexpected floating ScalarType in at::autocast::prioritize: {op.qualified_name} has an operand of {t.dtype}, and "
                f"autocast's dtype is {lower}; convert it"
            )
        to = _dtype.float32
    return to


def _tensors(op: Op, arguments: tuple[Any, ...]) -> list[Any]:
    found: list[Any] = []
    for position, _, is_list in op.schema.tensor_positions:
        found += arguments[position] if is_list else [arguments[position]]
    return found


dispatcher.register_layer(keys.AUTOCAST, autocast_layer, only=concerns)
