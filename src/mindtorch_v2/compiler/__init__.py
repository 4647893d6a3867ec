"""torch.compiler: nothing is compiled. What marks functions for the compiler gives them back."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from .._interop import from_numpy
from .._refusals import given_back
from .._tensor import Tensor

__all__ = [
    "allow_in_graph",
    "assume_constant_result",
    "compile",
    "cudagraph_mark_step_begin",
    "disable",
    "get_default_backend",
    "is_compiling",
    "is_dynamo_compiling",
    "is_exporting",
    "keep_portable_guards_unsafe",
    "keep_tensor_guards_unsafe",
    "list_backends",
    "load_cache_artifacts",
    "nested_compile_region",
    "reset",
    "save_cache_artifacts",
    "set_default_backend",
    "set_enable_guard_collectives",
    "set_stance",
    "skip_all_guards_unsafe",
    "skip_guard_on_all_nn_modules_unsafe",
    "skip_guard_on_globals_unsafe",
    "skip_guard_on_inbuilt_nn_modules_unsafe",
    "substitute_in_graph",
    "wrap_numpy",
]

_MODES = ("default", "lite", "reduce-overhead", "max-autotune-no-cudagraphs", "max-autotune")
# those of torch, without the ones that only its tests have
_BACKENDS = (
    "aot_eager", "aot_eager_decomp_partition", "aot_eager_default_partitioner", "aot_ts", "cudagraphs", "eager", "eager_debug", "eager_noexcept",
    "inductor", "openxla", "openxla_eval", "pre_dispatch_eager", "ts", "tvm",
)  # fmt: skip


def compile(model: Any = None, *, fullgraph: bool = False, dynamic: bool | None = None, backend: Any = "inductor", mode: str | None = None,
            options: Any = None, disable: bool = False) -> Any:  # fmt: skip
    """`model`, as it is: operators run one by one, and a profile shows each. Without `model`, a decorator that does the same."""
    if mode is not None and options is not None:
        raise RuntimeError("Either mode or options can be specified, but both can't be specified at the same time.")
    if mode is not None and mode not in _MODES:
        raise RuntimeError(f"Unrecognized mode={mode}, should be one of: {', '.join(_MODES)}")
    if isinstance(backend, str) and backend not in _BACKENDS:
        raise RuntimeError(f"Invalid backend: {backend!r}, torch.compile knows {', '.join(_BACKENDS)}.")
    if model is None:
        return functools.partial(compile, disable=disable)
    if not callable(model):
        raise AssertionError(f"A callable function is expected, but {type(model)} is provided.")
    return model if disable else given_back(model, "torch.compile", "there is no compiler here, operators run one by one")


def disable(fn: Any = None, recursive: bool = True, *, reason: str | None = None) -> Any:
    """The function as it is; without one, a decorator."""
    return (lambda fn: fn) if fn is None else fn


def allow_in_graph(fn: Callable[..., Any]) -> Callable[..., Any]:
    """The function as it is."""
    return fn


assume_constant_result = allow_in_graph


def is_compiling() -> bool:
    """False."""
    return False


is_dynamo_compiling = is_exporting = is_compiling


def reset() -> None:
    """Nothing is kept."""


def cudagraph_mark_step_begin() -> None:
    """Nothing to mark."""


def list_backends(exclude_tags: Any = ()) -> list[str]:
    """None."""
    return []


@contextlib.contextmanager
def set_stance(stance: str = "default", **options: Any) -> Iterator[None]:
    """A context in which nothing changes."""
    yield


_default_backend: Any = "inductor"


def get_default_backend() -> str | Callable[..., Any]:
    """What `torch.compile` would compile with."""
    return _default_backend


def set_default_backend(backend: str | Callable[..., Any]) -> None:
    """Choose that."""
    global _default_backend
    _default_backend = backend


def nested_compile_region(fn: Callable[..., Any] | None = None) -> Callable[..., Any]:
    """The function as it is; without one, a decorator."""
    return disable(fn)


def substitute_in_graph(
    original_fn: Any, *, can_constant_fold_through: bool = False, skip_signature_check: bool = False, is_embedded_type: bool = False
) -> Any:
    """A decorator that gives a function back: nothing is traced in which it could stand for another."""
    return lambda fn: fn


def save_cache_artifacts() -> None:
    """None: nothing was compiled."""


def load_cache_artifacts(serialized_artifacts: bytes) -> None:
    """None: what others compiled is of no use here."""


def set_enable_guard_collectives(enabled: bool) -> bool:
    """False: nothing is guarded."""
    return False


def skip_all_guards_unsafe(guard_entries: Any) -> list[bool]:
    """Which guards to keep: none."""
    return [False for _ in guard_entries]


def keep_portable_guards_unsafe(guard_entries: Any) -> list[bool]:
    """Which guards to keep: all, of which there are none."""
    return [True for _ in guard_entries]


def keep_tensor_guards_unsafe(guard_entries: Any, keep_parameters: bool = False) -> list[bool]:
    """Which guards to keep: all, of which there are none."""
    return [True for _ in guard_entries]


skip_guard_on_all_nn_modules_unsafe = keep_portable_guards_unsafe
skip_guard_on_inbuilt_nn_modules_unsafe = skip_guard_on_globals_unsafe = keep_portable_guards_unsafe


def wrap_numpy(fn: Callable[..., Any]) -> Callable[..., Any]:
    """A function over NumPy arrays as one over tensors, which is differentiated nowhere."""

    @functools.wraps(fn)
    def over_tensors(*args: Any, **kwargs: Any) -> Any:
        given = [_as_array(x) for x in args]
        result = fn(*given, **{key: _as_array(x) for key, x in kwargs.items()})
        return from_numpy(result) if isinstance(result, np.ndarray) else result

    return over_tensors


def _as_array(x: object) -> Any:
    return x.detach().numpy() if isinstance(x, Tensor) else x
