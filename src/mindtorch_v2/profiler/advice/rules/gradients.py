"""Gradients that are filled with zeros, or copied, where they could be taken over."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from ...model import links
from ..facts import Facts
from ..outside import IN_ZERO_GRAD
from ..registry import Match, rule
from ..sizes import PASSES, VIEWS

if TYPE_CHECKING:
    from ...model.session import TensorInput

Column = np.ndarray[Any, np.dtype[Any]]

ACCUMULATE = "torch::autograd::AccumulateGrad"
ZERO_GRAD = "Optimizer.zero_grad#"
ZEROING = ("aten::zero_", "aten::fill_", "aten::_foreach_zero_")
COPYING = ("aten::copy_", "aten::clone", "aten::new_empty_strided", "aten::empty_like")


@rule("zero_grad without set_to_none")
def gradients_set_to_zero(facts: Facts) -> Iterator[Match]:
    """`zero_grad(set_to_none=False)`, `p.grad.zero_()`: the zeros are written, and then the gradient is added to them."""
    added = facts.called(facts.children(facts.find(ACCUMULATE)), ("aten::add_",))
    zeros = facts.find(*ZEROING)
    if not len(added) or not len(zeros):
        return
    around = facts.around(zeros, facts.scopes(ZERO_GRAD))
    outer = facts.parent[zeros]
    by_program = (outer < 0) | ~facts.is_operator[outer]  # rather than by aten::zeros
    of_gradients = facts.in_function(zeros, "zero_grad") | _have_shapes_of(zeros, added, facts)
    kept = by_program & ((around >= 0) | of_gradients)
    zeros, around = zeros[kept], around[kept]
    if not len(zeros):
        return
    needless = min(len(added), len(zeros))  # the first addition after each zero
    yield Match(
        rows=facts.union(zeros, added),
        gain_ns=_writing_ns(zeros, around, facts) + float(facts.usual_ns(added).mean() * needless),
        seen=f"Gradients were filled with zeros {facts.times(len(zeros))}, and the new ones added to them.",
        instead="Call zero_grad() with set_to_none=True, its default, or set p.grad = None: the new gradient is then taken as it is.",
        estimate="the time of writing the zeros, with the rest of zero_grad(), and of one addition for each.",
    )


def _writing_ns(zeros: Column, around: Column, facts: Facts) -> float:
    """The time of writing zeros, with all of the scopes around them, which do nothing else; where the tracer slows these down, with what is usual."""
    if facts.call_in_c_ns and (around >= 0).any():
        return float(facts.usual_ns(zeros).sum()) + IN_ZERO_GRAD * facts.call_in_c_ns * len(zeros)
    scopes = np.unique(around[around >= 0])
    return float(facts.usual_ns(scopes).sum() + facts.usual_ns(zeros[around < 0]).sum())


def _have_shapes_of(zeros: Column, added: Column, facts: Facts) -> Column:
    """Whether each was called on a tensor like one that a gradient was added to. Needs shapes; False without."""
    of_gradients = facts.number_inputs(_first_tensor, np.concatenate([zeros, added]))
    zeroed, gradients = of_gradients[: len(zeros)], of_gradients[len(zeros) :]
    return (zeroed >= 0) & np.isin(zeroed, gradients) & facts.is_named(zeros, ("aten::zero_",))


def _first_tensor(inputs: tuple[Any, ...]) -> TensorInput | None:
    return inputs[0] if inputs else None


@rule("gradients copied")
def gradients_copied(facts: Facts) -> Iterator[Match]:
    """A gradient that is a view, expanded, or another's too cannot become `p.grad`, and is copied."""
    accumulate = facts.find(ACCUMULATE)
    copies = facts.called(facts.children(accumulate), COPYING)
    if not len(copies):
        return
    nodes = np.unique(facts.parent[copies])
    engine = facts.parent[nodes]
    before = facts.neighbour(engine, -1)
    makers = sorted({facts.name(row).removeprefix(links.EVALUATE) for row in before[before >= 0].tolist()} - {ACCUMULATE})
    by = f" They came from {', '.join(makers)}." if makers else ""
    views = before[facts.is_named(facts.backward_of[before], VIEWS) & (before >= 0)]
    forward = facts.backward_of[views]
    views = facts.union(views, forward)
    yield Match(
        rows=facts.union(copies, views),
        gain_ns=float(facts.usual_ns(copies).sum() + facts.usual_ns(views).sum()) + _across_ns(forward, facts),
        seen=f"A parameter's gradient was copied instead of taken over {facts.times(len(nodes))}.{by}",
        instead="Keep the parameter in the layout in which the forward pass uses it: a gradient that comes transposed, expanded "
        "or shared with another parameter has to be copied.",
        estimate="the time of the copies, of the views that the gradients came through, and of what the next operator took longer than one on as "
        "many elements that lie in order, where shapes were recorded.",
    )


def _across_ns(views: Column, facts: Facts) -> float:
    """How much longer the operators just after these views took than a pass over as many elements does, which reads them in order."""
    users = facts.neighbour(views, 1)
    users = facts.called(users[users >= 0], PASSES)
    plain_ns = facts.pass_ns(facts.elements(users))
    longer_ns = facts.usual_ns(users) - plain_ns
    return float(np.maximum(longer_ns, 0)[plain_ns > 0].sum())
