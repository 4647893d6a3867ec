"""Backward in profiles: `autograd::engine::evaluate_function: MulBackward0` around `MulBackward0`, as torch shows them."""

from __future__ import annotations

import sys
from typing import Any

from . import call_inputs, recorder, stack_walk, tasks
from .recorder import Log
from .session import BACKWARD_FUNCTION, FUNCTION, Label

__all__ = ["NodeScopes"]

LEAF = 2
ACCUMULATE = "torch::autograd::AccumulateGrad"

_labels: dict[str, tuple[int, int]] = {}


def _labels_of(target: Any) -> tuple[int, int]:
    name = ACCUMULATE if target._kind == LEAF else target.name()
    found = _labels.get(name)
    if found is None:
        found = _labels[name] = (
            recorder.label_number(Label(f"autograd::engine::evaluate_function: {name}", "op", FUNCTION)),
            recorder.label_number(Label(name, "op", BACKWARD_FUNCTION)),
        )
    return found


class NodeScopes:
    """Watches the engine. A token is the record of what has begun, but for its end."""

    def __init__(self, log: Log) -> None:
        self._log = log

    def begin(self, target: Any, grad: Any) -> Any:
        return self._open(target, grad, 0)

    def begin_run(self, target: Any, grad: Any) -> Any:
        return self._open(target, grad, 1)

    def _open(self, target: Any, grad: Any, which: int) -> Any:
        log = self._log
        inputs = call_inputs.gradient_inputs(grad) if log.shapes else -1
        stack = stack_walk.stack_number(sys._getframe(2)) if log.stacks else -1
        sequence = -1 if target._kind == LEAF else target._seq
        return (_labels_of(target)[which], recorder.clock(), sequence, inputs, stack)

    def end(self, token: Any) -> None:
        label, start, sequence, inputs, stack = token
        self._log.write(label, start, recorder.clock(), tasks.track_number(), sequence, inputs, stack)

    end_run = end
