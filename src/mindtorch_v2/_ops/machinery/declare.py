"""`op(...)`: declares an operator and returns the function that calls it."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import numpy as np

from ... import _dtype, _promotion
from ..._backends.cpu.machinery.dtype_rules import with_rules
from ..._backends.cpu.machinery.layout import channels_last_like, in_rows
from ..._dispatch import registry
from ..._dispatch.codegen import compile_function
from ..._dispatch.entry import make_entry
from ..._dispatch.op import Entry, Op
from ..._dispatch.schema import Argument, Return, Schema, parse
from .calling import device_key, retry_call
from .out import call_with_out

if TYPE_CHECKING:
    from ..._tensor import Tensor


__all__ = [
    "MissingDerivative",
    "exported",
    "inplace_schema",
    "not_implemented",
    "op",
    "public",
    "register",
]

_F = TypeVar("_F", bound=Any)
Gradients = Mapping[Any, Callable[..., Any]]  # argument name, or tuple of names → formula


def op(
    schema: str,
    *,
    cpu: Callable[..., Any] | None = None,
    composite: Callable[..., Any] | None = None,
    over_tensors: Callable[..., Any] | None = None,
    pointwise: str | None = None,
    shape: Callable[..., Any] | None = None,
    format_of: tuple[str, ...] = (),
    rows: bool = False,
    refuses: tuple[str, str] | None = None,
    same_dtype: tuple[str, ...] = (),
    grad: Gradients | None = None,
    node: str | None = None,
    numbers: tuple[str, ...] | None = None,
    nondifferentiable: tuple[str, ...] = (),
    fixed: tuple[str, ...] = (),
    inplace: bool = False,
    inplace_grad: Gradients | None = None,
    inplace_node: str | None = None,
    variants: str = "function method",
    tags: tuple[str, ...] = (),
) -> Entry:
    """Declare an operator.

    cpu        kernel over NumPy arrays; takes the schema's arguments it names, returns arrays
    composite  function over tensors, of other operators; needs no kernel, and no formula unless it has one of its own
    over_tensors  CPU kernel over tensors, for one that calls other operators as ATen's does
    pointwise  "same", "float", "bool" or "real": operands are promoted to one dtype and broadcast (see the CPU adapter)
    shape      the result's shape from the arguments' (tensor arguments arrive as tensors), for the meta device
    format_of  names of images: the result is in channels-last format when one of them is
    rows       the results are contiguous whatever the arguments are
    refuses    torch's name of the kernel, or its complaint, and the kinds of dtype it does not take: letters of "bifc" (bool,
               integers, floating, complex), and "0" where tensors without elements are taken all the same
    same_dtype names of tensors that must be of one dtype
    grad       argument name, or a tuple of them → formula; the formula's parameters say what is saved
    node       the backward node's name, where it is not the default `NameBackward0`
    numbers    tensor arguments that take Python numbers too; by default, `other` of pointwise operators
    nondifferentiable  names of results that never require grad
    fixed      names of tensor arguments that must not require grad
    inplace    also declare the in-place variant `name_`; with a derivative and a node of its own where `inplace_grad` and `inplace_node` say so
    variants   where users find it: "function" (torch.name), "method" (Tensor.name)
    tags       "data_dependent": the result's shape depends on values, and so there is none on the meta device
               "nondifferentiable": no result requires grad; "no_derivative": a composite that torch cannot differentiate
               "fresh": a composite that writes to its result, which is always a new one; "dtype_view": a view of another dtype
               "transparent": no row in profiles, because ATen's overload is no call of its own
               "exact_out", "disjoint_out": `out` must have the result's dtype, and share no memory with the arguments;
               "dtype_of_out": the result has the dtype of `out`
    """
    parsed = parse(schema)
    if format_of and cpu is not None:
        cpu = channels_last_like(cpu, *format_of)
    if rows and cpu is not None:
        cpu = in_rows(cpu)
    if cpu is not None and (refuses or same_dtype) and not isinstance(cpu, np.ufunc):
        cpu, refuses = with_rules(cpu, refuses, same_dtype), None
    if numbers is None:
        numbers = tuple(a.name for a in parsed.arguments if a.is_tensor and a.name == "other") if pointwise else ()
    declared = Op(
        parsed,
        cpu=cpu,
        composite=composite,
        over_tensors=over_tensors,
        pointwise=pointwise,
        shape=shape,
        grad=grad,
        node=node,
        numbers=numbers,
        nondifferentiable=nondifferentiable,
        fixed=fixed,
        refuses=refuses,
        tags=(*tags, *variants.split()),
    )
    entry = register(declared)
    if inplace:
        _declare_inplace(declared, cpu, inplace_grad or grad, inplace_node or declared.node_name)
    return entry


def register(declared: Op) -> Entry:
    """Add an operator to the registry and make its entry point."""
    registry.add(declared)
    declared.entry = make_entry(declared, retry=retry_call, with_out=call_with_out, device_key=device_key)
    return declared.entry


def public(variants: str = "function method", *, name: str | None = None) -> Callable[[_F], _F]:
    """Export a hand-written function under torch's name for it, in place of the one that would be generated.

    For names whose Python signature no schema gives: several overloads that must be told apart fast, variadic sizes, ….
    """

    def export(function: _F) -> _F:
        for variant in variants.split():
            exported.setdefault(name or function.__name__, {})[variant] = function
        return function

    return export


exported: dict[str, dict[str, Callable[..., Any]]] = {}  # name → variant → function


# In-place variants whose overloads ATen names otherwise than the functional ones.
_INPLACE_OVERLOADS = {"floor_divide": "Tensor", "pow.Tensor_Tensor": "Tensor", "pow.Tensor_Scalar": "Scalar"}


def with_overload(schema: Schema, overload: str) -> Schema:
    """The schema under another overload name."""
    text = str(schema)
    return dataclasses.replace(
        schema, overload=overload, text=f"{schema.name}{overload and '.'}{overload}{text[text.index('(') :]}"
    )


def inplace_schema(schema: Schema) -> Schema:
    """The schema of `name_` from that of `name`: the first argument is written and returned."""
    renamed = _INPLACE_OVERLOADS.get(f"{schema.name}.{schema.overload}".rstrip("."))
    if renamed is not None:
        schema = with_overload(schema, renamed)
    first = dataclasses.replace(schema.arguments[0], alias="a!")
    arguments: tuple[Argument, ...] = (first, *schema.arguments[1:])
    text = str(schema).replace(schema.name, schema.name + "_", 1).replace("Tensor self", "Tensor(a!) self", 1)
    text = text.rsplit("->", 1)[0] + "-> Tensor(a!)"
    return dataclasses.replace(
        schema, name=schema.name + "_", arguments=arguments, returns=(Return("Tensor", alias="a!"),), text=text
    )


def _declare_inplace(functional: Op, cpu: Callable[..., Any] | None, grad: Gradients | None, node: str) -> None:
    schema = inplace_schema(functional.schema)
    kernel = cpu
    if cpu is not None and functional.pointwise is None and not isinstance(cpu, np.ufunc):
        kernel = _copying(cpu, schema.name)
    register(
        Op(
            schema,
            cpu=kernel,
            pointwise=functional.pointwise,
            grad=grad,
            node=node,
            fixed=functional.fixed,
            refuses=functional.refuses,
            numbers=functional.numbers,
            tags=tuple(t for t in functional.tags if t != "function") if schema.name.startswith("__") else functional.tags,
        )
    )


class MissingDerivative:
    """A formula for a derivative that torch declares and does not have; raises when backward comes to it."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, grad: Tensor | None) -> NoReturn:
        error = NotImplementedError(
            f"the derivative for '{self.name}' is not implemented."
        )  # of torch's type, not of a class of its own
        vars(error)["missing_derivative"] = self
        raise error

    @staticmethod
    def raised(error: NotImplementedError) -> bool:
        """Whether this is the error of such a formula."""
        return "missing_derivative" in vars(error)


