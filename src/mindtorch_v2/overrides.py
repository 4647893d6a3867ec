"""Overriding torch functions: `__torch_function__` of tensor subclasses and tensor-like objects, and `TorchFunctionMode`.

A subclass's tensors carry the Subclass key, and an active mode puts its key into every key set: where neither is used,
nothing of this runs.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Self

from ._dispatch import dispatcher, keys
from ._dispatch.codegen import Body, indent
from ._dispatch.entry import public_name
from ._dispatch.op import Op
from ._dispatch.quiet import resume_tracing
from ._dispatch.tls import state
from ._overridable import (
    get_ignored_functions,
    get_overridable_functions,
    get_testing_overrides,
    is_tensor_method_or_property,
    path_of,
)
from ._override_points import asks_itself, count_modes, members, overrides_functions
from ._tensor import Tensor

__all__ = [
    "BaseTorchFunctionMode",
    "DisableTorchFunction",
    "DisableTorchFunctionSubclass",
    "TorchFunctionMode",
    "get_ignored_functions",
    "get_overridable_functions",
    "get_testing_overrides",
    "handle_torch_function",
    "has_torch_function",
    "is_tensor_like",
    "is_tensor_method_or_property",
    "resolve_name",
    "wrap_torch_function",
]


class DisableTorchFunctionSubclass:
    """Inside, tensor subclasses are treated as plain tensors."""

    def __enter__(self) -> None:
        state.subclass_override_off += 1

    def __exit__(self, *exc: object) -> None:
        state.subclass_override_off -= 1


class DisableTorchFunction(DisableTorchFunctionSubclass):
    """Inside, neither subclasses nor modes override torch functions."""

    def __enter__(self) -> None:
        super().__enter__()
        state.function_override_off += 1

    def __exit__(self, *exc: object) -> None:
        state.function_override_off -= 1
        super().__exit__(*exc)


class _enable_torch_function:  # noqa: N801 - torch's name
    """Inside, subclasses and modes override torch functions, whatever was switched off around it."""

    def __enter__(self) -> None:
        self.held = state.subclass_override_off, state.function_override_off
        state.subclass_override_off = state.function_override_off = 0

    def __exit__(self, *exc: object) -> None:
        state.subclass_override_off, state.function_override_off = self.held


class TorchFunctionMode:
    """While entered, every torch function called on this thread goes to `__torch_function__` instead.

    Inside the handler the mode is off, so that calling `func(*args, **kwargs)` runs the original.
    """

    def __init__(self) -> None:
        pass

    def __torch_function__(
        self, func: Callable[..., Any], types: Sequence[type], args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        raise NotImplementedError(f"{type(self).__name__} does not implement __torch_function__")

    def __enter__(self) -> Self:
        state.function_modes.append(self)
        dispatcher.activate(keys.FUNCTION_MODE)
        count_modes(1)
        return self

    def __exit__(self, *exc: object) -> None:
        state.function_modes.pop()
        dispatcher.deactivate(keys.FUNCTION_MODE)
        count_modes(-1)


class BaseTorchFunctionMode(TorchFunctionMode):
    """A mode that changes nothing."""

    def __torch_function__(
        self, func: Callable[..., Any], types: Sequence[type], args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        return func(*args, **(kwargs or {}))


# --- the layers -----------------------------------------------------------------------------------------------------


def split_arguments(op: Op, arguments: Sequence[Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Arguments as a user would write them: without the defaults at the end, keyword-only ones by name."""
    positional: list[Any] = []
    keywords: dict[str, Any] = {}
    by_keyword = False
    for a, value in zip(op.schema.arguments, arguments, strict=True):
        is_default = a.has_default and (value is a.default or (type(value) is type(a.default) and value == a.default))
        if is_default:
            by_keyword = True
        elif a.keyword_only or by_keyword:
            keywords[public_name(a)] = value
        else:
            positional.append(value)
    return tuple(positional), keywords


def public_function(op: Op) -> Callable[..., Any]:
    """The function a user calls to reach this operator: what handlers get as `func`."""
    from ._functions import functions  # cycle with _functions

    found = functions.get(op.name) or getattr(Tensor, op.name, None) or op.entry
    assert found is not None
    return found


