"""The Python code of a graph: one line for each node, which gives values up after their last use."""

from __future__ import annotations

import math
import sys
import types
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from .. import _missing
from .._refusals import refuse
from .node import Argument, Node, map_arg, qualified_name, type_name

if TYPE_CHECKING:
    from .graph import _Namespace

__all__ = ["KNOWN", "CodeGen", "PythonCode"]

# Names that all code can use.
KNOWN: dict[str, Any] = {"inf": math.inf, "nan": math.nan, "NoneType": type(None), "torch": None, "device": None}

OPERATORS = {
    "eq": "{} == {}", "ne": "{} != {}", "lt": "{} < {}", "gt": "{} > {}", "le": "{} <= {}", "ge": "{} >= {}", "pos": "+{}", "neg": "-{}",
    "invert": "~{}", "add": "{} + {}", "sub": "{} - {}", "mul": "{} * {}", "floordiv": "{} // {}", "truediv": "{} / {}", "mod": "{} % {}",
    "pow": "{} ** {}", "lshift": "{} << {}", "rshift": "{} >> {}", "and_": "{} & {}", "or_": "{} | {}", "xor": "{} ^ {}",
    "getitem": "{}[{}]", "matmul": "{} @ {}",
}  # fmt: skip
INPLACE = {
    "iadd": "{} += {}", "isub": "{} -= {}", "imul": "{} *= {}", "itruediv": "{} /= {}", "ifloordiv": "{} //= {}", "imod": "{} %= {}",
    "ipow": "{} **= {}", "iand": "{} &= {}", "ior": "{} |= {}", "ixor": "{} ^= {}", "imatmul": "{} @= {}", "ilshift": "{} <<= {}",
    "irshift": "{} >>= {}",
}  # fmt: skip


class PythonCode(NamedTuple):
    """The code of a graph, and what its names stand for."""

    src: str
    globals: dict[str, Any]


def refuse_comments(**options: object) -> None:
    """Refuse options of what torch writes beside code: colours, and comments with what a compiler knows of the nodes."""
    for name, value in options.items():
        if value:
            refuse(f"{name}={value!r}", "graphs know no shapes, devices or stacks to write beside the code")


class CodeGen:
    """Makes the code of graphs."""

    def __init__(self) -> None:
        self._body_transformer: Callable[[list[str]], list[str]] | None = None

    def gen_fn_def(self, free_vars: list[str], maybe_return_annotation: str) -> str:
        """The first line of the function."""
        names = free_vars if free_vars and free_vars[0] == "self" else ["self", *free_vars]
        return f"def forward({', '.join(names)}){maybe_return_annotation}:"

    def generate_output(self, output_args: Argument) -> str:
        """The last line of the function."""
        return f"return {_literal(output_args)}"

    def _gen_python_code(self, nodes: Iterable[Node], root_module: str, namespace: _Namespace) -> PythonCode:
        listed = list(nodes)
        writer = _Writer(namespace, root_module, _last_uses(listed))
        for node in listed:
            writer.write(node, self)
        body = writer.body or ["pass\n"]
        if self._body_transformer is not None:
            body = self._body_transformer(body)
        wrapping = "\n".join(f'torch.fx._symbolic_trace.wrap("{name}")' for name in writer.wrapped)
        head = self.gen_fn_def(writer.free_variables, writer.return_annotation)
        text = "\n".join("    " + line for line in "".join(body).split("\n"))
        return PythonCode(f"\n{wrapping}\n\n{head}\n{text}", writer.globals)


