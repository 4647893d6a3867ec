"""`GraphModule`: a module whose forward is the code of a graph."""

from __future__ import annotations

import copy
import importlib
import itertools
import linecache
import math
import sys
from collections.abc import Callable
from typing import Any

from .. import _missing
from .._tensor import Tensor
from ..nn.modules.module import Module
from ..nn.parameter import Parameter
from .codegen import refuse_comments
from .graph import Graph, PythonCode

__all__ = ["GraphModule"]

_USER_PRESERVED_ATTRIBUTES_KEY = "_user_preserved_attributes"
_numbers = itertools.count()


class _CodeOnlyModule(Module):
    """A module with the attributes of another, and no graph."""

    def __init__(self, body: dict[str, Any]) -> None:
        super().__init__()
        self.__dict__ = body


def _copy_attr(from_module: Module, to_module: Module, target: str) -> None:
    """Give a module the attribute of another that a dotted name stands for, with empty modules on the way."""
    *path, field = target.split(".")
    for part in path:
        from_module = getattr(from_module, part)
        following = to_module._modules.get(part)
        if following is from_module:
            return
        if following is None:
            following = Module()
            setattr(to_module, part, following)
        to_module = following
    value = getattr(from_module, field)
    if isinstance(value, Tensor) and not isinstance(value, Parameter):
        to_module.register_buffer(field, value)
    else:
        setattr(to_module, field, value)


def _assign_attr(value: Any, to_module: Module, target: str) -> None:
    *path, field = target.split(".")
    for part in path:
        following = getattr(to_module, part, None)
        if following is None:
            following = Module()
            setattr(to_module, part, following)
        to_module = following
    if isinstance(value, Tensor) and not isinstance(value, Parameter):
        to_module.register_buffer(field, value)
    else:
        setattr(to_module, field, value)


def _compiled(code: PythonCode) -> Callable[..., Any]:
    """The function `forward` of the code; tracebacks show its lines."""
    name = f"<eval_with_key>.{next(_numbers)}"
    linecache.cache[name] = (len(code.src), None, code.src.splitlines(keepends=True), name)
    namespace = dict(code.globals)
    source = "\n".join("" if line.startswith("torch.fx._symbolic_trace.wrap(") else line for line in code.src.split("\n"))
    exec(compile(source, name, "exec", dont_inherit=True), namespace)
    forward: Callable[..., Any] = namespace["forward"]
    return forward


