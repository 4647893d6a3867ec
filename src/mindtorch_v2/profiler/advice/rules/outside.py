"""What a program does outside operators: waiting, reading, printing, copying and converting."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ..facts import Facts
from ..functions import KNOWN
from ..registry import RULES, Match, Rule

__all__ = ["ACTIVITIES", "Activity"]


@dataclass(frozen=True, kw_only=True)
class Activity:
    """Something that takes time outside operators, and how it is recognised: calls in the source, and functions that are events."""

    name: str
    seen: str  # what the program did
    instead: str
    calls: frozenset[str] = frozenset()  # of functions that are no events, as they are imported; `.read` is a method of anything
    # beginning of a file's name, and names of functions in it; empty for all
    functions: tuple[tuple[str, frozenset[str]], ...] = ()
    is_python: bool = False  # rather than one long call of a function written in C, or a wait


# What programs call these functions of this package.
CALLED = {
    "tensor": "torch.tensor",
    "as_tensor": "torch.as_tensor",
    "from_numpy": "torch.from_numpy",
    "numpy_of": "Tensor.numpy",
    "tensor_text": "the text of a tensor",
}


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


ACTIVITIES = (
    Activity(
        name="sleeping",
        seen="The program slept",
        instead="Wait for the event itself (a queue, a lock, a future) rather than for a fixed time, or compute meanwhile.",
        calls=_words("time.sleep"),
        functions=(("<built-in", _words("sleep")),),
    ),
    Activity(
        name="deepcopy",
        seen="The program copied objects with deepcopy",
        instead="Copy only what changes: t.detach().clone() for a tensor, {**d} for a dict; keep one copy instead of one a step.",
        functions=(("copy.py", _words("deepcopy")),),
        is_python=True,
    ),
    Activity(
        name="reading files",
        seen="The program read files",
        instead="Read once and keep the result, or read the next batch on another thread while this one is computed.",
        calls=_words(
            "open io.open os.read numpy.load numpy.fromfile numpy.memmap torch.load pickle.load mmap.mmap "
            ".open .read .readline .readlines .readinto .read_bytes .read_text"
        ),
        functions=(
            ("<built-in", _words("read readall readinto read1 readline readlines")),
            ("pathlib", _words("read_bytes read_text open")),
            ("json/__init__.py", _words("load")),
            ("numpy/lib/", _words("load loadtxt genfromtxt")),
            ("gzip.py", _words("read open")),
            ("codecs.py", _words("decode")),
            ("<frozen codecs>", _words("decode")),
            ("pandas/io/", _words("read_csv read_parquet read_json")),
            ("PIL/Image.py", _words("open load")),
        ),
    ),
    Activity(
        name="tensors made of Python lists",
        seen="The program made tensors of Python data",
        instead="Keep the data in a tensor or a NumPy array from the start: torch.from_numpy shares its memory.",
        calls=_words("torch.Tensor torch.FloatTensor torch.DoubleTensor torch.LongTensor torch.IntTensor"),
        functions=(("mindtorch_v2/_creation.py", _words("tensor as_tensor")),),
    ),
    Activity(
        name="printing",
        seen="The program printed or logged",
        instead="Print every hundredth step, and numbers rather than tensors: the text of a tensor reads all of its elements.",
        calls=_words("print sys.stdout.write sys.stderr.write"),
        functions=(("logging/", frozenset()), ("mindtorch_v2/_printing.py", _words("tensor_text")), ("pprint.py", frozenset())),
        is_python=True,
    ),
    Activity(
        name="conversion to and from NumPy",
        seen="The program converted between tensors and NumPy arrays",
        instead="Stay with tensors inside the loop, and convert once, before or after it.",
        calls=_words("numpy.asarray numpy.array numpy.ascontiguousarray numpy.copy"),
        functions=(("mindtorch_v2/_interop.py", _words("from_numpy numpy_of")),),
        is_python=True,
    ),
)
KNOWN.update(*(activity.calls for activity in ACTIVITIES))


HIDDEN = (
    ", with what the tracer of Python functions took, which is not known here: it slows down every call that a function of these makes. Time the "
    "program without a recording, or record it with Python 3.12 or later."
)


def _check(activity: Activity, facts: Facts) -> Iterator[Match]:
    functions, outside = facts.functions, facts.outside
    rows = functions.outermost(activity.functions)
    inside, events = outside.inside(rows), functions.events_inside(rows)
    called = functions.pieces_that_call(activity.calls)
    short = dict.fromkeys(functions.short(row) for row in rows.tolist())
    names = dict.fromkeys([*called.names, *(CALLED.get(name, name) for name in short)])
    pieces = np.union1d(called.pieces, inside)
    operators = events[facts.outermost_operators[events]]
    gain_ns = float(outside.time_ns[pieces].sum() + facts.net_ns(operators).sum())
    is_upper_bound = facts.call_in_c_ns > 0 and (activity.is_python or outside.hidden_ns(pieces) > gain_ns / 4)
    if is_upper_bound:
        gain_ns = float((outside.end_ns - outside.start_ns)[pieces].sum() + facts.time_ns(operators))
    yield Match(
        rows=facts.union(rows, functions.rows_of(called.pieces)),
        gain_ns=gain_ns,
        seen=f"{activity.seen} ({', '.join(names)}) {facts.times(outside.occasions(called.pieces) + len(rows))}.",
        instead=activity.instead,
        estimate=" and ".join(_estimates(bool(len(rows)), bool(len(called.pieces))))
        + (HIDDEN if is_upper_bound else ", without the recorder's."),
        is_upper_bound=is_upper_bound,
        claims=facts.union(rows, events),
        pieces=pieces,
        evidence=(*called.evidence, *functions.evidence_of(rows)),
    )


def _estimates(by_events: bool, by_lines: bool) -> Iterator[str]:
    if by_events:
        yield "the time of these calls"
    if by_lines:
        yield "the time between operators of the lines on which these calls stand"


def _rule(activity: Activity) -> Rule:
    return Rule(name=activity.name, check=lambda facts: _check(activity, facts), needs=("with_stack",))


RULES.update({activity.name: _rule(activity) for activity in ACTIVITIES})
