"""Names can be any text, in every output: terminals stay as they are, JSON and XML stay well-formed, pages run nothing."""

import contextlib
import functools
import json
import re
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

from mindtorch_v2.cli import frame
from mindtorch_v2.profiler import tensorboard_trace_handler, validate
from mindtorch_v2.profiler.comparison import compare
from mindtorch_v2.profiler.model.session import DataFlow, Frame, Info, Label, MemoryLog, ModulePart, Session, Track
from mindtorch_v2.profiler.output import chrome_trace, flame, report
from mindtorch_v2.profiler.output.event_list import EventList
from mindtorch_v2.profiler.output.stack_text import whole_stack
from mindtorch_v2.profiler.query import query
from mindtorch_v2.profiler.results import Results

from . import device_traces
from .by_hand import Event, op, python_function, record, scope

TEXTS = {
    "NUL": "a\x00b",
    "lone surrogate": "a\ud800b",
    "longer than any buffer": "x" * 100_000,
    "end of a script": "</script><script>alert(1)</script><!--",
    "terminal escapes": "\x1b[2J\x1b]0;title\x07\x9b31m\x08",
    "bidi": "\u202egnirts\u2066\u200f",
    "line ends": "a\nb\rc\u2028d\x0be\x85f",
    "quotes": "\"'`|&;$(x)\\{{DATA}}%s",
    "rich markup": "[bold]x[/bold][link=file:///etc/passwd]",
    "empty": "",
    "blanks": " \t ",
}
PLAIN = "plain"


@functools.cache
def session_of(text: str, *, slow: int = 1) -> Session:
    """A recording in which everything that can have a name has this one."""
    stack = (Frame(text, 3, text), Frame("b.py", 4, "main"))
    events = []
    for step in range(4):
        at = step * 100_000_000
        module = Label(text, module=(ModulePart(text, text), ModulePart(f"{text}.1", text)))
        inside = Event(module, at + 2_000_000, at + (3 + slow) * 1_000_000, inputs=(text, [text], None), stack=stack)
        other = op(f"op {text}", at + 50_000_000, at + 60_000_000, stack=stack)
        called = python_function(text, at + 1_000_000, at + 70_000_000, inside, other, stack=stack)
        whole = scope(text, at + 500_000, at + 80_000_000, called, stack=stack, inputs=(text,))
        events.append(scope(f"ProfilerStep#{step}", at, at + 90_000_000, whole, step=step))
    options = dict.fromkeys(("record_shapes", "with_stack", "profile_memory", "with_modules", "with_flops"), True)
    info = Info(
        **options,
        stopped_ns=400_000_000,
        live_bytes=((0, 0),),
        pid=7,
        process_name=text,
        command=(text, text),
        environment={text: text},
        source_roots=(text,) if text.strip() else (),
        metadata={text: text, "x": [text]},
        trace_id=text,
        adjusted=((text, 3),),
    )
    session = record(events, info=info, tracks=[Track(1, 1, text)])
    columns = ([2_500_000, 55_000_000], [0, 0], [64, 128], [1 << 20, 1 << 10], [1 << 20, (1 << 20) + 1024], [3, 4])
    log = MemoryLog(*(np.array(column, np.int64) for column in columns), stack=np.array([-1, -1]))
    return session.replace(memory=log, flow=DataFlow(*(np.empty(0, np.int64) for _ in DataFlow._fields)))


