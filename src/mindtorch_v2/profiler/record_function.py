"""`record_function`: a named block in profiles."""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Callable
from types import TracebackType
from typing import Any, TypeVar

from .. import _record
from .._autograd.grad_mode import wrap_generator

__all__ = ["record_function"]

F = TypeVar("F", bound=Callable[..., Any])


class record_function(contextlib.ContextDecorator):  # noqa: N801 - torch's name
    """Show a block of code, or every call of a function, under a name of its own. Does nothing while no profiler runs.

        with record_function("load batch"): …

        @record_function("forward")
        def forward(x): …

    Args:
        name: the name of the block in tables and traces.
        args: a text that is kept with the event, among its inputs; recorded with `record_shapes=True`.
    """

    _of_thread = False  # whether the scope is the thread's even inside a task

    def __init__(self, name: str, args: str | None = None) -> None:
        if not isinstance(name, str):
            raise TypeError(f"record_function expects a name of type str, got {type(name).__name__}")
        if args is not None and not isinstance(args, str):
            raise TypeError(f"record_function expects args of type str, got {type(args).__name__}")
        self.name = name
        self.args = args
        self.run_callbacks_on_exit = True
        self.record: Any = None
        self._end: Callable[[Any], None] = _nobody

    def __enter__(self) -> record_function:
        # a profiler may start or stop at any time, on any thread: who began the scope ends it
        begin, self._end = _record.begin, _record.end or _nobody
        self.record = None if begin is None else begin(self.name, self.args, of_thread=self._of_thread)
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc_value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self.record is not None and self.run_callbacks_on_exit:
            self._end(self.record)
            self.record = None

    def __call__(self, function: F) -> F:
        """Decorate: each call is a scope of its own, so that recursion and threads nest as they should.

        A generator is in the scope while it runs, not while its consumer does.
        """
        name, args = self.name, self.args
        if inspect.isgeneratorfunction(function):
            return wrap_generator(lambda: record_function(name, args), function)  # type: ignore[return-value]
        if inspect.isasyncgenfunction(function):
            return _wrap_async_generator(lambda: record_function(name, args), function)  # type: ignore[return-value]
        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def recorded_coroutine(*a: Any, **k: Any) -> Any:
                with record_function(name, args):
                    return await function(*a, **k)

            return recorded_coroutine  # type: ignore[return-value]

        @functools.wraps(function)
        def recorded(*a: Any, **k: Any) -> Any:
            with record_function(name, args):
                return function(*a, **k)

        return recorded  # type: ignore[return-value]

    def _call_end_callbacks_on_future(self, fut: Any) -> Any:
        """End the scope when a future is done instead of at the end of the block; returns a future with the same result."""
        if not self.run_callbacks_on_exit:
            raise RuntimeError("_call_end_callbacks_on_future can only be called once.")
        self.run_callbacks_on_exit = False
        scope, end = self.record, self._end

        def finish(done: Any) -> Any:
            if scope is not None:
                end(scope)
            return done.value()

        return fut.then(finish)


def _nobody(token: object) -> None:
    """The end of a scope that was not recorded."""


def _wrap_async_generator(scope: Callable[[], Any], function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    async def generator(*args: Any, **kwargs: Any) -> Any:
        gen = function(*args, **kwargs)
        try:
            with scope():
                item = await anext(gen)
            while True:
                try:
                    sent = yield item
                except GeneratorExit:
                    with scope():
                        await gen.aclose()
                    raise
                except BaseException as error:
                    with scope():
                        item = await gen.athrow(error)
                else:
                    with scope():
                        item = await gen.asend(sent)
        except StopAsyncIteration:
            return

    return generator


class step_scope(record_function):  # noqa: N801 - a record_function
    """The scope of a step: `ProfilerStep#3`, around all that a thread does."""

    _of_thread = True
