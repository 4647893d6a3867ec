"""Conjugation and negation that are still to be done: `x.conj()` is a view of `x` whose key set says that its elements are conjugates.

Views carry the bits on. Every other operator runs over tensors in which nothing is pending: this layer, below autograd, gives it copies
of those arguments that have a bit, and writes back what it wrote to them. A tensor without the bits never meets it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ._dispatch import dispatcher, keys, registry
from ._dispatch.codegen import Body, compile_function
from ._dispatch.op import Op
from ._tensor import Tensor, wrap_view
from ._writing import make_writable

__all__ = ["resolved", "toggled", "write_pending"]

# Operators that change what a tensor is and not its elements, or that know the bits themselves.
_PASSED = frozenset(
    """
    clone resolve_conj resolve_neg conj_physical detach_ requires_grad_ resize_ resize_as_ set_ squeeze_ unsqueeze_ t_ transpose_ swapaxes_
    swapdims_ as_strided_ is_set_to is_same_size _version is_complex is_floating_point is_signed
    """.split()
)


def toggled(t: Tensor, bit: int) -> Tensor:
    """A view of a tensor of which one of the bits is what it is not in the tensor."""
    view = wrap_view(t._array, t)
    view._keys ^= bit
    return view


def resolved(t: Any) -> Any:
    """A tensor in which nothing is pending; whatever else was given, unchanged."""
    if not isinstance(t, Tensor) or not t._keys & keys.PENDING:
        return t
    return registry.entry("resolve_conj" if t._keys & keys.CONJUGATE else "resolve_neg")(t)


def write_pending(target: Tensor, array: np.ndarray[Any, Any]) -> None:
    """Write elements to a tensor whose memory holds their conjugates or negatives."""
    if target._keys & keys.META:
        return
    memory = target._array
    if not memory.flags.writeable:
        make_writable(memory)
    if target._keys & keys.CONJUGATE:
        array = np.conjugate(array)
    np.copyto(memory, np.negative(array) if target._keys & keys.NEGATIVE else array)


def pending_layer(op: Op, full: int, body: Body) -> Body:
    """Run the body below over arguments in which nothing is pending."""
    schema = op.schema
    if schema.name == "view_as_real" and full & keys.CONJUGATE:
        return dispatcher.call_body(op, _refuse_view_as_real, "refuse_view")
    if op.name in _PASSED or schema.is_view:
        return body
    below = compile_function(
        op.name, ", ".join(schema.argument_names), [*body.lines, "return result"], body.names, title=op.qualified_name
    )
    lines, passed, written = [], [], []
    for a in schema.arguments:
        if not (a.is_tensor or a.is_tensor_list):
            passed.append(a.name)
            continue
        passed.append(f"{a.name}_")
        value = f"[resolved(t_) for t_ in {a.name}]" if a.is_tensor_list else f"resolved({a.name})"
        lines.append(f"{a.name}_ = {value}")
        if a.is_written:
            written.append(a)
    lines.append(f"result = below({', '.join(passed)})")
    for a in written:
        lines.append(f"result = write_back(result, {a.name}, {a.name}_)")
    return Body(lines, {"below": below, "resolved": resolved, "write_back": _write_back}, calls_operators=True)


def _write_back(result: Any, given: Any, written: Any) -> Any:
    """Copy what was written to a copy back to the argument, which takes the copy's place in the result."""
    if not isinstance(given, Tensor):
        for t, copy in zip(given, written, strict=True):
            _write_back(None, t, copy)
        return result
    if given is written:
        return result
    write_pending(given, written._array)
    given._storage.version += 1
    if result is written:
        return given
    return type(result)([given if r is written else r for r in result]) if isinstance(result, list | tuple) else result


def _refuse_view_as_real(*arguments: Any) -> Any:
    raise RuntimeError(
        "view_as_real doesn't work on unresolved conjugated tensors.  To resolve the conjugate tensor so you can view it as real, use "
        "self.resolve_conj(); however, be warned that the resulting tensor will NOT alias the original."
    )


dispatcher.register_layer(keys.PENDING, pending_layer)
