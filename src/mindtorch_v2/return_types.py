"""The named tuples that operators with several results return: `torch.return_types.max` and its siblings."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

__all__: list[str] = []


class _NamedTuple(tuple[Any, ...]):
    """A tuple whose items are also attributes. Made from one sequence, as torch's own are."""

    __slots__ = ()
    _fields: tuple[str, ...] = ()
    n_fields = 0
    n_sequence_fields = 0
    n_unnamed_fields = 0

    def __new__(cls, items: Iterable[Any]) -> _NamedTuple:
        made = tuple.__new__(cls, items)
        if len(made) != cls.n_fields:
            raise TypeError(f"{cls.__module__}.{cls.__name__}() takes a {cls.n_fields}-sequence ({len(made)}-sequence given)")
        return made

    def __repr__(self) -> str:
        items = ",\n".join(f"{name}={item!r}" for name, item in zip(self._fields, self, strict=True))
        return f"torch.return_types.{type(self).__name__}(\n{items})"

    def __reduce__(self) -> tuple[Any, ...]:
        return (_rebuild, (type(self).__name__, self._fields, tuple(self)))


_types: dict[str, type[_NamedTuple]] = {}


def _rebuild(name: str, fields: tuple[str, ...], items: tuple[Any, ...]) -> _NamedTuple:
    return named_tuple(name, fields)(items)


def named_tuple(name: str, fields: Iterable[str]) -> type[_NamedTuple]:
    """The type `torch.return_types.<name>`, made on first use."""
    found = _types.get(name)
    if found is None:
        fields = tuple(fields)
        attributes: dict[str, Any] = {
            "__slots__": (),
            "__module__": "torch.return_types",
            "_fields": fields,
            "__match_args__": fields,
            "n_fields": len(fields),
            "n_sequence_fields": len(fields),
        }
        attributes |= {field: property(_getter(i)) for i, field in enumerate(fields)}
        found = _types[name] = type(name, (_NamedTuple,), attributes)
        globals()[name] = found
        __all__.append(name)
    return found


def _getter(i: int) -> Any:
    return lambda self: tuple.__getitem__(self, i)


def named_results(schema: Any) -> type[_NamedTuple] | None:
    """The type for the results of an operator whose schema names all of them."""
    returns = schema.returns
    if len(returns) < 2 or not all(r.name for r in returns):
        return None
    return named_tuple(schema.name, (r.name for r in returns))


_offered: dict[str, tuple[str, ...]] = {}


def offer(schemas: Iterable[Any]) -> None:
    """Have the types of these operators' results found by their names before any was called."""
    for schema in schemas:
        returns = schema.returns
        if len(returns) > 1 and not schema.name.startswith("_") and all(r.name for r in returns):
            _offered[schema.name] = _offered[f"{schema.name}_out"] = tuple(r.name for r in returns)


def _find(name: str) -> type[_NamedTuple]:
    if name not in _offered:
        raise AttributeError(f"module 'torch.return_types' has no attribute {name!r}", name=name)
    return named_tuple(name, _offered[name])


def is_result_type(cls: type) -> bool:
    """Whether a class is one of these named tuples."""
    return issubclass(cls, _NamedTuple)


def out_type(found: type[tuple[Any, ...]]) -> type[tuple[Any, ...]]:
    """The type of results written to `out=`: torch has `max_out` for `max`."""
    return named_tuple(found.__name__ + "_out", found._fields) if issubclass(found, _NamedTuple) else found


if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...
else:
    __getattr__ = _find
