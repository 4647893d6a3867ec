"""The calls by which checkpoints make tensors and other values, under torch's names for them.

Arguments come from files, so each function checks what it is given. None changes anything but what it returns.
"""

from __future__ import annotations

import contextlib
import sys
import threading
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator
from typing import Any

from .. import _device, _dtype, _pickling
from .._backends.meta.adapter import meta_tensor
from .._dispatch import keys
from .._memory_format import LAYOUTS, layout, sparse_coo
from .._ops.sparse.compressed import COMPRESSED_LAYOUTS, compressed_tensor
from .._ops.sparse.compressed_construction import check_compressed
from .._ops.sparse.invariants import check_parts
from .._ops.sparse.storage import sparse_tensor
from .._tensor import Size, Tensor
from .._types import OptionalDevice, OptionalDType
from .._wrapper_subclass import wrapper_of
from ..nn import Parameter
from ..storage import TypedStorage
from .names import STORAGE_TYPES, UNTYPED

__all__ = [
    "CALLS",
    "NAMES",
    "TENSOR_CALLS",
    "check_key",
    "deferring_checks",
    "parameter",
    "set_attributes",
    "set_state",
    "subclass",
]

# Tensors -----------------------------------------------------------------------------------------------------------------------


class _Waiting(threading.local):
    actions: list[Callable[[], object]] | None = None


_waiting = _Waiting()


@contextlib.contextmanager
def deferring_checks() -> Iterator[None]:
    """What looks at elements waits for the end of the block, where storages are filled after their tensors are made."""
    before, _waiting.actions = _waiting.actions, []
    try:
        yield
        for action in _waiting.actions:
            action()
    finally:
        _waiting.actions = before


def _when_filled(action: Callable[[], object]) -> None:
    if _waiting.actions is None:
        action()
    else:
        _waiting.actions.append(action)


def tensor(
    storage: TypedStorage, offset: int, size: Any, stride: Any, requires_grad: bool = False, hooks: Any = None, metadata: Any = None
) -> Tensor:
    """A tensor over part of a storage."""
    if type(storage) is not TypedStorage:
        raise TypeError(f"a tensor needs a storage, not {type(storage).__name__}")
    return _over(storage, storage.dtype, offset, size, stride, requires_grad, metadata)


def tensor_v3(
    storage: TypedStorage,
    offset: int,
    size: Any,
    stride: Any,
    requires_grad: bool,
    hooks: Any,
    dtype: OptionalDType,
    metadata: Any = None,
) -> Tensor:
    """As `tensor`, of a dtype that has no storage type of its own."""
    if type(storage) is not TypedStorage or not isinstance(dtype, _dtype.dtype):
        raise TypeError(f"a tensor needs a storage and a dtype, not {type(storage).__name__} and {type(dtype).__name__}")
    return _over(storage, dtype, offset, size, stride, requires_grad, metadata)


def _over(
    storage: TypedStorage, dtype: _dtype.dtype, offset: Any, size: Any, stride: Any, requires_grad: Any, metadata: Any
) -> Tensor:
    _check_geometry(size, stride)
    if type(offset) is not int or offset < 0:
        raise RuntimeError(f"Tensor: invalid storage offset {_shown(offset)}")
    t = _pickling.view_of_storage(storage._untyped_storage, dtype, offset, size, stride)
    if metadata:
        t = _with_bits(t, metadata)
    _require_grad(t, requires_grad)
    return t


def _with_bits(t: Tensor, metadata: Any) -> Tensor:
    """The tensor as a view that is still to be conjugated or negated."""
    if type(metadata) is not dict or not set(metadata) <= {"conj", "neg"}:
        raise TypeError("metadata of a tensor says whether it is conjugated and negated, and nothing else")
    if metadata.get("conj"):
        if not t.dtype.is_complex:
            raise TypeError("only tensors of complex numbers are conjugated")
        t._keys |= keys.CONJUGATE
    if metadata.get("neg"):
        t._keys |= keys.NEGATIVE
    return t


def meta(dtype: OptionalDType, size: Any, stride: Any, requires_grad: bool) -> Tensor:
    """A tensor of the meta device."""
    if not isinstance(dtype, _dtype.dtype):
        raise TypeError(f"a tensor needs a dtype, not {type(dtype).__name__}")
    _check_geometry(size, stride)
    t = meta_tensor(tuple(size), dtype, tuple(s * dtype.itemsize for s in stride))
    _require_grad(t, requires_grad)
    return t


