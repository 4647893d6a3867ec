"""Advice about tensors that grow by concatenation, and about graphs that are kept alive, with who keeps them."""

import gc
import weakref

import pytest

import mindtorch_v2 as torch
from mindtorch_v2.profiler import Session, advise, profile
from mindtorch_v2.profiler.advice import facts, owners
from mindtorch_v2.profiler.model.session import Info, TensorInput

from .by_hand import op, record, scope

pytestmark = pytest.mark.usefixtures("nothing_frozen")

SHAPES = Info(record_shapes=True)


def found(session, rule, **options):
    return [finding for finding in advise(session, **options) if finding.rule == rule]


def tensor(*shape):
    strides = [1]
    for extent in shape[:0:-1]:
        strides.insert(0, strides[0] * extent)
    return TensorInput(shape, tuple(strides[-len(shape) :]), "float32")


class TestConcatenation:
    def cats(self, sizes, *, first=0, took=1000, piece=5, shape=lambda n: (n,), dim=0):
        return [
            op(
                "aten::cat",
                first + i * 100_000,
                first + i * 100_000 + took * (i + 1),
                inputs=([tensor(*shape(n)), tensor(*shape(piece))], dim),
            )
            for i, n in enumerate(sizes)
        ]

    def growing(self, count, **options):
        return self.cats(range(5, 5 * count + 1, 5), **options)

    def test_all_but_the_last_are_gained(self):
        (finding,) = found(record(self.growing(20), info=SHAPES), "concatenation in a loop")
        assert finding.gain_ns == 1000 * sum(range(1, 20))
        assert finding.gain_share == finding.gain_ns / (19 * 100_000 + 20_000)
        assert "20 times" in finding.seen
        assert "quadratic" in finding.seen

    def test_it_may_begin_with_nothing(self):
        first = op("aten::cat", -100_000, -99_000, inputs=([tensor(0), tensor(5)], 0))
        (finding,) = found(record([first, *self.growing(20)], info=SHAPES), "concatenation in a loop")
        assert "21 times" in finding.seen

    def test_along_another_dim(self):
        events = self.growing(20, shape=lambda n: (3, n), dim=-1)
        assert len(found(record(events, info=SHAPES), "concatenation in a loop")) == 1

    def test_two_that_grow_in_one_loop(self):
        events = [*self.growing(12), *self.growing(12, first=500, took=300, shape=lambda n: (n, 2))]
        (finding,) = found(record(events, info=SHAPES), "concatenation in a loop", min_share=0)
        assert "24 times" in finding.seen

    @pytest.mark.parametrize("sizes", [[5] * 20, list(range(5, 45, 5)), [5, 10] * 10])
    def test_what_does_not_grow(self, sizes):
        assert found(record(self.cats(sizes), info=SHAPES), "concatenation in a loop", min_share=0) == []

    def test_what_cannot_be_told(self):
        events = [
            op("aten::cat", i * 10, i * 10 + 9, inputs=given) for i, given in enumerate([((), 0), ([tensor(3)], None), ([], 0)])
        ]
        assert found(record(events, info=SHAPES), "concatenation in a loop", min_share=0) == []

    def test_a_sequence_that_is_generated(self):
        made = torch.zeros(1, 1)
        with profile(record_shapes=True) as prof:
            for _ in range(15):
                made = torch.cat([made, made[:, -1:] + 1], dim=1)
        (finding,) = found(prof, "concatenation in a loop", min_share=0)
        assert "15 times" in finding.seen

    def test_the_backward_passes_count(self):
        events = [event._replace(sequence=i) for i, event in enumerate(self.growing(20))]
        name = "autograd::engine::evaluate_function: CatBackward0"
        back = [op(name, 10**7 + i * 10_000, 10**7 + i * 10_000 + 2000, sequence=19 - i) for i in range(20)]
        (alone,) = found(record(events, info=SHAPES), "concatenation in a loop", min_share=0)
        (both,) = found(record([*events, *back], info=SHAPES), "concatenation in a loop", min_share=0)
        assert both.gain_ns - alone.gain_ns == 19 * 2000


WEIGHT = torch.ones(50, requires_grad=True)
kept_by_module = None


class Trainer:
    def __init__(self):
        self.total = 0
        self.history = {"loss": []}


class Slotted:
    __slots__ = ("total",)

    def __init__(self):
        self.total = 0


def steps(add, count=4):
    """A recording of steps, of which each gives its loss away."""
    with profile() as prof:
        for _ in range(count):
            add((WEIGHT * 2).square().sum())
            prof.step()
    return prof


