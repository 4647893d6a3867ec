"""Methods of the tensor object that are no operators: facts about it, NumPy's protocols, copies, printing."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, SupportsIndex

import numpy as np

from ... import _device, _interop, _pickling, _shared_memory
from ..._creation import array_from, device_of, dtype_of, moved, refuse_pinned
from ..._dispatch import keys
from ..._dtype import get_default_dtype
from ..._legacy import alias_of, made_of
from ..._memory_format import contiguous_format, is_contiguous_as, layout, memory_format, sparse_coo, sparse_csr, strided
from ..._pending import resolved
from ..._printing import tensor_text
from ..._storage import MetaStorage, UntypedStorage
from ..._storage_methods import mapped_file
from ..._tensor import Tensor, check_unclaimed, in_class, shallow_copy, wrap_sized
from ..._wrapper_subclass import wrapper_of
from ...storage import LEGACY_NAMES, STORAGE_CLASSES, TypedStorage, typed_over, typed_storage_of
from ..machinery.declare import public

if TYPE_CHECKING:
    from ..._types import Array, OptionalDevice, OptionalDType, OptionalLayout, OptionalMemoryFormat, Shape


def _attach_property(name: str, getter: Any, setter: Any = None, doc: str = "") -> None:
    public("method", name=name)(property(getter, setter, doc=doc))


# --- facts ----------------------------------------------------------------------------------------------------------

_attach_property("is_cpu", lambda self: self.device.type == "cpu", doc="Whether the elements are in the host's memory.")
_attach_property("is_meta", lambda self: self.device.type == "meta", doc="Whether this tensor has a geometry and no elements.")
_attach_property("is_npu", lambda self: self.device.type == "npu", doc="Whether the elements are on an Ascend NPU.")
for _name in (
    "cuda",
    "ipu",
    "maia",
    "mkldnn",
    "mps",
    "mtia",
    "vulkan",
    "xla",
    "xpu",
    "quantized",
    "nested",
):
    _attach_property(f"is_{_name}", lambda self: False, doc="False: there are no such tensors here.")
_attach_property("is_sparse", lambda self: self._keys & keys.SPARSE != 0, doc="Whether only coordinates and values are kept.")
_attach_property("is_sparse_csr", lambda self: self.layout is sparse_csr, doc="Whether rows are kept in compressed form.")
_attach_property("layout", lambda self: _layout(self), doc="How the elements are kept.")
_attach_property("name", lambda self: self._extra.name if self._extra is not None else None, doc="None, unless set by autograd.")


def _layout(self: Any) -> layout:
    if not self._keys & keys.SPARSE_LAYOUTS:
        return strided
    return sparse_coo if self._keys & keys.SPARSE else self._storage.layout


@public("method")
def is_contiguous(self: Tensor, memory_format: memory_format = contiguous_format) -> bool:
    """Whether the elements lie in memory in the order of this format."""
    if memory_format is contiguous_format:
        return bool(self._array.flags.c_contiguous)
    return is_contiguous_as(self._array.shape, self.stride(), memory_format)


@public("function method")
def is_floating_point(input: Tensor) -> bool:
    """Whether the dtype is a floating-point one."""
    return input.dtype.is_floating_point


@public("function method")
def is_complex(input: Tensor) -> bool:
    """Whether the dtype is a complex one."""
    return input.dtype.is_complex


@public("function method")
def is_signed(input: Tensor) -> bool:
    """Whether the dtype holds negative numbers."""
    return input.dtype.is_signed


@public("function method")
def is_same_size(input: Tensor, other: Tensor) -> bool:
    """Whether both have the same shape."""
    return input._array.shape == other._array.shape


@public("function method")
def get_device(input: Tensor) -> int:
    """The number of the accelerator that holds the tensor; -1 on the CPU."""
    if input._keys & keys.META or input._keys & keys.CPU:
        return -1
    return input.device.index or 0


@public("function")
def is_inference(input: Tensor) -> bool:
    """Whether a tensor was made in inference mode."""
    return input.is_inference()


@public("function")
def is_vulkan_available() -> bool:
    """False."""
    return False


@public("function")
def _assert_tensor_metadata(
    a: Tensor,
    size: Shape | None = None,
    stride: Shape | None = None,
    dtype: OptionalDType = None,
    *,
    device: OptionalDevice = None,
    layout: OptionalLayout = None,
) -> None:
    """Raise RuntimeError unless a tensor has this size, stride, dtype, device and layout, as far as given."""
    facts: tuple[tuple[str, Any, Callable[[], Any]], ...] = (
        ("sizes", size, lambda: list(a.shape)),
        ("strides", stride, lambda: list(a.stride())),
        ("dtype", dtype, lambda: a.dtype),
        ("device", device, lambda: a.device),
        ("layout", layout, lambda: a.layout),
    )
    for name, wanted, found in facts:
        if wanted is None:
            continue
        expected = list(wanted) if name in ("sizes", "strides") else _device.device(wanted) if name == "device" else wanted
        if expected != found():
            raise RuntimeError(f"Tensor {name} mismatch! Expected: {expected}, Got: {found()}")


@public("function")
def numel(input: Tensor) -> int:
    """The number of elements."""
    return input.numel()


@public("function")
def is_tensor(obj: object, /) -> bool:
    """Whether an object is a tensor."""
    return isinstance(obj, Tensor)


@public("function")
def is_storage(obj: object, /) -> bool:
    """Whether an object is a storage."""
    return isinstance(obj, UntypedStorage | TypedStorage)


@public("function")
def typename(obj: object, /) -> str:
    """The type of an object by name; of a tensor, its legacy type."""
    if isinstance(obj, Tensor):
        return obj.type()
    kind = obj if isinstance(obj, type) else type(obj)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


@public("method")
def dim_order(self: Tensor, *, ambiguity_check: Any = False) -> tuple[int, ...]:
    """The dimensions from the outermost in memory to the innermost.

    `ambiguity_check` refuses tensors for which several orders are right; given memory formats, unless exactly one of them fits.
    """
    strides = self.stride()
    named = isinstance(ambiguity_check, list) and all(isinstance(f, memory_format) for f in ambiguity_check)
    if not named and not isinstance(ambiguity_check, bool):
        raise TypeError("The ambiguity_check argument must be a bool or a list of memory formats.")
    if ambiguity_check is not False and (1 in self.shape or any(a == b for a, b in itertools.pairwise(strides))):
        formats = ambiguity_check if isinstance(ambiguity_check, list) else []
        if sum(self.is_contiguous(memory_format=f) for f in formats) != 1:
            raise RuntimeError("The tensor does not have unique dim order, or cannot map to exact one of the given memory formats.")
    return tuple(sorted(range(len(strides)), key=lambda dim: -strides[dim]))


@public("method")
def is_shared(self: Tensor) -> bool:
    """Whether the memory is shared between processes."""
    return self._storage.is_shared()


@public("method")
def share_memory_(self: Tensor) -> Tensor:
    """Move the storage to memory that processes share: those that are forked later or get the tensor sent see each other's writes."""
    if isinstance(self._storage, MetaStorage):
        return self
    if self._keys & keys.SPARSE_LAYOUTS:
        raise NotImplementedError("share_memory_: move the indices and the values of a sparse tensor, one by one")
    _shared_memory.share(self._storage, self)
    return self


