"""`factory(...)`: declares an operator that makes tensors, and the function users call for it.

Those functions are generated here, because `requires_grad`, `out` and sizes written out (`zeros(2, 3)`) are not in the schemas.
"""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np

from ... import _device, _dtype
from ..._backends.cpu.machinery.adapter import WRAP_SIZED
from ..._creation import device_of, refuse_pinned, require_grad
from ..._dispatch import keys
from ..._dispatch.codegen import Body, Source, indent
from ..._dispatch.lazy import lazy_function
from ..._dispatch.op import Entry, Op
from ..._dispatch.schema import parse
from ..._memory_format import layout, strided
from ..._storage import UntypedStorage
from ..._tensor import Tensor, wrap
from .declare import public, register
from .out import OPTIONS, out_variant

__all__ = ["SPARSE_FACTORIES", "check_options", "factory", "inlined", "public_function", "with_out"]

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
    schema: str,
    composite: Callable[..., Any],
    *,
    cpu: Callable[..., Any] | Body | None = None,
    variants: str = "function",
    tags: tuple[str, ...] = (),
) -> Entry:
    """Declare a factory operator and export the function that users call; returns that, or the entry of a further overload.

    `cpu` is its kernel, over arrays or as statements; `composite` makes it on other devices, and on the CPU where there is no kernel.
    Tag "keeps_out_shape": an `out` with as many elements is filled in its own shape.
    """
    for placeholder, options in _PLACEHOLDERS.items():
        schema = schema.replace(placeholder, options)
    parsed = parse(schema)
    declared = Op(parsed, composite=composite, cpu=None if isinstance(cpu, Body) else cpu, tags=("factory", *tags))
    if isinstance(cpu, Body):
        declared.kernels[keys.CPU] = cpu
    entry = register(declared)
    if not parsed.overload or parsed.name == "empty":
        function = public_function(declared)
        public(variants)(function)
        return function
    return entry


