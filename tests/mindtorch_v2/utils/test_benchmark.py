"""torch.utils.benchmark with a clock that the test advances: what is run, the statistics, and the tables."""

import pytest

import mindtorch_v2 as torch
import mindtorch_v2.utils.benchmark as b


class Clock:
    """Each execution of `clock.tick()` takes a millisecond."""

    def __init__(self, cost=1e-3):
        self.now, self.cost, self.ticks = 0.0, cost, 0

    def tick(self):
        self.ticks += 1
        self.now += self.cost

    def __call__(self):
        return self.now


def measured(times, number=1, **task):
    return b.Measurement(number, times, b.TaskSpec(task.pop("stmt", "x + y"), task.pop("setup", "pass"), **task))


class TestTimer:
    def test_timeit(self):
        clock = Clock()
        m = b.Timer("c.tick()", globals={"c": clock}, timer=clock, label="ticks").timeit(500)
        assert (m.number_per_run, m.times, clock.ticks) == (500, [pytest.approx(1e-3)], 505)  # with five to warm up
        assert (m.label, m.title) == ("ticks", "ticks")

    def test_blocks(self):
        clock, seen = Clock(), []
        m = b.Timer("c.tick()", globals={"c": clock}, timer=clock).blocked_autorange(
            min_run_time=0.2, callback=lambda n, t: seen.append(n)
        )
        assert m.number_per_run == 1
        assert len(m.raw_times) == len(seen) == 200
        assert m.median == pytest.approx(1e-3)

    def test_until_sure(self):
        clock = Clock()
        timer = b.Timer("c.tick()", globals={"c": clock}, timer=clock)
        assert len(timer.adaptive_autorange().raw_times) >= 4
        clock.cost = 1.0
        assert timer.adaptive_autorange(threshold=0, max_run_time=3.5).mean == pytest.approx(1.0)

    def test_threads_are_set_and_set_back(self):
        before = torch.get_num_threads()
        seen = []
        b.Timer("seen.append(torch.get_num_threads())", globals={"seen": seen}, num_threads=1).timeit(1)
        assert set(seen) == {1}
        assert torch.get_num_threads() == before

    def test_statements_may_be_indented(self):
        task = b.Timer("\n    x = 1\n    y = x\n", setup="   z = 2")._task_spec
        assert (task.stmt, task.setup) == ("x = 1\ny = x", "z = 2")

    def test_what_is_refused(self):
        with pytest.raises(NotImplementedError, match="instructions are not counted"):
            b.Timer().collect_callgrind()
        with pytest.raises(NotImplementedError, match="compiles no C"):
            b.Timer("x", language="c++")
        with pytest.raises(ValueError, match="Invalid language"):
            b.Timer("x", language="rust")
        with pytest.raises(ValueError, match="only a `str` stmt"):
            b.Timer(len)
        with pytest.raises(ValueError, match="global_setup is C"):
            b.Timer(global_setup="x")
        with pytest.raises(NotImplementedError, match="blocked_autorange"):
            b.Timer().repeat()
        with pytest.raises(NotImplementedError, match="tensor_constructor"):
            b.FuzzedSparseTensor()


class TestMeasurement:
    def test_statistics(self):
        m = measured([1.0, 2.0, 3.0, 4.0, 5.0], number=10)
        assert (m.median, m.mean, m.iqr) == (pytest.approx(0.3), pytest.approx(0.3), pytest.approx(0.2))
        assert m.has_warnings
        assert not m.meets_confidence()
        assert measured([1.0, 1.001, 1.002, 1.003]).significant_figures == 3

    def test_repr(self):
        lines = repr(measured([1e-5, 1e-5, 1e-5, 3e-5], label="sum", sub_label="small", setup="a = 1")).splitlines()[1:]
        assert lines[:5] == ["sum: small", "setup: a = 1", "  Median: 10.00 us", "  IQR:    5.00 us (10.00 to 15.00)",
                             "  4 measurements, 1 runs per measurement, 1 thread"]  # fmt: skip
        assert lines[5:] == ["  WARNING: Interquartile range is 50.0% of the median measurement.",
                             "           This suggests significant environmental influence."]  # fmt: skip

    def test_merge(self):
        (m,) = b.Measurement.merge([measured([2.0], 2), measured([3.0])])
        assert (m.times, m.number_per_run) == ([1.0, 3.0], 1)

    def test_numbers(self):
        assert [b.select_unit(t)[0] for t in (3e-7, 2e-5, 1.5e-3, 12.0)] == ["ns", "us", "ms", "s"]
        assert (b.trim_sigfig(3.14159, 2), b.trim_sigfig(31415.9, 3)) == (pytest.approx(3.1), 31400)
        assert b.unit_to_english("us") == "microsecond"
        assert b.ordered_unique("abca") == ["a", "b", "c"]


class TestCompare:
    def test_table(self):
        results = [
            measured([1e-5], label="add", sub_label="small", description="ours"),
            measured([3e-5], label="add", sub_label="small", description="theirs"),
            measured([2e-4], label="add", sub_label="large", description="ours"),
        ]
        text = str(b.Compare(results))
        assert "Times are in microseconds (us)." in text
        assert [line.split("|")[0].strip() for line in text.splitlines() if "|" in line] == ["", "small", "large"]

    def test_colours(self):
        compare = b.Compare([measured([1e-5], description="a"), measured([9e-5], description="b")])
        compare.colorize(rowwise=True)
        best, worst = str(compare).splitlines()[3].split("|")[1:]
        assert best.strip().startswith("\033[92m")
        assert worst.strip().startswith("\033[31m")

    def test_only_measurements(self):
        with pytest.raises(ValueError, match="Expected an instance of `Measurement`"):
            b.Compare([3])


class TestFuzzer:
    def test_the_same_from_the_same_seed(self):
        def drawn():
            fuzzer = b.Fuzzer(
                [
                    b.FuzzedParameter("n", 1, 64, "loguniform"),
                    b.FuzzedParameter("k", distribution={1: 0.5, b.ParameterAlias("n"): 0.5}),
                ],
                [b.FuzzedTensor("x", ("n", "k"), steps=(2,), max_elements=100)],
                constraints=[lambda p: p["n"] > 2],
                seed=3,
            )
            found = [(t["x"].shape, t["x"].stride(), t["x"].sum().item(), p) for t, _, p in fuzzer.take(4)]
            assert 0 < fuzzer.rejection_rate < 1
            return found

        found = drawn()
        assert found == drawn()
        assert all(2 < p["n"] <= 64 and p["k"] in (1, p["n"]) and s.numel() <= 100 for s, _, _, p in found)

    def test_what_cannot_be_drawn(self):
        with pytest.raises(ValueError, match="Failed to generate"):
            next(b.Fuzzer([b.FuzzedParameter("n", 1, 2, "uniform")], [], [lambda p: False]).take(1))
        with pytest.raises(AssertionError, match="not normalized"):
            b.FuzzedParameter("n", distribution={1: 0.2})
        with pytest.raises(ValueError, match="Duplicate names"):
            b.Fuzzer([b.FuzzedParameter("n", 1, 2, "uniform")], [b.FuzzedTensor("n", (1,))])
