"""SQL over recordings.

    answer = query(session, "select name, sum(self_ns) from events group by name order by 2 desc limit 5")
    print(answer)

tables    the tables that can be asked, made of sessions: columns of NumPy
schema    what each column means
named     questions that have a name
database  the tables in DuckDB: answers, Parquet files, data frames
"""

from __future__ import annotations

from .database import Answer, Database, query
from .named import NAMED, NamedQuery

__all__ = ["NAMED", "Answer", "Database", "NamedQuery", "query"]
