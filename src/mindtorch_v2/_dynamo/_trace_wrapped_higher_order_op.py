"""What transformers takes from torch._dynamo for its masks."""

from __future__ import annotations

import contextlib

__all__ = ["TransformGetItemToIndex"]


class TransformGetItemToIndex(contextlib.nullcontext[None]):
    """A context in which `x[i]`, for a tensor `i` without dimensions, is an operator on both: so it is everywhere here."""
