"""torch._dynamo.eval_frame: what libraries ask before they compile."""

from __future__ import annotations

from typing import Any

__all__ = ["OptimizedModule", "is_dynamo_supported"]


class OptimizedModule:
    """The class of compiled modules. `torch.compile` returns what it is given, so that no module is one."""

    def __new__(cls, *args: Any, **options: Any) -> Any:
        raise NotImplementedError("nothing is compiled here; use the module itself")


def is_dynamo_supported() -> bool:
    """False: nothing is compiled."""
    return False
