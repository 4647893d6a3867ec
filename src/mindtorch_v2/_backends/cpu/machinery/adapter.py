"""Generates the body that calls a NumPy kernel: arrays out of the arguments, a tensor around the result.

Four shapes, told apart by the declaration: pointwise (dtypes are promoted), view (the result shares the storage), in place
(the first argument is written), and plain.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from .... import _checks, _device, _dtype, _promotion
from ...._dispatch import keys
from ...._dispatch.codegen import Body, OwnArray, indent
from ...._dispatch.entry import NUMBERS
from ...._dispatch.op import Op, parameter_names
from ...._scipy import load_parts
from ...._storage import UntypedStorage
from ...._tensor import Tensor, wrap, wrap_sized, wrap_view
from ...._writing import check_no_overlap, check_partial_overlap, make_writable
from .blas import keep_to_one_thread
from .dtype_rules import CATEGORIES, refusal
from .floating_errors import IGNORED, SILENT, state_variable
from .foreign_errors import FOREIGN, translated
from .layout import followed
from .splitting import split

if TYPE_CHECKING:
    from ...._types import Array

__all__ = ["cpu_body"]

_NAMES: dict[str, Any] = {
    "Tensor": Tensor,
    "Storage": UntypedStorage,
    "new": object.__new__,
    "ndarray": np.ndarray,
    "asarray": np.asarray,
    "NUMBERS": NUMBERS,
    "CPU": _device.cpu,
    "BOOL": _dtype.bool_,
    "DTYPES": _dtype.FROM_NUMPY,
    "default_dtype": _dtype.get_default_dtype,
    "multiply": np.multiply,
    "promoted": _promotion.promoted,
    "promoted_difference": _promotion.promoted_difference,
    "alpha_array": _promotion.alpha_array,
    "result_type_of": _promotion.result_type_of,
    "operand_arrays": _promotion.operand_arrays,
    "can_cast": _promotion.can_cast,
    "broadcast_shapes": _checks.broadcast_shapes,
    "wrap": wrap,
    "wrap_view": wrap_view,
    "make_writable": make_writable,
    "get_errors": state_variable.get,
    "set_errors": state_variable.set,
    "IGNORED": IGNORED,
    "FOREIGN": FOREIGN,
    "translated": translated,
    "followed": followed,
    "check_partial_overlap": check_partial_overlap,
    "check_no_overlap": check_no_overlap,
    "refusal": refusal,
}

# Written out rather than called: 60 ns less an operator than `wrap(a)`.
_WRAP = [
    "result = new(Tensor)",
    "result._array = a",
    "s = result._storage = Storage()",
    OwnArray("s.array = a"),
    "s.version = 0",
    "result.device = CPU",
    "result.dtype = d",
    "result._node = result._base = result._extra = None",
]
WRAP = [*_WRAP, f"result._keys = {keys.CPU}"]
# Where a result may be large all of a sudden, and where one of the operands is: 0.05 µs more.
WRAP_SIZED = [*_WRAP, f"result._keys = {keys.CPU | keys.LARGE} if a.size >= {keys.LARGE_SIZE} else {keys.CPU}"]
_AS_ARRAY = ["if a.__class__ is not ndarray:", "    a = asarray(a)"]


def cpu_body(op: Op, full: int) -> Body:
    """The body of a call to this operator's NumPy kernel."""
    kernel = op.array_kernels.get(keys.CPU)
    if kernel is None:
        return _missing(op)
    load_parts(kernel)
    keep_to_one_thread()
    called = split(op, kernel) if full & keys.LARGE else kernel
    sized = bool(full & keys.LARGE) or op.name in _ENLARGING or "factory" in op.tags
    body = Body([], {**_NAMES, "kernel": called, "wrap": wrap_sized if sized else wrap})
    if op.pointwise is not None:
        flags = {"number": bool(full & keys.NUMBER), "follows": bool(full & keys.LAYOUT), "sized": sized}
        body.lines = _pointwise(op, kernel, called, **flags)
    elif op.schema.is_inplace:
        call = _quiet(op, called, f"kernel({_array_arguments(op, kernel)})")
        failing = f"raise translated({op.name!r}, e) from None"
        body.lines = [*_disjoint(op), *_writing("self._array", call, failing), "self._storage.version += 1", "result = self"]
        if op.schema.arguments[0].name != "self":
            raise TypeError(f"an in-place operator writes to `self`: {op.schema}")
    elif op.schema.is_view:
        body.lines = _view(op, kernel)
    else:
        body.lines = _plain(op, kernel, called, sized=sized)
    if full & keys.PENDING and op.name == "clone":
        body.lines += [f"if self._keys & {keys.PENDING}:", "    finish(a, self._keys)"]
        body.names["finish"] = _finish
    body.owns_array = body.result_is_new = _makes_one_tensor(op)
    return body


