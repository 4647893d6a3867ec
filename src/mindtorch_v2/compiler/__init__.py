"""torch.compiler: nothing is compiled. What marks functions for the compiler gives them back."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator
from typing import Any

from .._refusals import given_back

__all__ = [
    "allow_in_graph",
    "assume_constant_result",
    "compile",
    "cudagraph_mark_step_begin",
    "disable",
    "is_compiling",
    "is_dynamo_compiling",
    "is_exporting",
    "list_backends",
    "reset",
    "set_stance",
]


def compile(model: Any = None, *, fullgraph: bool = False, dynamic: bool | None = None, backend: Any = "inductor", mode: str | None = None,
            options: Any = None, disable: bool = False) -> Any:  # fmt: skip
    """`model`, as it is: operators run one by one, and a profile shows each. Without `model`, a decorator that does the same."""
    if model is None:
        return functools.partial(compile, disable=disable)
    if not callable(model):
        raise AssertionError(f"A callable function is expected, but {type(model)} is provided.")
    return model if disable else given_back(model, "torch.compile", "there is no compiler here, operators run one by one")


def disable(fn: Any = None, recursive: bool = True, *, reason: str | None = None) -> Any:
    """The function as it is; without one, a decorator."""
    return (lambda fn: fn) if fn is None else fn


def allow_in_graph(fn: Any) -> Any:
    """The function as it is."""
    return fn


assume_constant_result = allow_in_graph


def is_compiling() -> bool:
    """False."""
    return False


is_dynamo_compiling = is_exporting = is_compiling


def reset() -> None:
    """Nothing is kept."""


def cudagraph_mark_step_begin() -> None:
    """Nothing to mark."""


def list_backends(exclude_tags: Any = ()) -> list[str]:
    """None."""
    return []


@contextlib.contextmanager
def set_stance(stance: str = "default", **options: Any) -> Iterator[None]:
    """A context in which nothing changes."""
    yield
