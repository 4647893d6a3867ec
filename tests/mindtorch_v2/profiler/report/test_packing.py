"""Values as bytes and back. That the page reads the same is seen in a browser (tests/browser)."""

import numpy as np
import pytest

from mindtorch_v2.profiler.output.report.packing import Delta, pack, unpack


@pytest.mark.parametrize(
    "values",
    [[], [0], [1, -1, 127, -128], [2**31 - 1, -(2**31)], [2**40, -(2**40), 3], [2**53 - 1, 1 - 2**53], list(range(-300, 300))],
)
@pytest.mark.parametrize("kind", [np.asarray, Delta])
def test_columns_come_back(values, kind):
    column = np.array(values, np.int64)
    assert unpack(pack({"column of numbers": kind(column)}))["column of numbers"].tolist() == values


def test_numbers_that_a_page_cannot_hold_are_cut():
    assert unpack(pack([np.array([2**60, -(2**60)])]))[0].tolist() == [2**53 - 1, 1 - 2**53]


def test_values_come_back():
    value = {"a": [1, 2.5, None, True, "text"], "b": {"c": [], "d": {}}, "column": "a text of that name"}
    assert unpack(pack(value)) == value


def test_times_take_few_bytes():
    times = np.cumsum(np.random.default_rng(0).integers(0, 256, 10_000)) + 1_700_000_000_000_000_000 % 2**52
    assert len(pack({"start": Delta(times)})) < 1.2 * len(times)


@pytest.mark.parametrize("text", ["</script><script>", "\x00", "\ud800", "\u202egnirts", "x" * 1_000_000, "\u2028"])
def test_any_text_comes_back_or_is_spelled_out(text):
    assert unpack(pack({"name": text}))["name"] == text.encode("utf-8", "backslashreplace").decode()