class GraphModule(Module):
    """A module made of a graph. After changes of the graph, `recompile()` makes its code anew.

    Args:
        root: the module that has what the graph names, or a dict of it by name. What the graph does not name is left out.
        graph: the graph.
        class_name: what the module is called in texts.
    """

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        made = next(c for c in cls.__mro__ if c.__qualname__ != "GraphModuleImpl")
        return super().__new__(type("GraphModuleImpl", (made,), {"__qualname__": "GraphModuleImpl"}))

    def __init__(self, root: Module | dict[str, Any], graph: Graph, class_name: str = "GraphModule") -> None:
        super().__init__()
        type(self).__name__ = class_name
        targets = sorted({str(n.target) for n in graph.nodes if n.op in ("get_attr", "call_module")}, key=lambda t: t.count("."))
        if isinstance(root, Module):
            self.training = root.training
            for node in graph.nodes:
                if node.op in ("get_attr", "call_module"):
                    _copy_attr(root, self, str(node.target))
        elif isinstance(root, dict):
            for target in targets:
                if target not in root:
                    raise RuntimeError(f"a node of the graph names {target!r}, which the dict does not have")
                _assign_attr(root[target], self, target)
        else:
            raise RuntimeError("Unsupported type " + str(root) + " passed for root!")
        self.graph = graph
        self._tracer_cls = graph._tracer_cls
        self.meta: dict[str, Any] = {}

    @property
    def graph(self) -> Graph:
        """The graph; another one can be assigned."""
        return self._graph

    @graph.setter
    def graph(self, graph: Graph) -> None:
        if not isinstance(graph, Graph):
            raise AssertionError(f"Expected a Graph instance, but got {type(graph)}")
        self._graph = graph
        graph.owning_module = self
        self.recompile()

    @property
    def code(self) -> str:
        """The code of `forward`."""
        return self._code

    def recompile(self) -> PythonCode:
        """Make the code of the graph as it is now."""
        python_code = self._graph.python_code("self")
        self._code = python_code.src
        type(self).forward = _compiled(python_code)  # type: ignore[method-assign]
        return python_code

    def add_submodule(self, target: str, m: Module) -> bool:
        """Add a module under a dotted name; returns whether that could be done."""
        *path, field = target.split(".")
        parent: Any = self
        for part in path:
            following = getattr(parent, part, None)
            if following is None:
                following = Module()
                setattr(parent, part, following)
            if not isinstance(following, Module):
                return False
            parent = following
        parent.add_module(field, m)
        return True

    def delete_submodule(self, target: str) -> bool:
        """Remove the module with a dotted name; returns whether there was one."""
        *path, field = target.split(".")
        parent: Any = self
        for part in path:
            parent = getattr(parent, part, None)
            if not isinstance(parent, Module):
                return False
        if not isinstance(getattr(parent, field, None), Module):
            return False
        delattr(parent, field)
        return True

    def delete_all_unused_submodules(self) -> None:
        """Remove the modules that no node names."""
        used: set[str] = set()
        for node in self.graph.nodes:
            if node.op in ("call_module", "get_attr"):
                parts = str(node.target).split(".")
                used |= {".".join(parts[:i]) for i in range(1, len(parts) + 1)}
                if node.op == "call_module":
                    inside = self.get_submodule(str(node.target)).named_modules()
                    used |= {f"{node.target}.{name}" for name, _ in inside if name}
        for name in [name for name, _ in self.named_modules() if name and name not in used]:
            self.delete_submodule(name)

    def print_readable(
        self,
        print_output: bool = True,
        include_stride: bool = False,
        include_device: bool = False,
        colored: bool = False,
        *,
        fast_sympy_print: bool = False,
        expanded_def: bool = False,
        additional_meta: list[str] | None = None,
    ) -> str:
        """The code as a class, printed and returned. There are no comments to add to it."""
        refuse_comments(
            include_stride=include_stride, include_device=include_device, colored=colored, fast_sympy_print=fast_sympy_print,
            expanded_def=expanded_def, additional_meta=additional_meta,
        )  # fmt: skip
        lines = "\n".join("    " + line if line else line for line in self._code.strip("\n").split("\n"))
        text = f"class {type(self).__name__}(torch.nn.Module):\n{lines}\n"
        if print_output:
            print(text)
        return text

    def __str__(self) -> str:
        reminder = "# To see more debug info, please use `graph_module.print_readable()`"
        return "\n".join([super().__str__(), self._code, reminder])

    def __deepcopy__(self, memo: dict[int, Any]) -> GraphModule:
        shell = Module()
        shell.__dict__ = copy.deepcopy({k: v for k, v in self.__dict__.items() if k not in ("_graph", "_code")}, memo)
        made = GraphModule(shell, copy.deepcopy(self.graph), type(self).__name__)
        made.meta = copy.copy(self.meta)
        return made

    def __copy__(self) -> GraphModule:
        made = GraphModule(self, copy.deepcopy(self.graph), type(self).__name__)
        made.meta = copy.copy(self.meta)
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        body = {name: value for name, value in self.__dict__.items() if name != "_graph"}
        python_code = self._graph.python_code("self")
        named = {
            n: _importable(v) for n, v in python_code.globals.items() if n in python_code.src and n not in ("torch", "inf", "nan")
        }
        return _rebuilt, (body, type(self).__name__, python_code.src, {n: v for n, v in named.items() if v is not None})


def _importable(value: Any) -> tuple[str, str] | None:
    module, name = getattr(value, "__module__", None), getattr(value, "__qualname__", None)
    return (module, name) if module and name else None


def _rebuilt(body: dict[str, Any], class_name: str, source: str, names: dict[str, tuple[str, str]]) -> GraphModule:
    """The module of a pickle: its code is traced again, with every module in it a leaf."""
    found = {name: getattr(importlib.import_module(module), attribute) for name, (module, attribute) in names.items()}
    root = _CodeOnlyModule(dict(body))
    package = sys.modules[_missing.PACKAGE]
    code = PythonCode(source, {"torch": package, "inf": math.inf, "nan": math.nan, "NoneType": type(None), **found})
    kind = type(class_name, (_CodeOnlyModule,), {"forward": _compiled(code)})
    root.__class__ = kind
    tracing = importlib.import_module(f"{__package__}._symbolic_trace")

    class Tracer(tracing.Tracer):  # type: ignore[misc, name-defined]
        def is_leaf_module(self, m: Module, module_qualified_name: str) -> bool:
            return True

    graph = Tracer(autowrap_functions=tuple(f for f in found.values() if callable(f))).trace(root)
    return GraphModule(root, graph, class_name)