def _ask_mode(function: Callable[..., Any], candidates: list[Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What the innermost mode returns for a call; NotImplemented leaves it to the arguments that override functions, if any do."""
    mode = state.function_modes[-1]
    if isinstance(getattr(mode.__torch_function__, "__self__", None), type):
        raise RuntimeError(
            f"{type(mode).__name__}.__torch_function__: defining a mode's handler as a classmethod is not supported, please make it a "
            "plain method"
        )
    state.function_modes.pop()
    try:
        resume_tracing()
        result = mode.__torch_function__(function, tuple(type(a) for a in candidates), args, kwargs)
    finally:
        state.function_modes.append(mode)
    if result is NotImplemented and not candidates:
        raise _not_implemented(function, [], mode)
    return result


def ask_modes(op: Op, arguments: tuple[Any, ...]) -> Any:
    """What the innermost mode returns for a call of an operator."""
    args, kwargs = split_arguments(op, arguments)
    return _ask_mode(public_function(op), _candidates(members(arguments)), args, kwargs)


def modes_are_on() -> bool:
    """Whether a mode of this thread sees calls of functions."""
    return bool(state.function_modes) and not state.function_override_off


def _call_subclass(op: Op, arguments: tuple[Any, ...]) -> Any:
    args, kwargs = split_arguments(op, arguments)
    return _ask_arguments(public_function(op), _candidates(members(arguments)), args, kwargs)


def _function_mode_layer(op: Op, full: int, body: Body) -> Body:
    packed = "(" + "".join(f"{n}, " for n in op.schema.argument_names) + ")"
    lines = [
        "result = NotImplemented",
        "if tls.function_modes and not tls.function_override_off:",
        f"    result = ask_modes(op, {packed})",
        "if result is NotImplemented:",
        *indent(body.lines),
    ]
    return _overridden(body, lines, {"tls": state, "op": op, "ask_modes": ask_modes})


def _subclass_layer(op: Op, full: int, body: Body) -> Body:
    packed = "(" + "".join(f"{n}, " for n in op.schema.argument_names) + ")"
    lines = ["if tls.subclass_override_off:", *indent(body.lines), "else:", f"    result = call_subclass(op, {packed})"]
    return _overridden(body, lines, {"tls": state, "op": op, "call_subclass": _call_subclass})


def _overridden(body: Body, lines: list[str], names: dict[str, Any]) -> Body:
    """The body with lines that may get the result from somewhere else, where it can be anything."""
    body = body.edited(lines, names)
    body.result_is_new = False
    return body


dispatcher.register_layer(keys.FUNCTION_MODE, _function_mode_layer)
dispatcher.register_layer(keys.SUBCLASS, _subclass_layer)


# --- the protocol ---------------------------------------------------------------------------------------------------


def has_torch_function(relevant_args: Iterable[Any]) -> bool:
    """Whether any of these objects overrides torch functions, or a mode does."""
    if not isinstance(relevant_args, Sequence):
        raise TypeError("expected a sequence")
    if modes_are_on():
        return True
    return any(overrides_functions(type(a)) for a in relevant_args)


def handle_torch_function(public_api: Callable[..., Any], relevant_args: Iterable[Any], *args: Any, **kwargs: Any) -> Any:
    """Ask the innermost mode, and then the arguments that override torch functions, for the result of a call."""
    candidates = _candidates(relevant_args)
    if modes_are_on():
        result = _ask_mode(public_api, candidates, args, kwargs)
        if result is not NotImplemented:
            return result
    return _ask_arguments(public_api, candidates, args, kwargs)


def _candidates(relevant_args: Iterable[Any]) -> list[Any]:
    """One argument of each type that overrides torch functions, subclasses before their bases."""
    found: list[Any] = []
    for a in relevant_args:
        if not overrides_functions(type(a)) or any(type(a) is type(c) for c in found):
            continue
        at = next((i for i, c in enumerate(found) if issubclass(type(a), type(c))), len(found))
        found.insert(at, a)
    return found


def _ask_arguments(public_api: Callable[..., Any], candidates: list[Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    types = tuple(type(a) for a in candidates)
    for a in candidates:
        resume_tracing()
        result = a.__torch_function__(public_api, types, args, kwargs)
        if result is not NotImplemented:
            return result
    raise _not_implemented(public_api, list(types), None)


def _not_implemented(function: Callable[..., Any], types: list[type], mode: object) -> TypeError:
    name = path_of(function) or f"torch.{getattr(function, '__name__', function)}"
    asked = f"{types}" if mode is None else f"{types} and in the mode {mode}"
    return TypeError(f"no implementation found for '{name}' on types that implement __torch_function__: {asked}")


def wrap_torch_function(dispatcher: Callable[..., Iterable[Any]]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Let a Python function be overridden; `dispatcher(*args, **kwargs)` returns the arguments to ask."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            relevant = list(dispatcher(*args, **kwargs))
            if has_torch_function(relevant):
                return handle_torch_function(wrapped, relevant, *args, **kwargs)
            return function(*args, **kwargs)

        asks_itself(wrapped)
        return wrapped

    return decorate


def _assert(condition: object, message: str) -> None:
    """Raise an `AssertionError` with this message where the condition is false."""
    if type(condition) is not Tensor and has_torch_function((condition,)):
        handle_torch_function(_assert, (condition,), condition, message)
    elif not condition:
        raise AssertionError(message)


def is_tensor_like(inp: object) -> bool:
    """Whether this is a tensor or an object that overrides torch functions."""
    return type(inp) is Tensor or hasattr(inp, "__torch_function__")


def resolve_name(f: Callable[..., Any]) -> str | None:
    """The public path of a function that a handler was given: `torch.add`, `torch.Tensor.add_`."""
    return path_of(f)


def _get_current_function_mode() -> TorchFunctionMode | None:
    """The mode that was entered last on this thread."""
    return state.function_modes[-1] if state.function_modes else None


def _get_current_function_mode_stack() -> list[TorchFunctionMode]:
    """The modes that are entered on this thread, the outermost first."""
    return list(state.function_modes)


def default_torch_function(
    cls: type, func: Callable[..., Any], types: Sequence[type], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """Run the function as for plain tensors, and give results the subclass's type."""
    if not all(issubclass(cls, t) for t in types):
        return NotImplemented
    with DisableTorchFunctionSubclass():
        result = func(*args, **kwargs)
    return result if func in get_default_nowrap_functions() else _as_subclass(result, cls)


@functools.cache
def get_default_nowrap_functions() -> set[Callable[..., Any]]:
    """The functions whose results keep their class: a tensor's base and gradient are tensors that exist already."""
    return {vars(Tensor)[name].__get__ for name in ("_base", "grad", "_grad")}


def _as_subclass(result: Any, cls: Any) -> Any:
    if isinstance(result, Tensor) and not isinstance(result, cls):
        return result.as_subclass(cls)
    if type(result) in (list, tuple):
        return type(result)(_as_subclass(r, cls) for r in result)
    return result


def foreign_override(arguments: Iterable[Any]) -> Callable[..., Any] | None:
    """What answers a call that has an argument which is no tensor but overrides torch functions; None without one."""
    for x in members(arguments):
        if not isinstance(x, Tensor) and hasattr(type(x), "__torch_function__"):
            return _call_subclass
    return None
