"""`Tensor`: a NumPy array with a dtype, a device, a storage it may share, and a place in the autograd graph.

The operator methods (`x.add`, `x.sum`, …) are attached by `_functions`, from the operators' declarations.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, SupportsIndex

import numpy as np

from . import _device, _dtype
from ._checks import contiguous_strides, dimension_error, torch_strides
from ._dispatch import keys
from ._dispatch.tls import state
from ._storage import UntypedStorage

if TYPE_CHECKING:
    from ._autograd.node import Node

__all__ = ["Size", "Tensor", "wrap"]

_new = object.__new__
_CPU = _device.cpu
_FROM_NUMPY = _dtype.FROM_NUMPY


class Size(tuple[int, ...]):
    """A shape: a tuple of ints that prints as torch prints it."""

    __slots__ = ()

    def numel(self) -> int:
        n = 1
        for s in self:
            n *= s
        return n

    def __repr__(self) -> str:
        return f"torch.Size([{', '.join(map(str, self))}])"

    def __add__(self, other: Any) -> Size:
        if not isinstance(other, tuple):
            return NotImplemented if hasattr(type(other), "__radd__") else self._refuse(other)
        return Size(tuple.__add__(self, other))

    def __radd__(self, other: Any) -> Size:
        return Size(tuple.__add__(other, self)) if isinstance(other, tuple) else NotImplemented

    def _refuse(self, other: object) -> NoReturn:
        raise TypeError(f"can only concatenate tuple (not {type(other).__name__}) to torch.Size")

    def __mul__(self, n: SupportsIndex) -> Size:
        return Size(tuple.__mul__(self, n))

    __rmul__ = __mul__

    def __getitem__(self, i: Any) -> Any:
        got = tuple.__getitem__(self, i)
        return Size(got) if isinstance(i, slice) else got

    def __reduce__(self) -> tuple[Any, ...]:
        return (Size, (tuple(self),))


class Extra:
    """Attributes that only some tensors have: a gradient, hooks, a name. Kept apart so that making a tensor stays cheap."""

    __slots__ = ("accumulator", "grad", "hooks", "name", "post_accumulate_hooks", "rebased", "retains_grad", "tangents")

    def __init__(self) -> None:
        self.grad: Tensor | None = None
        self.hooks: dict[int, Callable[..., Any]] | None = None
        self.post_accumulate_hooks: dict[int, Callable[..., Any]] | None = None
        self.retains_grad = False
        self.name: str | None = None
        self.accumulator: Any = None  # a weak reference to the node that stands for a leaf
        self.tangents: dict[int, Tensor] | None = None  # by the number of the level of forward mode
        self.rebased = 0  # when an in-place write last replaced the history, in sequence numbers of nodes


class Tensor:
    """A multi-dimensional array of one dtype on one device, differentiable when it requires grad."""

    # _array      the elements, with this tensor's shape and strides
    # _storage    the memory, shared with views
    # _keys       dispatch keys; the Autograd bit is `requires_grad`
    # _node       where the gradient goes: a Node, an Output of one, or None for a leaf
    # _base       the tensor this one is a view of
    # _extra      Extra, or None
    # _geometry   what a profiler knows of shape, strides and dtype; unset or None until one asks, and None when they change (`set_array`)
    # _identity   its number, once somebody has asked for it (`_storage.identity`)
    __slots__ = (
        "__dict__",
        "__weakref__",
        "_array",
        "_base",
        "_extra",
        "_geometry",
        "_identity",
        "_keys",
        "_node",
        "_storage",
        "device",
        "dtype",
    )
    _array: np.ndarray[Any, Any]
    _storage: UntypedStorage
    _keys: int
    _node: Any
    _base: Tensor | None
    _extra: Extra | None
    _geometry: Any
    _identity: int
    dtype: _dtype.dtype
    device: _device.device

    _class_keys = 0  # what instances of a subclass add to their key set
    _kind = 2  # as an edge of the autograd graph, a tensor is a leaf
    __array_priority__ = 1000  # NumPy leaves mixed expressions to us

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls._class_keys = 0
        dispatch: Any = cls.__torch_dispatch__
        if getattr(dispatch, "__func__", dispatch) not in (None, _disabled_torch_dispatch_impl):
            cls._class_keys |= keys.PYTHON
            default: Any = Tensor.__torch_function__
            if getattr(cls.__torch_function__, "__func__", None) is default.__func__:
                # torch: results are what `__torch_dispatch__` returns, and are given no other type
                cls.__torch_function__ = _disabled_torch_function_impl  # type: ignore[method-assign]
        handler: Any = cls.__torch_function__
        if _disabled_torch_function_impl not in (handler, getattr(handler, "__func__", None)):
            cls._class_keys |= keys.SUBCLASS
            from ._override_points import note_subclass  # cycle with _override_points

            note_subclass()

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        from ._creation import legacy_tensor  # cycle with _creation

        return legacy_tensor(cls, *args, **kwargs)

    @classmethod
    def __torch_function__(
        cls, func: Callable[..., Any], types: Sequence[type], args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        from .overrides import default_torch_function  # cycle with overrides

        return default_torch_function(cls, func, types, args, kwargs or {})

    __torch_dispatch__: Any  # `_disabled_torch_dispatch_impl`, as a class method

    # --- shape and memory -------------------------------------------------------------------------------------------

    @property
    def shape(self) -> Size:
        """The extent along each dimension."""
        return Size(self._array.shape)

    def dim(self) -> int:
        """The number of dimensions."""
        return self._array.ndim

    ndimension = dim

    @property
    def ndim(self) -> int:
        return self._array.ndim

    def numel(self) -> int:
        """The number of elements."""
        return self._array.size

    nelement = numel

    def size(self, dim: int | None = None) -> Any:
        """The shape, or its extent along one dimension."""
        if dim is None:
            return Size(self._array.shape)
        shape = self._array.shape
        if not -len(shape) <= dim < len(shape):
            raise dimension_error(dim, len(shape))
        return shape[dim]

    def stride(self, dim: int | None = None) -> Any:
        """The step in elements between neighbours along each dimension, or along one."""
        itemsize = self.dtype.itemsize
        strides = tuple([s // itemsize for s in self._array.strides])
        if 0 in strides:
            if self._array.size == 0 and not any(strides):  # NumPy forgets the strides of an array that is made without elements
                strides = contiguous_strides(self._array.shape)
            else:
                strides = torch_strides(self._array.shape, strides)
        if dim is None:
            return strides
        if not -len(strides) <= dim < len(strides):
            raise dimension_error(dim, len(strides))
        return strides[dim]

    def storage_offset(self) -> int:
        """The position of the first element in the storage, in elements."""
        if not self._array.size:
            return 0  # NumPy lays views of an empty array anywhere
        start = self._storage.array.__array_interface__["data"][0]
        return int(self._array.__array_interface__["data"][0] - start) // self.dtype.itemsize

    def data_ptr(self) -> int:
        """The address of the first element."""
        return 0 if self._keys & keys.META or not self._array.size else int(self._array.__array_interface__["data"][0])

    def untyped_storage(self) -> UntypedStorage:
        """The memory that this tensor shares with its views."""
        return self._storage

    def element_size(self) -> int:
        """Bytes of one element."""
        return self.dtype.itemsize

    @property
    def itemsize(self) -> int:
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        return self._array.size * self.dtype.itemsize

    @property
    def _version(self) -> int:
        if self._keys & keys.INFERENCE:
            raise RuntimeError("Inference tensors do not track version counter.")
        return self._storage.version

    # --- autograd ---------------------------------------------------------------------------------------------------

    @property
    def requires_grad(self) -> bool:
        """Whether operations on this tensor are recorded for `backward`."""
        return self._keys & keys.AUTOGRAD != 0

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        from ._autograd.leaf import set_requires_grad  # cycle with _autograd.leaf

        set_requires_grad(self, value)

    @property
    def is_leaf(self) -> bool:
        """Whether this tensor starts a graph rather than being computed in one."""
        return self._node is None

    @property
    def grad_fn(self) -> Node | None:
        """The node that computes this tensor's gradient, or None for a leaf."""
        from ._autograd.node import node_of  # cycle with _autograd.node

        return node_of(self)

    @property
    def output_nr(self) -> int:
        """The number of this tensor among the results of its `grad_fn`."""
        from ._autograd.node import OUTPUT, edge_of  # cycle with _autograd.node

        edge = edge_of(self)
        return edge.index if edge is not None and edge._kind == OUTPUT else 0

    @property
    def grad(self) -> Tensor | None:
        """The gradient gathered by `backward`."""
        extra = self._extra
        if extra is None or extra.grad is None:
            if self._node is not None and (extra is None or not extra.retains_grad):
                from ._autograd.leaf import warn_grad_of_non_leaf  # cycle with _autograd.leaf

                warn_grad_of_non_leaf(self)
            return None
        return extra.grad

    @grad.setter
    def grad(self, value: Tensor | None) -> None:
        if value is not None:
            from ._autograd.leaf import check_new_grad  # cycle with _autograd.leaf

            check_new_grad(self, value)
        elif self._extra is None:
            return
        self._require_extra().grad = value

    @grad.deleter
    def grad(self) -> None:
        if self._extra is not None:
            self._extra.grad = None

    _grad = grad

    def _require_extra(self) -> Extra:
        if self._extra is None:
            self._extra = Extra()
        return self._extra

    def _is_view(self) -> bool:
        return self._base is not None

    __hash__ = object.__hash__  # by identity, as __eq__ compares elements

    if TYPE_CHECKING:
        # attached by `_functions` from the operators' declarations, and by what is written for single names

        backward: Any
        data: Any
        retains_grad: Any
        mul: Any
        mul_: Any
        __iter__: Any
        __itruediv__: Any
        __div__: Any
        __rdiv__: Any
        __idiv__: Any

        def __getattr__(self, name: str) -> Any: ...
        def __add__(self, other: Any) -> Tensor: ...
        def __radd__(self, other: Any) -> Tensor: ...
        def __sub__(self, other: Any) -> Tensor: ...
        def __rsub__(self, other: Any) -> Tensor: ...
        def __mul__(self, other: Any) -> Tensor: ...
        def __rmul__(self, other: Any) -> Tensor: ...
        def __truediv__(self, other: Any) -> Tensor: ...
        def __rtruediv__(self, other: Any) -> Tensor: ...
        def __floordiv__(self, other: Any) -> Tensor: ...
        def __rfloordiv__(self, other: Any) -> Tensor: ...
        def __mod__(self, other: Any) -> Tensor: ...
        def __rmod__(self, other: Any) -> Tensor: ...
        def __pow__(self, other: Any) -> Tensor: ...
        def __rpow__(self, other: Any) -> Tensor: ...
        def __matmul__(self, other: Any) -> Tensor: ...
        def __rmatmul__(self, other: Any) -> Tensor: ...
        def __and__(self, other: Any) -> Tensor: ...
        def __or__(self, other: Any) -> Tensor: ...
        def __xor__(self, other: Any) -> Tensor: ...
        def __lshift__(self, other: Any) -> Tensor: ...
        def __rshift__(self, other: Any) -> Tensor: ...
        def __lt__(self, other: Any) -> Tensor: ...
        def __le__(self, other: Any) -> Tensor: ...
        def __gt__(self, other: Any) -> Tensor: ...
        def __ge__(self, other: Any) -> Tensor: ...
        def __eq__(self, other: Any) -> Tensor: ...  # type: ignore[override]
        def __ne__(self, other: Any) -> Tensor: ...  # type: ignore[override]
        def __neg__(self) -> Tensor: ...
        def __pos__(self) -> Tensor: ...
        def __invert__(self) -> Tensor: ...
        def __abs__(self) -> Tensor: ...
        def __getitem__(self, index: Any) -> Tensor: ...
        def __setitem__(self, index: Any, value: Any) -> None: ...
        def __len__(self) -> int: ...
        def __bool__(self) -> bool: ...
        def __int__(self) -> int: ...
        def __float__(self) -> float: ...
        def __complex__(self) -> complex: ...
        def __index__(self) -> int: ...
        def __contains__(self, item: object) -> bool: ...


