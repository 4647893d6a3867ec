"""Runs function transforms over PyTorch's own operator database.

    python tests/parity/transforms.py                every operator, one line each that is not right
    python tests/parity/transforms.py add sort -v    some operators, with the first failure in full

For each operator: `vmap` against one call for each sample, `vmap` of gradients against the same, several gradients
at once against one after the other, and `jvp` against torch's.
"""

from __future__ import annotations

import argparse
import random
import traceback
import warnings
from typing import Any

import numpy as np
import opinfo
import torch

import mindtorch_v2 as mt

# Operators whose results are no function of their arguments, or that read values in Python, as in torch.
NOT_MAPPED = frozenset(
    """
    bernoulli cauchy empty empty_like empty_permuted empty_strided exponential geometric log_normal multinomial new_empty new_empty_strided
    normal normal_in_place normal_number_mean poisson rand_like randint randint_like randn randn_like uniform nn_functional_dropout
    nn_functional_dropout2d nn_functional_dropout3d nn_functional_alpha_dropout nn_functional_feature_alpha_dropout_with_train
    nn_functional_feature_alpha_dropout_without_train nn_functional_rrelu nn_functional_fractional_max_pool2d
    nn_functional_fractional_max_pool3d pca_lowrank svd_lowrank bfloat16 resize_ resize_as_
    argwhere nonzero masked_select unique unique_consecutive equal allclose item tolist bincount histc histogramdd histogram combinations
    repeat_interleave linalg_lstsq
    """.split()
)


def _tensors(tree: Any) -> list[Any]:
    return [t for t in mt.utils._pytree.tree_leaves(tree) if isinstance(t, mt.Tensor)]


def _moved(t: Any) -> Any:
    """Another tensor like this one, in the domain of whatever takes this one."""
    return t.detach() * 1.01 if t.dtype.is_floating_point or t.dtype.is_complex else t


def _float_only(result: Any) -> list[Any]:
    return [t for t in _tensors(result) if t.dtype.is_floating_point or t.dtype.is_complex]


def _same(got: list[Any], wanted: list[Any]) -> None:
    assert len(got) == len(wanted), f"{len(got)} results instead of {len(wanted)}"
    for a, b in zip(got, wanted, strict=True):
        assert a.dtype is b.dtype, f"{a.dtype} instead of {b.dtype}"
        assert a.shape == b.shape, f"{tuple(a.shape)} instead of {tuple(b.shape)}"
        x, y = a.detach().resolve_conj().resolve_neg()._array, b.detach().resolve_conj().resolve_neg()._array
        if x.dtype.kind in "fc":
            largest = float(np.abs(y[np.isfinite(y)]).max(initial=0.0))
            np.testing.assert_allclose(x, y, rtol=1e-4, atol=max(1e-5, 1e-5 * largest), equal_nan=True)
        else:
            np.testing.assert_array_equal(x, y)


class Case:
    """One sample of an operator as a function of its tensors."""

    def __init__(self, ours: Any, sample: Any) -> None:
        args, kwargs, _ = opinfo.convert_sample(sample)
        leaves, self.spec = mt.utils._pytree.tree_flatten((tuple(args), kwargs))
        self.leaves = [t.detach() if isinstance(t, mt.Tensor) else t for t in leaves]
        self.at = [i for i, t in enumerate(self.leaves) if isinstance(t, mt.Tensor)]
        self.ours = ours
        self.process = opinfo.rebind(sample.output_process_fn_grad)

    @property
    def tensors(self) -> list[Any]:
        return [self.leaves[i] for i in self.at]

    def __call__(self, *tensors: Any) -> Any:
        leaves = list(self.leaves)
        for i, t in zip(self.at, tensors, strict=True):
            leaves[i] = t
        args, kwargs = mt.utils._pytree.tree_unflatten(leaves, self.spec)
        return tuple(_tensors(self.process(self.ours(*args, **kwargs))))


def check_vmap(case: Case) -> None:
    """A batch of all tensors in front, and one of the first alone at the end."""
    tensors = case.tensors
    others = [_moved(t) for t in tensors]
    batches = [mt.stack([a, b]) for a, b in zip(tensors, others, strict=True)]
    _compare(case, batches, [0] * len(batches))
    _compare(case, [mt.stack([tensors[0], others[0]], -1), *tensors[1:]], [-1, *[None] * (len(tensors) - 1)])


def _compare(function: Any, batches: list[Any], dims: list[Any]) -> None:
    samples = [
        function(*[t if d is None else t.select(d, i).clone() for t, d in zip(batches, dims, strict=True)]) for i in range(2)
    ]
    wanted = [mt.stack(list(column)) for column in zip(*samples, strict=True)]
    _same(list(mt.vmap(function, tuple(dims))(*batches)), wanted)


def check_gradients(case: Case) -> None:
    """Gradients of each sample, under `vmap`."""
    tensors = case.tensors
    inexact = [i for i, t in enumerate(tensors) if t.dtype.is_floating_point]
    if not inexact or not _float_only(case(*tensors)):
        return

    def gradient(*xs: Any) -> Any:
        def loss(*chosen: Any) -> Any:
            given = list(xs)
            for i, t in zip(inexact, chosen, strict=True):
                given[i] = t
            total = 0
            for out in case(*given):
                if out.dtype.is_floating_point or out.dtype.is_complex:
                    weights = mt.arange(1, out.numel() + 1).reshape(out.shape).to(out.dtype)
                    total = total + (mt.view_as_real(out) if out.is_complex() else out * weights).sum()
            return total

        return mt.func.grad(loss, tuple(range(len(inexact))))(*[xs[i] for i in inexact])

    try:
        gradient(*tensors)
    except (RuntimeError, NotImplementedError):
        return  # not differentiable at all
    batches = [mt.stack([t, _moved(t)]) for t in tensors]
    _compare(gradient, batches, [0] * len(batches))


