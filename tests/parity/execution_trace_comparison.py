"""The same program under our observer of execution traces and under torch's: node by node, how alike are the two traces of one step?

    python tests/parity/execution_trace_comparison.py [PROGRAM …] [--facts name,name] [--sum]

Both trees are walked from the root. Children of two nodes that correspond are paired in order, by name; what is torch's bookkeeping is
left out as in `profile_comparison`, and what a node has below it is then its parent's. Of each pair all facts are compared.
"""

from __future__ import annotations

import argparse
import collections
import difflib
import functools
import itertools
import json
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

import torch
from profile_comparison import EXAMPLES, PROGRAMS_AND_EXAMPLES, Row, plain_torch, profile_example, profile_program
from profile_programs import PROGRAMS

import mindtorch_v2

__all__ = [
    "CROSSWISE",
    "FACTS",
    "INPUTS",
    "OTHER_RESULTS",
    "OTHER_TENSORS",
    "Comparison",
    "Node",
    "compare",
    "pair_up",
    "read",
    "reason",
]

ROOT = "[pytorch|profiler|execution_trace|process]"


@dataclass(eq=False)
class Node:
    """A node of either trace."""

    id: int
    name: str
    inputs: dict[str, list[Any]]
    outputs: dict[str, list[Any]]
    attrs: dict[str, Any]
    parent: Node | None = None
    children: list[Node] = field(default_factory=list)

    @functools.cached_property
    def row(self) -> Row:
        """The node as an event, for the rules of what is left out."""
        return Row(self.name, None if self.parent is None else self.parent.row)

    @functools.cached_property
    def shown(self) -> list[Node]:
        """What is below this node, without what is left out, in order of start."""
        found = []
        for child in self.children:
            left_out = child.row.is_bookkeeping or child.row.is_preparation
            found += child.shown if left_out else [child]
        return found


def read(path: str | os.PathLike[str]) -> Node:
    """The root of a trace."""
    entries = json.loads(Path(path).read_text())["nodes"]
    nodes = {}
    for entry in sorted(entries, key=lambda e: e["id"]):
        attrs = {a["name"]: a["value"] for a in entry["attrs"]}
        nodes[entry["id"]] = Node(entry["id"], entry["name"], entry["inputs"], entry["outputs"], attrs)
    for entry in sorted(entries, key=lambda e: e["id"]):
        if entry["name"] != ROOT:
            node = nodes[entry["id"]]
            node.parent = nodes[entry["ctrl_deps"]]
            node.parent.children.append(node)
    return nodes[1]


# --- what is compared -----------------------------------------------------------------------------------------------


def _number(value: Any) -> Any:
    """torch: six decimals."""
    return round(value, 6) if isinstance(value, float) else value


def _tensors(side: dict[str, list[Any]]) -> Iterator[tuple[str, list[Any]]]:
    """Types and values of all tensors, in lists too."""
    for kind, value in zip(side["types"], side["values"], strict=True):
        if kind.startswith("Tensor("):
            yield kind, value
        elif kind.startswith("GenericList[Tensor("):
            yield from zip(kind[len("GenericList[") : -1].split(","), value, strict=True)


def _plain(side: dict[str, list[Any]]) -> list[Any]:
    """Values that are no tensors."""
    found = []
    for kind, value in zip(side["types"], side["values"], strict=True):
        if not kind.startswith(("Tensor(", "GenericList[Tensor(")):
            found.append([_number(v) for v in value] if isinstance(value, list) else _number(value))
    return found


def _geometry(side: dict[str, list[Any]]) -> list[Any]:
    """Offset, elements, bytes of each and device of all tensors."""
    return [value[2:] for _, value in _tensors(side)]


FACTS: dict[str, Callable[[Node], Any]] = {
    "op_schema": lambda node: node.attrs["op_schema"],
    "scope": lambda node: node.attrs["scope"],
    "thread": lambda node: (node.attrs["tid"], node.attrs["fw_tid"]),
    "input types": lambda node: node.inputs["types"],
    "input shapes": lambda node: node.inputs["shapes"],
    "input strides": lambda node: node.inputs["strides"],
    "input values": lambda node: _plain(node.inputs),
    "input geometry": lambda node: _geometry(node.inputs),
    "output types": lambda node: node.outputs["types"],
    "output shapes": lambda node: node.outputs["shapes"],
    "output strides": lambda node: node.outputs["strides"],
    "output geometry": lambda node: _geometry(node.outputs),
}


INPUTS = ("op_schema", *(fact for fact in FACTS if fact.startswith("input")))

# Arguments for which torch's Python layer or its C++ options write out what is the default, and what is then the same.
OPTIONS = re.compile(r"(ScalarType|Layout|Device|MemoryFormat)\?? \w+|bool\? pin_memory")

