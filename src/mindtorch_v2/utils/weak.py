"""torch.utils.weak: weak references to tensors, and dictionaries with tensors as weak keys.

A tensor compares element by element, so that Python's own `WeakKeyDictionary` cannot hold it: here keys are compared by identity.
"""

from __future__ import annotations

import builtins
import copy
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping
from typing import Any, Self, cast

from .._tensor import Tensor

__all__ = ["TensorWeakRef", "WeakIdKeyDictionary", "WeakIdRef", "WeakTensorKeyDictionary"]

WeakRef = weakref.ref
_missing = object()


class WeakIdRef(weakref.ref[Any]):
    """A weak reference that is equal to others to the same object, whatever the object says about equality."""

    __slots__ = ("_id",)

    def __new__(cls, key: object, callback: Callable[..., Any] | None = None) -> Self:
        return super().__new__(cls, key, callback)

    def __init__(self, key: object, callback: Callable[..., Any] | None = None) -> None:
        super().__init__(key, callback)  # type: ignore[call-arg]
        self._id = id(key)

    def __hash__(self) -> int:
        return self._id

    def __eq__(self, other: object) -> bool:
        # the number alone is not enough: a dead object's is given to a new one
        mine, others = self(), cast("WeakIdRef", other)()
        return mine is others if mine is not None and others is not None else self is other

    def __ne__(self, other: object) -> bool:
        return not self == other


class _WeakHashRef(weakref.ref[Any]):
    """As `WeakIdRef`, by the object's own hash."""

    __slots__ = ("_id",)

    def __new__(cls, key: object, callback: Callable[..., Any] | None = None) -> Self:
        return super().__new__(cls, key, callback)

    def __init__(self, key: object, callback: Callable[..., Any] | None = None) -> None:
        super().__init__(key, callback)  # type: ignore[call-arg]
        self._id = hash(key)

    def __hash__(self) -> int:
        return self._id

    def __eq__(self, other: object) -> bool:
        mine, others = self(), cast("_WeakHashRef", other)()
        return hash(mine) == hash(others) if mine is not None and others is not None else self is other

    def __ne__(self, other: object) -> bool:
        return not self == other


class WeakIdKeyDictionary(MutableMapping[Any, Any]):
    """A dictionary that forgets an entry when nothing else refers to its key; keys are compared by identity."""

    def __init__(self, dict: Mapping[Any, Any] | None = None, ref_type: type[WeakIdRef] = WeakIdRef) -> None:
        self.data: Any = {}
        self.ref_type = ref_type

        def remove(reference: WeakIdRef, owner: weakref.ReferenceType[WeakIdKeyDictionary] = weakref.ref(self)) -> None:
            alive = owner()
            if alive is not None:
                alive.data.pop(reference, None)

        self._remove = remove
        if dict is not None:
            self.update(dict)

    def __getitem__(self, key: object) -> Any:
        return self.data[self.ref_type(key)]

    def __setitem__(self, key: object, value: object) -> None:
        self.data[self.ref_type(key, self._remove)] = value

    def __delitem__(self, key: object) -> None:
        del self.data[self.ref_type(key)]

    def __len__(self) -> int:
        return len(self.data)

    def __contains__(self, key: object) -> bool:
        try:
            return self.ref_type(key) in self.data
        except TypeError:  # no weak reference can be made to it
            return False

    def __iter__(self) -> Iterator[Any]:
        return (key for key, _ in self._alive())

    def _alive(self) -> Iterator[tuple[Any, Any]]:
        """Keys and values, of a copy: entries may go while somebody walks over them."""
        for reference, value in list(self.data.items()):
            key = reference()
            if key is not None:
                yield key, value

    def keys(self) -> Any:
        return iter(self)

    def values(self) -> Any:
        return (value for _, value in self._alive())

    def items(self) -> Any:
        return self._alive()

    def keyrefs(self) -> list[Any]:
        """The weak references; some may be dead by the time they are called."""
        return list(self.data)

    def get(self, key: object, default: Any = None) -> Any:
        return self.data.get(self.ref_type(key), default)

    def pop(self, key: object, default: Any = _missing) -> Any:
        found = self.data.pop(self.ref_type(key), default)
        if found is _missing:
            raise KeyError(key)
        return found

    def popitem(self) -> tuple[Any, Any]:
        while True:
            reference, value = self.data.popitem()
            key = reference()
            if key is not None:
                return key, value

    def setdefault(self, key: object, default: Any = None) -> Any:
        return self.data.setdefault(self.ref_type(key, self._remove), default)

    def update(self, dict: Any = None, /, **kwargs: Any) -> None:
        if dict is not None and not hasattr(dict, "items"):
            dict = {key: dict[key] for key in dict.keys()} if hasattr(dict, "keys") else builtins.dict(dict)  # noqa: SIM118
        pairs: Iterable[Any] = () if dict is None else dict.items()
        for key, value in pairs:
            self[key] = value
        for name, value in kwargs.items():
            self[name] = value

    def copy(self) -> WeakIdKeyDictionary:
        """Another dictionary with the same keys and values."""
        made = WeakIdKeyDictionary(ref_type=self.ref_type)
        made.update(self)
        return made

    __copy__ = copy

    def __deepcopy__(self, memo: dict[int, Any]) -> WeakIdKeyDictionary:
        made = type(self)(ref_type=self.ref_type)
        for key, value in self._alive():
            made[key] = copy.deepcopy(value, memo)
        return made

    def __ior__(self, other: object) -> WeakIdKeyDictionary:
        self.update(other)
        return self

    def __or__(self, other: object) -> WeakIdKeyDictionary:
        if not isinstance(other, Mapping):
            return NotImplemented
        made = self.copy()
        made.update(other)
        return made

    def __ror__(self, other: object) -> WeakIdKeyDictionary:
        if not isinstance(other, Mapping):
            return NotImplemented
        made = type(self)(ref_type=self.ref_type)
        made.update(other)
        made.update(self)
        return made

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Mapping):
            return NotImplemented
        return {id(key): value for key, value in self._alive()} == {id(key): value for key, value in other.items()}

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<{type(self).__name__} at {id(self):#x}>"


WeakTensorKeyDictionary = WeakIdKeyDictionary


class TensorWeakRef:
    """A weak reference to a tensor."""

    def __init__(self, tensor: Tensor) -> None:
        if not isinstance(tensor, Tensor):
            raise AssertionError(f"expected torch.Tensor, got {type(tensor)}")
        self.ref: weakref.ref[Tensor] = weakref.ref(tensor)

    def __call__(self) -> Tensor | None:
        return self.ref()
