"""Derivatives of `_foreach_*` operators: those of the plain operator, for each tensor of the list; and their nodes' names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from ..._dispatch import registry
from ..._dispatch.codegen import compile_function
from ..._dispatch.op import FACTS, Formula, Op
from ..._dispatch.schema import Schema, parse
from ..elementwise import arithmetic, clamp, special, ternary, unary  # noqa: F401 - declared first

if TYPE_CHECKING:
    from ..._tensor import Tensor

__all__ = ["element_formulas", "node_of"]


def element_formulas(schema: str, element: str, names: Mapping[str, str]) -> dict[str, Callable[..., Any]]:
    """Formulas for a foreach operator from those of the plain one.

    `element`: the plain operator, `mul.Tensor`. `names`: its arguments → the foreach operator's, or a Python literal.
    """
    name, _, overload = element.partition(".")
    plain = registry.aten(name, overload or "default")
    found = {}
    for formula in plain.formulas:
        (target,) = formula.targets
        if target in names:
            found[names[target]] = _list_formula(parse(schema), plain, formula, names)
    return {target: f for target, f in found.items() if target in {a.name for a in parse(schema).tensor_arguments}}


def _list_formula(schema: Schema, plain: Op, formula: Formula, names: Mapping[str, str]) -> Callable[..., Any]:
    """The formula for lists, as source: its parameters' names say what the node keeps."""
    parameters, values = ["grads"], []
    for p in formula.parameters:
        if p == "grad":
            values.append("grads[i]")
            continue
        base, fact = next(((p[: -len(f)], f) for f in FACTS if p.endswith(f) and p not in plain.schema.argument_names), (p, ""))
        own = "result" if base == "result" else names.get(base, base)
        if own != "result" and own not in schema.argument_names:
            values.append(own)  # a literal
            continue
        parameters.append(own + fact)
        is_list = own == "result" or schema.argument(own).type.rstrip("?").endswith("[]")
        values.append(f"{own}{fact}[i]" if is_list else own + fact)
    call = f"formula({', '.join(values)})"
    (target,) = formula.targets
    parts = f"[None if grads[i] is None else {call} for i in range(len(grads))]"
    whole = parts if schema.argument(names[target]).is_tensor_list else f"total({parts})"
    used = {"formula": formula.function, "total": _total}
    return compile_function(
        "gradients", ", ".join(dict.fromkeys(parameters)), [f"return {whole}"], used, title=f"gradients of {schema.name}"
    )


def _total(gradients: list[Any]) -> Tensor:
    """The gradient of an operand that all tensors of the list share."""
    given = [g.sum() for g in gradients if g is not None]
    total = given[0]
    for g in given[1:]:
        total = total + g
    return total


# torch numbers and suffixes the nodes of overloads by rules of its generator, which leave some out
_NODES = {
    **{f"{n}.{kind}": f"{i}{kind}" for n in ("add", "mul") for i, kinds in ((0, ("List", "Tensor")), (1, ("Scalar", "ScalarList"))) for kind in kinds},
    "sub.List": "0List", "sub.Scalar": "1Scalar", "sub.ScalarList": "1ScalarList",
    "div.List": "0", "div.Tensor": "0Tensor", "div.Scalar": "1Scalar", "div.ScalarList": "1ScalarList",
    **{f"{n}.{kind}": suffix for n in ("clamp_min", "clamp_max") for kind, suffix in (("List", "1List"), ("Scalar", "0Scalar"), ("ScalarList", "0ScalarList"))},
    **{f"{n}.{kind}": suffix for n in ("maximum", "minimum") for kind, suffix in (("List", "0List"), ("Scalar", "0"), ("ScalarList", "1"))},
    "pow.List": "0", "pow.Scalar": "0Scalar", "pow.ScalarList": "1", "pow.ScalarAndTensor": "2",
    **{f"{n}.{kind}": f"0{kind}" for n in ("addcmul", "addcdiv") for kind in ("Scalar", "ScalarList")},
    "lerp.List": "1List", "lerp.Scalar": "0Scalar", "lerp.ScalarList": "0ScalarList",
    "max": "1",
}  # fmt: skip


def node_of(name: str) -> str | None:
    """The backward node of `_foreach_name.overload`, where it is not the default one."""
    if name not in _NODES:
        return None
    words = name.partition(".")[0].split("_")
    return f"Foreach{''.join(w.capitalize() for w in words)}Backward{_NODES[name]}"
