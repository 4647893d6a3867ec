"""Loops of operators on so few elements that calling them is all the work."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from ..facts import Facts
from ..kinds import combinations, repeats
from ..registry import Match, rule

if TYPE_CHECKING:
    from ...model.session import TensorInput

Column = np.ndarray[Any, np.dtype[Any]]

FEW = 1024  # elements: an operator's call takes about a microsecond, and so does adding so many
ITERATIONS = 10
LOOP = 32
INDEXING = ("aten::select",)
RECURRENT = tuple(
    f"aten::{name}_cell" for name in ("gru", "lstm", "rnn_tanh", "rnn_relu")
)  # each needs the state that the last left


@rule("indexing in a loop", needs=("record_shapes",))
def indexing_in_loop(facts: Facts) -> Iterator[Match]:
    """`for i in range(len(x)): … x[i] …`, and what is done to each piece."""
    rows = facts.unclaimed(facts.called_by_program(facts.find(*INDEXING)))
    key = combinations(facts.siblings[rows], facts.number_inputs(_tensor_and_dim, rows), facts.places(rows))
    rows = rows[repeats(key) >= ITERATIONS]
    if not len(rows):
        return
    body = _with_body(rows, facts)
    gain = _gain_of_one_call(body, facts)
    yield Match(
        rows=body,
        gain_ns=gain,
        seen=f"A tensor was indexed {facts.times(len(rows))} in loops, and what was done to the pieces was done one by one.",
        instead="If the pieces do not depend on each other, do it to the whole tensor at once, or to a slice; otherwise take it "
        "apart once with unbind().",
        estimate="the time of these calls, of Python between them and of their backward passes, less that of one call each.",
        claims=facts.with_backward(body),
        pieces=facts.outside.calling(facts.with_backward(body))[0],
    )


def _tensor_and_dim(inputs: tuple[Any, ...]) -> tuple[TensorInput, int] | None:
    return inputs[:2]


def _with_body(indexing: Column, facts: Facts) -> Column:
    """The indexing, and the operators between on few elements that are there for at least every other piece."""
    groups, first, pieces = np.unique(facts.siblings[indexing], return_index=True, return_counts=True)
    _, from_the_end = np.unique(facts.siblings[indexing[::-1]], return_index=True)
    begin, end = indexing[first], indexing[::-1][from_the_end]
    small = _small(facts)
    at = np.minimum(np.searchsorted(groups, facts.siblings[small]), len(groups) - 1)
    # the last piece's operators follow its indexing: as many rows as between the first two, at most
    slack = (end - begin) // np.maximum(pieces - 1, 1) + 1
    between = (groups[at] == facts.siblings[small]) & (small >= begin[at] - slack[at]) & (small <= end[at] + slack[at])
    small, at = small[between], at[between]
    key = combinations(facts.siblings[small], facts.session.label[small], facts.shapes(small))
    often = 2 * repeats(key) >= pieces[at]
    return facts.union(indexing, small[often])


@rule("tiny operators", needs=("record_shapes",))
def tiny_operators(facts: Facts) -> Iterator[Match]:
    """The same operator on few elements, over and over."""
    rows = _small(facts)
    key = combinations(facts.siblings[rows], facts.session.label[rows], facts.shapes(rows), facts.places(rows))
    rows = rows[repeats(key) >= LOOP]
    if not len(rows):
        return
    mean = facts.usual_ns(rows).mean()
    yield Match(
        rows=rows,
        gain_ns=_gain_of_one_call(rows, facts),
        seen=f"Operators on at most {FEW:,} elements ran {facts.times(len(rows))} in loops, {mean / 1000:.1f} us each: the call takes "
        "longer than the work.",
        instead="Do more in one call: stack the tensors and compute along a dimension, or use larger batches.",
        estimate="the time of these calls, of Python between them and of their backward passes, less that of one call each.",
        claims=facts.with_backward(rows),
        pieces=facts.outside.calling(facts.with_backward(rows))[0],
    )


def _small(facts: Facts) -> Column:
    """Operators that the program called on few elements, and that nothing explains yet."""
    rows = facts.unclaimed(facts.called_by_program(np.flatnonzero(facts.is_operator)))
    rows = rows[~facts.is_named(rows, RECURRENT)]
    work = facts.work(rows)
    return np.asarray(rows[(work > 0) & (work <= FEW)])


def _gain_of_one_call(rows: Column, facts: Facts) -> float:
    """Estimate what is saved if the calls of one operator directly inside one event were one call, and their backward passes one too.

    Python that runs from one of these calls to the next is saved with them.
    """
    key = combinations(facts.siblings[rows], facts.session.label[rows], facts.shapes(rows))
    calls = len(np.unique(key))
    whole = float(facts.usual_ns(facts.with_backward(rows)).sum())
    one_each = whole / len(rows) * calls
    _, calling = facts.outside.calling(facts.with_backward(rows))
    return max(whole + calling - one_each, 0.0)
