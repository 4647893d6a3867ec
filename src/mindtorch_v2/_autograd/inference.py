"""Inference mode: what is made in it carries a key of its own, which autograd refuses to save and in-place writes outside refuse.

The layer is compiled into operators only while some thread is in the mode, or for arguments that were made in it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._dispatch import dispatcher, keys
from .._dispatch.codegen import Body
from .._dispatch.op import Op
from .._dispatch.tls import state
from .._tensor import Tensor

if TYPE_CHECKING:
    from .._types import TensorOrTensors

__all__ = ["inference_layer", "refuse_write"]

BIT = keys.INFERENCE


def inference_layer(op: Op, full: int, body: Body) -> Body:
    """Mark results as made in inference mode, and refuse writes to such tensors outside of it."""
    names = {"tls": state, "mark_inference": _mark, "refuse_write": refuse_write}
    written = [a.name for a in op.schema.arguments if a.is_written and a.type == "Tensor"]
    if op.composite is not None and not written and any(r.alias for r in op.schema.returns):
        return body  # the operators it calls mark their own results
    before = [f"if {name}._keys & {BIT} and not tls.inference:" for name in written]
    lines = [line for test in before for line in (test, "    refuse_write()")]
    lines += body.lines
    if written:
        return body.edited(lines, names)
    if op.schema.is_view:
        base = next(a.name for a in op.schema.arguments if a.alias)
        return body.edited([*lines, f"if {base}._keys & {BIT}:", "    mark_inference(result)"], names)
    single = [r.type for r in op.schema.returns] == ["Tensor"]
    mark = f"    result._keys |= {BIT}" if single else "    mark_inference(result)"
    return body.edited([*lines, "if tls.inference:", mark], names)


def _mark(result: TensorOrTensors) -> None:
    if isinstance(result, Tensor):
        result._keys |= BIT
    elif isinstance(result, list | tuple):
        for r in result:
            _mark(r)


def refuse_write() -> None:
    """Raise about a tensor that was made in inference mode and is written to outside."""
    raise RuntimeError(
        "Inplace update to inference tensor outside InferenceMode is not allowed.You can make a clone to get a normal tensor "
        "before doing inplace update.See https://github.com/pytorch/rfcs/pull/17 for more details."
    )


dispatcher.register_layer(keys.INFERENCE, inference_layer)
