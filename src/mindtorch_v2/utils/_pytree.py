"""Trees of Python containers: taken apart into leaves and a structure, and put together again.

Lists, tuples, named tuples, dictionaries and deques are inner nodes, as are classes that `register_pytree_node` was told about; all else,
None included, is a leaf.
"""

from __future__ import annotations

import json
from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import UnionType
from typing import Any, NamedTuple

from .._tensor import Size
from ..return_types import is_result_type

__all__ = [
    "Context",
    "DumpableContext",
    "FlattenFn",
    "FromDumpableContextFn",
    "LeafSpec",
    "PyTree",
    "PyTreeSpec",
    "ToDumpableContextFn",
    "TreeSpec",
    "UnflattenFn",
    "is_namedtuple",
    "is_namedtuple_class",
    "is_namedtuple_instance",
    "is_structseq",
    "is_structseq_class",
    "is_structseq_instance",
    "key_get",
    "keystr",
    "register_pytree_node",
    "tree_all",
    "tree_all_only",
    "tree_any",
    "tree_any_only",
    "tree_flatten",
    "tree_flatten_with_path",
    "tree_is_leaf",
    "tree_iter",
    "tree_leaves",
    "tree_leaves_with_path",
    "tree_map",
    "tree_map_",
    "tree_map_only",
    "tree_map_only_",
    "tree_map_with_path",
    "tree_structure",
    "tree_unflatten",
    "treespec_dumps",
    "treespec_loads",
    "treespec_pprint",
]

PyTree = Any
Context = Any
DumpableContext = Any
FlattenFn = Callable[[PyTree], tuple[list[Any], Context]]
UnflattenFn = Callable[[Iterable[Any], Context], PyTree]
ToDumpableContextFn = Callable[[Context], DumpableContext]
FromDumpableContextFn = Callable[[DumpableContext], Context]
IsLeaf = Callable[[PyTree], bool] | None
Types = type | tuple[type, ...] | UnionType | Callable[[Any], bool]


# --- keys of a path -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SequenceKey:
    """A position in a list or tuple."""

    idx: int

    def __str__(self) -> str:
        return f"[{self.idx!r}]"

    def get(self, sequence: Sequence[Any]) -> Any:
        return sequence[self.idx]


@dataclass(frozen=True)
class MappingKey:
    """A key of a dictionary."""

    key: Hashable

    def __str__(self) -> str:
        return f"[{self.key!r}]"

    def get(self, mapping: Mapping[Any, Any]) -> Any:
        return mapping[self.key]


@dataclass(frozen=True)
class GetAttrKey:
    """The name of an attribute."""

    name: str

    def __str__(self) -> str:
        return f".{self.name}"

    def get(self, obj: object) -> Any:
        return getattr(obj, self.name)


KeyPath = tuple[Any, ...]


def keystr(kp: KeyPath) -> str:
    """A path as Python would write it."""
    return "".join(map(str, kp))


def key_get(obj: Any, kp: KeyPath) -> Any:
    """The leaf or subtree at a path."""
    for key in kp:
        obj = key.get(obj)
    return obj


# --- kinds of nodes -----------------------------------------------------------------------------------------------------


class NodeDef(NamedTuple):
    """How a node is taken apart and put together."""

    type: Any
    flatten_fn: FlattenFn
    unflatten_fn: UnflattenFn
    keys_fn: Callable[[Any], list[Any]] | None = None
    serialized_type_name: str | None = None
    to_dumpable_context: ToDumpableContextFn | None = None
    from_dumpable_context: FromDumpableContextFn | None = None


SUPPORTED_NODES: dict[Any, NodeDef] = {}


def register_pytree_node(
    cls: type[Any],
    flatten_fn: FlattenFn,
    unflatten_fn: UnflattenFn,
    *,
    serialized_type_name: str | None = None,
    to_dumpable_context: ToDumpableContextFn | None = None,
    from_dumpable_context: FromDumpableContextFn | None = None,
    flatten_with_keys_fn: Callable[[Any], tuple[list[tuple[Any, Any]], Context]] | None = None,
) -> None:
    """Have instances of a class treated as nodes of trees."""
    if cls in SUPPORTED_NODES:
        raise ValueError(f"{cls} is already registered as pytree node.")
    if (to_dumpable_context is None) != (from_dumpable_context is None):
        raise ValueError(f"Both to_dumpable_context and from_dumpable_context for {cls} must be None or registered.")
    with_keys = flatten_with_keys_fn
    keys_fn = None if with_keys is None else (lambda tree: [key for key, _ in with_keys(tree)[0]])
    SUPPORTED_NODES[cls] = NodeDef(
        cls, flatten_fn, unflatten_fn, keys_fn, serialized_type_name, to_dumpable_context, from_dumpable_context
    )


