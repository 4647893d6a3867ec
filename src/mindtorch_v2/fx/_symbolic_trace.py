"""`symbolic_trace`: a function is called with proxies, and what it does becomes a graph."""

from __future__ import annotations

import contextlib
import functools
import inspect
import math
import operator
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

from .. import _missing
from .._functions import functions
from .._tensor import Tensor
from ..nn import functional
from ..nn.modules.container import Sequential
from ..nn.modules.module import Module
from ..nn.parameter import Parameter
from ..overrides import _assert
from ._public_names import public_name
from .graph import Graph
from .graph_module import GraphModule
from .node import map_aggregate
from .proxy import ParameterProxy, Proxy, TracerBase

__all__ = ["Tracer", "symbolic_trace", "wrap"]

_wrapped: dict[tuple[int, str], dict[str, Any]] = {}  # names to patch while tracing, by the globals that have them
_MISSING = object()


def _assert_is_none(value: object, msg: str) -> None:
    if value is not None:
        raise AssertionError(msg)


def wrap(fn_or_name: str | Callable[..., Any]) -> Any:
    """Have calls of a function of this module become nodes, instead of tracing what it does. Called at the top of a module.

    torch.fx.wrap("len")

    @torch.fx.wrap
    def bounds(x): …
    """
    if not callable(fn_or_name) and not isinstance(fn_or_name, str):
        raise RuntimeError("Unsupported type for global function! Must be either a callable or string name")
    name = fn_or_name if isinstance(fn_or_name, str) else fn_or_name.__name__
    frame = inspect.currentframe()
    caller = frame.f_back if frame is not None else None
    if caller is None or caller.f_code.co_name != "<module>":
        raise NotImplementedError("wrap must be called at the top level of a module")
    _wrapped[id(caller.f_globals), name] = caller.f_globals
    return fn_or_name


