"""Files of every format with bytes changed, cut out and repeated: each is loaded or refused, and nothing else happens."""

from __future__ import annotations

import io
import pickle
import tracemalloc

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import mindtorch_v2 as torch

from .hostile_checkpoints import library_state

REFUSED = (RuntimeError, pickle.UnpicklingError, EOFError)
HEADER = b'{"x":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]},"y":{"dtype":"U8","shape":[3],"data_offsets":[16,19]}}'
TENSOR_FILE = len(HEADER).to_bytes(8, "little") + HEADER + np.arange(4, dtype=np.float32).tobytes() + b"abc"


def saved(**options):
    x = torch.arange(6.0).reshape(2, 3)
    buffer = io.BytesIO()
    torch.save(
        {"x": x, "row": x[1], "sparse": torch.eye(2).to_sparse(), "plain": [1, 2.5, "text", b"b", {3}, (None, True)]},
        buffer,
        **options,
    )
    return buffer.getvalue()


GOOD = {"zip": saved(), "legacy": saved(_use_new_zipfile_serialization=False), "safetensors": TENSOR_FILE}


@st.composite
def damaged(draw, content):
    """A good file in which some bytes are others, missing, or there twice."""
    changed = bytearray(content)
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, max(len(changed) - 1, 0)))
        kind = draw(st.sampled_from(["set", "set", "insert", "delete", "repeat"]))
        if kind == "set" and changed:
            changed[at] = draw(st.integers(0, 255))
        elif kind == "insert":
            changed[at:at] = draw(st.binary(max_size=9))
        elif kind == "delete":
            del changed[at : at + draw(st.integers(1, 200))]
        else:
            changed[at:at] = changed[at : at + draw(st.integers(1, 60))]
    return bytes(changed)


@pytest.mark.parametrize("name", GOOD)
def test_good_files_are_read(name, tmp_path):
    (tmp_path / f"good.{name}").write_bytes(GOOD[name])
    loaded = torch.load(tmp_path / f"good.{name}")
    assert loaded["x"].shape == ((2, 2) if name == "safetensors" else (2, 3))


@pytest.mark.parametrize("name", GOOD)
def test_damaged_files_are_read_or_refused(name, tmp_path):
    path = tmp_path / f"file.{name}"
    before = library_state()
    refused = []

    @settings(
        max_examples=25 if name == "zip" else 60,
        derandomize=True,
        deadline=None,
        database=None,
        suppress_health_check=[HealthCheck.too_slow],
    )
    @given(damaged(GOOD[name]))
    def check(content):
        path.write_bytes(content)
        try:
            torch.load(path)
        except REFUSED as error:
            refused.append(str(error))

    tracemalloc.start()
    try:
        check()
        assert tracemalloc.get_traced_memory()[1] < 400 << 20
    finally:
        tracemalloc.stop()
    assert library_state() == before
    assert all(str(path) in text for text in refused)  # the file is named
    assert len(refused) > 10
