"""Runs PyTorch's own operator database against this package.

    python tests/parity/opinfo.py                    every operator, one line each that is not wholly right
    python tests/parity/opinfo.py add nn.functional.relu -v     some operators, with the first failure of each in full

An operator is wholly right when every float32 sample has torch's values, dtypes and gradients.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import dataclasses
import functools
import math
import multiprocessing
import random
import traceback
import types
import warnings
from typing import Any

import numpy as np
import torch

import mindtorch_v2 as mt

RTOL, ATOL = 1e-5, 1e-5
GRAD_RTOL, GRAD_ATOL = 1e-4, 1e-5
# LAPACK and FFT libraries are accurate relative to the largest element of a result, not to each element; so are long sums of
# products that cancel (of conv3d's samples, torch is 1.4e-4 from double precision and this package 8e-5)
NORMWISE = ("nn_functional_conv", "nn_functional_grid_sample", "grid_sampler", "linalg_", "fft_", "cholesky", "lu", "matrix_exp", "ormqr",
            "pinverse", "qr", "svd", "stft", "istft", "inverse")  # fmt: skip


@dataclasses.dataclass
class Outcome:
    name: str
    samples: int = 0
    missing: bool = False
    value_failures: list[str] = dataclasses.field(default_factory=list)
    grad_failures: list[str] = dataclasses.field(default_factory=list)
    gradgrad_failures: list[str] = dataclasses.field(default_factory=list)
    error_failures: list[str] = dataclasses.field(default_factory=list)
    message_failures: list[str] = dataclasses.field(default_factory=list)
    errors: int = 0

    @property
    def right(self) -> bool:
        return not self.missing and self.samples > 0 and not self.value_failures and not self.grad_failures

    @property
    def reason(self) -> str:
        if self.missing:
            return "not there"
        if self.value_failures:
            return f"values, {len(self.value_failures)} of {self.samples} samples: {self.value_failures[0].splitlines()[-1][:150]}"
        if self.grad_failures:
            return f"gradients, {len(self.grad_failures)} of {self.samples} samples: {self.grad_failures[0].splitlines()[-1][:150]}"
        return "" if self.samples else "no samples"


def names() -> list[str]:
    return sorted({op.formatted_name for op in _database()})


@functools.cache
def _database() -> list[Any]:
    from torch.testing._internal import common_utils
    from torch.testing._internal.common_methods_invocations import op_db
    from torch.testing._internal.opinfo import core

    # Before each sample torch seeds devices that are not there, which formats the Python stack three times, and before each operator's
    # it looks through that stack for the test that runs: half of the time of these tests.
    for devices in (torch.cuda, torch.xpu, torch.mtia):
        devices.manual_seed_all = lambda seed: None
    common_utils.extract_test_fn = core.extract_test_fn = lambda: None
    return [op for op in op_db if torch.float32 in op.dtypes]


# --- from torch to here ---------------------------------------------------------------------------------------------


def to_numpy(t: torch.Tensor) -> np.ndarray:
    t = t.detach().resolve_conj().resolve_neg()
    if t._is_zerotensor():
        t = t.clone()
    if t.dtype is torch.bfloat16:
        import ml_dtypes

        return t.view(torch.int16).numpy().view(ml_dtypes.bfloat16)
    return t.numpy()


class _Shared:
    """What one sample's tensors share: the same object converts to one object, the same storage to one storage."""

    objects: dict[int, Any] = {}
    storages: dict[int, Any] = {}

    @classmethod
    def clear(cls) -> None:
        cls.objects, cls.storages = {}, {}


def _from_shared(x: torch.Tensor) -> Any:
    """A tensor over a storage that another argument uses too, or of which it is a part; None where neither is so."""
    storage = x.untyped_storage()
    whole = _Shared.storages.get(storage.data_ptr())
    if not x.numel() or x.is_conj() or x.is_neg() or x.dtype is torch.bfloat16:
        return None
    if whole is None:
        if storage.nbytes() == x.numel() * x.element_size() or any(s == 0 for s in x.stride()):
            return None
        flat = torch.empty(0, dtype=x.dtype).set_(storage)
        whole = _Shared.storages[storage.data_ptr()] = mt.from_numpy(flat.numpy().copy())
    if whole.dtype is not getattr(mt, str(x.dtype).removeprefix("torch.")) or whole.storage_offset():
        return None
    made = whole.as_strided(tuple(x.shape), x.stride(), x.storage_offset())
    made._base = None
    return made


