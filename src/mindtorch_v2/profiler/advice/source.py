"""The program's source: which calls stand on the lines between two operators.

Functions written in C (`time.sleep`, `print`) are no events. What is known of a piece of time outside operators is the function and
the lines it lies between; the source says what is called there.
"""

from __future__ import annotations

import ast
import functools
import linecache
import sys
from collections.abc import Iterator
from typing import NamedTuple

__all__ = ["Between", "Called", "Function", "between", "forget"]

RUNTIME, AS_TORCH = "mindtorch_v2", "torch"
UNNAMED: dict[type[ast.expr], str] = {
    ast.Lambda: "<lambda>",
    ast.ListComp: "<listcomp>",
    ast.SetComp: "<setcomp>",
    ast.DictComp: "<dictcomp>",
    ast.GeneratorExp: "<genexpr>",
}
# Most comprehensions run in calls of their own up to Python 3.11, in the function they stand in from 3.12 on.
INLINE = () if sys.version_info < (3, 12) else (ast.ListComp, ast.SetComp, ast.DictComp)
FUNCTIONS: tuple[type[ast.AST], ...] = (ast.FunctionDef, ast.AsyncFunctionDef, *(kind for kind in UNNAMED if kind not in INLINE))
LOOPS = (ast.For, ast.AsyncFor, ast.While, *INLINE)
BLOCKS = (ast.For, ast.AsyncFor, ast.While, ast.With, ast.AsyncWith)


class Called(NamedTuple):
    """A call in the source."""

    text: str  # as it is written, up to its arguments; of a longer expression the end
    name: str  # without what stands before the last dot
    imported: str  # as it was imported: "numpy.asarray" for `np.asarray`; `text` if it was not
    is_imported: bool
    line: int


class Function(NamedTuple):
    """A function of the program."""

    file: str
    first_line: int
    name: str


class Between(NamedTuple):
    """The calls and loops between two lines."""

    calls: list[Called]
    loops: list[range]  # the lines of each loop that begins and ends there


def between(function: Function, before: int, after: int, *, is_open: bool) -> Between:
    """Return the calls and loops between two lines of a function, 0 for its beginning and its end; nothing if the source is not there.

    If the second line is not behind the first, they are in two turns of a loop. Of a function that is open, the recording saw only
    part: its beginning and end are those of the outermost loop or `with` around the other line.
    """
    tree = _parsed(_text(function.file))
    body = None if tree is None else _body(tree, function)
    if tree is None or body is None:
        return Between([], [])
    wanted = _lines_seen(body, before, after) if is_open and not (before and after) else _lines(body, before, after)
    loops = [range(node.lineno, (node.end_lineno or node.lineno) + 1) for node in _inside(body) if isinstance(node, LOOPS)]
    return Between(
        [call for call in _calls(body, _imports(tree)) if call.line in wanted],
        [loop for loop in loops if wanted.issuperset(loop) and before not in loop and after not in loop],
    )


def forget() -> None:
    """Free the trees of the files that were read."""
    _parsed.cache_clear()
    _imports.cache_clear()


def _text(file: str) -> str:
    """The source of a file, or of a cell of a notebook; empty if it is not there."""
    linecache.checkcache(file)
    return "".join(linecache.getlines(file))


@functools.lru_cache(64)
def _parsed(text: str) -> ast.Module | None:
    """The source as a tree; None if it is none that Python reads."""
    try:
        return ast.parse(text) if text else None
    except (SyntaxError, ValueError):
        return None


@functools.lru_cache(64)
def _imports(tree: ast.Module) -> dict[str, str]:
    """Return the meanings of the names that the file imports: `np` is `numpy`; this package is `torch`, by whatever name."""
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                found[alias.asname or alias.name.partition(".")[0]] = alias.name if alias.asname else alias.name.partition(".")[0]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.update({alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names})
    return {
        name: AS_TORCH + meaning.removeprefix(RUNTIME) if meaning.startswith(RUNTIME) else meaning
        for name, meaning in found.items()
    }


def _body(tree: ast.Module, function: Function) -> ast.AST | None:
    """The function as it is in the source; its first line is that of the first decorator."""
    _, first_line, name = function
    if name == "<module>":
        return tree
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            begins = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            if node.name == name and begins == first_line:
                return node
        elif isinstance(node, ast.expr) and node.lineno == first_line and name == UNNAMED.get(type(node)):
            return node
    return None


def _inside(body: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of a function, without those of functions that it defines."""
    for child in ast.iter_child_nodes(body):
        if not isinstance(child, FUNCTIONS):
            yield child
            yield from _inside(child)


def _lines(body: ast.AST, before: int, after: int) -> set[int]:
    """The lines that run after one line and before another."""
    nodes = [node for node in _inside(body) if isinstance(node, ast.stmt | ast.expr)]
    first = getattr(body, "lineno", 1)
    last = max([first, *(node.end_lineno or 0 for node in nodes)])
    if before and after and after <= before:
        around = [node for node in nodes if isinstance(node, LOOPS) and node.lineno <= after and before <= (node.end_lineno or 0)]
        if around:
            loop = min(around, key=lambda node: (node.end_lineno or 0) - node.lineno)
            turn = set(range(loop.lineno, (loop.end_lineno or 0) + 1))
            return turn if before == after else {line for line in turn if line >= before or line <= after}
        return set(range(after, before + 1))
    return set(range(before or first, (after or last) + 1))


def _lines_seen(body: ast.AST, before: int, after: int) -> set[int]:
    """The same for a function that began before the recording and ended after it."""
    known = before or after
    blocks = [node for node in _inside(body) if isinstance(node, BLOCKS)]
    around = [node for node in blocks if (node.lineno <= known <= (node.end_lineno or 0) if known else _records(node))]
    if not around:
        return {known} if known else set()
    block = min(around, key=lambda node: node.lineno)
    return set(range(before or block.lineno, (after or block.end_lineno or 0) + 1))


def _records(node: ast.AST) -> bool:
    """Whether this is `with profile(…):`."""
    return isinstance(node, ast.With | ast.AsyncWith) and any(
        isinstance(call, ast.Call) and _dotted(call.func).endswith("profile")
        for item in node.items
        for call in ast.walk(item.context_expr)
    )


def _calls(body: ast.AST, imports: dict[str, str]) -> Iterator[Called]:
    for node in _inside(body):
        if isinstance(node, ast.Call) and (text := _dotted(node.func)):
            first, _, rest = text.partition(".")
            meaning = imports.get(first, first)
            imported = f"{meaning}.{rest}" if rest else meaning
            yield Called(text, text.rpartition(".")[2], imported, first in imports, node.func.end_lineno or node.lineno)


def _dotted(func: ast.expr) -> str:
    """`np.asarray`; `.read` where an expression stands before the dot; empty for what is not called by a name."""
    if isinstance(func, ast.Name):
        return func.id
    if not isinstance(func, ast.Attribute):
        return ""
    before = _dotted(func.value) if isinstance(func.value, ast.Name | ast.Attribute) else ""
    return f"{before}.{func.attr}"
