"""`Graph`: the steps of a function in their order, and the code that does them."""

from __future__ import annotations

import builtins
import contextlib
import copy
import importlib
import keyword
import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from .._device import device as torch_device
from . import codegen
from .node import Argument, Node, Target, map_arg, walk

if TYPE_CHECKING:
    from ..nn.modules.module import Module
    from ._symbolic_trace import Tracer

__all__ = ["CodeGen", "Graph", "PythonCode"]

CodeGen = codegen.CodeGen
PythonCode = codegen.PythonCode


class _Namespace:
    """Names that are taken, each once; others get a number at their end."""

    def __init__(self) -> None:
        self._objects: dict[Any, str] = {}
        self._used: set[str] = set()
        self._counts: dict[str, int] = {}

    def create_name(self, candidate: str, obj: object) -> str:
        """A free name like the candidate; the one that an object has already."""
        if obj is not None and id(obj) in self._objects:
            return self._objects[id(obj)]
        candidate = re.sub(r"[^0-9a-zA-Z_]+", "_", candidate) or "_unnamed"
        if candidate[0].isdigit():
            candidate = f"_{candidate}"
        match = re.match(r"(.*)_(\d+)$", candidate)
        base, number = (candidate, None) if match is None else (match[1], int(match[2]))
        if number is None or candidate in self._used:
            number = (
                self._counts.get(candidate if number is None else base, 0) if number is None else self._counts.get(base, number)
            )
            name = candidate if match is None else base
            candidate = name if not number else f"{name}_{number}"
            base = name
        while candidate in self._used or self._is_illegal(candidate, obj):
            number = (number or 0) + 1
            candidate = f"{base}_{number}"
        self._used.add(candidate)
        self._counts[base] = number or 0
        if obj is not None:
            self._objects[id(obj)] = candidate
        return candidate

    @staticmethod
    def _is_illegal(name: str, obj: object) -> bool:
        if keyword.iskeyword(name):
            return True
        if name in builtins.__dict__:
            return obj is not builtins.__dict__[name]
        if name in codegen.KNOWN:
            return obj is not codegen.KNOWN[name]
        return False


class _Nodes:
    """The nodes of a graph, forwards or backwards; it may change meanwhile."""

    def __init__(self, graph: Graph, *, backwards: bool = False) -> None:
        self._graph, self._backwards = graph, backwards

    def __len__(self) -> int:
        return self._graph._len

    def __iter__(self) -> Iterator[Node]:
        if not self._backwards:
            yield from walk(self._graph._root)
            return
        node = self._graph._root._prev
        while node is not self._graph._root:
            before = node._prev
            if not node._erased:
                yield node
            node = before

    def __reversed__(self) -> _Nodes:
        return _Nodes(self._graph, backwards=not self._backwards)


class _InsertPoint:
    def __init__(self, graph: Graph, insert: Callable[[Node], None]) -> None:
        self._graph, self._before = graph, graph._insert
        graph._insert = insert

    def __enter__(self) -> None:
        return None

    def __exit__(self, *exc: object) -> None:
        self._graph._insert = self._before


