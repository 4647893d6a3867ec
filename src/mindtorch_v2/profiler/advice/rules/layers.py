"""Layers that undo each other's work."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ...model.session import TensorInput
from ..facts import Facts
from ..registry import Match, rule

CONVOLUTIONS = ("aten::conv1d", "aten::conv2d", "aten::conv3d", "aten::conv_transpose1d", "aten::conv_transpose2d")
NORM = "aten::batch_norm"
BIAS, TRAINING = 2, 5  # places of these arguments
# Adding the bias, and summing its gradient, against the forward pass of the normalisation: 0.04 to 0.46 and 0.2 to 0.6 when measured.
ADDING, SUMMING = 0.2, 0.3


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
    trained = np.isin(rows, facts.backward_of)
    gain = (facts.usual_ns(following) * (ADDING + SUMMING * trained)).sum()
    yield Match(
        rows=rows,
        gain_ns=float(gain),
        seen=f"A convolution with a bias was followed by a batch norm in training {facts.times(len(rows))}, which takes the bias "
        "out again.",
        instead="Make the convolution with bias=False.",
        estimate=f"{ADDING:.0%} of the time of the batch norm for adding the bias, and {SUMMING:.0%} for its gradient: ratios that were "
        "measured.",
        claims=rows[:0],
    )


def _has_bias(inputs: tuple[Any, ...]) -> bool:
    return len(inputs) > BIAS and isinstance(inputs[BIAS], TensorInput)


def _is_training(inputs: tuple[Any, ...]) -> bool:
    return len(inputs) > TRAINING and inputs[TRAINING] is True
