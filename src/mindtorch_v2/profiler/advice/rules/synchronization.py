"""Rules about waiting for a device, and about operators whose result has as many elements as the values say."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ...model import links, tree
from ..facts import Facts
from ..registry import Match, rule

Column = np.ndarray[Any, np.dtype[Any]]

BY_VALUES = tuple(
    f"aten::{name}"
    for name in (
        "nonzero", "masked_select", "_unique", "_unique2", "unique_dim", "unique_consecutive", "unique_dim_consecutive",
    )
)  # fmt: skip


@rule("waiting for the device")
def host_waits(facts: Facts) -> Iterator[Match]:
    """`.cpu()`, `.numpy()`, `nonzero`, `synchronize()`: nothing new is started while the host waits."""
    session = facts.session
    waits = facts.where(links.waits_for_device)
    if not len(waits):
        return
    owner = tree.parents(session, skip=("python_function", "memory", "gc", "compile"))[waits]
    while (inner := (owner >= 0) & (facts.parent[owner] >= 0) & facts.is_operator[facts.parent[owner]]).any():
        owner[inner] = facts.parent[owner[inner]]
    free = (owner < 0) | ~facts.claimed[owner]
    waits, owner = waits[free], owner[free]
    rows = np.unique(np.where(owner >= 0, owner, waits))
    yield Match(
        rows=rows,
        gain_ns=facts.time_ns(waits),
        seen=f"The host waited for the device {facts.times(len(waits))}.",
        instead="Keep results on the device, copy them with non_blocking=True, and read them once, at the end.",
        estimate="the time in the runtime's waiting calls; work that the host really needs to wait for is not gained.",
        claims=np.concatenate([rows, waits]),
    )


@rule("result sized by values")
def sized_by_values(facts: Facts) -> Iterator[Match]:
    """`x[mask]`, `nonzero`, `masked_select`, `unique`."""
    rows = facts.find(*BY_VALUES)
    if not len(rows):
        return
    # x[mask] is an aten::index with an aten::nonzero inside
    outer = rows.copy()
    while (inner := (facts.parent[outer] >= 0) & facts.is_operator[facts.parent[outer]]).any():
        outer[inner] = facts.parent[outer[inner]]
    by_program = np.isin(outer, facts.unclaimed(facts.called_by_program(np.unique(outer))))
    rows = np.unique(outer[by_program])
    if not len(rows):
        return
    backward = np.setdiff1d(facts.with_backward(rows), rows)
    yield Match(
        rows=rows,
        gain_ns=_gain_ns(rows, backward, facts),
        seen=f"Operators whose result has as many elements as the values say ran {facts.times(len(rows))}. "
        + ("Each waits for the device." if facts.has_device else "On a device each would make the host wait."),
        instead="Where a result of fixed size serves as well, use it: torch.where, masked_fill, a product with the mask, count_nonzero.",
        estimate="the time of these operators and of their backward passes, less the least that an operator on as many elements took in this "
        "recording, for each.",
        claims=facts.union(rows, backward),
    )


def _gain_ns(rows: Column, backward: Column, facts: Facts) -> float:
    """The time of operators and their backward passes, less a pass over all elements for each."""
    passes = np.concatenate([rows, facts.backward_of[backward]])
    return max(float(facts.usual_ns(np.concatenate([rows, backward])).sum() - facts.pass_ns(facts.elements(passes)).sum()), 0.0)
