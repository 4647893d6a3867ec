"""`autograd.Function` under transforms: its `vmap` and `jvp`, or a rule for batches made of its own methods."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from .._dispatch import keys
from .._dispatch.op import Op
from .._functions import functions
from .._tensor import Tensor
from ..overrides import split_arguments
from ..utils import _pytree as pytree
from .batch_key import Rule, _lift_outer, _top, run_below
from .batched import Level, batched, unwrapped
from .tangents import levels_of, set_tangent, stripped, tangent_of
from .vmap import entered

if TYPE_CHECKING:
    from ..autograd.function import Function

__all__ = ["batched_forward", "carry_tangents", "check_usable", "lift_arguments", "user_rule", "uses"]

PAGE = "For more details, please see https://pytorch.org/docs/main/notes/extending.func.html"


class VmapInfo(NamedTuple):
    """What a Function's `vmap` is told."""

    batch_size: int
    randomness: str


def check_usable(function: type[Function], own_context: bool) -> None:
    """Refuse a Function whose forward does both jobs, inside a transform."""
    if not own_context and not function._is_generated:
        raise RuntimeError(
            "In order to use an autograd.Function with functorch transforms (vmap, grad, jvp, jacrev, ...), it must override the "
            f"setup_context staticmethod ({function.__name__} does not). {PAGE}"
        )


