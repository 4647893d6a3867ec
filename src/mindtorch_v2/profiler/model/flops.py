"""Floating point operations of the calls in a session.

An operator with a formula counts for all that runs inside it, whose own counts are 0: `aten::conv2d` has the work of the
`aten::convolution` that it calls, `aten::linear`, which has no formula, leaves it to its `aten::addmm`. So counts can be added up.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from . import flop_formulas, tree
from .decomposition_flops import DECOMPOSITIONS
from .session import Session

__all__ = ["FORMULAS", "counts", "flops"]

Column = np.ndarray[Any, np.dtype[Any]]
# By the names that profiles show.
FORMULAS = {f"aten::{name}": formula for name, formula in (flop_formulas.FORMULAS | DECOMPOSITIONS).items()}


def flops(name: str, inputs: Sequence[Any]) -> int:
    """Return the number of operations that a call of `name` takes; 0 when it is not known."""
    formula = FORMULAS.get(name)
    if formula is None:
        return 0
    try:
        return int(formula(*inputs))
    except (ArithmeticError, AttributeError, LookupError, StopIteration, TypeError, ValueError):
        return 0  # a call that failed is recorded too, with arguments that no formula is made for


def counts(session: Session) -> Column:
    """The operations of each event, those inside of a counted one left out."""
    own = np.zeros(len(session), np.int64)
    if session.inputs is None or not session.info.with_flops or not len(session):
        return own
    size = len(session.input_table) + 1
    calls, which = np.unique(session.label.astype(np.int64) * size + (session.inputs + 1), return_inverse=True)
    known = [_of_call(session, *divmod(call, size)) for call in calls.tolist()]
    own = np.array(known, np.int64)[which]
    own[tree.inside(session, own > 0, tree.parents(session))] = 0
    return own


def _of_call(session: Session, label: int, number: int) -> int:
    """Operations of an operator with the inputs of this number, counted from 1; 0 stands for none."""
    return flops(session.labels[label].name, session.input_table[number - 1]) if number else 0
