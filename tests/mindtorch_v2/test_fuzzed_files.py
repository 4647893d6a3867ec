"""Files of every format, damaged at random: each is read or refused, and nothing else happens. `file_fuzzing` runs more by hand."""

from __future__ import annotations

import random
import tracemalloc

import pytest

from .file_fuzzing import check_case, formats
from .hostile_checkpoints import library_state

FORMATS = {form.name: form for form in formats()}
CASES = 60
MOST_BYTES = 400 << 20  # while a file of some kilobytes is read


@pytest.mark.parametrize("name", FORMATS)
def test_good_files_are_read(name, tmp_path):
    form = FORMATS[name]
    (tmp_path / name).write_bytes(form.good)
    form.read(tmp_path / name, random.Random(0))


@pytest.mark.parametrize("name", FORMATS)
def test_damaged_files_are_read_or_refused(name, tmp_path):
    before = library_state()
    tracemalloc.start()
    try:
        found = [check_case(FORMATS[name], random.Random(seed), tmp_path) for seed in range(CASES)]
        assert tracemalloc.get_traced_memory()[1] < MOST_BYTES
    finally:
        tracemalloc.stop()
    assert library_state() == before
    assert found.count("read") > 0
    assert found.count("refused") > 10 or not FORMATS[name].refuses_with
