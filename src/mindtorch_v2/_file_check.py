"""`FileCheck`: whether pieces of text occur in the order, and in the places, that a test says."""

from __future__ import annotations

import re
from typing import NamedTuple

__all__ = ["FileCheck"]

_PLAIN, _NEXT, _SAME, _NOT, _DAG, _REGEX, _HIGHLIGHTED = "", "NEXT", "SAME", "NOT", "DAG", "REGEX", "SOURCE-HIGHLIGHTED"
_IN_COMMENT = re.compile(r"#\s*CHECK(?P<rest>.*)$", re.M)
_DIRECTIVE = re.compile(
    r"(?:-(?P<kind>NEXT|SAME|NOT|DAG|REGEX|SOURCE-HIGHLIGHTED|COUNT-(?P<exactly>EXACTLY-)?(?P<count>\d+)))?:(?P<text>.*)$"
)
_CONTEXT_LINES = 3


class _Check(NamedTuple):
    kind: str
    text: str
    times: int | None = None  # how often, for CHECK-COUNT

    def __str__(self) -> str:
        suffix = f"COUNT-{self.times}" if self.times is not None else self.kind
        return f"CHECK{suffix and '-'}{suffix}: {self.text}"


class _Found(NamedTuple):
    """Where a check was satisfied: from its first match to the end of its last."""

    start: int
    end: int


class FileCheck:
    """Pieces of text that `run` must find one after the other; each method adds one and returns the object."""

    def __init__(self) -> None:
        self._checks: list[_Check] = []
        self._has_run = False

    def __str__(self) -> str:
        head = "" if self._has_run else "You have not run this instance of FileCheck!\n"
        return head + "FileCheck checks:\n" + "".join(f"\t{check}\n" for check in self._checks)

    def __del__(self) -> None:
        if not self._has_run:
            print(self, end="")  # torch: a chain without run() at its end would pass whatever the text is

    def check(self, text: str) -> FileCheck:
        """The text occurs behind the last match."""
        return self._add(_Check(_PLAIN, text))

    def check_next(self, text: str) -> FileCheck:
        """The text occurs on the line behind that of the last match."""
        return self._add(_Check(_NEXT, text))

    def check_same(self, text: str) -> FileCheck:
        """The text occurs behind the last match on its line."""
        return self._add(_Check(_SAME, text))

    def check_not(self, text: str) -> FileCheck:
        """The text does not occur between the last match and the next, or the end."""
        return self._add(_Check(_NOT, text))

    def check_dag(self, text: str) -> FileCheck:
        """The text occurs behind the last match; several of these in a row, in any order."""
        return self._add(_Check(_DAG, text))

    def check_regex(self, text: str) -> FileCheck:
        """Something that the regular expression describes occurs behind the last match."""
        return self._add(_Check(_REGEX, text))

    def check_count(self, text: str, count: int, exactly: bool = False) -> FileCheck:
        """The text occurs so many times behind the last match; with `exactly`, and not again."""
        if count == 0 and not exactly:
            raise RuntimeError("check_count: a count of 0 checks nothing; pass exactly=True, or use check_not")
        if count:
            self._add(_Check(_PLAIN, text, count))
        return self._add(_Check(_NOT, text)) if exactly else self

    def check_source_highlighted(self, text: str) -> FileCheck:
        """The text occurs behind the last match, with tildes below it and no further ones next to these."""
        return self._add(_Check(_HIGHLIGHTED, text))

    def run(self, *texts: str) -> None:
        """Check a text; with two, take further checks from the comments `# CHECK: ...` of the first."""
        if len(texts) not in (1, 2):
            raise TypeError(f"run() takes a text, or comments with checks and a text, but got {len(texts)} arguments")
        if len(texts) == 2:
            self._read_checks(texts[0])
        if not self._checks:
            raise RuntimeError("No checks have been added to this instance of FileCheck! Check for bad input.")
        self._has_run = True
        text = texts[-1]
        last = _Found(0, 0)
        forbidden: list[_Check] = []
        position = 0
        while position < len(self._checks):
            check = self._checks[position]
            group = self._group(position)
            position += len(group)
            if check.kind == _NOT:
                forbidden = group
                continue
            found = _find_all(group, text, last.end)
            _refuse(forbidden, text, last.end, found.start)
            forbidden, last = [], found
        _refuse(forbidden, text, last.end, len(text))

    def _add(self, check: _Check) -> FileCheck:
        self._checks.append(check)
        return self

    def _group(self, start: int) -> list[_Check]:
        """The check at a position, with those of its kind behind it where several are one step."""
        kind = self._checks[start].kind
        end = start + 1
        while kind in (_NOT, _DAG) and end < len(self._checks) and self._checks[end].kind == kind:
            end += 1
        return self._checks[start:end]

    def _read_checks(self, comments: str) -> None:
        for comment in _IN_COMMENT.finditer(comments):
            directive = _DIRECTIVE.match(comment["rest"])
            if directive is None:
                raise RuntimeError(f"Could not parse check at:\n{comment[0]}\nCheck for bad input.")
            text = directive["text"].strip()
            if directive["count"] is not None:
                self.check_count(text, int(directive["count"]), exactly=directive["exactly"] is not None)
            else:
                self._add(_Check(directive["kind"] or _PLAIN, text))


