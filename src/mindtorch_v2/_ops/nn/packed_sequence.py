"""Sequences of different lengths in one tensor: padded to the longest, or packed step by step without padding."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from ..._dtype import int64
from ..._tensor import Tensor, wrap
from ..machinery.declare import op
from ..machinery.lookup import aten


def _check_long(sizes: Tensor) -> None:
    if sizes.dim() != 1 or sizes.device.type != "cpu" or sizes.dtype is not int64:
        raise RuntimeError(
            f"'lengths' argument should be a 1D CPU int64 tensor, but got {sizes.dim()}D {sizes.device} {sizes.dtype.scalar_name} tensor"
        )


def _check_lengths(lengths: list[int], batch: int) -> None:
    if len(lengths) != batch:
        raise RuntimeError(f"Expected `len(lengths)` to be equal to batch_size, but got {len(lengths)} (batch_size={batch})")
    if lengths[-1] <= 0:
        raise RuntimeError("Length of all samples has to be greater than 0, but found an element in 'lengths' that is <= 0")
    if any(after > before for before, after in itertools.pairwise(lengths)):
        raise RuntimeError(
            "`lengths` array must be sorted in decreasing order when `enforce_sorted` is True. You can pass `enforce_sorted=False` "
            "to pack_padded_sequence and/or pack_sequence to sidestep this requirement if you do not need ONNX exportability."
        )


def _pack(input: Tensor, lengths: Tensor, batch_first: bool) -> tuple[Tensor, Tensor]:
    if not input.numel():
        raise RuntimeError("Cannot pack empty tensors.")
    x = input.transpose(0, 1) if batch_first else input
    _check_long(lengths)
    listed = lengths.tolist()
    _check_lengths(listed, x.size(1))
    parts: list[Tensor] = []
    batch_sizes: list[int] = []
    done = 0
    for running, length in zip(range(len(listed), 0, -1), reversed(listed), strict=True):
        if length > done:  # these steps have the same sequences
            part = aten.slice(aten.slice(x, 0, done, length), 1, 0, running)
            parts.append(part.contiguous().view((-1, *x.shape[2:])))
            batch_sizes += [running] * (length - done)
            done = length
    return aten.cat(parts), wrap(np.array(batch_sizes))


def _pack_backward(grad: Tensor, input_size: Sequence[int], batch_sizes: Tensor, batch_first: bool) -> Tensor:
    shape = list(input_size)
    if batch_first:
        shape[:2] = shape[1::-1]
    padded: Tensor = aten.zeros(shape, dtype=grad.dtype, device=grad.device)
    _check_long(batch_sizes)
    at = 0
    for step, size in enumerate(batch_sizes.tolist()):
        aten.slice(padded.select(0, step), 0, 0, size).copy_(aten.slice(grad, 0, at, at + size))
        at += size
    return padded.transpose(0, 1) if batch_first else padded


def _pad(data: Tensor, batch_sizes: Tensor, batch_first: bool, padding_value: float, total_length: int) -> tuple[Tensor, Tensor]:
    _check_long(batch_sizes)
    sizes = batch_sizes.tolist()
    longest = len(sizes)
    if not longest:
        raise RuntimeError("batch_sizes can not be empty")
    if 0 < total_length < longest:
        raise RuntimeError(
            "Expected total_length to be at least the length of the longest sequence in input, but got "
            f"total_length={total_length} and max sequence length being {longest}"
        )
    steps = total_length if total_length > 0 else longest
    output = aten.full((steps, sizes[0], *data.shape[1:]), padding_value, dtype=data.dtype, device=data.device)
    lengths: list[int] = []
    at = start = 0
    for step, (size, following) in enumerate(zip(sizes, [*sizes[1:], 0], strict=True), 1):
        if following == size:
            continue
        rows = size * (step - start)
        part = aten.slice(data, 0, at, at + rows).view((step - start, size, *data.shape[1:]))
        aten.slice(aten.slice(output, 0, start, step), 1, 0, size).copy_(part)
        lengths = [step] * (size - following) + lengths
        at, start = at + rows, step
    return (output.transpose(0, 1) if batch_first else output), wrap(np.array(lengths))


def _pad_sequence(sequences: Sequence[Tensor], batch_first: bool, padding_value: float, padding_side: str) -> Tensor:
    if not sequences:
        raise RuntimeError("received an empty list of sequences")
    if padding_side not in ("left", "right"):
        raise RuntimeError(f"Expected padding_side to be one of left or right, but got {padding_side}.")
    first = sequences[0]
    if not first.dim():
        raise RuntimeError("ArrayRef: invalid slice, N = 1; size = 0")  # torch: what its list of sizes says
    longest, count = max(s.size(0) for s in sequences), len(sequences)
    leading = (count, longest) if batch_first else (longest, count)
    out: Tensor = aten.full((*leading, *first.shape[1:]), padding_value, dtype=first.dtype, device=first.device)
    for i, sequence in enumerate(sequences):
        length = sequence.size(0)
        start = longest - length if padding_side == "left" else 0
        if batch_first:
            out.select(0, i).narrow(0, start, length).copy_(sequence)
        else:
            out.narrow(0, start, length).select(1, i).copy_(sequence)
    return out


pack_padded_sequence = op(
    "_pack_padded_sequence(Tensor input, Tensor lengths, bool batch_first) -> (Tensor, Tensor)",
    over_tensors=_pack,
    grad={
        "input": lambda grad, input_shape, result1, batch_first: pack_padded_sequence_backward(
            grad, input_shape, result1, batch_first
        )
    },
    node="PackPaddedSequenceBackward0",
    nondifferentiable=("result1",),
    variants="function",
    tags=("data_dependent",),
)
pack_padded_sequence_backward = op(
    "_pack_padded_sequence_backward(Tensor grad, SymInt[] input_size, Tensor batch_sizes, bool batch_first) -> Tensor",
    composite=_pack_backward,
    variants="function",
)
pad_packed_sequence = op(
    "_pad_packed_sequence(Tensor data, Tensor batch_sizes, bool batch_first, Scalar padding_value, int total_length) -> (Tensor, Tensor)",
    composite=_pad,
    variants="function",
)
pad_sequence = op(
    "pad_sequence(Tensor[] sequences, bool batch_first=False, float padding_value=0.0, str padding_side='right') -> Tensor",
    composite=_pad_sequence,
    variants="",
)