def _finish(array: Array, pending: int) -> None:
    """Do to a copy of a tensor's memory what was pending in the tensor."""
    if pending & keys.CONJUGATE:
        np.conjugate(array, out=array)
    if pending & keys.NEGATIVE:
        np.negative(array, out=array)


# The result may be larger than all arguments by far.
_ENLARGING = frozenset(
    "cat gather im2col index_select repeat repeat_interleave _slow_conv2d_forward slow_conv3d_forward slow_conv_dilated2d slow_conv_dilated3d "
    "slow_conv_transpose3d".split()
)

# In-place operators that read their other tensors while they write: none may share memory with what is written.
_DISJOINT = frozenset(
    "index_add_ index_copy_ index_fill_ index_reduce_ put_ scatter_ scatter_add_ scatter_reduce_ masked_fill_ masked_scatter_".split()
)


def _disjoint(op: Op) -> list[str]:
    if op.name not in _DISJOINT:
        return []
    others = [a.name for a in op.schema.arguments[1:] if a.is_tensor and a.name not in op.numbers]
    return [
        line
        for name in others
        for line in (f"if {name}._storage is self._storage:", f"    check_no_overlap(self._array, {name}._array)")
    ]


def _makes_one_tensor(op: Op) -> bool:
    """Whether the body ends with `WRAP`."""
    return not op.schema.is_inplace and not op.schema.is_view and [r.type for r in op.schema.returns] == ["Tensor"]


def _missing(op: Op) -> Body:
    def raise_missing(*arguments: Any) -> NoReturn:
        raise NotImplementedError(f"{op.qualified_name} has no CPU kernel")

    return Body([f"result = missing({', '.join(op.schema.argument_names)})"], {"missing": raise_missing})


def _array_expression(op: Op, name: str) -> str:
    argument = op.schema.argument(name)
    if name in op.numbers:
        return f"({name} if {name}.__class__ in NUMBERS else {name}._array)"
    if argument.type == "Tensor":
        return f"{name}._array"
    if argument.type == "Tensor?":
        return f"(None if {name} is None else {name}._array)"
    if argument.is_tensor_list:
        return f"[None if t is None else t._array for t in {name}]" if "?" in argument.type else f"[t._array for t in {name}]"
    return name


def _array_arguments(op: Op, kernel: Callable[..., Any]) -> str:
    if isinstance(kernel, np.ufunc):
        return ", ".join(_array_expression(op, a.name) for a in op.schema.arguments if a.is_tensor)
    return ", ".join(_array_expression(op, name) for name in parameter_names(kernel))


def _quiet(op: Op, kernel: Callable[..., Any], statement: str) -> list[str]:
    """A statement that calls the kernel, without NumPy's floating-point warnings (see `floating_errors`)."""
    foreign = [] if op.pointwise is not None else ["except FOREIGN as e:", f"    raise translated({op.name!r}, e)"]
    if (isinstance(kernel, np.ufunc) and op.pointwise is not None) or kernel in SILENT:
        return ["try:", f"    {statement}", *foreign] if foreign else [statement]
    return [
        "errors = get_errors()",
        "try:",
        "    set_errors(IGNORED)",
        f"    {statement}",
        *foreign,
        "finally:",
        "    set_errors(errors)",
    ]


def _plain(op: Op, kernel: Callable[..., Any], called: Callable[..., Any], *, sized: bool) -> list[str]:
    call = f"kernel({_array_arguments(op, kernel)})"
    returns = op.schema.returns
    if _makes_one_tensor(op):
        return [*_quiet(op, called, f"a = {call}"), *_AS_ARRAY, "d = DTYPES[a.dtype]", *(WRAP_SIZED if sized else WRAP)]
    lines = _quiet(op, called, f"result = {call}")
    if len(returns) == 1 and returns[0].type == "Tensor[]":
        return [*lines, "result = tuple([wrap(a) for a in result])"]
    if all(r.type == "Tensor" for r in returns) and returns:
        # a kernel leaves out, as None, the gradients that its `output_mask` does not ask for
        return [*lines, "result = tuple([None if a is None else wrap(a) for a in result])"]
    return lines


