"""The files of `file_fuzzing`, changed under the guidance of what the readers do with them: coverage of the readers' own lines.

`python -m tests.mindtorch_v2.guided_fuzzing FORMAT [seconds]` changes the good file of a format, keeps what reaches new branches and changes
that again. It needs atheris (`pip install atheris`), which is no dependency of this package. Each kind of failure is printed once and its file is
kept; the last line has the figures.
"""

from __future__ import annotations

import gc
import gzip
import importlib
import os
import random
import shutil
import sys
import tempfile
import time
import traceback
import warnings
import zipfile
import zlib
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import FunctionType

import atheris

from mindtorch_v2.profiler.spool import frames

from . import file_fuzzing
from .file_fuzzing import MEGABYTES, SECONDS, Format, OutOfTimeError
from .hostile_checkpoints import library_state

# Modules whose branches guide.
READERS = tuple(
    f"mindtorch_v2.{name}"
    for name in (
        "_checkpoints", "profiler.opening", "profiler.spool", "profiler.model.session_file", "profiler.model.session_check",
        "profiler.output.trace_check",
    )
)  # fmt: skip

LONGEST = 3  # times the good file


def instrument() -> int:
    """Have the functions of the readers report their branches; how many there are."""
    found = [f for f in gc.get_objects() if isinstance(f, FunctionType) and (f.__module__ or "").startswith(READERS)]
    for function in found:
        atheris.instrument_func(function)
    return len(found)


# Changes -----------------------------------------------------------------------------------------------------------------------


def changed(form: Format, content: bytes, longest: int, chooser: random.Random) -> bytes:
    """The file with changes, most of them within what checksums, compression and lengths protect."""
    kind = chooser.random()
    if chooser.random() < 0.3:  # most of what reaches something new is short and broken, and little is left of it to change
        content = form.good
    try:
        if kind < 0.1:
            found = file_fuzzing.damaged(replace(form, good=content), chooser)
        elif kind < 0.9:
            found = _changed_inside(content, chooser)
        else:
            found = atheris.Mutate(content, longest)
    except Exception:  # the file has been changed before, so that nothing is left that could be unpacked
        found = atheris.Mutate(content, longest)
    return found if len(found) <= longest else atheris.Mutate(content, longest)


def _changed_inside(content: bytes, chooser: random.Random) -> bytes:
    if content[:2] == b"\x1f\x8b":
        return gzip.compress(_changed_text(gzip.decompress(content), chooser), 1)
    if content[:4] == b"PK\x03\x04":
        members = file_fuzzing.members_of(content)
        # what is no column and no storage has most of the meaning
        meant = [name for name in members if name.endswith((".json", ".pkl"))]
        name = chooser.choice(meant if chooser.random() < 0.6 else list(members))
        members[name] = _changed_text(members[name], chooser)
        return file_fuzzing.archived(members, chooser.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)))
    if content.startswith(frames.MAGIC):
        return _changed_spool(content, chooser)
    length = int.from_bytes(content[:8], "little")
    if length < len(content) and content[8:9] == b"{":  # of the safetensors format
        return file_fuzzing.framed(_changed_text(content[8 : 8 + length], chooser), content[8 + length :])
    return _changed_text(content, chooser)


def _changed_spool(content: bytes, chooser: random.Random) -> bytes:
    parts = file_fuzzing.frames_of(content)
    at = chooser.randrange(len(parts))
    kind, text, columns = parts[at]
    if columns and chooser.random() < 0.3:
        which = chooser.randrange(len(columns))
        size = columns[which].nbytes
        columns[which] = atheris.Mutate(bytes(columns[which]), size or 8)[:size].ljust(size, b"\0")
    else:
        parts[at] = kind, _changed_text(text, chooser), columns
    return file_fuzzing.spool_of(parts)


def _changed_text(content: bytes, chooser: random.Random) -> bytes:
    if content[:1] in (b"{", b"[") and chooser.random() < 0.5:
        return file_fuzzing.damaged_json(content, chooser)
    return atheris.Mutate(content, LONGEST * len(content) + 100)


# Cases -------------------------------------------------------------------------------------------------------------------------


