"""Making tensors of compressed rows or columns, and taking them apart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ... import _dtype
from ..._creation import as_tensor, device_of
from ..._dispatch import keys
from ..._memory_format import layout, sparse_bsc, sparse_bsr, sparse_csc, sparse_csr
from ..._tensor import Tensor, shallow_copy
from ..._types import Array, OptionalDevice, OptionalDType, OptionalLayout, Shape
from ...overrides import wrap_torch_function
from ..machinery.declare import op, public
from ..shapes.view_copies import declare_copy
from .compressed import BLOCKS, BY_ROWS, COMPRESSED_LAYOUTS, compressed_tensor, storage_of
from .construction import check_dtype
from .invariants import invariants_wanted
from .storage import layout_name

__all__ = ["check_compressed", "unsafe"]


def _unsafe(compressed: Tensor, plain: Tensor, values: Tensor, size: Sequence[int], dtype: OptionalDType, layout: layout) -> Tensor:
    if layout not in COMPRESSED_LAYOUTS:
        raise RuntimeError(f"sparse_compressed_tensor_unsafe expected sparse compressed tensor layout but got {layout}")
    check_dtype(values, dtype)
    return compressed_tensor(layout, compressed, plain, values, size)


def _grad_of_values(grad: Tensor, result: Tensor) -> Tensor:
    """The elements of a gradient, of any layout and at any places, at the places of the values."""
    return storage_of(grad.sparse_mask(result)).values


unsafe = op(
    "_sparse_compressed_tensor_unsafe(Tensor compressed_indices, Tensor plain_indices, Tensor values, SymInt[] size, *, "
    "ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
    composite=lambda compressed_indices, plain_indices, values, size, dtype, layout, device, pin_memory: _unsafe(
        compressed_indices, plain_indices, values, size, dtype, layout
    ),
    grad={"values": lambda grad, result: _grad_of_values(grad, result)},
    variants="function",
)


def _names(layout: layout) -> tuple[str, str]:
    return ("crow_indices", "col_indices") if layout in BY_ROWS else ("ccol_indices", "row_indices")


def check_compressed(compressed: Tensor, plain: Tensor, values: Tensor, size: Sequence[int], layout: layout) -> None:
    """Raise unless a tensor of this size can be made of these parts."""
    outer, inner = _names(layout)
    starts, others = compressed._array, plain._array
    if starts.ndim < 1:
        raise RuntimeError(f"{outer} must have dimensionality >= 1 but got {starts.ndim}")
    if others.ndim != starts.ndim:
        raise RuntimeError(
            f"{outer} and {inner} dimensionalities must be equal but got {starts.ndim} and {others.ndim}, respectively"
        )
    batch, block = starts.ndim - 1, 2 * (layout in BLOCKS)
    if values._array.ndim < batch + 1 + block:
        raise RuntimeError(f"values must have dimensionality > sum of batch and block dimensionalities (={batch} + {block}) but got {values._array.ndim}")  # fmt: skip
    dense = values._array.ndim - batch - 1 - block
    if len(size) != batch + 2 + dense:
        raise RuntimeError(f"tensor dimensionality must be sum of batch, base, and dense dimensionalities (={batch} + 2 + {dense}) but got {len(size)}")  # fmt: skip
    if compressed.dtype is not plain.dtype or compressed.dtype not in (_dtype.int32, _dtype.int64):
        raise RuntimeError(f"{outer} and {inner} must have the same dtype, int32 or int64, but got {compressed.dtype.scalar_name} and {plain.dtype.scalar_name}, respectively")  # fmt: skip
    _check_batches(compressed, plain, values, size, batch, outer, inner)
    _check_lines(compressed, plain, values, size, layout, batch)


def _check_batches(
    compressed: Tensor, plain: Tensor, values: Tensor, size: Sequence[int], batch: int, outer: str, inner: str
) -> None:
    for name, part in ((outer, compressed), (inner, plain), ("values", values)):
        if list(part._array.shape[:batch]) != list(size[:batch]):
            raise RuntimeError(f"all batch dimensions of {name} (={list(part._array.shape[:batch])}) must be equal to tensor batch dimensions (={list(size[:batch])})")  # fmt: skip
    if plain._array.shape[-1] != values._array.shape[batch]:
        raise RuntimeError(f"{inner}.shape[-1] must be equal to nnz (={values._array.shape[batch]}) as defined by values.shape[{batch}], but got {plain._array.shape[-1]}")  # fmt: skip


def _check_lines(compressed: Tensor, plain: Tensor, values: Tensor, size: Sequence[int], layout: layout, batch: int) -> None:
    """Raise unless lines begin where the ones before them end, and the places in each rise and lie inside."""
    outer, inner = _names(layout)
    block = values._array.shape[batch + 1 : batch + 3] if layout in BLOCKS else (1, 1)
    extents = [size[batch], size[batch + 1]]
    for extent, b in zip(extents, block):
        if b == 0 or extent % b:
            raise RuntimeError(f"tensor shape[{batch}:{batch + 2}] (={extents}) must be divisible by blocksize (={list(block)})")
    lines = [e // b for e, b in zip(extents, block)]
    if layout not in BY_ROWS:
        lines.reverse()
    starts, others = compressed._array, plain._array
    name = {sparse_csr: "nrows", sparse_csc: "ncols", sparse_bsr: "nrowblocks", sparse_bsc: "ncolblocks"}[layout]
    if starts.shape[-1] != lines[0] + 1:
        raise RuntimeError(f"{outer}.shape[-1] must be equal to the number of {name} + 1 (={lines[0] + 1}), but got {starts.shape[-1]}")  # fmt: skip
    letter = "n" + ("cols" if layout in BY_ROWS else "rows")
    if (starts[..., 0] != 0).any():
        raise RuntimeError(f"`{outer}[..., 0] == 0` is not satisfied.")
    if (starts[..., -1] != others.shape[-1]).any():
        raise RuntimeError(f"`{outer}[..., -1] == nnz` is not satisfied.")
    counts = np.diff(starts, axis=-1)
    if (counts < 0).any() or (counts > lines[1]).any():
        raise RuntimeError(f"`0 <= {outer}[..., 1:] - {outer}[..., :-1] <= {letter}` is not satisfied.")
    if others.size and (others.min() < 0 or others.max() >= lines[1]):
        bound = "<" if others.min() >= 0 else "<="
        raise RuntimeError(f"`0 <= {inner} {bound} {letter}` is not satisfied.")
    if others.size:
        _check_rising(starts.reshape(-1, starts.shape[-1]), others.reshape(-1, others.shape[-1]), outer, inner)


def _check_rising(starts: Array, others: Array, outer: str, inner: str) -> None:
    for bounds, places in zip(starts, others):
        falls = np.diff(places) <= 0
        begins = bounds[1:-1]
        falls[begins[(begins > 0) & (begins < places.size)] - 1] = (
            False  # the first of a line may be smaller than the last before it
        )
        if falls.any():
            raise RuntimeError(
                f"`{inner}[..., {outer}[..., i - 1]:{outer}[..., i]] for all i = 1, ..., n are sorted and distinct along the last "
                "dimension values` is not satisfied."
            )


def _inferred_size(compressed: Tensor, plain: Tensor, values: Tensor, layout: layout) -> list[int]:
    batch = compressed._array.ndim - 1
    block = values._array.shape[batch + 1 : batch + 3] if layout in BLOCKS else (1, 1)
    outer = compressed._array.shape[-1] - 1
    inner = int(plain._array.max()) + 1 if plain._array.size else 0
    rows, columns = (outer, inner) if layout in BY_ROWS else (inner, outer)
    dense = values._array.shape[batch + 1 + 2 * (layout in BLOCKS) :]
    return [*compressed._array.shape[:-1], rows * block[0], columns * block[1], *dense]


def _make(
    compressed: Any, plain: Any, values: Any, size: Sequence[int] | None, layout: layout, name: str, **options: Any
) -> Tensor:
    dtype, device = options["dtype"], options["device"]
    if device is not None and device_of(device).type != "cpu":
        raise NotImplementedError(f"{name}: sparse tensors are on the CPU only, not on {device}")
    if options["pin_memory"]:
        raise RuntimeError(f"{name}: pinned memory needs an accelerator, and there is none")
    compressed, plain, values = as_tensor(compressed), as_tensor(plain), as_tensor(values, dtype=dtype)
    shape = _inferred_size(compressed, plain, values, layout) if size is None else list(size)
    if invariants_wanted(options["check_invariants"]):
        check_compressed(compressed, plain, values, shape, layout)
    made = unsafe(compressed, plain, values, shape, layout=layout)
    return made.requires_grad_() if options["requires_grad"] else made


@public("function")
def _validate_sparse_compressed_tensor_args(
    compressed_indices: Tensor,
    plain_indices: Tensor,
    values: Tensor,
    size: Shape,
    layout: layout,
    check_pinning: bool | None = None,
) -> None:
    """Raise unless a tensor of this layout and size can be made of these parts."""
    check_compressed(compressed_indices, plain_indices, values, list(size), layout)


@public("function")
@wrap_torch_function(lambda *args, **kwargs: (*args[:3], *kwargs.values()))
def sparse_compressed_tensor(
    compressed_indices: Any, plain_indices: Any, values: Any, size: Sequence[int] | None = None, *, dtype: OptionalDType = None, layout: OptionalLayout = None,
    device: OptionalDevice = None, pin_memory: bool = False, requires_grad: bool = False, check_invariants: bool | None = None,
) -> Tensor:  # fmt: skip
    """A tensor in the compressed layout that is named, from the starts of its lines, the places in them, and values."""
    if layout not in COMPRESSED_LAYOUTS:
        raise RuntimeError(f"sparse_compressed_tensor expected sparse compressed tensor layout but got {layout}")
    return _make(
        compressed_indices, plain_indices, values, size, layout, "sparse_compressed_tensor", dtype=dtype, device=device,
        pin_memory=pin_memory, requires_grad=requires_grad, check_invariants=check_invariants,
    )  # fmt: skip


@public("function")
@wrap_torch_function(lambda *args, **kwargs: (*args[:3], *kwargs.values()))
def sparse_csr_tensor(
    crow_indices: Any, col_indices: Any, values: Any, size: Sequence[int] | None = None, *, dtype: OptionalDType = None, device: OptionalDevice = None, pin_memory: bool = False,
    requires_grad: bool = False, check_invariants: bool | None = None,
) -> Tensor:  # fmt: skip
    """A tensor of compressed rows."""
    return _make(
        crow_indices, col_indices, values, size, sparse_csr, "sparse_csr_tensor", dtype=dtype, device=device, pin_memory=pin_memory,
        requires_grad=requires_grad, check_invariants=check_invariants,
    )  # fmt: skip


@public("function")
@wrap_torch_function(lambda *args, **kwargs: (*args[:3], *kwargs.values()))
def sparse_csc_tensor(
    ccol_indices: Any, row_indices: Any, values: Any, size: Sequence[int] | None = None, *, dtype: OptionalDType = None, device: OptionalDevice = None, pin_memory: bool = False,
    requires_grad: bool = False, check_invariants: bool | None = None,
) -> Tensor:  # fmt: skip
    """A tensor of compressed columns."""
    return _make(
        ccol_indices, row_indices, values, size, sparse_csc, "sparse_csc_tensor", dtype=dtype, device=device, pin_memory=pin_memory,
        requires_grad=requires_grad, check_invariants=check_invariants,
    )  # fmt: skip


@public("function")
@wrap_torch_function(lambda *args, **kwargs: (*args[:3], *kwargs.values()))
def sparse_bsr_tensor(
    crow_indices: Any, col_indices: Any, values: Any, size: Sequence[int] | None = None, *, dtype: OptionalDType = None, device: OptionalDevice = None, pin_memory: bool = False,
    requires_grad: bool = False, check_invariants: bool | None = None,
) -> Tensor:  # fmt: skip
    """A tensor of compressed rows of blocks."""
    return _make(
        crow_indices, col_indices, values, size, sparse_bsr, "sparse_bsr_tensor", dtype=dtype, device=device, pin_memory=pin_memory,
        requires_grad=requires_grad, check_invariants=check_invariants,
    )  # fmt: skip


@public("function")
@wrap_torch_function(lambda *args, **kwargs: (*args[:3], *kwargs.values()))
def sparse_bsc_tensor(
    ccol_indices: Any, row_indices: Any, values: Any, size: Sequence[int] | None = None, *, dtype: OptionalDType = None, device: OptionalDevice = None, pin_memory: bool = False,
    requires_grad: bool = False, check_invariants: bool | None = None,
) -> Tensor:  # fmt: skip
    """A tensor of compressed columns of blocks."""
    return _make(
        ccol_indices, row_indices, values, size, sparse_bsc, "sparse_bsc_tensor", dtype=dtype, device=device, pin_memory=pin_memory,
        requires_grad=requires_grad, check_invariants=check_invariants,
    )  # fmt: skip


# --- taking them apart ------------------------------------------------------------------------------------------------


def _indices(self: Tensor, name: str) -> Tensor:
    by_rows = name in ("crow_indices", "col_indices")
    kind = "row" if by_rows else "column"
    if not self._keys & keys.SPARSE_COMPRESSED or (storage_of(self).layout in BY_ROWS) != by_rows:
        raise RuntimeError(f"{name} expected sparse {kind} compressed tensor layout but got {layout_name(self)}")
    storage = storage_of(self)
    return shallow_copy(storage.compressed if name in ("crow_indices", "ccol_indices") else storage.plain)


def _declare(name: str) -> None:
    view = op(
        f"{name}(Tensor(a) self) -> Tensor(a)",
        composite=lambda self: _indices(self, name),
        variants="method",
        tags=("nondifferentiable",),
    )
    declare_copy(view)


for _name in ("crow_indices", "col_indices", "ccol_indices", "row_indices"):
    _declare(_name)
