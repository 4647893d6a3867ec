"""The same elements in another shape or order of dimensions: views, and the composites over them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..._autograd.fitting import sum_to
from ..._backends.cpu.shapes import views
from ..._checks import wrap_dim, wrap_dims
from ..._dispatch import keys
from ..._dtype import NarrowDtype
from ..._dtype import dtype as dtypes
from ..._memory_format import contiguous_format
from ..._tensor import Tensor, wrap, wrap_view
from ..._types import DType, OptionalDType
from ..machinery.declare import op, public
from ..machinery.lookup import aten

Array = np.ndarray[Any, Any]


def zeros(size: Sequence[int], like: Tensor) -> Tensor:
    """`aten::zeros` with another tensor's dtype and device, as many formulas need them."""
    if like._keys & keys.BATCHED:
        return like.new_zeros(tuple(size))  # one for each sample, to be written with what differs between them
    return aten.zeros(size=tuple(size), dtype=like.dtype, device=like.device)


# --- view and reshape -----------------------------------------------------------------------------------------------

view = op(
    "view(Tensor(a) self, SymInt[] size) -> Tensor(a)",
    cpu=views.view,
    grad={"self": lambda grad, self_shape: reshape(grad, self_shape)},
)
view_dtype = op("view.dtype(Tensor(a) self, ScalarType dtype) -> Tensor(a)", composite=lambda self, dtype: _view_dtype(self, dtype))
_unsafe_view = op(
    "_unsafe_view(Tensor self, SymInt[] size) -> Tensor",
    composite=lambda self, size: _view_of_fresh(self, size),
    grad={"self": lambda grad, self_shape: reshape(grad, self_shape)},
    node="UnsafeViewBackward0",
    variants="",
)
_reshape_alias = op(
    "_reshape_alias(Tensor(a) self, SymInt[] size, SymInt[] stride) -> Tensor(a)",
    cpu=lambda self, size: views.view(self, size),
    grad={"self": lambda grad, self_shape: reshape(grad, self_shape)},
    variants="",
)
alias = op("alias(Tensor(a) self) -> Tensor(a)", cpu=lambda self: self[...], grad={"self": lambda grad: grad}, variants="")


@public("method", name="view")
def _view_method(self: Tensor, *size: Any, dtype: OptionalDType = None) -> Tensor:
    """The same memory in another shape, or read as another dtype."""
    if dtype is not None:
        return view_dtype(self, dtype)
    if len(size) == 1 and size[0].__class__ is not int:
        only = size[0]
        if isinstance(only, dtypes | type | str):
            return view_dtype(self, only)
        if not isinstance(only, int | np.integer | Tensor):
            size = tuple(only)
    elif not size:
        raise TypeError(
            "view() received an invalid combination of arguments - got (), but expected one of:\n * (torch.dtype dtype)\n * (tuple of ints size)\n"
        )
    return view(self, size)


