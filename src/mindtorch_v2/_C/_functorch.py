"""torch._C._functorch: what `vmap` knows of a tensor, and the switches of its loop over samples."""

from __future__ import annotations

from .._tensor import Tensor
from .._transforms.batched import BatchedStorage
from .._transforms.rules.loop import switches

__all__ = ["get_unwrapped", "is_batchedtensor", "maybe_get_bdim", "reshape_dim_into", "reshape_dim_outof"]


def is_batchedtensor(tensor: Tensor) -> bool:
    """Whether a tensor stands for each sample of a `vmap`."""
    return isinstance(tensor._storage, BatchedStorage)


def maybe_get_bdim(tensor: Tensor) -> int:
    """The dimension of its value that is the batch; -1 if there is none."""
    storage = tensor._storage
    return storage.bdim if isinstance(storage, BatchedStorage) and storage.bdim is not None else -1


def get_unwrapped(tensor: Tensor) -> Tensor:
    """The value of a batched tensor, which has the batch as one more dimension."""
    storage = tensor._storage
    if not isinstance(storage, BatchedStorage):
        raise RuntimeError("No wrappers present!")
    return storage.value


def reshape_dim_into(src: int, dst: int, x: Tensor) -> Tensor:
    """Join dimension `src` into `dst`, counted in what is left without `src`, in front of it."""
    ndim = x.dim()
    src, dst = src % ndim, dst % (ndim - 1)
    return x.movedim(src, dst).flatten(dst, dst + 1)


def reshape_dim_outof(src: int, size1: int, x: Tensor) -> Tensor:
    """Split dimension `src` into one of `size1` elements and one of the rest."""
    src %= x.dim()
    if x.shape[src] % size1:
        raise RuntimeError(f"dimension {src} of {x.shape[src]} elements cannot be split into {size1} parts of the same size")
    return x.unflatten(src, [size1, x.shape[src] // size1])


def _is_vmap_fallback_enabled() -> bool:
    """Whether an operator without a batching rule is called for each sample; it raises otherwise."""
    return switches.enabled


def _set_vmap_fallback_enabled(enabled: bool) -> None:
    switches.enabled = bool(enabled)


def _set_vmap_fallback_warning_enabled(enabled: bool) -> None:
    """Whether such an operator warns."""
    switches.warns = bool(enabled)
