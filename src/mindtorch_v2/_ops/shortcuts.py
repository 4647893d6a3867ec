"""Shortcuts of composite operators: for a few elements their work is done at once, while nobody watches the parts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import _device
from .._backends.cpu.adapter import WRAP
from .._dispatch import keys
from .._dispatch.codegen import Body, indent
from .._dispatch.op import parameter_names
from .._storage import UntypedStorage
from .._tensor import Tensor

__all__ = ["add_shortcut"]


def add_shortcut(entry: Any, kernel: Callable[..., Any]) -> None:
    """Let a kernel try first: it makes an array of the dtype of `self`, or None where the operator's parts shall be called.

    The kernel is marked `@silent`; of its parameters, `self` and `mask` are arrays, and others arrive as they are.
    """
    op = entry.op
    passed = ", ".join(f"{name}._array" if op.schema.argument(name).is_tensor else name for name in parameter_names(kernel))
    lines = [
        f"a = kernel({passed})",
        "if a is None:",
        f"    result = composite({', '.join(op.schema.argument_names)})",
        "else:",
        "    d = self.dtype",
        *indent(WRAP),
    ]
    names = {
        "kernel": kernel, "composite": op.composite, "new": object.__new__, "Tensor": Tensor, "Storage": UntypedStorage, "CPU": _device.cpu,
    }  # fmt: skip
    op.kernels[keys.CPU] = Body(lines, names)
    op.tags = (*op.tags, "shortcut")