def _find_all(group: list[_Check], text: str, start: int) -> _Found:
    """Where the checks of one step are satisfied, from a position on."""
    if group[0].kind == _DAG:
        found = [_find(check, text, start) for check in group]
        return _Found(min(f.start for f in found), max(f.end for f in found))
    check = group[0]
    if check.kind == _NEXT:
        newline = text.find("\n", start)
        if newline < 0:
            raise _missing(check, "\\n", text, start)
        start = newline + 1
    first = found_last = _find(check, text, start)
    for _ in range((check.times or 1) - 1):
        found_last = _find(check, text, found_last.end)
    if check.kind in (_NEXT, _SAME):
        newline = text.find("\n", start, first.start)
        if newline >= 0:
            raise _unexpected(check, "\\n", text, newline, 1)
    if check.kind == _HIGHLIGHTED:
        return _Found(first.start, _highlight_end(check, text, first))
    return _Found(first.start, found_last.end)


def _find(check: _Check, text: str, start: int) -> _Found:
    if check.kind == _REGEX:
        match = re.compile(check.text).search(text[start:])
        if match is None:
            raise _missing(check, check.text, text, start, what="regex ")
        return _Found(start + match.start(), start + match.end())
    at = text.find(check.text, start)
    if at < 0:
        raise _missing(check, check.text, text, start)
    return _Found(at, at + len(check.text))


def _highlight_end(check: _Check, text: str, found: _Found) -> int:
    """The end of the tildes below a match, which must be as long as it is."""
    column = found.start - (text.rfind("\n", 0, found.start) + 1)
    line = text.find("\n", found.end) + 1
    if not line:
        raise _missing(check, "~" * len(check.text), text, found.end)
    end = text.find("\n", line)
    below = text[line : end if end >= 0 else len(text)]
    if below[column : column + len(check.text)] != "~" * len(check.text):
        raise _missing(check, "~" * len(check.text), text, found.end)
    for beside in (column - 1, column + len(check.text)):
        if 0 <= beside < len(below) and below[beside] == "~":
            raise _unexpected(check, "~", text, line + beside, 1)
    return line + column + len(check.text)


def _refuse(forbidden: list[_Check], text: str, start: int, end: int) -> None:
    for check in forbidden:
        at = text.find(check.text, start, end)
        if at >= 0:
            raise _unexpected(check, check.text, text, at, len(check.text))


def _missing(check: _Check, wanted: str, text: str, start: int, *, what: str = "") -> RuntimeError:
    return RuntimeError(
        f'Expected to find {what}"{wanted}" but did not find it\nSearched string:\n{text[start:].removesuffix(chr(10))}\nFrom {check}\n'
    )


def _unexpected(check: _Check, wanted: str, text: str, at: int, length: int) -> RuntimeError:
    before = text[:at].split("\n")
    column = len(before[-1])
    lines = text.split("\n")
    row = len(before) - 1
    shown = [
        *lines[max(row - _CONTEXT_LINES, 0) : row + 1],
        " " * column + "~" * length + " <--- HERE",
        *lines[row + 1 : row + 1 + _CONTEXT_LINES],
    ]
    return RuntimeError(f'Expected to not find "{wanted}" but found it\n' + "\n".join(shown).rstrip("\n") + f"\nFrom {check}\n")
