"""`einsum`: the equation is read once, operands are aligned to one list of dimensions, pairs are contracted by `bmm`."""

from __future__ import annotations

from math import prod
from typing import Any

from .._tensor import Tensor
from .declare import op, public
from .matmul import bmm

ELLIPSIS = "..."


def sumproduct_pair(left: Tensor, right: Tensor, sum_dims: tuple[int, ...], *, keepdim: bool) -> Tensor:
    """Multiply two aligned tensors and sum over some dimensions, as one batched matrix product."""
    if not sum_dims:
        return left * right
    batch, left_only, right_only = [], [], []
    summed = sorted(sum_dims)
    sum_size = 1
    for d in range(left.ndim):
        in_left, in_right = left.shape[d] != 1, right.shape[d] != 1
        if d in sum_dims:
            if in_left and in_right:
                sum_size *= left.shape[d]
            elif in_left:
                left = left.sum(d, keepdim=True)
            elif in_right:
                right = right.sum(d, keepdim=True)
        elif in_left and in_right:
            batch.append(d)
        elif in_left:
            left_only.append(d)
        else:
            right_only.append(d)
    batch_shape = [left.shape[d] for d in batch]
    rows = [left.shape[d] for d in left_only]
    columns = [right.shape[d] for d in right_only]
    order = [*batch, *left_only, *summed, *right_only]
    a = left.permute(order).reshape((prod(batch_shape), prod(rows), sum_size))
    b = right.permute((*batch, *summed, *right_only, *left_only)).reshape((prod(batch_shape), sum_size, prod(columns)))
    out = bmm(a, b).view((*batch_shape, *rows, *(1 for _ in summed), *columns))
    out = out.permute([order.index(d) for d in range(len(order))])
    if not keepdim:
        for d in reversed(summed):
            out = out.squeeze(d)
    return out  # type: ignore[no-any-return]


def _labels(text: str, start: int, what: str) -> list[str]:
    """The subscripts of one operand, or of the output; `start` is where they stand in the equation."""
    labels: list[str] = []
    i = 0
    while i < len(text):
        c = text[i]
        if c == ".":
            if ELLIPSIS in labels:
                again = "but an ellipsis (...) was already found" if what == "output" else "for which an ellipsis was already found"
                raise RuntimeError(f"einsum(): found '.' for {what} {again}")
            if text[i : i + 3] != ELLIPSIS:
                kind = "any ellipsis (...)" if what == "output" else "any ellipsis"
                raise RuntimeError(f"einsum(): found '.' for {what} that is not part of {kind}")
            labels.append(ELLIPSIS)
            i += 3
            continue
        if c != " ":
            if not (c.isascii() and c.isalpha()):
                raise RuntimeError(
                    f"einsum(): invalid subscript given at index {start + i} in the equation string, subscripts must be in [a-zA-Z]"
                )
            labels.append(c)
        i += 1
    return labels


def _read_inputs(equation: str, count: int) -> tuple[list[list[str]], list[str] | None]:
    arrow = equation.find("->")
    left = equation if arrow < 0 else equation[:arrow]
    parts = left.split(",")
    inputs, start = [], 0
    for i, part in enumerate(parts):
        if i >= count:
            raise RuntimeError("einsum(): fewer operands were provided than specified in the equation")
        inputs.append(_labels(part, start, f"operand {i}"))
        start += len(part) + 1
    if len(parts) < count:
        raise RuntimeError("einsum(): more operands were provided than specified in the equation")
    output = None if arrow < 0 else _labels(equation[arrow + 2 :], arrow + 2, "output")
    return inputs, output


def _ellipsis_extent(labels: list[str], ndim: int, i: int) -> int:
    """How many dimensions this operand's ellipsis stands for; checks that the subscripts fit."""
    named = len(labels) - (ELLIPSIS in labels)
    if ELLIPSIS in labels:
        if named > ndim:
            raise RuntimeError(
                f"einsum(): the number of subscripts in the equation ({named}) is more than the number of dimensions "
                f"({ndim}) for operand {i}"
            )
        return ndim - named
    if named != ndim:
        raise RuntimeError(
            f"einsum(): the number of subscripts in the equation ({named}) does not match the number of dimensions ({ndim}) "
            f"for operand {i} and no ellipsis was given"
        )
    return 0


def _output_labels(inputs: list[list[str]], output: list[str] | None) -> list[str]:
    counts: dict[str, int] = {}
    for labels in inputs:
        for label in labels:
            counts[label] = counts.get(label, 0) + 1
    if output is None:
        singles = sorted(label for label, n in counts.items() if n == 1 and label != ELLIPSIS)
        return ([ELLIPSIS] if ELLIPSIS in counts else []) + singles
    for label in output:
        if label != ELLIPSIS and output.count(label) > 1:
            raise RuntimeError(f"einsum(): output subscript {label} appears more than once in the output")
        if label != ELLIPSIS and label not in counts:
            raise RuntimeError(f"einsum(): output subscript {label} does not appear in the equation for any input operand")
    return output


def _axes(inputs: list[list[str]], output: list[str], ellipsis: int) -> tuple[list[Any], int]:
    """Every dimension of the contraction, the output's first; dimensions of the ellipsis are numbered."""
    axes: list[Any] = []
    for label in output:
        axes += range(ellipsis) if label == ELLIPSIS else [label]
    kept = len(axes)
    if ELLIPSIS not in output:
        axes += range(ellipsis)
    rest = {label for labels in inputs for label in labels if label != ELLIPSIS} - set(axes)
    return axes + sorted(rest), kept