@public("method")
def cuda(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """Refused: there is no CUDA here."""
    raise AssertionError("Torch not compiled with CUDA enabled")


@public("method")
def npu(self: Tensor, device: OptionalDevice = None, non_blocking: bool = False) -> Tensor:
    """The tensor on an Ascend NPU."""
    where = _device.device("npu" if device is None else device if not isinstance(device, int) else f"npu:{device}")
    return self.to(where, non_blocking=non_blocking)


# --- memory ---------------------------------------------------------------------------------------------------------


@public("method")
def storage_type(self: Tensor) -> type:
    """The legacy class of the tensor's storage."""
    return STORAGE_CLASSES.get(LEGACY_NAMES.get(self.dtype, ""), TypedStorage)


@public("function")
def from_file(
    filename: str, shared: bool | None = None, size: int | None = 0, *, dtype: OptionalDType = None, layout: OptionalLayout = None, device: OptionalDevice = None,
    pin_memory: bool = False, requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """A one-dim tensor over the elements in a file, mapped. With `shared`, writes go to the file, which is made if need be."""
    if layout is not None and layout is not strided:
        raise NotImplementedError(f"from_file: a file is mapped as a tensor of layout torch.strided, not {layout}")
    if pin_memory:
        refuse_pinned()
    d = get_default_dtype() if dtype is None else dtype
    if device is not None and _device.device(device).type != "cpu":
        raise RuntimeError(f"from_file: a file can only be mapped on the CPU, not on {device}")
    count = size or 0
    memory = mapped_file(os.fspath(filename), shared=bool(shared), size_bytes=count * d.itemsize)
    t = _pickling.view_of_storage(memory, d, 0, (count,), (1,))
    t.requires_grad = requires_grad
    return t


@public("method")
def storage(self: Tensor) -> TypedStorage:
    """The memory as elements of this dtype."""
    return typed_storage_of(self)


@public("method", name="_typed_storage")
def _typed_storage(self: Tensor) -> TypedStorage:
    return typed_over(self)


@public("method", name="__deepcopy__")
def _deepcopy(self: Tensor, memo: dict[int, Any]) -> Tensor:
    return _pickling.deepcopy_tensor(self, memo)


@public("method", name="__reduce_ex__")
def _reduce_ex(self: Tensor, protocol: SupportsIndex) -> tuple[Any, ...]:
    if self._keys & keys.PENDING and self._node is None:
        self = resolved(self.detach()).requires_grad_(self.requires_grad)
    return _pickling.reduce_tensor(self, protocol)


@public("method")
def as_subclass(self: Tensor, cls: type[Tensor]) -> Any:
    """A view of all of the tensor, as an instance of a subclass."""
    if not isinstance(cls, type) or not issubclass(cls, Tensor):
        raise TypeError(
            f"Creating a Tensor subclass from a class that does not inherit from Tensor is not possible. Make sure your class inherits from "
            f"Tensor; got {cls!r}"
        )
    return in_class(alias_of(self), cls)


@public("method")
def module_load(self: Tensor, other: Tensor, assign: bool = False) -> Tensor:
    """What a value of a state dict becomes before it is swapped in for this parameter or buffer; subclasses override it."""
    return other.detach() if assign else self.copy_(other).detach()


@staticmethod  # type: ignore[misc]
def _make_subclass(cls: type[Tensor], data: Tensor, require_grad: bool = False) -> Any:
    """A leaf of a subclass over a tensor's elements."""
    check_unclaimed(data, cls)
    t = shallow_copy(data, cls)
    if require_grad:
        t.requires_grad = True
    return t


public("method", name="_make_subclass")(_make_subclass)


@staticmethod  # type: ignore[misc]
def _make_wrapper_subclass(
    cls: type[Tensor], size: Sequence[int], *, strides: Sequence[int] | None = None, storage_offset: int | None = None, memory_format: OptionalMemoryFormat = None,
    dtype: OptionalDType = None, layout: layout = strided, device: OptionalDevice = None, pin_memory: bool = False, requires_grad: bool = False,
    dispatch_sizes_strides_policy: str | None = None, dispatch_device: bool = False, dispatch_layout: bool = False,
    _extra_dispatch_keys: Any = None, storage_size: int | None = None,
) -> Any:  # fmt: skip
    """A tensor of a subclass that has a geometry and no memory: its `__torch_dispatch__` says what operators do."""
    if dispatch_sizes_strides_policy not in (None, "strides", "sizes"):
        raise ValueError(f"Unknown sizes_strides_policy: {dispatch_sizes_strides_policy}; expected 'strides' or 'sizes'")
    asked = {
        "dispatch_sizes_strides_policy": dispatch_sizes_strides_policy, "dispatch_device": dispatch_device,
        "dispatch_layout": dispatch_layout, "_extra_dispatch_keys": _extra_dispatch_keys, "storage_size": storage_size,
    }  # fmt: skip
    for name, value in asked.items():
        if value:
            raise NotImplementedError(
                f"_make_wrapper_subclass: {name}={value!r} is not supported; the size, strides, device, layout and storage of a wrapper are "
                "those given when it is made, and are not asked of __torch_dispatch__"
            )
    if pin_memory:
        refuse_pinned()
    if storage_offset is not None and strides is None:
        raise RuntimeError("setting storage offset without stride not supported")
    return wrapper_of(cls, size, strides, storage_offset or 0, memory_format, dtype, layout, device, requires_grad)


public("method", name="_make_wrapper_subclass")(_make_wrapper_subclass)


@public("method")
def new(self: Tensor, *args: Any, device: OptionalDevice = None) -> Tensor:
    """A tensor of this dtype from sizes or a sequence, as the legacy constructors make it."""
    return made_of(self.dtype, args, self.device if device is None else device)


@public("method")
def new_tensor(
    self: Tensor, data: Any, *, dtype: OptionalDType = None, device: OptionalDevice = None, requires_grad: bool = False
) -> Tensor:
    """A tensor with a copy of the data, of this tensor's dtype and on its device unless others are given."""
    d = self.dtype if dtype is None else dtype_of(dtype)
    t = moved(wrap_sized(array_from(data, d, copy=True)), self.device if device is None else device_of(device))
    if requires_grad:
        t.requires_grad = True
    return t


# --- NumPy, DLPack, printing ----------------------------------------------------------------------------------------

public("method", name="numpy")(_interop.numpy_of)
public("method", name="__dlpack__")(_interop.to_capsule)
public("method", name="__dlpack_device__")(_interop.dlpack_device)


@public("method", name="__array__")
def _array(self: Tensor, dtype: np.dtype[Any] | None = None, copy: bool | None = None) -> Array:
    array = _interop.numpy_of(self)
    if dtype is None or array.dtype == dtype:
        return array.copy() if copy else array
    if copy is False:
        raise ValueError(f"a copy is needed to make an array of {np.dtype(dtype)} from a tensor of {self.dtype}")
    return array.astype(dtype)


@public("method", name="__array_wrap__")
def _array_wrap(self: Tensor, array: Array, context: Any = None, return_scalar: bool = False) -> Any:
    found = np.asarray(array)
    # torch: what NumPy's functions say in bools comes back in bytes
    return wrap_sized(found.astype(np.uint8) if found.dtype == np.bool_ else found)


@public("method")
def apply_(self: Tensor, callable: Callable[..., Any]) -> Tensor:
    """Replace every element by what a Python function makes of it."""
    if self._keys & keys.AUTOGRAD and self._node is None:
        raise RuntimeError("a leaf Variable that requires grad is being used in an in-place operation.")
    _replace_elements(self, callable)
    return self


def _replace_elements(self: Tensor, function: Any, *others: Tensor) -> None:
    """Write what a Python function makes of each element, and of those at the same place of other tensors."""
    columns = [np.broadcast_to(t._array, self._array.shape).ravel().tolist() for t in (self, *others)]
    made = [function(*items) for items in zip(*columns, strict=True)]
    for value in made:
        if not isinstance(value, int | float | complex | np.generic):
            raise TypeError(f"{type(value).__name__!r} object cannot be interpreted as an element of {self.dtype}")
    self._array[...] = np.array(made, self._array.dtype).reshape(self._array.shape)
    self._storage.version += 1


@public("method")
def map_(self: Tensor, tensor: Tensor, callable: Callable[..., Any]) -> Tensor:
    """Replace every element by `callable(element, other element)`."""
    refuse_grad("map_", self, tensor)
    _replace_elements(self, callable, tensor)
    return self


def refuse_grad(name: str, *tensors: Tensor) -> None:
    """Python functions of elements are not differentiated."""
    if any(t._keys & keys.AUTOGRAD for t in tensors):
        raise RuntimeError(f"Can't call {name}() on Variable that requires grad. Use var.detach().{name}() instead.")


@public("method")
def map2_(self: Tensor, x: Tensor, y: Tensor, callable: Callable[..., Any]) -> Tensor:
    """Replace each element by `callable` of it and those at the same place of two other tensors."""
    refuse_grad("map2_", self, x, y)
    _replace_elements(self, callable, x, y)
    return self


@public("method", name="__repr__")
def _repr(self: Tensor, *, tensor_contents: str | None = None) -> str:
    return tensor_text(self, tensor_contents)


@public("method", name="__format__")
def _format(self: Tensor, spec: str) -> str:
    if self._array.ndim == 0 and not self._keys & keys.META and type(self) is Tensor:
        return format(self.item(), spec)
    return object.__format__(self, spec)


@public("method", name="__reversed__")
def _reversed(self: Tensor) -> Tensor:
    return self if self._array.ndim == 0 else self.flip(0)
