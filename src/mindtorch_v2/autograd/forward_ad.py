"""torch.autograd.forward_ad: dual tensors, whose tangents operators carry forward."""

from __future__ import annotations

from types import TracebackType
from typing import Any, NamedTuple

from .._dispatch import keys, registry
from .._dispatch.tls import state
from .._tensor import Tensor
from .._transforms import dual_key  # noqa: F401 - the layer is registered
from .._transforms.batched import BatchedStorage, lifted
from .._transforms.tangents import begin_level, end_level, is_open, set_tangent, stripped, tangent_of

__all__ = ["UnpackedDualTensor", "dual_level", "enter_dual_level", "exit_dual_level", "make_dual", "unpack_dual"]


_current_level = -1  # torch's number: 0 inside `dual_level`


class _Current:
    number: int = 0  # among all levels, those of `torch.func.jvp` included


def enter_dual_level() -> int:
    """Begin a level, which tangents belong to; `dual_level` does it for a block."""
    global _current_level
    if _current_level >= 0:
        raise RuntimeError("Nested forward mode AD is not supported at the moment")
    _current_level, _Current.number = 0, begin_level()
    return _current_level


def exit_dual_level(*, level: int | None = None) -> None:
    """End the level, and drop all tangents that belong to it."""
    global _current_level
    if level is None:
        level = _current_level
    if level != _current_level or level < 0:
        raise RuntimeError("Trying to exit a forward AD level that was not the last one that was created. This is not supported.")
    end_level(_Current.number)
    _current_level = -1


class dual_level:  # noqa: N801 - torch's name
    """A block with a level of its own."""

    def __enter__(self) -> int:
        return enter_dual_level()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        exit_dual_level()


class UnpackedDualTensor(NamedTuple):
    """A tensor without its tangent, and the tangent, None if it has none."""

    primal: Tensor
    tangent: Tensor | None


def make_dual(tensor: Tensor, tangent: Tensor, *, level: int | None = None) -> Tensor:
    """A view of a tensor that has this tangent."""
    if level is None:
        level = _current_level
    if level < 0:
        raise RuntimeError(
            "Trying to create a dual Tensor for forward AD but no level exists, make sure to enter_dual_level() first."
        )
    if not (tensor.is_floating_point() or tensor.is_complex()):
        raise ValueError(f"Expected primal to be floating point or complex, but got: {tensor.dtype}")
    if not (tangent.is_floating_point() or tangent.is_complex()):
        raise ValueError(f"Expected tangent to be floating point or complex, but got: {tangent.dtype}")
    return with_tangent(tensor, tangent, _Current.number)


def with_tangent(tensor: Tensor, tangent: Tensor, number: int) -> Tensor:
    """A view of a tensor with a tangent of this level."""
    if tangent.shape != tensor.shape:
        raise RuntimeError(
            f"Trying to set a forward gradient that has a different size than that of the original Tensor, this is not supported. Tensor is "
            f"of size {list(tensor.shape)} while the given forward gradient is of size {list(tangent.shape)}."
        )
    if tangent.dtype is not tensor.dtype:
        raise RuntimeError(
            "Trying to set a forward gradient that has a different dtype than that of the original Tensor, this is not supported. "
            f"Tensor is of dtype {tensor.dtype} while the given forward gradient is of dtype {tangent.dtype}."
        )
    if tangent_of(tangent, number) is not None:
        raise RuntimeError("Trying to set a forward gradient that has a forward gradient at the same level; this is not supported")
    if tangent_of(tensor, number) is not None:
        raise RuntimeError("Trying to set a forward gradient on a Tensor that already has one at this level")
    storage = tangent._storage
    if isinstance(storage, BatchedStorage):
        tensor = lifted(tensor, storage.level)
    dual = registry.entry("alias")(tensor)
    if tensor._keys & keys.INFERENCE:
        dual._base = None  # torch: what was made in inference mode keeps no track of views
    set_tangent(dual, number, tangent)
    return dual


def unpack_dual(tensor: Tensor, *, level: int | None = None) -> UnpackedDualTensor:
    """A tensor apart from its tangent."""
    if level is None:
        level = _current_level
    if level < 0 or not is_open(_Current.number):
        return UnpackedDualTensor(tensor, None)
    tangent = tangent_of(tensor, _Current.number)
    primal = registry.entry("alias")(stripped(tensor, _Current.number))
    return UnpackedDualTensor(primal, tangent)


def _is_fwd_grad_enabled() -> bool:
    return not state.carrying


class _set_fwd_grad_enabled:  # noqa: N801 - torch's name
    """Switch forward mode on or off, for a block or from now on."""

    def __init__(self, mode: bool) -> None:
        self.held = state.carrying
        state.carrying = 0 if mode else self.held or 1

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc: Any) -> None:
        state.carrying = self.held