class TestGraphs:
    def seen(self, prof):
        (finding,) = found(prof, "graph kept alive")
        return finding.seen

    def test_a_sum_of_losses(self):
        total = 0
        with profile() as prof:
            for _ in range(4):
                total = total + (WEIGHT * 2).square().sum()
                prof.step()
        (finding,) = found(prof, "graph kept alive")
        assert finding.seen.startswith("Graphs of 4 steps are still alive, 16 nodes in all, and one more with each step.")
        assert "Kept by total, a variable of test_a_sum_of_losses (test_advice_graphs.py:" in finding.seen
        saved = 4 * 50 * 4  # by pow
        assert saved < finding.kept_bytes < saved + 16 * 2000
        assert finding.gain_ns == 0
        assert f"{finding.kept_bytes / 1024:.2f} KB of memory kept" in str(finding)
        assert {evidence.operator for evidence in finding.evidence} == {"aten::add"}
        assert finding.as_dict()["kept_bytes"] == finding.kept_bytes

    def test_a_sum_of_numbers(self):
        total = 0
        with profile() as prof:
            for _ in range(4):
                total = total + (WEIGHT * 2).square().sum().detach()
                prof.step()
        assert found(prof, "graph kept alive", min_share=0) == []

    def test_the_last_loss_is_one_step(self):
        with profile() as prof:
            for _ in range(4):
                loss = (WEIGHT * 2).square().sum()
                prof.step()
        assert found(prof, "graph kept alive", min_share=0) == []
        assert loss.requires_grad

    def test_an_attribute(self):
        trainer = Trainer()

        def add(loss):
            trainer.total = trainer.total + loss

        assert "Kept by trainer.total, a variable of test_an_attribute (" in self.seen(steps(add))

    def test_a_list_in_a_dict_of_an_object(self):
        trainer = Trainer()
        seen = self.seen(steps(trainer.history["loss"].append))
        assert "Graphs of 4 steps" in seen
        assert "Kept by trainer.history['loss'][3], a variable of test_a_list_in_a_dict_of_an_object (" in seen

    def test_slots(self):
        slotted = Slotted()

        def add(loss):
            slotted.total = slotted.total + loss

        assert "Kept by slotted.total, a variable of test_slots (" in self.seen(steps(add))

    def test_a_global_variable(self):
        global kept_by_module
        kept_by_module = []
        try:
            assert f"Kept by kept_by_module[3], a global variable of {__name__}." in self.seen(steps(kept_by_module.append))
        finally:
            kept_by_module = None

    def test_a_variable_of_a_closure(self):
        def adder():
            total = 0

            def add(loss):
                nonlocal total
                total = total + loss

            return add

        assert "Kept by total, a variable that add uses (test_advice_graphs.py:" in self.seen(steps(adder()))

    def test_what_is_freed_by_then_is_not_found(self):
        losses = []
        prof = steps(losses.append)
        losses.clear()
        gc.collect()
        assert found(prof, "graph kept alive", min_share=0) == []

    def test_a_session_of_another_process_says_nothing(self, tmp_path):
        losses = []
        prof = steps(losses.append)
        session = prof.session
        assert found(session, "graph kept alive")
        session.save(tmp_path / "run.session")
        assert found(Session.load(tmp_path / "run.session"), "graph kept alive")  # the same process
        elsewhere = session.replace(info=Info(pid=session.info.pid + 1))
        assert found(elsewhere, "graph kept alive", min_share=0) == []

    def test_looking_keeps_nothing_alive(self):
        loss = (WEIGHT * 2).sum()
        other = torch.ones(3)
        assert owners.owners([loss])[0].startswith("loss, a variable of test_looking_keeps_nothing_alive (")
        freed = weakref.ref(loss), weakref.ref(other)
        del loss, other
        assert [reference() for reference in freed] == [None, None]

    def test_the_program_s_own_locals_stay(self):
        value = (WEIGHT * 2).sum()
        mine = locals()
        owners.owners([value])
        assert mine["value"] is value

    def test_nobody(self):
        found = owners.owners([torch.ones(3)])
        assert found == [""]


class Keeper:
    best = None


def remember(loss, *, kept=[]):  # noqa: B006 - which is what is looked for
    kept.append(loss)