def _view(op: Op, kernel: Callable[..., Any]) -> list[str]:
    call = f"kernel({_array_arguments(op, kernel)})"
    base = next(a.name for a in op.schema.arguments if a.alias)
    if op.schema.returns[0].type == "Tensor[]":
        return [f"result = tuple([wrap_view(a, {base}) for a in {call}])"]
    return [
        "result = new(Tensor)",
        f"a = result._array = {call}",
        f"result._storage = {base}._storage",
        "result.dtype = DTYPES[a.dtype]" if "dtype_view" in op.tags else f"result.dtype = {base}.dtype",
        f"result.device = {base}.device",
        f"result._keys = {base}._keys & {keys.OF_VIEWS}",
        f"b = {base}._base",
        f"result._base = {base} if b is None else b",
        "result._node = result._extra = None",
    ]


def _pointwise(
    op: Op, kernel: Callable[..., Any], called: Callable[..., Any], *, number: bool, follows: bool, sized: bool
) -> list[str]:
    """Operands of one dtype, the kernel, and a result of that dtype (or bool).

    `op.pointwise`: "same" computes in the promoted dtype, "float" makes integers floating first, "bool" yields bools,
    "real" is "same" whose complex result is real.
    """
    operands = [a.name for a in op.schema.arguments if a.is_tensor]
    slots = ["x_", "y_", "z_"][: len(operands)]  # names that no schema uses
    if len(operands) == 1:
        lines = [f"x_ = {operands[0]}._array", f"d = {operands[0]}.dtype"]
    elif len(operands) == 2:
        lines = _two_operands(op, *operands, number=number)
    else:
        joined = ", ".join(operands)
        lines = [
            f"d = {operands[0]}.dtype",
            f"if {' and '.join(f'{x}.dtype is d' for x in operands[1:])}:",
            *(f"    {slot} = {x}._array" for slot, x in zip(slots, operands, strict=True)),
            "else:",
            f"    d = result_type_of(({joined}))",
            f"    {', '.join(slots)} = operand_arrays(d, {joined})",
        ]
    for scalar in (a.name for a in op.schema.arguments if a.type == "Scalar" and a.name in op.numbers):
        lines += [
            f"if not d.inexact or {scalar}.__class__ is complex:",
            *([f"    promoted_difference({operands[0]}, {scalar})"] if op.name == "sub" else []),  # refuses bools
            f"    d = result_type_of(({', '.join((*operands, scalar))},))",
            f"    {', '.join(slots)}, = operand_arrays(d, {', '.join(operands)})",
        ]
    if op.pointwise == "float":
        lines += ["if not d.inexact:", "    d = default_dtype()", *(f"    {s} = {s}.astype(d.np)" for s in slots)]
    if op.refuses is not None:
        name, kinds = op.refuses
        test = " or ".join(f"d.category == {CATEGORIES[k]}" for k in kinds)
        lines += [f"if {test}:", f"    raise refusal({name!r}, d)"]
    if op.schema.is_inplace:
        if not number:
            for other in operands[1:]:
                lines += [
                    f"if {other}._storage is self._storage and {other} is not self:",
                    f"    check_partial_overlap(self._array, {other}._array)",
                ]
        return lines + _pointwise_inplace(op, kernel, called, operands, slots)
    call = _call(lines, op, kernel, operands, slots)
    compute = _quiet(op, called, f"a = {call}")
    lines += ["try:", *indent(compute)]
    if len(slots) > 1:
        lines += ["except ValueError:", f"    broadcast_shapes({', '.join(f'{s}.shape' for s in slots)})", "    raise"]
    lines += _unsupported(op, kernel)
    lines += _AS_ARRAY
    if follows and len(slots) > 1 and not number:
        lines.append(f"a = followed(a, {', '.join(slots)})")
    if op.pointwise == "bool":
        lines.append("d = BOOL")
    elif op.pointwise == "real":
        lines.append("d = d.to_real()")
    return lines + (WRAP_SIZED if sized else WRAP)


