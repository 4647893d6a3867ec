"""Sobol' sequences with torch's points."""

import numpy as np
import pytest

import mindtorch_v2 as mt

pytestmark = pytest.mark.parity


@pytest.mark.parametrize(("scramble", "seed"), [(False, None), (True, None), (True, 7)])
@pytest.mark.parametrize("dimension", [1, 3, 200, 21201])
def test_points(dimension, scramble, seed):
    if dimension == 21201 and scramble:
        return  # its matrices alone take 150 MB
    import torch

    engines = []
    for lib in (mt, torch):
        lib.manual_seed(1)
        engines.append(lib.quasirandom.SobolEngine(dimension, scramble, seed))
    ours, theirs = engines
    assert repr(ours) == repr(theirs)
    for step in (
        lambda e, lib: e.draw(1),
        lambda e, lib: e.draw(3, dtype=lib.float64),
        lambda e, lib: e.fast_forward(5).draw(2),
        lambda e, lib: e.reset().draw_base2(3),
        lambda e, lib: e.reset().fast_forward(6).draw(),
        lambda e, lib: e.quasi,
        lambda e, lib: e.sobolstate,
    ):
        a, b = step(ours, mt).numpy(), step(theirs, torch).numpy()
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)
