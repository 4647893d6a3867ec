"""The types that arguments of operators have in their schemas: `torch.IntType.get()`, `torch.ListType(…)`, and their order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

__all__ = ["CLASSES", "Type", "named", "plain"]

_KEYS = frozenset("int float complex bool str Tensor Device".split())
# ATen's order of kinds, in which the members of a union stand
_ORDER = (
    "AnyType TensorType TupleType ListType DictType OptionalType NumberType FloatType ComplexType FutureType AwaitType RRefType IntType "
    "NoneType StringType BoolType UnionType"
).split()


class Type:
    """A type in a schema; compared by what it says."""

    _kind: str
    _text: str  # as in Python: List[int]
    _schema_text: str  # as in a schema: int[]
    _members: tuple[Type, ...] = ()

    def __new__(cls, *args: Any) -> Any:
        raise TypeError(f"torch.{cls.__name__}: No constructor defined!")

    @classmethod
    def _make(cls, text: str, schema_text: str, members: Sequence[Type] = (), kind: str = "") -> Any:
        made = object.__new__(cls)
        made._text, made._schema_text, made._members = text, schema_text, tuple(members)
        made._kind = kind or cls.__name__
        return made

    def kind(self) -> str:
        """The name of its class in ATen."""
        return self._kind

    def str(self) -> str:
        """The type as schemas spell it."""
        return self._schema_text

    @property
    def annotation_str(self) -> Any:
        """The type as Python's annotations spell it."""
        return self._text

    def containedTypes(self) -> list[Type]:
        """The types that this one is made of."""
        return list(self._members)

    def isSubtypeOf(self, other: Type) -> bool:
        """Whether a value of this type may stand where one of the other is asked for."""
        _check(other)
        if self == other or other._kind == "AnyType":
            return True
        if self._kind in ("OptionalType", "UnionType"):
            return all(t.isSubtypeOf(other) for t in _alternatives(self))
        if other._kind in ("OptionalType", "UnionType"):
            return any(self.isSubtypeOf(t) for t in _alternatives(other))
        if other._kind == "NumberType":
            return self._kind in ("IntType", "FloatType", "ComplexType")
        if self._kind == other._kind == "TupleType" and len(self._members) == len(other._members):
            return all(a.isSubtypeOf(b) for a, b in zip(self._members, other._members, strict=True))
        return False

    def __eq__(self, other: object) -> bool:
        _check(other)
        assert isinstance(other, Type)
        return (self._kind, self._schema_text) == (other._kind, other._schema_text)

    __hash__ = None  # type: ignore[assignment]

    def __str__(self) -> Any:
        return self._text

    __repr__ = __str__


def _check(value: object) -> None:
    if not isinstance(value, Type):
        raise TypeError(f"expected a torch.Type, but got {type(value).__name__}")


def _alternatives(t: Type) -> tuple[Type, ...]:
    return (*t._members, plain("NoneType")) if t._kind == "OptionalType" else t._members


# --- types without parts ----------------------------------------------------------------------------------------------

# class → as in Python, as in a schema
_PLAIN = {
    "AnyType": ("Any", "Any"), "BoolType": ("bool", "bool"), "ComplexType": ("complex", "complex"), "DeviceObjType": ("Device", "Device"),
    "FloatType": ("float", "float"), "IntType": ("int", "int"), "NoneType": ("NoneType", "NoneType"), "NumberType": ("number", "Scalar"),
    "PyObjectType": ("PyObject", "PyObject"), "StreamObjType": ("Stream", "Stream"), "StringType": ("str", "str"),
    "SymBoolType": ("bool", "SymBool"), "SymIntType": ("int", "SymInt"), "TensorType": ("Tensor", "Tensor"),
}  # fmt: skip


def _plain_class(name: str, text: str, schema_text: str) -> Any:
    made: Any = type(
        name, (Type,), {"__module__": "torch", "__doc__": f"The type of `{schema_text}` in schemas; `get()` returns it."}
    )
    only = made._make(text, schema_text)
    made.get = staticmethod(lambda: only)
    return made


CLASSES: dict[str, Any] = {name: _plain_class(name, *texts) for name, texts in _PLAIN.items()}


def plain(name: str) -> Type:
    """The type of a class without parts."""
    found: Type = CLASSES[name].get()
    return found


def named(text: str, kind: str) -> Type:
    """A type that has no class of its own in Python, such as `Generator`."""
    made: Type = Type._make(text, text, (), kind)
    return made


# --- types made of others ---------------------------------------------------------------------------------------------


class _OfOne(Type):
    """A type with one part."""

    _python = _schema = ""

    def __new__(cls, element: Type) -> Any:
        _check(element)
        return cls._make(cls._python.format(element._text), cls._schema.format(element._schema_text), (element,))

    def getElementType(self) -> Type:
        """The type of its part."""
        return self._members[0]


