"""`rearrange`: axes of a tensor split, joined and reordered by a pattern, as `"b (h w) c -> b c h w"`."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

from .._functions import functions
from .._tensor import Tensor

__all__ = ["rearrange"]

_TOKEN = re.compile(r"\.\.\.|[A-Za-z_]\w*|\d+|[()]")
Groups = list[list[str]]  # axes of each dimension; "..." stands for any number of dimensions


def rearrange(tensor: Tensor | Sequence[Tensor], pattern: str, **axes_lengths: int) -> Tensor:
    """A tensor with its axes as the right side of a pattern has them, where the left side names those that it has."""
    x: Any = tensor if isinstance(tensor, Tensor) else functions["stack"](list(tensor))
    left, right = _sides(pattern)
    sizes = dict(axes_lengths)
    left, right = _without_ellipsis(left, right, x.dim(), pattern)
    names = [a for group in left for a in group]
    _check(left, right, pattern, axes_lengths)
    if len(left) != x.dim():
        raise ValueError(f"Number of dimensions in pattern ({len(left)}) and tensor ({x.dim()}) must be equal (pattern: {pattern})")
    for group, n in zip(left, x.shape, strict=True):
        _solve(group, n, sizes, pattern)
    apart = x.reshape([sizes[a] for a in names])
    order = [a for group in right for a in group]
    kept = [i for i, a in enumerate(names) if a in order]
    dropped = [i for i, a in enumerate(names) if a not in order]
    moved = apart.permute([*sorted(kept, key=lambda i: order.index(names[i])), *dropped])
    return moved.reshape([math.prod(sizes[a] for a in group) for group in right])


def _sides(pattern: str) -> tuple[Groups, Groups]:
    parts = pattern.split("->")
    if len(parts) != 2:
        raise ValueError(f"Pattern must contain exactly one arrow: {pattern!r}")
    return _groups(parts[0], pattern), _groups(parts[1], pattern)


def _groups(side: str, pattern: str) -> Groups:
    if re.sub(_TOKEN, "", side).strip():
        raise ValueError(f"Invalid character in pattern {pattern!r}")
    found: Groups = []
    inside: list[str] | None = None
    ones = 0
    for token in _TOKEN.findall(side):
        if token == "(":
            if inside is not None:
                raise ValueError(f"Brackets cannot be nested in pattern {pattern!r}")
            inside = []
        elif token == ")":
            if inside is None:
                raise ValueError(f"Brackets are not balanced in pattern {pattern!r}")
            found.append(inside)
            inside = None
        elif token.isdigit():
            if token != "1":
                raise ValueError(f"The only number allowed in a pattern is 1, got {token} in {pattern!r}")
            ones += 1
            if inside is None:
                found.append([])
        elif inside is None:
            found.append([token])
        else:
            inside.append(token)
    if inside is not None:
        raise ValueError(f"Brackets are not balanced in pattern {pattern!r}")
    return found


def _without_ellipsis(left: Groups, right: Groups, ndim: int, pattern: str) -> tuple[Groups, Groups]:
    """The sides with the axes that `...` stands for."""
    has = ["..." in group for group in left]
    if not any(has):
        if any("..." in group for group in right):
            raise ValueError(f"Ellipsis on the right side of {pattern!r} must be on the left side too")
        return left, right
    hidden = [f"... {i}" for i in range(ndim - len(left) + 1)]
    at = has.index(True)
    left = [*left[:at], *[[a] for a in hidden], *left[at + 1 :]]
    made: Groups = []
    for group in right:
        if group == ["..."]:
            made += [[a] for a in hidden]
        else:
            made.append([b for a in group for b in (hidden if a == "..." else [a])])
    return left, made


def _check(left: Groups, right: Groups, pattern: str, lengths: dict[str, int]) -> None:
    sides = [[a for group in side for a in group] for side in (left, right)]
    for names in sides:
        if len(set(names)) != len(names):
            raise ValueError(f"An axis appears twice on one side of pattern {pattern!r}")
    if set(sides[0]) != set(sides[1]):
        raise ValueError(f"Identifiers only on one side of expression (should be on both): {set(sides[0]) ^ set(sides[1])}")
    for name in lengths:
        if name not in sides[0]:
            raise ValueError(f"Axis {name} is not used in pattern {pattern!r}")


def _solve(group: list[str], n: int, sizes: dict[str, int], pattern: str) -> None:
    """Find the one length in a group that is not given."""
    unknown = [a for a in group if a not in sizes]
    known = math.prod(sizes[a] for a in group if a in sizes)
    if len(unknown) > 1:
        raise ValueError(f"Could not infer sizes for {set(unknown)} in pattern {pattern!r}")
    if n % known if unknown else known != n:
        raise ValueError(f"Shape mismatch, {n} != {known} for axes {group} in pattern {pattern!r}")
    if unknown:
        sizes[unknown[0]] = n // known
