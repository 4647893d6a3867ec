"""Second names of operators: each is an operator of its own that calls the first, as in ATen."""

from __future__ import annotations

import dataclasses

from ..._dispatch import registry
from ..._dispatch.op import Op
from ..machinery.calling import call_op
from ..machinery.declare import register, with_overload
from . import arithmetic, binary, clamp, comparison, special, unary  # noqa: F401 - declared first

ALIASES = {
    "absolute": "abs", "arccos": "acos", "arccosh": "acosh", "arcsin": "asin", "arcsinh": "asinh", "arctan": "atan",
    "arctanh": "atanh", "arctan2": "atan2", "negative": "neg", "fix": "trunc", "clip": "clamp", "multiply": "mul",
    "subtract": "sub", "divide": "div", "true_divide": "div", "greater": "gt", "greater_equal": "ge", "less": "lt",
    "less_equal": "le", "not_equal": "ne", "special_exp2": "exp2", "special_expm1": "expm1", "special_erf": "erf",
    "special_erfc": "erfc", "special_erfinv": "erfinv", "special_expit": "sigmoid", "special_logit": "logit",
    "special_gammaln": "lgamma", "special_psi": "digamma", "special_digamma": "digamma", "special_i0": "i0",
    "special_sinc": "sinc", "special_log1p": "log1p", "special_xlogy": "xlogy", "special_gammainc": "igamma",
    "special_gammaincc": "igammac", "special_polygamma": "polygamma", "special_multigammaln": "mvlgamma",
}  # fmt: skip
SPECIAL_XLOGY = {"Tensor": "", "Scalar_Other": "other_scalar", "Scalar_Self": "self_scalar"}  # overloads ATen names otherwise
NO_INPLACE = ("special_",)


def _declare_alias(alias: str, op: Op) -> None:
    schema = op.schema
    if alias == "special_xlogy":
        schema = with_overload(schema, SPECIAL_XLOGY[schema.overload])
    text = str(schema).replace(schema.name, alias, 1)
    register(
        Op(
            dataclasses.replace(schema, name=alias, text=text),
            composite=lambda *arguments: call_op(op, arguments),
            numbers=op.numbers,
            tags=op.tags,
        )
    )


for _alias, _name in ALIASES.items():
    for _op in list(registry.overloads("aten::" + _name).values()):
        if _alias == "true_divide" and _op.schema.overload == "Tensor_mode":
            continue
        _declare_alias(_alias, _op)
    if not _alias.startswith(NO_INPLACE):
        for _op in list(registry.overloads(f"aten::{_name}_").values()):
            if _alias == "true_divide" and _op.schema.overload == "Tensor_mode":
                continue
            _declare_alias(_alias + "_", _op)