# (operator, why it is called with other arguments)
OTHER_ARGUMENTS = {
    "aten::_unsafe_view": "the size that was inferred is spelled out there",
    "aten::sum": "a dim counted from the end stays so here; torch keeps the dim when it counts the zeros of a product",
    "aten::squeeze": "a dim counted from the end stays so here",
    "aten::unsqueeze": "a dim counted from the end stays so here",
    "aten::pow": "an exponent of 2 is a double in the C++ that calls it",
    "aten::norm": "an order of 2 is a double in the C++ that calls it",
    "aten::linalg_vector_norm": "an order of 2 is a double in the C++ that calls it",
    "aten::convolution_backward": "the sizes of a bias that is not there are [0] there",
    "aten::slice_backward": "bounds that are not there stay so here",
    "aten::randint": "the default dtype is in the schema there",
    "aten::add_": "a number is added by the overload for numbers there, which calls this one",
    "aten::mul": "a number of another type in C++",
}


_LAYOUT = "torch lays the memory of this intermediate result out otherwise"
_ONE = "the step of a dimension with one element is 0 after torch's expand, and nothing depends on it"
_ORDER = "C++ does not say in which order operands are computed, so nodes of the same name are paired crosswise"
# (program, operator) → why its tensors differ
OTHER_TENSORS = {
    ("embedding with ignored targets", "ViewBackward0"): _LAYOUT,
    ("embedding with ignored targets", "aten::reshape"): _LAYOUT,
    ("batch norm evaluation", "MeanBackward1"): _ONE,
    ("batch norm evaluation", "aten::expand"): _ONE,
    ("double backward", "AddmmBackward0"): _ONE,
    ("double backward", "aten::mm"): _ONE,
    ("double backward", "aten::t"): _ONE,
    ("activations", "aten::mul_"): "the half of a gradient is written where it belongs there, and put together here",
    ("activations", "aten::elu"): "a scale of 1 is a double in the C++ that calls it",
    ("losses", "aten::sub"): _ORDER,
    ("linear algebra", "aten::_linalg_solve_ex"): "torch's kernel calls its variant that writes into results",
}
# Programs in which operators are paired crosswise, or read copies there: their results and numbers are not compared.
CROSSWISE = {
    "embedding with ignored targets": _ORDER,
    "losses": f"a reduced loss is moved into another tensor there; {_ORDER}",
    "recurrent operators": _ORDER,
}
# Of programs that are: (program, operator) whose results differ.
OTHER_RESULTS = {
    ("batch norm evaluation", "aten::expand"): _ONE,
    ("batch norm evaluation", "aten::reshape"): _ONE,
    ("double backward", "aten::expand"): _ONE,
    ("activations", "aten::sum"): "torch keeps the dim when it counts the zeros of a product",
    ("activations", "aten::sigmoid"): OTHER_TENSORS["activations", "aten::mul_"],
    ("activations", "aten::mul_"): OTHER_TENSORS["activations", "aten::mul_"],
}


def _overload(node: Node) -> str:
    return str(node.attrs["op_schema"]).partition("(")[0].partition(".")[2]


def _arguments(node: Node) -> list[str]:
    """The arguments in a schema, as they are declared."""
    text = str(node.attrs["op_schema"]).partition("(")[2].rpartition(") ->")[0]
    return [a for a in re.split(r", (?![^\[(]*[\])])", text) if a != "*"]


def _essential(node: Node) -> list[Any]:
    """Arguments without options; tensors by their shape; what is not there in one form."""
    found = []
    kinds = _arguments(node)
    for i, (kind, value, shape, strides) in enumerate(
        zip(*(node.inputs[k] for k in ("types", "values", "shapes", "strides")), strict=True)
    ):
        if len(kinds) == len(node.inputs["types"]) and OPTIONS.match(kinds[i]):
            continue
        if kind == "None" or kind.startswith("Tensor(nullptr"):
            found.append(None)
        elif kind.startswith(("Tensor(", "GenericList[Tensor(")):
            found.append((kind, shape, strides))
        else:
            found.append((kind, [_number(v) for v in value] if isinstance(value, list) else _number(value)))
    return found


def reason(ours: Node, theirs: Node) -> str | None:
    """Why the arguments of two nodes differ, if they may."""
    if _essential(ours) == _essential(theirs) and _overload(ours) == _overload(theirs):
        return "an absent tensor is an undefined one in C++; options are spelled out there"
    if _overload(theirs).endswith("Scalar") or _overload(ours).endswith("Scalar"):
        return "one of both calls the overload for numbers, the other that for tensors with the number"
    if re.search(r"(^|_)out$|\.vec$", _overload(theirs)) or _overload(theirs) == "vec":
        return "torch's kernel calls its variant that writes into `out`, or takes a vector"
    return OTHER_ARGUMENTS.get(ours.name)


