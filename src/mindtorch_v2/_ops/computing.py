"""NumPy kernels called from kernels over tensors."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import _dtype
from .._backends.cpu.floating_errors import IGNORED, state_variable
from .._backends.cpu.foreign_errors import FOREIGN, translated
from .._creation import allocate
from .._dispatch import keys
from .._dispatch.codegen import compile_function
from .._dispatch.op import parameter_names
from .._tensor import Tensor, set_array, wrap
from .lookup import aten

__all__ = ["computed", "empty_sized", "empty_zeroed", "memory_by_operators", "with_memory_of_operators"]

Array = np.ndarray[Any, Any]
Maker = Callable[[Any, _dtype.dtype], Tensor]  # of a shape and a dtype


def computed(kernel: Callable[..., Any], *arguments: Any, into: Sequence[Tensor] = (), **options: Any) -> Any:
    """The result of a NumPy kernel on tensors, as a tensor or a tuple of them, without a row of its own in profiles.

    Results that are the memory of a tensor in `into` become that tensor.
    """
    token = state_variable.set(IGNORED)  # half a µs less than `quiet`
    try:
        result = kernel(*[a._array if isinstance(a, Tensor) else a for a in arguments], **options)
    except FOREIGN as e:
        raise translated(kernel.__name__, e) from None
    finally:
        state_variable.reset(token)
    if isinstance(result, tuple):
        return tuple(None if a is None else _owner(a, into) for a in result)
    return _owner(result, into)


def _owner(array: Array, into: Sequence[Tensor]) -> Tensor:
    for t in into:
        if array is t._array or array.base is t._array:
            set_array(t, array)
            t._storage.version = 0
            return t
    return wrap(array)


def memory_by_operators(entry: Any, **makers: Maker) -> None:
    """Let a kernel get the memory of its result from an operator while somebody records, as ATen's kernel does always.

    The one of `makers` is an option of the kernel, which calls it as it calls `np.zeros` or `np.empty` otherwise.
    """
    op = entry.op
    kernel = op.array_kernels[keys.CPU]
    ((option, make),) = makers.items()
    arrays = {a.name: f"{a.name}._array" for a in op.schema.tensor_arguments}
    arrays |= {a.name: f"None if {a.name} is None else {a.name}._array" for a in op.schema.tensor_arguments if "?" in a.type}
    passed = ", ".join(arrays.get(name, name) for name in parameter_names(kernel))
    lines = [
        "made = None",
        "def by_operators(shape, dtype):",
        "    nonlocal made",
        "    made = make(shape, dtypes[dtype])",
        "    return made._array",
        "token = set_errors(IGNORED)",
        "try:",
        f"    array = kernel({passed}, {option}=by_operators)",
        "except FOREIGN as e:",
        f"    raise translated({op.name!r}, e) from None",
        "finally:",
        "    reset_errors(token)",
        "if array is not made._array:",
        "    return wrap(array)",
        "return made",
    ]
    names = {
        "make": make, "dtypes": _dtype.FROM_NUMPY, "kernel": kernel, "set_errors": state_variable.set, "IGNORED": IGNORED,
        "reset_errors": state_variable.reset, "FOREIGN": FOREIGN, "translated": translated, "wrap": wrap,
    }  # fmt: skip
    op.watched = compile_function(op.name, ", ".join(op.schema.argument_names), lines, names)


def with_memory_of_operators(kernel: Callable[..., Any], arguments: Sequence[Any], makers: dict[str, Maker]) -> Any:
    """The result of a kernel whose options `makers` are."""
    made: list[Tensor] = []

    def by_operators(make: Maker, shape: Any, dtype: Any) -> Array:
        made.append(make(shape, _dtype.FROM_NUMPY[np.dtype(dtype)]))
        return made[-1]._array

    options = {name: functools.partial(by_operators, make) for name, make in makers.items()}
    return computed(kernel, *arguments, into=made, **options)


def empty_zeroed(shape: Any, d: _dtype.dtype) -> Tensor:
    """Memory that an operator fills with zeros."""
    return aten.zero_(allocate(shape, d))


def empty_sized(shape: Any, d: _dtype.dtype) -> Tensor:
    """Memory that an operator makes, and another gives its size."""
    return aten.resize_(aten.empty((0,), dtype=d), shape)
