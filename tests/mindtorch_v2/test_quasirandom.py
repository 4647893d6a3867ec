"""Sobol' sequences: known points, evenness, and moving along them."""

import pytest

import mindtorch_v2 as torch
from mindtorch_v2.quasirandom import SobolEngine


def test_the_first_points():
    # by the direction numbers of Joe and Kuo for three dimensions
    wanted = [
        [0.0, 0.0, 0.0],
        [0.5, 0.5, 0.5],
        [0.75, 0.25, 0.25],
        [0.25, 0.75, 0.75],
        [0.375, 0.375, 0.625],
        [0.875, 0.875, 0.125],
    ]
    assert SobolEngine(3).draw(6).tolist() == wanted
    assert SobolEngine(1).draw(dtype=torch.float64).dtype is torch.float64


@pytest.mark.parametrize("scramble", [False, True])
def test_every_interval_has_its_points(scramble):
    points = SobolEngine(40, scramble=scramble, seed=3).draw_base2(6)
    cells = (points * 64).long().sort(0).values
    assert torch.equal(cells, torch.arange(64).unsqueeze(-1).expand(64, 40))


def test_points_are_the_same_however_they_are_drawn():
    whole = SobolEngine(5, scramble=True, seed=1).draw(20)
    engine = SobolEngine(5, scramble=True, seed=1)
    assert torch.equal(torch.cat([engine.draw(n) for n in (1, 4, 15)]), whole)
    assert torch.equal(engine.reset().draw(20), whole)
    assert torch.equal(SobolEngine(5, scramble=True, seed=1).fast_forward(7).draw(3), whole[7:10])
    assert torch.equal(SobolEngine(5, scramble=True, seed=1).fast_forward(7).fast_forward(2).draw(3), whole[9:12])
    out = torch.empty(0)
    assert SobolEngine(5, scramble=True, seed=1).draw(20, out=out) is out
    assert torch.equal(out, whole)


def test_scrambled_points_follow_the_seed():
    torch.manual_seed(0)
    first = SobolEngine(2, scramble=True).draw(4)
    assert not torch.equal(SobolEngine(2, scramble=True).draw(4), first)
    torch.manual_seed(0)
    assert torch.equal(SobolEngine(2, scramble=True).draw(4), first)


def test_refusals_and_printing():
    for dimension in (0, 21202):
        with pytest.raises(ValueError, match=r"Supported range of dimensionality for SobolEngine is \[1, 21201\]"):
            SobolEngine(dimension)
    engine = SobolEngine(2)
    engine.draw(3)
    with pytest.raises(ValueError, match="require n to be a power of 2"):
        engine.draw_base2(2)
    assert repr(SobolEngine(2, True, 3)) == "SobolEngine(dimension=2, scramble=True, seed=3)"
    assert repr(SobolEngine(2)) == "SobolEngine(dimension=2)"
    with pytest.raises(RuntimeError, match="sobolstate needs to be of type Long"):
        torch._sobol_engine_initialize_state_(torch.zeros(2, 30), 2)
