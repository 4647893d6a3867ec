"""`no_grad`, `enable_grad`, `set_grad_enabled`, `inference_mode`: context managers that also decorate functions."""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable
from typing import Any, Self, TypeVar

from .._dispatch import dispatcher, keys
from .._dispatch.tls import state

__all__ = [
    "enable_grad",
    "inference_mode",
    "is_grad_enabled",
    "is_inference_mode_enabled",
    "is_multithreading_enabled",
    "no_grad",
    "set_grad_enabled",
    "set_multithreading_enabled",
]

F = TypeVar("F", bound=Callable[..., Any])


def is_grad_enabled() -> bool:
    """Whether operations on this thread are recorded for backward."""
    return state.grad_enabled


def is_inference_mode_enabled() -> bool:
    return state.inference


class _ContextDecorator:
    """A context manager that decorates functions, generators and classes."""

    def __enter__(self) -> object:
        raise NotImplementedError

    def __exit__(self, *exc: object) -> None:
        raise NotImplementedError

    def clone(self) -> Self:
        return type(self)()

    def __call__(self, orig_func: F) -> F:
        if inspect.isclass(orig_func):
            warnings.warn(
                "Decorating classes is deprecated and will be disabled in future versions. You should only decorate functions or "
                "methods. To preserve the current behavior of class decoration, you can directly decorate the `__init__` method and "
                "nothing else.",
                FutureWarning,
                stacklevel=2,
            )
            return self(_constructor(orig_func))  # type: ignore[return-value]
        if inspect.isgeneratorfunction(orig_func):
            return wrap_generator(self.clone, orig_func)  # type: ignore[return-value]
        if inspect.iscoroutinefunction(orig_func):

            @functools.wraps(orig_func)
            async def coroutine(*args: Any, **kwargs: Any) -> Any:
                with self.clone():
                    return await orig_func(*args, **kwargs)

            return coroutine  # type: ignore[return-value]

        @functools.wraps(orig_func)
        def decorated(*args: Any, **kwargs: Any) -> Any:
            with self.clone():
                return orig_func(*args, **kwargs)

        return decorated  # type: ignore[return-value]


def _constructor(cls: type) -> Callable[..., Any]:
    """A function that makes instances, as the class itself does."""

    @functools.wraps(cls, updated=())
    def construct(*args: Any, **kwargs: Any) -> Any:
        return cls(*args, **kwargs)

    return construct


def wrap_generator(context: Callable[[], Any], function: Callable[..., Any]) -> Callable[..., Any]:
    """Enter the context only while the generator runs, not while its consumer does."""

    @functools.wraps(function)
    def generator(*args: Any, **kwargs: Any) -> Any:
        gen = function(*args, **kwargs)
        try:
            with context():
                item = next(gen)
            while True:
                try:
                    sent = yield item
                except GeneratorExit:
                    with context():
                        gen.close()
                    raise
                except BaseException as error:
                    with context():
                        item = gen.throw(error)
                else:
                    with context():
                        item = gen.send(sent)
        except StopIteration as stop:
            return stop.value

    return generator


class no_grad(_ContextDecorator):  # noqa: N801
    """Operations inside are not recorded for backward."""

    __slots__ = ("previous",)

    def __new__(cls, orig_func: Callable[..., Any] | None = None) -> Any:
        self = object.__new__(cls)
        return self if orig_func is None else self(orig_func)

    def __enter__(self) -> None:
        self.previous = state.grad_enabled
        state.grad_enabled = False

    def __exit__(self, *exc: object) -> None:
        state.grad_enabled = self.previous


class enable_grad(no_grad):  # noqa: N801
    """Operations inside are recorded again, within `no_grad` too."""

    __slots__ = ()

    def __enter__(self) -> None:
        self.previous = state.grad_enabled
        state.grad_enabled = True


class set_grad_enabled(_ContextDecorator):  # noqa: N801
    """Switches recording on or off, at once and until the block ends."""

    def __init__(self, mode: bool) -> None:
        self.previous = state.grad_enabled
        self.mode = bool(mode)
        state.grad_enabled = self.mode

    def __call__(self, orig_func: F) -> F:
        state.grad_enabled = self.previous
        return super().__call__(orig_func)

    def __enter__(self) -> None:
        state.grad_enabled = self.mode

    def __exit__(self, *exc: object) -> None:
        state.grad_enabled = self.previous

    def clone(self) -> set_grad_enabled:
        return type(self)(self.mode)


class inference_mode(_ContextDecorator):  # noqa: N801
    """Like `no_grad`, and what is made inside can never take part in autograd."""

    def __new__(cls, mode: bool | Callable[..., Any] = True) -> Any:
        if isinstance(mode, bool):
            return object.__new__(cls)
        return cls()(mode)

    def __init__(self, mode: bool = True) -> None:
        self.mode = mode

    def __enter__(self) -> None:
        self.previous = (state.grad_enabled, state.inference)
        # torch: leaving inference mode inside of it also turns recording on again
        state.grad_enabled = not self.mode
        state.inference = self.mode
        if self.mode:
            dispatcher.activate(keys.INFERENCE)

    def __exit__(self, *exc: object) -> None:
        state.grad_enabled, state.inference = self.previous
        if self.mode:
            dispatcher.deactivate(keys.INFERENCE)

    def clone(self) -> inference_mode:
        return type(self)(self.mode)


class _Switch(_ContextDecorator):
    """A setting of this thread, made at once, and undone at the end of a block or a decorated function."""

    setting: str

    def __init__(self, mode: bool) -> None:
        self.mode = mode
        self.previous = getattr(state, self.setting)
        setattr(state, self.setting, mode)

    def __call__(self, orig_func: F) -> F:
        setattr(state, self.setting, self.previous)
        return super().__call__(orig_func)

    def __enter__(self) -> None:
        setattr(state, self.setting, self.mode)

    def __exit__(self, *exc: object) -> None:
        setattr(state, self.setting, self.previous)

    def clone(self) -> Self:
        return type(self)(self.mode)


class set_multithreading_enabled(_Switch):  # noqa: N801
    """Allows or forbids that backward uses other threads; this engine stays on the calling one either way."""

    setting = "multithreading"


def is_multithreading_enabled() -> bool:
    """Whether backward may use other threads."""
    return state.multithreading