def _with_strides(made: Any, x: torch.Tensor) -> Any:
    """The copy with the strides of `x` also along dimensions of one element or none, which NumPy makes anew."""
    same = all(a == b for a, b, n in zip(made.stride(), x.stride(), x.shape) if n > 1)
    if made.stride() == x.stride() or (x.numel() and not same):
        return made
    made = made.as_strided(tuple(x.shape), x.stride())
    made._base = None
    return made


def convert(x: Any, leaves: list[Any] | None = None) -> Any:
    """A torch object as ours; tensors that require grad are noted in `leaves` with their converted twin."""
    if isinstance(x, torch.Tensor):
        if x.layout is not torch.strided:
            raise UnsupportedError(f"layout {x.layout}")
        if id(x) in _Shared.objects:
            made = _Shared.objects[id(x)]
            if x.requires_grad and leaves is not None:
                leaves.append((x, made))
            return made
        array = to_numpy(x)
        shared = _from_shared(x)
        if shared is not None:
            made = shared
        elif array.size and 0 in array.strides and any(s == 0 and n > 1 for s, n in zip(array.strides, array.shape)):
            made = convert_expanded(array)
        else:
            made = _with_strides(mt.from_numpy(np.array(array, copy=True, order="K")), x)
            if not x.storage_offset():
                _Shared.storages.setdefault(x.untyped_storage().data_ptr(), made.detach())
        _Shared.objects[id(x)] = made
        if x.requires_grad:
            made.requires_grad = True
            if leaves is not None:
                leaves.append((x, made))
        return made
    if isinstance(x, torch.Size):
        return mt.Size(x)
    if isinstance(x, torch.dtype):
        return getattr(mt, str(x).removeprefix("torch."))
    if isinstance(x, torch.device):
        return mt.device(str(x))
    if isinstance(x, torch.memory_format | torch.layout):
        return getattr(mt, str(x).removeprefix("torch."))
    if isinstance(x, torch.Generator):
        return mt.Generator().manual_seed(x.initial_seed())
    if isinstance(x, list):
        return [convert(v, leaves) for v in x]
    if type(x) is tuple:
        return tuple(convert(v, leaves) for v in x)
    if isinstance(x, dict):
        return {k: convert(v, leaves) for k, v in x.items()}
    if isinstance(x, slice):
        return slice(convert(x.start), convert(x.stop), convert(x.step))
    if x is torch.strided:
        return mt.strided
    if callable(x) and not isinstance(x, type):
        return rebind(x)
    return x


def convert_sample(sample: Any) -> tuple[list[Any], dict[str, Any], list[Any]]:
    """A sample's arguments as ours, and pairs of those that require grad: torch's tensor and its twin."""
    pairs: list[Any] = []
    _Shared.clear()
    args = [convert(sample.input, pairs), *convert(tuple(sample.args), pairs)]
    return args, convert(sample.kwargs, pairs), pairs


def convert_expanded(array: np.ndarray) -> Any:
    index = tuple(slice(0, 1) if s == 0 else slice(None) for s in array.strides)
    return mt.from_numpy(array[index].copy()).expand(array.shape)


def rebind(function: Any) -> Any:
    """A helper of torch's test code, with `torch` meaning this package."""
    if isinstance(function, types.FunctionType):
        module = function.__module__ or ""
        if module.startswith("torch.testing") or function.__name__ == "<lambda>":
            space = dict(function.__globals__)
            space["torch"] = mt
            for key in ("F",):
                if key in space:
                    space[key] = mt.nn.functional
            if "wrapper_set_seed" in space:
                space["wrapper_set_seed"] = _call_seeded
            cells = function.__closure__
            if cells is not None:
                cells = tuple(types.CellType(rebind(c.cell_contents)) for c in cells)
            clone = types.FunctionType(function.__code__, space, function.__name__, function.__defaults__, cells)
            clone.__kwdefaults__ = function.__kwdefaults__
            return clone
    if isinstance(function, torch.nn.Module):
        return _lookup("nn." + type(function).__name__)()
    path = _public_path(function)
    return function if path is None else _lookup(path)


