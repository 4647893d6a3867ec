"""Optimizers that change one parameter after the other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..facts import STEP, Facts
from ..registry import Match, rule

Column = np.ndarray[Any, np.dtype[Any]]

FUSED = tuple(f"aten::_fused_{name}_" for name in ("adagrad", "adam", "adamw", "sgd"))
# Optimizers of which the fused step is faster on the CPU. SGD's is not: its step is one to three operators a parameter.
FASTER_FUSED = ("Adam", "AdamW")


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
    in_lists = any(facts.name(row).startswith("aten::_foreach_") for row in facts.children(scopes[:1]).tolist())
    each = "for one parameter after the other" + (" inside _foreach_ operators" if in_lists else "")
    pieces = facts.outside.inside(scopes)
    calling = facts.least_call_ns * (_calls_inside(scopes, facts) - len(scopes))
    return Match(
        rows=facts.union(scopes, operators),
        gain_ns=float(facts.outside.time_ns[pieces].sum()) + calling,
        seen=f"{optimizer} made its step {facts.times(len(scopes))} by calling {len(operators) / len(scopes):,.0f} operators {each}.",
        instead=f"Make it with {optimizer}(..., fused=True): one operator for all parameters. On the CPU foreach=True saves nothing.",
        estimate="Python between these operators, and for the call of each the least that an operator took in this recording; the "
        "arithmetic stays.",
        pieces=pieces,
    )


def _calls_inside(scopes: Column, facts: Facts) -> int:
    """How many operators ran inside of these, at any depth."""
    operators = np.flatnonzero(facts.is_operator)
    return int((facts.around(operators, scopes) >= 0).sum())