_register_pytree_node = register_pytree_node


def _deregister_pytree_node(cls: type[Any]) -> None:
    """Forget a class."""
    SUPPORTED_NODES.pop(cls, None)


def register_dataclass(
    cls: type[Any],
    *,
    field_names: list[str] | None = None,
    drop_field_names: list[str] | None = None,
    serialized_type_name: str | None = None,
) -> None:
    """Have a dataclass treated as a node, whose fields are its children."""
    names = field_names or [name for name, f in cls.__dataclass_fields__.items() if f.init]
    names = [name for name in names if name not in (drop_field_names or ())]

    def flatten(obj: Any) -> tuple[list[Any], Context]:
        kept = [name for name in names if getattr(obj, name) is not None]
        return [getattr(obj, name) for name in kept], [kept, [name for name in names if name not in kept]]

    def unflatten(values: Iterable[Any], context: Context) -> Any:
        return cls(**dict(zip(context[0], values, strict=True)), **dict.fromkeys(context[1]))

    def with_keys(obj: Any) -> tuple[list[tuple[Any, Any]], Context]:
        values, context = flatten(obj)
        return [(GetAttrKey(name), value) for name, value in zip(context[0], values, strict=True)], context

    register_pytree_node(cls, flatten, unflatten, serialized_type_name=serialized_type_name, flatten_with_keys_fn=with_keys)


def register_constant(cls: type[Any]) -> None:
    """Have instances of a class treated as part of the structure: they have no leaves."""
    register_pytree_node(cls, lambda obj: ([], obj), lambda _, context: context, flatten_with_keys_fn=lambda obj: ([], obj))


def is_constant_class(cls: type[Any]) -> bool:
    """Whether a class is registered as a constant."""
    node = SUPPORTED_NODES.get(cls)
    return node is not None and node.keys_fn is not None and node.unflatten_fn.__qualname__.startswith("register_constant.")


def _mapping(cls: type[Any], flatten: FlattenFn, unflatten: UnflattenFn, name: str) -> None:
    SUPPORTED_NODES[cls] = NodeDef(cls, flatten, unflatten, lambda d: [MappingKey(k) for k in d], name)


def _sequence(cls: type, flatten: FlattenFn, unflatten: UnflattenFn, name: str, **more: Any) -> None:
    SUPPORTED_NODES[cls] = NodeDef(cls, flatten, unflatten, lambda s: [SequenceKey(i) for i in range(len(s))], name, **more)


# libraries register their own mappings with these three
def _dict_flatten(d: dict[Any, Any]) -> tuple[list[Any], Any]:
    return list(d.values()), list(d)


def _dict_flatten_with_keys(d: dict[Any, Any]) -> tuple[list[tuple[Any, Any]], Any]:
    return [(MappingKey(k), v) for k, v in d.items()], list(d)


def _dict_unflatten(values: Iterable[Any], context: list[Any]) -> dict[Any, Any]:
    return dict(zip(context, values, strict=True))


_sequence(tuple, lambda t: (list(t), None), lambda values, _: tuple(values), "builtins.tuple")
_sequence(list, lambda t: (t, None), lambda values, _: list(values), "builtins.list")
_sequence(deque, lambda d: (list(d), d.maxlen), lambda values, maxlen: deque(values, maxlen), "collections.deque")
_sequence(Size, lambda t: (list(t), None), lambda values, _: Size(values), "torch.Size")
_mapping(dict, _dict_flatten, _dict_unflatten, "builtins.dict")
_mapping(
    OrderedDict,
    _dict_flatten,
    lambda values, names: OrderedDict(zip(names, values, strict=True)),
    "collections.OrderedDict",
)
_mapping(
    defaultdict,
    lambda d: (list(d.values()), [d.default_factory, list(d)]),
    lambda values, context: defaultdict(context[0], zip(context[1], values, strict=True)),
    "collections.defaultdict",
)
SUPPORTED_NODES[namedtuple] = NodeDef(
    namedtuple,
    lambda t: (list(t), type(t)),
    lambda values, cls: cls(*values),
    lambda t: [GetAttrKey(name) for name in t._fields],
    "collections.namedtuple",
)
SUPPORTED_NODES["return type"] = NodeDef(
    "return type",
    lambda t: (list(t), type(t)),
    lambda values, cls: cls(list(values)),
    lambda t: [SequenceKey(i) for i in range(len(t))],
)
BUILTIN_TYPES = frozenset({tuple, list, dict, namedtuple, OrderedDict, defaultdict, deque})