class TestWays:
    """The way from a variable to an object, through whatever refers to it."""

    @pytest.fixture
    def target(self):
        return [torch.ones(2)]

    def way(self, target):
        (way,) = owners.owners([target.pop()])
        return way

    def test_an_attribute_of_a_class(self, target):
        Keeper.best = {"loss": (1, target[0])}
        try:
            assert self.way(target) == f"Keeper.best['loss'][1], a global variable of {__name__}"
        finally:
            Keeper.best = None

    def test_a_default_argument(self, target):
        remember(target[0])
        try:
            assert self.way(target) == f"remember.__kwdefaults__['kept'][0], a global variable of {__name__}"
        finally:
            remember.__kwdefaults__["kept"].clear()

    def test_a_generator_that_waits(self, target):
        def batches(held):
            yield held.sum()

        waiting = batches(target[0])
        next(waiting)
        way = self.way(target)
        assert way.startswith("waiting.held, a variable of test_a_generator_that_waits (")

    def test_a_function_that_has_failed(self, target):
        def fail(held):
            raise ValueError

        try:
            fail(target[0])
        except ValueError as error:
            caught = error
        way = self.way(target)
        assert way.startswith("caught.")
        assert ".held, a variable of test_a_function_that_has_failed (" in way
        del caught

    def test_what_runs_code_is_not_asked(self, target):
        class Careful:
            def __init__(self, held):
                self.held = held

            def __getattribute__(self, name):
                raise AssertionError(name)

        careful = Careful(target[0])
        assert self.way(target).startswith("careful.held, a variable of test_what_runs_code_is_not_asked (")
        del careful

    def test_tensors_lead_to_tensors_and_graphs_do_not(self, target):
        weight = torch.ones(2, requires_grad=True)
        product = weight * target[0]  # which its node has saved
        assert self.way(target) == ""
        gradient = torch.ones(2)
        weight.grad = gradient
        target.append(gradient)
        del gradient
        assert self.way(target).startswith("weight.")
        del product


class TestFrozen:
    """`gc.freeze()` puts objects aside: `gc.get_objects` and `gc.get_referrers` do not see them any more."""

    PROGRAM = """
    import gc
    import mindtorch_v2 as torch
    from mindtorch_v2.profiler import advise, profile

    weight, total, losses = torch.ones(50, requires_grad=True), 0, []

    def step():
        global total
        {step}

    def main():
        {before}
        with profile() as prof:
            for _ in range(4):
                step()
                prof.step()
        {after}
        return prof

    (finding,) = [finding for finding in advise(main()) if finding.rule == "graph kept alive"]
    print(finding.seen)
    """

    @pytest.mark.parametrize(
        ("before", "after"), [("", ""), ("gc.freeze()", ""), ("", "gc.freeze()")], ids=["not", "before", "after"]
    )
    @pytest.mark.parametrize(
        ("step", "way"),
        [("total = total + (weight * 2).sum()", "total"), ("losses.append((weight * 2).sum())", "losses[3]")],
        ids=["sum", "list"],
    )
    def test_a_global_variable(self, run_python, step, way, before, after):
        done = run_python(self.PROGRAM.format(step=step, before=before or "pass", after=after or "pass"))
        assert done.stderr == ""
        assert "Graphs of 4 steps are still alive" in done.stdout
        assert f"Kept by {way}, a global variable of __main__." in done.stdout


class TestRunAgain:
    NAME = "autograd::engine::evaluate_function: MulBackward0"

    def test_nodes_of_earlier_steps_are_gained(self):
        events = []
        for step in range(4):
            at = step * 100_000
            events.append(op("aten::mul", at, at + 1000, sequence=step, step=step))
            events += [
                op(self.NAME, at + 5000 * (i + 1), at + 5000 * (i + 1) + 2000, sequence=step - i, step=step)
                for i in range(step + 1)
            ]
        (finding,) = found(record(events), "graph kept alive")
        between = 3 * (3000 - facts.PLAIN_NS)  # one in the third step, two in the fourth
        assert finding.gain_ns == (1 + 2 + 3) * 2000 + between
        assert "Backward passes ran nodes of earlier steps 6 times" in finding.seen
        assert finding.kept_bytes == 0

    def test_steps_of_the_optimizer(self):
        events = []
        for step in range(3):
            at = step * 100_000
            events += [
                op("aten::mul", at, at + 1000, sequence=step),
                op(self.NAME, at + 2000, at + 3000, sequence=step),
                scope("Optimizer.step#SGD.step", at + 4000, at + 5000),
            ]
        assert found(record(events), "graph kept alive", min_share=0) == []
