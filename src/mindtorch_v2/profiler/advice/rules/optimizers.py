"""Optimizers that change one parameter after the other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..facts import STEP, Facts
from ..outside import IN_STEP
from ..registry import Match, rule

Column = np.ndarray[Any, np.dtype[Any]]

FUSED = tuple(f"aten::_fused_{name}_" for name in ("adagrad", "adam", "adamw", "sgd"))
# Optimizers of which the fused step is faster on the CPU. SGD's is not: its step is one to three operators a parameter.
FASTER_FUSED = ("Adam", "AdamW")
MOVING = ("aten::addcdiv_",)  # called once for each parameter
# The fused step takes as long as the plain one for a parameter of more elements, and its own beginning as long as calling the operators of so many
# parameters does. Measured, with 1 to 120 parameters of 16 to 262,144 elements: a step of 4 is 49 µs longer if it is fused, of 28 150 µs shorter.
FEW_ELEMENTS, BEGINNING = 2048, 11


@rule("optimizer step not fused", needs=("record_shapes",))
def optimizer_not_fused(facts: Facts) -> Iterator[Match]:
    """Adam with its operators called for each of many small parameters, alone (the default here) or through `_foreach_*`."""
    scopes = facts.scopes(STEP)
    fused = facts.parent[facts.called(facts.children(scopes), FUSED)]
    for optimizer in FASTER_FUSED:
        of_it = facts.called(scopes, (f"{STEP}{optimizer}.step",))
        of_it = of_it[~np.isin(of_it, fused)]
        if len(of_it):
            yield _match(optimizer, of_it, facts)


def _match(optimizer: str, scopes: Column, facts: Facts) -> Match:
    operators = facts.children(scopes)
    operators = operators[facts.is_operator[operators]]
    in_lists = facts.where(lambda label: label.name.startswith("aten::_foreach_"))
    in_lists = in_lists[facts.around(in_lists, scopes) >= 0]
    each = "for one parameter after the other" + (" inside _foreach_ operators" if len(in_lists) else "")
    pieces = facts.outside.inside(scopes)
    return Match(
        rows=facts.union(scopes, operators),
        gain_ns=_calling_ns(scopes, pieces, facts) * _saved_share(scopes, facts),
        seen=f"{optimizer} made its step {facts.times(len(scopes))} by calling {len(operators) / len(scopes):,.0f} operators {each}.",
        instead=f"Make it with {optimizer}(..., fused=True): one operator for all parameters. On the CPU foreach=True saves nothing.",
        estimate=f"of parameters of at most {FEW_ELEMENTS:,} elements, less {BEGINNING} for the beginning of the fused step, Python between the "
        "operators, and for the call of each the least that an operator took in this recording; the arithmetic stays.",
        pieces=pieces,
    )


def _calling_ns(scopes: Column, pieces: Column, facts: Facts) -> float:
    """The time of these steps that is not arithmetic: Python between operators, and their calls."""
    operators = np.flatnonzero(facts.is_operator)
    calls = operators[facts.around(operators, scopes) >= 0]
    between_ns = float(facts.outside.usual_ns(pieces).sum())
    if facts.call_in_c_ns:  # which makes it longer
        between_ns = min(between_ns, IN_STEP * facts.call_in_c_ns * len(calls))
    return between_ns + facts.least_call_ns * (len(calls) - len(scopes))


def _saved_share(scopes: Column, facts: Facts) -> float:
    """How much of that the fused step saves."""
    moved = facts.find(*MOVING)
    moved = moved[facts.around(moved, scopes) >= 0]
    small = int((facts.elements(moved) <= FEW_ELEMENTS).sum())
    return max(small - BEGINNING * len(scopes), 0) / max(len(moved), 1)
