"""Anomaly mode: forward calls remember where they were made, and backward checks what each node returns for NaN."""

from __future__ import annotations

import os
import threading
import traceback
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from .._dispatch import dispatcher, keys
from .node import Node
from .observing import run_observed

if TYPE_CHECKING:
    from .._tensor import Tensor

__all__ = ["checked_call", "note_creation", "set_mode", "state"]

TRACEBACK = "traceback_"
PARENT = "parent_"
PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# frames between the user's call and the making of a node
INTERNAL = tuple(os.path.join(PACKAGE, part) for part in ("_autograd", "autograd", "_ops", "_dispatch"))
WARNING_LEVEL = 6  # frames between the warning and the user's call of backward()


class State:
    """Belongs to the process, as in torch."""

    enabled = False
    check_nan = True


state = State()


class _Running(threading.local):
    """The nodes whose backward runs on this thread, the innermost last."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []


_running = _Running()


def set_mode(enabled: bool, check_nan: bool) -> None:
    if enabled != state.enabled:
        (dispatcher.activate if enabled else dispatcher.deactivate)(keys.SAVED_HOOKS)
    state.enabled = enabled
    state.check_nan = check_nan


def note_creation(node: Node) -> None:
    """Remember where the forward call was made, and the node in whose backward it was made."""
    if state.enabled:
        frames = [f for f in traceback.extract_stack() if not f.filename.startswith("<mindtorch_v2")]
        while frames and frames[-1].filename.startswith(INTERNAL):
            frames.pop()
        node.metadata[TRACEBACK] = traceback.format_list(frames)
        if _running.nodes:
            node.metadata[PARENT] = _running.nodes[-1]


def checked_call(node: Node, grad: Tensor | list[Tensor | None], edges: tuple[Any, ...]) -> tuple[Any, ...]:
    """A node's computation, followed by a check for NaN; a failure first shows where the forward call was made."""
    _running.nodes.append(node)
    try:
        outs = run_observed(node, grad, edges)
    except Exception:
        _show_forward(node)
        raise
    finally:
        _running.nodes.pop()
    if state.check_nan:
        for i, out in enumerate(outs):
            if out is not None and out.dtype.inexact and out.device.type != "meta" and np.isnan(out._array).any():
                _show_forward(node)
                raise RuntimeError(f"Function '{node.name()}' returned nan values in its {i}th output.")
    return outs


def _show_forward(node: Node) -> None:
    where = node.metadata.get(TRACEBACK)
    if where is None:
        text = (
            f"Error detected in {node.name()}. No forward pass information available. Enable detect anomaly during forward "
            "pass for more information."
        )
    else:
        text = f"Error detected in {node.name()}. Traceback of forward call that caused the error:\n{''.join(where)}"
    warnings.warn(text, UserWarning, stacklevel=WARNING_LEVEL)
    parent = node.metadata.get(PARENT)
    while parent is not None:
        where = parent.metadata.get(TRACEBACK)
        warnings.warn(
            "\n\nPrevious calculation was induced by "
            + (
                f"{parent.name()}. No forward pass information available."
                if where is None
                else f"{parent.name()}. Traceback of forward call that induced the previous calculation:\n{''.join(where)}"
            ),
            UserWarning,
            stacklevel=WARNING_LEVEL,
        )
        parent = parent.metadata.get(PARENT)
