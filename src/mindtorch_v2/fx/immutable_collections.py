"""Lists and dicts that cannot change: the arguments of nodes."""

from __future__ import annotations

from typing import Any, NoReturn

__all__ = ["immutable_dict", "immutable_list"]


def _refuse(self: Any, *args: Any, **kwargs: Any) -> NoReturn:
    raise TypeError(
        f"'{type(self).__name__}' object does not support mutation. If you are attempting to modify the kwargs or args of a torch.fx.Node"
        " object, instead create a new copy of it and assign the copy to the node: new_args = ... # copy and mutate args node.args = new_args"
    )


class immutable_list(list[Any]):  # noqa: N801 - torch's spelling
    """A list that refuses to change."""

    append = extend = insert = pop = remove = reverse = sort = clear = __delitem__ = __setitem__ = __iadd__ = __imul__ = _refuse

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(tuple(self))

    def __reduce__(self) -> tuple[Any, ...]:
        return immutable_list, (tuple(self),)


class immutable_dict(dict[Any, Any]):  # noqa: N801 - torch's spelling
    """A dict that refuses to change."""

    clear = pop = popitem = update = setdefault = __delitem__ = __setitem__ = __ior__ = _refuse

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))

    def __reduce__(self) -> tuple[Any, ...]:
        return immutable_dict, (dict(self),)