def is_namedtuple(obj: object | type) -> bool:
    """Whether this is a named tuple, or a class of them."""
    return is_namedtuple_class(obj if isinstance(obj, type) else type(obj))


def is_namedtuple_class(cls: type) -> bool:
    """Whether a class is one of named tuples."""
    fields = getattr(cls, "_fields", None)
    return (
        isinstance(cls, type)
        and issubclass(cls, tuple)
        and isinstance(fields, tuple)
        and all(type(name) is str for name in fields)
        and callable(getattr(cls, "_make", None))
        and callable(getattr(cls, "_asdict", None))
    )


def is_namedtuple_instance(obj: object) -> bool:
    """Whether this is a named tuple."""
    return is_namedtuple_class(type(obj))


def is_structseq(obj: object | type) -> bool:
    """Whether this is a structure sequence, as those of `torch.return_types`, or a class of them."""
    return is_structseq_class(obj if isinstance(obj, type) else type(obj))


def is_structseq_class(cls: type) -> bool:
    """Whether a class is one of structure sequences."""
    return isinstance(cls, type) and (
        is_result_type(cls)
        or (cls.__bases__ == (tuple,) and all(isinstance(getattr(cls, n, None), int) for n in ("n_fields", "n_sequence_fields")))
    )


def is_structseq_instance(obj: object) -> bool:
    """Whether this is a structure sequence."""
    return is_structseq_class(type(obj))


def _node_type(tree: object) -> Any:
    """The kind of a node, or None for a leaf."""
    kind = type(tree)
    if kind in SUPPORTED_NODES:
        return kind
    if issubclass(kind, tuple):
        if is_namedtuple_class(kind):
            return namedtuple
        if is_result_type(kind):
            return "return type"
    return None


def _get_node_type(tree: object) -> Any:
    """The type of a value, by which its node is looked up; `namedtuple` for all of those."""
    return namedtuple if is_namedtuple_class(type(tree)) else type(tree)


# --- structures -----------------------------------------------------------------------------------------------------------


@dataclass(init=True, frozen=True, eq=True, repr=False)
class TreeSpec:
    """The structure of a tree: what kind each node is, and how many leaves are where."""

    type: Any
    context: Context
    children_specs: list[TreeSpec]
    num_nodes: int = field(init=False, compare=False)
    num_leaves: int = field(init=False, compare=False)
    num_children: int = field(init=False, compare=False)

    def __post_init__(self) -> None:
        children = self.children_specs
        is_leaf = self.type is None
        object.__setattr__(self, "num_nodes", 1 + sum(c.num_nodes for c in children))
        object.__setattr__(self, "num_leaves", 1 if is_leaf else sum(c.num_leaves for c in children))
        object.__setattr__(self, "num_children", len(children))

    def __repr__(self, indent: int = 0) -> str:
        if self.type is None:
            return "*"
        name = getattr(self.type, "__name__", self.context.__name__ if self.type == "return type" else str(self.type))
        start = f"TreeSpec({name}, {None if self.type == 'return type' else self.context}, ["
        margin = "\n" + " " * (indent + 2)
        children = [c.__repr__(indent + 2) for c in self.children_specs]
        return start + ("," + margin).join(children) + "])"

    def __hash__(self) -> int:
        try:
            return hash((str(self.type), str(self.context), tuple(self.children_specs)))
        except TypeError:
            return hash((str(self.type), self.num_leaves))

    def is_leaf(self) -> bool:
        """Whether this is the structure of a single leaf."""
        return self.type is None

    def children(self) -> list[TreeSpec]:
        """The structures of the children."""
        return list(self.children_specs)

    def child(self, index: int) -> TreeSpec:
        """The structure of one child."""
        return self.children_specs[index]

    def flatten_up_to(self, tree: PyTree) -> list[PyTree]:
        """The subtrees of another tree where this structure has leaves."""
        found: list[PyTree] = []
        _flatten_up_to(self, tree, found)
        return found

    def unflatten(self, leaves: Iterable[Any]) -> PyTree:
        """The tree of this structure with these leaves."""
        given = leaves if isinstance(leaves, list | tuple) else list(leaves)
        if len(given) != self.num_leaves:
            raise ValueError(
                f"treespec.unflatten(leaves): `leaves` has length {len(given)} but the spec refers to a pytree that holds "
                f"{self.num_leaves} items ({self})."
            )
        return _unflatten(self, iter(given))


