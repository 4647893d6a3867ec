"""Operators that move elements without looking at them, for tensors of elements that are kept as bits: run on the bits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .. import _dtype
from .._dispatch import keys, registry
from .._dispatch.op import Op
from .._narrow import decoded
from .._tensor import Tensor, shallow_copy
from .._types import Number
from .creation.narrow import converted

# name.overload, as ATen has them
_MOVES = (
    "alias as_strided cat clone copy_ diagonal expand flip gather index.Tensor index_select permute roll select.int slice.Tensor "
    "split.Tensor split_with_sizes squeeze squeeze.dim squeeze.dims t transpose.int unbind.int unfold unsqueeze view zero_"
)


def _bits(t: Tensor) -> Tensor:
    """The same memory as integers."""
    made = shallow_copy(t)
    made.dtype, made._keys = _dtype.FROM_NUMPY[t._array.dtype], keys.CPU
    made._geometry = None
    return made


def _mapped(value: Any, change: Callable[[Tensor], Any]) -> Any:
    if isinstance(value, Tensor):
        return change(value)
    return type(value)(_mapped(v, change) for v in value) if isinstance(value, list | tuple) else value


def _on_bits(op: Op) -> Callable[..., Any]:
    def run(*arguments: Any) -> Sequence[Tensor] | Tensor:
        found: list[Tensor] = []
        _mapped(arguments, lambda t: found.append(t) if t._keys & keys.NARROW else None)
        d = found[0].dtype
        if any(t.dtype is not d for t in found):
            raise RuntimeError(f"{op.name}(): expected tensors of one dtype, but got {', '.join(str(t.dtype) for t in found)}")
        whole = dict(
            zip(op.schema.argument_names, _mapped(arguments, lambda t: _bits(t) if t._keys & keys.NARROW else t), strict=True)
        )
        result = op.table[keys.CPU](*whole.values())
        if op.schema.is_inplace:
            return arguments[0]

        def typed(t: Tensor) -> Tensor:
            t.dtype, t._keys, t._geometry = d, keys.NARROW, None
            t._base = found[0] if op.schema.is_view else None
            return t

        return _mapped(result, typed)

    return run


def _copy(self: Tensor, src: Tensor, non_blocking: bool) -> Tensor:
    """`copy_` between such tensors and others: converted on the way."""
    if self.dtype is not src.dtype:
        src = converted(src, self.dtype, None, None)
    bits = registry.entry("copy_")
    bits(_bits(self) if self._keys & keys.NARROW else self, _bits(src) if src._keys & keys.NARROW else src)
    return self


def _compared(op: Op) -> Callable[..., Any]:
    def run(self: Tensor, other: Tensor) -> Tensor:
        values = [converted(t, _dtype.complex64 if t.dtype.is_complex else _dtype.float32, None, None) for t in (self, other)]
        return op.table[keys.CPU](*values)

    return run


def _item(self: Tensor) -> Number:
    d: Any = self.dtype
    return decoded(self._array, d).item()


for _name in _MOVES.split():
    _op = registry.aten(*_name.split(".")) if "." in _name else registry.aten(_name)
    _op.kernels[keys.NARROW] = _on_bits(_op)
    if _name in ("gather", "index.Tensor", "index_select"):  # with indices, which are integers
        _op.kernels[keys.NARROW | keys.CPU] = _on_bits(_op)
for _name in ("eq", "ne"):
    _op = registry.aten(_name, "Tensor")
    _op.kernels[keys.NARROW] = _compared(_op)
for _keys in (keys.NARROW, keys.NARROW | keys.CPU):
    registry.aten("copy_").kernels[_keys] = _copy
registry.aten("_local_scalar_dense").kernels[keys.NARROW] = _item