def public_function(op: Op) -> Entry:
    """The Python signature of a factory: its schema's, with `size` variadic, `out`, and `requires_grad`."""
    names: dict[str, Any] = {
        "table": op.table, "defaults": _device.defaults_in_force, "CPU": _device.cpu, "device_of": device_of, "check_options": check_options,
        "require_grad": require_grad, "named_error": functools.partial(_named_error, op.name), "single_size": functools.partial(_single_size, op.name), "MISSING": _MISSING, "with_out": with_out, "op": op,
    }  # fmt: skip
    arguments = [a.name for a in op.schema.arguments]
    from_self = arguments[0] == "self"
    parts: list[str] = []
    is_variadic = _only_size(op) and op.schema.argument("size").type == "int[]"
    starred = False
    for a in op.schema.arguments:
        if a.name == "size" and is_variadic:
            parts += ["*args", "size=MISSING"]
            starred = True
            continue
        if a.keyword_only and not starred:
            parts.append("*")
            starred = True
        name = "input" if a.name == "self" else a.name
        if a.has_default:
            names[f"default_{name}"] = False if name == "pin_memory" else a.default  # torch: False in Python's signatures
            parts.append(f"{name}=default_{name}")
        else:
            parts.append(name)
    parts += ["requires_grad=False"] + ([] if from_self else ["out=None"])
    lines = []
    if is_variadic:
        lines += [
            "if size is MISSING:",
            "    size = args if len(args) > 1 else single_size(args)",
        ]
    passed = ", ".join("input" if a == "self" else a for a in arguments)
    # of another layout only where such a factory is; all others refuse it
    layouts = [
        "    if layout in made_in:",
        f"        return in_layout(made_in[layout], ({passed},), {'None' if from_self else 'out'}, requires_grad)",
    ]
    lines += ["if layout is not None or pin_memory:", *layouts, "    check_options(layout, pin_memory)"]
    names |= {"made_in": SPARSE_FACTORIES[op.name], "in_layout": functools.partial(_in_layout, op)}
    if from_self:
        lines += [
            "if not isinstance(input, Tensor):",
            "    raise TypeError(f\"argument 'input' (position 1) must be Tensor, not {input.__class__.__name__}\")",
            # with the key of another device added, the kernel of neither applies
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
    lines += ["except NarrowTypeError as error:", f"    result = converted(op, [{passed}], error)"]
    names |= {"NarrowTypeError": _dtype.NarrowTypeError, "converted": _converted}
    lines += ["if requires_grad:", "    require_grad(result)", "return result"]
    source = Source(", ".join(parts), lines, names)
    function: Entry = lazy_function(op.name, lambda: source, doc=str(op.schema), module="torch")
    function.op = op
    return function


# Factories whose results can be made in another type and converted; of types without values, only those that need none.
_CONVERTED = frozenset("ones full ones_like full_like new_ones new_full".split())
_DRAWN = frozenset("rand randn rand_like randn_like".split())  # of complex numbers: torch draws no others of these types
_AS_BITS = frozenset("empty zeros empty_like zeros_like new_empty new_zeros empty_strided new_empty_strided".split())


def _converted(op: Op, arguments: list[Any], error: _dtype.NarrowTypeError) -> Tensor:
    """The result for a type that is kept as bits: made in another type, and converted or seen as this one."""
    d = error.dtype
    if op.name in _DRAWN and d.is_complex:
        return _drawn(op, dict(zip(op.schema.argument_names, arguments, strict=True)), d)
    if op.name not in _AS_BITS and (op.name not in _CONVERTED or d.decoded is None):
        raise error
    wide = _dtype.complex64 if d.is_complex else _dtype.float32
    arguments[op.schema.argument_names.index("dtype")] = _dtype.FROM_NUMPY[d.bits] if op.name in _AS_BITS else wide
    made = op.table[keys.CPU](*arguments)
    return made.view(d) if op.name in _AS_BITS else made.to(d)


def _drawn(op: Op, arguments: dict[str, Any], d: _dtype.dtype) -> Tensor:
    """Random complex numbers of half precision: their parts are drawn, as torch draws them."""
    size = arguments["self"].shape if "self" in arguments else arguments["size"]
    shape = (size,) if isinstance(size, int) else tuple(size)
    parts = wrap(np.empty((*shape, 2), np.float16))
    generator = arguments.get("generator")
    if op.name.startswith("randn"):
        parts.normal_(0.0, 0.5**0.5, generator=generator)
    else:
        parts.uniform_(0.0, 1.0, generator=generator)
    return parts.view(d).squeeze(-1)


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


def with_out(op: Op, arguments: tuple[Any, ...], out: Tensor, requires_grad: bool) -> Tensor:
    """Make the tensor in the dtype of `out`, then write it there."""
    given = dict(zip(op.schema.argument_names, arguments, strict=True))
    if given.get("dtype") is not None and given["dtype"] is not out.dtype:
        raise RuntimeError(f"dtype {given['dtype'].scalar_name} does not match dtype of out parameter ({out.dtype.scalar_name})")
    if given.get("device") is not None and _device.device(given["device"]) != out.device:
        raise RuntimeError(f"device {given['device']} does not match device of out parameter ({out.device})")
    out_variant(op).table[out.device.key](*[value for name, value in given.items() if name not in OPTIONS], out)
    if requires_grad:
        out.requires_grad = True
    return out


# The factories of tensors that are not strided, by name and layout. They are declared with the sparse operators.
SPARSE_FACTORIES: defaultdict[str, dict[layout, Callable[..., Tensor]]] = defaultdict(dict)


def _in_layout(op: Op, make: Callable[..., Tensor], arguments: tuple[Any, ...], out: Tensor | None, requires_grad: bool) -> Tensor:
    """A tensor of a sparse layout, from the arguments of a factory."""
    given = dict(zip(op.schema.argument_names, arguments, strict=True))
    if out is not None:
        raise NotImplementedError(
            f"{op.name}: the result of layout {given['layout']} is a new tensor; leave out the argument 'out'"
        )
    if given["pin_memory"]:
        refuse_pinned()
    made = make(given)
    if requires_grad:
        require_grad(made)
    return made


def check_options(wanted: layout | None, pin_memory: bool | None) -> None:
    if wanted is not None and wanted is not strided:
        if not isinstance(wanted, layout):
            raise TypeError(f"argument 'layout' must be torch.layout, not {type(wanted).__name__}")
        raise NotImplementedError(
            f"factories make torch.strided tensors only, not {wanted}; for coordinates and values, call to_sparse() on the result"
        )
    if pin_memory:
        refuse_pinned()


def inlined(make: str, d: str, composite: Callable[..., Any], arguments: str, condition: str = "True") -> Body:
    """A kernel as statements: allocate and fill with `make`, which yields `a` from `size` and `d`; unusual arguments go to `composite`."""
    lines = [
        "try:",
        f"    d = {d}",
        f"    {make}",
        "except (AttributeError, TypeError, ValueError, MemoryError):",
        f"    result = composite({arguments})",
        "else:",
        *indent(WRAP_SIZED),
    ]
    if condition != "True":
        lines = [f"if {condition}:", *indent(lines), "else:", f"    result = composite({arguments})"]
    names = {
        "composite": composite, "dtypes": _dtype, "np_zeros": np.zeros, "np_empty": np.empty, "new": object.__new__,
        "Tensor": Tensor, "Storage": UntypedStorage, "CPU": _device.cpu,
    }  # fmt: skip
    return Body(lines, names, calls_operators=True, owns_array=True)
