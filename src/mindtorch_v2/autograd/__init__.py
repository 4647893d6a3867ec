"""torch.autograd: differentiation's public names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._autograd import engine
from .._tensor import Tensor

__all__ = ["backward", "grad"]


def _as_tuple(x: Any) -> tuple[Any, ...]:
    return (x,) if isinstance(x, Tensor) else tuple(x)


def _make_grads(outputs: Sequence[Tensor], grads: Sequence[Any]) -> list[Tensor]:
    made = []
    for out, g in zip(outputs, grads, strict=True):
        if g is None:
            if not out.requires_grad:
                raise RuntimeError("element 0 of tensors does not require grad and does not have a grad_fn")
            if out.numel() != 1:
                raise RuntimeError("grad can be implicitly created only for scalar outputs")
            from .._tensor import wrap

            g = wrap(__import__("numpy").ones_like(out._array))
        made.append(g)
    return made


def backward(tensors: Any, grad_tensors: Any = None, retain_graph: bool | None = None, create_graph: bool = False, inputs: Any = None) -> None:
    """Add the gradients of `tensors` to the `grad` of the leaves they were computed from."""
    outputs = _as_tuple(tensors)
    grads = _make_grads(outputs, [None] * len(outputs) if grad_tensors is None else _as_tuple(grad_tensors))
    keep = create_graph if retain_graph is None else retain_graph
    engine.run(outputs, grads, keep_graph=keep, create_graph=create_graph, inputs=None if inputs is None else _as_tuple(inputs))


def grad(
    outputs: Any,
    inputs: Any,
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[Any, ...]:
    """The gradients of `outputs` with respect to `inputs`."""
    outs, ins = _as_tuple(outputs), _as_tuple(inputs)
    grads = _make_grads(outs, [None] * len(outs) if grad_outputs is None else _as_tuple(grad_outputs))
    keep = create_graph if retain_graph is None else retain_graph
    return tuple(engine.run(outs, grads, keep_graph=keep, create_graph=create_graph, inputs=ins, accumulate=False))
