"""One overload against torch's: values, dtypes, strides, what shares memory with what, gradients and errors.

python tests/parity/registry_compare.py [NAME …] [-k KIND]      prints what differs, counted by kind
"""

from __future__ import annotations

import collections
import concurrent.futures
import contextlib
import dataclasses
import multiprocessing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import capture
import numpy as np
import opinfo
import registry_errors
import registry_gradients
import torch
from registry_arguments import Arguments, Sample, both, call_ours, call_theirs, layouts_for
from samples import INVARIANTS, OF_ACCELERATORS, OPAQUE, SPARSE, UNDEFINED, generated, torch_overload

import mindtorch_v2 as mt
from mindtorch_v2._dispatch.op import Op

__all__ = ["Report", "accepted", "compare", "compare_all"]

ENOUGH = 4  # samples of an operator


@dataclasses.dataclass
class Report:
    """What was compared of one operator, and what differs."""

    samples: int = 0
    counts: collections.Counter[str] = dataclasses.field(default_factory=collections.Counter)
    differences: dict[str, list[str]] = dataclasses.field(default_factory=dict)  # kind → texts

    def differs(self, kind: str, text: str) -> None:
        self.differences.setdefault(kind, []).append(text)

    @contextlib.contextmanager
    def checking(self, kind: str, where: str) -> Iterator[None]:
        """Count a comparison of this kind; whatever it raises is a difference."""
        self.counts[kind] += 1
        try:
            yield
        except Exception as error:
            self.differs(kind, f"{where}: {first_words(error)}")


def first_words(error: BaseException) -> str:
    """The message on one line, or the type where it has none."""
    text = " ".join(str(error).split())
    return (text if isinstance(error, AssertionError) and text else f"{type(error).__name__}: {text}")[:300]


def compare_all(operators: list[Op], caught: capture.Samples) -> dict[Op, Report]:
    return {
        op: compare(op, theirs, caught)
        for op in operators
        if op.name not in {*SPARSE, *OPAQUE, *OF_ACCELERATORS} and (theirs := torch_overload(op)) is not None
    }


def compare(op: Op, theirs: Any, caught: capture.Samples) -> Report:
    """Everything about one overload but its errors."""
    report = Report()
    for sample in accepted(op, theirs, caught):
        report.samples += 1
        for layout in layouts_for(sample):
            _compare_results(op, theirs, sample, layout, report)
        registry_gradients.compare(op, theirs, sample, report)
    return report


def compare_errors(operators: list[Op], caught: capture.Samples) -> dict[str, Report]:
    """Label → what differs for bad arguments. In processes of their own, because torch may not survive them."""
    chosen = [op for op in operators if registry_errors.checks(op) and torch_overload(op) is not None]
    _shared.update({capture.label(op): (op, caught) for op in chosen})
    workers = concurrent.futures.ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("fork"))
    with workers:
        return dict(workers.map(_errors_of, _shared, chunksize=16))


_shared: dict[str, tuple[Op, capture.Samples]] = {}  # for the forked workers: operators do not pickle


def _errors_of(label: str) -> tuple[str, Report]:
    op, caught = _shared[label]
    report, theirs = Report(), torch_overload(op)
    for sample in accepted(op, theirs, caught):
        report.samples += 1
        registry_errors.compare(op, theirs, sample, report)
    return label, report


def accepted(op: Op, theirs: Any, caught: capture.Samples) -> list[Sample]:
    """Samples that torch takes: caught ones, else those of the functional variant, else some made up from the schema."""
    functional = capture.label(op).replace("_.", ".")
    for source in (caught.get(capture.label(op), []), caught.get(functional, []), generated(op)):
        found = []
        for sample in source:
            with contextlib.suppress(Exception):
                call_theirs(theirs, both(op, sample)[1])
                found.append(sample)
            if len(found) == ENOUGH:
                break
        if found:
            return found
    return []


