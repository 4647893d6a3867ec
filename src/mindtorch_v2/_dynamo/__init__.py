"""torch._dynamo: names that programs import. Nothing is traced."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from .._refusals import refused
from ..compiler import allow_in_graph, assume_constant_result, disable, is_compiling, list_backends, reset
from ..compiler import compile as _compile
from . import eval_frame as eval_frame
from . import utils as utils
from .eval_frame import OptimizedModule as OptimizedModule

__all__ = [
    "allow_in_graph",
    "assume_constant_result",
    "config",
    "disable",
    "graph_break",
    "is_compiling",
    "list_backends",
    "mark_dynamic",
    "mark_static",
    "optimize",
    "reset",
]


class _Config(SimpleNamespace):
    """Settings by name."""

    @contextlib.contextmanager
    def patch(self, changes: dict[str, Any] | str | None = None, value: Any = None, /, **named: Any) -> Iterator[None]:
        """Inside, or inside of a decorated function, settings have other values."""
        given = {changes: value} if isinstance(changes, str) else {**(changes or {}), **named}
        before = {name: vars(self)[name] for name in given if name in vars(self)}
        vars(self).update(given)
        try:
            yield
        finally:
            for name in given:
                del vars(self)[name]
            vars(self).update(before)


# Keeps what programs set, and begins with torch's defaults of what they read.
config = _Config(
    accumulated_cache_size_limit=256,
    assume_static_by_default=True,
    automatic_dynamic_shapes=True,
    cache_size_limit=8,
    capture_scalar_outputs=False,
    compiled_autograd=False,
    disable=False,
    error_on_recompile=False,
    optimize_ddp=True,
    recompile_limit=8,
    suppress_errors=False,
    verbose=False,
)


def graph_break(msg: str = "") -> None:
    """There is no graph to break."""


def mark_dynamic(t: Any, index: Any, **bounds: Any) -> None:
    """Shapes are what they are."""


maybe_mark_dynamic = mark_static = mark_dynamic


def mark_static_address(t: Any, guard: bool = False) -> None:
    """Addresses are what they are."""


def optimize(backend: Any = "inductor", **options: Any) -> Any:
    """A decorator that gives functions back, as `torch.compile` does."""
    return _compile()


globals().update(
    refused(
        __name__,
        "nothing is traced here",
        functions="explain export lookup_backend register_backend run",
    )
)

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...
