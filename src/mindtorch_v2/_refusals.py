"""Names that programs import and that cannot work here: they can be imported, named in annotations and subclassed, and refuse when used."""

from __future__ import annotations

import warnings
from typing import Any, NoReturn

from ._missing import PACKAGE, PAGE

__all__ = ["given_back", "refuse", "refused", "set_warn_always", "warn_always", "warn_once"]


def refuse(name: str, why: str) -> NoReturn:
    """Raise the error of something that is not part of the package."""
    raise NotImplementedError(f"{name} is not part of {PACKAGE}: {why}. See {PAGE}")


def refused(module: str, why: str, *, functions: str = "", classes: str = "") -> dict[str, Any]:
    """Functions and classes of a module, by name, that refuse when they are called."""
    where = "torch" + module.removeprefix(PACKAGE)
    return {
        **{name: _function(where, name, why) for name in functions.split()},
        **{name: _class(where, name, why) for name in classes.split()},
    }


def _function(where: str, name: str, why: str) -> Any:
    def refusing(*args: Any, **kwargs: Any) -> NoReturn:
        refuse(f"{where}.{name}", why)

    refusing.__name__ = refusing.__qualname__ = name
    refusing.__module__ = where
    refusing.__doc__ = f"Refuses: {why}."
    return refusing


def _class(where: str, name: str, why: str) -> Any:
    def __new__(cls: type, *args: Any, **kwargs: Any) -> NoReturn:  # noqa: N807
        refuse(f"{where}.{name}", why)

    return type(name, (), {"__new__": __new__, "__module__": where, "__doc__": f"Refuses to be made: {why}."})


_warned: set[str] = set()
_always = False


def warn_once(about: str, message: str, category: type[Warning] = UserWarning, stacklevel: int = 3) -> None:
    """Warn the first time that something is used, or each time after `torch.set_warn_always(True)`."""
    if _always or about not in _warned:
        _warned.add(about)
        warnings.warn(message, category, stacklevel=stacklevel)


def given_back(what: Any, name: str, why: str) -> Any:
    """`what`, with a warning that it was not changed."""
    warn_once(name, f"{name} returns what it was given: {why}", stacklevel=4)
    return what


def set_warn_always(b: bool, /) -> None:
    """Whether warnings that are given once are given each time."""
    global _always
    if type(b) is not bool:
        raise RuntimeError(f"setWarnOnlyOnce expects a bool, but got {type(b).__name__}")
    _always = b


def warn_always() -> bool:
    """Whether warnings that are given once are given each time."""
    return _always