PyTreeSpec = TreeSpec


def LeafSpec() -> TreeSpec:
    """The structure of a single leaf."""
    return TreeSpec(None, None, [])


_LEAF = LeafSpec()


def _unflatten(spec: TreeSpec, leaves: Iterator[Any]) -> PyTree:
    if spec.type is None:
        return next(leaves)
    return SUPPORTED_NODES[spec.type].unflatten_fn([_unflatten(c, leaves) for c in spec.children_specs], spec.context)


def _flatten_up_to(spec: TreeSpec, tree: PyTree, found: list[PyTree]) -> None:
    if spec.type is None:
        found.append(tree)
        return
    kind = _node_type(tree)
    if kind is not spec.type and not (kind in _DICTS and spec.type in _DICTS):
        raise ValueError(f"Type mismatch; expected {spec.type!r}, but got {type(tree)!r}.")
    children, context = SUPPORTED_NODES[kind].flatten_fn(tree)
    if kind in _DICTS:
        names = spec.context[1] if spec.type is defaultdict else spec.context
        if set(names) != set(tree):
            raise ValueError(f"Node keys mismatch; expected {sorted(map(str, names))}, but got {sorted(map(str, tree))}.")
        children = [tree[name] for name in names]
    elif len(children) != spec.num_children:
        raise ValueError(f"Node arity mismatch; expected {spec.num_children}, but got {len(children)}.")
    elif kind is not deque and context != spec.context:
        raise ValueError(f"Node context mismatch for custom node type {spec.type!r}.")
    for child, part in zip(spec.children_specs, children, strict=True):
        _flatten_up_to(child, part, found)


_DICTS = frozenset({dict, OrderedDict, defaultdict})


# --- trees ------------------------------------------------------------------------------------------------------------------


def tree_is_leaf(tree: PyTree, is_leaf: IsLeaf = None) -> bool:
    """Whether a tree is a single leaf."""
    return (is_leaf is not None and is_leaf(tree)) or _node_type(tree) is None


def _flatten(tree: PyTree, leaves: list[Any], is_leaf: IsLeaf) -> TreeSpec:
    kind = None if is_leaf is not None and is_leaf(tree) else _node_type(tree)
    if kind is None:
        leaves.append(tree)
        return _LEAF
    children, context = SUPPORTED_NODES[kind].flatten_fn(tree)
    return TreeSpec(kind, context, [_flatten(c, leaves, is_leaf) for c in children])


def tree_flatten(tree: PyTree, is_leaf: IsLeaf = None) -> tuple[list[Any], TreeSpec]:
    """The leaves of a tree, and its structure."""
    leaves: list[Any] = []
    spec = _flatten(tree, leaves, is_leaf)
    return leaves, spec


def tree_unflatten(leaves: Iterable[Any], treespec: TreeSpec) -> PyTree:
    """The tree of this structure with these leaves."""
    if not isinstance(treespec, TreeSpec):
        raise TypeError(
            f"tree_unflatten(leaves, treespec): Expected `treespec` to be instance of TreeSpec but got item of type {type(treespec)}."
        )
    return treespec.unflatten(leaves)


def tree_iter(tree: PyTree, is_leaf: IsLeaf = None) -> Iterator[Any]:
    """Iterate over the leaves of a tree."""
    kind = None if is_leaf is not None and is_leaf(tree) else _node_type(tree)
    if kind is None:
        yield tree
        return
    for child in SUPPORTED_NODES[kind].flatten_fn(tree)[0]:
        yield from tree_iter(child, is_leaf)


def tree_leaves(tree: PyTree, is_leaf: IsLeaf = None) -> list[Any]:
    """The leaves of a tree."""
    return list(tree_iter(tree, is_leaf))


def arg_tree_leaves(*args: PyTree, **kwargs: PyTree) -> list[Any]:
    """The leaves of the arguments that it is called with."""
    return [leaf for tree in (*args, *kwargs.values()) for leaf in tree_iter(tree, None)]


def tree_structure(tree: PyTree, is_leaf: IsLeaf = None) -> TreeSpec:
    """The structure of a tree."""
    return tree_flatten(tree, is_leaf)[1]


