"""Numbers as text."""

import pytest

from mindtorch_v2.profiler.writing import units


class TestTime:
    @pytest.mark.parametrize(
        ("time_us", "text"),
        [
            (0, "0.000us"),
            (0.0004, "0.000us"),
            (999.9, "999.900us"),
            (1000, "1.000ms"),
            (999_999, "999.999ms"),
            (1_000_000, "1.000s"),
            (-5000, "-5000.000us"),  # only times that grow past a unit change it
        ],
    )
    def test_unit_suits_the_time(self, time_us, text):
        assert units.time(time_us) == text

    @pytest.mark.parametrize(("unit", "text"), [("s", "0.002s"), ("ms", "1.500ms"), ("us", "1500.000us"), ("h", "1.500ms")])
    def test_unit_can_be_given(self, unit, text):
        assert units.time(1500, unit) == text


class TestShare:
    def test_share(self):
        assert units.share(1, 3) == "33.33%"

    def test_of_nothing_there_is_no_share(self):
        assert units.share(0, 0) == "NaN"

    def test_something_is_no_part_of_nothing(self):
        with pytest.raises(AssertionError, match="Expected time_us == 0 but got 1"):
            units.share(1, 0)


@pytest.mark.parametrize(
    ("size_bytes", "text"),
    [(0, "0 B"), (1023, "1023 B"), (1024, "1.00 KB"), (-1536, "-1.50 KB"), (3 << 20, "3.00 MB"), (5 << 30, "5.00 GB")],
)
def test_memory(size_bytes, text):
    assert units.memory(size_bytes) == text


class TestFlops:
    @pytest.mark.parametrize(
        ("flops", "factor", "unit"),
        [(1, 1, "FLOPs"), (999, 1, "FLOPs"), (10**3, 1e-3, "KFLOPs"), (10**7, 1e-6, "MFLOPs"), (10**20, 1e-15, "PFLOPs")],
    )
    def test_unit_suits_the_number(self, flops, factor, unit):
        assert units.flops_unit(flops) == (factor, unit)

    def test_there_is_a_number(self):
        with pytest.raises(AssertionError, match="positive"):
            units.flops_unit(0)