class Graph:
    """The steps of a function: inputs, calls, and an output, each a `Node`.

    Args:
        owning_module: the module whose attributes and submodules the nodes name.
        tracer_cls: the class of the tracer that made it.
    """

    def __init__(
        self,
        owning_module: Module | None = None,
        tracer_cls: type[Tracer] | None = None,
        tracer_extras: dict[str, Any] | None = None,
    ) -> None:
        self._root = Node(self, "", "root", "", (), {})
        self._insert: Callable[[Node], None] = self._root.prepend
        self._len = 0
        self._graph_namespace = _Namespace()
        self._tracer_cls, self._tracer_extras = tracer_cls, tracer_extras
        self._codegen = CodeGen()
        self.owning_module = owning_module

    @property
    def nodes(self) -> _Nodes:
        """The nodes in order; `reversed()` gives them backwards."""
        return _Nodes(self)

    def output_node(self) -> Node:
        """The node of the output."""
        return next(n for n in reversed(self.nodes) if n.op == "output")

    def find_nodes(self, *, op: str, target: Target | None = None, sort: bool = True) -> list[Node]:
        """The nodes of a kind, and with a target."""
        if op == "call_function" and target is None:
            raise AssertionError("call_function requires a target")
        return [n for n in self.nodes if n.op == op and (target is None or n.target == target)]

    # --- making nodes -----------------------------------------------------------------------------------------------

    def create_node(
        self,
        op: str,
        target: Target,
        args: tuple[Argument, ...] | None = None,
        kwargs: dict[str, Argument] | None = None,
        name: str | None = None,
        type_expr: object = None,
    ) -> Node:
        """Add a node at the point where nodes are inserted: the end, unless `inserting_before` or `inserting_after` says another."""
        if args is not None and not isinstance(args, tuple):
            raise AssertionError("args must be a tuple")
        if kwargs is not None and not isinstance(kwargs, dict):
            raise AssertionError("kwargs must be a dict")
        candidate = name if name is not None else self._target_to_str(target)
        node = Node(self, self._graph_namespace.create_name(candidate, None), op, target, args or (), kwargs or {}, type_expr)
        self._graph_namespace._objects[id(node)] = node.name
        self._insert(node)
        self._len += 1
        return node

    @staticmethod
    def _target_to_str(target: Target) -> str:
        name = target.__name__ if callable(target) else str(target)
        if name.startswith("__") and name.endswith("__"):
            name = name[2:-2]
        return _snake_case(name)

    def placeholder(self, name: str, type_expr: object = None, default_value: Any = ...) -> Node:
        """An input."""
        args = () if default_value is ... else (default_value,)
        return self.create_node("placeholder", name, args, type_expr=type_expr)

    def get_attr(self, qualified_name: str, type_expr: object = None) -> Node:
        """A parameter, buffer or other attribute of the owning module."""
        return self.create_node("get_attr", qualified_name, type_expr=type_expr)

    def call_module(
        self,
        module_name: str,
        args: tuple[Argument, ...] | None = None,
        kwargs: dict[str, Argument] | None = None,
        type_expr: object = None,
        name: str | None = None,
    ) -> Node:
        """A call of a submodule of the owning module."""
        return self.create_node("call_module", module_name, args, kwargs, name, type_expr)

    def call_method(
        self,
        method_name: str,
        args: tuple[Argument, ...] | None = None,
        kwargs: dict[str, Argument] | None = None,
        type_expr: object = None,
        name: str | None = None,
    ) -> Node:
        """A call of a method of the first argument."""
        return self.create_node("call_method", method_name, args, kwargs, name, type_expr)

    def call_function(
        self,
        the_function: Callable[..., Any],
        args: tuple[Argument, ...] | None = None,
        kwargs: dict[str, Argument] | None = None,
        type_expr: object = None,
        name: str | None = None,
    ) -> Node:
        """A call of a function."""
        return self.create_node("call_function", the_function, args, kwargs, name, type_expr)

    def output(self, result: Argument, type_expr: object = None) -> Node:
        """The output."""
        return self.create_node("output", "output", (result,), type_expr=type_expr)

    def node_copy(self, node: Node, arg_transform: Callable[[Node], Argument] = lambda x: x) -> Node:
        """Add a copy of a node of another graph; the function gives the nodes here for those that it uses."""
        copied = self.create_node(
            node.op, node.target, map_arg(node.args, arg_transform), map_arg(node.kwargs, arg_transform), node.name, node.type
        )
        copied.meta = copy.copy(node.meta)
        return copied

    def graph_copy(self, g: Graph, val_map: dict[Node, Node], return_output_node: bool = False) -> Any:
        """Add copies of all nodes of another graph; returns what its output would be, and notes copies in `val_map`."""
        for node in g.nodes:
            if node in val_map:
                continue
            if node.op == "output":
                result = map_arg(node.args[0], lambda n: val_map[n])
                return (result, node) if return_output_node else result
            val_map[node] = self.node_copy(node, lambda n: val_map[n])
        return None

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Graph:
        memo = {} if memo is None else memo
        made = Graph(tracer_cls=self._tracer_cls)
        copies: dict[Node, Node] = {}
        output = made.graph_copy(self, copies, return_output_node=True)
        made._codegen = copy.deepcopy(self._codegen)
        memo.update({id(old): new for old, new in copies.items()})
        if output is not None:
            result, old = output
            new = made.output(result, old.type)
            new.meta = copy.copy(old.meta)
        return made

    # --- changing it ------------------------------------------------------------------------------------------------

    def erase_node(self, to_erase: Node) -> None:
        """Remove a node that nothing uses."""
        if to_erase.users:
            raise RuntimeError(
                f"Tried to erase Node {to_erase} but it still had {len(to_erase.users)} users in the graph: {to_erase.users}!"
            )
        if to_erase.graph is not self:
            raise RuntimeError(f"Attempting to remove {to_erase} from wrong graph!")
        if to_erase._erased:
            return
        to_erase._set_inputs((), {})
        to_erase._leave()
        to_erase._erased = True
        self._len -= 1

    def inserting_before(self, n: Node | None = None) -> _InsertPoint:
        """A block in which nodes are added before one, or at the beginning."""
        if n is None:
            return self.inserting_after(self._root)
        self._check_own(n)
        return _InsertPoint(self, n.prepend)

    def inserting_after(self, n: Node | None = None) -> _InsertPoint:
        """A block in which nodes are added after one, or at the end; each after the one before it."""
        if n is None:
            return self.inserting_before(self._root)
        self._check_own(n)
        last = n

        def insert(node: Node) -> None:
            nonlocal last
            last.append(node)
            last = node

        return _InsertPoint(self, insert)

    def _check_own(self, n: Node) -> None:
        if n.graph is not self:
            raise AssertionError("Node to insert before is not in graph.")

    def eliminate_dead_code(self, is_impure_node: Callable[[Node], bool] | None = None) -> bool:
        """Remove nodes whose results nothing uses; returns whether there were any."""
        self.lint()
        changed = False
        for node in reversed(self.nodes):
            impure = node.is_impure() if is_impure_node is None else is_impure_node(node)
            if not impure and not node.users:
                self.erase_node(node)
                changed = True
        return changed

    def process_inputs(self, *args: Any) -> Any:
        """The arguments as they are."""
        return args

    def process_outputs(self, out: Any) -> Any:
        """The output as it is."""
        return out

    def set_codegen(self, codegen: codegen.CodeGen) -> None:
        """Have another object make the code."""
        self._codegen = codegen

    @contextlib.contextmanager
    def on_generate_code(self, make_transformer: Callable[[Any], Callable[[list[str]], list[str]]]) -> Iterator[None]:
        """A block in which a function changes the lines of the code that is made."""
        before = self._codegen._body_transformer
        self._codegen._body_transformer = make_transformer(before)
        try:
            yield
        finally:
            self._codegen._body_transformer = before

    def lint(self) -> None:
        """Raise if nodes use others that come later or are of another graph, have names twice, or name what the owning module does not have."""
        seen: set[str] = set()
        known: set[Node] = set()
        for node in self.nodes:
            if node.graph is not self:
                raise RuntimeError(f"Node '{node}' does not belong to this Graph!")
            for used in node.all_input_nodes:
                if used.graph is not self:
                    raise RuntimeError(
                        f"Argument '{used}' of Node '{node}' does not belong to this Graph, but was used as an argument! If you are copying"
                        " nodes from another graph, make sure to use ``arg_transform`` on node_copy() to remap values"
                    )
                if used not in known:
                    raise RuntimeError(
                        f"Argument '{used}' of Node '{node}' was used before it has been defined! Please check that Nodes in the graph are"
                        f" topologically ordered\n{self}"
                    )
            known.add(node)
            if node.name in seen:
                raise RuntimeError(f"Node redefined name {node.name}!")
            seen.add(node.name)
            if self.owning_module is not None and node.op in ("get_attr", "call_module"):
                self._check_target(node)

    def _check_target(self, node: Node) -> None:
        found = self.owning_module
        for part in str(node.target).split("."):
            if not hasattr(found, part):
                raise RuntimeError(f"Node {node} target {node.target} references nonexistent attribute {part} of {node.target}")
            found = getattr(found, part)

    # --- texts ------------------------------------------------------------------------------------------------------

    def python_code(
        self,
        root_module: str,
        *,
        verbose: bool = False,
        include_stride: bool = False,
        include_device: bool = False,
        colored: bool = False,
        expanded_def: bool = False,
        record_func: bool = False,
        additional_meta: list[str] | None = None,
    ) -> PythonCode:
        """The code of the graph; `root_module` is the name of the module in it, "self". There are no comments to add to it."""
        codegen.refuse_comments(
            verbose=verbose, include_stride=include_stride, include_device=include_device, colored=colored, expanded_def=expanded_def,
            record_func=record_func, additional_meta=additional_meta,
        )  # fmt: skip
        namespace = _Namespace()
        for node in self.nodes:
            namespace._used.add(node.name)
            namespace._objects[id(node)] = node.name
        return self._codegen._gen_python_code(self.nodes, root_module, namespace)

    def __str__(self) -> str:
        return "graph():" + "".join(f"\n    {node.format_node()}" for node in self.nodes)

    def print_tabular(self) -> None:
        """Print the nodes as a table; needs the package `tabulate`."""
        try:
            tabulate = importlib.import_module("tabulate").tabulate
        except ImportError:
            print("`print_tabular` relies on the library `tabulate`, which could not be found on this machine. Run `pip install tabulate` to"
                  " install the library.")  # fmt: skip
            raise
        rows = [[n.op, n.name, n.target, n.args, n.kwargs] for n in self.nodes]
        print(tabulate(rows, headers=["opcode", "name", "target", "args", "kwargs"]))


def _snake_case(name: str) -> str:
    if name.islower():
        return name
    return re.sub(r"(?<=[a-z])([A-Z])|(?<!^)([A-Z])(?=[a-z])", lambda m: "_" + m[0], name).lower().lstrip("_")


codegen.KNOWN["device"] = torch_device