class ListType(_OfOne):
    """The type of lists."""

    _python, _schema = "List[{}]", "{}[]"

    @staticmethod
    def ofInts() -> ListType:
        """Lists of integers."""
        return ListType(plain("IntType"))

    @staticmethod
    def ofTensors() -> ListType:
        """Lists of tensors."""
        return ListType(plain("TensorType"))

    @staticmethod
    def ofFloats() -> ListType:
        """Lists of floating point numbers."""
        return ListType(plain("FloatType"))

    @staticmethod
    def ofComplexDoubles() -> ListType:
        """Lists of complex numbers."""
        return ListType(plain("ComplexType"))

    @staticmethod
    def ofBools() -> ListType:
        """Lists of truth values."""
        return ListType(plain("BoolType"))

    @staticmethod
    def ofStrings() -> ListType:
        """Lists of strings."""
        return ListType(plain("StringType"))


class OptionalType(_OfOne):
    """The type of values that may be None."""

    _python, _schema = "Optional[{}]", "{}?"

    def __new__(cls, element: Type) -> Any:
        _check(element)
        if element._kind == "NoneType":
            raise RuntimeError("OptionalType: None has no optional type; use NoneType")
        return element if element._kind == "OptionalType" else super().__new__(cls, element)

    @staticmethod
    def ofTensor() -> OptionalType:
        """Tensors, or None."""
        return OptionalType(plain("TensorType"))


class FutureType(_OfOne):
    """The type of results that are waited for."""

    _python = _schema = "Future[{}]"


class AwaitType(_OfOne):
    """The type of results that are computed when asked for."""

    _python, _schema = "Await[{}]", "Await({})"


class RRefType(_OfOne):
    """The type of references to values in other processes."""

    _python = _schema = "RRef[{}]"


class DictType(Type):
    """The type of dictionaries."""

    def __new__(cls, key: Type, value: Type) -> Any:
        for t in (key, value):
            _check(t)
        if key._schema_text not in _KEYS:
            raise RuntimeError(
                f"Cannot create dict for key type '{key._schema_text}', only int, float, complex, Tensor, device and string keys are supported"
            )
        return cls._make(f"Dict[{key._text}, {value._text}]", f"Dict({key._schema_text}, {value._schema_text})", (key, value))

    def getKeyType(self) -> Type:
        """The type of its keys."""
        return self._members[0]

    def getValueType(self) -> Type:
        """The type of its values."""
        return self._members[1]


class TupleType(Type):
    """The type of tuples."""

    def __new__(cls, elements: Sequence[Type]) -> Any:
        for t in elements:
            _check(t)
        text = ", ".join(t._text for t in elements) or "()"
        return cls._make(f"Tuple[{text}]", f"({', '.join(t._schema_text for t in elements)})", elements)

    def elements(self) -> list[Type]:
        """The types of its parts."""
        return list(self._members)


class UnionType(Type):
    """The type of values of one of several types; one of them and None make an `OptionalType`."""

    def __new__(cls, members: Sequence[Type]) -> Any:
        for t in members:
            _check(t)
        flat = [t for m in members for t in (_alternatives(m) if m._kind in ("OptionalType", "UnionType") else (m,))]
        numbers = {"IntType", "FloatType", "ComplexType"}
        if numbers <= {t._kind for t in flat}:
            flat.append(plain("NumberType"))
        kept: list[Type] = []
        for t in flat:
            if not any(t != other and t.isSubtypeOf(other) for other in flat) and not any(t == k for k in kept):
                kept.append(t)
        kept.sort(key=lambda t: _ORDER.index(t._kind) if t._kind in _ORDER else len(_ORDER))
        if len(kept) == 1 and len(members) == 1:
            raise RuntimeError(f"a Union of the single type {kept[0]}; use that type instead")
        if len(kept) == 2 and any(t._kind == "NoneType" for t in kept):
            return OptionalType(next(t for t in kept if t._kind != "NoneType"))
        return cls._make(f"Union[{', '.join(t._text for t in kept)}]", f"Union({', '.join(t._schema_text for t in kept)})", kept)


class InferredType:
    """A type that was found, or the reason why none was."""

    def __init__(self, found: Type | str) -> None:
        self._found = found

    def success(self) -> bool:
        """Whether a type was found."""
        return isinstance(self._found, Type)

    def type(self) -> Type:
        """The type."""
        if not isinstance(self._found, Type):
            raise RuntimeError(f"no type was inferred: {self._found}")
        return self._found

    def reason(self) -> str:
        """Why there is no type."""
        if isinstance(self._found, Type):
            raise RuntimeError(f"a type was inferred, {self._found}: there is no reason against it")
        return self._found


for _class in (
    Type, ListType, OptionalType, FutureType, AwaitType, RRefType, DictType, TupleType, UnionType, InferredType,
):  # fmt: skip
    _class.__module__ = "torch"
    CLASSES[_class.__name__] = _class
