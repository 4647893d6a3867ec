"""Layers that undo each other's work."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ...model import links
from ...model.session import TensorInput
from ..facts import Facts
from ..registry import Match, rule

Column = np.ndarray[Any, np.dtype[Any]]

CONVOLUTIONS = ("aten::conv1d", "aten::conv2d", "aten::conv3d", "aten::conv_transpose1d", "aten::conv_transpose2d")
NORM = "aten::batch_norm"
BIAS, TRAINING = 2, 5  # places of these arguments
# What a bias takes in all, in times of summing its gradient, besides what the engine does for one more parameter. Measured in two networks of two
# sizes: 2.7 to 3.4.
OF_SUMMING = 3.0
ACCUMULATE = f"{links.EVALUATE}torch::autograd::AccumulateGrad"


@rule("bias before batch norm", needs=("record_shapes",))
def bias_before_norm(facts: Facts) -> Iterator[Match]:
    """The normalisation subtracts the mean of each channel, and the bias with it."""
    rows = facts.find(*CONVOLUTIONS)
    rows = rows[facts.of_inputs(_has_bias, rows, none=False, dtype=bool)]
    following = facts.neighbour(rows, 1)
    # the layer counts its batches between
    counted = facts.is_named(following, ("aten::add_",)) & (facts.elements(following) <= 1)
    following = np.where(counted, facts.neighbour(following, 1), following)
    norms = facts.is_named(following, (NORM,)) & (following >= 0)
    rows, following = rows[norms], following[norms]
    training = facts.of_inputs(_is_training, following, none=False, dtype=bool)
    rows, following = rows[training], following[training]
    summing = _summing_ns(rows, facts)
    accumulate = facts.usual_ns(facts.find(ACCUMULATE))
    engine = float(np.median(accumulate)) if len(accumulate) else 0.0
    gain = np.where(summing > 0, OF_SUMMING * summing + engine, facts.pass_ns(facts.elements(following))).sum()
    yield Match(
        rows=rows,
        gain_ns=float(gain),
        seen=f"A convolution with a bias was followed by a batch norm in training {facts.times(len(rows))}, which takes the bias "
        "out again.",
        instead="Make the convolution with bias=False.",
        estimate=f"{OF_SUMMING:g} times the time of summing the gradient of the bias, which is usual for adding it and for its backward pass in all, "
        "and the engine's time for one parameter; without a backward pass, the least that an operator on as many elements took in this recording.",
        claims=rows[:0],
    )


def _summing_ns(rows: Column, facts: Facts) -> Column:
    """The time of summing the bias's gradient, in the backward pass of each convolution; 0 if there was none."""
    sums = facts.find("aten::sum")
    nodes = np.flatnonzero(np.isin(facts.backward_of, rows))
    around = facts.around(sums, nodes)
    inside = around >= 0
    found = np.zeros(len(facts.session) + 1)
    np.add.at(found, facts.backward_of[around[inside]], facts.usual_ns(sums)[inside])
    return np.asarray(found[rows])


def _has_bias(inputs: tuple[Any, ...]) -> bool:
    return len(inputs) > BIAS and isinstance(inputs[BIAS], TensorInput)


def _is_training(inputs: tuple[Any, ...]) -> bool:
    return len(inputs) > TRAINING and inputs[TRAINING] is True
