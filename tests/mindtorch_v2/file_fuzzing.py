"""Files of every format that is read, damaged at random: each is read or refused with a documented error, within its time and memory.

`python -m tests.mindtorch_v2.file_fuzzing [count] [first seed]` runs so many cases of each format, in a process with limits. `guided_fuzzing` looks for
cases that reach more of the readers.
"""

from __future__ import annotations

import gzip
import io
import json
import pickle
import random
import resource
import signal
import sys
import tempfile
import time
import traceback
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import mindtorch_v2 as torch
from mindtorch_v2.profiler import profile, query, record_function, validate
from mindtorch_v2.profiler.comparison import compare
from mindtorch_v2.profiler.device import DeviceActivity
from mindtorch_v2.profiler.model.session import Session
from mindtorch_v2.profiler.model.summary import Summary
from mindtorch_v2.profiler.opening import open_recording
from mindtorch_v2.profiler.output import chrome_trace, flame, report
from mindtorch_v2.profiler.output.event_list import EventList
from mindtorch_v2.profiler.results import Results
from mindtorch_v2.profiler.spool import frames

from .profiler.device_traces import annotation, call, copy, kernel, op, sync, trace

SECONDS, MEGABYTES = 30, 1500  # for one case


@dataclass(frozen=True)
class Format:
    """A good file, who reads it, and the errors that the reader documents."""

    name: str
    good: bytes
    read: Callable[[Path, random.Random], object]
    refuses_with: tuple[type[Exception], ...]


# Readers -----------------------------------------------------------------------------------------------------------------------


def use(session: Session, folder: Path, chooser: random.Random) -> None:
    """Make what users make of a session: the table and the trace, and something else."""
    EventList.averages_of(session).table()
    chrome_trace.write(session, folder / "out.json")
    others: list[Callable[[], object]] = [
        lambda: [dict(e) for e in EventList.of(session)],
        lambda: str(Summary.of(session)),
        lambda: report.write([session], folder / "report.html"),
        lambda: flame.svg([flame.FlameTree.of(session)], "title"),
        lambda: query.query(session, "select count(*), sum(self_ns) from events"),
        lambda: DeviceActivity.of(session).as_dict(),
        lambda: compare(session, session).table(),
        lambda: str(Results(session).advise()),
        lambda: session.save(folder / "again.session"),
    ]
    chooser.choice(others)()


def read_recording(path: Path, chooser: random.Random) -> None:
    for session in open_recording(path).sessions:
        use(session, path.parent, chooser)


def judge(path: Path, chooser: random.Random) -> None:
    assert all(str(complaint) for complaint in validate(path))


def load(path: Path, chooser: random.Random) -> None:
    torch.load(path, mmap=chooser.random() < 0.2)


# Good files --------------------------------------------------------------------------------------------------------------------


def _session() -> Session:
    model = torch.nn.Linear(4, 2)
    options = dict.fromkeys(("record_shapes", "with_stack", "profile_memory", "with_flops", "with_modules"), True)
    with profile(**options) as prof, record_function("scope"):
        model(torch.ones(3, 4)).sum().backward()
    return prof.session.head(24)


def _spool(path: str) -> None:
    model, options = torch.nn.Linear(4, 2), dict.fromkeys(("record_shapes", "with_stack", "profile_memory"), True)
    recording = profile(**options, spool=path)
    for _ in range(2):  # a spool of a recording with cycles
        with recording, record_function("scope"):
            model(torch.ones(3, 4)).sum().backward()
        recording.acc_events = True


def _written(write: Callable[[str], object], name: str) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        write(f"{folder}/{name}")
        return Path(folder, name).read_bytes()


def _device_trace() -> bytes:
    rows = [
        annotation("ProfilerStep#0", 0, 50),
        *(op("aten::mm", 1, 10), call("cudaLaunchKernel", 5, 2, 1), kernel("gemm", 10, 20, 1)),
        *(op("aten::copy_", 60, 10), call("cudaMemcpyAsync", 62, 2, 2), copy("HtoD", 70, 10, 2, 50_000)),
        *(sync("Stream Wait Event", 72, 3, 4), kernel("ncclDevKernel_AllReduce", 85, 20, 3, stream=9)),
        {"ph": "s", "id": 1, "cat": "ac2g", "name": "ac2g", "pid": 4242, "tid": 4242, "ts": 5},
        {"ph": "f", "id": 1, "cat": "ac2g", "name": "ac2g", "pid": 0, "tid": 7, "ts": 10, "bp": "e"},
    ]
    return json.dumps(trace(rows, baseTimeNanoseconds=10**18)).encode()


