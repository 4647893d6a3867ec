"""`_foreach_*`: one operator over lists of tensors. On the CPU each calls the plain operator once for every tensor, as in ATen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..._backends.cpu.machinery.dtype_rules import refuse
from ..._dispatch import registry
from ..._dispatch.entry import NUMBERS
from ..._dispatch.op import Entry
from ..._tensor import Tensor
from ..._types import Number, OptionalDType, TensorOrTensors
from ..elementwise.arithmetic import mul_number_, pow_of_scalar
from ..machinery.declare import op, public
from .foreach_gradients import element_formulas, node_of

UNARY = (
    "abs acos asin atan ceil cos cosh erf erfc exp expm1 floor frac lgamma log log10 log1p log2 neg reciprocal round rsqrt sigmoid "
    "sign sin sinh sqrt tan tanh trunc"
)
BINARY = {"add": "alpha", "sub": "alpha", "mul": "", "div": ""}
LIMITS = {"clamp_min": "clamp_min", "clamp_max": "clamp_max", "maximum": "clamp_min", "minimum": "clamp_max"}
TensorList = Sequence[Tensor]


_NO_INPLACE_DERIVATIVE = {f"{name}.{kind}" for name in ("maximum", "minimum") for kind in ("Scalar", "ScalarList")}
_overloads: dict[str, dict[str, Entry]] = {}  # function name → overload → entry


def _declare(name: str, arguments: str, compute: Callable[..., Any], element: str = "", **names: str) -> None:
    """Declare `_foreach_name` and its in-place variant. `compute(inplace)` yields the function over lists.

    `element`, `names`: the plain operator whose derivative it has for each tensor, and what its arguments are called here.
    """
    base, _, overload = name.partition(".")
    dot = f".{overload}" if overload else ""
    rest = f", {arguments}" if arguments else ""
    schema = f"_foreach_{base}{dot}(Tensor[] self{rest}) -> Tensor[]"
    grad = element_formulas(schema, element, {"self": "self", **names}) if element else None
    tags = () if element else ("no_derivative",)
    # torch: these have a derivative out of place only
    no_inplace = ("no_derivative",) if not element or name in _NO_INPLACE_DERIVATIVE else ()
    plain = op(schema, composite=compute(""), grad=grad, node=node_of(name), variants="function", tags=tags)
    inplace = op(
        f"_foreach_{base}_{dot}(Tensor(a!)[] self{rest}) -> ()", composite=compute("_"), variants="function", tags=no_inplace
    )
    if overload:
        _overloads.setdefault(f"_foreach_{base}", {})[overload] = plain
        _overloads.setdefault(f"_foreach_{base}_", {})[overload] = inplace
    else:
        _export_inplace(inplace)


def _export_inplace(entry: Entry) -> None:
    """The public function of an in-place operator with one overload: torch's operator returns nothing, its function the list."""

    def foreach_(self: Tensor, *args: Any, **kwargs: Any) -> TensorOrTensors:
        entry(self, *args, **kwargs)
        return self

    foreach_.__name__ = foreach_.__qualname__ = entry.op.name
    foreach_.__doc__ = str(entry.op.schema)
    public("function", name=entry.op.name)(foreach_)


def _overload_of(last: Any) -> str:
    """Return the overload that the last operand means: a number, a tensor, or a list of either."""
    if last.__class__ in NUMBERS:
        return "Scalar"
    if isinstance(last, Tensor):
        return "Tensor"
    if isinstance(last, list | tuple):
        return "List" if last and isinstance(last[0], Tensor) else "ScalarList"  # torch: a list without elements is one of numbers
    return "Scalar"


def _export(name: str, entries: dict[str, Entry], operands: int) -> None:
    """The public function: tells overloads apart by its last operand, in a tenth of the general resolver's time."""

    inplace = name.endswith("_")

    def foreach(self: Tensor, *args: Any, **kwargs: Any) -> TensorOrTensors:
        if len(args) > operands or kwargs.keys() & LAST_OPERANDS or len(args) < operands:
            args, kwargs = _by_name(name, operands, args, kwargs)
        chosen = _overload_of(args[operands - 1]) if len(args) >= operands else "Scalar"
        if chosen == "ScalarList" and not args[operands - 1]:
            if "ScalarList" in entries and self:
                raise RuntimeError("Tensor list must have same number of elements as scalar list.")
            chosen = "List"
        if chosen == "Tensor" and chosen not in entries:
            args, chosen = (*args[:-1], args[-1].item()), "Scalar"
        if self.__class__ in NUMBERS:
            chosen = "ScalarAndTensor"
        entry = entries.get(chosen)
        if entry is None:
            raise TypeError(f"{name}() received an invalid combination of arguments")
        result = entry(self, *args, **kwargs)
        return self if inplace else result

    foreach.__name__ = foreach.__qualname__ = name
    foreach.__doc__ = "\n".join(str(e.op.schema) for e in entries.values())
    public("function", name=name)(foreach)


