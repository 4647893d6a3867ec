"""First and second gradients of one overload against torch's, in double precision."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import opinfo
import torch
from registry_arguments import Arguments, Sample, both, call_ours, call_theirs
from samples import INVARIANTS

import mindtorch_v2 as mt
from mindtorch_v2._dispatch.op import Op

__all__ = ["compare"]

# Compared in the sample's own precision: arguments that are results of the forward pass would not fit the others when widened.
NARROW = ("native_layer_norm_backward", "native_batch_norm_backward")

Require = Callable[[int, str], bool]


def compare(op: Op, theirs: Any, sample: Sample, report: Any) -> None:
    """Gradients of every floating argument: of all at once where torch can, else of one argument at a time."""
    wide = op.name not in NARROW and _accepts(theirs, both(op, sample, wide=True)[1])
    if not _inexact(sample):
        return
    if not _compare(op, theirs, sample, wide, lambda i, name: True, report):
        for at in range(len(op.schema.arguments)):
            if _inexact(sample[at : at + 1]):
                _compare(op, theirs, sample, wide, lambda i, name, at=at: i == at, report)


def _accepts(theirs: Any, arguments: Arguments) -> bool:
    try:
        call_theirs(theirs, arguments)
    except Exception:
        return False
    return True


def _inexact(x: Any) -> bool:
    if isinstance(x, mt.Tensor):
        return bool(x.dtype.inexact)
    return isinstance(x, list | tuple) and any(_inexact(v) for v in x)


def _compare(op: Op, theirs: Any, sample: Sample, wide: bool, require: Require, report: Any) -> bool:
    """Whether torch could run forward and backward; what differs goes to the report."""
    from registry_compare import assert_close, describe

    ours_in, theirs_in = both(op, sample, wide=wide, grad=require)
    where = describe(sample)
    mine, his = _outcome(lambda: call_ours(op, ours_in)), _outcome(lambda: call_theirs(theirs, theirs_in))
    with report.checking("graph", where):
        _assert_same_failure(mine, his)
        if not isinstance(his, Exception):
            _assert_same_graph([mine, ours_in.tensors], [his, theirs_in.tensors])
    if isinstance(his, Exception):
        return False
    if isinstance(mine, Exception):
        return True
    random = _Random()
    determined = INVARIANTS.get(op.name, lambda results: results)
    mine = _differentiable(determined([mine, ours_in.written]), mt)
    his = _differentiable(determined([his, theirs_in.written]), torch)
    if not his or len(mine) != len(his):
        return True
    cotangents = [random.like(t) for t in his]
    mine, his = (
        _outcome(lambda library=library, result=result, args=args: _first(library, result, args.leaves, cotangents))
        for library, result, args in ((mt, mine, ours_in), (torch, his, theirs_in))
    )
    with report.checking("gradient", where):
        _assert_same_failure(mine, his)
        if not isinstance(his, Exception):
            _assert_same_gradients(mine[0], his[0], assert_close)
    if isinstance(his, Exception):
        return False
    if isinstance(mine, Exception) or not any(g is not None and g.requires_grad for g in his[0]):
        return True
    weights = [None if g is None else random.like(g) for g in his[0]]
    mine, his = (
        _outcome(lambda library=library, grads=grads, roots=roots, args=args: _second(library, grads, roots + args.leaves, weights))
        for library, (grads, roots), args in ((mt, mine, ours_in), (torch, his, theirs_in))
    )
    with report.checking("second", where):
        _assert_same_failure(mine, his)
        if not isinstance(his, Exception):
            _assert_same_gradients(mine, his, assert_close)
    return True


def _outcome(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except Exception as error:
        return error


def _assert_same_failure(ours: Any, theirs: Any) -> None:
    from registry_compare import first_words

    if isinstance(theirs, Exception):
        assert isinstance(ours, Exception), f"no error instead of {first_words(theirs)}"
        assert type(ours) is type(theirs), f"{first_words(ours)} instead of {first_words(theirs)}"
    elif isinstance(ours, Exception):
        raise AssertionError(first_words(ours)) from ours


def _assert_same_graph(ours: Any, theirs: Any) -> None:
    """Which results require grad, and the names of their nodes."""
    for i, (x, y) in enumerate(zip(opinfo.flatten(ours), opinfo.flatten(theirs), strict=True)):
        if isinstance(y, torch.Tensor):
            assert x.requires_grad == y.requires_grad, f"tensor {i}: requires_grad {x.requires_grad} instead of {y.requires_grad}"
            names = [None if t.grad_fn is None else t.grad_fn.name() for t in (x, y)]
            assert names[0] == names[1], f"tensor {i}: node {names[0]} instead of {names[1]}"


class _Random:
    """Tensors' weights, the same for both libraries."""

    def __init__(self) -> None:
        self.rng = np.random.default_rng(0)

    def like(self, t: torch.Tensor) -> np.ndarray[Any, Any]:
        drawn = self.rng.uniform(0.5, 1.5, tuple(t.shape)) * self.rng.choice([-1, 1], tuple(t.shape))
        if t.is_complex():
            drawn = drawn + 1j * self.rng.uniform(-1, 1, tuple(t.shape))
        kind = str(t.dtype).removeprefix("torch.")
        return np.asarray(drawn).astype("float32" if kind == "bfloat16" else kind)


def _differentiable(results: Any, library: Any) -> list[Any]:
    """The distinct tensors that require grad."""
    found = {id(t): t for t in opinfo.flatten(results) if isinstance(t, library.Tensor) and t.requires_grad}
    return list(found.values())


def _first(library: Any, outputs: list[Any], leaves: list[Any], cotangents: list[Any]) -> Any:
    """Gradients of the leaves, and the cotangents, which require grad too."""
    roots = [library.from_numpy(c.copy()).to(t.dtype).requires_grad_(True) for c, t in zip(cotangents, outputs, strict=True)]
    return library.autograd.grad(outputs, leaves, roots, allow_unused=True, create_graph=True), roots


def _second(library: Any, grads: Any, inputs: list[Any], weights: list[Any]) -> Any:
    """Gradients of a contraction of the first gradients."""
    pairs = [
        (g, library.from_numpy(w.copy()).to(g.dtype))
        for g, w in zip(grads, weights, strict=True)
        if g is not None and g.requires_grad
    ]
    return library.autograd.grad([g for g, _ in pairs], inputs, [w for _, w in pairs], allow_unused=True)


def _assert_same_gradients(ours: Any, theirs: Any, assert_close: Any) -> None:
    assert len(ours) == len(theirs)
    for i, (x, y) in enumerate(zip(ours, theirs, strict=True)):
        if x is None or y is None:
            assert x is None or not x._array.any(), f"{i}: a gradient where torch has none"
            assert y is None or not y.any(), f"{i}: no gradient where torch has one"
            continue
        try:
            assert_close(x.detach(), y.detach(), GRADIENT_PRECISION)
        except AssertionError as error:
            raise AssertionError(f"gradient {i}: {error}") from None
        assert x.requires_grad == y.requires_grad, f"gradient {i}: requires_grad {x.requires_grad} instead of {y.requires_grad}"


GRADIENT_PRECISION = 1e3  # roundings add up over the operators of a formula: 2e-11 in double precision
