"""`Proxy`: what stands for a value while a function is traced, and notes what is done with it."""

from __future__ import annotations

import dis
import inspect
import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from .. import _dtype
from .._device import device as torch_device
from .._memory_format import layout, memory_format
from .._tensor import Size, Tensor
from ._public_names import public_name
from .codegen import OPERATORS
from .graph import Graph
from .node import Argument, Node, Target, map_aggregate

__all__ = ["Attribute", "GraphAppendingTracer", "ParameterProxy", "Proxy", "TraceError", "TracerBase"]

_CONSTANTS = (str, int, float, bool, complex, type(None), type(...), range, _dtype.dtype, torch_device, layout, memory_format)


# what operators look for, by which tensors are told from other objects
_NEVER = frozenset(["__fx_create_arg__", "__array__", "__array_interface__", *(n for n in Tensor.__slots__ if n.startswith("_"))])


class TraceError(ValueError):
    """Something that cannot be traced, such as a branch on a value."""


class TracerBase:
    """What tracers have in common: notes of calls become nodes of `graph`, and proxies of them."""

    graph: Graph
    record_stack_traces = False
    check_mutable_operations = False
    trace_asserts = False
    proxy_buffer_attributes = False
    traced_func_name = "forward"

    def create_node(
        self,
        kind: str,
        target: Target,
        args: tuple[Argument, ...],
        kwargs: dict[str, Argument],
        name: str | None = None,
        type_expr: object = None,
    ) -> Node:
        """Add a node to the graph."""
        return self.graph.create_node(kind, target, args, kwargs, name, type_expr)

    def proxy(self, node: Node) -> Proxy:
        """The proxy of a node."""
        return Proxy(node, self)

    def create_proxy(
        self,
        kind: str,
        target: Target,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        name: str | None = None,
        type_expr: object = None,
        proxy_factory_fn: Callable[[Node], Proxy] | None = None,
    ) -> Proxy:
        """Add a node for a call with these arguments, and return its proxy."""
        node = self.create_node(kind, target, self.create_arg(args), self.create_arg(kwargs), name, type_expr)
        return self.proxy(node) if proxy_factory_fn is None else proxy_factory_fn(node)

    def create_arg(self, a: Any) -> Argument:
        """An argument as a node takes it: proxies become their nodes."""
        if isinstance(a, Proxy):
            return a.node
        if hasattr(a, "__fx_create_arg__"):
            return a.__fx_create_arg__(self)
        if isinstance(a, tuple):
            parts = [self.create_arg(each) for each in a]
            return type(a)(*parts) if hasattr(a, "_fields") else tuple(parts)
        if isinstance(a, list):
            return [self.create_arg(each) for each in a]
        if isinstance(a, dict):
            return {self._key(key): self.create_arg(each) for key, each in a.items()}
        if isinstance(a, slice):
            return slice(self.create_arg(a.start), self.create_arg(a.stop), self.create_arg(a.step))
        if isinstance(a, _CONSTANTS) or (callable(a) and not isinstance(a, Tensor)):
            return a
        raise NotImplementedError(f"argument of type: {type(a)}")

    def _key(self, key: object) -> str:
        mapped = self.create_arg(key)
        if isinstance(mapped, Node):
            raise RuntimeError(f"Keys for dictionaries used as an argument cannot contain a Node. Got key: {key}")
        return mapped

    def to_bool(self, obj: Proxy) -> bool:
        """Called for `if proxy:`; raises."""
        raise TraceError("symbolically traced variables cannot be used as inputs to control flow")

    def iter(self, obj: Proxy) -> Iterator[Any]:
        """Called for `for x in proxy:`; gives the parts for `a, b = proxy`, and raises otherwise."""
        frame = inspect.currentframe()
        caller = frame.f_back.f_back if frame is not None and frame.f_back is not None else None
        if caller is not None:
            instruction = next((i for i in dis.get_instructions(caller.f_code) if i.offset == caller.f_lasti), None)
            if instruction is not None and instruction.opname == "UNPACK_SEQUENCE":
                return (operator.getitem(obj, i) for i in range(int(instruction.argval)))
        raise TraceError(
            "Proxy object cannot be iterated. This can be attempted when the Proxy is used in a loop or as a *args or **kwargs function"
            " argument. See the torch.fx docs on pytorch.org for a more detailed explanation of what types of control flow can be traced, and"
            " check out the Proxy docstring for help troubleshooting Proxy iteration errors"
        )

    def keys(self, obj: Proxy) -> Any:
        """Called for `proxy.keys()`: the call of that method."""
        return Attribute(obj, "keys")()


