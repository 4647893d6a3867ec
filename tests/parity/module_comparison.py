"""The same module in both libraries: its weights from a seed, state, printing, results and gradients; and the errors of the same call."""

from __future__ import annotations

import copy
import io
import pickle
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

import mindtorch_v2 as mt

__all__ = ["compare", "compare_errors", "compare_warnings", "compare_without_copies", "flat", "same"]

LIBRARIES = (mt, torch)


def flat(x: Any) -> list[Any]:
    """The tensors and other values of a nested result, in order."""
    if isinstance(x, dict):
        return flat(list(x.items()))
    return [v for part in x for v in flat(part)] if isinstance(x, list | tuple) else [x]


def _value(x: Any) -> Any:
    return x.detach().numpy() if isinstance(x, mt.Tensor | torch.Tensor) else x


def same(ours: Any, theirs: Any, *, exact: bool = False, rtol: float = 1e-8) -> None:
    """Assert that two results have the same values, shapes and dtypes."""
    listed = flat(ours), flat(theirs)
    assert len(listed[0]) == len(listed[1])
    for mine, other in zip(*listed, strict=True):
        a, b = _value(mine), _value(other)
        if isinstance(b, np.ndarray):
            assert a.dtype == b.dtype
            assert a.shape == b.shape
            if exact:
                np.testing.assert_array_equal(a, b)
            else:
                np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol / 100)
        else:
            assert a == b


def _text(x: Any) -> str:
    return str(x).replace("mindtorch_v2", "torch")


def _made(lib: Any, make: Callable[[Any], Any]) -> Any:
    lib.manual_seed(3)
    return make(lib)


def _arrays(shapes: Sequence[Any]) -> list[np.ndarray[Any, Any]]:
    rng = np.random.default_rng(0)
    return [rng.standard_normal(s) if isinstance(s, tuple) else np.asarray(s) for s in shapes]


def _leaves(lib: Any, arrays: list[np.ndarray[Any, Any]]) -> list[Any]:
    made = [lib.from_numpy(a.copy()) for a in arrays]
    return [t.requires_grad_() if a.dtype.kind == "f" else t for t, a in zip(made, arrays, strict=True)]


def _run(lib: Any, module: Any, call: Callable[..., Any], arrays: list[np.ndarray[Any, Any]]) -> tuple[Any, Any, Any]:
    """Results of a call, the gradients of inputs and those of parameters, for a loss in which every element counts."""
    leaves = _leaves(lib, arrays)
    lib.manual_seed(5)
    outs = flat([call(lib, module, *leaves)])
    floating = [o for o in outs if isinstance(o, lib.Tensor) and o.requires_grad]
    if floating:
        sum(
            (o * lib.arange(1.0, o.numel() + 1).reshape(o.shape).to(o.dtype) * (i + 1)).sum() for i, o in enumerate(floating)
        ).backward()
    grads = [x.grad for x in leaves]
    return outs, grads, {name: p.grad for name, p in module.named_parameters()}


def compare(
    make: Callable[[Any], Any],
    shapes: Sequence[Any],
    call: Callable[..., Any] = lambda lib, module, *inputs: module(*inputs),
    *,
    eval_mode: bool = False,
    copied: bool = True,
    pickled: bool = True,
    exact: bool = True,
) -> None:
    """Assert that `make(lib)` is the same module in both libraries, and that calls with inputs of these shapes have the same results.

    Weights are compared bit for bit, unless they are not `exact`; results and gradients in double precision, also those of copies.
    """
    modules = [_made(lib, make) for lib in LIBRARIES]
    ours, theirs = modules
    assert _text(repr(ours)) == repr(theirs)
    states = [m.state_dict() for m in modules]
    assert list(states[0]) == list(states[1])
    same(dict(states[0]), dict(states[1]), exact=exact, rtol=1e-4)
    assert [n for n, _ in ours.named_parameters()] == [n for n, _ in theirs.named_parameters()]
    assert [n for n, _ in ours.named_modules()] == [n for n, _ in theirs.named_modules()]
    for m in modules:
        m.double().train(not eval_mode)
    if not exact:
        ours.load_state_dict({name: mt.from_numpy(t.detach().numpy().copy()) for name, t in theirs.state_dict().items()})
    copies = [copy.deepcopy(ours)] if copied else []
    if copied and pickled:
        copies.append(pickle.load(io.BytesIO(pickle.dumps(ours))))
    arrays = _arrays(shapes)
    expected = _run(torch, theirs, call, arrays)
    for module in (ours, *copies):
        assert _text(repr(module)) == repr(theirs)
        same(_run(mt, module, call, arrays), expected)
    same(dict(ours.state_dict()), dict(theirs.state_dict()))


def compare_without_copies(make: Callable[[Any], Any], shapes: Sequence[Any], *args: Any, **options: Any) -> None:
    """As `compare`, for modules whose tensors are results of operators, which neither library copies."""
    compare(make, shapes, *args, copied=False, exact=False, **options)


def _error(action: Callable[[Any], Any], lib: Any) -> tuple[str, str]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            action(lib)
    except Exception as error:
        return type(error).__name__, _text(error)
    return "none", ""


def compare_errors(action: Callable[[Any], Any]) -> None:
    """Assert that a call fails in both libraries, with the same type and text."""
    theirs = _error(action, torch)
    assert theirs[0] != "none"
    assert _error(action, mt) == theirs


def compare_warnings(action: Callable[[Any], Any]) -> None:
    """Assert that a call warns in both libraries, with the same category and text."""
    found = []
    for lib in LIBRARIES:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            action(lib)
        found.append([(w.category.__name__, _text(w.message)) for w in caught])
    assert found[1]
    assert found[0] == found[1]
