"""The same program under our profiler and under torch's: how alike are the events of one step?

    python tests/parity/profile_comparison.py [PROGRAM …] [--kinds names,parents] [--sum]

For each program and each kind of fact the F1 score of the two multisets of facts: twice what both have, over the sum of what each has.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import functools
import io
import json
import os
import runpy
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

import torch
from profile_programs import PROGRAMS

import mindtorch_v2

__all__ = ["AIMS", "FACTS", "PROGRAMS_AND_EXAMPLES", "Comparison", "compare", "compare_step", "profile_example"]

EXAMPLES = {f"examples/{path.name}": path for path in sorted((Path(__file__).parents[2] / "examples").glob("*.py"))}
PROGRAMS_AND_EXAMPLES = [*EXAMPLES, *PROGRAMS]

# Averages over the examples to reach, bookkeeping left out.
AIMS = {"names": 0.95, "shapes": 0.93, "parents": 0.90}
# The same three, with what torch's kernels do to their own results left out as well.
APART = {kind: f"{kind} apart" for kind in AIMS}

Step = Callable[[], Any]


# --- running one step under a profiler ------------------------------------------------------------------------------


@contextlib.contextmanager
def plain_torch() -> Iterator[None]:
    """torch without the kernels that only its build has, on one thread, and without a word about switches; LSTMs step by step in both."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with (
            warnings.catch_warnings(action="ignore"),
            torch.backends.mkldnn.flags(enabled=False),
            mindtorch_v2.backends.mkldnn.flags(enabled=False),
            torch.backends.nnpack.flags(enabled=False),
            torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH),
        ):
            yield
    finally:
        torch.set_num_threads(threads)


def _profiler(library: Any, **options: Any) -> Any:
    return library.profiler.profile(
        activities=[library.profiler.ProfilerActivity.CPU],
        schedule=library.profiler.schedule(wait=0, warmup=1, active=1, repeat=1),
        record_shapes=True,
        experimental_config=library.profiler._ExperimentalConfig(capture_overload_names=True),
        **options,
    )


def profile_program(library: Any, make: Callable[[Any], Step]) -> Any:
    library.manual_seed(0)
    step = make(library)
    step()
    with _profiler(library) as prof:
        step()
        prof.step()
        step()
        prof.step()
    return prof


def profile_example(library: Any, path: Path, **options: Any) -> Any:
    """Profile the third of an example's steps, from one call of its first optimizer's `zero_grad` to the next."""
    source = path.read_text().replace("mindtorch_v2", library.__name__)
    zero_grad = library.optim.Optimizer.zero_grad
    prof = _profiler(library, **options)
    first, calls = None, 0

    @functools.wraps(zero_grad)
    def begin_step(self: Any, *args: Any, **kwargs: Any) -> Any:
        nonlocal first, calls
        first = first or self
        calls += self is first
        if self is first and calls == 2:
            prof.start()
        elif self is first and calls in (3, 4):
            prof.step()
        return zero_grad(self, *args, **kwargs)

    with (
        tempfile.TemporaryDirectory() as folder,
        mock.patch.object(library.optim.Optimizer, "zero_grad", begin_step),
        mock.patch.object(library.profiler, "profile", mock.MagicMock()),  # an example that profiles itself must not, here
        mock.patch.object(sys, "argv", [path.name, "--steps", "5"]),
        contextlib.redirect_stdout(io.StringIO()),
    ):
        script = Path(folder) / path.name
        script.write_text(source)
        runpy.run_path(str(script), run_name="__main__")
        prof.stop()
    return prof


# --- what is compared -----------------------------------------------------------------------------------------------

# torch's bookkeeping wherever it is.
BOOKKEEPING = {"aten::as_strided", "aten::resize_", "aten::resolve_conj", "aten::detach", "detach", "aten::item"}
# Bookkeeping inside other operators: conversions, and what they ask of sparse tensors.
CONVERSIONS = {"aten::to", "aten::_to_copy", "aten::copy_"}
CONVERSIONS |= {f"aten::{name}" for name in "_nnz sparse_dim dense_dim is_coalesced _coalesced_".split()}
# What torch's kernels call to get the memory of their results ready: it is sized, and filled with what a sum starts from. Kernels over
# arrays do nothing of the kind, and no operator runs here for the sake of a row. So these rows count as misses in `names`, `shapes` and
# `parents`, and are left out of those three "apart".
PREPARATION = {"aten::" + name for name in "fill_ zero_ zeros zeros_like new_empty resize_as_ as_strided_ transpose_".split()}
# Operators that are one NumPy kernel here and several operators in ATen: what theirs show inside is left out of the three "apart" as well.
ONE_KERNEL = {
    "aten::" + name for name in "relu mean masked_fill rand randn randint repeat_interleave linalg_vector_norm repeat".split()
}


@functools.cache
def _views() -> frozenset[str]:
    """Operators whose result is, or may be, a view of an argument."""

    def is_view(schema: Any) -> bool:
        return any(r.alias_info is not None and not r.alias_info.is_write for r in schema.returns)

    return frozenset(s.name for s in torch._C._jit_get_all_schemas() if s.name.startswith("aten::") and is_view(s))


