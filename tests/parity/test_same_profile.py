"""The same script has the same profile: the events of one step are those that torch's profiler records.

`python tests/parity/profile_comparison.py` prints the scores of every program, and what is missing.
"""

import statistics

import pytest

pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore")]


@pytest.fixture(scope="module")
def comparisons():
    from profile_comparison import PROGRAMS_AND_EXAMPLES, compare

    return [compare(program) for program in PROGRAMS_AND_EXAMPLES]


def average(comparisons, kind):
    return statistics.mean(c.score(kind) for c in comparisons)


@pytest.mark.parametrize(("kind", "aim"), [("names", 0.95), ("shapes", 0.93), ("parents", 0.90)])
def test_examples_have_the_same_events(comparisons, kind, aim):
    """What is missing is what no kernel here does: memory cleared before it is written, and the parts of what is one kernel here."""
    from profile_comparison import misses

    examples = [c for c in comparisons if c.program.startswith("examples/")]
    assert average(examples, kind) >= aim, misses(examples, [kind])


@pytest.mark.parametrize(("kind", "aim"), [("names", 0.98), ("shapes", 0.95), ("parents", 0.90)])
def test_every_program_has_the_same_events(comparisons, kind, aim):
    """Apart from what torch's kernels do to get the memory of their results ready, and the parts of operators that are one kernel here."""
    from profile_comparison import APART, misses

    assert average(comparisons, APART[kind]) >= aim, misses(comparisons, [APART[kind]])


def test_every_program_has_the_same_parents_with_that_counted_too(comparisons):
    assert average(comparisons, "parents") >= 0.90


def test_backward_nodes_belong_to_the_same_forward_operators(comparisons):
    from profile_comparison import misses

    assert average(comparisons, "arrows") >= 0.98, misses(comparisons, ["arrows"])


class TestTheComparison:
    def test_examples_are_compared(self, comparisons):
        programs = [c.program for c in comparisons]
        assert {"examples/mlp.py", "examples/cnn.py", "examples/gpt.py"} <= set(programs)
        assert all(c.theirs["names"].total() > 10 for c in comparisons)

    def test_different_programs_differ(self, comparisons):
        from profile_comparison import Comparison

        first, other = comparisons[0], comparisons[2]
        assert Comparison("mixed", first.ours, other.theirs).score("names") < 0.8

    def test_what_is_bookkeeping(self):
        from profile_comparison import Row

        step = Row("ProfilerStep*", None)
        linear = Row("aten::linear", step)
        node = Row("AddmmBackward0", step)
        left_out = [
            Row("aten::empty_like", step), Row("aten::as_strided", node), Row("aten::item", step), Row("detach", None),
            Row("aten::t", linear), Row("aten::copy_", linear), Row("aten::copy_", Row("aten::to", linear)), Row("aten::resize_", linear),
            Row("aten::abs", Row("aten::abs", step)), Row("aten::mul", Row("aten::mul_", step)),
        ]  # fmt: skip
        compared = [
            linear, node, Row("aten::t", node), Row("aten::copy_", step), Row("aten::to", step), Row("aten::view", step),
            Row("aten::fill_", linear), Row("aten::resize_as_", linear), Row("aten::clone", linear), Row("aten::abs", step), Row("aten::_local_scalar_dense", linear),
        ]  # fmt: skip
        assert [row.is_bookkeeping for row in left_out] == [True] * len(left_out)
        assert [row.is_bookkeeping for row in compared] == [False] * len(compared)
        assert Row("aten::addmm", Row("aten::reshape", linear)).shown_parent is linear

    def test_what_is_preparation(self):
        from profile_comparison import Row

        total = Row("aten::sum", None)
        assert Row("aten::fill_", total).is_preparation
        assert Row("aten::clamp_min", Row("aten::relu", None)).is_preparation
        assert not Row("aten::fill_", Row("ProfilerStep*", None)).is_preparation
        assert not Row("aten::div_", total).is_preparation
