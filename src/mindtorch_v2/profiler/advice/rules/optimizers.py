"""Optimizers that change one parameter after the other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..facts import STEP, Facts
from ..registry import Match, rule
from ..text import time

Column = np.ndarray[Any, np.dtype[Any]]

FUSED = tuple(f"aten::_fused_{name}_" for name in ("adagrad", "adam", "adamw", "sgd"))
# Optimizers of which the fused step is faster on the CPU. SGD's is not: its step is one to three operators a parameter.
FASTER_FUSED = ("Adam", "AdamW")
# What fusing saved of Adam's step, by the elements of a parameter, of 100 parameters of one size; and what the call of the fused
# operator takes, in operators on one element: 100 us.
SAVED = ((512, 0.6), (1500, 0.45), (2048, 0.3), (16384, 0.2), (1 << 62, 0.12))
CALL = 120


@rule("optimizer step not fused")
def optimizer_not_fused(facts: Facts) -> Iterator[Match]:
    """Adam with its operators called for each parameter, alone (the default here) or through `_foreach_*`."""
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
    gain_ns, estimate = _saved(scopes, operators, facts)
    in_lists = any(facts.name(row).startswith("aten::_foreach_") for row in facts.children(scopes[:1]).tolist())
    each = "for one parameter after the other" + (" inside _foreach_ operators" if in_lists else "")
    return Match(
        rows=facts.union(scopes, operators),
        gain_ns=gain_ns,
        seen=f"{optimizer} made its step {facts.times(len(scopes))} by calling {len(operators) / len(scopes):,.0f} operators {each}.",
        instead=f"Make it with {optimizer}(..., fused=True): one operator for all parameters. On the CPU foreach=True saves nothing.",
        estimate=estimate,
    )


def _saved(scopes: Column, operators: Column, facts: Facts) -> tuple[float, str]:
    """The time that fusing saves of these steps, and how that is known."""
    time_ns = float(facts.usual_ns(operators).sum())
    changes, counts = (rows[facts.around(rows, scopes) >= 0] for rows in (facts.find("aten::addcdiv_"), facts.find("aten::add_")))
    call_ns = CALL * float(facts.usual_ns(counts).min(initial=1000))  # each parameter has one that counts its steps
    elements = facts.elements(changes)
    if elements.any():
        share = np.array([saved for _, saved in SAVED])[np.searchsorted([size for size, _ in SAVED], elements)]
        weight = facts.usual_ns(changes)
        saved = float((share * weight).sum() / max(weight.sum(), 1))
        how = "which is what was measured for parameters of these sizes"
    else:
        saved, how = SAVED[-1][1], "the least that was measured; with record_shapes=True it is told by sizes"
    gain_ns = time_ns * saved - call_ns * len(scopes)
    return gain_ns, f"{saved:.0%} of these operators' time, less {time(call_ns)} a step for the fused operator, {how}."