@dataclass
class Row:
    """An event of either library."""

    name: str
    parent: Row | None
    facts: dict[str, Any] = field(default_factory=dict)

    @functools.cached_property
    def is_bookkeeping(self) -> bool:
        """Whether the contract leaves this row out."""
        if self.name in BOOKKEEPING or self.name.startswith("aten::empty") or self._is_variant_with_out or self._is_of_groups:
            return True
        return (self.name in CONVERSIONS or self.name in _views()) and self._inside_operator

    @functools.cached_property
    def _is_variant_with_out(self) -> bool:
        """Whether an operator makes an empty result and calls its own variant with `out=`: a second row of the same name."""
        return self.parent is not None and self.name.startswith("aten::") and self.name == self.parent.name.rstrip("_")

    @functools.cached_property
    def _is_of_groups(self) -> bool:
        """Whether this is part of a convolution of several groups: torch takes it apart only where oneDNN is off, as it is here."""
        around = self.parent
        return around is not None and (around._has_groups or around._is_of_groups)

    @functools.cached_property
    def _has_groups(self) -> bool:
        place = {"aten::_convolution": 0, "aten::convolution_backward": 1}.get(self.name)
        shapes = self.facts["event"].input_shapes if "event" in self.facts else self.facts.get("Input Dims")
        return place is not None and bool(shapes) and len(shapes[place]) > 2 and shapes[place][1] > shapes[place + 1][1]

    @functools.cached_property
    def is_preparation(self) -> bool:
        """Whether an operator's kernel prepares its result by this row, or does by it a part of what is one kernel here."""
        around = self.shown_parent
        if around is None or not around.name.startswith("aten::"):
            return False
        return self.name in PREPARATION or around.name in ONE_KERNEL

    @functools.cached_property
    def _inside_operator(self) -> bool:
        around = self.parent
        return around is not None and (around.name.startswith("aten::") or around._inside_operator)

    @functools.cached_property
    def shown_parent(self) -> Row | None:
        around = self.parent
        return around.shown_parent if around is not None and around.is_bookkeeping else around


def _rows_of_events(prof: Any) -> list[Row]:
    rows: dict[int, Row] = {}

    def row(event: Any) -> Row:
        if id(event) not in rows:
            parent = None if event.cpu_parent is None else row(event.cpu_parent)
            rows[id(event)] = Row(event.name, parent, {"event": event})
        return rows[id(event)]

    return [row(event) for event in prof.events()]