def _call_seeded(function: Any, *args: Any, **kwargs: Any) -> Any:
    """torch's tests seed its generator before each call of a random operator."""
    mt.manual_seed(42)
    return function(*args, **kwargs)


def _public_path(function: Any) -> str | None:
    name = getattr(function, "__name__", None)
    if name is None:
        return None
    for where in ("torch", "torch.nn.functional", "torch.linalg", "torch.fft", "torch.special", "torch.Tensor"):
        owner = functools.reduce(getattr, where.split(".")[1:], torch)
        if getattr(owner, name, None) is function:
            return ".".join([*where.split(".")[1:], name])
    return None


class UnsupportedError(Exception):
    pass


class MissingError(Exception):
    pass


def _lookup(path: str) -> Any:
    found: Any = mt
    for part in path.split("."):
        try:
            found = getattr(found, part)
        except AttributeError:
            raise MissingError(path) from None
    return found


def our_function(op: Any) -> Any:
    function = op.op
    if isinstance(function, types.FunctionType) and (
        (function.__module__ or "").startswith("torch.testing") or function.__name__ == "<lambda>"
    ):
        return rebind(function)
    if isinstance(function, functools.partial):
        return functools.partial(rebind(function.func), *function.args, **function.keywords)
    path = _public_path(function)
    for candidate in [path, op.name.removeprefix("torch."), "Tensor." + op.name, "ops.aten." + op.name]:
        if candidate is not None:
            with contextlib.suppress(MissingError):
                return _lookup(candidate)
    raise MissingError(op.name)


# --- comparing ------------------------------------------------------------------------------------------------------


def flatten(x: Any) -> list[Any]:
    if isinstance(x, torch.Tensor | mt.Tensor):
        return [x]
    if isinstance(x, list | tuple):
        return [leaf for v in x for leaf in flatten(v)]
    if isinstance(x, dict):
        return [leaf for v in x.values() for leaf in flatten(v)]
    return [x]


_normwise = False


def assert_same(ours: Any, theirs: Any, rtol: float, atol: float) -> None:
    a, b = flatten(ours), flatten(theirs)
    assert len(a) == len(b), f"{len(a)} results instead of {len(b)}"
    for x, y in zip(a, b, strict=True):
        if not isinstance(y, torch.Tensor):
            assert not isinstance(x, mt.Tensor), f"a tensor instead of {type(y).__name__}"
            if isinstance(y, float):
                assert x == y or math.isclose(x, y, rel_tol=rtol, abs_tol=atol) or (math.isnan(x) and math.isnan(y)), (
                    f"{x} instead of {y}"
                )
            elif isinstance(y, torch.dtype | torch.Size | torch.device):
                assert str(x) == str(y), f"{x} instead of {y}"
            else:
                assert x == y, f"{x} instead of {y}"
            continue
        assert isinstance(x, mt.Tensor), f"{type(x).__name__} instead of a tensor"
        assert str(x.dtype) == str(y.dtype), f"dtype {x.dtype} instead of {y.dtype}"
        assert tuple(x.shape) == tuple(y.shape), f"shape {tuple(x.shape)} instead of {tuple(y.shape)}"
        want = to_numpy(y)
        got = x.detach().resolve_conj().resolve_neg()._array
        if want.dtype.kind in "fc":
            largest = np.abs(want[np.isfinite(want)]).max(initial=0.0) if _normwise else 0.0
            np.testing.assert_allclose(got, want, rtol=rtol, atol=max(atol, rtol * float(largest)), equal_nan=True)
        elif want.dtype.kind == "V" or want.dtype.name == "bfloat16":
            np.testing.assert_allclose(got.astype(np.float32), want.astype(np.float32), rtol=1e-2, atol=1e-2)
        else:
            np.testing.assert_array_equal(got, want)


def _weights(tensors: list[Any], library: Any) -> list[Any]:
    rng = np.random.default_rng(0)
    made = []
    for t in tensors:
        w = np.asarray(rng.uniform(0.5, 1.5, tuple(t.shape)), np.float32)
        dtype = str(t.dtype).removeprefix("torch.")
        made.append(library.from_numpy(w) if dtype == "float32" else library.from_numpy(w).to(getattr(library, dtype)))
    return made