not_implemented = MissingDerivative


def _copying(kernel: Callable[..., Any], name: str) -> Callable[..., Any]:
    """The kernel of the in-place operator of this name, from a functional one: compute, then copy over `self`."""
    parameters = tuple(inspect.signature(kernel).parameters)
    if "self" not in parameters:
        raise TypeError(f"a kernel with an in-place variant takes `self`, not only {parameters}")
    listed = ", ".join(parameters)
    lines = [
        "try:",
        f"    value = kernel({listed})",
        "except NotImplementedError:",
        f"    check_castable(self, ({listed},))",
        "    raise",
        "copy_into(self, value)",
    ]
    used = {"kernel": kernel, "copy_into": copy_into, "check_castable": _check_castable}
    return compile_function("run", listed, lines, used, title=f"kernel of {name}")


def _check_castable(target: np.ndarray[Any, Any], operands: tuple[Any, ...]) -> None:
    """torch: that the result cannot be written is found before the kernel refuses the dtype of its operands."""
    arrays = [x for x in operands if isinstance(x, np.ndarray)]
    found, wanted = _dtype.FROM_NUMPY[np.result_type(*arrays)], _dtype.FROM_NUMPY[target.dtype]
    if found is not wanted and not _promotion.can_cast(found, wanted):
        raise _cast_error(found, wanted) from None


def _cast_error(found: _dtype.dtype, wanted: _dtype.dtype) -> RuntimeError:
    return RuntimeError(f"result type {found.scalar_name} can't be cast to the desired output type {wanted.scalar_name}")


def copy_into(target: np.ndarray[Any, Any], value: np.ndarray[Any, Any]) -> None:
    if target.shape != value.shape:
        raise RuntimeError(f"output with shape {list(target.shape)} doesn't match the broadcast shape {list(value.shape)}")
    if target.dtype != value.dtype:
        found, wanted = (_dtype.FROM_NUMPY[x.dtype] for x in (value, target))
        if not _promotion.can_cast(found, wanted):
            raise _cast_error(found, wanted)
    target[...] = value
