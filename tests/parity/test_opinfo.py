"""PyTorch's own operator database: samples of some 670 public operators, values, dtypes, gradients and errors."""

import functools
import re

import pytest

pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore")]


def _names():
    # collecting without torch must work: the marker deselects these tests
    try:
        import opinfo
    except ModuleNotFoundError:
        return ["torch is not installed"]
    return opinfo.names()


def _cases():
    from known import KNOWN

    for name in _names():
        marks = [pytest.mark.xfail(reason=KNOWN[name], strict=True)] if name in KNOWN else []
        yield pytest.param(name, marks=marks)


@functools.cache
def outcome_of(name):
    import opinfo

    return opinfo.run_named(name)


@pytest.mark.parametrize("name", list(_cases()))
def test_values_dtypes_and_gradients(name):
    from known import SECOND_GRADIENTS

    outcome = outcome_of(name)
    assert outcome.right, outcome.reason + "".join(f"\n{f}" for f in (outcome.value_failures + outcome.grad_failures)[:1])
    second = outcome.gradgrad_failures
    assert bool(second) == (name in SECOND_GRADIENTS), second[0] if second else "known to differ, but right"


def test_known_gaps_exist_in_the_database():
    from known import KNOWN, SECOND_GRADIENTS

    for known in (KNOWN, SECOND_GRADIENTS):
        assert set(known) <= set(_names())
        assert all(re.search(r"\w", reason) for reason in known.values())
