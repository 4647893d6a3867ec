"""`torch.Tag`: what is known about an operator, by name."""

from __future__ import annotations

import enum
from typing import Any

__all__ = ["Tag", "as_marks", "of_marks"]

_PREFIX = "Tag."  # of a tag among the marks that the runtime itself gives operators

Tag = enum.IntEnum(
    "Tag",
    "core cudagraph_unsafe data_dependent_output dynamic_output_shape flexible_layout generated inplace inplace_view"
    " maybe_aliasing_or_mutating needs_contiguous_strides needs_exact_strides needs_fixed_stride_order nondeterministic_bitwise"
    " nondeterministic_seeded out out_variant pointwise pt2_compliant_tag reduction view_copy",
    start=0,
    module="torch",
)


def as_marks(tags: Any) -> tuple[str, ...]:
    """A tag, or several, as marks of an operator."""
    given = () if tags is None else (tags,) if isinstance(tags, Tag) else tuple(tags)
    for tag in given:
        if not isinstance(tag, Tag):
            raise TypeError(f"tags must be torch.Tag, or a sequence of them, got {tag!r}")
    return tuple(f"{_PREFIX}{tag.name}" for tag in given)


def of_marks(marks: tuple[str, ...]) -> list[Tag]:
    """The tags among the marks of an operator."""
    return [Tag[mark.removeprefix(_PREFIX)] for mark in marks if mark.startswith(_PREFIX)]
