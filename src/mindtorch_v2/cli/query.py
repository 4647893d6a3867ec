"""Ask a recording in SQL, or one of the questions that have a name.

The tables are events, operators, steps, memory, stacks, modules, kernels and processes; `--schema` describes their columns, `--list` the questions
that have a name. The SQL is DuckDB's.

examples:
  mindtorch query train.profile top
  mindtorch query train.profile "select name, count(*) from events where kind = 'op' group by name order by 2 desc limit 5"
  mindtorch query --list
  mindtorch query train.profile --parquet tables
"""

from __future__ import annotations

import argparse

from .console import Heading, add_json, opened, print_json, print_table, progress
from .frame import UsageError, near

__all__ = ["add_arguments", "run"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", nargs="?", help="a saved session, a folder of them, or a trace (.json, .json.gz)")
    parser.add_argument("sql", metavar="SQL", nargs="?", help="a question in SQL, or the name of one")
    parser.add_argument("--list", action="store_true", help="list the questions that have a name")
    parser.add_argument("--schema", action="store_true", help="describe the tables")
    parser.add_argument("--parquet", metavar="FOLDER", help="write the tables to Parquet files in this folder")
    add_json(parser)


def run(options: argparse.Namespace) -> None:
    if options.list:
        _list(as_json=options.json)
    elif options.schema:
        _schema(as_json=options.json)
    elif options.file is None or (options.sql is None and options.parquet is None):
        raise UsageError(
            "a recording and a question are needed; `mindtorch query --list` has questions, `mindtorch query --help` tells more"
        )
    else:
        _ask(options)


def _ask(options: argparse.Namespace) -> None:
    from ..profiler.query import NAMED, Database  # costly: NumPy, which help needs not

    if options.sql is not None and options.sql not in NAMED and " " not in options.sql.strip():
        raise UsageError(f"there is no question {options.sql!r}{near(options.sql, NAMED)}; `mindtorch query --list` has them all")
    sessions = opened(options.file).sessions
    with progress("asking"), Database(sessions) as database:
        written = [] if options.parquet is None else database.to_parquet(options.parquet)
        answer = None if options.sql is None else database.ask(options.sql)
    if options.json:
        print_json({"rows": None if answer is None else answer.as_dicts(), "written": written})
        return
    if answer is not None:
        are_texts = [any(isinstance(row[i], str) for row in answer.rows) for i in range(len(answer.columns))]
        last = len(answer.columns)  # where there is no room for all, columns are left out from the right
        headings = [
            Heading(name, is_text, last - i if i else 0)
            for i, (name, is_text) in enumerate(zip(answer.columns, are_texts, strict=True))
        ]
        print_table(headings, [[_text(value) for value in row] for row in answer.rows], notes=() if answer.rows else ("No rows.",))
    for path in written:
        print(path)


def _text(value: object) -> str:
    if value is None:
        return ""
    return f"{value:,}" if type(value) in (int, float) else str(value)


def _list(*, as_json: bool) -> None:
    from ..profiler.query.named import NAMED  # costly: NumPy, which help needs not

    if as_json:
        print_json({name: {"question": query.question, "sql": query.sql} for name, query in NAMED.items()})
    else:
        print_table([Heading("Name", is_text=True), Heading("Question", is_text=True)], [(n, q.question) for n, q in NAMED.items()])


def _schema(*, as_json: bool) -> None:
    from ..profiler.query.schema import SCHEMA  # costly: NumPy, which help needs not

    if as_json:
        print_json({table: [vars(column) for column in columns] for table, columns in SCHEMA.items()})
        return
    headings = [Heading(text, is_text=True) for text in ("Table", "Column", "Type", "Meaning")]
    rows = [(table if not i else "", c.name, c.type, c.meaning) for table, columns in SCHEMA.items() for i, c in enumerate(columns)]
    print_table(headings, rows)
