"""Arguments that are one number or one for each dimension."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

__all__ = ["consume_prefix_in_state_dict_if_present", "ntuple", "pair", "single", "triple"]


def ntuple(x: Any, n: int) -> tuple[Any, ...]:
    """The elements of x, or x repeated n times."""
    return tuple(x) if isinstance(x, Iterable) else (x,) * n


def single(x: Any) -> tuple[Any, ...]:
    return ntuple(x, 1)


def pair(x: Any) -> tuple[Any, ...]:
    return ntuple(x, 2)


def triple(x: Any) -> tuple[Any, ...]:
    return ntuple(x, 3)


def _ntuple(n: int, name: str = "parse") -> Callable[[Any], tuple[Any, ...]]:
    def parse(x: Any) -> tuple[Any, ...]:
        return ntuple(x, n)

    parse.__name__ = name
    return parse


# torch's names of these, which other libraries use
_single, _pair, _triple, _quadruple = single, pair, triple, _ntuple(4, "_quadruple")


def consume_prefix_in_state_dict_if_present(state_dict: dict[str, Any], prefix: str) -> None:
    """Take a prefix, such as `module.`, from the keys of a state and of its metadata, in place."""
    for key in [k for k in state_dict if k.startswith(prefix)]:
        state_dict[key[len(prefix) :]] = state_dict.pop(key)
    metadata = getattr(state_dict, "_metadata", {})
    for key in list(metadata):
        if key and (key == prefix.replace(".", "") or key.startswith(prefix)):
            metadata[key[len(prefix) :]] = metadata.pop(key)
