"""One overload against torch's: values, dtypes, strides, what shares memory with what, gradients and errors.

python tests/parity/registry_compare.py [NAME …] [-k KIND]      prints what differs, counted by kind
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
from collections.abc import Iterator
from typing import Any

import capture
import numpy as np
import opinfo
import registry_errors
import registry_gradients
import torch
from registry_arguments import Arguments, Sample, both, call_ours, call_theirs, layouts_for
from samples import SPARSE, UNDEFINED, generated, torch_overload

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
        op: compare(op, theirs, caught) for op in operators if op.name not in SPARSE and (theirs := torch_overload(op)) is not None
    }


def compare(op: Op, theirs: Any, caught: capture.Samples) -> Report:
    """Everything about one overload."""
    report = Report()
    for sample in accepted(op, theirs, caught):
        report.samples += 1
        for layout in layouts_for(sample):
            _compare_results(op, theirs, sample, layout, report)
        registry_gradients.compare(op, theirs, sample, report)
        registry_errors.compare(op, theirs, sample, report)
    return report


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
    with report.checking("value", where):
        ours = call_ours(op, ours_in)
        if not op.name.strip("_").startswith(UNDEFINED):
            assert_close(ours, expected)
            assert_close(ours_in.tensors, theirs_in.tensors)  # what was written in place, and what must not be
    if "value" in report.differences:
        return
    with report.checking("strides", where):
        _assert_same_strides(ours, expected)
    with report.checking("sharing", where):
        _assert_same_sharing(ours, ours_in, expected, theirs_in)


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
            assert_arrays_close(x.detach()._array, opinfo.to_numpy(y), torch.finfo(y.dtype).eps, precision)
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


def main() -> None:
    import argparse
    import warnings

    from mindtorch_v2._dispatch import registry

    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*")
    parser.add_argument("-k", "--kind", help="print differences of this kind only")
    options = parser.parse_args()
    operators = [
        op for op in registry.all_ops() if op.schema.namespace == "aten" and (not options.names or op.name in options.names)
    ]
    totals: collections.Counter[str] = collections.Counter()
    counts: collections.Counter[str] = collections.Counter()
    for op, report in compare_all(operators, capture.for_registry()).items():
        counts += report.counts
        for kind, texts in report.differences.items():
            totals[kind] += 1
            if options.kind in (None, kind):
                print(f"{kind:9s} {capture.label(op)} [{len(texts)}] {texts[0]}")
    print("compared:", dict(counts))
    print("operators that differ:", dict(totals))


if __name__ == "__main__":
    main()
