"""Random programs that know their own profile: what they call, on which track, and the bytes they keep.

A program is a list of steps, each a list of parts. A part runs, and says which events it leaves: `run` and `expected` are written next to
each other, the latter from what ATen calls. Everything is made from one seed, so that a program that fails can be run again.
"""

from __future__ import annotations

import asyncio
import gc
import itertools
import random
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import mindtorch_v2 as torch
from mindtorch_v2.profiler import record_function

Events = dict[str, list[str]]  # by the name of their track: names of operators and scopes, in order of start

ENGINE = "autograd::engine::evaluate_function: "
ACCUMULATE = "torch::autograd::AccumulateGrad"
SCOPES = ("s", "t", 'u"\\\n', "é\u202e\ud800", "</script>\x1b[31m")


class LeftError(Exception):
    """What programs raise on purpose."""


@dataclass
class Run:
    """What one run of a program leaves behind."""

    profiler: Any = None  # None for a run that is not recorded
    results: dict[int, list[bytes]] = field(default_factory=dict)  # by the number of the part
    kept: list[Any] = field(default_factory=list)  # tensors that live at the end
    open: list[Any] = field(default_factory=list)  # generators that are never finished
    functions: int = 0  # calls of `helper`
    modules: int = 0  # calls of `Doubling`
    lock: Any = field(default_factory=threading.Lock)

    def add(self, part: Part, tensor: Any, *, keep: bool = False) -> None:
        with self.lock:
            self.results.setdefault(part.number, []).append(tensor.numpy().tobytes())
            if keep:
                self.kept.append(tensor)


class Part:
    """A piece of a program. `track` is where its events go."""

    number: int = 0

    def prepare(self) -> None:
        """Make what the part needs, outside of the recording."""

    def run(self, run: Run) -> None:
        raise NotImplementedError

    def expected(self, track: str, events: Events) -> None:
        """Add the names of the events."""

    def parts(self) -> Iterator[Part]:
        """This part and those inside of it."""
        yield self


def helper(run: Run) -> None:
    with run.lock:
        run.functions += 1


class Doubling(torch.nn.Module):
    def forward(self, x: Any) -> Any:
        return x + x


class Triple(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x * 3

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        return gradient * 3


A, B = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]), torch.tensor([[0.5, -1.0], [2.0, 0.25], [-3.0, 1.0]])
OPERATORS: dict[str, tuple[Callable[[], Any], list[str]]] = {
    "add": (lambda: A + A, ["aten::add"]),
    "mm": (lambda: torch.mm(A, B), ["aten::mm"]),
    "linear": (lambda: torch.nn.functional.linear(A, A), ["aten::linear", "aten::t", "aten::matmul", "aten::mm"]),
    "cat": (lambda: torch.cat([A, A]), ["aten::cat"]),
    "log_softmax": (lambda: torch.log_softmax(A, 1), ["aten::log_softmax", "aten::_log_softmax"]),
    "topk": (lambda: A.topk(2)[0], ["aten::topk"]),
    "view": (lambda: A.view(6), ["aten::view"]),
    "int": (lambda: (A > 2).sum(), ["aten::gt", "aten::sum"]),
    "large": (lambda: torch.exp(LARGE), ["aten::exp"]),
    "empty": (lambda: torch.mul(NOTHING, NOTHING), ["aten::mul"]),
}
LARGE, NOTHING = torch.linspace(-1, 1, 5000), torch.tensor([])


@dataclass
class Operator(Part):
    """A call of an operator, whose result is kept or dropped."""

    name: str
    keep: bool = False

    def run(self, run: Run) -> None:
        run.add(self, OPERATORS[self.name][0](), keep=self.keep)

    def expected(self, track: str, events: Events) -> None:
        events[track] += OPERATORS[self.name][1]


@dataclass
class Failing(Part):
    """An operator that raises."""

    def run(self, run: Run) -> None:
        try:
            torch.mm(A, A)
        except RuntimeError:
            return
        raise AssertionError("shapes that do not fit were multiplied")

    def expected(self, track: str, events: Events) -> None:
        events[track].append("aten::mm")


@dataclass
class Drawing(Part):
    """Random numbers of a generator of its own, and a write into them."""

    seed: int
    generator: Any = None

    def prepare(self) -> None:
        self.generator = torch.Generator().manual_seed(self.seed)

    def run(self, run: Run) -> None:
        drawn = torch.randn(7, generator=self.generator)
        drawn.mul_(2)
        run.add(self, drawn, keep=self.seed % 2 == 0)

    def expected(self, track: str, events: Events) -> None:
        events[track] += ["aten::randn", "aten::mul_"]


