"""`torch.ops`: every operator by namespace, name and overload, as in `torch.ops.aten.add.Tensor`."""

from __future__ import annotations

from typing import Any, ClassVar

from ._dispatch import registry
from ._dispatch.entry import UNREDUCED
from ._dispatch.op import Op
from ._dispatch.resolver import make_resolver
from ._function_schema import FunctionSchema, schema_of
from ._tag import Tag, of_marks
from ._tensor import Tensor

__all__ = ["OpOverload", "OpOverloadPacket", "overload_of"]


class OpOverload:
    """One overload of an operator; calling it dispatches as the public function does."""

    def __init__(self, packet: OpOverloadPacket, op: Op) -> None:
        self.op = op
        self.overloadpacket = packet
        self.namespace = op.schema.namespace
        self._overloadname = op.overload_name
        self.__name__ = f"{op.name}.{op.overload_name}"
        self.__module__ = f"torch._ops.{op.schema.namespace}"
        self.__doc__ = str(op.schema)

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        if "self" in kwargs:
            kwargs["input"] = kwargs.pop("self")
        assert self.op.entry is not None
        return self.op.entry(*args, **_with_default(self.op, args, kwargs))

    @property
    def _schema(self) -> FunctionSchema:
        """The name, arguments and results of the overload."""
        return schema_of(f"{self.namespace}::{str(self.op.schema).removeprefix(f'{self.namespace}::')}")

    def __deepcopy__(self, memo: Any) -> OpOverload:
        return self

    def name(self) -> str:
        overload = "" if self._overloadname == "default" else "." + self._overloadname
        return self.op.qualified_name + overload

    @property
    def tags(self) -> list[Tag]:
        """What the operator was defined with; of the runtime's own, whether they are pointwise."""
        return [*of_marks(self.op.tags), *([Tag.pointwise] if self.op.pointwise is not None else [])]

    @property
    def is_view(self) -> bool:
        return self.op.schema.is_view

    def __str__(self) -> str:
        return f"{self.namespace}.{self.op.name}.{self._overloadname}"

    def __repr__(self) -> str:
        return f"<OpOverload(op='{self.namespace}.{self.op.name}', overload='{self._overloadname}')>"

    def __hash__(self) -> int:
        return hash(self.op)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OpOverload) and other.op is self.op


class OpOverloadPacket:
    """All overloads of one operator name; calling it picks one by the arguments' types."""

    def __init__(self, qualified_name: str) -> None:
        self._qualified_op_name = qualified_name
        self.__name__ = qualified_name.split("::")[1]

    def only_overload(self) -> OpOverload:
        """The overload without a name, or the only one."""
        names = self.overloads()
        if "default" not in names and len(names) != 1:
            raise RuntimeError(f"{self} has several overloads, {', '.join(names)}: name one of them")
        found: OpOverload = getattr(self, "default" if "default" in names else names[0])
        return found

    def overloads(self) -> list[str]:
        return list(registry.overloads(self._qualified_op_name))

    def __deepcopy__(self, memo: Any) -> OpOverloadPacket:
        return self

    def __getattr__(self, name: str) -> OpOverload:
        if name.startswith("__"):
            raise AttributeError(name)
        op = registry.find(self._qualified_op_name, name)
        if op is None:
            raise AttributeError(
                f"The underlying op of '{self._qualified_op_name.replace('::', '.')}' has no overload name '{name}'"
            )
        overload = OpOverload(self, op)
        self.__dict__[name] = overload
        return overload

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        if "self" in kwargs:
            kwargs["input"] = kwargs.pop("self")
        ops = list(registry.overloads(self._qualified_op_name).values())
        kwargs = _with_default(ops[0], args, kwargs)
        if len(ops) == 1:
            assert ops[0].entry is not None
            return ops[0].entry(*args, **kwargs)
        return make_resolver(self.__name__, ops, Tensor)(*args, **kwargs)

    def __str__(self) -> str:
        return self._qualified_op_name.replace("::", ".")

    def __repr__(self) -> str:
        return f"<OpOverloadPacket(op='{self}')>"


def _with_default(op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """The arguments by name, with the schema's default where the public function has another."""
    if op.schema.name in UNREDUCED and "reduction" not in kwargs and len(args) <= op.schema.argument_names.index("reduction"):
        return {**kwargs, "reduction": 1}
    return kwargs


class OpNamespace:
    """The operators of one library: `torch.ops.aten`."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> OpOverloadPacket:
        qualified = f"{self._name}::{name}"
        if not registry.overloads(qualified):
            raise AttributeError(f"'_OpNamespace' '{self._name}' object has no attribute '{name}'")
        packet = OpOverloadPacket(qualified)
        self.__dict__[name] = packet
        return packet

    def __dir__(self) -> list[str]:
        return sorted({op.name for op in registry.all_ops() if op.schema.namespace == self._name})

    def __repr__(self) -> str:
        return f"<torch.ops.{self._name}>"


class OpNamespaces:
    """`torch.ops`."""

    loaded_libraries: ClassVar[set[str]] = set()

    def load_library(self, path: Any) -> None:
        """Refuse, as PyTorch does where a library cannot be loaded: operators in C++ are made for PyTorch's tensors."""
        raise OSError(f"Could not load this library: {path}: mindtorch_v2 is pure Python and runs no operators in C++")

    def __getattr__(self, name: str) -> OpNamespace:
        if name.startswith("__"):
            raise AttributeError(name)
        space = OpNamespace(name)
        self.__dict__[name] = space
        return space

    def __dir__(self) -> list[str]:
        return sorted({op.schema.namespace for op in registry.all_ops()})


ops = OpNamespaces()


def overload_of(op: Op) -> OpOverload:
    """The public object of a registered operator."""
    return getattr(getattr(getattr(ops, op.schema.namespace), op.name), op.overload_name)


def forget(op: Op) -> None:
    """Drop the cached objects of an operator that is being removed."""
    space = ops.__dict__.get(op.schema.namespace)
    if space is not None:
        space.__dict__.pop(op.name, None)
