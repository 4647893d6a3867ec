"""Which node of one call tree is which of another.

The children of two matched nodes are put beside each other in order: first those that are alike in name, module and shapes, then, between these,
those of one name, and at last one that stands alone against one that stands alone, which was renamed. What is left in both trees and is alike was moved.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

from .call_tree import CallTree

__all__ = ["Pair", "match"]

SAME, RENAMED, MOVED, ADDED, REMOVED = "same", "renamed", "moved", "added", "removed"


class Pair(NamedTuple):
    """A node of the first tree and one of the second; -1 where there is none."""

    kind: str
    first: int
    second: int


def match(first: CallTree, second: CallTree) -> list[Pair]:
    """Every node of both trees, once."""
    pairs = [Pair(SAME, 0, 0)]
    removed: list[int] = []
    added: list[int] = []
    at = 0
    while at < len(pairs):
        _, one, other = pairs[at]
        found, left, right = _siblings(first, second, first.children[one], second.children[other])
        pairs += found
        removed += left
        added += right
        at += 1
    moved, removed, added = _moved(first, second, removed, added)
    pairs += moved
    for pair in moved:
        found, left, right = _below(first, second, pair)
        pairs += found
        removed += left
        added += right
    pairs += [Pair(REMOVED, node, -1) for top in removed for node in _with_all_inside(first, top)]
    pairs += [Pair(ADDED, -1, node) for top in added for node in _with_all_inside(second, top)]
    return pairs


def _below(first: CallTree, second: CallTree, top: Pair) -> tuple[list[Pair], list[int], list[int]]:
    """The pairs inside of a pair, and what is left in the first and in the second tree."""
    pairs, removed, added = [top], [], []
    at = 0
    while at < len(pairs):
        found, left, right = _siblings(first, second, first.children[pairs[at].first], second.children[pairs[at].second])
        pairs += found
        removed += left
        added += right
        at += 1
    return pairs[1:], removed, added


def _siblings(
    first: CallTree, second: CallTree, ones: Sequence[int], others: Sequence[int]
) -> tuple[list[Pair], list[int], list[int]]:
    pairs: list[Pair] = []
    removed: list[int] = []
    added: list[int] = []

    def alike(tree: CallTree, nodes: Sequence[int]) -> list[Hashable]:
        return [(tree.name(n), tree.module_of(n), tree.shape_of(n)) for n in nodes]

    def in_module(tree: CallTree, nodes: Sequence[int]) -> list[Hashable]:
        return [(tree.name(n), tree.module_of(n)) for n in nodes]

    def named(tree: CallTree, nodes: Sequence[int]) -> list[Hashable]:
        return [tree.name(n) for n in nodes]

    gaps: list[tuple[Sequence[int], Sequence[int]]] = [(ones, others)]
    for keys in (alike, in_module, named):
        left = []
        for some, rest in gaps:
            found, more = _aligned(some, rest, keys(first, some), keys(second, rest))
            pairs += found
            left += more
        gaps = left
    for some, rest in gaps:
        if len(some) == len(rest) == 1:
            pairs.append(Pair(RENAMED, some[0], rest[0]))
        else:
            removed += some
            added += rest
    return pairs, removed, added


def _aligned(
    ones: Sequence[int], others: Sequence[int], left: list[Hashable], right: list[Hashable]
) -> tuple[list[Pair], list[tuple[Sequence[int], Sequence[int]]]]:
    """The pairs with equal keys, in order, and the nodes between them."""
    if left == right:  # nearly always
        return [Pair(SAME, one, other) for one, other in zip(ones, others, strict=True)], []
    pairs: list[Pair] = []
    gaps: list[tuple[Sequence[int], Sequence[int]]] = []
    for tag, a, b, c, d in SequenceMatcher(None, left, right, autojunk=False).get_opcodes():
        if tag == "equal":
            pairs += [Pair(SAME, one, other) for one, other in zip(ones[a:b], others[c:d], strict=True)]
        else:
            gaps.append((ones[a:b], others[c:d]))
    return pairs, gaps


def _moved(
    first: CallTree, second: CallTree, removed: Iterable[int], added: Iterable[int]
) -> tuple[list[Pair], list[int], list[int]]:
    """What was removed at one place and added at another, with the same name, module and shapes."""
    waiting: defaultdict[Hashable, list[int]] = defaultdict(list)
    for node in removed:
        waiting[(first.name(node), first.module_of(node), first.shape_of(node))].append(node)
    pairs, left = [], []
    for node in added:
        same = waiting[(second.name(node), second.module_of(node), second.shape_of(node))]
        if same:
            pairs.append(Pair(MOVED, same.pop(0), node))
        else:
            left.append(node)
    return pairs, [node for nodes in waiting.values() for node in nodes], left


def _with_all_inside(tree: CallTree, top: int) -> list[int]:
    found = [top]
    for node in found:
        found += tree.children[node]
    return found