def tree_map(func: Callable[..., Any], tree: PyTree, *rests: PyTree, is_leaf: IsLeaf = None) -> PyTree:
    """The tree with each leaf replaced by what a function makes of it, and of what other trees have in its place."""
    leaves, spec = tree_flatten(tree, is_leaf)
    columns = [leaves, *[spec.flatten_up_to(r) for r in rests]]
    return spec.unflatten([func(*row) for row in zip(*columns, strict=True)])


def tree_map_(func: Callable[..., Any], tree: PyTree, *rests: PyTree, is_leaf: IsLeaf = None) -> PyTree:
    """Call a function with each leaf, and return the tree itself."""
    leaves, spec = tree_flatten(tree, is_leaf)
    for row in zip(leaves, *[spec.flatten_up_to(r) for r in rests], strict=True):
        func(*row)
    return tree


def _predicate(types: Types) -> Callable[[Any], bool]:
    if isinstance(types, type | tuple | UnionType):
        return lambda x: isinstance(x, types)
    if callable(types):
        return types
    raise TypeError("Argument must be a type, a tuple of types, or a callable.")


def map_only(type_or_types_or_pred: Types, /) -> Callable[[Callable[[Any], Any]], Callable[[Any], Any]]:
    """A decorator: the function is applied to leaves of these types, and leaves the others alone."""
    wanted = _predicate(type_or_types_or_pred)

    def decorate(func: Callable[[Any], Any]) -> Callable[[Any], Any]:
        return lambda x: func(x) if wanted(x) else x

    return decorate


def tree_map_only(type_or_types_or_pred: Types, /, func: Callable[[Any], Any], tree: PyTree, is_leaf: IsLeaf = None) -> PyTree:
    """As `tree_map`, for leaves of these types or that a function chooses."""
    return tree_map(map_only(type_or_types_or_pred)(func), tree, is_leaf=is_leaf)


def tree_map_only_(type_or_types_or_pred: Types, /, func: Callable[[Any], Any], tree: PyTree, is_leaf: IsLeaf = None) -> PyTree:
    """As `tree_map_`, for leaves of these types or that a function chooses."""
    return tree_map_(map_only(type_or_types_or_pred)(func), tree, is_leaf=is_leaf)


def tree_all(pred: Callable[[Any], bool], tree: PyTree, is_leaf: IsLeaf = None) -> bool:
    """Whether something holds for every leaf."""
    return all(map(pred, tree_iter(tree, is_leaf)))


def tree_any(pred: Callable[[Any], bool], tree: PyTree, is_leaf: IsLeaf = None) -> bool:
    """Whether something holds for some leaf."""
    return any(map(pred, tree_iter(tree, is_leaf)))


def tree_all_only(type_or_types: Any, /, pred: Callable[[Any], bool], tree: PyTree, is_leaf: IsLeaf = None) -> bool:
    """Whether something holds for every leaf of these types."""
    return all(pred(x) for x in tree_iter(tree, is_leaf) if isinstance(x, type_or_types))


def tree_any_only(type_or_types: Any, /, pred: Callable[[Any], bool], tree: PyTree, is_leaf: IsLeaf = None) -> bool:
    """Whether something holds for some leaf of these types."""
    return any(pred(x) for x in tree_iter(tree, is_leaf) if isinstance(x, type_or_types))


# --- with paths -------------------------------------------------------------------------------------------------------------


def _paths(tree: PyTree, is_leaf: IsLeaf, path: KeyPath) -> Iterator[tuple[KeyPath, Any]]:
    kind = None if is_leaf is not None and is_leaf(tree) else _node_type(tree)
    if kind is None:
        yield path, tree
        return
    node = SUPPORTED_NODES[kind]
    children = node.flatten_fn(tree)[0]
    if node.keys_fn is None:
        raise ValueError(
            f"Did not find a flatten_with_keys_fn for type: {kind}. Please pass a flatten_with_keys_fn argument to register_pytree_node."
        )
    for key, child in zip(node.keys_fn(tree), children, strict=True):
        yield from _paths(child, is_leaf, (*path, key))


def tree_leaves_with_path(tree: PyTree, is_leaf: IsLeaf = None) -> list[tuple[KeyPath, Any]]:
    """The leaves of a tree, each with the keys that lead to it."""
    return list(_paths(tree, is_leaf, ()))


def tree_flatten_with_path(tree: PyTree, is_leaf: IsLeaf = None) -> tuple[list[tuple[KeyPath, Any]], TreeSpec]:
    """The leaves of a tree with their paths, and its structure."""
    return tree_leaves_with_path(tree, is_leaf), tree_structure(tree, is_leaf)