def _two_operands(op: Op, first: str, second: str, *, number: bool) -> list[str]:
    """Two operands as arrays `x_` and `y_` of dtype `d`. A number adopts the tensor's dtype unless it is of a higher category."""
    promote = f"x_, y_, d = {'promoted_difference' if op.name in ('sub', 'sub_') else 'promoted'}({first}, {second})"
    if not number:
        return [
            f"if {first}.dtype is not {second}.dtype:",
            f"    {promote}",
            "else:",
            f"    x_ = {first}._array",
            f"    y_ = {second}._array",
            f"    d = {first}.dtype",
        ]
    if second not in op.numbers or first in op.numbers:
        return [promote]
    floating = []
    if op.pointwise == "float":
        # before the number takes the dtype: 300 is no uint8
        floating = [
            f"if not d.inexact and {second}.__class__ is not complex:",
            "    d = default_dtype()",
            "    x_ = x_.astype(d.np)",
        ]
    return [
        f"d = {first}.dtype",
        f"x_ = {first}._array",
        *floating,
        f"if {second}.__class__ is float and d.inexact or {second}.__class__ is int and d.category:",
        "    try:",
        f"        y_ = asarray({second}, d.np)",
        "    except OverflowError:",
        f"        {promote}",
        "else:",
        f"    {promote}",
    ]


def _call(lines: list[str], op: Op, kernel: Callable[..., Any], operands: list[str], slots: list[str], out: str = "") -> str:
    """The kernel's call; what it needs before is added to `lines`."""
    if isinstance(kernel, np.ufunc):
        if op.alpha:
            # torch: complex numbers are multiplied by an alpha of one as well, which makes a NaN beside an infinity
            lines += [
                "if alpha != 1 or d.is_complex or alpha.__class__ is not int:",
                "    y_ = multiply(y_, alpha_array(alpha, d))",
            ]
        return f"kernel({', '.join(slots)}{out})"
    by_name = dict(zip(operands, slots, strict=True))
    return f"kernel({', '.join(by_name.get(n, n) for n in parameter_names(kernel))})"


def _pointwise_inplace(
    op: Op, kernel: Callable[..., Any], called: Callable[..., Any], operands: list[str], slots: list[str]
) -> list[str]:
    lines = ["t = self._array"]
    if op.pointwise != "bool":
        lines += [
            "if d is not self.dtype and not can_cast(d, self.dtype):",
            '    raise RuntimeError(f"result type {d.scalar_name} can\'t be cast to the desired output type {self.dtype.scalar_name}")',
        ]
    if isinstance(kernel, np.ufunc):
        call = _call(lines, op, kernel, operands, slots, out=", out=t, casting='unsafe'")
        compute = _quiet(op, called, call)
    else:
        # checked rather than left to NumPy, which drops leading dimensions of one
        compute = [
            *_quiet(op, called, "a = " + _call(lines, op, kernel, operands, slots)),
            "if a.shape != t.shape:",
            f"    raise inplace_shape_error(t, {', '.join(slots)})",
            "t[...] = a",
        ]
    lines += [
        *_writing("t", compute, "raise inplace_shape_error(t, " + ", ".join(slots) + ") from None"),
        *_unsupported(op, kernel),
        "self._storage.version += 1",
        "result = self",
    ]
    return lines


def _writing(target: str, compute: list[str], otherwise: str) -> list[str]:
    """Statements that write to an array, once more if it was read-only without need; `otherwise` follows another ValueError."""
    return [
        "try:",
        *indent(compute),
        "except ValueError as e:",
        f"    if {target}.flags.writeable:",
        f"        {otherwise}",
        f"    make_writable({target})",
        *indent(compute),
    ]


def _unsupported(op: Op, kernel: Callable[..., Any]) -> list[str]:
    if isinstance(kernel, np.ufunc):
        return ["except TypeError:", f"    raise unsupported_dtype({op.name!r}, d) from None"]
    return ["except BaseException:", "    raise"] if len(op.schema.tensor_arguments) == 1 and not op.schema.is_inplace else []


def unsupported_dtype(name: str, d: _dtype.dtype) -> Exception:
    """The complaint about a dtype that a NumPy function does not take."""
    base = name.rstrip("_")
    if d is _dtype.bool_ and base in ("sub", "rsub"):
        return RuntimeError(
            "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or `logical_xor()` operator instead."
        )
    if d is _dtype.bool_ and base == "neg":
        return RuntimeError(
            "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to invert a mask, use the `~` or "
            "`logical_not()` operator instead."
        )
    return NotImplementedError(f"\"{base}_cpu\" not implemented for '{d.scalar_name}'")


def inplace_shape_error(target: Array, *operands: Any) -> RuntimeError:
    shape = _checks.broadcast_shapes(*(x.shape for x in operands))
    return RuntimeError(f"output with shape {list(target.shape)} doesn't match the broadcast shape {list(shape)}")


_NAMES["inplace_shape_error"] = inplace_shape_error
_NAMES["unsupported_dtype"] = unsupported_dtype