def _disabled_torch_function_impl(
    func: Callable[..., Any], types: Sequence[type], args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
) -> Any:
    """Assigned to `__torch_function__`, it makes a subclass behave as a plain tensor in calls."""
    from .overrides import DisableTorchFunctionSubclass  # cycle with overrides

    with DisableTorchFunctionSubclass():
        return func(*args, **(kwargs or {}))


def _disabled_torch_dispatch_impl(
    cls: type, func: Callable[..., Any], types: Sequence[type], args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
) -> Any:
    """`Tensor.__torch_dispatch__`: run an operator's kernel, with subclasses as plain tensors and without modes."""
    state.dispatch_override_off += 1
    try:
        return func(*args, **(kwargs or {}))
    finally:
        state.dispatch_override_off -= 1


Tensor.__torch_dispatch__ = classmethod(_disabled_torch_dispatch_impl)


def wrap(array: np.ndarray[Any, Any], dtype: _dtype.dtype | None = None) -> Tensor:
    """A CPU tensor that owns this array (or NumPy scalar); nothing else may write to it."""
    if array.__class__ is not np.ndarray:
        array = np.asarray(array)
    t: Tensor = _new(Tensor)
    t._array = array
    storage = t._storage = UntypedStorage()
    storage.array = array
    storage.version = 0
    t.dtype = _FROM_NUMPY[array.dtype] if dtype is None else dtype
    t.device = _CPU
    t._keys = keys.CPU
    t._node = None
    t._base = None
    t._extra = None
    return t