@dataclass
class Run:
    """The cases of one format, until the time is over."""

    form: Format
    until: float
    kept: Path  # where files that fail are kept
    found: Counter[str] = field(default_factory=Counter)
    failures: Counter[str] = field(default_factory=Counter)
    slowest: float = 0.0
    cases: int = 0
    before: int = field(default_factory=file_fuzzing.peak_megabytes)
    library: object = field(default_factory=library_state)

    def one(self, content: bytes) -> None:
        """Read one file; nothing but the documented errors may come of it, within the limits."""
        self.cases += 1
        start, chooser = time.process_time(), random.Random(zlib.crc32(content))
        try:
            with file_fuzzing.time_limit(), tempfile.TemporaryDirectory() as folder:
                self.found[file_fuzzing.check_content(self.form, content, chooser, Path(folder))] += 1
        except (Exception, OutOfTimeError) as error:
            place = traceback.extract_tb(error.__traceback__)[-1]
            self.fail(f"{type(error).__name__} at {place.filename}:{place.lineno}", content, traceback.format_exc(limit=-8))
        self.slowest = max(self.slowest, time.process_time() - start)
        if file_fuzzing.peak_megabytes() - self.before > MEGABYTES:
            self.fail("too much memory", content, f"{file_fuzzing.peak_megabytes() - self.before} MB")
            self.before = file_fuzzing.peak_megabytes()
        if time.monotonic() > self.until:
            self.end()

    def fail(self, kind: str, content: bytes, shown: str) -> None:
        self.failures[kind] += 1
        if self.failures[kind] == 1:
            path = self.kept / f"{len(self.failures)}-{self.form.name}"
            path.write_bytes(content)
            print(f"{kind}: {path}", shown, sep="\n", flush=True)

    def end(self) -> None:
        """Print the figures and leave: the fuzzer does not return."""
        if library_state() != self.library:
            self.fail("the library was changed", b"", "by one of the files")
        grown = file_fuzzing.peak_megabytes() - self.before
        print(
            f"{self.form.name:20} {self.cases:,} cases: {dict(self.found)}, slowest {self.slowest:.1f} s, memory grew by {grown} MB, "
            f"{self.failures.total()} failed in {len(self.failures)} ways",
            flush=True,
        )
        if not self.failures:
            shutil.rmtree(self.kept)
        os._exit(bool(self.failures))


def main(name: str, seconds: float) -> None:
    """Run cases of the format, with limits on the time and the memory of each."""
    form = next(form for form in file_fuzzing.formats() if form.name == name)
    with tempfile.TemporaryDirectory() as folder:  # all modules that reading needs are imported by it
        file_fuzzing.check_content(form, form.good, random.Random(0), Path(folder))
    for device in ("cuda", "mps", "xpu"):  # imported for storages that say so, which is no change of the library
        importlib.import_module(f"mindtorch_v2.{device}")
    print(f"{instrument()} functions of readers report their branches")
    kept = Path(tempfile.mkdtemp(prefix="guided_fuzzing-"))
    (kept / "corpus").mkdir()
    (kept / "corpus" / form.name).write_bytes(form.good)
    file_fuzzing.set_limits()
    warnings.simplefilter("error")
    longest = max(4096, LONGEST * len(form.good))
    run = Run(form, time.monotonic() + seconds, kept)
    options = [
        *(f"-max_len={longest}", "-len_control=0", "-use_value_profile=1", f"-artifact_prefix={kept}/"),
        "-mutate_depth=2",
        "-reduce_inputs=0",  # the shortest file for a branch is one that has lost all the others
        # the limits of `file_fuzzing` hold; the fuzzer's own is for what never comes back to Python
        *(f"-timeout={10 * SECONDS}", "-rss_limit_mb=0"),
    ]
    atheris.Setup(
        [sys.argv[0], *options, str(kept / "corpus")],
        run.one,
        custom_mutator=lambda content, longest, seed: changed(form, content, longest, random.Random(seed)),
    )
    atheris.Fuzz()


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(f"{__doc__}\nFormats: {', '.join(form.name for form in file_fuzzing.formats())}")
    main(sys.argv[1], float(sys.argv[2]) if len(sys.argv) > 2 else 60)