def _align(operand: Tensor, labels: list[str], axes: list[Any], ellipsis: int, i: int, sizes: dict[Any, int]) -> Tensor:
    """The operand with one dimension for each axis; those that it lacks have extent one."""
    own: list[Any] = []
    covered = operand.ndim - (len(labels) - 1)
    at = 0
    for label in labels:
        if label == ELLIPSIS:
            own += range(ellipsis - covered, ellipsis)
            at += covered
            continue
        if label in own:
            first = own.index(label)
            if operand.shape[first] != operand.shape[at]:
                raise RuntimeError(
                    f"einsum(): subscript {label} is repeated for operand {i} but the sizes don't match, "
                    f"{operand.shape[at]} != {operand.shape[first]}"
                )
            operand = operand.diagonal(0, first, at).movedim(-1, first)
            continue
        own.append(label)
        at += 1
    for axis, extent in zip(own, operand.shape, strict=True):
        seen = sizes.get(axis, 1)
        if extent != 1 and seen not in (1, extent):
            raise RuntimeError(
                f"einsum(): subscript {axis} has size {extent} for operand {i} which does not broadcast with previously seen size {seen}"
            )
        if extent != 1 or axis not in sizes:
            sizes[axis] = extent
    position = {axis: d for d, axis in enumerate(own)}
    for axis in axes:
        if axis not in position:
            position[axis] = operand.ndim
            operand = operand.unsqueeze(-1)
    return operand.permute([position[axis] for axis in axes])  # type: ignore[no-any-return]


def _contract(a: Tensor, b: Tensor, kept: int, counts: list[int]) -> Tensor:
    """Multiply two aligned operands and sum what no other operand has. `counts[d]`: operands that still extend along d."""
    both, in_a, in_b = [], [], []
    for d in range(kept, a.ndim):
        if a.shape[d] != 1 and b.shape[d] != 1:
            counts[d] -= 1
            if counts[d] == 1:
                both.append(d)
                counts[d] = 0
        elif counts[d] == 1 and (a.shape[d] != 1 or b.shape[d] != 1):
            (in_a if a.shape[d] != 1 else in_b).append(d)
            counts[d] = 0
    if in_a:
        a = a.sum(in_a, keepdim=True)
    if in_b:
        b = b.sum(in_b, keepdim=True)
    return sumproduct_pair(a, b, tuple(both), keepdim=True)


def _einsum(equation: str, tensors: list[Tensor], path: Any) -> Tensor:
    if not tensors:
        raise RuntimeError("einsum(): must provide at least one operand")
    inputs, output = _read_inputs(equation, len(tensors))
    ellipsis = max(_ellipsis_extent(labels, t.ndim, i) for i, (labels, t) in enumerate(zip(inputs, tensors, strict=True)))
    output = _output_labels(inputs, output)
    axes, kept = _axes(inputs, output, ellipsis)
    sizes: dict[Any, int] = {}
    operands = [_align(t, labels, axes, ellipsis, i, sizes) for i, (labels, t) in enumerate(zip(inputs, tensors, strict=True))]
    counts = [sum(t.shape[d] != 1 for t in operands) for d in range(len(axes))]
    if len(operands) == 1:
        only = operands[0]
        return only if kept == len(axes) else only.sum(list(range(kept, len(axes))))  # type: ignore[no-any-return]
    for step in range(len(operands) - 1):
        i, j = (path[2 * step], path[2 * step + 1]) if path else (0, 1)
        a, b = operands[i], operands[j]
        operands = [t for k, t in enumerate(operands) if k not in (i, j)]
        made = _contract(a, b, kept, counts)
        operands = [*operands, made] if path else [made, *operands]
    result = operands[0]
    return result if kept == len(axes) else result.view(result.shape[:kept])  # type: ignore[no-any-return]


_einsum_op = op("einsum(str equation, Tensor[] tensors, *, int[]? path=None) -> Tensor", composite=_einsum)


def _letter(subscript: Any) -> str:
    if subscript is Ellipsis:
        return ELLIPSIS
    if 0 <= subscript < 26:
        return chr(ord("A") + subscript)
    if 26 <= subscript < 52:
        return chr(ord("a") + subscript - 26)
    raise ValueError("einsum(): subscript in subscript list is not within the valid range [0, 52)")


@public("function")
def einsum(*args: Any) -> Tensor:
    """Sum products of the operands' elements along the dimensions that the equation names.

    `einsum("ij,jk->ik", a, b)`, or with lists of numbers for subscripts: `einsum(a, [0, 1], b, [1, 2], [0, 2])`.
    """
    if len(args) < 2:
        raise ValueError(
            "einsum(): must specify the equation string and at least one operand, or at least one operand and its subscripts list"
        )
    if isinstance(args[0], Tensor):
        equation = ",".join("".join(map(_letter, subscripts)) for subscripts in args[1::2])
        operands = args[: len(args) // 2 * 2 : 2]
        if len(args) % 2:
            equation += "->" + "".join(map(_letter, args[-1]))
    else:
        equation, operands = args[0], args[1:]
    if len(operands) == 1 and isinstance(operands[0], list | tuple):
        return einsum(equation, *operands[0])
    for i, t in enumerate(operands):
        if not isinstance(t, Tensor):
            raise TypeError(f"expected Tensor as element {i} in argument 1, but got {type(t).__name__}")
    return _einsum_op(equation, list(operands))  # type: ignore[no-any-return]