def _differentiable(result: Any, library: Any) -> list[Any]:
    return [t for t in flatten(result) if isinstance(t, library.Tensor) and t.requires_grad]


def gradients(result: Any, leaves: list[Any], library: Any, *, second: bool) -> list[Any]:
    outputs = _differentiable(result, library)
    if not outputs or not leaves:
        return []
    grads = library.autograd.grad(outputs, leaves, _weights(outputs, library), allow_unused=True, create_graph=second)
    if not second:
        return list(grads)
    outputs = [g for g in grads if g is not None and g.requires_grad]
    if not outputs:
        return []
    return list(library.autograd.grad(outputs, leaves, _weights(outputs, library), allow_unused=True))


def _assert_same_grads(ours: list[Any], theirs: list[Any]) -> None:
    assert len(ours) == len(theirs), f"{len(ours)} gradients instead of {len(theirs)}"
    for x, y in zip(ours, theirs, strict=True):
        if y is None or x is None:
            assert x is None or not x._array.any(), "a gradient where torch has none"
            assert y is None or not y.any(), "no gradient where torch has one"
            continue
        assert_same(x, y, GRAD_RTOL, GRAD_ATOL)


def run_one(op: Any, *, second: bool = True, errors: bool = True, limit: int = 0) -> Outcome:
    """Compare one operator of the database over all of its samples."""
    outcome = Outcome(op.formatted_name)
    try:
        ours = our_function(op)
    except MissingError:
        outcome.missing = True
        return outcome
    # the same samples in every run, whatever ran before
    random.seed(0)
    np.random.seed(0)
    torch.manual_seed(0)
    samples = list(op.sample_inputs("cpu", torch.float32, requires_grad=op.supports_autograd))
    for sample in samples[: limit or None]:
        _run_sample(op, ours, sample, outcome, second=second)
    if errors and op.error_inputs_func is not None:
        _run_errors(op, ours, outcome)
    return outcome


def _run_sample(op: Any, ours: Any, sample: Any, outcome: Outcome, *, second: bool) -> None:
    try:
        args, kwargs, pairs = convert_sample(sample)
    except UnsupportedError:
        return
    torch.manual_seed(0)
    try:
        theirs = sample.output_process_fn_grad(op.op(sample.input, *sample.args, **sample.kwargs))
    except Exception:
        return
    if any(isinstance(t, torch.Tensor) and t.layout is not torch.strided for t in flatten(theirs)):
        return
    outcome.samples += 1
    try:
        mt.manual_seed(0)
        result = ours(*args, **kwargs)
        process = sample.output_process_fn_grad
        result = rebind(process)(result)
        if not _undefined(op):
            assert_same(result, theirs, RTOL, ATOL)
        else:
            assert [tuple(t.shape) for t in flatten(result)] == [tuple(t.shape) for t in flatten(theirs)]
    except Exception:
        outcome.value_failures.append(f"{describe(sample)}\n{traceback.format_exc(limit=-4)}")
        return
    if not op.supports_autograd or _undefined(op):
        return
    for order in (1, 2) if second and op.supports_gradgrad else (1,):
        try:
            expected = gradients(theirs, [p[0] for p in pairs], torch, second=order == 2)
        except Exception:
            return
        if order == 2 and not expected:
            return  # torch cannot differentiate this twice
        try:
            _assert_same_grads(gradients(result, [p[1] for p in pairs], mt, second=order == 2), expected)
        except Exception:
            failures = outcome.grad_failures if order == 1 else outcome.gradgrad_failures
            failures.append(f"{describe(sample)}\n{traceback.format_exc(limit=-4)}")
            return
        if order == 1 and second and op.supports_gradgrad:
            try:
                args, kwargs, pairs = convert_sample(sample)
                torch.manual_seed(0)
                theirs = sample.output_process_fn_grad(op.op(sample.input, *sample.args, **sample.kwargs))
                mt.manual_seed(0)
                result = rebind(sample.output_process_fn_grad)(ours(*args, **kwargs))
            except Exception:
                return


def _undefined(op: Any) -> bool:
    """Operators whose values are whatever the memory held."""
    return op.name in (
        "empty",
        "empty_like",
        "empty_strided",
        "empty_permuted",
        "new_empty",
        "new_empty_strided",
        "resize_",
        "resize_as_",
    )