def _saved(**options: Any) -> bytes:
    x = torch.arange(6.0).reshape(2, 3)
    buffer = io.BytesIO()
    plain = [1, 2.5, "text", b"b", {3}, (None, True), {"deep": [[[]]]}]
    torch.save({"x": x, "row": x[1], "sparse": torch.eye(2).to_sparse(), "plain": plain}, buffer, **options)
    return buffer.getvalue()


def _tensor_file() -> bytes:
    header = {
        "x": {"dtype": "F32", "shape": [2, 2], "data_offsets": [0, 16]},
        "y": {"dtype": "U8", "shape": [3], "data_offsets": [16, 19]},
        "__metadata__": {"a": "b"},
    }
    return framed(json.dumps(header).encode(), np.arange(4, dtype=np.float32).tobytes() + b"abc")


def framed(header: bytes, content: bytes) -> bytes:
    """A file of the safetensors format."""
    return len(header).to_bytes(8, "little") + header + content


def formats() -> list[Format]:
    session = _session()
    traced = _written(lambda path: chrome_trace.write(session, path), "trace.json")
    refused = (RuntimeError, pickle.UnpicklingError, EOFError)
    return [
        Format("run.session", _written(session.save, "s"), read_recording, (ValueError,)),
        Format("run.spool", _written(_spool, "s"), read_recording, (ValueError,)),
        Format("trace.json", traced, read_recording, (ValueError,)),
        Format("trace.json.gz", gzip.compress(traced, 1), read_recording, (ValueError,)),
        Format("device.json", _device_trace(), read_recording, (ValueError,)),
        Format("validated.json", traced, judge, ()),
        Format("checkpoint.pt", _saved(), load, refused),
        Format("legacy.pt", _saved(_use_new_zipfile_serialization=False), load, refused),
        Format("tensors.safetensors", _tensor_file(), load, refused),
    ]


# Damage ------------------------------------------------------------------------------------------------------------------------

ODD_VALUES: list[Any] = [
    None, True, False, 0, -1, 1, 2**31, -(2**31) - 1, 2**53 + 1, 2**63 - 1, -(2**63), 2**64, 10**30, 1.5, -0.0, 1e300, float("nan"),
    float("inf"), -float("inf"), "", "x", "0", "1e5", "nan", "\x00", "\x1b[2J", "</script>", "\u202e", "x" * 10_000, [], {}, [[]], [1, 2],
    {"a": 1}, {"tuple": []}, [None] * 50, "int64", "kernel", "X", "ProfilerStep#999999999999", "ProfilerStep#-1", "torch.float32",
]  # fmt: skip


def damaged(form: Format, chooser: random.Random) -> bytes:
    """The good file with some damage, in its bytes or in what they mean."""
    content = form.good
    compressed = content[:2] == b"\x1f\x8b"
    if compressed and chooser.random() < 0.8:
        return gzip.compress(damaged_json(gzip.decompress(content), chooser), 1)
    if content[:4] == b"PK\x03\x04" and chooser.random() < 0.75:
        return damaged_archive(content, chooser)
    if content.startswith(frames.MAGIC) and chooser.random() < 0.9:
        return damaged_spool(content, chooser)
    if content[:1] in b"{[" and chooser.random() < 0.75:
        return damaged_json(content, chooser)
    if form.name.endswith("safetensors") and chooser.random() < 0.75:
        length = int.from_bytes(content[:8], "little")
        header = damaged_json(content[8 : 8 + length], chooser)
        return framed(header, content[8 + length :])
    return damaged_bytes(content, chooser)


