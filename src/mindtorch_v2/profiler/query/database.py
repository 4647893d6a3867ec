"""The tables in DuckDB: answers, Parquet files, data frames."""

from __future__ import annotations

import errno
import functools
import os
import re
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..model.session import Session
from ..writing.atomic_file import replacing
from ..writing.html_table import html_table
from ..writing.text_table import Column, TextTable, printable
from .named import NAMED
from .schema import SCHEMA
from .tables import table

__all__ = ["Answer", "Database", "query"]

# no extension is fetched from anywhere
_CONFIG: dict[str, Any] = {"autoinstall_known_extensions": "false", "autoload_known_extensions": "false"}


@dataclass(frozen=True)
class Answer:
    """The rows that a question selects."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]

    def as_dicts(self) -> list[dict[str, Any]]:
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]

    def __str__(self) -> str:
        return "\n".join(TextTable(self._columns(), self.rows).lines()) if self.columns else ""

    def _repr_html_(self) -> str:
        return html_table(self._columns(), self.rows)

    def _columns(self) -> list[Column]:
        return [
            Column(name, functools.partial(_cell, i), width=None, align=_align(self.rows, i)) for i, name in enumerate(self.columns)
        ]


def _cell(at: int, row: tuple[Any, ...]) -> str:
    return _text(row[at])


def _text(value: object) -> str:
    if value is None:
        return ""
    return f"{value:,}" if type(value) is int else printable(value)


def _align(rows: Sequence[tuple[Any, ...]], at: int) -> str:
    return ">" if all(isinstance(row[at], int | float | None) for row in rows) else "<"


class Database:
    """The tables of some sessions, one for each process. A table is made when a question first names it.

    with Database([session]) as database:
        print(database.ask("select count(*) from events"))
    """

    def __init__(self, sessions: Sequence[Session]) -> None:
        import duckdb  # costly: 25 MB of library

        self._sessions = tuple(sessions)
        self._connection: Any = duckdb.connect(config=_CONFIG)
        self._made: set[str] = set()
        self._error = duckdb.Error

    def __enter__(self) -> Database:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        self._connection.close()

    def ask(self, sql: str) -> Answer:
        """The answer to SQL, or to a question that has a name. SQL that is wrong is a ValueError with DuckDB's words."""
        named = NAMED.get(sql.strip())
        sql = named.sql if named is not None else sql
        for name in SCHEMA:
            if re.search(rf"\b{name}\b", sql, re.IGNORECASE):
                self._make(name)
        try:
            return self._answer(sql)
        except self._error:
            self._make_all()  # so that a name that is near to a table's is suggested
        try:
            return self._answer(sql)
        except self._error as error:
            raise ValueError(f"{error}") from None

    def _answer(self, sql: str) -> Answer:
        found = self._connection.execute(sql)
        columns = tuple(column[0] for column in found.description or ())
        return Answer(columns, tuple(found.fetchall()) if columns else ())

    def to_parquet(self, folder: str | os.PathLike[str]) -> list[str]:
        """Write each table that has rows to a file of the folder, which is made; returns the paths."""
        os.makedirs(folder, exist_ok=True)
        written = []
        self._make_all()
        for name in SCHEMA:
            if not self.ask(f"select count(*) from {name}").rows[0][0]:
                continue
            written.append(os.path.join(folder, f"{name}.parquet"))
            self.write_parquet(name, written[-1])
        return written

    def write_parquet(self, name: str, path: str | os.PathLike[str]) -> None:
        """Write a table to a file, in full or not at all."""
        self._make(name)
        # DuckDB writes to a name, and leaves what it has written when it fails
        with replacing(path) as file, tempfile.TemporaryDirectory(dir=os.path.dirname(os.path.abspath(path))) as folder:
            unfinished = os.path.join(folder, f"{name}.parquet")
            quoted = unfinished.replace("'", "''")
            try:
                self._connection.execute(f"copy {name} to '{quoted}' (format parquet)")
            except self._error as error:
                raise _as_of_system(error, path) from None
            with open(unfinished, "rb") as content:
                shutil.copyfileobj(content, file)

    def to_pandas(self, name: str) -> Any:
        """A table as a data frame of pandas, which must be installed."""
        if name not in SCHEMA:
            raise ValueError(f"there is no table {name!r}; there are {', '.join(SCHEMA)}")
        self._make(name)
        return self._connection.execute(f"select * from {name}").df()

    def _make_all(self) -> None:
        for name in SCHEMA:
            self._make(name)

    def _make(self, name: str) -> None:
        if name not in self._made:
            # a table of DuckDB's own: a view of the arrays would be read anew by each question
            arrays = table(name, self._sessions)
            self._connection.register("arrays", arrays)
            columns = ", ".join(f'"{column.name}"::{column.type} as "{column.name}"' for column in SCHEMA[name])
            self._connection.execute(f"create table {name} as select {columns} from arrays")
            self._connection.unregister("arrays")
            self._made.add(name)


def query(sessions: Session | Sequence[Session], sql: str) -> Answer:
    """The answer to SQL, or to a question of `NAMED`, about one session or those of several processes."""
    with Database([sessions] if isinstance(sessions, Session) else sessions) as database:
        return database.ask(sql)


def _as_of_system(error: Exception, path: str | os.PathLike[str]) -> OSError:
    """An error of DuckDB's about a file as the system's own, which its text has in words."""
    known = (errno.ENOSPC, errno.EFBIG, errno.EDQUOT, errno.EACCES, errno.EROFS)
    number = next((number for number in known if os.strerror(number) in str(error)), errno.EIO)
    return OSError(number, os.strerror(number), os.fspath(path))
