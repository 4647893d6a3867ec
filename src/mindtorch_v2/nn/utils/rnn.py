"""Sequences of different lengths for recurrent modules: padded to one tensor, or packed without padding."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from ... import _dtype
from ..._creation import as_tensor
from ..._ops.machinery.lookup import aten
from ..._tensor import Tensor

__all__ = [
    "PackedSequence",
    "invert_permutation",
    "pack_padded_sequence",
    "pack_sequence",
    "pad_packed_sequence",
    "pad_sequence",
    "unpack_sequence",
    "unpad_sequence",
]


class _Fields(NamedTuple):
    """The fields of a packed sequence."""

    data: Tensor
    batch_sizes: Tensor
    sorted_indices: Tensor | None
    unsorted_indices: Tensor | None


class PackedSequence(_Fields):
    """Sequences, longest first, with the elements of one step side by side: step t has the first `batch_sizes[t]` of them.

    `sorted_indices` says which sequence of the batch comes at which place, and `unsorted_indices` the reverse.
    """

    def __new__(
        cls,
        data: Any,
        batch_sizes: Tensor | None = None,
        sorted_indices: Tensor | None = None,
        unsorted_indices: Tensor | None = None,
    ) -> PackedSequence:
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        if batch_sizes is None:
            if not (isinstance(data, list | tuple) and len(data) == 2):
                raise AssertionError("Expected data to be a list or tuple of length 2")
            data, batch_sizes = data
        elif batch_sizes.device.type != "cpu":
            raise ValueError(
                "batch_sizes should always be on CPU. Instances of PackedSequence should never be created manually. They should be "
                "instantiated by functions like pack_sequence and pack_padded_sequences in nn.utils.rnn. "
                "https://pytorch.org/docs/stable/nn.html#torch.nn.utils.rnn.pack_sequence"
            )
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def _with_data(self, data: Tensor) -> PackedSequence:
        """The same sequences with other elements; permutations go to their device, batch sizes stay on the CPU."""
        return PackedSequence(
            data,
            self.batch_sizes,
            None if self.sorted_indices is None else self.sorted_indices.to(data.device),
            None if self.unsorted_indices is None else self.unsorted_indices.to(data.device),
        )

    def to(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """Convert the data as `Tensor.to` does; itself if nothing changes."""
        data = self.data.to(*args, **kwargs)
        return self if data is self.data else self._with_data(data)

    def cpu(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """The sequences on the CPU."""
        return self.to(*args, **{**kwargs, "device": "cpu"})

    def cuda(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """The sequences on a CUDA device, which is refused where there is none."""
        return self.to(*args, **{**kwargs, "device": "cuda"})

    def pin_memory(self) -> PackedSequence:
        """The sequences in pinned memory, which is refused where there is none."""
        return self._with_data(self.data.pin_memory())

    def double(self) -> PackedSequence:
        """The sequences as float64."""
        return self.to(dtype=_dtype.float64)

    def float(self) -> PackedSequence:
        """The sequences as float32."""
        return self.to(dtype=_dtype.float32)

    def half(self) -> PackedSequence:
        """The sequences as float16."""
        return self.to(dtype=_dtype.float16)

    def long(self) -> PackedSequence:
        """The sequences as int64."""
        return self.to(dtype=_dtype.int64)

    def int(self) -> PackedSequence:
        """The sequences as int32."""
        return self.to(dtype=_dtype.int32)

    def short(self) -> PackedSequence:
        """The sequences as int16."""
        return self.to(dtype=_dtype.int16)

    def char(self) -> PackedSequence:
        """The sequences as int8."""
        return self.to(dtype=_dtype.int8)

    def byte(self) -> PackedSequence:
        """The sequences as uint8."""
        return self.to(dtype=_dtype.uint8)

    @property
    def is_cuda(self) -> bool:
        """Whether the data is on a CUDA device."""
        return self.data.is_cuda

    def is_pinned(self) -> bool:
        """Whether the data is in pinned memory."""
        return bool(self.data.is_pinned())


def invert_permutation(permutation: Tensor | None) -> Tensor | None:
    """The permutation that undoes this one."""
    if permutation is None:
        return None
    places = aten.empty_like(permutation)
    return places.scatter_(0, permutation, aten.arange(0, permutation.numel(), device=permutation.device))


def pack_padded_sequence(
    input: Tensor, lengths: Tensor | Sequence[int], batch_first: bool = False, enforce_sorted: bool = True
) -> PackedSequence:
    """Sequences without their padding. With `enforce_sorted=False` they are sorted by length first."""
    if isinstance(lengths, Tensor):
        lengths = lengths.to(dtype=_dtype.int64)
    else:
        lengths = as_tensor(lengths, dtype=_dtype.int64, device="cpu")
    sorted_indices = None
    if not enforce_sorted:
        lengths, sorted_indices = aten.sort(lengths, descending=True)
        sorted_indices = sorted_indices.to(input.device)
        input = input.index_select(0 if batch_first else 1, sorted_indices)
    data, batch_sizes = aten._pack_padded_sequence(input, lengths, batch_first)
    return PackedSequence(data, batch_sizes, sorted_indices)


def pad_packed_sequence(
    sequence: PackedSequence, batch_first: bool = False, padding_value: float = 0.0, total_length: int | None = None
) -> tuple[Tensor, Tensor]:
    """Packed sequences in one tensor with padding, in their first order, and their lengths."""
    length = sequence.batch_sizes.size(0)
    if total_length is not None:
        if total_length < length:
            raise ValueError(
                "Expected total_length to be at least the length of the longest sequence in input, but got "
                f"total_length={total_length} and max sequence length being {length}"
            )
        length = total_length
    padded, lengths = aten._pad_packed_sequence(sequence.data, sequence.batch_sizes, batch_first, padding_value, length)
    order = sequence.unsorted_indices
    if order is None:
        return padded, lengths
    return padded.index_select(0 if batch_first else 1, order), lengths[order.cpu()]


def pad_sequence(
    sequences: Tensor | Sequence[Tensor], batch_first: bool = False, padding_value: float = 0.0, padding_side: str = "right"
) -> Tensor:
    """Sequences in one tensor, with padding up to the length of the longest."""
    if not isinstance(sequences, Iterable):
        raise RuntimeError(f"pad_sequence: Expected iterable for input sequences, but got arg of type: {type(sequences)}")
    return aten.pad_sequence(tuple(sequences), batch_first, padding_value, padding_side)


def unpad_sequence(padded_sequences: Tensor, lengths: Tensor, batch_first: bool = False) -> list[Tensor]:
    """The sequences of a padded tensor, each in its length."""
    if not batch_first:
        padded_sequences.transpose_(0, 1)  # torch: the caller's tensor is transposed
    steps = aten.arange(padded_sequences.shape[1], device=lengths.device)
    return [sequence[steps < length] for sequence, length in zip(padded_sequences, lengths, strict=True)]


def pack_sequence(sequences: list[Tensor], enforce_sorted: bool = True) -> PackedSequence:
    """Sequences packed; without `enforce_sorted` they may come in any order of their lengths."""
    lengths = as_tensor([sequence.size(0) for sequence in sequences])
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """The sequences of a packed one, each in its length."""
    return unpad_sequence(*pad_packed_sequence(packed_sequences, batch_first=True), batch_first=True)
