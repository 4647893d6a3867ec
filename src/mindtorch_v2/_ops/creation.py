"""Factories: tensors from sizes, values and ranges.

Each is a composite: memory, then the operator that fills it (`zeros` shows `aten::zero_`). Their public functions are
generated here, because `requires_grad`, `out` and sizes written out (`zeros(2, 3)`) are not in the schemas.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import _device, _dtype
from .._backends.cpu import ranges
from .._backends.cpu.adapter import WRAP as _WRAP
from .._backends.cpu.floating_errors import SILENT
from .._creation import allocate, checked_shape, device_of, dtype_of, refuse_pinned, require_grad
from .._dispatch import keys
from .._dispatch.codegen import Body, compile_function, indent
from .._dispatch.op import Op
from .._dispatch.schema import parse
from .._dispatch.tls import state
from .._memory_format import contiguous_format, empty_strides, layout, preserve_format, strided
from .._storage import UntypedStorage
from .._tensor import Tensor, wrap
from .calling import write_out
from .declare import public, register

Array = np.ndarray[Any, Any]

_OPTIONS = "*, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None"
_LIKE = _OPTIONS + ", MemoryFormat? memory_format=None"
_PLACEHOLDERS = {  # in the order of replacement
    "RANDOM_LIKE": _LIKE.replace("*,", "*, Generator? generator=None,"),
    "RANDOM": _OPTIONS.replace("*,", "*, Generator? generator=None,"),
    "OPTIONS": _OPTIONS,
    "LIKE": _LIKE,
}
_MISSING = object()


def factory(
    schema: str, composite: Callable[..., Any], *, shortcut: Callable[..., Any] | Body | None = None, variants: str = "function"
) -> Callable[..., Any]:
    """Declare a factory operator and export the function that users call; returns that, or the entry of a further overload."""
    for placeholder, options in _PLACEHOLDERS.items():
        schema = schema.replace(placeholder, options)
    parsed = parse(schema)
    declared = Op(parsed, composite=composite, cpu=None if isinstance(shortcut, Body) else shortcut, tags=("factory", "shortcut"))
    if isinstance(shortcut, Body):
        declared.kernels[keys.CPU] = shortcut  # type: ignore[assignment]
    entry = register(declared)
    if not parsed.overload or parsed.name == "empty":
        function = public_function(declared)
        public(variants)(function)
        return function
    return entry


def public_function(op: Op) -> Callable[..., Any]:
    """The Python signature of a factory: its schema's, with `size` variadic, `out`, and `requires_grad`."""
    names: dict[str, Any] = {
        "table": op.table, "defaults": _device.defaults_in_force, "CPU": _device.cpu, "device_of": device_of, "check_options": _check_options,
        "require_grad": require_grad, "named_error": functools.partial(_named_error, op.name), "single_size": functools.partial(_single_size, op.name), "MISSING": _MISSING, "with_out": _with_out, "op": op,
    }  # fmt: skip
    arguments = [a.name for a in op.schema.arguments]
    from_self = arguments[0] == "self"
    parts: list[str] = []
    starred = False
    for a in op.schema.arguments:
        if a.name == "size" and a.type == "int[]" and arguments[1 if from_self else 0] == "size" and _only_size(op):
            parts += ["*args", "size=MISSING"]
            starred = True
            continue
        if a.keyword_only and not starred:
            parts.append("*")
            starred = True
        name = "input" if a.name == "self" else a.name
        if a.has_default:
            names[f"default_{name}"] = a.default
            parts.append(f"{name}=default_{name}")
        else:
            parts.append(name)
    parts += ["requires_grad=False"] + ([] if from_self else ["out=None"])
    lines = []
    if "*args" in parts:
        lines += [
            "if size is MISSING:",
            "    size = args if len(args) > 1 else single_size(args)",
        ]
    passed = ", ".join("input" if a == "self" else a for a in arguments)
    lines += ["if layout is not None or pin_memory:", "    check_options(layout, pin_memory)"]
    if from_self:
        lines += [
            "if not isinstance(input, Tensor):",
            "    raise TypeError(f\"argument 'input' (position 1) must be Tensor, not {input.__class__.__name__}\")",
            # with the key of another device added, no shortcut of one device applies
            f"result = table[input._keys if device is None else input._keys | device_of(device).key]({passed})",
        ]
        names["Tensor"] = Tensor
    else:
        lines += [
            "if out is not None:",
            f"    return with_out(op, ({passed},), out, requires_grad)",
            "if device is None and not defaults:",
            "    device = CPU",
            f"    result = table[{keys.CPU}]({passed})",
            "else:",
            "    device = device_of(device)",
            f"    result = table[device.key]({passed})",
        ]
    # an entered `try` costs nothing; what the checks say about an argument gets the function's name
    lines = ["try:", *indent(lines), "except TypeError as error:", "    raise named_error(error)"]
    lines += ["if requires_grad:", "    require_grad(result)", "return result"]
    function = compile_function(op.name, ", ".join(parts), lines, names, doc=str(op.schema), module="torch")
    function.op = op  # type: ignore[attr-defined]
    return function