def sparse(which: Any, parts: Any) -> Tensor:
    """A sparse tensor in coordinate or compressed form."""
    if which in COMPRESSED_LAYOUTS:
        return _compressed(which, parts)
    if which is not sparse_coo:
        raise RuntimeError(f"sparse tensors are in coordinate or compressed form, not {_shown(which)}")
    indices, values, size, *coalesced = parts
    for part in (indices, values):
        if type(part) is not Tensor or part._keys & keys.BACKENDS != keys.CPU:
            raise TypeError("a sparse tensor is made of tensors of indices and values")
    if indices.dtype is not _dtype.int64 or indices._array.nbytes > indices._storage.nbytes():
        raise RuntimeError("indices of a sparse tensor are int64, each in memory of its own")
    _check_geometry(size, size)
    _when_filled(lambda: check_parts(indices, values, size))
    return sparse_tensor(indices, values, size, coalesced=coalesced == [True])


def _compressed(which: Any, parts: Any) -> Tensor:
    """A tensor of compressed rows or columns."""
    compressed, plain, values, size = parts
    for part in (compressed, plain, values):
        if type(part) is not Tensor or part._keys & keys.BACKENDS != keys.CPU:
            raise TypeError("a sparse tensor is made of tensors of indices and values")
        if part._array.nbytes > part._storage.nbytes():
            raise RuntimeError("the parts of a sparse tensor are each in memory of their own")
    _check_geometry(size, size)
    _when_filled(lambda: check_compressed(compressed, plain, values, size, which))
    return compressed_tensor(which, compressed, plain, values, size)


def device_tensor(data: Any, dtype: OptionalDType, device: OptionalDevice, requires_grad: Any) -> Tensor:
    """A tensor of a device whose tensors are saved as those of the CPU."""
    if type(data) is not Tensor or not isinstance(dtype, _dtype.dtype) or type(device) is not str:
        raise TypeError("a tensor of another device is made of a tensor, a dtype and a device")
    t: Tensor = data.to(dtype=dtype, device=_device.device(device))
    _require_grad(t, requires_grad)
    return t


def wrapper(
    cls: Any, dtype: OptionalDType, size: Any, stride: Any, offset: Any, which: Any, device: OptionalDevice, requires_grad: Any
) -> Tensor:
    """A tensor of a subclass that wraps others. The class is one that the file may name."""
    if not isinstance(dtype, _dtype.dtype) or type(which) is not layout or type(device) is not _device.device:
        raise TypeError("a tensor that wraps others needs a dtype, a layout and a device")
    _check_geometry(size, stride)
    t: Tensor = wrapper_of(cls, size, stride, dtype=dtype, layout=which, device=device)
    _require_grad(t, requires_grad)
    return t


def parameter(data: Any, requires_grad: Any = True, hooks: Any = None, state: Any = None) -> Tensor:
    """A parameter over a tensor."""
    if not isinstance(data, Tensor) or type(requires_grad) is not bool:
        raise TypeError(f"a parameter needs a tensor and a bool, not {type(data).__name__} and {type(requires_grad).__name__}")
    made: Tensor = Parameter(data, requires_grad)
    set_attributes(made, state)
    return made


def subclass(function: Any, cls: Any, args: Any, state: Any) -> Tensor:
    """A tensor with attributes, perhaps of a subclass. The caller has checked function and class."""
    t = function(*args)
    if cls is not Tensor and type(t) is not cls:
        t = t.as_subclass(cls)
    set_state(t, state)
    return t


def set_state(t: Tensor, state: Any) -> None:
    """Give a tensor of a subclass its state: as the class itself does it, or attributes and slots."""
    if getattr(type(t), "__setstate__", None) is not getattr(Tensor, "__setstate__", None):
        t.__setstate__(state)
        return
    set_attributes(t, state)
    if type(state) is tuple and len(state) == 2:
        for name, value in (state[1] or {}).items():
            setattr(t, name, value)


def set_attributes(made: Any, state: Any) -> None:
    """Give an object that a checkpoint made the attributes that it had."""
    if type(state) is tuple and len(state) == 2:
        state = state[0]  # the second part has slots
    if not state:
        return
    if not isinstance(state, dict) or not all(type(name) is str for name in state):
        raise TypeError(f"attributes are a dict of names, not {type(state).__name__}")
    made.__dict__.update(state)


def _check_geometry(size: Any, stride: Any) -> None:
    if not isinstance(size, tuple | list) or not isinstance(stride, tuple | list) or len(size) != len(stride):
        raise RuntimeError("a tensor needs a size and a stride for each of its dimensions")
    for n in (*size, *stride):
        if type(n) is not int or not 0 <= n <= sys.maxsize:
            raise RuntimeError(f"sizes and strides of a tensor are numbers from 0, and {_shown(n)} is none")


def _require_grad(t: Tensor, requires_grad: Any) -> None:
    if requires_grad:
        if not t.dtype.inexact:
            raise RuntimeError("only Tensors of floating point dtype can require gradients")
        t._keys |= keys.AUTOGRAD


