"""`Node`: one step of a graph."""

from __future__ import annotations

import builtins
import operator
import types
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from .._dispatch.op import Op
from .._functions import functions
from .._op_packet import OpOverload, OpOverloadPacket
from .._transforms.rules.random import draws
from ..overrides import _assert
from ._public_names import public_name
from .immutable_collections import immutable_dict, immutable_list

if TYPE_CHECKING:
    from .graph import Graph

__all__ = ["Argument", "Node", "Target", "has_side_effect", "map_aggregate", "map_arg", "qualified_name"]

Target = Callable[..., Any] | str
Argument = Any  # a node, a number or another constant, or lists, tuples, dicts and slices of these
_KINDS = frozenset(["placeholder", "call_method", "call_module", "call_function", "get_attr", "output", "root"])
_side_effects: set[Callable[..., Any]] = {_assert, operator.setitem}
_RANDOM = frozenset(
    functions[name]
    for name in "rand randn randint randperm rand_like randn_like randint_like normal poisson bernoulli multinomial".split()
)


def _is_impure(target: Target, *, impure_random: bool) -> bool:
    """Whether a call of a function does more than give a result."""
    if target in _side_effects or target in _RANDOM:  # torch: functions that draw have an effect in any case, operators if asked
        return True
    if isinstance(target, OpOverloadPacket):
        return "default" in target.overloads() and _is_impure(target.default, impure_random=impure_random)
    if not isinstance(target, OpOverload):
        return False
    return target._schema.is_mutable or not target.op.schema.returns or (impure_random and _may_draw(target.op))


def _may_draw(op: Op) -> bool:
    """Whether an operator draws random numbers, at least with some arguments."""
    if op.name.endswith("_backward"):
        return False
    return draws(op) or "dropout" in op.name or not {"generator", "dropout", "dropout_p"}.isdisjoint(op.schema.argument_names)