@dataclass
class Comparison:
    """Two traces of one step."""

    program: str
    pairs: list[tuple[Node, Node]] = field(default_factory=list)
    alone: list[tuple[str, Node]] = field(default_factory=list)  # ("ours" or "torch", a node that the other does not have)

    def score(self) -> float:
        """The part of all nodes that have a partner."""
        return 2 * len(self.pairs) / (2 * len(self.pairs) + len(self.alone))

    def differences(self, fact: str) -> list[tuple[Node, Node]]:
        """Pairs that differ in a fact."""
        of = FACTS[fact]
        return [(a, b) for a, b in self.pairs if of(a) != of(b)]

    def unexplained(self) -> list[str]:
        """Pairs whose arguments differ for no reason that is known."""
        found = []
        for fact in INPUTS:
            for a, b in self.differences(fact):
                if reason(a, b) is None and (self.program, a.name) not in OTHER_TENSORS:
                    found.append(f"{fact} of {a.name}: {FACTS[fact](a)} and {FACTS[fact](b)}")
        return found

    def other_results(self) -> list[str]:
        """Pairs whose results differ for no reason that is known."""
        return [
            f"{fact} of {a.name}: {FACTS[fact](a)} and {FACTS[fact](b)}"
            for fact in FACTS
            if fact.startswith("output")
            for a, b in self.differences(fact)
            if (self.program, a.name) not in OTHER_RESULTS
        ]

    # --- numbers: equal up to renaming --------------------------------------------------------------------------------

    def tensors(self) -> Iterator[tuple[int, Node, list[Any], list[Any]]]:
        """Tensors that correspond, with their place in the order in which nodes begin and end."""
        ends: list[tuple[int, Node, list[Any], list[Any]]] = []
        for a, b in self.pairs:
            last = max([a.id, *[n.id for n in _below(a)]])
            for at, side in ((2 * a.id, "inputs"), (2 * last + 1, "outputs")):
                ours, theirs = list(_tensors(getattr(a, side))), list(_tensors(getattr(b, side)))
                if len(ours) == len(theirs):
                    ends += [(at, a, x, y) for (_, x), (_, y) in zip(ours, theirs, strict=True)]
        return iter(sorted(ends, key=lambda e: e[0]))

    def dataflow(self, which: int) -> tuple[list[str], int]:
        """Where numbers of tensors (0) or storages (1) do not correspond, and how many were looked at.

        torch's numbers are those of addresses, which are given to other tensors when one is gone; ours are never. So each of ours must
        be one of torch's, and two of ours whose uses overlap in time must be different ones.
        """
        partner: dict[int, int] = {}
        gradient: dict[int, int | None] = {}
        span: dict[tuple[int, int], list[int]] = {}
        kept = {id(a): self._kept_gradient(b) for a, b in self.pairs if a.name == "torch::autograd::AccumulateGrad"}
        wrong, count = [], 0
        for at, node, x, y in self.tensors():
            if not x[3] or x[5] == "meta" or not y[1]:
                continue  # without elements; storages of such tensors have no address
            if which == 0 and _is_wrapped(node, x):
                continue
            count += 1
            if which == 0 and id(node) in kept:
                gradient[x[0]] = kept[id(node)]
            if gradient.get(x[which]) == y[which]:
                partner[x[which]] = y[which]
            if partner.setdefault(x[which], y[which]) != y[which]:
                wrong.append(f"{node.name}: {x[which]} is {partner[x[which]]} and {y[which]}")
            span.setdefault((x[which], y[which]), [at, at])[1] = at
        by_partner = collections.defaultdict(list)
        for (_, theirs), uses in span.items():
            by_partner[theirs].append(uses)
        for theirs, spans in by_partner.items():
            spans.sort()
            wrong += [f"{theirs} is two at once" for (_, end), (start, _) in itertools.pairwise(spans) if start < end]
        return wrong, count

    @staticmethod
    def _kept_gradient(node: Node) -> int | None:
        """The tensor that torch keeps as a leaf's gradient: a new one of the same memory, where the gradient itself is kept here."""
        (detached,) = [d.outputs["values"][0][0] for d in node.children if d.name == "aten::detach"] or [None]
        return detached

    def sequences(self) -> list[str]:
        """Backward nodes whose operators, innermost with their number, do not correspond."""
        made: list[dict[int, Node]] = [{}, {}]
        for pair in self.pairs:
            for side, node in zip(made, pair, strict=True):
                if node.attrs["scope"] == 0 and node.attrs["seq_id"] >= 0 and not node.name.startswith("autograd::"):
                    side[node.attrs["seq_id"]] = node
        ours_of = {id(b): a for a, b in self.pairs}
        wrong = []
        for a, b in self.pairs:
            if a.attrs["scope"] != 1:
                continue
            x, y = (side.get(node.attrs["seq_id"]) for side, node in zip(made, (a, b), strict=True))
            if (x is None) != (y is None) or (y is not None and ours_of.get(id(y)) is not x):
                wrong.append(f"{a.name}: made by {x and x.name} and {y and y.name}")
        return wrong