def _view_dtype(self: Tensor, dtype: DType) -> Tensor:
    if self._keys & keys.PENDING and dtype is not self.dtype:
        kind = "conjugate view tensors" if self._keys & keys.CONJUGATE else "tensors with negative bit set"
        raise RuntimeError(f"torch.Tensor.view is not supported for {kind} when converting to a different dtype.")
    if dtype.itemsize > self.dtype.itemsize and self.storage_offset() % (dtype.itemsize // self.dtype.itemsize):
        ratio = dtype.itemsize // self.dtype.itemsize
        if self._array.ndim and not self._array.shape[-1] % ratio:
            raise RuntimeError(
                f"self.storage_offset() must be divisible by {ratio} to view {self.dtype.scalar_name} as {dtype.scalar_name} "
                f"(different element sizes), but got {self.storage_offset()}"
            )
    made = wrap_view(views.view_dtype(self._array, dtype), self, dtype)
    if self._keys & (keys.CPU | keys.NARROW):
        made._keys = keys.NARROW if isinstance(dtype, NarrowDtype) else keys.CPU
    return made


def _view_of_fresh(self: Tensor, size: Sequence[int]) -> Tensor:
    """`self` in another shape, as a tensor that is nobody's view: only for tensors that nobody else holds."""
    result = wrap_view(views.view(self._array, size), self)
    result._base = None
    return result


def _reshape(self: Tensor, shape: Sequence[int]) -> Tensor:
    array = self._array
    if array.flags.c_contiguous:
        return view.op.table[self._keys](self, shape)
    if views.can_view(array, shape):
        itemsize = array.itemsize
        steps = tuple([s // itemsize for s in views.view(array, shape).strides])
        return _reshape_alias(self, shape, steps)
    return _unsafe_view(self.clone(memory_format=contiguous_format), shape)


reshape = op("reshape(Tensor(a) self, SymInt[] shape) -> Tensor(a)", composite=_reshape)
reshape_as = op(
    "reshape_as(Tensor(a) self, Tensor other) -> Tensor(a)",
    composite=lambda self, other: reshape(self, other._array.shape),
    variants="method",
)
view_as = op(
    "view_as(Tensor(a) self, Tensor other) -> Tensor(a)",
    composite=lambda self, other: view(self, other._array.shape),
    variants="method",
)


def _flatten(self: Tensor, start_dim: int, end_dim: int) -> Tensor:
    shape = self._array.shape
    ndim = len(shape)
    start, end = wrap_dim(start_dim, ndim), wrap_dim(end_dim, ndim)
    if start > end:
        raise RuntimeError("flatten() has invalid args: start_dim cannot come after end_dim")
    if not ndim:
        return reshape(self, (1,))
    if start == end:
        return self
    return _reshaped(self, (*shape[:start], math.prod(shape[start : end + 1]), *shape[end + 1 :]))


def _reshaped(self: Tensor, shape: tuple[int, ...]) -> Tensor:
    """`reshape` without being recorded as such, as inside torch's composites."""
    return _reshape(self, shape)


flatten = op("flatten.using_ints(Tensor(a) self, int start_dim=0, int end_dim=-1) -> Tensor(a)", composite=_flatten)


def _unflatten(self: Tensor, dim: int, sizes: Sequence[int]) -> Tensor:
    d = wrap_dim(dim, self.dim())
    shape = self._array.shape
    sizes = tuple(sizes)
    if not sizes:
        raise RuntimeError("unflatten: sizes must be non-empty")
    if not shape:
        raise RuntimeError(f"unflatten got an unexpected error:\nDimension specified as {d} but tensor has no dimensions")
    resolved = list(sizes)
    if sizes.count(-1) > 1:
        raise RuntimeError("only one dimension can be inferred")
    product = math.prod([n for n in sizes if n != -1])
    if -1 in sizes:
        if product == 0 or shape[d] % product:
            raise RuntimeError(
                f"unflatten: Provided sizes {list(sizes)} don't multiply up to the size of dim {dim} ({shape[d]}) in the input tensor"
            )
        resolved[sizes.index(-1)] = shape[d] // product
    elif product != shape[d]:
        raise RuntimeError(
            f"unflatten: Provided sizes {list(sizes)} don't multiply up to the size of dim {dim} ({shape[d]}) in the input tensor"
        )
    return view(self, (*shape[:d], *resolved, *shape[d + 1 :]))


unflatten = op("unflatten.int(Tensor(a) self, int dim, SymInt[] sizes) -> Tensor(a)", composite=_unflatten)


def _ravel(self: Tensor) -> Tensor:
    if not self._array.flags.c_contiguous:
        self = self.contiguous()
    return view(self, (-1,))


ravel = op("ravel(Tensor(a) self) -> Tensor(a)", composite=_ravel)

# --- expand ---------------------------------------------------------------------------------------------------------

expand = op(
    "expand(Tensor(a) self, SymInt[] size, *, bool implicit=False) -> Tensor(a)",
    cpu=views.expand,
    grad={"self": lambda grad, self_shape: sum_to(grad, self_shape)},
    variants="method",
)
expand_as = op(
    "expand_as(Tensor(a) self, Tensor other) -> Tensor(a)",
    composite=lambda self, other: expand(self, other._array.shape),
    variants="method",
)
broadcast_to = op(
    "broadcast_to(Tensor(a) self, SymInt[] size) -> Tensor(a)", composite=lambda self, size: expand(self, tuple(size))
)

# --- the order of dimensions ----------------------------------------------------------------------------------------

transpose = op(
    "transpose.int(Tensor(a) self, int dim0, int dim1) -> Tensor(a)",
    cpu=views.transpose,
    grad={"self": lambda grad, dim0, dim1: transpose(grad, dim0, dim1)},
)
t = op("t(Tensor(a) self) -> Tensor(a)", cpu=views.t, grad={"self": lambda grad: t(grad)})


def _inverse(dims: Sequence[int]) -> tuple[int, ...]:
    n = len(dims)
    inverse = [0] * n
    for i, d in enumerate(dims):
        inverse[d % n] = i
    return tuple(inverse)


permute = op(
    "permute(Tensor(a) self, int[] dims) -> Tensor(a)",
    cpu=views.permute,
    grad={"self": lambda grad, dims: permute(grad, _inverse(dims))},
)


def _adjoint(self: Tensor) -> Tensor:
    swapped = transpose(self, -2, -1)
    return swapped.conj() if self.dtype.is_complex else swapped


def _numpy_t(self: Tensor) -> Tensor:
    return permute(self, (1, 0) if self._array.ndim == 2 else tuple(range(self.dim() - 1, -1, -1)))


def _matrix_h(self: Tensor) -> Tensor:
    ndim = self.dim()
    if ndim not in (0, 2):
        raise RuntimeError(f"tensor.H is only supported on matrices (2-D tensors). Got {ndim}-D tensor.")
    if not ndim:
        return self.conj() if self.dtype.is_complex else self
    return _adjoint(self)


def _m_t(self: Tensor) -> Tensor:
    if not self.dim():
        return self
    if self.dim() < 2:
        raise RuntimeError(f"tensor.mT is only supported on matrices or batches of matrices. Got {self.dim()}-D tensor.")
    return transpose(self, -2, -1)


def _m_h(self: Tensor) -> Tensor:
    if not self.dim():
        return _matrix_h(self)
    if self.dim() < 2:
        raise RuntimeError(f"tensor.mH is only supported on matrices or batches of matrices. Got {self.dim()}-D tensor.")
    return _adjoint(self)


def _adjoint_checked(self: Tensor) -> Tensor:
    if not self.dim():
        return _matrix_h(self)
    if self.dim() < 2:
        raise RuntimeError(f"tensor.adjoint() is only supported on matrices or batches of matrices. Got {self.dim()}-D tensor.")
    return _adjoint(self)


adjoint = op("adjoint(Tensor(a) self) -> Tensor(a)", composite=_adjoint_checked)
numpy_t = op("numpy_T(Tensor(a) self) -> Tensor(a)", composite=_numpy_t, variants="")
matrix_h = op("matrix_H(Tensor(a) self) -> Tensor(a)", composite=_matrix_h, variants="")
m_t = op("mT(Tensor(a) self) -> Tensor(a)", composite=_m_t, variants="")
m_h = op("mH(Tensor(a) self) -> Tensor(a)", composite=_m_h, variants="")
for _name, _entry in (("T", numpy_t), ("H", matrix_h), ("mT", m_t), ("mH", m_h)):
    setattr(Tensor, _name, property(_entry))


def _movedim(self: Tensor, source: Sequence[int], destination: Sequence[int]) -> Tensor:
    if len(source) != len(destination):
        raise RuntimeError(
            f"movedim: Invalid source or destination dims: source ({list(source)} dims) should contain the same number of dims as "
            f"destination ({list(destination)} dims)"
        )
    ndim = self.dim()
    for name, dims in (("source", source), ("destination", destination)):
        if len({wrap_dim(d, ndim) for d in dims}) != len(dims):
            raise RuntimeError(f"movedim: repeated dim in `{name}` ({list(dims)})")
    if not ndim:
        return alias(self)
    sources, destinations = wrap_dims(source, ndim), wrap_dims(destination, ndim)
    rest = iter([d for d in range(ndim) if d not in sources])
    placed = dict(zip(destinations, sources, strict=True))
    return permute(self, tuple([placed[i] if i in placed else next(rest) for i in range(ndim)]))


def _movedim_int(self: Tensor, source: int, destination: int) -> Tensor:
    return _movedim(self, (source,), (destination,))


for _name in ("movedim", "moveaxis"):
    op(f"{_name}.intlist(Tensor(a) self, int[] source, int[] destination) -> Tensor(a)", composite=_movedim)
    op(f"{_name}.int(Tensor(a) self, int source, int destination) -> Tensor(a)", composite=_movedim_int)
swapaxes = op(
    "swapaxes(Tensor(a) self, int axis0, int axis1) -> Tensor(a)",
    composite=lambda self, axis0, axis1: transpose(self, axis0, axis1),
)
swapdims = op(
    "swapdims(Tensor(a) self, int dim0, int dim1) -> Tensor(a)", composite=lambda self, dim0, dim1: transpose(self, dim0, dim1)
)

# --- dimensions of extent one ---------------------------------------------------------------------------------------


def _unsqueeze_to(grad: Tensor, shape: Sequence[int]) -> Tensor:
    """Put the dimensions of extent one back that `squeeze` took."""
    for i, n in enumerate(shape):
        if n == 1:
            grad = unsqueeze(grad, i)
    return grad


def _unsqueeze_dims(grad: Tensor, dims: Sequence[int], shape: Sequence[int]) -> Tensor:
    ndim = len(shape)
    if ndim:
        for d in sorted(wrap_dims(dims, ndim)):
            if shape[d] == 1:
                grad = unsqueeze(grad, d)
    return grad


squeeze = op(
    "squeeze(Tensor(a) self) -> Tensor(a)",
    cpu=views.squeeze,
    grad={"self": lambda grad, self_shape: _unsqueeze_to(grad, self_shape)},
)
squeeze_dim = op(
    "squeeze.dim(Tensor(a) self, int dim) -> Tensor(a)",
    cpu=views.squeeze_dim,
    grad={"self": lambda grad, dim, self_shape: _unsqueeze_dims(grad, (dim,), self_shape)},
    node="SqueezeBackward1",
)
squeeze_dims = op(
    "squeeze.dims(Tensor(a) self, int[] dim) -> Tensor(a)",
    cpu=views.squeeze_dims,
    grad={"self": lambda grad, dim, self_shape: _unsqueeze_dims(grad, dim, self_shape)},
    node="SqueezeBackward2",
)


@public("function method", name="squeeze")
def _squeeze_any(input: Tensor, dim: int | None = None, **aliases: Any) -> Tensor:
    """The tensor without dimensions of extent one: all of them, one, or some."""
    if aliases:
        dim = aliases.pop("axis")
    if dim is None:
        return squeeze(input)
    if dim.__class__ is int:
        return squeeze_dim(input, dim)
    return squeeze_dims(input, tuple(dim)) if isinstance(dim, list | tuple) else squeeze_dim(input, int(dim))


unsqueeze = op(
    "unsqueeze(Tensor(a) self, int dim) -> Tensor(a)", cpu=views.unsqueeze, grad={"self": lambda grad, dim: squeeze_dim(grad, dim)}
)

# --- any geometry ---------------------------------------------------------------------------------------------------


def strided_array(self: Tensor, size: Sequence[int], stride: Sequence[int], offset: int | None) -> Array:
    """An array over the tensor's storage; strides and offset in elements."""
    size, stride = tuple(size), tuple(stride)
    if len(size) != len(stride):
        raise RuntimeError("mismatch in length of strides and shape")
    if stride and min(stride) < 0:
        raise RuntimeError(f"as_strided: Negative strides are not supported at the moment, got strides: {list(stride)}")
    if size and min(size) < 0:
        raise RuntimeError(f"Storage size calculation overflowed with sizes={list(size)} and strides={list(stride)}")
    if offset is None:
        offset = 0 if self._array is self._storage.array else self.storage_offset()
    elif offset < 0:
        raise RuntimeError(f"Tensor: invalid storage offset {offset}")
    item = self.dtype.itemsize
    memory = self._storage.bytes()
    needed = 0 if 0 in size else (offset + 1 + sum((n - 1) * s for n, s in zip(size, stride, strict=True))) * item
    if needed >= 1 << 63:
        raise RuntimeError(f"Storage size calculation overflowed with sizes={list(size)} and strides={list(stride)}")
    if needed > memory.nbytes:
        raise RuntimeError(
            f"setStorage: sizes {list(size)}, strides {list(stride)}, storage offset {offset}, and itemsize {item} requiring a storage "
            f"size of {needed} are out of bounds for storage of size {memory.nbytes}"
        )
    array: Array = np.ndarray(size, self._array.dtype, memory, offset * item if needed else 0, tuple([s * item for s in stride]))
    if 0 in stride and any(s == 0 and n > 1 for n, s in zip(size, stride, strict=True)):
        array.setflags(write=False)
    return array


def _as_strided(self: Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None) -> Tensor:
    return wrap_view(strided_array(self, size, stride, storage_offset), self)


def _as_strided_grad(
    grad: Tensor, self_geometry: tuple[Any, ...], size: Sequence[int], stride: Sequence[int], storage_offset: int | None
) -> Tensor:
    base_shape, base_strides, base_offset = self_geometry
    offset = 0 if storage_offset is None else storage_offset - base_offset
    return as_strided_backward(grad, base_shape, base_strides, size, stride, offset)


as_strided = op(
    "as_strided(Tensor(a) self, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None) -> Tensor(a)",
    composite=_as_strided,
    grad={"self": _as_strided_grad},
)


def as_strided_backward(
    grad: Tensor,
    base_shape: Sequence[int],
    base_strides: Sequence[int],
    shape: Sequence[int],
    strides: Sequence[int],
    offset: int,
) -> Tensor:
    """The gradient of a strided view with respect to its base; `offset` counts elements from the base's first.

    Gradients of view elements that share memory add up; base elements that share memory share that sum evenly.
    """
    for i in reversed(range(len(shape))):
        if not shape[i]:
            return zeros(base_shape, grad)
        if shape[i] == 1 or not strides[i]:
            grad = grad.squeeze(i) if shape[i] == 1 else grad.sum(i)
            shape, strides = (*shape[:i], *shape[i + 1 :]), (*strides[:i], *strides[i + 1 :])
    start = max(-offset, 0)  # the base's first element, in a stretch of memory that holds both geometries
    size = max(_extent(base_shape, base_strides, start), _extent(shape, strides, start + offset))
    flat = grad.new_zeros((size,))
    if overlaps(shape, strides):
        where = reshape(as_strided(aten.arange(size, device=grad.device), shape, strides, start + offset), (-1,))
        flat = flat.index_add_(0, where, reshape(grad, (-1,)))
    else:
        as_strided(flat, shape, strides, start + offset).copy_(grad)
    if overlaps(base_shape, base_strides):
        at = _positions(base_shape, base_strides, start)
        counts = wrap(np.maximum(np.bincount(at, minlength=size), 1).astype(np.float64)).to(grad.dtype)
        flat = flat / counts
    return as_strided(flat, base_shape, base_strides, start)


def _extent(shape: Sequence[int], strides: Sequence[int], offset: int) -> int:
    """Return the number of elements of memory that a geometry reaches over."""
    return offset if 0 in shape else offset + 1 + sum((n - 1) * s for n, s in zip(shape, strides, strict=True))


def _positions(shape: Sequence[int], strides: Sequence[int], offset: int) -> Array:
    """The place in memory of every element, in the elements' order."""
    at = np.full(tuple(shape), offset, np.int64)
    for d, (n, s) in enumerate(zip(shape, strides, strict=True)):
        at += (np.arange(n) * s).reshape((n,) + (1,) * (len(shape) - 1 - d))
    return at.reshape(-1)


def overlaps(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether two elements may share memory, by torch's sufficient test on sorted strides."""
    reach = 1
    for s, n in sorted((s, n) for n, s in zip(shape, strides, strict=True) if n != 1):
        if s < reach:
            return True
        reach += (n - 1) * s
    return False
