"""The figures of `docs/performance.md`: ours and torch's side by side, measured in one run."""

from __future__ import annotations

import argparse
import os
import re
from pathlib import Path

# before NumPy starts its threads: one each for both sides
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

import torch

import mindtorch_v2

from . import examples, loading, models, operators, profiling, recorded_steps, starting, threads, training
from .timing import as_markdown, print_table

GROUPS = {
    "small": ("Small operators", operators.small),
    "large": ("Large sizes", operators.large),
    "training": ("A training step", training.steps),
    "examples": ("A step of each example, with its data", examples.on_one_thread),
    "two-threads": ("A step of each example on two threads", examples.on_two_threads),
    "models": ("A step of well-known models", models.steps),
    "models-two-threads": ("A step of well-known models on two threads", models.on_two_threads),
    "growth": ("Growth of a step with batch and width", models.growth),
    "imports": ("Importing, processor time", starting.imports),
    "first-steps": ("The first step of each example in a process, processor time", starting.first_steps),
    "threads": ("Large kernels on one thread and on two", threads.kernels),
    "loading": ("An epoch of a DataLoader: 512 samples in batches of 32", loading.epochs),
    "recording": ("Recording an operator: x + y, 8×8, and what recording adds to it", profiling.overhead),
    "steps": ("Recording a training step: what it adds", recorded_steps.steps),
    "modules": ("Recording the call of a module", profiling.modules),
    "traces": ("Writing an execution trace", profiling.execution_traces),
    "answers": ("Answers about 100,000 recorded operators", profiling.answers),
    "memory": ("Memory of a recorded event, of a million", profiling.memory),
}
BEGIN, END = "<!-- figures -->", "<!-- end of figures -->"


def with_figures(page: str, tables: list[str]) -> str:
    """A page with these tables between its markers, in the order of the groups; tables that were not measured now stay."""
    before, inside, after = re.split(f"{BEGIN}|{END}", page)
    by_title = {table.partition("\n")[0]: table.strip() for table in (*re.split(r"\n(?=### )", inside.strip()), *tables)}
    titles = [f"### {title}" for title, _ in GROUPS.values()]
    figures = "\n\n".join(by_title[title] for title in titles if title in by_title)
    return f"{before}{BEGIN}\n\n{figures}\n\n{END}{after}"


def main() -> None:
    parser = argparse.ArgumentParser("python -m benchmarks", description=__doc__)
    parser.add_argument("groups", nargs="*", help=f"some of {', '.join(GROUPS)}; all by default")
    parser.add_argument(
        "--write", metavar="FILE", help="put the figures into this page, between its markers; those of other groups stay"
    )
    options = parser.parse_args()
    unknown = [name for name in options.groups if name not in GROUPS]
    if unknown:
        parser.error(f"unknown: {', '.join(unknown)}; choose from {', '.join(GROUPS)}")
    torch.set_num_threads(1)
    print(f"mindtorch_v2 against torch {torch.__version__}, one thread each, best of several")
    tables = []
    for name in options.groups or GROUPS:
        title, measure = GROUPS[name]
        rows = measure(mindtorch_v2, torch)
        print_table(title, rows)
        tables.append(as_markdown(title, rows))
    if options.write:
        page = Path(options.write)
        page.write_text(with_figures(page.read_text(), tables))


if __name__ == "__main__":
    main()