def _run_errors(op: Any, ours: Any, outcome: Outcome) -> None:
    try:
        cases = list(op.error_inputs("cpu"))
    except Exception:
        return
    import re

    for case in cases:
        sample = case.sample_input
        try:
            args, kwargs, _ = convert_sample(sample)
        except Exception:
            continue
        with contextlib.suppress(Exception):
            op.op(sample.input, *sample.args, **sample.kwargs)
            continue  # torch takes this one after all
        outcome.errors += 1
        try:
            ours(*args, **kwargs)
        except case.error_type as error:
            if case.error_regex and not re.search(case.error_regex, str(error)):
                outcome.message_failures.append(f"{describe(sample)}\n{error}\n does not match {case.error_regex}")
        except Exception as error:
            outcome.error_failures.append(
                f"{describe(sample)}\n{type(error).__name__}: {error}\n instead of {case.error_type.__name__}: {case.error_regex}"
            )
        else:
            outcome.error_failures.append(
                f"{describe(sample)}\n no error instead of {case.error_type.__name__}: {case.error_regex}"
            )


def describe(sample: Any) -> str:
    def short(x: Any) -> str:
        if isinstance(x, torch.Tensor):
            return f"{str(x.dtype).removeprefix('torch.')}{list(x.shape)}{'' if x.is_contiguous() else 's' + str(x.stride())}"
        if isinstance(x, list | tuple):
            return "(" + ", ".join(short(v) for v in x) + ")"
        return repr(x)[:60]

    rest = [short(a) for a in sample.args] + [f"{k}={short(v)}" for k, v in sample.kwargs.items()]
    return ", ".join([short(sample.input), *rest])


def run_named(name: str) -> Outcome:
    warnings.simplefilter("ignore")
    global _normwise
    _normwise = name.startswith(NORMWISE)
    op = next(o for o in _database() if o.formatted_name == name)
    try:
        return run_one(copy.copy(op))
    except Exception:
        outcome = Outcome(name)
        outcome.value_failures.append(traceback.format_exc())
        return outcome


def run_all(selected: list[str], processes: int = 2) -> list[Outcome]:
    torch.set_num_threads(1)
    if processes == 1 or len(selected) < 4:
        return [run_named(n) for n in selected]
    with multiprocessing.get_context("fork").Pool(processes, maxtasksperchild=60) as pool:
        return list(pool.imap(run_named, selected, chunksize=4))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="operators of the database; default all. `prefix*` selects by prefix")
    parser.add_argument("-v", "--verbose", action="store_true", help="print the first failure of each in full")
    parser.add_argument("-j", type=int, default=2, help="processes")
    parser.add_argument("--write", metavar="FILE", help="write the page on compatibility")
    options = parser.parse_args()
    everything = names()
    selected = [
        n
        for n in everything
        if not options.names or any(n == p or (p.endswith("*") and n.startswith(p[:-1])) for p in options.names)
    ]
    outcomes = run_all(selected, options.j)
    for o in outcomes:
        if not o.right:
            print(f"{o.name:45s} {o.reason}")
        extra = [("second gradients", o.gradgrad_failures), ("error types", o.error_failures), ("error texts", o.message_failures)]
        for label, failures in extra:
            if failures:
                print(f"{o.name:45s} {label}: {len(failures)} fail; {' | '.join(failures[0].splitlines())[:200]}")
        if options.verbose:
            for failures in (o.value_failures, o.grad_failures, o.gradgrad_failures, o.error_failures, o.message_failures):
                if failures:
                    print(failures[0])
    right = sum(o.right for o in outcomes)
    print(f"{right} of {len(outcomes)} operators wholly right; {sum(o.missing for o in outcomes)} not there")
    bad = sum(len(o.error_failures) for o in outcomes)
    texts = sum(len(o.message_failures) for o in outcomes)
    print(
        f"errors: {sum(o.errors for o in outcomes)} cases, {bad} of another type, {texts} with another text; second gradients: {sum(bool(o.gradgrad_failures) for o in outcomes)} operators fail"
    )
    if options.write:
        from compatibility import write_page

        write_page(options.write, outcomes)


if __name__ == "__main__":
    main()
