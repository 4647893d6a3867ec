"""Elements several times or in another order: repeat, tile, flip, roll, rot90, repeat_interleave."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._backends.cpu.shapes import repeating as kernels
from ..._checks import no_dimensions, wrap_dim
from ..._creation import tensor
from ..._dispatch.keys import META
from ..._dtype import int64
from ..._memory_format import contiguous_format
from ..._tensor import Tensor
from ..machinery.declare import op, public
from ..machinery.lookup import aten
from .joining import cat
from .reshaping import expand, flatten, reshape, unsqueeze, view
from .slicing import narrow

if TYPE_CHECKING:
    pass

Array = np.ndarray[Any, Any]

# --- repeat and tile ------------------------------------------------------------------------------------------------


def _repeat_grad(grad: Tensor, repeats: Sequence[int], self_shape: Sequence[int]) -> Tensor:
    repeats = tuple(repeats)
    if 0 in repeats:
        return aten.zeros(self_shape, dtype=grad.dtype, device=grad.device)
    extra = len(repeats) - len(self_shape)
    for _ in range(extra):
        grad = grad.sum(0)
    sizes: list[int] = []
    dims: list[int] = []
    for n, r in zip(self_shape, repeats[extra:], strict=True):
        if r != 1:
            dims.append(len(sizes))
            sizes.append(r)
        sizes.append(n)
    return reshape(grad, tuple(sizes)).sum(tuple(dims)) if dims else grad


repeat = op(
    "repeat(Tensor self, SymInt[] repeats) -> Tensor",
    cpu=kernels.repeat,
    shape=lambda self, repeats: kernels.repeated_shape(self._array.shape, tuple(repeats))[1],
    grad={"self": lambda grad, repeats, self_shape: _repeat_grad(grad, repeats, self_shape)},
    variants="method",
)


def _tile(self: Tensor, dims: Sequence[int]) -> Tensor:
    dims = tuple(dims)
    return repeat(self, (1,) * (self.dim() - len(dims)) + dims)


tile = op("tile(Tensor self, SymInt[] dims) -> Tensor", composite=_tile)

# --- flip, roll, rot90 ----------------------------------------------------------------------------------------------

flip = op("flip(Tensor self, int[] dims) -> Tensor", cpu=kernels.flip, grad={"self": lambda grad, dims: flip(grad, dims)})


def _fliplr(self: Tensor) -> Tensor:
    if self.dim() < 2:
        raise RuntimeError("Input must be >= 2-d.")
    return flip(self, (1,))


def _flipud(self: Tensor) -> Tensor:
    if self.dim() < 1:
        raise RuntimeError("Input must be >= 1-d.")
    return flip(self, (0,))


fliplr = op("fliplr(Tensor self) -> Tensor", composite=_fliplr)
flipud = op("flipud(Tensor self) -> Tensor", composite=_flipud)


def _as_list(value: Any) -> tuple[int, ...]:
    return tuple(value) if isinstance(value, list | tuple) else (value,)


def _roll(self: Tensor, shifts: int | Sequence[int], dims: int | Sequence[int]) -> Tensor:
    shifts, dims = _as_list(shifts), () if dims is None else _as_list(dims)
    if len(dims) == 1 and len(shifts) == 1:
        return _roll_one(self, shifts[0], dims[0])
    if not shifts:
        raise RuntimeError("`shifts` required")
    if not dims and len(shifts) == 1:
        flat = view(self.contiguous(), (self.numel(),))
        rolled: Tensor = view(roll(flat, shifts[0], 0), self._array.shape)
        rolled._base = None  # nobody holds what it is a view of
        return rolled
    if len(shifts) != len(dims):
        raise RuntimeError(f"shifts and dimensions must align. shifts: {len(shifts)}, dims:{len(dims)}")
    first = roll(self, shifts[0], dims[0])
    return roll(first, shifts[1:], dims[1:])


def _roll_one(self: Tensor, shift: int, dim: int) -> Tensor:
    if not self.numel():
        return self.clone(memory_format=contiguous_format)
    if not self.dim():
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    d = wrap_dim(dim, self.dim())
    size = self._array.shape[d]
    start = -shift % size
    return cat([narrow(self, d, start, size - start), narrow(self, d, 0, start)], d)


roll = op(
    "roll(Tensor self, SymInt[1] shifts, int[1] dims=[]) -> Tensor",
    composite=_roll,
    grad={"self": lambda grad, shifts, dims: roll(grad, tuple(-s for s in _as_list(shifts)), dims)},
)


def _rot90(self: Tensor, k: int, dims: Sequence[int]) -> Tensor:
    ndim = self.dim()
    if len(dims) != 2:
        raise RuntimeError(f"expected total rotation dims == 2, but got dims = {len(dims)}")
    if ndim < 2:
        raise RuntimeError(f"expected total dims >= 2, but got total dims = {ndim}")
    first, second = dims
    if wrap_dim(first, ndim) == wrap_dim(second, ndim):
        raise RuntimeError(f"expected rotation dims to be different, but got dim0 = {first} and dim1 = {second}")
    turns = k % 4
    if turns == 0:
        return self.clone(memory_format=contiguous_format)
    if turns == 2:
        return flip(self, tuple(dims))
    turned = flip(self, (second if turns == 1 else first,))
    return turned.transpose_(first, second)


rot90 = op(
    "rot90(Tensor self, int k=1, int[] dims=[0, 1]) -> Tensor",
    composite=_rot90,
    grad={"self": lambda grad, k, dims: rot90(grad, -k, dims)},
)

# --- repeat_interleave ----------------------------------------------------------------------------------------------

repeat_interleave_index = op(
    "repeat_interleave.Tensor(Tensor repeats, *, SymInt? output_size=None) -> Tensor",
    cpu=kernels.repeat_interleave,
    tags=("data_dependent", "nondifferentiable"),
)


def _interleave_tensor(self: Tensor, repeats: Tensor, dim: int | None, output_size: int | None) -> Tensor:
    if dim is None:
        self, dim = flatten(self), 0
    d = wrap_dim(dim, self.dim())
    if not self.dim():
        raise no_dimensions(dim)
    n = self._array.shape[d]
    if repeats.dim() == 0 or (repeats.dim() == 1 and repeats.numel() == 1):
        repeats = expand(reshape(repeats, (1,)), (n,))
    elif repeats.dim() == 1:
        if repeats.numel() != n:
            raise RuntimeError(
                f"repeats must have the same size as input along dim, but got repeats.size(0) = {repeats.numel()} and "
                f"input.size({d}) = {n}"
            )
    else:
        raise RuntimeError("repeats must be 0-dim or 1-dim tensor")
    if self._keys & META and output_size is not None:
        return aten.index_select(self, d, aten.empty(size=(output_size,), dtype=int64, device=self.device))
    return aten.index_select(self, d, repeat_interleave_index(repeats, output_size=output_size))


def _interleave_int(self: Tensor, repeats: int, dim: int | None, output_size: int | None) -> Tensor:
    if dim is None:
        self, dim = flatten(self), 0
    d = wrap_dim(dim, self.dim())
    if repeats < 0:
        raise RuntimeError("Repeats must be non-negative")
    self = unsqueeze(self, d + 1)
    shape = list(self._array.shape)
    shape[d + 1] = repeats
    spread = expand(self, tuple(shape)).clone(memory_format=contiguous_format)
    if output_size is not None and output_size != shape[d] * repeats:
        raise RuntimeError(f"repeat_interleave: Invalid output_size, expected {shape[d] * repeats} but got {output_size}")
    return flatten(spread, d, d + 1)


interleave_tensor = op(
    "repeat_interleave.self_Tensor(Tensor self, Tensor repeats, int? dim=None, *, SymInt? output_size=None) -> Tensor",
    composite=_interleave_tensor,
)
interleave_int = op(
    "repeat_interleave.self_int(Tensor self, SymInt repeats, int? dim=None, *, SymInt? output_size=None) -> Tensor",
    composite=_interleave_int,
)


@public("function method")
def repeat_interleave(
    input: Tensor, repeats: Tensor | int | None = None, dim: int | None = None, *, output_size: int | None = None
) -> Tensor:
    """Every element (or part along `dim`) repeated, by a number or each by its own."""
    if repeats is None:
        return repeat_interleave_index(input, output_size=output_size)
    if isinstance(repeats, Tensor):
        return interleave_tensor(input, repeats, dim, output_size=output_size)
    if isinstance(repeats, list | tuple):
        return interleave_tensor(input, tensor(repeats), dim, output_size=output_size)
    return interleave_int(input, repeats, dim, output_size=output_size)
