"""Copies made again and again: to another dtype, or into another order in memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ...._checks import contiguous_strides
from ...capture.operators.call_inputs import ENUMERATED
from ...model.session import TensorInput
from ..facts import Facts
from ..kinds import combinations, repeats
from ..registry import Match, rule

Column = np.ndarray[Any, np.dtype[Any]]

AGAIN = 4  # times in a step
REORDERING = ("aten::contiguous", "aten::reshape", "aten::flatten")
CONTIGUOUS = ENUMERATED["contiguous_format"]


@rule("repeated casts", needs=("record_shapes",))
def repeated_casts(facts: Facts) -> Iterator[Match]:
    """The same kind of tensor cast to the same dtype, many times in a step."""
    rows = facts.find("aten::_to_copy")
    rows = rows[facts.of_inputs(_is_cast, rows, none=False, dtype=bool)]
    rows, gain = _again(rows, facts, within=("aten::to",))
    yield Match(
        rows=rows,
        gain_ns=gain,
        seen=f"{_which(facts)} cast to the same dtype {facts.times(len(rows))}.",
        instead=f"{_if_same(facts)}ast it once and keep the result; make tensors in the dtype in which they are used.",
        estimate=f"the time of all of these casts but one {_of_each(facts)}.",
    )


@rule("repeated copies of non-contiguous tensors", needs=("record_shapes",))
def repeated_contiguous(facts: Facts) -> Iterator[Match]:
    """`contiguous()`, `reshape` and `copy_` of a transposed, sliced or expanded tensor, many times in a step."""
    clones, copies = facts.find("aten::clone"), facts.find("aten::copy_")
    rows = facts.union(
        clones[facts.of_inputs(_clone_reorders, clones, none=False, dtype=bool)],
        copies[facts.of_inputs(_copy_reorders, copies, none=False, dtype=bool)],
    )
    rows, gain = _again(facts.unclaimed(rows), facts, within=REORDERING)
    yield Match(
        rows=rows,
        gain_ns=gain,
        seen=f"{_which(facts)} copied into another order in memory {facts.times(len(rows))}.",
        instead=f"{_if_same(facts)}all contiguous() once and keep the result, or store it in the order in which it is used.",
        estimate=f"the time of all of these copies but one {_of_each(facts)}.",
    )


def _which(facts: Facts) -> str:
    return "The same tensor was" if facts.knows_tensors else "Tensors of the same shape and strides were"


def _if_same(facts: Facts) -> str:
    return "C" if facts.knows_tensors else "If it is the same tensor, c"


def _of_each(facts: Facts) -> str:
    return "of each tensor in a step" if facts.knows_tensors else "of each kind in a step, as if a kind was one tensor"


def _again(rows: Column, facts: Facts, *, within: tuple[str, ...]) -> tuple[Column, float]:
    """Return the rows that the program called often in a step, themselves or by what made them, and the time of all but one of each kind.

    Of one kind are calls on one tensor, where that was recorded; otherwise on tensors of one shape, strides and dtype, from the same
    line and in the same module, since another module would have another tensor.
    """
    outer = np.where(facts.is_named(facts.parent[rows], within), facts.parent[rows], rows)
    rows = rows[np.isin(outer, facts.called_by_program(outer))]
    same = (facts.tensor_read(rows),) if facts.knows_tensors else (facts.places(rows), facts.module(rows))
    kind = combinations(facts.step[rows], facts.number_inputs(repr, rows), *same)
    count = repeats(kind)
    often = count >= AGAIN
    rows, count = rows[often], count[often]
    rows = np.where(facts.is_named(facts.parent[rows], within), facts.parent[rows], rows)
    return rows, float((facts.usual_ns(rows) * (1 - 1 / count)).sum())


def _is_cast(inputs: tuple[Any, ...]) -> bool:
    tensor, dtype = inputs[:2]
    return isinstance(tensor, TensorInput) and dtype is not None and dtype != ENUMERATED.get(tensor.dtype)


def _clone_reorders(inputs: tuple[Any, ...]) -> bool:
    tensor, memory_format = inputs[:2]
    return memory_format == CONTIGUOUS and isinstance(tensor, TensorInput) and not _is_contiguous(tensor)


def _copy_reorders(inputs: tuple[Any, ...]) -> bool:
    to, source = inputs[:2]
    # one element into many is filling, whatever its strides
    if not isinstance(to, TensorInput) or not isinstance(source, TensorInput) or to.shape != source.shape:
        return False
    return not _is_contiguous(source) and to.strides != source.strides


def _is_contiguous(tensor: TensorInput) -> bool:
    wanted = contiguous_strides(tensor.shape)
    return all(n == 1 or s == w for n, s, w in zip(tensor.shape, tensor.strides, wanted, strict=True))
