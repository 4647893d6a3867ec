"""Dtypes that a kernel does not take: declared with the operator, refused before the kernel runs, as torch refuses them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from .... import _dtype
from ...._dispatch.op import parameter_names
from .dtypes import FLOAT, HALVES, scalar_name

if TYPE_CHECKING:
    from ...._tensor import Tensor

__all__ = ["CATEGORIES", "check_parameters", "refusal", "refuse", "unimplemented", "with_rules"]

Array = np.ndarray[Any, Any]
CATEGORIES = {"b": 0, "i": 1, "f": 2, "c": 3}  # letters of a declaration → category of a dtype


def refusal(kernel: str, d: _dtype.dtype) -> Exception:
    """torch's complaint, which names the kernel, or the one that is given instead: a sentence, with the dtype's name for `{}`."""
    if " " in kernel:
        return RuntimeError(kernel.format(d.scalar_name))
    return NotImplementedError(f"\"{kernel}\" not implemented for '{d.scalar_name}'")


def refuse(kernel: str, operand: Array | Tensor, kinds: str) -> None:
    """Raise the complaint when a tensor or array is of one of these kinds."""
    d = operand.dtype if isinstance(operand.dtype, _dtype.dtype) else _dtype.FROM_NUMPY[operand.dtype]
    if any(d.category == CATEGORIES[k] for k in kinds):
        raise refusal(kernel, d)


def unimplemented(kernel: str, array: Array) -> Exception:
    """The complaint about the dtype of an array."""
    return refusal(kernel, _dtype.FROM_NUMPY[array.dtype])


def with_rules(kernel: Callable[..., Any], refuses: tuple[str, str] | None, same_dtype: tuple[str, ...]) -> Callable[..., Any]:
    """A kernel that first looks at the dtypes of its arrays.

    `refuses`: torch's name of the kernel, and kinds of the first array that it does not take: "b" for bool, "i" for integers,
    "f" for floating and "c" for complex numbers; "0" if it takes them where there are no elements. `same_dtype`: arrays that must have one dtype.
    """
    parameters = parameter_names(kernel)
    name, kinds = refuses or ("", "")
    # torch: images of bytes are taken where other integers are not
    categories = {CATEGORIES[k] for k in kinds if k != "0"}
    refused = {d.np for d in _dtype.FROM_NUMPY.values() if d.category in categories and d is not _dtype.uint8}
    empty_too = "0" not in kinds
    positions = [parameters.index(p) for p in same_dtype]

    @functools.wraps(kernel)
    def run(*arguments: Any) -> Any:
        first = next(a for a in arguments if isinstance(a, np.ndarray))
        if first.dtype in refused and (empty_too or first.size):
            raise refusal(name, _dtype.FROM_NUMPY[first.dtype])
        if positions:
            _check_same([arguments[i] for i in positions])
        return kernel(*arguments)

    return run


def _check_same(arrays: list[Array | None]) -> None:
    given = [a for a in arrays if a is not None]
    for a in given[1:]:
        if a.dtype != given[0].dtype:
            wanted, found = (scalar_name(x) for x in (given[0], a))
            raise RuntimeError(f"expected scalar type {wanted} but found {found}")


def check_parameters(x: Array, *parameters: Array | None) -> None:
    """Parameters have the dtype of what they scale, or float32 where that has 16 bits."""
    for p in parameters:
        if p is not None and p.dtype != x.dtype and not (x.dtype in HALVES and p.dtype == FLOAT):
            wanted, found = (scalar_name(a) for a in (x, p))
            raise RuntimeError(
                f"mixed dtype (CPU): expected parameters of scalar type {wanted}, as of the input, but found {found}"
            )
