"""Columns of numbers as text."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mindtorch_v2.profiler.output.number_text import Field, lines

whole = st.lists(st.integers(-(2**62), 2**62), min_size=1, max_size=30)


@given(whole)
def test_whole_numbers(values):
    assert lines([Field("x=", np.array(values))], len(values)) == [f"x={value}" for value in values]


@given(st.lists(st.integers(0, 2**62), min_size=1, max_size=30))
def test_thousandths(values):
    expected = [f"{value // 1000}.{value % 1000:03d}" for value in values]
    assert lines([Field("", np.array(values), thousandths=True)], len(values)) == expected


@given(st.lists(st.tuples(st.integers(-9999, 10**12), st.booleans()), min_size=1, max_size=30))
def test_what_is_not_shown_leaves_nothing(rows):
    values, shown = np.array([value for value, _ in rows]), np.array([flag for _, flag in rows])
    fields = [Field("<"), Field("a", values, shown), Field("b", None, ~shown), Field(">")]
    assert lines(fields, len(rows)) == [f"<a{value}>" if flag else "<b>" for value, flag in rows]


@pytest.mark.parametrize("dtype", ["i1", "i2", "i4", "i8", "u4", "bool"])
def test_any_integers(dtype):
    assert lines([Field("", np.array([0, 1, 1], dtype))], 3) == ["0", "1", "1"]


def test_places_of_ten():
    values = [0, 9, 10, 99, 100, 9_999, 10_000, 99_999_999, 100_000_000, 2**63 - 1]
    assert lines([Field("", np.array(values))], len(values)) == [str(value) for value in values]


def test_no_lines_and_no_fields():
    assert lines([Field("x", np.empty(0, "i8"))], 0) == []
    assert lines([], 2) == ["", ""]
    assert lines([Field("x", None, np.array([False, False]))], 2) == ["", ""]