def _named_error(name: str, error: TypeError) -> TypeError:
    message = str(error)
    return TypeError(f"{name}(): {message}") if message.startswith("argument '") else error


def _single_size(name: str, args: tuple[Any, ...]) -> Any:
    """The size of a one-dim tensor, or the sequence that was given."""
    if not args:
        raise TypeError(f'{name}() missing 1 required positional arguments: "size"')
    return args if args[0].__class__ is int else args[0]


def _only_size(op: Op) -> bool:
    positional = [a.name for a in op.schema.arguments if not a.keyword_only and a.name != "self"]
    return positional == ["size"]


def _with_out(op: Op, arguments: tuple[Any, ...], out: Tensor, requires_grad: bool) -> Tensor:
    """Make the tensor in the dtype of `out`, then write it there."""
    given = dict(zip(op.schema.argument_names, arguments, strict=True))
    if given.get("dtype") is not None and given["dtype"] is not out.dtype:
        raise RuntimeError(f"dtype {given['dtype'].scalar_name} does not match dtype of out parameter ({out.dtype.scalar_name})")
    if given.get("device") is not None and _device.device(given["device"]) != out.device:
        raise RuntimeError(f"device {given['device']} does not match device of out parameter ({out.device})")
    given["dtype"], given["device"] = out.dtype, out.device
    write_out(out, op.table[out.device.key](*given.values()))
    if requires_grad:
        out.requires_grad = True
    return out


def _check_options(wanted: Any, pin_memory: Any) -> None:
    if wanted is not None and wanted is not strided:
        if not isinstance(wanted, layout):
            raise TypeError(f"argument 'layout' must be torch.layout, not {type(wanted).__name__}")
        raise NotImplementedError(f"{wanted} tensors are not supported: this package has torch.strided only")
    if pin_memory:
        refuse_pinned()


# --- memory and constants -------------------------------------------------------------------------------------------


def _empty(size: Any, dtype: Any, layout: Any, device: Any, pin_memory: Any, memory_format: Any = None) -> Tensor:
    d = dtype if dtype.__class__ is _dtype.dtype else dtype_of(dtype)
    where = device if device.__class__ is _device.device else device_of(device)
    if memory_format is None or memory_format is contiguous_format:
        return allocate(size, d, where)
    if memory_format is preserve_format:
        raise RuntimeError("memory format option is not supported: preserve_format")
    shape = checked_shape(size)
    return strided_tensor(shape, empty_strides(shape, memory_format), d, where)


def strided_tensor(shape: tuple[int, ...], strides: tuple[int, ...], d: _dtype.dtype, where: _device.device) -> Tensor:
    """Memory laid out with these strides, in elements."""
    if len(shape) != len(strides):
        raise RuntimeError(f"dimensionality of sizes ({len(shape)}) must match dimensionality of strides ({len(strides)})")
    if any(s < 0 for s in strides):
        raise RuntimeError(f"strides must be nonnegative, got {list(strides)}")
    byte_strides = tuple(s * d.itemsize for s in strides)
    if where.key == keys.META:
        from .._backends.meta.adapter import meta_tensor

        return meta_tensor(shape, d, byte_strides)
    length = 0 if 0 in shape else 1 + sum((n - 1) * s for n, s in zip(shape, strides, strict=True))
    memory = np.empty(length, d.np)
    t = wrap(memory, d)
    t._array = np.ndarray(shape, d.np, memory, 0, byte_strides) if length else np.empty(shape, d.np)
    return t