LAST_OPERANDS = frozenset(
    {"other", "scalar", "scalars", "exponent", "value", "weight", "weights", "tensors1", "tensor1", "tensor2"}
)


def _by_name(name: str, operands: int, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Operands given by keyword in their places."""
    rest = dict(kwargs)
    given = list(args)
    for keyword in ("tensor1", "tensors1", "tensor2", "other", "scalar", "scalars", "exponent", "value", "weight", "weights"):
        if keyword in rest:
            given.append(rest.pop(keyword))
    if len(given) > operands or len(given) < operands - (name.startswith("_foreach_addc")):
        raise TypeError(f"{name}() takes {operands + 1} operands, {len(given) + 1} were given")
    return tuple(given), rest


def check_lengths(self: TensorList, *others: Sequence[Any]) -> None:
    for other in others:
        if len(other) != len(self):
            # an empty list has no elements to tell of what kind it is
            if isinstance((other or self or (0,))[0], Tensor):
                raise RuntimeError(f"Tensor lists must have the same number of tensors, got {len(self)} and {len(other)}")
            raise RuntimeError(f"Tensor list must have same number of elements as scalar list, got {len(self)} and {len(other)}")
    if not self:
        raise RuntimeError("Tensor list must have at least one tensor.")


def _finish(results: list[Tensor], suffix: str) -> tuple[Tensor, ...] | None:
    return None if suffix else tuple(results)


def _number_method(name: str) -> Callable[..., Tensor]:
    """The operator that takes a number. torch: `mul_` has an overload for numbers, which profiles show to call `mul`."""
    return mul_number_ if name == "mul_" else _method(name)


def _method(name: str) -> Callable[..., Tensor]:
    return getattr(Tensor, name)


def _unary(name: str) -> Callable[[str], Callable[..., Any]]:
    def compute(suffix: str) -> Callable[..., Any]:
        def run(self: TensorList) -> tuple[Tensor, ...] | None:
            check_lengths(self)
            method = _method(name + suffix)
            return _finish([method(t) for t in self], suffix)

        return run

    return compute


def _with_scalar(name: str) -> Callable[[str], Callable[..., Any]]:
    def compute(suffix: str) -> Callable[..., Any]:
        def run(self: TensorList, scalar: Number) -> tuple[Tensor, ...] | None:
            check_lengths(self)
            method = _number_method(name + suffix)
            return _finish([method(t, scalar) for t in self], suffix)

        return run

    return compute


def _with_list(name: str) -> Callable[[str], Callable[..., Any]]:
    """The other operands, one for each tensor: tensors or numbers."""

    def compute(suffix: str) -> Callable[..., Any]:
        def run(self: TensorList, other: Sequence[Any]) -> tuple[Tensor, ...] | None:
            check_lengths(self, other)
            find = _method if other and isinstance(other[0], Tensor) else _number_method
            method = find(name + suffix)
            return _finish([method(t, x) for t, x in zip(self, other, strict=True)], suffix)

        return run

    return compute


def _with_alpha(name: str, *, one: bool) -> Callable[[str], Callable[..., Any]]:
    def compute(suffix: str) -> Callable[..., Any]:
        def run(self: TensorList, other: Any, alpha: Number) -> tuple[Tensor, ...] | None:
            if one:
                _check_one(other)
            others = [other] * len(self) if one else other
            check_lengths(self, others)
            method = _method(name + suffix)
            return _finish([method(t, x, alpha=alpha) for t, x in zip(self, others, strict=True)], suffix)

        return run

    return compute


def _check_one(other: Tensor) -> None:
    if other.dim():
        raise RuntimeError(f"scalar tensor expected to be 0 dim but it has {other.dim()} dimensions and {other.numel()} elements.")


def _one_tensor(name: str) -> Callable[[str], Callable[..., Any]]:
    def compute(suffix: str) -> Callable[..., Any]:
        def run(self: TensorList, other: Tensor) -> tuple[Tensor, ...] | None:
            check_lengths(self)
            _check_one(other)
            method = _method(name + suffix)
            return _finish([method(t, other) for t in self], suffix)

        return run

    return compute


for _name in UNARY.split():
    _declare(_name, "", _unary(_name), _name)
for _name, _alpha in BINARY.items():
    if _alpha:
        _declare(
            f"{_name}.List",
            "Tensor[] other, *, Scalar alpha=1",
            _with_alpha(_name, one=False),
            f"{_name}.Tensor",
            other="other",
            alpha="alpha",
        )
        if _name == "add":
            _declare(
                "add.Tensor",
                "Tensor other, *, Scalar alpha=1",
                _with_alpha(_name, one=True),
                "add.Tensor",
                other="other",
                alpha="alpha",
            )
    else:
        _declare(f"{_name}.List", "Tensor[] other", _with_list(_name), f"{_name}.Tensor", other="other")
        _declare(f"{_name}.Tensor", "Tensor other", _one_tensor(_name), f"{_name}.Tensor", other="other")
    _declare(f"{_name}.Scalar", "Scalar scalar", _with_scalar(_name), f"{_name}.Tensor", other="scalar", alpha="1")
    _declare(f"{_name}.ScalarList", "Scalar[] scalars", _with_list(_name), f"{_name}.Tensor", other="scalars", alpha="1")
for _name, _target in LIMITS.items():
    _limit, _one = ("max" if "max" in _name else "min", _name) if "clamp" in _name else ("other", _name)
    _many = f"{_name}.Tensor" if "clamp" in _name else _name
    _declare(f"{_name}.List", "Tensor[] other", _with_list(_target), _many, **{_limit: "other"})
    _declare(f"{_name}.Scalar", "Scalar scalar", _with_scalar(_target), _one, **{_limit: "scalar"})
    _declare(f"{_name}.ScalarList", "Scalar[] scalars", _with_list(_target), _one, **{_limit: "scalars"})


_declare("pow.List", "Tensor[] exponent", _with_list("pow"), "pow.Tensor_Tensor", exponent="exponent")
_declare("pow.Scalar", "Scalar exponent", _with_scalar("pow"), "pow.Tensor_Scalar", exponent="exponent")
_declare("pow.ScalarList", "Scalar[] exponent", _with_list("pow"), "pow.Tensor_Scalar", exponent="exponent")


def _pow_of_scalar(self: Number, exponent: TensorList) -> tuple[Tensor, ...]:
    return tuple(pow_of_scalar(self, t) for t in _some(exponent))


_POW_OF_SCALAR = "_foreach_pow.ScalarAndTensor(Scalar self, Tensor[] exponent) -> Tensor[]"
_pow_scalar = op(
    _POW_OF_SCALAR,
    composite=_pow_of_scalar,
    grad=element_formulas(_POW_OF_SCALAR, "pow.Scalar", {"self": "self", "exponent": "exponent"}),
    node=node_of("pow.ScalarAndTensor"),
    variants="function",
)


def _ternary(name: str, *, keyword: str) -> Callable[..., Callable[[str], Callable[..., Any]]]:
    """`name(self, first, second, keyword=value)`, with one value or one for each tensor."""

    def with_values(values_of: Callable[[TensorList, Any], Sequence[Any]]) -> Callable[[str], Callable[..., Any]]:
        def compute(suffix: str) -> Callable[..., Any]:
            def run(self: TensorList, first: TensorList, second: TensorList, value: Any) -> tuple[Tensor, ...] | None:
                values = values_of(self, value)
                check_lengths(self, first, second, values)
                method = _method(name + suffix)
                return _finish(
                    [method(t, a, b, **{keyword: v}) for t, a, b, v in zip(self, first, second, values, strict=True)], suffix
                )

            return run

        return compute

    return with_values


def _numbers_of(self: TensorList, value: Tensor) -> Sequence[Any]:
    if value.dim() != 1:
        raise RuntimeError(f"Expected packed scalar Tensor to be of dimension 1. Got {value.dim()} instead.")
    if not value._array.flags.c_contiguous:
        raise RuntimeError("Expected scalars to be contiguous")
    return value.tolist()


for _name in ("addcmul", "addcdiv"):
    _make = _ternary(_name, keyword="value")
    _declare(f"{_name}.Tensor", "Tensor[] tensor1, Tensor[] tensor2, Tensor scalars", _make(_numbers_of))
    _pair = {"tensor1": "tensor1", "tensor2": "tensor2"}
    _declare(
        f"{_name}.Scalar",
        "Tensor[] tensor1, Tensor[] tensor2, Scalar value=1",
        _make(lambda self, value: [value] * len(self)),
        _name,
        value="value",
        **_pair,
    )
    _declare(
        f"{_name}.ScalarList",
        "Tensor[] tensor1, Tensor[] tensor2, Scalar[] scalars",
        _make(lambda self, value: value),
        _name,
        value="scalars",
        **_pair,
    )


def _lerp(values_of: Callable[[TensorList, Any], Sequence[Any]]) -> Callable[[str], Callable[..., Any]]:
    def compute(suffix: str) -> Callable[..., Any]:
        def run(self: TensorList, tensors1: TensorList, weight: Any) -> tuple[Tensor, ...] | None:
            weights = values_of(self, weight)
            check_lengths(self, tensors1, weights)
            method = _method("lerp" + suffix)
            return _finish([method(t, end, w) for t, end, w in zip(self, tensors1, weights, strict=True)], suffix)

        return run

    return compute


_declare(
    "lerp.List",
    "Tensor[] tensors1, Tensor[] weights",
    _lerp(lambda self, value: value),
    "lerp.Tensor",
    end="tensors1",
    weight="weights",
)
_declare(
    "lerp.Scalar",
    "Tensor[] tensors1, Scalar weight",
    _lerp(lambda self, value: [value] * len(self)),
    "lerp.Scalar",
    end="tensors1",
    weight="weight",
)
_declare(
    "lerp.ScalarList",
    "Tensor[] tensors1, Scalar[] weight",
    _lerp(lambda self, value: value),
    "lerp.Scalar",
    end="tensors1",
    weight="weight",
)


def _copy_(self: TensorList, src: TensorList, non_blocking: bool) -> None:
    check_lengths(self, src)
    for t, s in zip(self, src, strict=True):
        t.copy_(s, non_blocking)


def _zero_(self: TensorList) -> None:
    for t in _some(self):
        t.zero_()


def _norm(self: TensorList, ord: float, dtype: OptionalDType) -> tuple[Tensor, ...]:
    entry = registry.entry("linalg_vector_norm")
    return tuple(entry(t, ord, None, False, dtype=dtype) for t in _some(self))


_export_inplace(
    op(
        "_foreach_copy_(Tensor(a!)[] self, Tensor[] src, bool non_blocking=False) -> ()",
        composite=_copy_,
        variants="function",
        tags=("no_derivative",),
    )
)
_export_inplace(op("_foreach_zero_(Tensor(a!)[] self) -> ()", composite=_zero_, variants="function"))


def _some(self: TensorList) -> TensorList:
    check_lengths(self)
    return self


def _power_sum(t: Tensor, ord: float, dtype: OptionalDType) -> Tensor:
    refuse("powsum_cpu", t, "bi")
    return t.abs().pow(ord).sum(dtype=dtype)


def _products(self: TensorList, mat2: TensorList) -> tuple[Tensor, ...]:
    if not self:
        raise RuntimeError("_foreach_mm requires non-empty tensor lists")
    if len(self) != len(mat2):
        raise RuntimeError("_foreach_mm: self and mat2 must have the same number of tensors")
    return tuple(a.mm(b) for a, b in zip(self, mat2, strict=True))


def _list_op(schema: str, composite: Callable[..., Any], element: str = "", **names: str) -> None:
    """Declare a foreach operator that has no in-place variant."""
    grad = element_formulas(schema, element, {"self": "self", **names}) if element else None
    name = schema.partition("(")[0].removeprefix("_foreach_")
    tags = () if element else ("no_derivative",)
    op(schema, composite=composite, grad=grad, node=node_of(name), variants="function", tags=tags)


_list_op(
    "_foreach_norm.Scalar(Tensor[] self, Scalar ord=2, ScalarType? dtype=None) -> Tensor[]",
    _norm,
    "linalg_vector_norm",
    ord="ord",
    dim="None",
    keepdim="False",
)
_list_op("_foreach_max(Tensor[] self) -> Tensor[]", lambda self: tuple(t.max() for t in _some(self)), "max")
_list_op(
    "_foreach_powsum.Scalar(Tensor[] self, Scalar ord=2, ScalarType? dtype=None) -> Tensor[]",
    lambda self, ord, dtype: tuple(_power_sum(t, ord, dtype) for t in _some(self)),
)
_list_op(
    "_foreach_clone(Tensor[] self, *, MemoryFormat? memory_format=None) -> Tensor[]",
    lambda self, memory_format: tuple(t.clone(memory_format=memory_format) for t in _some(self)),
    "clone",
)
_list_op(
    "_foreach_mm(Tensor[] self, Tensor[] mat2) -> Tensor[]",
    lambda self, mat2: _products(self, mat2),
    "mm",
    mat2="mat2",
)

_overloads["_foreach_pow"]["ScalarAndTensor"] = _pow_scalar
for _name, _entries in _overloads.items():
    _export(_name, _entries, 3 if "addc" in _name else 2 if "lerp" in _name else 1)