class Tracer(TracerBase):
    """Traces functions and modules.

    Args:
        autowrap_modules: modules whose functions become nodes when they are called with proxies.
        autowrap_functions: functions for which the same holds.
        param_shapes_constant: whether shapes of parameters are numbers, and not traced.
    """

    def __init__(
        self,
        autowrap_modules: tuple[types.ModuleType, ...] = (math,),
        autowrap_functions: tuple[Callable[..., Any], ...] = (),
        param_shapes_constant: bool = False,
    ) -> None:
        self._modules = tuple(autowrap_modules)
        self._functions = {
            *(f for m in autowrap_modules for name, f in vars(m).items() if callable(f) and not name.startswith("_")),
            *autowrap_functions,
        }
        self.param_shapes_constant = param_shapes_constant
        self.root: Module = Module()
        self.tensor_attrs: dict[Any, str] = {}
        self.submodule_paths: dict[Module, str] | None = None
        self._parameter_proxies: dict[str, Proxy] = {}

    # --- what subclasses may change -----------------------------------------------------------------------------------

    def is_leaf_module(self, m: Module, module_qualified_name: str) -> bool:
        """Whether a call of a module is one node; otherwise what it does is traced. True for the modules of torch.nn but Sequential."""
        home = type(m).__module__
        return home.startswith((f"{_missing.PACKAGE}.nn", "torch.nn")) and not isinstance(m, Sequential)

    def path_of_module(self, mod: Module) -> str:
        """The name of a submodule of the module that is traced."""
        if self.submodule_paths is not None and mod in self.submodule_paths:
            return self.submodule_paths[mod]
        path = next((name for name, each in self.root.named_modules() if each is mod), None)
        if path is None:
            raise NameError("module is not installed as a submodule")
        return path

    def call_module(self, m: Module, forward: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Called for each call of a module: a node if it is a leaf."""
        path = self.path_of_module(m)
        if self.is_leaf_module(m, path):
            return self.create_proxy("call_module", path, args, kwargs)
        return forward(*args, **kwargs)

    def getattr(self, attr: str, attr_val: Any, parameter_proxy_cache: dict[str, Any]) -> Any:
        """Called for each attribute that modules look up: a node if it is a parameter."""
        if isinstance(attr_val, Parameter):
            found = self._proxy_of(attr_val, self.root.named_parameters(), parameter_proxy_cache)
            return attr_val if found is None else found
        if self.proxy_buffer_attributes and isinstance(attr_val, Tensor):
            found = self._proxy_of(attr_val, self.root.named_buffers(), parameter_proxy_cache)
            return attr_val if found is None else found
        return attr_val

    def _proxy_of(self, value: Tensor, named: Iterator[tuple[str, Any]], cache: dict[str, Any]) -> Proxy | None:
        for name, each in named:
            if each is value:
                if name not in cache:
                    make = functools.partial(ParameterProxy, self, name=name, param=value) if self.param_shapes_constant else None
                    cache[name] = self.create_proxy("get_attr", name, (), {}, proxy_factory_fn=make)
                return cache[name]
        return None

    def create_arg(self, a: Any) -> Any:
        """An argument as a node takes it: tensors become attributes of the module that is traced."""
        if isinstance(a, Parameter):
            for name, parameter in self.root.named_parameters():
                if a is parameter:
                    return self.create_node("get_attr", name, (), {})
            raise NameError("parameter is not a member of this module")
        if isinstance(a, Tensor):
            for name, buffer in self.root.named_buffers():
                if a is buffer:
                    return self.create_node("get_attr", name, (), {})
            return self.create_node("get_attr", self._constant(a), (), {})
        if isinstance(a, Module):
            return self.create_node("get_attr", self.path_of_module(a), (), {})
        return super().create_arg(a)

    def _constant(self, value: Tensor) -> str:
        """The attribute of the module that is traced with a tensor, which is made if there is none."""
        if id(value) not in self.tensor_attrs:
            i = 0
            while hasattr(self.root, f"_tensor_constant{i}"):
                i += 1
            self.tensor_attrs[id(value)] = f"_tensor_constant{i}"
            setattr(self.root, f"_tensor_constant{i}", value)
        return self.tensor_attrs[id(value)]

    # --- tracing ----------------------------------------------------------------------------------------------------

    def trace(self, root: Module | Callable[..., Any], concrete_args: dict[str, Any] | None = None) -> Graph:
        """The graph of a module's forward, or of a function.

        Args:
            concrete_args: values of arguments that are not traced, so that branches on them can be taken.
        """
        if isinstance(root, Module):
            self.root = root
            function: Callable[..., Any] = getattr(type(root), self.traced_func_name)
            self.submodule_paths = {module: name for name, module in root.named_modules()}
            self.tensor_attrs = {
                id(value): f"{name}.{attr}" if name else attr
                for name, module in root.named_modules()
                for attr, value in vars(module).items()
                if isinstance(value, Tensor)
            }
        else:
            self.root, function = Module(), root
            self.submodule_paths, self.tensor_attrs = None, {}
        self.graph = Graph(tracer_cls=type(self))
        if not isinstance(function, types.FunctionType):
            raise AssertionError(f"a function or a module is traced, got {type(root).__name__}")
        function, args = self.create_args_for_root(function, isinstance(root, Module), concrete_args)
        self._parameter_proxies = {}
        with _patched(self, function):
            result = function(*args)
            self.create_node("output", "output", (self.create_arg(result),), {}, type_expr=_annotations(function).get("return"))
        self.submodule_paths = None
        return self.graph

    def create_args_for_root(
        self, root_fn: types.FunctionType, is_module: bool, concrete_args: dict[str, Any] | None = None
    ) -> tuple[types.FunctionType, list[Any]]:
        """The function to call, and what it is called with: proxies, and what was given for some arguments."""
        function = inspect.unwrap(root_fn)
        code = function.__code__
        names = list(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount])
        parameters = inspect.signature(function).parameters
        given = dict(concrete_args or {})
        unknown = set(given) - set(names)
        if unknown:
            raise TypeError(f"concrete_args names no arguments of {function.__name__}: {sorted(unknown)}")
        args: list[Any] = []
        if is_module:
            args.append(self.root)
            names = names[1:]
        for i, name in enumerate(names):
            if name in given:
                args.append(self._specialized(name, len([n for n in names[: i + 1] if n in given]), given[name]))
                continue
            default = parameters[name].default
            defaults = () if default is inspect.Parameter.empty else (default,)
            args.append(self.create_proxy("placeholder", name, defaults, {}, type_expr=_annotations(function).get(name)))
        rest = code.co_argcount + code.co_kwonlyargcount
        for flag, stars in ((inspect.CO_VARARGS, "*"), (inspect.CO_VARKEYWORDS, "**")):
            if code.co_flags & flag:
                args.append(self.create_proxy("placeholder", stars + code.co_varnames[rest], (), {}))
                rest += 1
        if code.co_kwonlyargcount or code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS):
            return _with_plain_arguments(function, len(args)), args
        return root_fn, args

    def _specialized(self, name: str, count: int, value: Any) -> Any:
        """An argument that has one value; the graph checks it."""
        if not isinstance(value, bool | int | float | str | type(None)):
            raise NotImplementedError(f"concrete_args takes numbers, texts and None; got {type(value).__name__} for {name!r}")
        proxy = self.create_proxy("placeholder", f"{name}_{count}", (), {})
        text = f"{name} has been specialized to have value {value} but got another value"
        if value is None:
            self.create_proxy("call_function", _assert_is_none, (proxy, text), {})
        else:
            self.create_proxy("call_function", _assert, (operator.eq(proxy, value), text), {})
        return value


def _annotations(function: types.FunctionType) -> dict[str, Any]:
    """The annotations of a function. torch's own modules have none that graphs would show."""
    return {} if (function.__module__ or "").startswith(f"{_missing.PACKAGE}.") else function.__annotations__


def _with_plain_arguments(function: types.FunctionType, count: int) -> types.FunctionType:
    """The function with its first local variables as arguments, so that one proxy can stand for all of `*args` or `**kwargs`."""
    flags = function.__code__.co_flags & ~(inspect.CO_VARARGS | inspect.CO_VARKEYWORDS)
    code = function.__code__.replace(co_argcount=count, co_posonlyargcount=0, co_kwonlyargcount=0, co_flags=flags)
    copied = types.FunctionType(code, function.__globals__, function.__name__, None, function.__closure__)
    copied.__annotations__, copied.__module__ = function.__annotations__, function.__module__
    return copied


@contextlib.contextmanager
def _patched(tracer: Tracer, function: types.FunctionType) -> Iterator[None]:
    """While a function is traced, modules ask the tracer, and functions that are nodes are replaced in the namespaces that have them."""
    replaced: list[tuple[dict[str, Any] | type, str, Any]] = []

    def replace(where: Any, name: str, value: Any) -> None:
        is_class = isinstance(where, type)
        replaced.append((where, name, where.__dict__.get(name, _MISSING) if is_class else where.get(name, _MISSING)))
        if is_class:
            setattr(where, name, value)
        else:
            where[name] = value

    original_call, original_getattr = Module.__call__, Module.__getattr__

    def call(module: Module, *args: Any, **kwargs: Any) -> Any:
        return tracer.call_module(module, lambda *a, **k: original_call(module, *a, **k), args, kwargs)

    def get(module: Module, name: str) -> Any:
        return tracer.getattr(name, original_getattr(module, name), tracer._parameter_proxies)

    replace(Module, "__call__", call)
    replace(Module, "__getattr__", get)
    # operators and functions of torch.nn keep the arguments as they were written
    public_name(_assert)  # which reads all names, while they are those of the functions themselves
    noted: dict[Any, Callable[..., Any]] = {f: _noting(f) for f in functions.values() if isinstance(f, types.FunctionType)}
    for name, value in vars(functional).items():
        if isinstance(value, types.FunctionType) and not name.startswith("_") and value not in noted:
            noted[value] = _noting(value, by_name=name not in functional._OPERATORS)
    noted |= {f: _noting(f) for f in tracer._functions if f not in noted}
    for namespace in (vars(functional), vars(sys.modules[_missing.PACKAGE]), *map(vars, tracer._modules), function.__globals__):
        for name, value in list(namespace.items()):
            if isinstance(value, types.FunctionType | types.BuiltinFunctionType) and value in noted and not name.startswith("_"):
                replace(namespace, name, noted[value])
    for (_, name), namespace in list(_wrapped.items()):
        builtin = vars(sys.modules["builtins"]).get(name)
        value = namespace.get(name, builtin)
        if value is not None:
            replace(namespace, name, _noting(value, is_wrapped=True))
    try:
        yield
    finally:
        for where, name, before in reversed(replaced):
            if before is _MISSING:
                delattr(where, name) if isinstance(where, type) else where.pop(name, None)
            elif isinstance(where, type):
                setattr(where, name, before)
            else:
                where[name] = before


def _noting(function: Callable[..., Any], *, is_wrapped: bool = False, by_name: bool = False) -> Callable[..., Any]:
    """A function whose calls with proxies become nodes; with `by_name`, with all arguments that have defaults by their names."""

    def noting(*args: Any, **kwargs: Any) -> Any:
        found: list[Proxy] = []
        map_aggregate((args, kwargs), lambda a: found.append(a) if isinstance(a, Proxy) else None)
        if not found:
            return function(*args, **kwargs)
        if by_name:
            args, kwargs = _normalized(function, args, kwargs)
        made = found[0].tracer.create_proxy("call_function", function, args, kwargs)
        if is_wrapped:
            made.node.meta["is_wrapped"] = True
        return made

    noting.__name__ = getattr(function, "__name__", "noting")
    noting.__wrapped__ = function  # type: ignore[attr-defined]
    return noting


def _normalized(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Arguments as torch's own functions hand them on: those with defaults by name."""
    signature = inspect.signature(function)
    bound = signature.bind(*args, **kwargs)
    bound.apply_defaults()
    has_default = {name: p.default is not inspect.Parameter.empty for name, p in signature.parameters.items()}
    plain = tuple(value for name, value in bound.arguments.items() if not has_default[name])
    return plain, {name: value for name, value in bound.arguments.items() if has_default[name]}


def symbolic_trace(root: Module | Callable[..., Any], concrete_args: dict[str, Any] | None = None) -> GraphModule:
    """A module that does what another, or a function, does, by a graph that can be read and changed.

    Args:
        root: the module or function. It is called with proxies: branches on values cannot be traced.
        concrete_args: values of arguments that are not traced.
    """
    tracer = Tracer()
    graph = tracer.trace(root, concrete_args)
    name = type(root).__name__ if isinstance(root, Module) else root.__name__
    return GraphModule(tracer.root, graph, name)
