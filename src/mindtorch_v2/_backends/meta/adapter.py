"""Bodies for tensors without elements.

A meta tensor's array lies in one large read-only mapping of zero pages that is never filled: views, strides and offsets are
NumPy's own, at no memory. Operators with a `shape` rule (and all pointwise ones) allocate nothing; the others run their CPU
kernel on zeros for the sake of the result's shape and dtype.
"""

from __future__ import annotations

import mmap
from collections.abc import Callable
from functools import cache
from typing import Any, NoReturn

import numpy as np

from ... import _checks, _device, _dtype, _promotion
from ..._dispatch import keys
from ..._dispatch.codegen import Body, compile_function
from ..._dispatch.dispatcher import call_body
from ..._dispatch.entry import NUMBERS
from ..._dispatch.op import Op, parameter_names
from ..._storage import MetaStorage, own
from ..._tensor import Tensor
from ..cpu.machinery.adapter import cpu_body

__all__ = ["meta_body", "meta_result", "meta_tensor"]

_NORESERVE = 0x4000  # Linux's MAP_NORESERVE: address space without a claim on memory
_RESERVED_BYTES = 1 << 42


@cache
def _zeros() -> np.ndarray[Any, Any]:
    """Address space for all meta tensors."""
    size = _RESERVED_BYTES
    while True:
        try:
            mapping = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NORESERVE, prot=mmap.PROT_READ)
            return np.frombuffer(mapping, np.uint8)
        except (OSError, ValueError):
            size >>= 1


def meta_array(shape: tuple[int, ...], dtype: _dtype.dtype, strides: tuple[int, ...] | None = None) -> np.ndarray[Any, Any]:
    """An array of this geometry over the reserved zeros; strides in bytes."""
    return np.ndarray(shape, dtype.np, _zeros(), 0, strides)


def meta_tensor(shape: tuple[int, ...], dtype: _dtype.dtype, strides: tuple[int, ...] | None = None) -> Tensor:
    """A tensor without elements; strides in bytes."""
    t: Tensor = object.__new__(Tensor)
    t._array = meta_array(shape, dtype, strides)
    t._storage = own(t._array, MetaStorage)
    t.dtype = dtype
    t.device = _device.meta
    t._keys = keys.META
    t._node = t._base = t._extra = None
    return t


def meta_result(*operands: Any) -> Tensor:
    """A meta tensor of the shape and dtype that tensors and numbers broadcast and promote to; None is left out."""
    given = [x for x in operands if x is not None]
    shapes = [x._array.shape for x in given if x.__class__ not in NUMBERS]
    return meta_tensor(_checks.broadcast_shapes(*shapes), _promotion.result_type_of(given))


def meta_body(op: Op, full: int) -> Body:
    """Return the body of this operator on the meta device."""
    if op.schema.is_view and keys.CPU in op.array_kernels:
        return cpu_body(op, full)  # view kernels never read elements, and take keys and device from their base
    if op.schema.is_inplace:
        return call_body(op, _inplace, "unchanged")
    if "data_dependent" in op.tags:
        return call_body(op, _data_dependent(op), "data_dependent")
    if op.pointwise is not None and all(a.type == "Tensor" for a in op.schema.tensor_arguments):
        return call_body(op, _pointwise(op), "pointwise")
    if op.shape is not None:
        return call_body(op, _by_rule(op), "by_rule")
    return call_body(op, _by_kernel(op), "by_kernel")


def _inplace(*arguments: Any) -> Tensor:
    arguments[0]._storage.version += 1
    return arguments[0]


def _data_dependent(op: Op) -> Callable[..., Any]:
    def refuse(*arguments: Any) -> NoReturn:
        raise NotImplementedError(
            f"{op.qualified_name}: the shape of its result depends on elements, which meta tensors do not have"
        )

    return refuse


def _pointwise(op: Op) -> Callable[..., Any]:
    positions = [i for i, a in enumerate(op.schema.arguments) if a.is_tensor or a.name in op.numbers]

    def pointwise(*arguments: Any) -> Tensor:
        operands = [arguments[i] for i in positions]
        d = _promotion.result_type_of(operands)
        if op.pointwise == "float" and not d.inexact:
            d = _dtype.get_default_dtype()
        elif op.pointwise == "bool":
            d = _dtype.bool_
        elif op.pointwise == "real":
            d = d.to_real()
        shapes = [x._array.shape for x in operands if x.__class__ not in NUMBERS]
        return meta_tensor(_checks.broadcast_shapes(*shapes), d)

    return pointwise


def _by_rule(op: Op) -> Callable[..., Any]:
    assert op.shape is not None
    rule, names = op.shape, parameter_names(op.shape)
    positions = [op.schema.argument_names.index(n) for n in names]
    first = next(i for i, a in enumerate(op.schema.arguments) if a.is_tensor or a.is_tensor_list)

    def by_rule(*arguments: Any) -> Any:
        shape = rule(*[arguments[i] for i in positions])
        if isinstance(shape, Tensor) or (shape and isinstance(shape[0], Tensor)):
            return shape  # a rule that knows dtypes or strides too makes the meta tensors itself
        lead = arguments[first]
        d = (lead if isinstance(lead, Tensor) else lead[0]).dtype
        if len(op.schema.returns) > 1:
            return tuple(meta_tensor(tuple(s), d) for s in shape)
        return meta_tensor(tuple(shape), d)

    return by_rule


def _by_kernel(op: Op) -> Callable[..., Any]:
    body = cpu_body(op, keys.CPU) if keys.CPU not in op.kernels else call_body(op, op.kernels[keys.CPU], "kernel")
    on_zeros = compile_function(op.name, ", ".join(op.schema.argument_names), [*body.lines, "return result"], body.names)

    def by_kernel(*arguments: Any) -> Any:
        return _rehome(on_zeros(*arguments))

    return by_kernel


def _rehome(result: Any) -> Any:
    """The same geometry on the meta device."""
    if isinstance(result, Tensor):
        return meta_tensor(result._array.shape, result.dtype, result._array.strides)
    if isinstance(result, list | tuple):
        return type(result)([_rehome(r) for r in result])
    return result
