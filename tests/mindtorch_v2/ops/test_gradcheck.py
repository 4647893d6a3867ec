"""Derivatives against finite differences, for every operator with a formula; needs no torch.

The samples (tests/data/op_samples.npz) were caught from PyTorch's operator database: `python tests/parity/capture.py`.
"""

import sys
from pathlib import Path

import pytest

import mindtorch_v2 as torch
from mindtorch_v2._dispatch import registry

sys.path.insert(0, str(Path(__file__).parent.parent.parent / "parity"))
import capture

SAMPLES = capture.load()

# Formulas that finite differences cannot confirm, with the reason.
NOT_BY_DIFFERENCES: dict[str, str] = {}


def differentiable(op):
    return op.formulas and not op.schema.is_inplace and op.schema.namespace == "aten"


def prepare(op, sample):
    """The arguments, and those of them to vary: what required grad, and has a formula."""
    varied = []
    targets = {name for formula in op.formulas for name in formula.targets}

    def walk(x, wanted):
        if isinstance(x, torch.Tensor):
            if wanted and x.__dict__.get("wants_grad") and x.dtype.inexact:
                t = x.double() if not x.dtype.is_complex else x.to(torch.complex128)
                t.requires_grad_(True)
                varied.append(t)
                return t
            return x
        return [walk(v, wanted) for v in x] if isinstance(x, list | tuple) else x

    return [walk(x, a.name in targets) for a, x in zip(op.schema.arguments, sample, strict=True)], varied


def run(op, sample):
    arguments, varied = prepare(op, sample)

    def function(*points):
        replaced = {id(old): new for old, new in zip(varied, points, strict=True)}

        def walk(x):
            return [walk(v) for v in x] if isinstance(x, list) else replaced.get(id(x), x)

        bound = [walk(a) for a in arguments]
        from mindtorch_v2._ops.calling import call_op

        torch.manual_seed(0)
        out = call_op(op, tuple(bound))
        outs = out if isinstance(out, list | tuple) else [out]
        kept = [t for t in outs if isinstance(t, torch.Tensor) and t.dtype.inexact and t.requires_grad]
        return tuple(kept)

    return function, tuple(varied)


CASES = [pytest.param(op, id=capture.label(op)) for op in registry.all_ops() if differentiable(op) and capture.label(op) in SAMPLES]


@pytest.mark.parametrize("op", CASES)
def test_derivative(op):
    """Holds on some sample: the others may sit on a kink or a pole, and their gradients are compared with torch's elsewhere."""
    if capture.label(op) in NOT_BY_DIFFERENCES:
        return
    error = None
    for sample in sorted(SAMPLES[capture.label(op)], key=capture._size):
        function, points = run(op, sample)
        if not all(t.isfinite().all() for t in function(*points)):
            continue
        try:
            assert torch.autograd.gradcheck(function, points, check_undefined_grad=False)
        except (RuntimeError, RuntimeWarning) as e:
            error = e
        else:
            return
    raise error or AssertionError("no sample with finite results")


def test_every_formula_has_a_sample():
    missing = {capture.label(op) for op in registry.all_ops() if differentiable(op)} - set(SAMPLES) - set(NOT_BY_DIFFERENCES)
    assert not missing, sorted(missing)