def _shown(value: Any) -> str:
    """A value of a file in an error: numbers as they are, of others the type, for the file may nest them without end."""
    return str(value) if type(value) is int and abs(value) < 1 << 64 else type(value).__name__


# Other values ------------------------------------------------------------------------------------------------------------------


def _size(numbers: Any = ()) -> Size:
    _check_geometry(numbers, numbers)
    return Size(numbers)


def _device_of(kind: Any, index: Any = None) -> _device.device:
    if type(kind) is not str or not (index is None or (type(index) is int and index >= 0)):
        raise TypeError("a device is a text and a number")
    return _device.device(kind) if index is None else _device.device(kind, index)


def _layout(name: Any) -> layout:
    found = next((known for known in LAYOUTS if type(name) is str and repr(known) == name), None)
    if found is None:
        raise ValueError("a layout that is none of torch's")
    return found


def _encoded(text: Any, encoding: Any) -> bytes:
    # pickle writes bytes as text in latin1 before protocol 3
    if type(text) is not str or type(encoding) is not str or encoding not in ("latin1", "latin-1", "ascii", "utf-8"):
        raise TypeError("bytes are a text in latin1")
    return text.encode(encoding)


def _bytearray(content: Any = b"", encoding: Any = "latin-1") -> bytearray:
    if type(content) is str:
        return bytearray(_encoded(content, encoding))
    if type(content) is not bytes:  # a number would be a size
        raise TypeError(f"a bytearray is made of bytes, not {type(content).__name__}")
    return bytearray(content)


def _complex(real: Any, imaginary: Any) -> complex:
    if not {type(real), type(imaginary)} <= {int, float}:
        raise TypeError("a complex number is made of two numbers")
    return complex(real, imaginary)


def check_key(key: Any) -> None:
    """Refuse keys that take long to hash or to compare: tuples and frozensets may hold one another twice, forty deep, in a few bytes."""
    if not isinstance(key, tuple | frozenset):
        return
    waiting: list[Any] = [key]
    left = 1_000
    while waiting:
        for item in waiting.pop():
            left -= 1
            if isinstance(item, tuple | frozenset):
                waiting.append(item)
        if left < 0 or len(waiting) > left:
            raise ValueError("a key of a dict or an element of a set is a tuple of more than 1000 parts")


def _items(content: Any) -> Any:
    if type(content) not in (list, tuple):
        raise TypeError(f"a set is made of a list, not {type(content).__name__}")
    for item in content:
        check_key(item)
    return content


def _pairs(content: Any) -> Any:
    if type(content) is dict:
        return content
    if type(content) not in (list, tuple) or not all(type(pair) in (list, tuple) and len(pair) == 2 for pair in content):
        raise TypeError(f"a dict is made of a dict or of pairs, not {type(content).__name__}")
    for key, _ in content:
        check_key(key)
    return content


TENSOR_CALLS: dict[str, Any] = {
    "torch._utils._rebuild_tensor_v2": tensor,
    "torch._utils._rebuild_tensor": tensor,
    "torch._utils._rebuild_tensor_v3": tensor_v3,
    "torch._utils._rebuild_meta_tensor_no_storage": meta,
    "torch._utils._rebuild_sparse_tensor": sparse,
    "torch._utils._rebuild_device_tensor_from_cpu_tensor": device_tensor,
    "torch._utils._rebuild_wrapper_subclass": wrapper,
    "torch._utils._rebuild_parameter": parameter,
    "torch._utils._rebuild_parameter_with_state": parameter,
}

# What each name of a checkpoint stands for.
NAMES: dict[str, Any] = {
    **TENSOR_CALLS,
    "torch._tensor._rebuild_from_type_v2": subclass,
    "torch.serialization._get_layout": _layout,
    "torch.storage.UntypedStorage": UNTYPED,
    "torch.Size": Size,
    "torch.device": _device.device,
    "torch.Tensor": Tensor,
    "collections.OrderedDict": OrderedDict,
    "collections.Counter": Counter,
    "builtins.set": set,
    "builtins.bytearray": bytearray,
    "builtins.complex": complex,
    "_codecs.encode": _encoded,
    **{f"torch.{d.name}": d for d in _dtype.BY_NAME.values()},
    **{f"torch.{name}": kind for name, kind in STORAGE_TYPES.items()},
}

# What runs when a pickle that is restricted to data calls one of these, by identity. Other names cannot be called.
CALLS: dict[int, Any] = {
    **{id(call): call for call in TENSOR_CALLS.values()},
    id(_layout): _layout,
    id(_encoded): _encoded,
    id(Size): _size,
    id(_device.device): _device_of,
    id(OrderedDict): lambda content=(): OrderedDict(_pairs(content)),
    id(Counter): lambda content=(): Counter(dict(_pairs(content))),
    id(set): lambda content=(): set(_items(content)),
    id(bytearray): _bytearray,
    id(complex): _complex,
}