class GraphAppendingTracer(TracerBase):
    """A tracer that adds to a graph that is there."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph


class Proxy:
    """Stands for a value; what is done with it becomes nodes of a graph."""

    def __init__(self, node: Node, tracer: TracerBase | None = None) -> None:
        self.tracer = GraphAppendingTracer(node.graph) if tracer is None else tracer
        self.node = node

    def __repr__(self) -> str:
        return f"Proxy({self.node.name})"

    def __getattr__(self, k: str) -> Any:
        if k in _NEVER:
            raise AttributeError(k)
        return Attribute(self, k)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__ = state

    def __deepcopy__(self, memo: dict[int, Any]) -> Proxy:
        return Proxy(self.node, self.tracer)

    def __call__(self, *args: Any, **kwargs: Any) -> Proxy:
        return self.tracer.create_proxy("call_method", "__call__", (self, *args), kwargs)

    def __iter__(self) -> Iterator[Any]:
        return self.tracer.iter(self)

    def __bool__(self) -> bool:
        return self.tracer.to_bool(self)

    def __abs__(self) -> Proxy:
        return self.tracer.create_proxy("call_function", operator.abs, (self,), {})

    def __setitem__(self, key: object, value: object) -> None:
        raise TypeError("'Proxy' object does not support item assignment")

    def __len__(self) -> int:
        raise RuntimeError(
            "'len' is not supported in symbolic tracing by default. If you want this call to be recorded, please call torch.fx.wrap('len')"
            " at module scope"
        )

    def keys(self) -> Any:
        """The call of the method `keys`."""
        return self.tracer.keys(self)

    @classmethod
    def __torch_function__(
        cls, orig_method: Any, types: Sequence[type], args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        args, kwargs = args or (), kwargs or {}
        tracers: dict[TracerBase, None] = {}

        def find(a: Any) -> Any:
            if isinstance(a, Proxy):
                tracers[a.tracer] = None
            return a

        map_aggregate(args, find)
        map_aggregate(kwargs, find)
        if len(tracers) > 1:
            raise RuntimeError(f"Found multiple different tracers {list(tracers)} while trying to trace operations {orig_method}")
        (tracer,) = tracers
        name = orig_method.__name__
        is_method = public_name(orig_method) is None and getattr(Tensor, name, None) is orig_method
        if is_method:
            return tracer.create_proxy("call_method", name.removeprefix("__").removesuffix("__"), args, kwargs)
        return tracer.create_proxy("call_function", orig_method, args, kwargs, name=tracer.graph._target_to_str(name))


class Attribute(Proxy):
    """An attribute of a proxy: a node when its value is used, or a method when it is called."""

    def __init__(self, root: Proxy, attr: str) -> None:
        self.root = root
        self.attr = attr
        self.tracer = root.tracer
        self._node: Node | None = None

    @property
    def node(self) -> Node:  # type: ignore[override]
        """The node that reads the attribute."""
        if self._node is None:
            self._node = self.tracer.create_proxy("call_function", getattr, (self.root, self.attr), {}).node
        return self._node

    def __call__(self, *args: Any, **kwargs: Any) -> Proxy:
        return self.tracer.create_proxy("call_method", self.attr, (self.root, *args), kwargs)


class ParameterProxy(Proxy):
    """The proxy of a parameter, of which shape and dimensions are known."""

    def __init__(self, tracer: TracerBase, node: Node, name: str, param: Tensor) -> None:
        super().__init__(node, tracer)
        self.param = param
        self.name = name

    def __repr__(self) -> str:
        return f"ParameterProxy({self.name})"

    @property
    def shape(self) -> Size:
        """The shape of the parameter."""
        return self.param.shape

    def size(self, *args: Any) -> Any:
        """The shape of the parameter, or the size of a dimension."""
        return self.param.size(*args)

    def dim(self) -> int:
        """The number of dimensions."""
        return int(self.param.dim())

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return self.dim()

    def numel(self) -> int:
        """The number of elements."""
        return int(self.param.numel())

    def nelement(self) -> int:
        """The number of elements."""
        return self.numel()


def _operators() -> None:
    """Give proxies the operators of the language."""
    reflected = set("add sub mul floordiv truediv mod pow lshift rshift and_ or_ xor matmul".split())
    for name in OPERATORS:
        function = getattr(operator, name)

        def method(self: Proxy, *args: Any, function: Callable[..., Any] = function) -> Proxy:
            return self.tracer.create_proxy("call_function", function, (self, *args), {})

        plain = name.strip("_")
        method.__name__ = f"__{plain}__"
        setattr(Proxy, method.__name__, method)
        if name in reflected:

            def swapped(self: Proxy, other: object, function: Callable[..., Any] = function) -> Proxy:
                return self.tracer.create_proxy("call_function", function, (other, self), {})

            swapped.__name__ = f"__r{plain}__"
            setattr(Proxy, swapped.__name__, swapped)
    Proxy.__hash__ = object.__hash__  # type: ignore[method-assign]  # which the operator == has taken away


_operators()
for _class in (TraceError, TracerBase, GraphAppendingTracer, Proxy, Attribute, ParameterProxy):
    _class.__module__ = "torch.fx.proxy"