# name → function, operators forward, the node, operators backward
LINKS: dict[str, tuple[Callable[[Any], Any], list[str], str, list[str]]] = {
    "exp": (torch.exp, ["aten::exp"], "ExpBackward0", ["aten::mul"]),
    "relu": (torch.relu, ["aten::relu"], "ReluBackward0", ["aten::threshold_backward"]),
    "neg": (torch.neg, ["aten::neg"], "NegBackward0", ["aten::neg"]),
    "sigmoid": (torch.sigmoid, ["aten::sigmoid"], "SigmoidBackward0", ["aten::sigmoid_backward"]),
    "mul": (lambda x: x * 2, ["aten::mul"], "MulBackward0", ["aten::mul"]),
    "custom": (Triple.apply, ["Triple", "aten::mul"], "TripleBackward", ["aten::mul"]),
}


@dataclass
class Backward(Part):
    """A chain of operators on a leaf, and its backward pass; with a hook in the middle that runs an operator in a scope, or raises."""

    links: list[str]
    hook: str = ""  # "", "scope" or "raise"
    keep: bool = False
    leaf: Any = None

    def prepare(self) -> None:
        self.leaf = torch.tensor([[0.5, -0.25, 0.125]], requires_grad=True)

    def run(self, run: Run) -> None:
        self.leaf.grad = None
        x = self.leaf
        for name in self.links:
            x = LINKS[name][0](x)
            if self.hook and x.grad_fn is not None:
                hooked, self_hook = x, self.hook
        if self.hook:
            hooked.register_hook(self._in_scope if self_hook == "scope" else self._raising)
        try:
            x.sum().backward()
        except LeftError:
            assert self.hook == "raise"
        else:
            run.add(self, self.leaf.grad, keep=self.keep)
        if not self.keep:
            self.leaf.grad = None

    @staticmethod
    def _in_scope(gradient: Any) -> Any:
        with record_function("hook"):
            return gradient * 2

    @staticmethod
    def _raising(gradient: Any) -> Any:
        raise LeftError

    def expected(self, track: str, events: Events) -> None:
        names = events[track]
        for name in self.links:
            names += LINKS[name][1]
        names += ["aten::sum", "aten::ones_like", f"{ENGINE}SumBackward0", "SumBackward0", "aten::expand"]
        for at, name in enumerate(reversed(self.links)):
            _, _, node, inside = LINKS[name]
            names.append(f"{ENGINE}{node}")
            if at == 0 and self.hook == "raise":
                return
            if at == 0 and self.hook == "scope":
                names += ["hook", "aten::mul"]
            names += [node, *inside]
        names += [ENGINE + ACCUMULATE, ACCUMULATE]


@dataclass
class Gradients(Part):
    """`autograd.grad` of a leaf, without a leaf's node."""

    leaf: Any = None

    def prepare(self) -> None:
        self.leaf = torch.tensor([1.0, 2.0], requires_grad=True)

    def run(self, run: Run) -> None:
        (gradient,) = torch.autograd.grad(torch.exp(self.leaf).sum(), self.leaf)
        run.add(self, gradient)

    def expected(self, track: str, events: Events) -> None:
        events[track] += ["aten::exp", "aten::sum", "aten::ones_like", f"{ENGINE}SumBackward0", "SumBackward0", "aten::expand"]
        events[track] += [f"{ENGINE}ExpBackward0", "ExpBackward0", "aten::mul", ENGINE + ACCUMULATE]


@dataclass
class ModuleCall(Part):
    """A module of the program's own inside of a container."""

    model: Any = None

    def prepare(self) -> None:
        self.model = torch.nn.Sequential(Doubling(), torch.nn.ReLU())

    def run(self, run: Run) -> None:
        with run.lock:
            run.modules += 1
        run.add(self, self.model(A))

    def expected(self, track: str, events: Events) -> None:
        events[track] += ["aten::add", "aten::relu"]


@dataclass
class Training(Part):
    """A step of an optimizer."""

    model: Any = None
    optimizer: Any = None

    def prepare(self) -> None:
        torch.manual_seed(0)
        self.model = torch.nn.Linear(3, 2)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.5, foreach=False)

    def run(self, run: Run) -> None:
        with torch.no_grad():
            for parameter in self.model.parameters():
                parameter.grad = A if parameter.ndim == 2 else None
        self.optimizer.step()
        self.optimizer.zero_grad()
        run.add(self, self.model.weight.detach())

    def expected(self, track: str, events: Events) -> None:
        events[track] += ["Optimizer.step#SGD.step", "aten::add_", "Optimizer.zero_grad#SGD.zero_grad", "aten::detach"]