def _below(node: Node) -> Iterator[Node]:
    for child in node.children:
        yield child
        yield from _below(child)


def _is_wrapped(node: Node, value: list[Any]) -> bool:
    """Whether this may be a number in a tensor's place, which nothing made and nothing else uses."""
    return value[3] == 1 and value[4] in (1, 8, 16)


def pair_up(ours: Node, theirs: Node, into: Comparison) -> None:
    """Pair the nodes below two that correspond."""
    a, b = ours.shown, theirs.shown
    matcher = difflib.SequenceMatcher(None, [n.name for n in a], [n.name for n in b], autojunk=False)
    paired: set[int] = set()
    for i, j, size in matcher.get_matching_blocks():
        for x, y in zip(a[i : i + size], b[j : j + size], strict=True):
            into.pairs.append((x, y))
            paired |= {id(x), id(y)}
            pair_up(x, y, into)
    for side, nodes in (("ours", a), ("torch", b)):
        for node in nodes:
            if id(node) not in paired:
                into.alone += [(side, n) for n in (node, *_shown_below(node))]


def _shown_below(node: Node) -> Iterator[Node]:
    for child in node.shown:
        yield child
        yield from _shown_below(child)


# --- running --------------------------------------------------------------------------------------------------------


def _trace(library: Any, program: str) -> Node:
    with mock.patch.dict(os.environ, ENABLE_PYTORCH_EXECUTION_TRACE="1"):
        prof = profile_example(library, EXAMPLES[program]) if program in EXAMPLES else profile_program(library, PROGRAMS[program])
        prof.execution_trace_observer.cleanup()
    path = prof.execution_trace_observer.get_output_file_path()
    try:
        return read(path)
    finally:
        os.unlink(path)


@functools.cache
def compare(program: str) -> Comparison:
    """Run a program under both observers."""
    with plain_torch():
        ours, theirs = _trace(mindtorch_v2, program), _trace(torch, program)
    found = Comparison(program)
    pair_up(ours, theirs, found)
    return found


# --- the report -----------------------------------------------------------------------------------------------------


def report(comparisons: list[Comparison], facts: list[str], *, sums: bool) -> Iterator[str]:
    for c in comparisons:
        tensors, storages = c.dataflow(0), c.dataflow(1)
        yield (
            f"{c.program}: {len(c.pairs)} pairs, {len(c.alone)} alone, {c.score():.3f}; tensors {len(tensors[0])} of {tensors[1]} wrong, "
            f"storages {len(storages[0])} of {storages[1]}, nodes' operators {len(c.sequences())}"
        )
        if not sums:
            yield from (f"    only {side}: {node.name} below {node.parent.name if node.parent else ''}" for side, node in c.alone)
            yield from (f"    {text}" for text in (*tensors[0], *storages[0], *c.sequences()))
    for fact in facts:
        found: collections.Counter[str] = collections.Counter()
        for c in comparisons:
            for a, b in c.differences(fact):
                found[f"{a.name}: {FACTS[fact](a)} and {FACTS[fact](b)}"] += 1
        total = sum(len(c.pairs) for c in comparisons)
        yield f"{fact}: {found.total()} of {total} differ"
        yield from (f"    {count:3} × {text}" for text, count in found.most_common())
    for c in comparisons:
        yield from (f"{c.program}, unexplained: {text}" for text in (*c.unexplained(), *c.other_results()))
    alone: collections.Counter[str] = collections.Counter(f"{side}: {node.name}" for c in comparisons for side, node in c.alone)
    if sums:
        yield from (f"only {text}, {count}" for text, count in alone.most_common())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", nargs="*", help="names of programs; all by default")
    parser.add_argument("--facts", default=",".join(FACTS), help="facts to list differences of; all by default")
    parser.add_argument("--sum", action="store_true", help="list what has no partner for all programs together")
    options = parser.parse_args()
    chosen = [p for p in PROGRAMS_AND_EXAMPLES if not options.programs or p in options.programs]
    for line in report([compare(program) for program in chosen], options.facts.split(","), sums=options.sum):
        print(re.sub(r"\s+", " ", line)[:400] if not line.startswith(" ") else line[:400])


if __name__ == "__main__":
    main()
