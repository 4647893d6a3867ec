"""Errors of backward about saved tensors that were freed or overwritten."""

from __future__ import annotations

from typing import Any

from .._tensor import Tensor
from .node import LEAF, Node, Output, edge_of, forward_name, node_and_index

__all__ = ["check_versions", "inference_error", "released_error", "version_error"]


def released_error() -> RuntimeError:
    return RuntimeError(
        "Trying to backward through the graph a second time (or directly access saved tensors after they have already been "
        "freed). Saved intermediate values of the graph are freed when you call .backward() or autograd.grad(). Specify "
        "retain_graph=True if you need to backward through the graph a second time or if you need to access saved tensors "
        "after calling backward."
    )


def version_error(node: Node, t: Tensor, expected: int, made_by: Node | Output | None = None) -> RuntimeError:
    """The error about a saved tensor that was written to; `made_by` is its edge where the tensor cannot tell."""
    if made_by is None:
        made_by = edge_of(t)
    if made_by is None and any(
        getattr(node, "s_" + name, None) is t for name in getattr(node, "_kept", ()) if name.startswith("result")
    ):
        made_by = node  # a saved result is kept outside of the graph
    source = ""
    if made_by is not None and made_by._kind != LEAF:
        maker, index = node_and_index(made_by)
        source = f", which is output {index} of {forward_name(maker)},"
    return RuntimeError(
        "one of the variables needed for gradient computation has been modified by an inplace operation: "
        f"[torch.{t.dtype.scalar_name}Tensor {list(t._array.shape)}]{source} is at version {t._storage.version}; expected "
        f"version {expected} instead. Hint: enable anomaly detection to find the operation that failed to compute its gradient, "
        "with torch.autograd.set_detect_anomaly(True, check_nan=False)."
    )


def check_versions(node: Node, tensors: list[Any], versions: list[Any]) -> None:
    for t, version in zip(tensors, versions, strict=True):
        if t is not None and t._storage.version != version:
            raise version_error(node, t, version)


def inference_error() -> RuntimeError:
    return RuntimeError(
        "Inference tensors cannot be saved for backward. Please do not use Tensors created in inference mode in computation "
        "tracked by autograd. To work around this, you can make a clone to get a normal tensor and use it in autograd, or use "
        "`torch.no_grad()` instead of `torch.inference_mode()`."
    )