def damaged_bytes(content: bytes, chooser: random.Random) -> bytes:
    changed = bytearray(content)
    for _ in range(chooser.choice((1, 1, 2, 5))):
        at, length = chooser.randrange(len(changed) + 1), chooser.choice((1, 2, 8, 100))
        kind = chooser.randrange(6)
        if kind == 0 and at < len(changed):
            changed[at] ^= 1 << chooser.randrange(8)
        elif kind == 1:
            changed[at : at + length] = chooser.randbytes(length)
        elif kind == 2:
            del changed[at : at + length]
        elif kind == 3:
            other = chooser.randrange(len(content))
            changed[at:at] = content[other : other + length]
        elif kind == 4:
            changed[at : at + 4] = chooser.choice([b"\xff" * 4, b"\x00" * 4, b"\xff\xff\xff\x7f"])
        elif kind == 5 and chooser.random() < 0.3:
            del changed[at:]
        if not changed:
            break
    return bytes(changed)


def damaged_json(content: bytes, chooser: random.Random) -> bytes:
    value = json.loads(content)
    for _ in range(chooser.choice((1, 1, 3, 20))):
        value = _changed(value, chooser)
    text = json.dumps(value)
    kind = chooser.randrange(12)
    if kind == 0:
        text = text.replace("null", "[" * 3000 + "]" * 3000, 1)
    elif kind == 1:
        text = text.replace(": ", ": " + "9" * chooser.choice((20, 400, 5000)), chooser.choice((1, 3)))
    elif kind == 2:
        text = text[: chooser.randrange(len(text) + 1)]
    elif kind == 3:
        text = text.replace("NaN", "1e999")
    return text.encode()


def _changed(value: Any, chooser: random.Random) -> Any:
    """The value with one place in it changed: another value, gone, twice, or exchanged with its neighbour."""
    if not isinstance(value, dict | list) or not value or chooser.random() < 0.05:
        return deepcopy(chooser.choice(ODD_VALUES))
    keys = list(value) if isinstance(value, dict) else range(len(value))
    key = chooser.choice(keys)
    what = chooser.random()
    if what < 0.6:
        value[key] = _changed(value[key], chooser)
    elif what < 0.75:
        value[key] = deepcopy(chooser.choice(ODD_VALUES))
    elif what < 0.85:
        del value[key]
    elif isinstance(value, list):
        value.insert(chooser.randrange(len(value)), deepcopy(value[key]))
    else:
        other = chooser.choice(keys)
        value[key], value[other] = value[other], value[key]
    return value


def damaged_archive(content: bytes, chooser: random.Random) -> bytes:
    members = members_of(content)
    name = chooser.choice(list(members))
    kind = chooser.randrange(7)
    if kind == 0:
        del members[name]
    elif kind == 1:
        other = chooser.choice(list(members))
        members[name], members[other] = members[other], members[name]
    elif kind == 2:
        members[name] = bytes(chooser.choice((1 << 10, 1 << 20, 1 << 28)))  # much of nothing, which packs well
    elif kind == 3 and members[name]:
        members[name] = damaged_bytes(members[name], chooser)
    elif name.endswith(".json") or "session.json" in members:
        members["session.json"] = damaged_json(members["session.json"], chooser)
    elif members[name]:
        members[name] = damaged_bytes(members[name], chooser)
    return archived(members, chooser.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)) if kind != 2 else zipfile.ZIP_DEFLATED)


def members_of(content: bytes) -> dict[str, bytes]:
    """The contents of an archive, by their names."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def archived(members: dict[str, bytes], compression: int) -> bytes:
    """An archive of these contents, with right checksums."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression, compresslevel=1) as archive:
        for member, text in members.items():
            archive.writestr(member, text)
    return buffer.getvalue()