def _rows_of_trace(prof: Any) -> tuple[list[Row], list[tuple[str, str]]]:
    """The rows of the trace file, and the names at both ends of its arrows from forward to backward."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "trace.json")
        prof.export_chrome_trace(path)
        entries = json.loads(Path(path).read_text())["traceEvents"]
    kept = [e for e in entries if e["ph"] == "X" and e.get("cat") in ("cpu_op", "user_annotation")]
    kept.sort(key=lambda e: (e["ts"], -e["dur"], e["args"]["Ev Idx"]))
    rows: list[Row] = []
    open_rows: dict[Any, list[tuple[Row, float]]] = collections.defaultdict(list)
    innermost: dict[tuple[Any, float], str] = {}
    for e in kept:
        stack = open_rows[e["tid"]]
        while stack and stack[-1][1] <= e["ts"] + 1e-4:
            stack.pop()
        name, _, overload = e["name"].partition(".") if e["name"].startswith("aten::") else (e["name"], "", "")
        rows.append(Row(name, stack[-1][0] if stack else None, {"cat": e["cat"], "overload": overload, **e["args"]}))
        stack.append((rows[-1], e["ts"] + e["dur"]))
        innermost[e["tid"], e["ts"]] = name
    ends: dict[Any, dict[str, str]] = collections.defaultdict(dict)
    for e in entries:
        if e.get("cat") == "fwdbwd":
            ends[e["id"]][e["ph"]] = innermost.get((e["tid"], e["ts"]), "nothing")
    return rows, [(arrow.get("s", "nothing"), arrow.get("f", "nothing")) for arrow in ends.values()]


def _text(value: Any) -> str:
    return json.dumps(value)


# kind of fact → what it is of an event
OF_EVENTS: dict[str, Callable[[Row], Any]] = {
    "names": lambda row: row.name,
    "shapes": lambda row: (row.name, _text(row.facts["event"].input_shapes)),
    "parents": lambda row: ("" if row.shown_parent is None else row.shown_parent.name, row.name),
    "scopes": lambda row: (row.name, int(row.facts["event"].scope), bool(row.facts["event"].is_user_annotation)),
    "overloads": lambda row: (row.name, row.facts["event"].overload_name or ""),
    "has sequence": lambda row: (row.name, row.facts["event"].sequence_nr >= 0),
}
# kind of fact → what it is of a row in the trace file
OF_TRACE: dict[str, Callable[[Row], Any]] = {
    "categories": lambda row: (row.name, row.facts["overload"], row.facts["cat"]),
    "Input Dims": lambda row: (row.name, _text(row.facts.get("Input Dims"))),
    "Input Strides": lambda row: (row.name, _text(row.facts.get("Input Strides"))),
    "Input type": lambda row: (row.name, _text(row.facts.get("Input type"))),
    "Concrete Inputs": lambda row: (row.name, _text(row.facts.get("Concrete Inputs"))),
}
FACTS = [*AIMS, *APART.values(), *(kind for kind in OF_EVENTS if kind not in AIMS), *OF_TRACE, "arrows"]

Facts = dict[str, collections.Counter[Any]]


def _facts(prof: Any) -> Facts:
    events = [row for row in _rows_of_events(prof) if not row.is_bookkeeping]
    rows, arrows = _rows_of_trace(prof)
    rows = [row for row in rows if not row.is_bookkeeping]
    found = {kind: collections.Counter(map(of, events)) for kind, of in OF_EVENTS.items()}
    apart = [row for row in events if not row.is_preparation]
    found |= {name: collections.Counter(map(OF_EVENTS[kind], apart)) for kind, name in APART.items()}
    found |= {kind: collections.Counter(map(of, rows)) for kind, of in OF_TRACE.items()}
    return found | {"arrows": collections.Counter(arrows)}


@dataclass
class Comparison:
    """The facts about one step of one program, from both libraries."""

    program: str
    ours: Facts
    theirs: Facts

    def score(self, kind: str) -> float:
        a, b = self.ours[kind], self.theirs[kind]
        return 2 * (a & b).total() / (a.total() + b.total()) if a or b else 1.0

    def misses(self, kind: str) -> list[tuple[str, Any, int]]:
        """(who has it, what, how often) for what only one library has."""
        missing, extra = self.theirs[kind] - self.ours[kind], self.ours[kind] - self.theirs[kind]
        return [
            (side, fact, count)
            for side, facts in (("torch", missing), ("ours", extra))
            for fact, count in sorted(facts.items(), key=str)
        ]


@functools.cache
def compare(program: str) -> Comparison:
    """Run a program under both profilers."""
    run: Callable[[Any], Any]
    if program in EXAMPLES:
        run = functools.partial(profile_example, path=EXAMPLES[program])
    else:
        run = functools.partial(profile_program, make=PROGRAMS[program])
    with plain_torch():
        return Comparison(program, _facts(run(mindtorch_v2)), _facts(run(torch)))


def compare_step(make: Callable[[Any], Step]) -> Comparison:
    """Run a step that is no program of the list under both profilers."""
    with plain_torch():
        return Comparison("step", _facts(profile_program(mindtorch_v2, make)), _facts(profile_program(torch, make)))


# --- the report -----------------------------------------------------------------------------------------------------


def table(comparisons: list[Comparison]) -> str:
    """Scores, a line a program, and their averages."""
    width = max(len(c.program) for c in comparisons) + 2
    lines = ["".ljust(width) + "".join(kind.rjust(len(kind) + 2) for kind in FACTS)]
    for c in comparisons:
        lines.append(c.program.ljust(width) + "".join(f"{c.score(kind):.3f}".rjust(len(kind) + 2) for kind in FACTS))
    means = [sum(c.score(kind) for c in comparisons) / len(comparisons) for kind in FACTS]
    lines.append("average".ljust(width) + "".join(f"{m:.3f}".rjust(len(k) + 2) for m, k in zip(means, FACTS)))
    return "\n".join(lines)


def misses(comparisons: list[Comparison], kinds: list[str]) -> str:
    lines = []
    for c in comparisons:
        for kind in kinds:
            found = c.misses(kind)
            if found:
                lines.append(f"{c.program}: {kind}")
                lines += [f"  only {side:5} {count:3} × {fact}" for side, fact, count in found]
    return "\n".join(lines)


def sums(comparisons: list[Comparison], kinds: list[str]) -> str:
    """The misses of all programs together, the most frequent first."""
    lines = []
    for kind in kinds:
        total: collections.Counter[tuple[str, Any]] = collections.Counter()
        for c in comparisons:
            for side, fact, count in c.misses(kind):
                total[side, fact] += count
        lines.append(kind)
        lines += [f"  only {side:5} {count:3} × {fact}" for (side, fact), count in total.most_common()]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", nargs="*", help="names of programs; all by default")
    parser.add_argument("--kinds", default=",".join(AIMS), help="kinds of facts to list misses of; default %(default)s")
    parser.add_argument("--sum", action="store_true", help="list the misses of all programs together")
    options = parser.parse_args()
    chosen = [p for p in PROGRAMS_AND_EXAMPLES if not options.programs or p in options.programs]
    comparisons = [compare(program) for program in chosen]
    print(table(comparisons))
    kinds = FACTS if options.kinds == "all" else options.kinds.split(",")
    print(sums(comparisons, kinds) if options.sum else misses(comparisons, kinds))


if __name__ == "__main__":
    main()
