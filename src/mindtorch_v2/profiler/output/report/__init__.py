"""A recording as one HTML page: where the time went, operators, modules, timeline, flame graph, memory, advice.

sources     one process of the report: its session, and what its sections share
sections    one function for each section, which gives its data
data        all parts of a report, by name
packing     values as bytes that the page reads
page        the file
report.html the page, built of report-ui
"""

from __future__ import annotations

from .page import write

__all__ = ["write"]