def _differentiated(case: Case) -> tuple[list[Any], list[Any]]:
    """Leaves of which results are differentiable, and these results: all leaves, or the first where not all may be differentiated."""
    floating = [i for i, t in enumerate(case.tensors) if t.dtype.is_floating_point]
    for chosen in (floating, floating[:1]):
        leaves = [t.clone().requires_grad_(i in chosen) for i, t in enumerate(case.tensors)]
        try:
            outs = [t for t in case(*leaves) if t.requires_grad]
        except RuntimeError:
            continue
        return [leaves[i] for i in chosen], outs
    return [], []


def check_batched_gradients(case: Case) -> None:
    """Several gradients of the results at once, against one backward pass for each."""
    inputs, outs = _differentiated(case)
    if not outs:
        return
    grads = [[(mt.arange(i + 1, out.numel() + i + 1) % 7 - 2).reshape(out.shape).to(out.dtype) for i in range(2)] for out in outs]

    def backward(given: list[Any], batched: bool) -> Any:
        return mt.autograd.grad(outs, inputs, given, retain_graph=True, allow_unused=True, is_grads_batched=batched)

    try:
        apart = [backward([g[i] for g in grads], False) for i in range(2)]
    except (RuntimeError, NotImplementedError):
        return  # not differentiable at all
    wanted = [mt.stack([a, b]) for a, b in zip(*apart, strict=True) if a is not None]
    _same([t for t in backward([mt.stack(g) for g in grads], True) if t is not None], wanted)


def check_jvp(op: Any, case: Case, sample: Any) -> None:
    """Derivatives carried forward, against torch's."""
    leaves, spec = torch.utils._pytree.tree_flatten((sample.input, tuple(sample.args), dict(sample.kwargs)))
    at = [i for i, t in enumerate(leaves) if isinstance(t, torch.Tensor)]
    floating = [i for i in at if leaves[i].dtype.is_floating_point]
    if not floating:
        return

    def theirs(*chosen: Any) -> Any:
        given = [t.detach() if isinstance(t, torch.Tensor) else t for t in leaves]
        for i, t in zip(floating, chosen, strict=True):
            given[i] = t
        first, args, kwargs = torch.utils._pytree.tree_unflatten(given, spec)
        result = sample.output_process_fn_grad(op.op(first, *args, **kwargs))
        return tuple(t for t in torch.utils._pytree.tree_leaves(result) if isinstance(t, torch.Tensor))

    rng = np.random.default_rng(0)
    tangents = [rng.standard_normal(tuple(leaves[i].shape)).astype(np.float32) for i in floating]
    primals = tuple(leaves[i].detach().clone() for i in floating)
    try:
        _, wanted = torch.func.jvp(theirs, primals, tuple(torch.from_numpy(t.copy()) for t in tangents))
    except Exception:
        return  # torch has no forward mode here

    def ours(*chosen: Any) -> Any:
        given = list(case.tensors)
        for i, t in zip(floating, chosen, strict=True):
            given[at.index(i)] = t
        return case(*given)

    own = tuple(case.tensors[at.index(i)] for i in floating)
    _, got = mt.func.jvp(ours, own, tuple(mt.from_numpy(t.copy()) for t in tangents))
    opinfo.assert_same(list(got), list(wanted), 1e-3, 1e-4)


def failures(name: str, limit: int = 3) -> dict[str, str]:
    """What is wrong with one operator, by kind."""
    found: dict[str, str] = {}
    for op in opinfo._database():
        if op.formatted_name != name:
            continue
        try:
            ours = opinfo.our_function(op)
        except opinfo.MissingError:
            return {}
        random.seed(0)
        np.random.seed(0)
        torch.manual_seed(0)
        opinfo._normwise = any(name.startswith(n) for n in opinfo.NORMWISE)
        samples = list(op.sample_inputs("cpu", torch.float32, requires_grad=False))
        step = max(1, len(samples) // limit)
        for sample in samples[::step][:limit]:
            _check_sample(op, ours, sample, found)
    return found


def _check_sample(op: Any, ours: Any, sample: Any, found: dict[str, str]) -> None:
    try:
        case = Case(ours, sample)
        results = case(*case.tensors)
    except Exception:
        return  # compared elsewhere
    if not case.tensors or not results:
        return
    checks = {"vmap": lambda: check_vmap(case), "gradients": lambda: check_gradients(case)}
    checks["batched gradients"] = lambda: check_batched_gradients(case)
    if op.supports_autograd:
        checks["jvp"] = lambda: check_jvp(op, case, sample)
    for kind, check in checks.items():
        if kind in found or (kind != "jvp" and op.formatted_name in NOT_MAPPED):
            continue
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                check()
        except Exception:
            found[kind] = f"{opinfo.describe(sample)}\n{traceback.format_exc(limit=-6)}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*")
    parser.add_argument("-v", action="store_true")
    given = parser.parse_args()
    for name in given.names or opinfo.names():
        for kind, text in failures(name).items():
            print(f"{name}: {kind}: {text if given.v else text.strip().splitlines()[-1][:180]}", flush=True)


if __name__ == "__main__":
    main()