def _empty_strided(size: Any, stride: Any, dtype: Any, layout: Any, device: Any, pin_memory: Any) -> Tensor:
    return strided_tensor(checked_shape(size), tuple(int(s) for s in stride), dtype_of(dtype), device_of(device))


def _empty_permuted(size: Any, physical_layout: Any, dtype: Any, layout: Any, device: Any, pin_memory: Any) -> Tensor:
    shape = checked_shape(size)
    if len(physical_layout) != len(shape):
        raise RuntimeError(
            f"Number of dimensions in size does not match the length of the physical_layout; i.e. len(size) = {len(shape)} "
            f"is not equal to len(physical_layout) = {len(physical_layout)}"
        )
    seen: set[int] = set()
    for p in physical_layout:
        if not 0 <= p < len(shape):
            raise RuntimeError(
                f"Dimension out of range (expected to be between 0 and {len(shape) - 1}, but got {p} at index {list(physical_layout).index(p)}). NB: negative dims not currently supported; file an issue if you want it."
            )
        if p in seen:
            raise RuntimeError("Duplicate dim not allowed")
        seen.add(p)
    strides, step = [0] * len(shape), 1
    for p in reversed(physical_layout):
        strides[p] = step
        step *= max(shape[p], 1)
    return strided_tensor(shape, tuple(strides), dtype_of(dtype), device_of(device))


def _zeros(size: Any, dtype: Any, layout: Any, device: Any, pin_memory: Any) -> Tensor:
    t = allocate(size, dtype if dtype.__class__ is _dtype.dtype else dtype_of(dtype), device or device_of(None))
    return t.zero_()  # type: ignore[no-any-return]


def _ones(size: Any, dtype: Any, layout: Any, device: Any, pin_memory: Any) -> Tensor:
    return allocate(size, dtype_of(dtype), device_of(device)).fill_(1)  # type: ignore[no-any-return]


def _full(size: Any, fill_value: Any, dtype: Any, layout: Any, device: Any, pin_memory: Any) -> Tensor:
    d = _fill_dtype(fill_value) if dtype is None else dtype_of(dtype)
    return allocate(size, d, device_of(device)).fill_(fill_value)  # type: ignore[no-any-return]


def _fill_dtype(value: Any) -> _dtype.dtype:
    if isinstance(value, Tensor):
        return value.dtype if value.dtype.category != _dtype.FLOAT else _dtype.get_default_dtype()
    value = value.item() if isinstance(value, np.generic) else value
    if not isinstance(value, bool | int | float | complex):
        raise TypeError(f"argument 'fill_value' (position 2) must be Number, not {type(value).__name__}")
    return _dtype.of_scalar(value)


def _scalar_tensor(s: Any, dtype: Any, layout: Any, device: Any, pin_memory: Any) -> Tensor:
    return allocate((), dtype_of(dtype), device_of(device)).fill_(s)  # type: ignore[no-any-return]


