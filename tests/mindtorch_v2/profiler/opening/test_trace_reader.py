"""Rows of a file come in blocks, whatever the layout of the text is."""

from __future__ import annotations

import gzip
import json
import tracemalloc

import pytest

from mindtorch_v2.profiler.opening import trace_reader
from mindtorch_v2.profiler.opening.trace_reader import NotATraceError, TraceReader

TRICKY = [
    {"ph": "X", "name": 'a "quoted" },\n{ "ph"', "args": {"list": [{"ph": 1}, {"ph": 2}]}},
    {"name": "another key first", "ph": "X"},
    {"ph": "X", "name": "back\\slash\\", "args": {}},
    {"ph": "X", "name": "𝔘nicode ☃ ]}"},
    {"ph": "X", "args": {"deep": [[[{"ph": [{}]}]]]}},
]


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(trace_reader, "BLOCK_BYTES", 512)
    monkeypatch.setattr(trace_reader, "FIRST_BLOCK_BYTES", 200)


@pytest.mark.parametrize("indent", [None, 0, 2])
@pytest.mark.parametrize("separators", [None, (",", ":")])
@pytest.mark.parametrize("is_list", [False, True])
def test_all_rows_in_their_order(tmp_path, indent, separators, is_list):
    rows = [{**row, "number": i} for i, row in enumerate(TRICKY * 40)]
    whole = (
        rows if is_list else {"schemaVersion": 1, "text": '"traceEvents": [', "traceEvents": rows, "after": [{"ph": 1}, {"ph": 2}]}
    )
    (tmp_path / "t.json").write_text(json.dumps(whole, indent=indent, separators=separators, ensure_ascii=False))
    reader = TraceReader(tmp_path / "t.json")
    blocks = list(reader.blocks())
    assert [row for block in blocks for row in block] == rows
    assert len(blocks) > 10
    if not is_list:
        assert reader.header == {
            "schemaVersion": 1,
            "text": '"traceEvents": [',
            "traceEvents": None,
            "after": [{"ph": 1}, {"ph": 2}],
        }


def test_rows_that_are_no_objects(tmp_path):
    rows = [1, "text", None, [2, [3]], {"ph": "X"}, True] * 50
    (tmp_path / "t.json").write_text(json.dumps({"traceEvents": rows}))
    assert list(TraceReader(tmp_path / "t.json")) == rows


def test_cut_off_anywhere_is_no_trace(tmp_path):
    text = json.dumps({"schemaVersion": 1, "traceEvents": TRICKY * 8, "traceName": "x"}).encode()
    for length in range(0, len(text) - 1, 7):
        (tmp_path / "t.json").write_bytes(text[:length])
        with pytest.raises(NotATraceError):
            list(TraceReader(tmp_path / "t.json"))


def test_a_small_file_that_becomes_large_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(trace_reader, "LARGEST_FLOOR", 10_000)
    (tmp_path / "t.json.gz").write_bytes(gzip.compress(b'{"traceEvents": [' + b" " * 1_000_000 + b"]}"))
    with pytest.raises(NotATraceError, match="becomes larger"):
        list(TraceReader(tmp_path / "t.json.gz"))


def test_a_row_that_is_too_long_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(trace_reader, "LONGEST_VALUE", 5_000)
    (tmp_path / "t.json").write_text(json.dumps({"traceEvents": [{"ph": "X", "name": "x" * 50_000}]}))
    with pytest.raises(NotATraceError, match="longer than"):
        list(TraceReader(tmp_path / "t.json"))


def test_memory_does_not_grow_with_the_file(tmp_path):
    def peak(count):
        (tmp_path / "t.json").write_text(json.dumps({"traceEvents": TRICKY * count}))
        tracemalloc.start()
        for _ in TraceReader(tmp_path / "t.json").blocks():
            pass
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return found

    peak(10)
    assert peak(4_000) < 2 * peak(100)


def test_progress_ends_at_the_size_of_the_file(tmp_path):
    (tmp_path / "t.json").write_text(json.dumps({"traceEvents": TRICKY * 100}))
    seen = []
    list(TraceReader(tmp_path / "t.json", progress=lambda done, size: seen.append((done, size))))
    assert seen == sorted(seen)
    assert seen[-1] == ((tmp_path / "t.json").stat().st_size,) * 2