def wrap_sized(array: np.ndarray[Any, Any], dtype: _dtype.dtype | None = None) -> Tensor:
    """The same, of an array that may be large: 0.05 µs more."""
    t = wrap(array, dtype)
    if t._array.size >= keys.LARGE_SIZE:
        t._keys = keys.CPU | keys.LARGE
    return t


def wrap_view(array: np.ndarray[Any, Any], base: Tensor, dtype: _dtype.dtype | None = None) -> Tensor:
    """A tensor over part of another one's memory."""
    t: Tensor = _new(Tensor)
    t._array = array
    t._storage = base._storage
    t.dtype = base.dtype if dtype is None else dtype
    t.device = base.device
    t._keys = base._keys & keys.OF_VIEWS
    t._node = None
    t._base = base if base._base is None else base._base
    t._extra = None
    return t


def shallow_copy(t: Tensor, cls: type[Tensor] = Tensor) -> Tensor:
    """The same elements and storage in a new tensor outside of any graph."""
    new: Tensor = _new(cls)
    new._array = t._array
    new._storage = t._storage
    new.dtype = t.dtype
    new.device = t.device
    new._keys = (t._keys & (keys.OF_VIEWS | keys.INFERENCE)) | cls._class_keys
    new._node = None
    new._base = None
    new._extra = None
    return new


def check_unclaimed(t: Tensor, cls: type[Tensor]) -> None:
    """What a class returned from `__torch_dispatch__` is its own, and cannot be made one of another class."""
    if t.__class__._class_keys & keys.PYTHON and not isinstance(t, cls):
        raise RuntimeError(
            f"Creating a new Tensor subclass {cls.__name__} but the raw Tensor object is already associated to a python object of type "
            f"{type(t).__name__}; make it of a plain tensor"
        )


def in_class(t: Tensor, cls: type[Tensor]) -> Tensor:
    """A tensor that was just made, as one of a subclass in the same place of the graph and a view of the same base."""
    check_unclaimed(t, cls)
    new = shallow_copy(t, cls)
    new._keys |= t._keys & keys.AUTOGRAD
    new._node, new._base = t._node, t._base
    return new


def set_array(t: Tensor, array: np.ndarray[Any, Any]) -> None:
    """Give a tensor an array of another shape or other strides."""
    t._array = array
    t._geometry = None


def grad_enabled() -> bool:
    return state.grad_enabled