@dataclass
class Function(Part):
    """Calls of a Python function, and a run of the garbage collector now and then."""

    calls: int
    collects: bool = False

    def run(self, run: Run) -> None:
        for _ in range(self.calls):
            helper(run)
        if self.collects:
            gc.collect(0)


@dataclass
class Several(Part):
    """Parts one after the other, some times."""

    inside: list[Part]
    times: int = 1

    def prepare(self) -> None:
        for part in self.inside:
            part.prepare()

    def parts(self) -> Iterator[Part]:
        yield self
        for part in self.inside:
            yield from part.parts()

    def run(self, run: Run) -> None:
        for _ in range(self.times):
            for part in self.inside:
                part.run(run)

    def expected(self, track: str, events: Events) -> None:
        for _ in range(self.times):
            for part in self.inside:
                part.expected(track, events)


@dataclass
class Scope(Several):
    """A scope, left by its end, by an exception, or after another that was entered later."""

    name: str = ""
    leaves_by: str = "end"

    def run(self, run: Run) -> None:
        if self.leaves_by == "straddling":
            outer, inner = record_function(self.name), record_function("inner")
            outer.__enter__()
            inner.__enter__()
            super().run(run)
            outer.__exit__(None, None, None)
            inner.__exit__(None, None, None)
            return
        try:
            with record_function(self.name):
                super().run(run)
                if self.leaves_by == "raising":
                    raise LeftError
        except LeftError:
            assert self.leaves_by == "raising"

    def expected(self, track: str, events: Events) -> None:
        events[track] += [self.name, "inner"] if self.leaves_by == "straddling" else [self.name]
        super().expected(track, events)


@dataclass
class Generator(Several):
    """A scope in a generator that is exhausted, closed, dropped, or left as it is until after the recording."""

    ends_by: str = "end"

    def run(self, run: Run) -> None:
        def generate() -> Iterator[None]:
            with record_function("generator"):
                yield

        generator = generate()
        next(generator)
        super().run(run)
        if self.ends_by == "end":
            assert list(generator) == []
        elif self.ends_by == "close":
            generator.close()
        elif self.ends_by == "never":
            run.open.append(generator)

    def expected(self, track: str, events: Events) -> None:
        events[track].append("generator")
        super().expected(track, events)


@dataclass
class Paused(Several):
    """Parts while collection is switched off."""

    def run(self, run: Run) -> None:
        if run.profiler is None:
            return super().run(run)
        run.profiler.toggle_collection_dynamic(False, [torch.profiler.ProfilerActivity.CPU])
        try:
            super().run(run)
        finally:
            run.profiler.toggle_collection_dynamic(True, [torch.profiler.ProfilerActivity.CPU])
        return None

    def expected(self, track: str, events: Events) -> None:
        return


@dataclass
class Threads(Several):
    """Parts on a thread each; a thread may die of an exception."""

    die: bool = False

    def run(self, run: Run) -> None:
        def work(part: Part) -> None:
            part.run(run)
            if self.die:
                raise LeftError

        threads = [threading.Thread(target=work, args=(part,), name=f"thread {part.number}") for part in self.inside]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def expected(self, track: str, events: Events) -> None:
        for part in self.inside:
            part.expected(f"thread {part.number}", events)


@dataclass
class Tasks(Several):
    """Parts as tasks of an event loop, each in a scope of its own; a task may raise or be cancelled at its end."""

    ends_by: str = "end"

    def run(self, run: Run) -> None:
        waiting = 0

        async def work(part: Several) -> None:
            nonlocal waiting
            with record_function(f"task {part.number}"):
                for inside in part.inside * part.times:
                    inside.run(run)
                    await asyncio.sleep(0)
                if self.ends_by == "raising":
                    raise LeftError
                if self.ends_by == "cancelled":
                    waiting += 1
                    await asyncio.Event().wait()

        async def main() -> None:
            tasks = [asyncio.create_task(work(part), name=f"task {part.number}") for part in self.inside]  # type: ignore[arg-type]
            while self.ends_by == "cancelled" and waiting < len(tasks):
                await asyncio.sleep(0)
            for task in tasks if self.ends_by == "cancelled" else ():
                task.cancel()
            for result in await asyncio.gather(*tasks, return_exceptions=True):
                if not (result is None or isinstance(result, LeftError | asyncio.CancelledError)):
                    raise result

        asyncio.run(main())

    def expected(self, track: str, events: Events) -> None:
        for part in self.inside:
            events[f"task {part.number}"].append(f"task {part.number}")
            part.expected(f"task {part.number}", events)


