"""How tensors print: aligned columns, summarised when large, followed by what is not the default.

Numbers → one `Formatter` for all of them (width, fixed or scientific) → nested brackets → suffixes (`dtype=…`, `grad_fn=<…>`).
"""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from . import _dtype
from ._dispatch import keys
from ._memory_format import sparse_bsr, sparse_csr
from ._narrow import decoded
from ._pending import resolved
from ._tensor import Tensor

__all__ = ["get_printoptions", "printoptions", "set_printoptions", "tensor_text"]

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Options:
    precision: int = 4
    threshold: float = 1000
    edgeitems: int = 3
    linewidth: int = 80
    sci_mode: bool | None = None


_PROFILES = {"default": Options(), "short": Options(precision=2, edgeitems=2), "full": Options(threshold=math.inf)}
_options = Options()


def set_printoptions(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """Set how tensors print; a profile is applied first, and `sci_mode` returns to automatic unless given."""
    global _options
    chosen = _options
    if profile is not None:
        if profile not in _PROFILES:
            raise ValueError(f"unknown print profile {profile!r}: one of {', '.join(_PROFILES)}")
        chosen = _PROFILES[profile]
    given = {"precision": precision, "threshold": threshold, "edgeitems": edgeitems, "linewidth": linewidth}
    _options = replace(chosen, **{name: value for name, value in given.items() if value is not None}, sci_mode=sci_mode)  # type: ignore[arg-type]


def get_printoptions() -> dict[str, Any]:
    """The current print options by name."""
    return dict(vars(_options))


@contextlib.contextmanager
def printoptions(**kwargs: Any) -> Iterator[None]:
    """Print options for the duration of a `with` block."""
    global _options
    previous = _options
    set_printoptions(**{**get_printoptions(), **kwargs})
    try:
        yield
    finally:
        _options = previous


# --- numbers --------------------------------------------------------------------------------------------------------


class Formatter:
    """One way of writing for all numbers of a tensor, as wide as the widest."""

    def __init__(self, values: Array) -> None:
        self.is_float = values.dtype.kind == "f"
        self.whole = True
        self.scientific = False
        self.width = 1
        if self.is_float:
            self._measure_floats(values)
        else:
            self.width = max([1, *(len(str(v)) for v in values.ravel().tolist())])

    def _measure_floats(self, values: Array) -> None:
        shown = values[np.isfinite(values) & (values != 0)].ravel()
        if not shown.size:
            return
        self.whole = bool((shown == np.ceil(shown)).all())
        magnitudes = np.abs(shown.astype(np.float64))
        largest, smallest = float(magnitudes.max()), float(magnitudes.min())
        self.scientific = bool(largest / smallest > 1000 or largest > 1e8 or (not self.whole and smallest < 1e-4))
        if _options.sci_mode is not None:
            self.scientific = _options.sci_mode
        if self.scientific:
            spec, extra = f".{_options.precision}e", 0
        elif self.whole:
            spec, extra = ".0f", 1
        else:
            spec, extra = f".{_options.precision}f", 0
        self.width = max(1, *(len(format(v, spec)) + extra for v in shown.tolist()))

    def __call__(self, value: Any) -> str:
        if not self.is_float:
            text = str(value)
        elif self.scientific:
            text = format(value, f"{self.width}.{_options.precision}e")
        elif self.whole:
            text = format(value, ".0f") + ("." if math.isfinite(value) else "")
        else:
            text = format(value, f".{_options.precision}f")
        return text.rjust(self.width)


class ComplexFormatter:
    """Real and imaginary parts, each aligned on its own."""

    def __init__(self, values: Array) -> None:
        self.real, self.imag = Formatter(values.real), Formatter(values.imag)
        self.width = self.real.width + self.imag.width + 1

    def __call__(self, value: complex) -> str:
        imaginary = (self.imag(value.imag) + "j").lstrip()
        sign = "" if imaginary[0] in "+-" else "+"
        return self.real(value.real) + sign + imaginary


# --- brackets -------------------------------------------------------------------------------------------------------


def _edges(array: Array) -> Array:
    """Return the part that a summary shows: the first and last few along each dimension."""
    n = _options.edgeitems
    kept = [[*range(n), *range(size - n, size)] if size > 2 * n else range(size) for size in array.shape]
    edges: Array = array[np.ix_(*kept)]  # `np.take` would copy all of an array that is not contiguous
    return edges


def _elements_text(array: Array, indent: int) -> str:
    if array.dtype.name in ("float16", "bfloat16"):
        array = array.astype(np.float32)
    summarize = array.size > _options.threshold
    measured = _edges(array) if summarize else array
    formatter = ComplexFormatter(measured) if array.dtype.kind == "c" else Formatter(measured)
    return _nested(array, indent, summarize, formatter)


def _nested(array: Array, indent: int, summarize: bool, write: Callable[[Any], str]) -> str:
    if array.ndim == 0:
        return write(array.item())
    if array.ndim == 1:
        return _row(array, indent, summarize, write)
    n = _options.edgeitems
    if summarize and array.shape[0] > 2 * n:
        parts = [_nested(a, indent + 1, summarize, write) for a in array[:n]]
        parts += ["...", *(_nested(a, indent + 1, summarize, write) for a in array[array.shape[0] - n :])]
    else:
        parts = [_nested(a, indent + 1, summarize, write) for a in array]
    return "[" + ("," + "\n" * (array.ndim - 1) + " " * (indent + 1)).join(parts) + "]"


def _row(array: Array, indent: int, summarize: bool, write: Any) -> str:
    n = _options.edgeitems
    if summarize and not n:
        words = ["..."]
    elif summarize and array.shape[0] > 2 * n:
        words = [*map(write, array[:n].tolist()), " ...", *map(write, array[-n:].tolist())]
    else:
        words = [*map(write, array.tolist())]
    per_line = max(1, (_options.linewidth - indent) // (write.width + 2))
    lines = [", ".join(words[i : i + per_line]) for i in range(0, len(words), per_line)]
    return "[" + (",\n" + " " * (indent + 1)).join(lines) + "]"


# --- the whole ------------------------------------------------------------------------------------------------------


def _batched_text(self: Tensor) -> str:
    """A tensor inside `vmap`, by the value behind it."""
    storage: Any = self._storage
    value = "\n".join("    " + line for line in tensor_text(storage.value).splitlines())
    if storage.bdim is None:
        return f"BatchedTensor(lvl={storage.level.number}, the same for all samples, value=\n{value}\n)"
    return f"BatchedTensor(lvl={storage.level.number}, bdim={storage.bdim}, value=\n{value}\n)"


def tensor_text(self: Tensor, contents: str | None = None) -> str:
    """The tensor as torch prints it."""
    kind = type(self)
    prefix = "tensor(" if kind is Tensor or kind.__name__ == "Parameter" else f"{kind.__name__}("
    suffixes = [] if self.device.type == "cpu" else [f"device='{self.device}'"]
    default = _dtype.get_default_dtype()
    d = self.dtype
    if self._keys & keys.SPARSE_LAYOUTS:
        return _sparse_text(self, prefix)
    if self._keys & keys.BATCHED:
        return _batched_text(self)
    if self._keys & keys.META and (contents is None or self.device.type == "meta"):
        suffixes.append(f"size={tuple(self.shape)}")
        if d is not default:
            suffixes.append(f"dtype={d}")
        text = "..." if contents is None else contents
    elif self._array.size == 0:
        if self._array.ndim != 1:
            suffixes.append(f"size={tuple(self.shape)}")
        if d is not default:
            suffixes.append(f"dtype={d}")
        text = "[]" if contents is None else contents
    else:
        if d not in (default, default.to_computed_complex(), _dtype.int64, _dtype.bool_):
            suffixes.append(f"dtype={d}")
        text = _elements_text(_values(self), len(prefix)) if contents is None else contents
    node = self.grad_fn
    if node is not None:
        suffixes.append(f"grad_fn=<{type(node).__name__}>")
    elif self._keys & keys.AUTOGRAD:
        suffixes.append("requires_grad=True")
    tangent = _tangent(self)
    if tangent is not None:
        suffixes.append(f"tangent={tensor_text(tangent)}")
    whole = _with_suffixes(prefix + text, suffixes, len(prefix))
    return f"Parameter({whole})" if "_is_param" in self.__dict__ else whole  # of a subclass, which keeps its own name


def _tangent(self: Tensor) -> Tensor | None:
    """The derivative that forward mode carries with a tensor, of the innermost level."""
    tangents = None if not self._keys & keys.DUAL or self._extra is None else self._extra.tangents
    return tangents[max(tangents)] if tangents else None


def _values(self: Tensor) -> Array:
    d = self.dtype
    if not isinstance(d, _dtype.NarrowDtype):
        return resolved(self)._array
    return self._array if d.decoded is None else decoded(self._array, d)  # of bits without a value, the bits


def _sparse_text(self: Tensor, prefix: str) -> str:
    """The parts of a sparse tensor, below each other, and the facts that they do not show."""
    storage: Any = self._storage
    if self._keys & keys.SPARSE:
        parts = [("indices", storage.indices), ("values", storage.values)]
    else:
        by_rows = self.layout in (sparse_csr, sparse_bsr)
        names = ("crow_indices", "col_indices") if by_rows else ("ccol_indices", "row_indices")
        parts = [*zip(names, (storage.compressed, storage.plain)), ("values", storage.values)]
    indent = len(prefix)
    shown = []
    for name, part in parts:
        if part._array.size == 0:
            text = f"tensor([], size={tuple(part.shape)})"
        else:
            text = f"tensor({_elements_text(part._array, len('tensor('))})"
        shown.append(re.sub(r"\n(?!\n)", "\n" + " " * (indent + len(name) + 1), f"{name}={text}"))
    facts = [f"size={tuple(self.shape)}", f"nnz={self._nnz()}"]
    if self.dtype not in (_dtype.get_default_dtype(), _dtype.get_default_dtype().to_complex(), _dtype.int64, _dtype.bool_):
        facts.append(f"dtype={self.dtype}")
    facts.append(f"layout={self.layout}")
    if self.requires_grad:
        facts.append("requires_grad=True" if self.grad_fn is None else f"grad_fn=<{type(self.grad_fn).__name__}>")
    text = prefix + (",\n" + " " * indent).join(shown)
    if self._keys & keys.SPARSE:
        return text + ",\n" + " " * indent + ", ".join(facts) + ")"
    return _with_suffixes(text, facts, indent)


def _with_suffixes(text: str, suffixes: list[str], indent: int) -> str:
    """Append suffixes, on a new line where the last one has no room."""
    used = len(text) - text.rfind("\n") + 1
    for suffix in suffixes:
        if used + len(suffix) + 2 > _options.linewidth:
            text += ",\n" + " " * indent + suffix
            used = indent + len(suffix)
        else:
            text += ", " + suffix
            used += len(suffix) + 2
    return text + ")"
