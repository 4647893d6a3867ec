"""`vmap`: a function of samples as a function of batches."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .._dispatch import dispatcher, keys
from .._dispatch.tls import state
from .._functions import functions
from .._random import get_rng_state, set_rng_state
from .._tensor import Tensor
from ..utils import _pytree as pytree
from . import batch_key, rules  # noqa: F401 - every rule is registered
from .batched import Level, batched, unwrapped

if TYPE_CHECKING:
    from ..utils._pytree import TreeSpec

__all__ = ["chunk_vmap", "vmap", "vmap_call"]

RANDOMNESS = ("error", "different", "same")


def vmap(
    func: Callable[..., Any], in_dims: Any = 0, out_dims: Any = 0, randomness: str = "error", *, chunk_size: int | None = None
) -> Callable[..., Any]:
    """A function that maps `func` over dimensions of its arguments.

    `in_dims` says which dimension of each tensor, None for one that all samples share; `out_dims` where results have it;
    `randomness` whether samples draw "different" or the "same" random numbers, or that none may be drawn ("error");
    `chunk_size` how many samples are computed at a time.
    """
    if randomness not in RANDOMNESS:
        raise RuntimeError(f"Only allowed values for randomness are 'error', 'different', or 'same'. Got {randomness}")
    if not (chunk_size is None or chunk_size > 0):
        raise ValueError(f"vmap: chunk_size should be None or greater than 0. (got {chunk_size})")

    @functools.wraps(func)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        return vmap_call(func, in_dims, out_dims, randomness, chunk_size, args, kwargs)

    return wrapped


def _name(func: Callable[..., Any]) -> str:
    return getattr(func, "__name__", None) or repr(func)


def vmap_call(
    func: Callable[..., Any],
    in_dims: Any,
    out_dims: Any,
    randomness: str,
    chunk_size: int | None,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    """Map a function over its arguments; keyword arguments are the same for all samples."""
    batch_size, flat_dims, flat_args, spec = _inputs(in_dims, args, func)
    if chunk_size is None or chunk_size >= batch_size:
        return _one(func, batch_size, out_dims, randomness, (flat_args, flat_dims, spec), kwargs)
    pieces = []
    random = get_rng_state() if randomness == "same" else None
    for start in range(0, batch_size, chunk_size):
        if random is not None:
            set_rng_state(random)
        size = min(chunk_size, batch_size - start)
        part = [_narrowed(a, d, start, size) for a, d in zip(flat_args, flat_dims, strict=True)]
        pieces.append(_one(func, size, out_dims, randomness, (part, flat_dims, spec), kwargs))
    return _joined(pieces, out_dims, func)


def _narrowed(a: Tensor, dim: int | None, start: int, size: int) -> Tensor:
    return a if dim is None else a.narrow(dim, start, size)


def _joined(pieces: list[Any], out_dims: Any, func: Callable[..., Any]) -> Any:
    """The results of chunks, one after the other."""
    flat = [pytree.tree_flatten(p) for p in pieces]
    spec = flat[0][1]
    dims = _output_dims(out_dims, spec, pieces[0], func)
    found = []
    for i, dim in enumerate(dims):
        parts = [leaves[i] for leaves, _ in flat]
        found.append(parts[0] if dim is None else _cat(parts, dim))
    return pytree.tree_unflatten(found, spec)


def _cat(parts: list[Any], dim: int) -> Tensor:
    return functions["cat"](parts, dim)


def chunk_vmap(
    func: Callable[..., Any], in_dims: Any = 0, out_dims: Any = 0, randomness: str = "error", chunks: int = 2
) -> Callable[..., Any]:
    """As `vmap`, in so many chunks."""

    @functools.wraps(func)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        batch_size = _inputs(in_dims, args, func)[0]
        size = -(-batch_size // chunks) or None
        return vmap_call(func, in_dims, out_dims, randomness, size, args, kwargs)

    return wrapped


# --- the call -------------------------------------------------------------------------------------------------------------


def _one(
    func: Callable[..., Any], batch_size: int, out_dims: Any, randomness: str, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    level = Level(batch_size, randomness)
    with entered(level):
        flat, dims, spec = args
        given = pytree.tree_unflatten([a if d is None else batched(a, d, level) for a, d in zip(flat, dims, strict=True)], spec)
        outputs = func(*given, **kwargs)
    return unwrap_outputs(outputs, out_dims, level, func)


class entered:  # noqa: N801 - a context manager, as those of contextlib
    """Inside, a new level is the innermost one; after that, tensors of it are refused."""

    def __init__(self, level: Level) -> None:
        self.level = level

    def __enter__(self) -> Level:
        self.held = state.level, state.below, state.records_below
        dispatcher.activate(keys.DRAWING)
        state.level, state.below, state.records_below = self.level, None, True
        state.transforms += 1
        return self.level

    def __exit__(self, *exc: object) -> None:
        self.level.ended = True
        state.transforms -= 1
        state.level, state.below, state.records_below = self.held
        dispatcher.deactivate(keys.DRAWING)


def unwrap_outputs(outputs: Any, out_dims: Any, level: Level, func: Callable[..., Any]) -> Any:
    """The values of results, with the batch where `out_dims` says."""
    flat, spec = pytree.tree_flatten(outputs)
    dims = _output_dims(out_dims, spec, outputs, func)
    return pytree.tree_unflatten([_out(t, d, level, func) for t, d in zip(flat, dims, strict=True)], spec)


def _out(t: Any, dim: int | None, level: Level, func: Callable[..., Any]) -> Tensor:
    if not isinstance(t, Tensor):
        if dim is None:
            return t
        raise ValueError(
            f"vmap({_name(func)}, ...): `{_name(func)}` must only return Tensors, got type {type(t)}. Did you mean to set out_dims= to None "
            "for output?"
        )
    value, bdim = unwrapped(t, level)
    if dim is None:
        if bdim is not None:
            raise ValueError(f"vmap({_name(func)}, ...): `{_name(func)}` can not return a BatchedTensor when out_dim is None")
        return value
    if bdim is None:
        value, bdim = value.unsqueeze(0).expand([level.batch_size, *value.shape]), 0
    ndim = value.dim()
    if not -ndim <= dim < ndim:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-ndim}, {ndim - 1}], but got {dim})")
    return value if bdim == dim % ndim else value.movedim(bdim, dim)


# --- dimensions -----------------------------------------------------------------------------------------------------------


def _inputs(in_dims: Any, args: tuple[Any, ...], func: Callable[..., Any]) -> tuple[int, list[Any], list[Any], Any]:
    """The size of the batch, and the arguments with their dimensions, as flat lists."""
    name = _name(func)
    if not isinstance(in_dims, int) and not isinstance(in_dims, tuple):
        raise ValueError(
            f"vmap({name}, in_dims={in_dims}, ...)(<inputs>): expected `in_dims` to be int or a (potentially nested) tuple matching the "
            f"structure of inputs, got: {type(in_dims)}."
        )
    if not args:
        raise ValueError(
            f"vmap({name})(<inputs>): got no inputs. Maybe you forgot to add inputs, or you are trying to vmap over a function with no "
            "inputs. The latter is unsupported."
        )
    flat, spec = pytree.tree_flatten(args)
    dims = pytree._broadcast_to_and_flatten(in_dims, spec)
    if dims is None:
        raise ValueError(
            f"vmap({name}, in_dims={in_dims}, ...)(<inputs>): in_dims is not compatible with the structure of `inputs`. in_dims has "
            f"structure {pytree.tree_flatten(in_dims)[1]} but inputs has structure {spec}."
        )
    for i, (a, d) in enumerate(zip(flat, dims, strict=True)):
        dims[i] = _checked_dim(name, in_dims, a, d)
    return _batch_size(flat, dims), dims, flat, spec


def _checked_dim(name: str, in_dims: object, a: object, d: object) -> int | None:
    start = f"vmap({name}, in_dims={in_dims}, ...)(<inputs>): Got in_dim={d} for "
    if d is None:
        return None
    if not isinstance(d, int):
        raise ValueError(start + "an input but in_dim must be either an integer dimension or None.")
    if not isinstance(a, Tensor):
        raise ValueError(
            start
            + f"an input but the input is of type {type(a)}. We cannot vmap over non-Tensor arguments, please use None as the "
            "respective in_dim"
        )
    if not -a.dim() <= d < a.dim():
        raise ValueError(
            start + f"some input, but that input is a Tensor of dimensionality {a.dim()} so expected in_dim to satisfy "
            f"-{a.dim()} <= in_dim < {a.dim()}."
        )
    return d % a.dim()


def _batch_size(flat: list[Any], dims: list[Any]) -> int:
    sizes = [a.shape[d] for a, d in zip(flat, dims, strict=True) if d is not None]
    if not sizes:
        raise ValueError("vmap: at least one input must be mapped over, but in_dims is None for all of them")
    if any(n != sizes[0] for n in sizes):
        raise ValueError(
            f"vmap: Expected all tensors to have the same size in the mapped dimension, got sizes {sizes} for the mapped dimension"
        )
    return sizes[0]


def _output_dims(out_dims: Any, spec: TreeSpec, outputs: Any, func: Callable[..., Any]) -> list[Any]:
    name = _name(func)
    if isinstance(outputs, Tensor) and not isinstance(out_dims, int) and out_dims is not None:
        only = out_dims if isinstance(out_dims, tuple | list) else None
        if only is None or len(only) != 1:
            raise ValueError(_structure_error(name, out_dims, spec))
        out_dims = only[0]
    dims = pytree._broadcast_to_and_flatten(out_dims, spec)
    if dims is None:
        raise ValueError(_structure_error(name, out_dims, spec))
    for d in dims:
        if d is not None and not isinstance(d, int):
            raise ValueError(
                f"vmap({name}, ..., out_dims={out_dims}): `out_dims` must be an int, None or a python collection of ints representing "
                f"where in the outputs the vmapped dimension should appear."
            )
    return list(dims)


def _structure_error(name: str, out_dims: object, spec: TreeSpec) -> str:
    return (
        f"vmap({name}, ..., out_dims={out_dims})(<inputs>): out_dims is not compatible with the structure of `outputs`. out_dims has "
        f"structure {pytree.tree_flatten(out_dims)[1]} but outputs has structure {spec}."
    )