# Choosing ----------------------------------------------------------------------------------------------------------------------

MODES = ("record_shapes", "with_stack", "profile_memory", "with_modules", "with_flops")


@dataclass
class Program:
    """Steps of a program, and how it is recorded."""

    seed: int
    steps: list[Several]
    options: dict[str, Any]
    schedule: dict[str, int] | None

    @staticmethod
    def of(seed: int) -> Program:
        return _Chooser(seed).program()

    def prepare(self) -> None:
        for number, part in enumerate(itertools.chain.from_iterable(step.parts() for step in self.steps)):
            part.number = number
        for step in self.steps:
            step.prepare()

    def all_parts(self) -> list[Part]:
        return [part for step in self.steps for part in step.parts()]


class _Chooser:
    def __init__(self, seed: int) -> None:
        self._seed, self._random = seed, random.Random(seed)

    def program(self) -> Program:
        chosen = self._random
        options: dict[str, Any] = {mode: True for mode in MODES if chosen.random() < 0.4}
        schedule = None
        if chosen.random() < 0.3:
            schedule = {
                "wait": chosen.randrange(2), "warmup": chosen.randrange(2), "active": chosen.randrange(1, 3),
                "repeat": chosen.randrange(3), "skip_first": chosen.randrange(2),
            }  # fmt: skip
            options["acc_events"] = chosen.random() < 0.5
        steps = [Several(self._parts(3, alone=True)) for _ in range(chosen.randrange(1, 7) if schedule else 1)]
        return Program(self._seed, steps, options, schedule)

    def _parts(self, depth: int, *, alone: bool = False, in_loop: bool = False) -> list[Part]:
        return [self._part(depth, alone=alone, in_loop=in_loop) for _ in range(self._random.randrange(5))]

    def _part(self, depth: int, *, alone: bool, in_loop: bool) -> Part:
        """A part; `alone` if collection can be paused, `in_loop` inside of an event loop."""
        chosen = self._random
        if depth == 0 or chosen.random() < 0.55:
            return self._leaf()
        kinds = [
            "several",
            "scope",
            "scope",
            "generator",
            "threads",
            *([] if in_loop else ["tasks"]),
            *(["paused"] if alone else []),
        ]
        kind = chosen.choice(kinds)
        if kind == "threads":
            return Threads([Several(self._parts(depth - 1)) for _ in range(chosen.randrange(1, 4))], die=chosen.random() < 0.2)
        if kind == "tasks":
            inside: list[Part] = [Several(self._parts(depth - 1, in_loop=True)) for _ in range(chosen.randrange(1, 4))]
            return Tasks(inside, ends_by=chosen.choice(["end", "end", "raising", "cancelled"]))
        parts = self._parts(depth - 1, alone=alone and kind != "paused", in_loop=in_loop)
        if kind == "scope":
            leaves_by = chosen.choice(["end", "end", "raising", "straddling"])
            return Scope(parts, name=chosen.choice(SCOPES), leaves_by=leaves_by)
        if kind == "generator":
            return Generator(parts, ends_by=chosen.choice(["end", "close", "drop", "never"]))
        return Paused(parts) if kind == "paused" else Several(parts, times=chosen.randrange(3))

    def _leaf(self) -> Part:
        chosen = self._random
        leaves: list[Callable[[], Part]] = [
            lambda: Operator(chosen.choice(sorted(OPERATORS)), keep=chosen.random() < 0.3),
            lambda: Operator(chosen.choice(sorted(OPERATORS))),
            Failing,
            lambda: Drawing(chosen.randrange(100)),
            lambda: Backward(
                [chosen.choice(sorted(LINKS)) for _ in range(chosen.randrange(1, 4))],
                hook=chosen.choice(["", "scope", "raise"]),
                keep=chosen.random() < 0.3,
            ),
            Gradients,
            ModuleCall,
            Training,
            lambda: Function(chosen.randrange(4), collects=chosen.random() < 0.3),
        ]
        return chosen.choice(leaves)()