def _without_arithmetic(kernel: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a kernel that has no floating-point warnings to silence."""
    SILENT.add(kernel)
    return kernel


def _body_of(make: str, d: str, composite: Callable[..., Any], arguments: str, condition: str = "True") -> Body:
    """A shortcut as statements: allocate and fill with `make`, which yields `a` from `size` and `d`; else the long way."""
    lines = [
        "try:",
        f"    d = {d}",
        f"    {make}",
        "except (AttributeError, TypeError, ValueError, MemoryError):",
        f"    result = composite({arguments})",
        "else:",
        *indent(_WRAP),
    ]
    if condition != "True":
        lines = [f"if {condition}:", *indent(lines), "else:", f"    result = composite({arguments})"]
    names = {
        "composite": composite, "dtypes": _dtype, "np_zeros": np.zeros, "np_empty": np.empty, "new": object.__new__,
        "Tensor": Tensor, "Storage": UntypedStorage, "CPU": _device.cpu,
    }  # fmt: skip
    return Body(lines, names)


_OPTION_NAMES = "dtype, layout, device, pin_memory"
_GIVEN = "dtypes._default if dtype is None else dtype"
_OWN = "self.dtype if dtype is None else dtype"
_ZEROS, _ONES = "a = np_zeros({shape}, d.np)", "a = np_empty({shape}, d.np); a.fill(1)"
_DENSE = "memory_format is None and device is None and self._array.flags.c_contiguous"


@_without_arithmetic
def _full_array(size: Any, fill_value: Any, dtype: Any) -> Array:
    if fill_value.__class__ is float and (dtype is None or dtype.__class__ is _dtype.dtype):
        d = _dtype.get_default_dtype() if dtype is None else dtype
        if d.inexact and d.itemsize >= 4:
            array = np.empty(checked_shape(size), d.np)
            array.fill(fill_value)
            return array
    return _full(size, fill_value, dtype, None, _device.cpu, None)._array


empty = factory(
    "empty.memory_format(int[] size, LIKE) -> Tensor",
    _empty,
    shortcut=_body_of("a = np_empty(size, d.np)", _GIVEN, _empty, f"size, {_OPTION_NAMES}, memory_format", "memory_format is None"),
)
zeros = factory(
    "zeros(int[] size, OPTIONS) -> Tensor",
    _zeros,
    shortcut=_body_of(_ZEROS.format(shape="size"), _GIVEN, _zeros, f"size, {_OPTION_NAMES}"),
)
ones = factory(
    "ones(int[] size, OPTIONS) -> Tensor",
    _ones,
    shortcut=_body_of(_ONES.format(shape="size"), _GIVEN, _ones, f"size, {_OPTION_NAMES}"),
)
full = factory("full(int[] size, Scalar fill_value, OPTIONS) -> Tensor", _full, shortcut=_full_array)
scalar_tensor = factory("scalar_tensor(Scalar s, OPTIONS) -> Tensor", _scalar_tensor)
empty_strided = factory("empty_strided(int[] size, int[] stride, OPTIONS) -> Tensor", _empty_strided)
empty_permuted = factory("empty_permuted(int[] size, int[] physical_layout, OPTIONS) -> Tensor", _empty_permuted)


# --- after another tensor -------------------------------------------------------------------------------------------


def like(self: Tensor, dtype: Any = None, device: Any = None, memory_format: Any = None) -> Tensor:
    """Memory for a tensor of the same geometry."""
    d = self.dtype if dtype is None else dtype_of(dtype)
    where = self.device if device is None else device_of(device)
    array = self._array
    if (memory_format is None or memory_format is preserve_format) and not array.flags.c_contiguous:
        return strided_tensor(array.shape, empty_strides(array.shape, preserve_format, self.stride()), d, where)
    if memory_format is None or memory_format is preserve_format or memory_format is contiguous_format:
        return allocate(array.shape, d, where)
    return strided_tensor(array.shape, empty_strides(array.shape, memory_format), d, where)


def _empty_like(self: Tensor, dtype: Any, layout: Any, device: Any, pin_memory: Any, memory_format: Any) -> Tensor:
    return like(self, dtype, device, memory_format)


def _zeros_like(self: Tensor, dtype: Any, layout: Any, device: Any, pin_memory: Any, memory_format: Any) -> Tensor:
    return like(self, dtype, device, memory_format).zero_()  # type: ignore[no-any-return]


def _ones_like(self: Tensor, dtype: Any, layout: Any, device: Any, pin_memory: Any, memory_format: Any) -> Tensor:
    return like(self, dtype, device, memory_format).fill_(1)  # type: ignore[no-any-return]


def _full_like(self: Tensor, fill_value: Any, dtype: Any, layout: Any, device: Any, pin_memory: Any, memory_format: Any) -> Tensor:
    return like(self, dtype, device, memory_format).fill_(fill_value)  # type: ignore[no-any-return]


def _new(self: Tensor, size: Any, dtype: Any, device: Any) -> Tensor:
    return allocate(size, self.dtype if dtype is None else dtype_of(dtype), self.device if device is None else device_of(device))


def _new_empty(self: Tensor, size: Any, dtype: Any, layout: Any, device: Any, pin_memory: Any) -> Tensor:
    return _new(self, size, dtype, device)


def _new_zeros(self: Tensor, size: Any, dtype: Any, layout: Any, device: Any, pin_memory: Any) -> Tensor:
    return _new(self, size, dtype, device).zero_()  # type: ignore[no-any-return]


def _new_ones(self: Tensor, size: Any, dtype: Any, layout: Any, device: Any, pin_memory: Any) -> Tensor:
    return _new(self, size, dtype, device).fill_(1)  # type: ignore[no-any-return]


def _new_full(self: Tensor, size: Any, fill_value: Any, dtype: Any, layout: Any, device: Any, pin_memory: Any) -> Tensor:
    return _new(self, size, dtype, device).fill_(fill_value)  # type: ignore[no-any-return]


def _new_empty_strided(self: Tensor, size: Any, stride: Any, dtype: Any, layout: Any, device: Any, pin_memory: Any) -> Tensor:
    d = self.dtype if dtype is None else dtype_of(dtype)
    where = self.device if device is None else device_of(device)
    return strided_tensor(checked_shape(size), tuple(int(s) for s in stride), d, where)


empty_like = factory(
    "empty_like(Tensor self, LIKE) -> Tensor",
    _empty_like,
    shortcut=_body_of("a = np_empty(self._array.shape, d.np)", _OWN, _empty_like, f"self, {_OPTION_NAMES}, memory_format", _DENSE),
)
zeros_like = factory(
    "zeros_like(Tensor self, LIKE) -> Tensor",
    _zeros_like,
    shortcut=_body_of(_ZEROS.format(shape="self._array.shape"), _OWN, _zeros_like, f"self, {_OPTION_NAMES}, memory_format", _DENSE),
)
ones_like = factory(
    "ones_like(Tensor self, LIKE) -> Tensor",
    _ones_like,
    shortcut=_body_of(_ONES.format(shape="self._array.shape"), _OWN, _ones_like, f"self, {_OPTION_NAMES}, memory_format", _DENSE),
)
full_like = factory("full_like(Tensor self, Scalar fill_value, LIKE) -> Tensor", _full_like)
new_empty = factory("new_empty(Tensor self, int[] size, OPTIONS) -> Tensor", _new_empty, variants="method")
new_zeros = factory(
    "new_zeros(Tensor self, int[] size, OPTIONS) -> Tensor",
    _new_zeros,
    shortcut=_body_of(_ZEROS.format(shape="size"), _OWN, _new_zeros, f"self, size, {_OPTION_NAMES}"),
    variants="method",
)
new_ones = factory(
    "new_ones(Tensor self, int[] size, OPTIONS) -> Tensor",
    _new_ones,
    shortcut=_body_of(_ONES.format(shape="size"), _OWN, _new_ones, f"self, size, {_OPTION_NAMES}"),
    variants="method",
)
new_full = factory("new_full(Tensor self, int[] size, Scalar fill_value, OPTIONS) -> Tensor", _new_full, variants="method")
new_empty_strided = factory(
    "new_empty_strided(Tensor self, int[] size, int[] stride, OPTIONS) -> Tensor", _new_empty_strided, variants="method"
)


# --- ranges ---------------------------------------------------------------------------------------------------------


def _number(x: Any) -> Any:
    """A Scalar argument as a Python number."""
    return x.item() if isinstance(x, Tensor | np.generic) else x


def _range_dtype(dtype: Any, *values: Any) -> _dtype.dtype:
    if dtype is not None:
        return dtype_of(dtype)
    return _dtype.get_default_dtype() if any(isinstance(v, float) for v in values) else _dtype.int64


def _arange(start: Any, end: Any, step: Any, dtype: Any, layout: Any, device: Any, pin_memory: Any) -> Tensor:
    if (
        dtype is None
        and start.__class__ is end.__class__ is step.__class__ is int
        and (end - start) * step > 0
        and device is _device.cpu
    ):
        return wrap(np.arange(start, end, step), _dtype.int64)
    start, end, step = _number(start), _number(end), _number(step)
    d, where = _range_dtype(dtype, start, end, step), device_of(device)
    if d.is_complex or d is _dtype.bool_:
        raise NotImplementedError(f"\"arange_cpu\" not implemented for '{d.scalar_name}'")
    if d.category == _dtype.INTEGER and not (isinstance(start, int) and isinstance(end, int) and isinstance(step, int)):
        start, end, whole_step = int(start), int(end), int(step)
        if whole_step == 0 and step != 0:
            raise ValueError("step must be nonzero")
        step = whole_step
    _check_range(start, end, step)
    n = max(0, math.ceil((end - start) / step)) if d.inexact else max(0, -((start - end) // step))
    if where.key == keys.META:
        return allocate((n,), d, where)
    return wrap(ranges.progression(start, step, n, d), d)


def _check_range(start: Any, end: Any, step: Any) -> None:
    if step == 0:
        raise RuntimeError("step must be nonzero")
    if not math.isfinite(start) or not math.isfinite(end):
        raise RuntimeError(f"unsupported range: {start} -> {end}")
    if (step > 0) != (end >= start) and end != start:
        raise RuntimeError("upper bound and lower bound inconsistent with step sign")


arange_op = factory("arange.start_step(Scalar start, Scalar end, Scalar step=1, OPTIONS) -> Tensor", _arange)
_arange_start = factory(
    "arange.start(Scalar start, Scalar end, OPTIONS) -> Tensor", lambda start, end, *options: _arange(start, end, 1, *options)
)
_arange_end = factory("arange(Scalar end, OPTIONS) -> Tensor", lambda end, *options: _arange(0, end, 1, *options))
_arange_tables = {3: arange_op.op.table, 2: _arange_start.op.table, 1: _arange_end.op.table}  # type: ignore[attr-defined]


def _range_arguments(args: tuple[Any, ...], start: Any, end: Any, step: Any) -> list[Any]:
    """(end), (start, end) or (start, end, step) from arguments of which some are named."""
    given = list(args)
    if start is not None:
        given.insert(0, start)
    if end is not None:
        given.append(end)
    if step is not None:
        if len(given) == 1:
            given.insert(0, 0)
        given.append(step)
    if not given:
        raise TypeError("arange() received an invalid combination of arguments: the end is missing")
    return given


@public("function")
def arange(
    *args: Any, start: Any = None, end: Any = None, step: Any = None, out: Tensor | None = None, dtype: Any = None, layout: Any = None,
    device: Any = None, pin_memory: bool = False, requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """Numbers from `start` (0) up to `end`, which is left out, in steps of `step` (1)."""
    given: Any = args
    if start is not None or end is not None or step is not None or not args:
        given = _range_arguments(args, start, end, step)
    if len(given) > 3:
        raise TypeError(f"arange() takes at most 3 positional arguments ({len(given)} given)")
    if layout is not None or pin_memory:
        _check_options(layout, pin_memory)
    table = _arange_tables[len(given)]
    if out is not None:
        return _with_out(table.op, (*given, dtype, layout, device, None), out, requires_grad)
    where = device_of(device)
    result: Tensor = table[where.key](*given, dtype, layout, where, None)
    if requires_grad:
        require_grad(result)
    return result


def _ends(name: str, start: Any, end: Any) -> tuple[Any, Any]:
    for which, value in (("start", start), ("end", end)):
        if isinstance(value, Tensor) and value.dim():
            raise RuntimeError(
                f"{name} only supports 0-dimensional start and end tensors, but got {which} with {value.dim()} dimension(s)."
            )
    return _number(start), _number(end)


def _linspace(start: Any, end: Any, steps: Any, dtype: Any, layout: Any, device: Any, pin_memory: Any) -> Tensor:
    start, end = _ends("linspace", start, end)
    d, where = _spaced_dtype("linspace", dtype, start, end), device_of(device)
    _check_steps("linspace", start, end, steps)
    if where.key == keys.META:
        return allocate((steps,), d, where)
    return wrap(ranges.spaced(start, end, int(steps), d), d)


def _check_steps(name: str, start: Any, end: Any, steps: Any) -> None:
    if isinstance(steps, bool) or not hasattr(type(steps), "__index__"):
        raise TypeError(
            f"{name}() received an invalid combination of arguments - got ({type(start).__name__}, {type(end).__name__}, "
            f"{type(steps).__name__}), but expected (Number start, Number end, int steps)"
        )
    if steps < 0:
        raise RuntimeError("number of steps must be non-negative")


def _spaced_dtype(name: str, dtype: Any, start: Any, end: Any) -> _dtype.dtype:
    is_complex = isinstance(start, complex) or isinstance(end, complex)
    if dtype is None:
        return _dtype.default_complex() if is_complex else _dtype.get_default_dtype()
    d = dtype_of(dtype)
    if is_complex and not d.is_complex:
        raise RuntimeError(f"torch.{name}(): inferred dtype {_dtype.default_complex()} can't be safely cast to passed dtype {d}")
    return d


def _logspace(start: Any, end: Any, steps: Any, base: float, dtype: Any, layout: Any, device: Any, pin_memory: Any) -> Tensor:
    start, end = _ends("logspace", start, end)
    d, where = _spaced_dtype("logspace", dtype, start, end), device_of(device)
    _check_steps("logspace", start, end, steps)
    if where.key == keys.META:
        return allocate((steps,), d, where)
    return wrap(ranges.spaced_powers(start, end, int(steps), base, d), d)


linspace = factory("linspace(Scalar start, Scalar end, int steps, OPTIONS) -> Tensor", _linspace)
logspace = factory("logspace(Scalar start, Scalar end, int steps, float base=10., OPTIONS) -> Tensor", _logspace)


def _range(start: Any, end: Any, step: Any, dtype: Any, layout: Any, device: Any, pin_memory: Any) -> Tensor:
    start, end, step = _number(start), _number(end), _number(step)
    d, where = dtype_of(dtype), device_of(device)
    _check_range(start, end, step)
    n = math.floor((end - start) / step) + 1
    return (
        allocate((n,), d, where) if where.key == keys.META else wrap(ranges.progression(start, step, n, d, in_registers=False), d)
    )


range_ = factory("range(Scalar start, Scalar end, Scalar step=1, OPTIONS) -> Tensor", _range)


def _eye(n: Any, m: Any, dtype: Any, layout: Any, device: Any, pin_memory: Any) -> Tensor:
    d, where = dtype_of(dtype), device_of(device)
    for name, extent in (("n", n), ("m", m)):
        if extent < 0:
            raise RuntimeError(f"{name} must be greater or equal to 0, got {extent}")
    return allocate((n, m), d, where) if where.key == keys.META else wrap(np.eye(n, m, dtype=d.np), d)


_eye_square = factory("eye(int n, OPTIONS) -> Tensor", lambda n, *options: _eye(n, n, *options))
_eye_m = factory("eye.m(int n, int m, OPTIONS) -> Tensor", _eye)


@public("function")
def eye(n: int, m: int | None = None, *, out: Tensor | None = None, requires_grad: bool = False, **options: Any) -> Tensor:
    """Ones on the diagonal of an n × m matrix of zeros."""
    if m is None:
        return _eye_square(n, out=out, requires_grad=requires_grad, **options)  # type: ignore[no-any-return]
    return _eye_m_public(n, m, out=out, requires_grad=requires_grad, **options)  # type: ignore[no-any-return]


_eye_m_public = public_function(_eye_m.op)  # type: ignore[attr-defined]


def _triangle_indices(row: int, col: int, offset: int, dtype: Any, device: Any, *, lower: bool) -> Tensor:
    for name, extent in (("row", row), ("col", col)):
        if extent < 0:
            raise RuntimeError(f"{name} must be non-negative, got{extent}")
    d, where = _dtype.int64 if dtype is None else dtype_of(dtype), device_of(device)
    found = np.tril_indices(row, offset, col) if lower else np.triu_indices(row, offset, col)
    t = wrap(np.stack(found).astype(d.np, copy=False), d)
    return allocate(t._array.shape, d, where) if where.key == keys.META else t


tril_indices = factory(
    "tril_indices(int row, int col, int offset=0, OPTIONS) -> Tensor",
    lambda row, col, offset, dtype, layout, device, pin_memory: _triangle_indices(row, col, offset, dtype, device, lower=True),
)
triu_indices = factory(
    "triu_indices(int row, int col, int offset=0, OPTIONS) -> Tensor",
    lambda row, col, offset, dtype, layout, device, pin_memory: _triangle_indices(row, col, offset, dtype, device, lower=False),
)
