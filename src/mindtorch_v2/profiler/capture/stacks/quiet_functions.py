"""The functions of this package that are written in Python, call nothing of the program, and keep the tracer of Python 3.11 quiet.

Entry points of operators do so as well; what is here stands around these (`x.max()`, `x[0]`), or beside them (`x.shape`, `zero_grad`). Reporting what `x.max()`
calls takes 3 µs, being quiet 0.4. To be deleted with `python311`.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator
from types import CodeType, FunctionType
from typing import Any

from ...._autograd.differentiate import ones_for_scalar
from ...._autograd.leaf import clear_gradients, with_gradients
from ...._record import scope
from ...._tensor import Tensor
from ....autograd.function import BackwardCFunction, FunctionCtx, begin_call, end_call
from ...record_function import record_function
from . import stack_walk
from .quiet_code import SUSPENDABLE

__all__ = ["functions", "restore", "rewrite"]

# Files of which no function calls code of the program, or only by `call_traced`, and none that is shown.
QUIET = tuple(
    stack_walk.PACKAGE + path
    for path in """_ops/ _dispatch/ _autograd/ _indexing.py _tensor.py _device.py _dtype.py _dtype_info.py _promotion.py _random.py _storage.py _threads.py
    _memory_format.py""".split()
)
# Of those, files with functions that call others which are shown; and backward, which has a guard of its own: hooks may keep frames, and with them the guards
# that die with a frame.
NOT_QUIET = tuple(
    stack_walk.PACKAGE + path
    for path in "_ops/creation/object_methods.py _ops/shapes/repeating.py _ops/sparse/ _autograd/differentiate.py".split()
)
CALLING_ANY = "__torch_function__"  # the default calls the function that it is given

_rewritten: list[tuple[FunctionType, CodeType, CodeType]] = []  # functions, their codes before, and now


def rewrite(quieter: Callable[[CodeType], CodeType]) -> None:
    """Have the functions keep the tracer quiet."""
    for function in functions():
        code = function.__code__
        _rewritten.append((function, code, quieter(code)))  # before it has it: after an interrupt, `restore` knows of it
        function.__code__ = _rewritten[-1][2]


def restore() -> None:
    """Undo `rewrite`. A function that was given another code meanwhile, as a mode does that is entered, keeps that."""
    while _rewritten:
        function, before, now = _rewritten[-1]
        if function.__code__ is now:
            function.__code__ = before
        _rewritten.pop()


@functools.cache
def functions() -> tuple[FunctionType, ...]:
    """Functions that programs call by their public names, and those that optimizers and modules call for them."""
    package = sys.modules[__name__.partition(".")[0]]
    public = [*vars(package).values(), *vars(package.autograd).values(), Tensor]
    found = [function for value in public for function in _functions_of(value)]
    return tuple(dict.fromkeys([*found, *_others()]))


def _others() -> Iterator[FunctionType]:
    """Functions that programs do not call themselves: what is around scopes, around a custom Function's `forward` and before backward, and what optimizers call."""
    around = (begin_call, end_call, clear_gradients, with_gradients, ones_for_scalar)
    for value in (*around, *vars(FunctionCtx).values(), vars(BackwardCFunction)["saved_tensors"]):
        yield from _parts(value)
    for owner in (scope, record_function):
        yield from (owner.__init__, owner.__enter__, owner.__exit__)  # type: ignore[misc]  # functions of the class itself


def _functions_of(value: Any) -> Iterator[FunctionType]:
    """The quiet functions of a public value: of a class, its methods that are not called from within."""
    members = [value]
    if isinstance(value, type):
        members = [member for name, member in vars(value).items() if _is_public(name)]
    for member in members:
        for part in _parts(member):
            if _is_quiet_file(part.__globals__.get("__file__")) and not stack_walk.is_shown(part.__code__):
                yield part


def _is_public(name: str) -> bool:
    return name != CALLING_ANY and (not name.startswith("_") or name.endswith("__"))


def _parts(value: Any) -> list[FunctionType]:
    """The functions that an attribute is made of, but for those that are suspended while the program runs."""
    if isinstance(value, property):
        parts = [value.fget, value.fset, value.fdel]
    else:
        parts = [value.__func__ if isinstance(value, classmethod | staticmethod) else value]
    return [part for part in parts if isinstance(part, FunctionType) and not part.__code__.co_flags & SUSPENDABLE]


@functools.cache
def _is_quiet_file(file: str | None) -> bool:
    return file is not None and file.startswith(QUIET) and not file.startswith(NOT_QUIET)