class _Writer:
    """The lines of a function, while they are written."""

    def __init__(self, namespace: _Namespace, root_module: str, last_uses: dict[Node, list[Node]]) -> None:
        self._namespace, self._root_module, self._last_uses = namespace, root_module, last_uses
        self.globals: dict[str, Any] = {}
        self.free_variables: list[str] = []
        self.body: list[str] = []
        self.wrapped: list[str] = []
        self.return_annotation = ""
        for name, value in KNOWN.items():
            self._add_global(name, _torch() if name == "torch" else value)

    def _add_global(self, hint: str, obj: object) -> str:
        if hint.startswith("torch.") and obj is not KNOWN["device"]:
            self.globals.setdefault("torch", _torch())
            return hint
        name: str = self._namespace.create_name(hint.replace(".", "_"), obj)
        self.globals[name] = obj
        return name

    def _annotation(self, kind: object, mark: str = " : ") -> str:
        if kind is None:
            return ""
        name = type_name(kind)
        if isinstance(kind, type) and kind.__module__ != "builtins":
            name = self._add_global(name, kind)
        return f"{mark}{name}"

    def write(self, node: Node, codegen: CodeGen) -> None:
        typed = self._annotation(node.type)
        if node.op == "placeholder":
            default = f" = {node.args[0]!r}" if node.args else ""
            self.free_variables.append(f"{node.target}{typed}{default}")
            plain = str(node.target).replace("*", "")
            if plain != repr(node):
                self.body.append(f"{node!r} = {plain}\n")
            return
        if node.op == "output":
            self.return_annotation = self._annotation(node.type, " -> ")
            self.body.append(codegen.generate_output(node.args[0]))
            self.body.append("\n")
            return
        self.body.append(f"{self._statement(node, typed)}")
        ended = [*self._last_uses.get(node, []), *([node] if not node.users else [])]
        self.body.append(f";  {' = '.join(map(repr, ended))} = None\n" if ended else "\n")

    def _statement(self, node: Node, typed: str) -> str:
        start = f"{node!r}{typed} = "
        if node.op == "get_attr":
            return start + _attribute(self._root_module, str(node.target))
        if node.op == "call_module":
            return f"{start}{_attribute(self._root_module, str(node.target))}({_arguments(node.args, node.kwargs)})"
        if node.op == "call_method":
            receiver = _literal(node.args[0])
            return f"{start}{receiver}.{node.target}({_arguments(node.args[1:], node.kwargs)})"
        function: Any = node.target
        module, name = getattr(function, "__module__", ""), getattr(function, "__name__", "")
        if module == "_operator" and name in OPERATORS:
            return start + OPERATORS[name].format(*map(_literal, node.args))
        if module == "_operator" and name in INPLACE:
            return f"{INPLACE[name].format(*map(_literal, node.args))};  {start}{_literal(node.args[0])}"
        if function is getattr and isinstance(node.args[1], str) and node.args[1].isidentifier() and len(node.args) == 2:
            return f"{start}{_literal(node.args[0])}.{node.args[1]}"
        called = self._add_global(qualified_name(function), function)
        if node.meta.get("is_wrapped") and called not in self.wrapped:
            self.wrapped.append(called)
        return f"{start}{called}({_arguments(node.args, node.kwargs)})"


def _torch() -> types.ModuleType:
    return sys.modules[_missing.PACKAGE]


def _last_uses(nodes: list[Node]) -> dict[Node, list[Node]]:
    """For each node, the nodes that it is the last to use."""
    seen: set[Node] = set()
    found: dict[Node, list[Node]] = {}
    for user in reversed(nodes):

        def register(used: Node, user: Node = user) -> Node:
            if used not in seen:
                seen.add(used)
                found.setdefault(user, []).append(used)
            return used

        map_arg(user.args, register)
        map_arg(user.kwargs, register)
    return found


def _literal(value: Argument) -> str:
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return repr(value)
    if isinstance(value, tuple):
        return f"({', '.join(map(_literal, value))}{',' if len(value) == 1 else ''})"
    if isinstance(value, list):
        return f"[{', '.join(map(_literal, value))}]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key!r}: {_literal(each)}" for key, each in value.items()) + "}"
    if isinstance(value, slice):
        return f"slice({_literal(value.start)}, {_literal(value.stop)}, {_literal(value.step)})"
    return repr(value)


def _arguments(args: tuple[Argument, ...], kwargs: dict[str, Argument]) -> str:
    return ", ".join([*map(_literal, args), *(f"{name} = {_literal(value)}" for name, value in kwargs.items())])


def _attribute(root: str, path: str) -> str:
    text = root
    for part in path.split("."):
        text = f"{text}.{part}" if part.isidentifier() else f'getattr({text}, "{part}")'
    return text