def lift_arguments(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arguments with tracked tensors from outer levels as tensors of the innermost one among them."""
    if not any(isinstance(a, Tensor) and a._keys & keys.BATCHED for a in args):
        return args
    return _lift_outer(args) or args


# --- batches ----------------------------------------------------------------------------------------------------------------


def batched_forward(function: type[Function], args: tuple[Any, ...]) -> Any:
    """The results of a Function for batched tensors."""
    level = _top(args)
    own = "vmap" in _overridden(function)
    if function.generate_vmap_rule and own:
        raise RuntimeError(
            f"You tried to vmap over {function.__name__}, but it has both generate_vmap_rule=True and an overridden vmap staticmethod. Please "
            f"set generate_vmap_rule=False or delete the overridden vmap staticmethod to avoid ambiguity. {PAGE}"
        )
    if not function.generate_vmap_rule and not own:
        raise RuntimeError(
            f"You tried to vmap over {function.__name__}, but it does not have vmap support. Please override and implement the vmap "
            f"staticmethod or set generate_vmap_rule=True. {PAGE}"
        )
    pairs = [unwrapped(a, level) if isinstance(a, Tensor) else (a, None) for a in args]
    values, dims = tuple(v for v, _ in pairs), tuple(d for _, d in pairs)
    if all(d is None for d in dims):
        output = run_below(function.apply, level, *values)
        return pytree.tree_map_only(Tensor, lambda t: batched(t, None, level), output)
    if own:
        return _by_own_rule(function, level, dims, values)
    made = _generated(function, dims, level)
    flat = run_below(made.apply, level, *values)
    flat = flat if isinstance(flat, tuple) else (flat,)
    wrapped = tuple(batched(t, d, level) if isinstance(t, Tensor) else t for t, d in zip(flat, made.out_dims, strict=True))
    return wrapped[0] if made.is_single else wrapped


def _overridden(function: type[Function]) -> set[str]:
    """Names that a Function or a base below `Function` itself defines."""
    found: set[str] = set()
    for cls in function.__mro__:
        if cls is _base(function):
            break
        found |= set(vars(cls))
    return found


def _base(function: type[Function]) -> type[Function]:
    """`autograd.Function`, which all of them inherit from."""
    return next(cls for cls in function.__mro__ if cls.__name__ == "Function" and cls.__module__.endswith("autograd.function"))


def _by_own_rule(function: type[Function], level: Level, dims: tuple[Any, ...], values: tuple[Any, ...]) -> Any:
    info = VmapInfo(level.batch_size, level.randomness)
    made = run_below(functools.partial(function.vmap, info, dims), level, *values)
    return _with_dims(made, level, f"the vmap staticmethod of {function.__name__}")


def _with_dims(made: Any, level: Level, what: str) -> Any:
    """The results of a rule that somebody wrote, as batched tensors."""
    if not isinstance(made, tuple) or len(made) != 2:
        raise RuntimeError(
            f"Expected {what} to have two returns, an output and out_dims with pytree structure compatible with the output."
        )
    output, out_dims = made
    flat, spec = pytree.tree_flatten(output)
    flat_dims = pytree._broadcast_to_and_flatten(out_dims, spec)
    if flat_dims is None:
        raise RuntimeError(
            f"{what}: expected out_dims to have a pytree structure compatible with the output, got "
            f"{pytree.tree_structure(out_dims)} for {spec}"
        )
    wrapped = []
    for t, d in zip(flat, flat_dims, strict=True):
        if d is not None and not isinstance(d, int):
            raise RuntimeError(f"{what}: expected out_dims to be ints or None, got {d!r}")
        wrapped.append(batched(t, None if d is None else d % t.dim(), level) if isinstance(t, Tensor) else t)
    return pytree.tree_unflatten(wrapped, spec)


def user_rule(function: Callable[..., Any]) -> Rule:
    """A function that `torch.library.register_vmap` was given, as a batching rule."""

    def rule(op: Op, level: Level, args: tuple[Any, ...]) -> Any:
        flat, spec = pytree.tree_flatten(args)
        pairs = [unwrapped(t, level) if isinstance(t, Tensor) else (t, None) for t in flat]
        values, dims = (pytree.tree_unflatten([p[i] for p in pairs], spec) for i in (0, 1))
        given, named = split_arguments(op, values)
        made = function(VmapInfo(level.batch_size, level.randomness), dims[: len(given)], *given, **named)
        return _with_dims(made, level, f"the batching rule of {op.qualified_name}")

    return rule


class _Context:
    """What the methods of a mapped Function share: tensors of one sample each."""

    def __init__(self) -> None:
        self.saved: tuple[Any, ...] = ()
        self.saved_forward: tuple[Any, ...] = ()
        self.needs_input_grad: tuple[bool, ...] = ()
        self.non_differentiable: tuple[Any, ...] = ()
        self.materialize_grads = True

    def save_for_backward(self, *tensors: Any) -> None:
        self.saved = tensors

    def save_for_forward(self, *tensors: Any) -> None:
        self.saved_forward = tensors

    def mark_dirty(self, *tensors: Any) -> None:
        raise RuntimeError("mark_dirty is not supported with generate_vmap_rule=True; write a vmap staticmethod instead")

    def mark_non_differentiable(self, *tensors: Any) -> None:
        self.non_differentiable = tensors

    def set_materialize_grads(self, value: bool) -> None:
        self.materialize_grads = value

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        return self.saved


def _generated(function: type[Function], dims: tuple[Any, ...], outer: Level) -> Any:
    """A Function over values whose methods are those of another one, mapped over its batch."""
    size, randomness = outer.batch_size, outer.randomness

    def mapped(level: Level, values: Sequence[Any], at: Sequence[Any]) -> tuple[Any, ...]:
        return tuple(batched(v, d, level) if d is not None else v for v, d in zip(values, at, strict=True))

    def apart(outputs: Any, level: Level) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        pairs = [unwrapped(t, level) if isinstance(t, Tensor) else (t, None) for t in outputs]
        return tuple(v for v, _ in pairs), tuple(d for _, d in pairs)

    class Generated(_base(function)):  # type: ignore[misc]
        out_dims: tuple[Any, ...] = ()
        is_single = True

        @staticmethod
        def forward(*values: Any) -> Any:
            level = Level(size, randomness)
            with entered(level):
                output = function.forward(*mapped(level, values, dims))
            Generated.is_single = not isinstance(output, tuple)
            found, Generated.out_dims = apart(output if isinstance(output, tuple) else (output,), level)
            return found

        @staticmethod
        def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
            level = Level(size, randomness)
            inner = ctx.inner = _Context()
            inner.needs_input_grad = ctx.needs_input_grad
            with entered(level):
                outputs = mapped(level, output, Generated.out_dims)
                function.setup_context(inner, mapped(level, inputs, dims), outputs[0] if Generated.is_single else outputs)
            values, ctx.saved_dims = apart(inner.saved, level)
            ctx.save_for_backward(*values)
            forward_values, ctx.forward_dims = apart(inner.saved_forward, level)
            ctx.save_for_forward(*forward_values)
            inner.saved = inner.saved_forward = ()
            kept = [t for t, out in zip(output, outputs, strict=True) if any(out is n for n in inner.non_differentiable)]
            inner.non_differentiable = ()
            ctx.mark_non_differentiable(*kept)
            ctx.set_materialize_grads(inner.materialize_grads)

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            level = Level(size, randomness)
            with entered(level):
                ctx.inner.saved = mapped(level, ctx.saved_tensors, ctx.saved_dims)
                made = _apply_backward(
                    function,
                    ctx.inner,
                    mapped(level, grads, [None if g is None else d for g, d in zip(grads, Generated.out_dims, strict=True)]),
                )
                ctx.inner.saved = ()
            found, at = apart(made if isinstance(made, tuple) else (made,), level)
            return tuple(_fitted(g, d, wanted, size) for g, d, wanted in zip(found, at, dims, strict=True))

        @staticmethod
        def jvp(ctx: Any, *tangents: Any) -> Any:
            level = Level(size, randomness)
            with entered(level):
                ctx.inner.saved = mapped(level, ctx.saved_tensors, ctx.forward_dims)
                made = function.jvp(
                    ctx.inner, *mapped(level, tangents, [None if t is None else d for t, d in zip(tangents, dims, strict=True)])
                )
                ctx.inner.saved = ()
            found, at = apart(made if isinstance(made, tuple) else (made,), level)
            return tuple(_fitted(g, d, wanted, size) for g, d, wanted in zip(found, at, Generated.out_dims, strict=True))

    Generated.__name__ = f"Vmapped{function.__name__}"
    return Generated


def _apply_backward(function: type[Function], ctx: Any, grads: Sequence[Any]) -> Any:
    return (function.vjp if "vjp" in _overridden(function) else function.backward)(ctx, *grads)


def _fitted(t: Tensor, at: int | None, wanted: int | None, size: int) -> Tensor:
    """A gradient with its batch where the argument has its own; summed over the batch for one that all samples share."""
    if t is None:
        return None
    if wanted is None:
        return t * size if at is None else t.sum(at)
    if at is None:
        t, at = t.unsqueeze(0).expand([size, *t.shape]), 0
    return t.movedim(at, wanted)


# --- tangents ---------------------------------------------------------------------------------------------------------------


def carry_tangents(
    ctx: Any, function: type[Function], args: tuple[Any, ...], outputs: tuple[Any, ...], dirty: tuple[Any, ...]
) -> None:
    """Give the results of a Function the tangents that its `jvp` makes of those of its arguments; `dirty`: what it wrote in place."""
    numbers = sorted({n for a in args for n in levels_of(a)})
    for level in numbers:
        tangents = [tangent_of(a, level) for a in args]
        if ctx.materialize_grads:
            tangents = [
                functions["zeros_like"](stripped(a, level)) if t is None and isinstance(a, Tensor) and a.dtype.inexact else t
                for a, t in zip(args, tangents, strict=True)
            ]
        versions = [None if t is None else t._storage.version for t in tangents]
        made = _call_jvp(ctx, function, tangents)
        written = [t for t, version in zip(tangents, versions, strict=True) if t is not None and t._storage.version != version]
        for out, t in zip(outputs, made, strict=True):
            if t is not None and isinstance(out, Tensor) and out.dtype.inexact:
                _check_memory(out, t, tangents, written if any(out is d for d in dirty) else None, args)
                set_tangent(out, level, t)


def _check_memory(out: Tensor, tangent: Tensor, tangents: list[Any], written: list[Tensor] | None, args: tuple[Any, ...]) -> None:
    """What shares its memory with an argument has a tangent that shares the argument's.

    `written`: the tangents that `jvp` wrote to, where the result is an argument that was written to.
    """
    if written is not None:
        if not any(tangent is t for t in written):
            raise RuntimeError(
                "An inplace custom Function is not modifying the forward mode gradients inplace. If the forward is modifying an input "
                "inplace, then the jvp function must modify the corresponding gradient inplace."
            )
        return
    for a, t in zip(args, tangents, strict=True):
        if isinstance(a, Tensor) and a._storage is out._storage and t is not None and t._storage is not tangent._storage:
            of = (
                ""
                if tangent._base is None
                else " of the given input"
                if a._base is None
                else " of the same base as the given input"
            )
            raise RuntimeError(
                f"A custom Function's forward is returning a view (or an input as-is) but the jvp is not returning a view{of}."
            )


def _call_jvp(ctx: Any, function: type[Function], tangents: list[Any]) -> tuple[Any, ...]:
    if "jvp" not in _overridden(function):
        raise RuntimeError(
            "Trying to use forward AD with "
            f"{function.__name__} that does not support it because it has not been implemented yet. You must implement the jvp function for "
            "custom autograd.Function to use it with forward mode AD."
        )
    made = function.jvp(ctx, *tangents)
    return made if isinstance(made, tuple) else (made,)


def uses(args: tuple[Any, ...], bits: int) -> bool:
    return any(isinstance(a, Tensor) and a._keys & bits for a in args)