def tree_map_with_path(func: Callable[..., Any], tree: PyTree, *rests: PyTree, is_leaf: IsLeaf = None) -> PyTree:
    """As `tree_map`, with the path to each leaf as the first argument."""
    found, spec = tree_flatten_with_path(tree, is_leaf)
    columns = [[p for p, _ in found], [x for _, x in found], *[spec.flatten_up_to(r) for r in rests]]
    return spec.unflatten([func(*row) for row in zip(*columns, strict=True)])


# --- one tree over another ----------------------------------------------------------------------------------------------------


def _broadcast_to_and_flatten(tree: PyTree, treespec: TreeSpec, is_leaf: IsLeaf = None) -> list[Any] | None:
    """The leaves of a tree, repeated for what the structure has below them; None if the two do not fit."""
    if tree_is_leaf(tree, is_leaf):
        return [tree] * treespec.num_leaves
    if treespec.is_leaf() or _node_type(tree) is not treespec.type:
        return None
    children, context = SUPPORTED_NODES[treespec.type].flatten_fn(tree)
    if len(children) != treespec.num_children or context != treespec.context:
        return None
    found: list[Any] = []
    for child, spec in zip(children, treespec.children_specs, strict=True):
        part = _broadcast_to_and_flatten(child, spec, is_leaf)
        if part is None:
            return None
        found += part
    return found


# --- as text --------------------------------------------------------------------------------------------------------------------

_PROTOCOL = 1


def treespec_dumps(treespec: TreeSpec, protocol: int | None = None) -> str:
    """A structure as JSON."""
    if not isinstance(treespec, TreeSpec):
        raise TypeError(
            f"treespec_dumps(treespec, protocol): Expected `treespec` to be instance of TreeSpec but got item of type {type(treespec)}."
        )
    if protocol not in (None, _PROTOCOL):
        raise ValueError(f"Unknown protocol {protocol}. Available protocols: [{_PROTOCOL}]")
    return json.dumps([_PROTOCOL, _to_json(treespec)])


def _to_json(spec: TreeSpec) -> dict[str, Any]:
    if spec.type is None:
        return {"type": None, "context": None, "children_spec": []}
    node = SUPPORTED_NODES[spec.type]
    if node.serialized_type_name is None:
        raise NotImplementedError(
            f"No registered serialization name for {spec.type} found. Please update your _register_pytree_node call with a `serialized_type_name` kwarg."
        )
    if node.to_dumpable_context is not None:
        context = json.dumps(node.to_dumpable_context(spec.context))
    elif spec.type is namedtuple:
        context = json.dumps(f"{spec.context.__module__}.{spec.context.__qualname__}")
    elif spec.type is defaultdict:
        factory, names = spec.context
        context = json.dumps(
            {"default_factory_module": factory.__module__, "default_factory_name": factory.__qualname__, "dict_context": names}
        )
    else:
        context = json.dumps(spec.context)
    return {"type": node.serialized_type_name, "context": context, "children_spec": [_to_json(c) for c in spec.children_specs]}


def treespec_loads(serialized: str) -> TreeSpec:
    """The structure that `treespec_dumps` wrote."""
    protocol, data = json.loads(serialized)
    if protocol != _PROTOCOL:
        raise ValueError(f"Unknown protocol {protocol}. Available protocols: [{_PROTOCOL}]")
    return _from_json(data)


def _from_json(data: dict[str, Any]) -> TreeSpec:
    if data["type"] is None:
        return _LEAF
    node = next((n for n in SUPPORTED_NODES.values() if n.serialized_type_name == data["type"]), None)
    if node is None:
        raise NotImplementedError(f"Deserialization of {data['type']} in pytree is not registered.")
    context: Any = json.loads(data["context"])
    if node.from_dumpable_context is not None:
        context = node.from_dumpable_context(context)
    elif node.type is namedtuple or node.type is defaultdict:
        raise NotImplementedError(
            f"the context of {data['type']} names a class, which is not imported from text; build the structure instead"
        )
    return TreeSpec(node.type, context, [_from_json(c) for c in data["children_spec"]])


def treespec_pprint(treespec: TreeSpec) -> str:
    """A structure as text, with a star for each leaf."""
    dummy = treespec.unflatten([_Star()] * treespec.num_leaves)
    return repr(dummy)


class _Star:
    def __repr__(self) -> str:
        return "*"
