"""`backward` and `grad`: checks what users pass, and calls the engine."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from .._dispatch import keys, registry
from .._dispatch.tls import state
from .._tensor import Size, Tensor, wrap
from .._types import DType, TensorOrTensors
from ..overrides import handle_torch_function, has_torch_function, is_tensor_like
from . import engine
from .node import LEAF, AccumulateGrad, Node, Output, accumulator, edge_of, node_and_index

__all__ = ["GradientEdge", "backward", "get_gradient_edge", "grad"]


class GradientEdge(NamedTuple):
    """A place in the graph: a node, and which of its results; can stand for a tensor in `grad` and `backward`."""

    node: Node
    output_nr: int
    ownership_token: Node | None = None


def get_gradient_edge(tensor: Tensor) -> GradientEdge:
    """The place in the graph where a tensor's gradient is computed."""
    edge = edge_of(tensor)
    if edge is None:
        raise RuntimeError("It is not possible to get the gradient edge for a Tensor that does not require gradients")
    node, index = node_and_index(edge)
    return GradientEdge(accumulator(node) if node._kind == LEAF else node, index)


def _engine_edge(x: Tensor | GradientEdge) -> Any:
    """The engine's form of a tensor's or GradientEdge's place, or None."""
    if isinstance(x, Tensor):
        return edge_of(x)
    node: Node = x.node
    if isinstance(node, AccumulateGrad):
        return node.variable
    return Output(node, x.output_nr) if node._multi else node


def _as_tuple(x: Any) -> tuple[Any, ...]:
    return (x,) if isinstance(x, Tensor | GradientEdge) or is_tensor_like(x) else tuple(x)


def _outputs(x: Any) -> tuple[Any, ...]:
    outputs = _as_tuple(x)
    for out in outputs:
        if not isinstance(out, Tensor | GradientEdge) and not is_tensor_like(out):
            raise AssertionError("Expected output to be a torch.Tensor")
    return outputs


def _meta(out: Tensor | GradientEdge) -> tuple[tuple[int, ...], Any]:
    return (out._array.shape, out.dtype) if isinstance(out, Tensor) else out.node._meta_of(out.output_nr)


def _initial_grads(outputs: Sequence[Any], grads: Sequence[Any]) -> list[Any]:
    """The gradients to start from: those given, checked, and ones for scalars."""
    made: list[Any] = []
    for i, (out, g) in enumerate(zip(outputs, grads, strict=False)):
        shape, dtype = _meta(out)
        if isinstance(g, Tensor):
            if g._array.shape != shape:
                raise RuntimeError(
                    f"Mismatch in shape: grad_output[{i}] has a shape of {g.shape} and output[{i}] has a shape of {Size(shape)}."
                )
            if dtype.is_complex != g.dtype.is_complex:
                raise RuntimeError(
                    "For complex Tensors, both grad_output and output are required to have the same dtype. Mismatch in dtype: "
                    f"grad_output[{i}] has a dtype of {g.dtype} and output[{i}] has a dtype of {dtype}."
                )
            made.append(g)
        elif g is None:
            made.append(ones_for_scalar(out, shape, dtype))
        else:
            raise TypeError(f"gradients can be either Tensors or None, but got {type(g).__name__}")
    return made


def ones_for_scalar(out: Tensor | GradientEdge, shape: tuple[int, ...], dtype: DType) -> Tensor | None:
    if isinstance(out, Tensor) and not out._keys & keys.AUTOGRAD:
        return None
    if math.prod(shape) != 1:
        raise RuntimeError("grad can be implicitly created only for scalar outputs")
    if not dtype.is_floating_point:
        raise RuntimeError(f"grad can be implicitly created only for real scalar outputs but got {dtype}")
    if not isinstance(out, Tensor):
        return wrap(np.ones(shape, dtype.np), dtype)
    ones: Tensor = registry.aten("ones_like").table[out._keys & ~(keys.AUTOGRAD | keys.SUBCLASS)](out, *(None,) * 5)
    return ones