def _compare_results(op: Op, theirs: Any, sample: Sample, layout: str, report: Report) -> None:
    ours_in, theirs_in = both(op, sample, layout=layout)
    where = describe(sample, layout)
    try:
        expected = call_theirs(theirs, theirs_in)
    except Exception as error:
        with report.checking("value", where):
            _assert_raises(type(error), lambda: call_ours(op, ours_in))
        return
    ours = None
    with report.checking("value", where):
        ours = call_ours(op, ours_in)
        if not op.name.strip("_").startswith(UNDEFINED):
            _assert_same_values(op, theirs, sample, layout, [ours, ours_in.written], [expected, theirs_in.written])
            assert_close(_read_only(ours_in), _read_only(theirs_in))
    if ours is None:
        return
    with report.checking("strides", where):
        _assert_same_strides(ours, expected)
    with report.checking("sharing", where):
        _assert_same_sharing(ours, ours_in, expected, theirs_in)


def _assert_same_values(op: Op, theirs: Any, sample: Sample, layout: str, ours: Any, expected: Any) -> None:
    """What is returned and what is written in place; by invariants where torch leaves a choice."""
    compared = INVARIANTS.get(op.name, lambda results: results)
    try:
        assert_close(compared(ours), compared(expected))
    except AssertionError:
        # torch: some kernels read memory without regard to strides. Where torch contradicts its own result for the same elements
        # in a contiguous layout, that one is the truth.
        plain = both(op, sample, layout="contiguous")[1]
        truth = [call_theirs(theirs, plain), plain.written]
        if layout in ("caught", "contiguous") or _same(expected, truth):
            raise
        assert_close(compared(ours), compared(truth))


def _same(a: Any, b: Any) -> bool:
    return all(
        torch.equal(x, y) if isinstance(x, torch.Tensor) else x == y
        for x, y in zip(opinfo.flatten(a), opinfo.flatten(b), strict=True)
    )


def _read_only(arguments: Arguments) -> list[Any]:
    """Tensors that the operator must leave alone."""
    written = {id(t) for t in arguments.written}
    return [t for t in arguments.tensors if id(t) not in written]


def _assert_raises(kind: type[BaseException], call: Any) -> None:
    try:
        call()
    except kind:
        return
    except Exception as error:
        raise AssertionError(f"{first_words(error)} instead of {kind.__name__}") from error
    raise AssertionError(f"no error instead of {kind.__name__}")


def assert_close(ours: Any, theirs: Any, precision: float = 1.0) -> None:
    """Equal within a few roundings of the dtype, relative to the largest element: sums of products cancel."""
    opinfo_like = list(zip(opinfo.flatten(ours), opinfo.flatten(theirs), strict=True))
    for x, y in opinfo_like:
        if (isinstance(y, torch.Tensor) and y.is_floating_point()) or (isinstance(y, torch.Tensor) and y.is_complex()):
            assert isinstance(x, mt.Tensor), f"{type(x).__name__} instead of a tensor"
            assert str(x.dtype) == str(y.dtype), f"dtype {x.dtype} instead of {y.dtype}"
            assert tuple(x.shape) == tuple(y.shape), f"shape {tuple(x.shape)} instead of {tuple(y.shape)}"
            assert_arrays_close(
                x.detach().resolve_conj().resolve_neg()._array, opinfo.to_numpy(y), torch.finfo(y.dtype).eps, precision
            )
        else:
            opinfo.assert_same(x, y, 1e-6, 1e-6)


def assert_arrays_close(got: Any, want: Any, eps: float, precision: float) -> None:
    if want.dtype.name in ("float16", "bfloat16"):
        got, want = got.astype(np.float32), want.astype(np.float32)
    rtol = min(precision * 100 * eps, 0.02)
    with np.errstate(all="ignore"):
        largest = float(np.abs(want[np.isfinite(want)]).max(initial=0.0))
        same = np.isclose(got, want, rtol=rtol, atol=rtol * max(largest, 1.0), equal_nan=True)
    if not same.all():
        at = tuple(int(i) for i in np.argwhere(~same)[0])
        raise AssertionError(f"{(~same).sum()} of {same.size} elements differ, first at {at}: {got[at]} instead of {want[at]}")


