"""Calls in the argument order of old programs: `torch.add(x, 2, y)` for `torch.add(x, y, alpha=2)`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._refusals import warn_once
from .op import Entry

if TYPE_CHECKING:
    from .._types import TensorOrTensors

__all__ = ["call_deprecated"]


def call_deprecated(entry: Entry, given: tuple[Any, ...], out: TensorOrTensors | None = None) -> Any:
    """Call an operator whose positional arguments were given in the deprecated order."""
    op = entry.op
    values = [v for i, v in enumerate(given) if v is not None or i < len(given) - 2]
    while values and values[-1] is None:
        values.pop()
    if len(values) == 3 and op.name.rstrip("_") in ("add", "sub") and values[2].__class__ in (bool, int, float, complex):
        return entry(values[0], values[1], alpha=values[2], **({} if out is None else {"out": out}))
    numbers = [i for i, v in enumerate(values) if not hasattr(type(v), "_keys") and not hasattr(type(v), "__torch_function__")]
    names = _factor_names(op.name.rstrip("_"), numbers, len(values))
    if names is None:
        kinds = ", ".join("Tensor" if hasattr(type(v), "_keys") else type(v).__name__ for v in values)
        raise TypeError(f"{op.name}() received an invalid combination of arguments - got ({kinds}), but expected: {op.schema}")
    warn_once(
        "deprecated order of arguments",
        f"This overload of {op.name} is deprecated:\n\tnumbers before tensors that they multiply\nConsider using one of the following "
        f"signatures instead:\n\t{op.schema}",
        stacklevel=4,
    )
    factors = {name: values[i] for name, i in zip(names, numbers, strict=True)}
    operands = [v for i, v in enumerate(values) if i not in numbers]
    return entry(*operands, **factors, **({} if out is None else {"out": out}))


def _factor_names(name: str, numbers: list[int], count: int) -> tuple[str, ...] | None:
    """The keywords of the numbers at these positions of a call, or None where no deprecated order has them there."""
    if name in ("add", "sub"):
        return ("alpha",) if numbers == [1] and count == 3 else None
    if name in ("addcmul", "addcdiv"):
        return ("value",) if numbers == [1] and count == 4 else None
    if count == 4:
        return ("beta",) if numbers in ([0], [1]) else None
    return ("beta", "alpha") if count == 5 and numbers in ([0, 2], [1, 2]) else None