def _roots(outputs: Sequence[Any], grads: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    edges = [_engine_edge(out) for out in outputs]
    for i, (edge, g) in enumerate(zip(edges, grads, strict=False)):
        if edge is None:
            raise RuntimeError(f"element {i} of tensors does not require grad and does not have a grad_fn")
        if g is not None:
            dtype = _meta(outputs[i])[1]
            if g.dtype is not dtype:
                grads = [*grads[:i], g.to(dtype), *grads[i + 1 :]]
    return edges, list(grads)


def backward(
    tensors: Any,
    grad_tensors: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    grad_variables: TensorOrTensors | None = None,
    inputs: Any = None,
) -> None:
    """Add the gradients of `tensors` to the `grad` of the leaves they were computed from."""
    if grad_variables is not None:
        warnings.warn("`grad_variables` is deprecated. Use `grad_tensors` instead.", FutureWarning, stacklevel=2)
        if grad_tensors is not None:
            raise RuntimeError(
                "`grad_tensors` and `grad_variables` (deprecated) arguments both passed to `backward()`. Please only use `grad_tensors`."
            )
        grad_tensors = grad_variables
    wanted = None
    if inputs is not None:
        targets = _as_tuple(inputs)
        if not targets:
            raise RuntimeError("`inputs` argument to `backward()` cannot be empty.")
        wanted = _accumulating_inputs(targets)
    outputs = _outputs(tensors)
    grads = _initial_grads(outputs, (None,) * len(outputs) if grad_tensors is None else _as_tuple(grad_tensors))
    roots, grads = _roots(outputs, grads)
    keep = create_graph if retain_graph is None else retain_graph
    if create_graph:
        warnings.warn(
            "Using backward() with create_graph=True will create a reference cycle between the parameter and its gradient which "
            "can cause a memory leak. We recommend using autograd.grad when creating the graph to avoid this. If you have to use "
            "this function, make sure to reset the .grad fields of your parameters to None after use to break the cycle and avoid "
            "the leak.",
            UserWarning,
            stacklevel=3,
        )
    engine.run(roots, grads, keep_graph=keep, create_graph=create_graph, inputs=wanted)


def _accumulating_inputs(inputs: Sequence[Any]) -> list[Any]:
    for x in inputs:
        if isinstance(x, Tensor):
            x.retain_grad()
        elif not isinstance(x, GradientEdge):
            raise RuntimeError(f"all inputs have to be Tensors or GradientEdges, but got {type(x).__name__}")
    return [_engine_edge(x) for x in inputs]


def grad(
    outputs: Any,
    inputs: Any,
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[Any, ...]:
    """The gradients of `outputs` with respect to `inputs`."""
    if materialize_grads and allow_unused is False:
        raise ValueError("Expected allow_unused to be True or not passed when materialize_grads=True, but got: allow_unused=False.")
    if not only_inputs:
        warnings.warn("only_inputs argument is deprecated and is ignored now (defaults to True)", FutureWarning, stacklevel=2)
    outs, ins = _outputs(outputs), _as_tuple(inputs)
    if not ins:
        raise RuntimeError("`inputs` argument to `grad()` cannot be empty.")
    others = [x for x in (*outs, *ins) if x.__class__ is not Tensor]
    if others and has_torch_function(others):
        return handle_torch_function(
            grad, others, outs, ins, grad_outputs=grad_outputs, retain_graph=retain_graph, create_graph=create_graph,
            only_inputs=only_inputs, allow_unused=allow_unused, is_grads_batched=is_grads_batched, materialize_grads=materialize_grads,
        )  # fmt: skip
    given = (None,) * len(outs) if grad_outputs is None else _as_tuple(grad_outputs)
    keep = create_graph if retain_graph is None else retain_graph
    run = _run_batched if is_grads_batched else _run
    found = run(outs, ins, given, keep, create_graph)
    if materialize_grads:
        if any(g is None and isinstance(x, GradientEdge) for x, g in zip(ins, found, strict=True)):
            raise RuntimeError(
                "materialize_grads cannot be used when the given input is a GradientEdge: it has no shape to make zeros of; pass the tensor"
            )
        return tuple(_zeros_for(x) if g is None else g for x, g in zip(ins, found, strict=True))
    if not allow_unused:
        for i, g in enumerate(found):
            if g is None:
                raise RuntimeError(
                    f"The differentiated Tensor at index {i} appears to not have been used in the graph. Set allow_unused=True if "
                    "this is the desired behavior."
                )
    return tuple(found)


def _run(outputs: Sequence[Any], inputs: Sequence[Any], grads: Sequence[Any], keep_graph: bool, create_graph: bool) -> list[Any]:
    roots, made = _roots(outputs, _initial_grads(outputs, grads))
    return engine.run(
        roots, made, keep_graph=keep_graph, create_graph=create_graph, inputs=_captured_inputs(inputs), accumulate=False
    )


def _run_batched(
    outputs: Sequence[Any], inputs: Sequence[Any], grads: Sequence[Any], keep_graph: bool, create_graph: bool
) -> list[Any]:
    """Run once for each of the gradients that are stacked in `grads`, all at once."""
    from .._vmap_internals import _vmap  # cycle with _vmap_internals

    for i, (out, g) in enumerate(zip(outputs, grads, strict=False)):
        shape, _ = _meta(out)
        if isinstance(g, Tensor) and g._array.shape[1:] != shape:
            raise RuntimeError(
                f"If `is_grads_batched=True`, we interpret the first dimension of each grad_output as the batch dimension. The sizes of "
                f"the remaining dimensions are expected to match the shape of corresponding output, but a mismatch was detected: "
                f"grad_output[{i}] has a shape of {g.shape} and output[{i}] has a shape of {Size(shape)}. If you only want some tensors in "
                "`grad_output` to be considered batched, consider using vmap."
            )

    def one(*rows: Any) -> tuple[Any, ...]:
        return tuple(_run(outputs, inputs, rows, keep_graph, create_graph))

    return list(_vmap(one, allow_none_pass_through=True)(*grads))


def _captured_inputs(inputs: Sequence[Any]) -> list[Any]:
    edges = []
    for x in inputs:
        if not isinstance(x, Tensor | GradientEdge):
            raise RuntimeError(f"all inputs have to be Tensors or GradientEdges, but got {type(x).__name__}")
        edge = _engine_edge(x)
        if edge is None:
            raise RuntimeError("One of the differentiated Tensors does not require grad")
        edges.append(edge)
    return edges


def _zeros_for(x: Tensor) -> Tensor:
    shape, dtype = _meta(x)
    zeros = wrap(np.zeros(shape, dtype.np), dtype)
    return zeros if not isinstance(x, Tensor) or x.device.type == "cpu" else zeros.to(x.device)


def _backward_method(
    self: Tensor,
    gradient: Tensor | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Any = None,
) -> None:
    """Add the gradient of this tensor to the `grad` of the leaves it was computed from."""
    # the common call by the shortest way: `loss.backward()`
    if gradient is None and inputs is None and not create_graph and self._keys & keys.AUTOGRAD and not state.inference:
        edge = edge_of(self)
        if edge is not None:
            ones = ones_for_scalar(self, self._array.shape, self.dtype)
            engine.run((edge,), [ones], keep_graph=bool(retain_graph), create_graph=False)
            return
    backward(self, None if gradient is None else (gradient,), retain_graph, create_graph, inputs=inputs)


_backward_method.__name__ = "backward"  # as overrides see it
Tensor.backward = _backward_method