def damaged_spool(content: bytes, chooser: random.Random) -> bytes:
    """A spool with damage in frames whose checksums are right."""
    parts = frames_of(content)
    texts = {text for _, text, _ in parts}
    for _ in range(chooser.choice((1, 1, 2))):
        at, what = chooser.randrange(len(parts)), chooser.randrange(8)
        kind, text, columns = parts[at]
        if what == 0:
            del parts[at]
        elif what == 1:
            parts.insert(chooser.randrange(len(parts)), parts[at])
        elif what == 2:
            parts[at] = chooser.randrange(7), text, columns
        elif what < 6 or not columns:
            parts[at] = kind, damaged_json(text, chooser) if text in texts else damaged_bytes(text, chooser), columns
        else:
            column = columns[chooser.randrange(len(columns))].copy()
            where = next(i for i, other in enumerate(columns) if len(other) == len(column) and (other == column).all())
            if len(column):
                numbers = [value for value in ODD_VALUES if type(value) is int and -(2**31) <= value < 2**31] + [1000, -7]
                column[chooser.randrange(len(column))] = chooser.choice(numbers) << chooser.choice(
                    (0, 0, 31) if column.itemsize == 8 else (0,)
                )
            columns[where] = column if chooser.random() < 0.9 else column[: len(column) // 2]
        if not parts:
            break
    return spool_of(parts)


def frames_of(content: bytes) -> list[tuple[int, bytes, list[Any]]]:
    """The frames of a spool: kind, JSON and columns of each."""
    with tempfile.TemporaryFile() as file:
        file.write(content)
        file.seek(0)
        return [(kind, frames.json_text(facts, columns), list(columns)) for kind, facts, columns in frames.read_frames(file)]


def spool_of(parts: list[tuple[int, bytes, list[Any]]]) -> bytes:
    """A spool of these frames, with right checksums."""
    return frames.MAGIC + b"".join(frames.joined_frame(kind, text, b"".join(map(bytes, columns))) for kind, text, columns in parts)


# Cases -------------------------------------------------------------------------------------------------------------------------


def check_case(form: Format, chooser: random.Random, folder: Path) -> str:
    """Read a damaged file: "read", or "refused" with an error that names it."""
    return check_content(form, damaged(form, chooser), chooser, folder)


def check_content(form: Format, content: bytes, chooser: random.Random, folder: Path) -> str:
    """Read a file of these bytes: "read", or "refused" with an error that names it."""
    path = folder / form.name
    path.write_bytes(content)
    reason = _refusal(form, path, chooser)
    if reason is None:
        return "read"
    assert str(path) in reason, reason
    assert "MemoryError" not in reason, reason
    return "refused"


def _refusal(form: Format, path: Path, chooser: random.Random) -> str | None:
    try:
        form.read(path, chooser)
    except form.refuses_with as error:
        return str(error)
    return None


class OutOfTimeError(BaseException):
    """A case took too long. It is no Exception, which a reader would take for damage of its file."""


def set_limits() -> None:
    """Limit the memory of the process, and have `time_limit` end what takes too long."""

    def expire(number: int, frame: object) -> None:
        raise OutOfTimeError(f"took more than {SECONDS} s")

    signal.signal(signal.SIGPROF, expire)
    resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))


@contextmanager
def time_limit() -> Iterator[None]:
    """Raise in what takes too much of the processor's time."""
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def peak_megabytes() -> int:
    """The most memory that the process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10


def main(count: int, first: int) -> int:
    """Run cases with a limit on their time and on the process's memory."""
    known, failed = formats(), 0
    set_limits()
    for form in known:
        found: Counter[str] = Counter()
        began, slowest = time.process_time(), 0.0
        before = peak_megabytes()
        for seed in range(first, first + count):
            start = time.process_time()
            try:
                with time_limit(), tempfile.TemporaryDirectory() as folder:
                    found[check_case(form, random.Random(f"{form.name} {seed}"), Path(folder))] += 1
            except (Exception, OutOfTimeError):
                failed += 1
                print(f"{form.name}, seed {seed}", traceback.format_exc(limit=-6), sep="\n", flush=True)
            slowest = max(slowest, time.process_time() - start)
        grown = peak_megabytes() - before
        if grown > MEGABYTES:
            failed += 1
        took = time.process_time() - began
        print(f"{form.name:20} {dict(found)}, {took:.0f} s, slowest {slowest:.1f} s, memory grew by {grown} MB", flush=True)
    print(f"{count * len(known):,} cases: {failed} failed")
    return bool(failed)


if __name__ == "__main__":
    arguments = [int(argument) for argument in sys.argv[1:]]
    sys.exit(main(*(arguments + [200, 0][len(arguments) :])))
