"""Padding modes: reflection, replication and wrapping around; `pad` chooses among them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..._backends.cpu.shapes.padding import pad_by_position, pad_by_position_backward, reflected, replicated
from ..._tensor import Tensor
from ..machinery.declare import op
from ..machinery.lookup import aten

Array = np.ndarray[Any, Any]
Sizes = tuple[int, ...]
_AXES = "DHW"


def _pairs(padding: Sequence[int], n: int) -> list[tuple[int, int]]:
    """(left, right) of the last n dimensions in their own order; the argument starts with the last one."""
    padding = tuple(padding)
    if len(padding) != 2 * n:
        raise RuntimeError(f"padding size is expected to be {2 * n}, but got: {len(padding)}")
    return [(padding[2 * i], padding[2 * i + 1]) for i in range(n - 1, -1, -1)]


def _check_dims(shape: Sizes, n: int) -> None:
    ok = len(shape) in (n + 1, n + 2) and all(shape[-n - 1 :])
    if not ok:
        raise RuntimeError(
            f"Expected {n + 1}D or {n + 2}D (batch mode) tensor with possibly 0 batch size and other non-zero dimensions for input, "
            f"but got: {list(shape)}"
        )


def _check_reflection(shape: Sizes, n: int, pairs: list[tuple[int, int]]) -> None:
    _check_dims(shape, n)
    for i in range(n - 1, -1, -1):
        size, (left, right) = shape[i - n], pairs[i]
        if left >= size or right >= size:
            raise RuntimeError(
                "Argument #4: Padding size should be less than the corresponding input dimension, but got: "
                f"padding ({left}, {right}) at dimension {len(shape) + i - n} of input {list(shape)}"
            )
    _check_result(shape, n, pairs)


def _check_replication(shape: Sizes, n: int, pairs: list[tuple[int, int]]) -> None:
    _check_dims(shape, n)
    _check_result(shape, n, pairs)


def _check_result(shape: Sizes, n: int, pairs: list[tuple[int, int]]) -> None:
    out = [size + left + right for size, (left, right) in zip(shape[-n:], pairs, strict=True)]
    if max(out) < 1 or min(out) < 0:
        names = _AXES[-n:]
        before = " ".join(f"{a}: {v}" for a, v in zip(names, shape[-n:], strict=True))
        after = " ".join(f"{a}: {v}" for a, v in zip(names, out, strict=True))
        raise RuntimeError(f"input ({before}) is too small. Calculated output {after}")


def _declare(kind: str, n: int, positions_of: Callable[..., Any], check: Callable[..., Any]) -> Callable[..., Any]:
    name = f"{kind}_pad{n}d"

    def positions(shape: Sizes, pairs: list[tuple[int, int]]) -> list[Array]:
        return [positions_of(size, left, right) for size, (left, right) in zip(shape[-n:], pairs, strict=True)]

    def kernel(self: Array, padding: Sequence[int]) -> Array:
        pairs = _pairs(padding, n)
        check(self.shape, n, pairs)
        return pad_by_position(self, positions(self.shape, pairs), [left for left, _ in pairs])

    def backward(grad_output: Array, self: Array, padding: Sequence[int]) -> Array:
        pairs = _pairs(padding, n)
        expected = (*self.shape[:-n], *(s + left + right for s, (left, right) in zip(self.shape[-n:], pairs, strict=True)))
        if grad_output.shape != expected:
            raise RuntimeError(f"grad_output width unexpected. Expected: {expected[-1]}, Got: {grad_output.shape[-1]}")
        return pad_by_position_backward(grad_output, positions(self.shape, pairs), self.shape, [left for left, _ in pairs])

    spread = op(
        f"{name}_backward(Tensor grad_output, Tensor self, SymInt[{2 * n}] padding) -> Tensor",
        cpu=backward,
        format_of=("self",),
        shape=lambda self: self.shape,
        grad={
            "grad_output": lambda grad, padding: pad_(grad, padding),
            "self": lambda grad: aten.zeros_like(grad),
        },
        variants="",
    )
    pad_ = op(
        f"{name}(Tensor self, SymInt[{2 * n}] padding) -> Tensor",
        cpu=kernel,
        refuses=(name, "b"),
        format_of=("self",),
        grad={"self": lambda grad, self, padding: spread(grad, self, padding)},
        variants="",
    )
    return pad_


reflection_pad1d = _declare("reflection", 1, reflected, _check_reflection)
reflection_pad2d = _declare("reflection", 2, reflected, _check_reflection)
reflection_pad3d = _declare("reflection", 3, reflected, _check_reflection)
replication_pad1d = _declare("replication", 1, replicated, _check_replication)
replication_pad2d = _declare("replication", 2, replicated, _check_replication)
replication_pad3d = _declare("replication", 3, replicated, _check_replication)


def _circular(self: Tensor, pad: Sequence[int]) -> Tensor:
    shape = self._array.shape
    n = len(pad) // 2
    lead = len(shape) - n
    pairs = _pairs(pad, n)
    out_shape = [*shape[:lead], *(s + left + right for s, (left, right) in zip(shape[lead:], pairs, strict=True))]
    for i, (size, (left, right)) in enumerate(zip(shape[lead:], pairs, strict=True)):
        if left > size or right > size:
            raise RuntimeError("Padding value causes wrapping around more than once.")
        if out_shape[i + lead] <= 0:
            raise RuntimeError("Negative padding value is resulting in an empty dimension")
    out = self.new_empty(out_shape)
    target, source = out, self
    for i, (left, right) in enumerate(pairs):
        target = _slice(target, i + lead, max(left, 0), out_shape[i + lead] - max(right, 0))
        source = _slice(source, i + lead, max(-left, 0), shape[i + lead] - max(-right, 0))
    target.copy_(source)
    for i in range(n - 1, -1, -1):  # the last dimension first, so that corners copy what is already wrapped
        left, right = pairs[i]
        extent = out_shape[i + lead]
        if left > 0:
            end = extent - max(right, 0)
            _slice(out, i + lead, 0, left).copy_(_slice(out, i + lead, end - left, end))
        if right > 0:
            start = max(left, 0)
            _slice(out, i + lead, extent - right, extent).copy_(_slice(out, i + lead, start, start + right))
    return out


def _slice(x: Tensor, dim: int, start: int, stop: int) -> Tensor:
    return aten.slice(x, dim, start, stop)


_pad_circular = op("_pad_circular(Tensor self, SymInt[] pad) -> Tensor", composite=_circular, variants="")

_MODES = {"reflect": "reflection", "replicate": "replication", "circular": "circular"}


def _choose(self: Tensor, pad: Sequence[int], mode: str, value: float | None) -> Tensor:
    if mode == "constant":
        return aten.constant_pad_nd(self, pad, 0 if value is None else value)
    if value is not None and value != 0:
        raise RuntimeError(f'Padding mode "{mode}" doesn\'t take in value argument')
    if mode not in _MODES:
        raise NotImplementedError(f"Unrecognised padding mode {mode}")
    n, dims = len(pad), self.dim()
    if n > 2 * dims and n % 2 == 0:
        raise RuntimeError(
            "Padding length should be less than or equal to two times the input dimension but got padding length "
            f"{n} and input of dimension {dims}"
        )
    if (n, dims) in ((2, 2), (2, 3), (4, 3), (4, 4), (6, 4), (6, 5)):
        if mode == "circular":
            return _pad_circular(self, pad)
        return getattr(aten, f"{_MODES[mode]}_pad{n // 2}d")(self, pad)
    if n % 2:
        raise RuntimeError("Padding length must be divisible by 2")
    raise NotImplementedError(
        f"Padding size {n} is not supported for {dims}D input tensor.\nSupported combinations for non-constant padding:\n"
        "  - 2D or 3D input: padding size = 2 (pads last dimension)\n"
        "  - 3D or 4D input: padding size = 4 (pads last 2 dimensions)\n"
        "  - 4D or 5D input: padding size = 6 (pads last 3 dimensions)"
    )


pad = op('pad(Tensor self, SymInt[] pad, str mode="constant", float? value=None) -> Tensor', composite=_choose, variants="")
