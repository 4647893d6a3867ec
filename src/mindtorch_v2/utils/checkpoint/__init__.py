"""torch.utils.checkpoint: parts of a model whose intermediate results are not kept for backward, but computed again."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from ..._dispatch.tls import state
from ...nn.modules.container import Sequential
from .debugging import OperatorLog, explained
from .environment import Environment
from .recomputation import DETERMINISM_CHECKS, CheckpointError, Frame, GraphExecGroup
from .reentrant import CheckpointFunction, check_backward_validity, detach_variable
from .selective import SAC_IGNORED_OPS, CheckpointPolicy, SelectiveCheckpointContext, create_selective_checkpoint_contexts
from .settings import (
    DefaultDeviceType,
    debug_or,
    early_stop_or,
    get_device_states,
    set_checkpoint_debug_enabled,
    set_checkpoint_early_stop,
    set_device_states,
)

__all__ = [
    "SAC_IGNORED_OPS",
    "CheckpointError",
    "CheckpointFunction",
    "CheckpointPolicy",
    "DefaultDeviceType",
    "GraphExecGroup",
    "SelectiveCheckpointContext",
    "check_backward_validity",
    "checkpoint",
    "checkpoint_sequential",
    "create_selective_checkpoint_contexts",
    "detach_variable",
    "get_device_states",
    "noop_context_fn",
    "set_checkpoint_debug_enabled",
    "set_checkpoint_early_stop",
    "set_device_states",
]

Context = contextlib.AbstractContextManager[Any]


def noop_context_fn() -> tuple[Context, Context]:
    """Two contexts that do nothing."""
    return contextlib.nullcontext(), contextlib.nullcontext()


def checkpoint(
    function: Callable[..., Any],
    *args: Any,
    use_reentrant: bool | None = None,
    context_fn: Callable[[], tuple[Context, Context]] = noop_context_fn,
    determinism_check: str = "default",
    debug: bool = False,
    early_stop: bool = True,
    **kwargs: Any,
) -> Any:
    """Call a function without keeping what its backward needs; it is called again when backward comes to it.

    With `preserve_rng_state` (True), the second call draws the same random numbers. With `use_reentrant=False` keyword arguments,
    `torch.autograd.grad` and inner checkpoints work, `context_fn` gives a context for each call, and the second call stops (`early_stop`) when all
    is there; tensors of other shapes or dtypes than in the first are an error (`determinism_check`), which `debug` explains.
    """
    if use_reentrant is None:
        _warn_of_default("torch.utils.checkpoint")
        use_reentrant = True
    preserve = kwargs.pop("preserve_rng_state", True)
    if not use_reentrant:
        options: dict[str, Any] = {
            "context_fn": context_fn,
            "determinism_check": determinism_check,
            "debug": debug,
            "early_stop": early_stop,
        }
        return _call(function, args, kwargs, preserve_rng_state=preserve, **options)
    if kwargs:
        raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
    if context_fn is not noop_context_fn or debug is not False:
        raise ValueError("Passing `context_fn` or `debug` is only supported when use_reentrant=False.")
    return CheckpointFunction.apply(function, preserve, *args)


def _warn_of_default(name: str) -> None:
    warnings.warn(
        f"{name}: the use_reentrant parameter should be passed explicitly. use_reentrant=False is recommended; "
        "without it, use_reentrant=True is taken.",
        stacklevel=3,
    )


def _call(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    *,
    preserve_rng_state: bool,
    context_fn: Callable[[], tuple[Context, Context]],
    determinism_check: str,
    debug: bool,
    early_stop: bool,
) -> Any:
    """Call the function with hooks that keep nothing."""
    if determinism_check not in DETERMINISM_CHECKS:
        raise ValueError(f"determinism_check should be one of {list(DETERMINISM_CHECKS)}, but got {determinism_check}")
    logs = _logs(context_fn) if debug_or(debug) else None
    first, again = logs or context_fn()
    environment = Environment(preserve_rng_state=preserve_rng_state)

    def call_again(*inputs: Any) -> None:
        with environment.again(), again:
            function(*inputs, **kwargs)

    frame = Frame(call_again, early_stop=early_stop_or(early_stop), metadata_of=DETERMINISM_CHECKS[determinism_check])
    if logs is not None:
        frame.explain = lambda error: explained(error, *logs)
    if not state.grad_enabled:
        return function(*args, **kwargs)
    frame.save_inputs(args)
    with frame.hooks(), first:
        result = function(*args, **kwargs)
        frame.is_complete = True
    if not frame.is_complete:
        raise RuntimeError(
            "torch.utils.checkpoint: the forward context provided by context_fn suppressed an exception raised during the "
            "checkpointed forward. There is no result to return."
        )
    return result


def _logs(context_fn: Callable[..., Any]) -> tuple[OperatorLog, OperatorLog]:
    if context_fn is not noop_context_fn:
        raise ValueError("debug=True is incompatible with non-default context_fn")
    return OperatorLog(), OperatorLog()


def checkpoint_sequential(functions: Any, segments: int, input: Any, use_reentrant: bool | None = None, **kwargs: Any) -> Any:
    """Call modules or functions one after the other, in so many segments; all but the last are checkpoints."""
    if use_reentrant is None:
        _warn_of_default("torch.utils.checkpoint.checkpoint_sequential")
        use_reentrant = True
    preserve = kwargs.pop("preserve_rng_state", True)
    if kwargs:
        raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
    if isinstance(functions, Sequential):
        functions = list(functions.children())
    size = len(functions) // segments
    done = 0
    for start in range(0, size * (segments - 1), size):
        done = start + size
        segment = _chain(functions[start:done])
        input = checkpoint(segment, input, use_reentrant=use_reentrant, preserve_rng_state=preserve)
    return _chain(functions[done:])(input)


def _chain(functions: Sequence[Callable[..., Any]]) -> Callable[[Any], Any]:
    def run(value: Any) -> Any:
        for function in functions:
            value = function(value)
        return value

    return run
