"""`einsum`: the equation is read once, operands are aligned to one list of dimensions, pairs are contracted by `bmm`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import Any

from ..._tensor import Tensor
from ...overrides import wrap_torch_function
from ..machinery.declare import op, public
from ..shapes.reshaping import permute, unsqueeze
from .matmul import bmm

ELLIPSIS = "..."


def sumproduct_pair(left: Tensor, right: Tensor, sum_dims: tuple[int, ...], *, keepdim: bool) -> Tensor:
    """Multiply two aligned tensors and sum over some dimensions, as one batched matrix product."""
    if not sum_dims:
        return left * right
    batch, left_only, right_only = [], [], []
    sum_size = 1
    left_shape, right_shape = left._array.shape, right._array.shape
    for d, (l, r) in enumerate(zip(left_shape, right_shape, strict=True)):
        if d in sum_dims:
            if l != 1 and r != 1:
                sum_size *= l
            elif l != 1:
                left = left.sum(d, keepdim=True)
            elif r != 1:
                right = right.sum(d, keepdim=True)
        elif l != 1 and r != 1:
            batch.append(d)
        elif l != 1:
            left_only.append(d)
        else:
            right_only.append(d)
    if left_only and right_only and right_only[-1] < left_only[0]:
        # the other way round, the product is in the order of the output
        left, right, left_shape, right_shape = right, left, right_shape, left_shape
        left_only, right_only = right_only, left_only
    summed = sorted(sum_dims)
    batch_shape = [left_shape[d] for d in batch]
    rows = [left_shape[d] for d in left_only]
    columns = [right_shape[d] for d in right_only]
    order = [*batch, *left_only, *summed, *right_only]
    count = prod(batch_shape)
    a = permute(left, order).reshape((count, prod(rows), sum_size))
    b = permute(right, [*batch, *summed, *right_only, *left_only]).reshape((count, sum_size, prod(columns)))
    out = bmm(a, b).view((*batch_shape, *rows, *[1] * len(summed), *columns))
    back = [0] * len(order)
    for position, d in enumerate(order):
        back[d] = position
    out = permute(out, back)
    if not keepdim:
        for d in reversed(summed):
            out = out.squeeze(d)
    return out


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
    """Return the number of dimensions that this operand's ellipsis stands for; check that the subscripts fit."""
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


@dataclass(frozen=True, slots=True)
class _Operand:
    """Bring one operand to the list of axes."""

    repeated: tuple[tuple[str, int, int], ...]  # subscript, its first dimension, the one to merge into it
    axes: tuple[Any, ...]  # what each dimension stands for, once merged
    missing: int  # axes that it lacks: dimensions of extent one
    order: tuple[int, ...]  # the dimension of each axis


@dataclass(frozen=True, slots=True)
class _Plan:
    operands: tuple[_Operand, ...]
    axes: int
    kept: int  # axes of the output, which come first


@lru_cache(maxsize=512)
def _plan(equation: str, ndims: tuple[int, ...]) -> _Plan:
    """Read an equation for operands of these numbers of dimensions."""
    inputs, given = _read_inputs(equation, len(ndims))
    ellipsis = max(_ellipsis_extent(labels, n, i) for i, (labels, n) in enumerate(zip(inputs, ndims, strict=True)))
    output = _output_labels(inputs, given)
    axes, kept = _axes(inputs, output, ellipsis)
    operands = tuple(_operand(labels, n, axes, ellipsis) for labels, n in zip(inputs, ndims, strict=True))
    return _Plan(operands, len(axes), kept)


def _operand(labels: list[str], ndim: int, axes: list[Any], ellipsis: int) -> _Operand:
    own: list[Any] = []
    repeated = []
    covered = ndim - (len(labels) - 1)
    for label in labels:
        if label == ELLIPSIS:
            own += range(ellipsis - covered, ellipsis)
        elif label in own:
            # a merged dimension disappears, so that the next one takes its place
            repeated.append((label, own.index(label), len(own)))
        else:
            own.append(label)
    position = {axis: d for d, axis in enumerate(own)}
    for axis in axes:
        position.setdefault(axis, len(position))
    return _Operand(tuple(repeated), tuple(own), len(axes) - len(own), tuple(position[axis] for axis in axes))


def _align(operand: Tensor, plan: _Operand, i: int, sizes: dict[Any, int]) -> Tensor:
    """The operand with one dimension for each axis; those that it lacks have extent one."""
    for label, first, at in plan.repeated:
        shape = operand._array.shape
        if shape[first] != shape[at]:
            raise RuntimeError(
                f"einsum(): subscript {label} is repeated for operand {i} but the sizes don't match, {shape[at]} != {shape[first]}"
            )
        operand = operand.diagonal(0, first, at).movedim(-1, first)
    for axis, extent in zip(plan.axes, operand._array.shape, strict=True):
        seen = sizes.get(axis, 1)
        if extent != 1 and seen != 1 and seen != extent:
            raise RuntimeError(
                f"einsum(): subscript {axis} has size {extent} for operand {i} which does not broadcast with previously seen size {seen}"
            )
        if extent != 1 or axis not in sizes:
            sizes[axis] = extent
    for _ in range(plan.missing):
        operand = unsqueeze(operand, -1)
    return permute(operand, plan.order)


def _contract(a: Tensor, b: Tensor, kept: int, counts: list[int]) -> Tensor:
    """Multiply two aligned operands and sum what no other operand has. `counts[d]`: operands that still extend along d."""
    both: list[int] = []
    in_a: list[int] = []
    in_b: list[int] = []
    shape_a, shape_b = a._array.shape, b._array.shape
    for d in range(kept, len(shape_a)):
        if shape_a[d] != 1 and shape_b[d] != 1:
            counts[d] -= 1
            if counts[d] == 1:
                both.append(d)
                counts[d] = 0
        elif counts[d] == 1 and (shape_a[d] != 1 or shape_b[d] != 1):
            (in_a if shape_a[d] != 1 else in_b).append(d)
            counts[d] = 0
    if in_a:
        a = a.sum(in_a, keepdim=True)
    if in_b:
        b = b.sum(in_b, keepdim=True)
    return sumproduct_pair(a, b, tuple(both), keepdim=True)


def _einsum(equation: str, tensors: list[Tensor], path: Sequence[int] | None) -> Tensor:
    if not tensors:
        raise RuntimeError("einsum(): must provide at least one operand")
    plan = _plan(equation, tuple([t._array.ndim for t in tensors]))
    sizes: dict[Any, int] = {}
    operands = [_align(t, p, i, sizes) for i, (t, p) in enumerate(zip(tensors, plan.operands, strict=True))]
    if len(operands) == 1:
        only = operands[0]
        return only if plan.kept == plan.axes else only.sum(list(range(plan.kept, plan.axes)))
    counts = [sum([t._array.shape[d] != 1 for t in operands]) for d in range(plan.axes)]
    for step in range(len(operands) - 1):
        i, j = (path[2 * step], path[2 * step + 1]) if path else (0, 1)
        a, b = operands[i], operands[j]
        operands = [t for k, t in enumerate(operands) if k not in (i, j)]
        made = _contract(a, b, plan.kept, counts)
        operands = [*operands, made] if path else [made, *operands]
    result = operands[0]
    return result if plan.kept == plan.axes else result.view(result._array.shape[: plan.kept])


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
@wrap_torch_function(lambda *args: [x for a in args for x in (a if isinstance(a, list | tuple) else (a,))])
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
    return _einsum_op(equation, list(operands))