def has_side_effect(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a function that must not be left out of graphs even if nothing uses its result."""
    _side_effects.add(fn)
    return fn


def map_aggregate(a: Argument, fn: Callable[[Argument], Argument]) -> Argument:
    """An argument in which each element that is no list, tuple, dict or slice is what a function makes of it."""
    if isinstance(a, tuple):
        mapped = [map_aggregate(each, fn) for each in a]
        return type(a)(*mapped) if hasattr(a, "_fields") else tuple(mapped)
    if isinstance(a, list):
        return immutable_list([map_aggregate(each, fn) for each in a])
    if isinstance(a, dict):
        return immutable_dict({key: map_aggregate(each, fn) for key, each in a.items()})
    if isinstance(a, slice):
        return slice(map_aggregate(a.start, fn), map_aggregate(a.stop, fn), map_aggregate(a.step, fn))
    return fn(a)


def map_arg(a: Argument, fn: Callable[[Node], Argument]) -> Argument:
    """An argument in which each node is what a function makes of it."""
    if not callable(fn):
        raise AssertionError("torch.fx.map_arg(a, fn): fn must be a callable")
    return map_aggregate(a, lambda x: fn(x) if isinstance(x, Node) else x)


def qualified_name(func: Callable[..., Any]) -> str:
    """The name by which generated code calls a function."""
    name: str = func.__name__
    if getattr(builtins, name, None) is func:
        return name
    public = public_name(func)
    if public is not None:
        return public
    module = getattr(func, "__module__", None) or ""
    if isinstance(func, types.MethodDescriptorType | types.WrapperDescriptorType):
        return f"torch.Tensor.{name}"
    return f"{module}.{name}" if module else name


class Node:
    """One step of a graph: an input, a call, an attribute, or the output.

    `op` says which: "placeholder", "get_attr", "call_function", "call_module", "call_method" or "output"; `target` what is called or read.
    """

    def __init__(
        self,
        graph: Graph,
        name: str,
        op: str,
        target: Target,
        args: tuple[Argument, ...],
        kwargs: dict[str, Argument],
        return_type: object = None,
    ) -> None:
        if op not in _KINDS:
            raise AssertionError(f"a node is one of {sorted(_KINDS)}, got {op!r}")
        if op == "call_function" and not callable(target):
            raise ValueError(
                f"Node [graph = {graph}, name = '{name}'] target {target} has type {type(target)} but a Callable is expected"
            )
        if op != "call_function" and not isinstance(target, str):
            raise ValueError(
                f"Node [graph = {graph}, name = '{name}'] target {target} has type {type(target)} but a str is expected"
            )
        self.graph = graph
        self.name = name
        self.op = op
        self.target = target
        self.type = return_type
        self.users: dict[Node, None] = {}
        self.meta: dict[str, Any] = {}
        self._erased = False
        self._prev: Node = self
        self._next: Node = self
        self._input_nodes: dict[Node, None] = {}
        self._args: tuple[Argument, ...] = ()
        self._kwargs: dict[str, Argument] = immutable_dict()
        self._set_inputs(args, kwargs)

    # --- arguments --------------------------------------------------------------------------------------------------

    def _set_inputs(self, args: Any, kwargs: Any) -> None:
        for old in self._input_nodes:
            old.users.pop(self, None)
        self._input_nodes = {}

        def register(node: Node) -> Node:
            self._input_nodes.setdefault(node)
            node.users.setdefault(self)
            return node

        self._args = map_arg(tuple(args), register)
        self._kwargs = map_arg(dict(kwargs), register)

    @property
    def args(self) -> tuple[Argument, ...]:
        """The positional arguments; assigning others keeps the users of nodes up to date."""
        return self._args

    @args.setter
    def args(self, args: tuple[Argument, ...]) -> None:
        self._set_inputs(args, self._kwargs)

    @property
    def kwargs(self) -> dict[str, Argument]:
        """The arguments by name."""
        return self._kwargs

    @kwargs.setter
    def kwargs(self, kwargs: dict[str, Argument]) -> None:
        self._set_inputs(self._args, kwargs)

    @property
    def all_input_nodes(self) -> list[Node]:
        """The nodes among the arguments, each once."""
        return list(self._input_nodes)

    def update_arg(self, idx: int, arg: Argument) -> None:
        """Replace one positional argument."""
        args = list(self._args)
        args[idx] = arg
        self.args = tuple(args)

    def insert_arg(self, idx: int, arg: Argument) -> None:
        """Put another positional argument before one."""
        if not 0 <= idx <= len(self._args):
            raise AssertionError("insert_args index must be between 0 and len(self.args)")
        self.args = (*self._args[:idx], arg, *self._args[idx:])

    def update_kwarg(self, key: str, arg: Argument) -> None:
        """Replace one argument by name."""
        self.kwargs = {**self._kwargs, key: arg}

    def replace_input_with(self, old_input: Node, new_input: Node) -> None:
        """Put a node in the place of another among the arguments."""

        def swap(node: Node) -> Node:
            return new_input if node is old_input else node

        self._set_inputs(map_arg(self._args, swap), map_arg(self._kwargs, swap))

    def replace_all_uses_with(
        self, replace_with: Node, delete_user_cb: Callable[[Node], bool] = lambda user: True, *, propagate_meta: bool = False
    ) -> list[Node]:
        """Have the users of this node use another; returns those that were changed."""
        if propagate_meta:
            if replace_with.meta:
                raise AssertionError(
                    "Called node.replace_all_uses_with(replace_with, propagate_meta=True), but replace_with already has .meta keys"
                )
            replace_with.meta.update(self.meta)
        changed = [user for user in list(self.users) if delete_user_cb(user)]
        for user in changed:
            user.replace_input_with(self, replace_with)
        return changed

    # --- place ------------------------------------------------------------------------------------------------------

    @property
    def next(self) -> Node:
        """The node after this one."""
        return self._next

    @property
    def prev(self) -> Node:
        """The node before this one."""
        return self._prev

    def prepend(self, x: Node) -> None:
        """Move a node of the same graph to the place before this one."""
        if x.graph is not self.graph:
            raise AssertionError("Attempting to move a Node into a different Graph")
        if x is self:
            return
        x._leave()
        before = self._prev
        before._next, x._prev = x, before
        x._next, self._prev = self, x

    def append(self, x: Node) -> None:
        """Move a node of the same graph to the place after this one."""
        self._next.prepend(x)

    def _leave(self) -> None:
        self._prev._next, self._next._prev = self._next, self._prev

    # --- texts ------------------------------------------------------------------------------------------------------

    def __repr__(self) -> str:
        return self.name

    def is_impure(self, impure_random: bool = True) -> bool:
        """Whether the node does something even if nothing uses its result; with `impure_random`, operators that draw numbers do."""
        if self.op in ("placeholder", "output"):
            return True
        if self.op == "call_function":
            return _is_impure(self.target, impure_random=impure_random)
        if self.op == "call_module":
            owner = self.graph.owning_module
            if owner is None:
                raise AssertionError("self.graph.owning_module not set for purity check")
            module = owner.get_submodule(str(self.target))
            return bool(getattr(module, "_is_impure", False))
        return False

    def _pretty_print_target(self, target: object) -> str:
        if isinstance(target, str):
            return target
        module, name = getattr(target, "__module__", ""), getattr(target, "__name__", str(target))
        if module == "builtins":
            return f"builtins.{name}"
        if module == "_operator":
            return f"operator.{name}"
        return qualified_name(target) if callable(target) else str(target)

    def format_node(self, placeholder_names: list[str] | None = None, maybe_return_typename: list[str] | None = None) -> str | None:
        """The line for this node in the text of its graph; inputs and the type of the output go into lists, if these are given."""
        typed = f"{type_name(self.type)} " if self.type is not None else ""
        head = f"%{self.name} : {typed}[num_users={len(self.users)}] = {self.op}[target={self._pretty_print_target(self.target)}]"
        if self.op == "placeholder":
            if placeholder_names is not None:
                placeholder_names.append(f"{self.target}{f' : {type_name(self.type)}' if self.type is not None else ''}")
                return None
            return head + (f"(default={self.args[0]})" if self.args else "")
        if self.op == "get_attr":
            return head
        if self.op == "output":
            if self.type is not None and maybe_return_typename is not None:
                maybe_return_typename[0] = f" -> {type_name(self.type)}"
            return f"return {self.args[0]}"
        return f"{head}(args = {_text(self.args)}, kwargs = {_text(self.kwargs)})"


def _text(value: Argument) -> str:
    """An argument as it stands in the text of a graph."""
    if isinstance(value, Node):
        return f"%{value.name}"
    if isinstance(value, tuple):
        return f"({', '.join(map(_text, value))}{',' if len(value) == 1 else ''})"
    if isinstance(value, list):
        return f"[{', '.join(map(_text, value))}]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {_text(each)}" for key, each in value.items()) + "}"
    return str(value)


def type_name(kind: object) -> str:
    """An annotation as it stands in texts and code."""
    if isinstance(kind, type):
        if kind.__module__ == "builtins":
            return kind.__qualname__
        module = kind.__module__.replace("mindtorch_v2", "torch")
        return "torch.Tensor" if kind.__name__ == "Tensor" else f"{module}.{kind.__qualname__}"
    if kind is ...:
        return "..."
    if isinstance(kind, types.FunctionType):
        return kind.__name__
    return repr(kind).replace("mindtorch_v2._tensor.Tensor", "torch.Tensor")


def walk(root: Node) -> Iterable[Node]:
    """The nodes of a graph, from the one after its root; nodes may be erased meanwhile."""
    node = root._next
    while node is not root:
        following = node._next
        if not node._erased:
            yield node
            following = node._next if not node._erased else following
        node = following
