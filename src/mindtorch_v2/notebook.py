"""Recording cells of a notebook:

    %load_ext mindtorch_v2.notebook

    %%mindtorch --with-stack --as prof
    train_step()

runs the cell under the profiler and shows where its time went: the summary, the costliest operators, and the report. `prof` is the profiler.
"""

from __future__ import annotations

import argparse
import html
import shlex
import tempfile
from pathlib import Path
from typing import Any

from .profiler.profiler import profile
from .profiler.results import Results

__all__ = ["ReportFrame", "load_ipython_extension"]

OPTIONS = {
    "--record-shapes": "shapes of inputs",
    "--with-stack": "Python functions, and where operators were called",
    "--profile-memory": "memory of tensors",
    "--with-modules": "the module of each operator",
    "--with-flops": "floating point operations",
}
FRAME_HEIGHT = 720  # pixels


class ReportFrame:
    """The report of a recording, shown in a frame of its own inside a notebook: neither can reach into the other."""

    def __init__(self, results: Results, *, height: int = FRAME_HEIGHT) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "report.html")
            results.export_report(path)
            self.page = path.read_text(encoding="utf-8")
        self.height = height

    def _repr_html_(self) -> str:
        page = html.escape(self.page, quote=True)
        style = "width:100%;border:1px solid #8884"
        return f'<iframe sandbox="allow-scripts allow-downloads" srcdoc="{page}" style="{style}" height="{self.height}"></iframe>'


def load_ipython_extension(shell: Any) -> None:
    """Register the cell magic; `%load_ext mindtorch_v2.notebook` calls this."""
    shell.register_magic_function(lambda line, cell: _record_cell(shell, line, cell), "cell", "mindtorch")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("%%mindtorch", description="Run the cell under the profiler.", allow_abbrev=False)
    for option, meaning in OPTIONS.items():
        parser.add_argument(option, action="store_true", help=meaning)
    parser.add_argument("--rows", type=int, default=10, help="rows of the table (default: 10)")
    parser.add_argument("--no-report", action="store_true", help="show the summary and the table alone")
    parser.add_argument("--as", dest="name", metavar="NAME", help="the variable that the profiler is assigned to")
    return parser


def _record_cell(shell: Any, line: str, cell: str) -> None:
    from IPython import display  # costly: only a notebook has it

    try:
        options = vars(_parser().parse_args(shlex.split(line)))
    except SystemExit:  # argparse has printed what is wrong, or the help
        return
    rows, no_report, name = options.pop("rows"), options.pop("no_report"), options.pop("name")
    code = shell.compile(shell.transform_cell(cell), shell.compile.cache(cell), "exec")
    recorder = profile(**options)
    with recorder:
        exec(code, shell.user_ns)
    if name is not None:
        shell.user_ns[name] = recorder
    if not len(recorder.session):
        print("Nothing was recorded: the cell ran no operator.")
        return
    print(recorder.summary())
    print(recorder.key_averages().table(sort_by="self_cpu_time_total", row_limit=rows))
    if not no_report:
        show: Any = display.display  # it has no types
        show(ReportFrame(Results(recorder.session)))
