"""Bits of integers, and whole numbers: and, or, xor, shifts, gcd, lcm."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..._backends.cpu.elementwise import bitwise as kernels
from ..machinery.declare import op
from .arithmetic import wrapped_number

_TAGS = ("nondifferentiable",)


def _binary(name: str, kernel: Callable[..., Any], refuses: tuple[str, str] | None = None) -> Callable[..., Any]:
    schema = f"{name}.Tensor(Tensor self, Tensor other) -> Tensor"
    return op(schema, pointwise="same", cpu=kernel, inplace=True, tags=_TAGS, refuses=refuses)


bitwise_and = _binary("bitwise_and", np.bitwise_and)
bitwise_or = _binary("bitwise_or", np.bitwise_or)
bitwise_xor = _binary("bitwise_xor", np.bitwise_xor)
bitwise_left_shift = _binary("bitwise_left_shift", kernels.left_shift, ("lshift_cpu", "f"))
bitwise_right_shift = _binary("bitwise_right_shift", kernels.right_shift, ("rshift_cpu", "f"))
bitwise_not = op("bitwise_not(Tensor self) -> Tensor", pointwise="same", cpu=np.bitwise_not, inplace=True, tags=_TAGS)
gcd = op("gcd(Tensor self, Tensor other) -> Tensor", pointwise="same", numbers=(), cpu=kernels.gcd, inplace=True, tags=_TAGS)
lcm = op("lcm(Tensor self, Tensor other) -> Tensor", pointwise="same", numbers=(), cpu=kernels.lcm, inplace=True, tags=_TAGS)


def _scalar_first(name: str, entry: Callable[..., Any]) -> None:
    op(
        f"{name}.Scalar_Tensor(Scalar self, Tensor other) -> Tensor",
        composite=lambda self, other: entry(wrapped_number(self, other), other),
    )


def _language_operator(name: str, entry: Callable[..., Any], inplace: str) -> None:
    """`&`, `|`, `^`: operators of their own that call the bitwise ones."""
    op(
        f"__{name}__.Tensor(Tensor self, Tensor other) -> Tensor",
        composite=lambda self, other: entry(self, other),
        numbers=("other",),
    )
    op(
        f"__i{name}__.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)",
        composite=lambda self, other: getattr(self, inplace)(other),
        numbers=("other",),
        variants="method",
    )


for _name in ("and", "or", "xor"):
    _entry = {"and": bitwise_and, "or": bitwise_or, "xor": bitwise_xor}[_name]
    _scalar_first(f"bitwise_{_name}", _entry)
    _language_operator(_name, _entry, f"bitwise_{_name}_")

for _name, _kernel, _entry in (
    ("lshift", kernels.left_shift, bitwise_left_shift),
    ("rshift", kernels.right_shift, bitwise_right_shift),
):
    op(f"__{_name}__.Tensor(Tensor self, Tensor other) -> Tensor", pointwise="same", cpu=_kernel, tags=_TAGS, variants="method")
    op(
        f"__i{_name}__.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)",
        pointwise="same",
        cpu=_kernel,
        tags=_TAGS,
        variants="method",
    )
_scalar_first("bitwise_left_shift", bitwise_left_shift)
_scalar_first("bitwise_right_shift", bitwise_right_shift)