# text for terminals → how it is made
TERMINAL = {
    "table": lambda s: EventList.averages_of(s).table(row_limit=-1),
    "table of events": lambda s: EventList.of(s).table(),
    "table by stack": lambda s: EventList.of(s).key_averages(group_by_stack_n=3).table(max_name_column_width=None),
    "table by shape": lambda s: EventList.of(s).key_averages(group_by_input_shapes=True).table(),
    "table by module": lambda s: Results(s).key_averages(group_by_module=True).table(),
    "narrow table": lambda s: EventList.averages_of(s).table(max_width=60),
    "header": lambda s: EventList.averages_of(s).table(header=s.info.process_name),
    "summary": lambda s: str(Results(s).summary()),
    "leaks": lambda s: Results(s).leaks().table(),
    "modules": lambda s: Results(s).by_module().table(),
    "advice": lambda s: Results(s).advise(min_share=0).table(),
    "finding": lambda s: "\n".join(map(str, Results(s).advise(min_share=0))),
    "query": lambda s: str(query(s, "select name, place, module, track from events")),
    "diff": lambda s: compare(s, session_of(s.info.process_name, slow=30)).table(),
    "markdown": lambda s: compare(s, session_of(s.info.process_name, slow=30)).markdown(),
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
@pytest.mark.parametrize("make", TERMINAL.values(), ids=TERMINAL)
def test_no_text_moves_the_cursor(make, text):
    shown = make(session_of(text))
    assert [c for c in set(shown) if not (c.isprintable() or c == "\n")] == []
    shown.encode()
    if 0 < len(text) < 100 and make is not TERMINAL["header"]:  # longer sentences have more lines, and headers those of the user
        assert shown.count("\n") == make(session_of(PLAIN)).count("\n")


PAGES = {
    "report": lambda s, path: report.write([s], path, title=s.info.process_name),
    "memory": lambda s, path: Results(s).export_memory_timeline(path),
    "diff": lambda s, path: compare(s, session_of(s.info.process_name, slow=30)).export_page(path, (s.info.process_name, "b")),
    "summary": lambda s, path: path.write_text(Results(s).summary()._repr_html_()),
    "table": lambda s, path: path.write_text(EventList.averages_of(s)._repr_html_()),
    "query": lambda s, path: path.write_text(query(s, "select name, place from events")._repr_html_()),
    "advice": lambda s, path: path.write_text(Results(s).advise(min_share=0)._repr_html_()),
    "modules": lambda s, path: path.write_text(Results(s).by_module()._repr_html_()),
}


def tags(path):
    """The elements of a page, by what begins them, and its comments."""
    return len(re.findall(r"<[a-zA-Z!/]", path.read_bytes().decode()))


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
@pytest.mark.parametrize("write", PAGES.values(), ids=PAGES)
def test_no_text_is_an_element_of_a_page(write, text, tmp_path):
    write(session_of(text), tmp_path / "hostile.html")
    write(session_of(PLAIN), tmp_path / "plain.html")
    assert tags(tmp_path / "hostile.html") == tags(tmp_path / "plain.html")


def spelled_out(text):
    return text.encode("utf-8", "backslashreplace").decode()


class TestFiles:
    @pytest.fixture(params=TEXTS.values(), ids=TEXTS)
    def text(self, request):
        return request.param

    def test_traces(self, text, tmp_path):
        chrome_trace.write(session_of(text), tmp_path / "trace.json")
        assert validate(tmp_path / "trace.json") == []
        trace = json.loads((tmp_path / "trace.json").read_bytes())
        rows = [row for row in trace["traceEvents"] if row.get("name") == spelled_out(text)]
        assert len(rows) == 12
        assert trace[spelled_out(text)] == spelled_out(text)
        assert any(spelled_out(text) in entry for row in rows for entry in whole_stack(row, trace.get("stackFrames", {})))

    def test_the_handler_of_tensorboard(self, text, tmp_path):
        handler = tensorboard_trace_handler(str(tmp_path / "logs"), worker_name="w")
        handler(Results(session_of(text)))
        (path,) = (tmp_path / "logs").iterdir()
        json.loads(path.read_bytes())

    def test_sessions(self, text, tmp_path):
        session_of(text).save(tmp_path / "s")
        found = Session.load(tmp_path / "s")
        assert found.labels == tuple(session_of(text).labels)
        assert found.info == session_of(text).info

    def test_stacks(self, text, tmp_path):
        Results(session_of(text)).export_stacks(str(tmp_path / "stacks.txt"))
        lines = (tmp_path / "stacks.txt").read_bytes().decode().split("\n")
        assert lines.pop() == ""
        assert all(re.fullmatch(r"[^;]*(;[^;]*)* \d+", line) for line in lines)
        assert not any(c < " " for line in lines for c in line)

    def test_folded(self, text):
        lines = "".join(flame.folded([flame.FlameTree.of(session_of(text))])).split("\n")
        assert lines.pop() == ""
        assert all(re.fullmatch(r"[^;]*(;[^;]*)* \d+", line) for line in lines)
        assert not any(c < " " for line in lines for c in line)

    def test_speedscope(self, text):
        found = json.loads(flame.speedscope_text([flame.FlameTree.of(session_of(text))], text))
        assert text in [entry["name"] for entry in found["shared"]["frames"]]

    def test_pictures(self, text):
        picture = flame.svg([flame.FlameTree.of(session_of(text))], text)
        found = {element.tag.rpartition("}")[2] for element in ElementTree.fromstring(picture.encode()).iter()}
        assert found <= {"svg", "style", "g", "rect", "text", "title"}


COMMANDS = {
    "top": ["top", "FILE"],
    "top by stack": ["top", "FILE", "--by", "stack"],
    "top by module": ["top", "FILE", "--by", "module"],
    "top by shape": ["top", "FILE", "--by", "shape"],
    "device": ["device", "GPU"],
    "memory": ["memory", "FILE"],
    "leaks": ["leaks", "FILE"],
    "info": ["info", "FILE"],
    "advise": ["advise", "FILE", "--min-share", "0"],
    "query": ["query", "FILE", "select name, module, place from events"],
    "validate": ["validate", "TRACE"],
    "diff": ["diff", "FILE", "OTHER"],
    "markdown": ["diff", "FILE", "OTHER", "--markdown"],
    "folded": ["flame", "FILE", "--format", "folded", "-o", "-"],
}


@pytest.fixture(scope="module", params=TEXTS.values(), ids=TEXTS)
def files(request, tmp_path_factory):
    """Recordings in which everything has one name, and traces of others."""
    text, folder = request.param, tmp_path_factory.mktemp("files")
    session_of(text).save(folder / "a.session")
    session_of(text, slow=30).save(folder / "b.session")
    (folder / "trace.json").write_text(json.dumps({"traceEvents": [{"ph": text, "name": text, "cat": text, "ts": text}]}))
    name = spelled_out(text)  # a trace is UTF-8
    rows = [device_traces.op(name, 0, 9), device_traces.call(name, 1, 2, 1), device_traces.kernel(name, 5, 20, 1)]
    device_traces.write(folder / "gpu.json", rows)
    return {word: str(folder / name) for word, name in FILES.items()}


FILES = {"FILE": "a.session", "OTHER": "b.session", "TRACE": "trace.json", "GPU": "gpu.json"}


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_commands_print_no_text_that_moves_the_cursor(command, files, capsys):
    arguments = [files.get(word, word) for word in command]
    shown = run(arguments, capsys)
    assert [c for c in set(shown) if not (c.isprintable() or c == "\n")] == []
    if "-o" not in arguments and "--markdown" not in arguments:
        json.loads(run([*arguments, "--json"], capsys))


def run(arguments, capsys):
    with contextlib.suppress(SystemExit):
        frame.main(arguments)
    out, err = capsys.readouterr()
    return out or err