def _steps(t: Any) -> tuple[int, ...]:
    """Strides that can be told from outside: of dimensions with more than one element."""
    return () if 0 in t.shape else tuple(s for s, n in zip(t.stride(), t.shape, strict=True) if n != 1)


def _assert_same_strides(ours: Any, theirs: Any) -> None:
    for i, (x, y) in enumerate(zip(opinfo.flatten(ours), opinfo.flatten(theirs), strict=True)):
        if isinstance(y, torch.Tensor):
            assert _steps(x) == _steps(y), f"result {i} of shape {tuple(y.shape)}: strides {x.stride()} instead of {y.stride()}"


def _assert_same_sharing(ours: Any, ours_in: Arguments, theirs: Any, theirs_in: Arguments) -> None:
    for i, (x, y) in enumerate(zip(opinfo.flatten(ours), opinfo.flatten(theirs), strict=True)):
        if not isinstance(y, torch.Tensor) or not y.numel():
            continue
        got = [_relation(x, t, x._storage is t._storage) for t in ours_in.tensors]
        want = [_relation(y, t, y.untyped_storage().data_ptr() == t.untyped_storage().data_ptr()) for t in theirs_in.tensors]
        assert got == want, f"result {i} is to the arguments {got} instead of {want}"


def _relation(result: Any, argument: Any, shares: bool) -> str:
    if result is argument:
        return "the same"
    return f"a view at {result.storage_offset()}" if shares else "apart"


def describe(sample: Any, layout: str = "") -> str:
    def short(x: Any) -> str:
        if isinstance(x, mt.Tensor):
            return f"{x.dtype.name}{list(x.shape)}"
        if isinstance(x, list | tuple):
            return "[" + ", ".join(short(v) for v in x) + "]"
        return repr(x)[:40]

    return f"({', '.join(short(a) for a in sample)}){' ' + layout if layout else ''}"


def write_gaps(errors: dict[str, Report]) -> None:
    """The operators whose refusals are not torch's yet, with the number of mutations that show it."""
    counted = {label: len(report.differences["error"]) for label, report in errors.items() if "error" in report.differences}
    lines = [
        "# Operators that take what torch refuses, refuse what it takes, or raise an error of another type: mutated samples of each.",
        "# Written by `python tests/parity/registry_compare.py --write-gaps`; a test fails when one of them gets worse.",
        *(f"{label} {count}" for label, count in sorted(counted.items())),
    ]
    (Path(__file__).parent / "error_gaps.txt").write_text("\n".join(lines) + "\n")


def main() -> None:
    import argparse
    import warnings

    from mindtorch_v2._dispatch import registry

    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*")
    parser.add_argument("-k", "--kind", help="print differences of this kind only")
    parser.add_argument("--write-gaps", action="store_true", help="write error_gaps.txt anew")
    options = parser.parse_args()
    operators = [
        op for op in registry.all_ops() if op.schema.namespace == "aten" and (not options.names or op.name in options.names)
    ]
    totals: collections.Counter[str] = collections.Counter()
    counts: collections.Counter[str] = collections.Counter()
    caught = capture.for_registry()
    reports = [(capture.label(op), report) for op, report in compare_all(operators, caught).items()]
    errors = compare_errors(operators, caught)
    if options.write_gaps:
        write_gaps(errors)
    for label, report in [*reports, *errors.items()]:
        counts += report.counts
        for kind, texts in report.differences.items():
            totals[kind] += 1
            if options.kind in (None, kind):
                print(f"{kind:9s} {label} [{len(texts)}] {texts[0]}")
    print("compared:", dict(counts))
    print("operators that differ:", dict(totals))


if __name__ == "__main__":
    main()
