"""Trees of containers: leaves, structures, paths, and classes that register themselves."""

from collections import OrderedDict, deque, namedtuple

import pytest

import mindtorch_v2 as torch
from mindtorch_v2.utils import _pytree as pytree

Point = namedtuple("Point", "x y")
TREE = [1, {"a": 2, "b": (3, None)}, Point(4, [5]), OrderedDict(c=6), deque([7, 8], maxlen=3)]


def test_there_and_back():
    leaves, spec = pytree.tree_flatten(TREE)
    assert leaves == [1, 2, 3, None, 4, 5, 6, 7, 8]
    again = pytree.tree_unflatten(leaves, spec)
    assert again == TREE
    assert again[4].maxlen == 3
    assert isinstance(again[2], Point)
    assert spec == pytree.tree_structure(TREE) != pytree.tree_structure(TREE[:2])
    assert (spec.num_leaves, spec.num_children, spec.num_nodes) == (9, 5, 16)
    found = torch.max(torch.tensor([[1.0, 2.0]]), 1)
    mapped = pytree.tree_map(lambda t: t + 1, found)
    assert type(mapped) is type(found)
    assert mapped.values.item() == 3


def test_maps():
    assert pytree.tree_map(lambda a, b: a + b, {"x": 1, "y": [2]}, {"y": [20], "x": 10}) == {"x": 11, "y": [22]}
    assert pytree.tree_map_only(int, lambda n: -n, [1, "a", (2.0, 3)]) == [-1, "a", (2.0, -3)]
    assert pytree.tree_map_only(lambda v: v == "a", str.upper, [1, "a"]) == [1, "A"]
    seen = []
    assert pytree.tree_map_(seen.append, TREE) is TREE
    assert len(seen) == 9
    assert pytree.tree_all(lambda v: v is None or v > 0, TREE)
    assert pytree.tree_any_only(int, lambda n: n > 7, TREE)
    assert pytree.tree_map(len, [(1, 2), (3,)], is_leaf=lambda v: isinstance(v, tuple)) == [2, 1]
    with pytest.raises(ValueError, match="arity mismatch"):
        pytree.tree_map(max, [1, 2], [3])


def test_paths():
    paths = [(pytree.keystr(path), leaf) for path, leaf in pytree.tree_leaves_with_path({"a": [1, Point(2, 3)]})]
    assert paths == [("['a'][0]", 1), ("['a'][1].x", 2), ("['a'][1].y", 3)]
    (path, _), *_ = pytree.tree_leaves_with_path(TREE[2:])
    assert pytree.key_get(TREE[2:], path) == 4
    assert pytree.tree_map_with_path(lambda path, leaf: len(path), [1, (2,)]) == [1, (2,)]


def test_registered_classes():
    class Pair:
        def __init__(self, a, b):
            self.a, self.b = a, b

    assert pytree.tree_is_leaf(Pair(1, 2))
    pytree.register_pytree_node(Pair, lambda p: ([p.a, p.b], None), lambda values, _: Pair(*values))
    try:
        assert pytree.tree_leaves([Pair(1, (2, 3))]) == [1, 2, 3]
        assert pytree.tree_map(lambda n: n * 2, Pair(1, 2)).b == 4
        with pytest.raises(ValueError, match="already registered"):
            pytree.register_pytree_node(Pair, list, list)
    finally:
        pytree._deregister_pytree_node(Pair)


def test_structures_as_text():
    spec = pytree.tree_structure({"a": [1, (2,)]})
    assert repr(spec) == "TreeSpec(dict, ['a'], [TreeSpec(list, None, [*,\n    TreeSpec(tuple, None, [*])])])"
    assert pytree.treespec_loads(pytree.treespec_dumps(spec)) == spec
    assert pytree.treespec_pprint(spec) == "{'a': [*, (*,)]}"


def test_one_tree_over_another():
    spec = pytree.tree_structure(((1, 2), [3]))
    assert pytree._broadcast_to_and_flatten((0, [None]), spec) == [0, 0, None]
    assert pytree._broadcast_to_and_flatten(1, spec) == [1, 1, 1]
    assert pytree._broadcast_to_and_flatten((0, 1, 2), spec) is None
