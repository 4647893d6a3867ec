"""torch.fx: names that programs import. Nothing is traced."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._refusals import refused

__all__ = ["has_side_effect", "wrap"]

WHY = "nothing is traced here, models run as Python; torch.profiler shows their operators"


def wrap(fn_or_name: Any) -> Any:
    """The function as it is: it would not be traced into."""
    return fn_or_name


def has_side_effect(fn: Any) -> Any:
    """The function as it is."""
    return fn


globals().update(
    refused(
        __name__,
        WHY,
        functions="map_arg replace_pattern symbolic_trace",
        classes="CodeGen Graph GraphModule Interpreter Node Proxy Tracer Transformer",
    )
)

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...


# as attributes of this one, without imports of their own; they take the refusing classes from here
from . import graph_module as graph_module  # noqa: E402
from . import node as node  # noqa: E402
from . import proxy as proxy  # noqa: E402
