"""Tensors that grow by concatenation."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any

import numpy as np

from ...model.session import TensorInput
from ..facts import Facts
from ..registry import Match, rule
from ..sizes import tensors

Column = np.ndarray[Any, np.dtype[Any]]
Kind = tuple[tuple[int, ...], str]  # shape and dtype

JOINING = ("aten::cat",)
TURNS = 10  # so many make a loop


@rule("concatenation in a loop", needs=("record_shapes",))
def concatenation_in_loop(facts: Facts) -> Iterator[Match]:
    """`acc = torch.cat([acc, x])`: all that is there is copied for each piece that is added."""
    rows = facts.find(*JOINING)
    chains = [chain for chain in _chains(rows, facts) if len(chain) >= TURNS]
    if not chains:
        return
    joins = np.sort(np.concatenate(chains))
    backward = facts.with_backward(joins)
    last = np.array([chain[-1] for chain in chains])
    stays = facts.usual_ns(facts.with_backward(last)).sum()
    yield Match(
        rows=joins,
        gain_ns=max(float(facts.usual_ns(backward).sum() - stays), 0.0),
        seen=f"A tensor grew by concatenation {facts.times(len(joins))}: each time all that was there is copied, and so the time is "
        "quadratic.",
        instead="Append the pieces to a list and call torch.cat once, after the loop. If each turn reads the whole, make the tensor in "
        "its last size before the loop and write slices of it.",
        estimate="the time of these calls and of their backward passes, less that of the last one.",
        claims=backward,
    )


def _chains(rows: Column, facts: Facts) -> list[list[int]]:
    """Calls of which each is given a tensor of the shape that the one before has made, and makes a larger one."""
    inputs, table = facts.session.inputs, facts.session.input_table
    grown: dict[
        Kind, deque[list[int]]
    ] = {}  # by what the last call of the chain made; of several that are alike, the oldest goes on
    chains = []
    for row in rows.tolist():
        number = -1 if inputs is None else inputs.item(row)
        made = _made(table[number]) if number >= 0 else None
        if made is None:
            continue
        given = [(tensor.shape, tensor.dtype) for tensor in tensors(table[number])]
        before = next((kind for kind in given if grown.get(kind) and kind != made), None)
        chain = [] if before is None else grown[before].popleft()
        if before is None:
            chains.append(chain)
        chain.append(row)
        grown.setdefault(made, deque()).append(chain)
    return chains


def _made(inputs: tuple[Any, ...]) -> Kind | None:
    """Shape and dtype of what a call of cat makes, None if it cannot be told."""
    pieces, dim = inputs[0], inputs[1] if len(inputs) > 1 else 0
    if not isinstance(pieces, list | tuple) or not isinstance(dim, int):
        return None
    # torch: tensors of shape (0,) join anything
    parts = [tensor for tensor in pieces if isinstance(tensor, TensorInput) and tensor.shape != (0,)]
    if not parts or not -len(parts[0].shape) <= dim < len(parts[0].shape):
        return None
    shape = list(parts[0].shape)
    if any(len(part.shape) != len(shape) for part in parts):
        return None
    shape[dim] = sum(part.shape[dim] for part in parts)
    return tuple(shape), parts[0].dtype
