"""`torch.autograd.Function`: operations whose forward and backward are written by the user."""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from .. import _record
from .._autograd import anomaly
from .._autograd.inplace import check_inplace, rebase_history
from .._autograd.node import Node, Output, edge_of, next_sequence
from .._autograd.saved import Packed, attached, pack
from .._autograd.saved_errors import released_error
from .._dispatch import keys
from .._dispatch.program import call_program
from .._dispatch.tls import state
from .._tensor import Tensor, shallow_copy, wrap, wrap_view
from .._transforms.custom_functions import batched_forward, carry_tangents, check_usable, lift_arguments, uses
from .._types import Device

__all__ = ["Function", "FunctionCtx", "FunctionMeta", "InplaceFunction", "NestedIOFunction", "once_differentiable"]

F = TypeVar("F", bound=Callable[..., Any])


class FunctionCtx:
    """The context that `forward` and `backward` of a Function share; it is the backward node itself."""

    to_save: tuple[Any, ...] | None = None
    dirty_tensors: tuple[Any, ...] | None = None
    non_differentiable: tuple[Any, ...] | None = None
    materialize_grads: bool = True
    needs_input_grad: tuple[bool, ...] = ()
    to_save_forward: tuple[Any, ...] | None = None

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        """Keep tensors for `backward`, which finds them in `saved_tensors`; call it once."""
        self.to_save = tensors

    def save_for_forward(self, *tensors: Tensor | None) -> None:
        """Keep tensors for `jvp`, which finds them in `saved_tensors`; call it once."""
        self.to_save_forward = tensors

    def mark_dirty(self, *args: Tensor) -> None:
        """Say which inputs were written in place; they must be returned too."""
        self.dirty_tensors = args

    def mark_non_differentiable(self, *args: Tensor) -> None:
        """Say which results have no gradient."""
        self.non_differentiable = args

    def set_materialize_grads(self, value: bool) -> None:
        """Whether `backward` sees zeros (the default) or None for a result that nobody used."""
        self.materialize_grads = value


class BackwardCFunction(Node, FunctionCtx):
    """The node of a custom Function. `_forward_cls` is the Function."""

    _forward_cls: Any
    _saved: (
        Sequence[tuple[Any, int]] | None
    ) = ()  # None once they were handed out for good; (Packed or None, index of the result that it is, or -1)
    _is_tensor_input: tuple[bool, ...] = ()
    _metas: list[Any]
    _device: Any  # of the inputs

    def apply(self, *args: Any) -> Any:
        """Call the user's `backward` (or `vjp`)."""
        backward, vjp = self._forward_cls.backward, self._forward_cls.vjp
        if backward is not Function.backward and vjp is not Function.vjp:
            raise RuntimeError(
                "Implementing both 'backward' and 'vjp' for a custom Function is not allowed. You should only implement one of them."
            )
        function = vjp if vjp is not Function.vjp else backward
        return function(self, [*args]) if self._forward_cls.boxed_grads_call else function(self, *args)

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """Return what `save_for_backward` kept."""
        if self._released:
            raise released_error()
        if self._saved is None:
            raise RuntimeError(
                "saved_tensors can only be accessed once, because clear_saved_tensors_on_access is True; keep what it returned"
            )
        saved = self._saved
        if self._forward_cls.clear_saved_tensors_on_access:
            self._saved = None
        return tuple([self._open(kept, index) for kept, index in saved])

    def _open(self, kept: Packed, index: int) -> Tensor | None:
        if kept is None:
            return None
        made_by = None if index < 0 else Output(self, index) if self._multi else self
        t = kept.open(self, made_by)
        if index < 0 or self._meta_of(index) is None or (not state.grad_enabled and state.backward_depth):
            return t
        return attached(t, made_by)

    def _run(self, grad: Any, edges: tuple[Any, ...]) -> tuple[Any, ...]:
        if self._released and self._saved:
            raise released_error()
        grads = list(grad) if self._multi else [grad]
        if self.materialize_grads:
            grads = [_zeros(self._meta_of(i), self._device) if g is None else g for i, g in enumerate(grads)]
        if self._forward_cls.boxed_grads_call:
            if self._multi:
                grad.clear()  # the engine's: a gradient that `backward` drops is gone
            return self._checked(call_program(self._apply_boxed, _emptied(grads)))
        return self._checked(call_program(self.apply, *grads))

    def _apply_boxed(self, grads: list[Any]) -> Any:
        """Call the user's `backward` with a list that nobody else has, so that it can free a gradient that it is done with."""
        vjp = self._forward_cls.vjp
        return (vjp if vjp is not Function.vjp else self._forward_cls.backward)(self, grads)

    def _checked(self, result: object) -> tuple[Any, ...]:
        """The gradients of the tensor inputs, from what `backward` returned for all inputs."""
        outs = result if isinstance(result, tuple) else (tuple(result) if isinstance(result, list) else (result,))
        expected = len(self._is_tensor_input)
        if len(outs) > expected and all(o is None for o in outs[expected:]):
            outs = outs[:expected]
        if len(outs) != expected:
            raise RuntimeError(
                f"function {self.name()} returned an incorrect number of gradients (expected {expected}, got {len(outs)})"
            )
        found = []
        for i, (out, is_tensor) in enumerate(zip(outs, self._is_tensor_input, strict=True)):
            if is_tensor:
                if out is not None and not isinstance(out, Tensor):
                    raise RuntimeError(f"expected Variable or None (got {type(out).__name__})")
                found.append(out)
            elif out is not None:
                raise RuntimeError(
                    f"function {self.name()} returned a gradient different than None at position {i + 1}, but the corresponding "
                    "forward input was not a Variable"
                )
        return tuple(found)

    def _release(self) -> None:
        if self._saved:
            self._released = True
            self._saved = ((None, -1),)

    def __repr__(self) -> str:
        return f"<torch.autograd.function.{type(self).__name__} object at {id(self):#x}>"


def _emptied(grads: list[Any]) -> list[Any]:
    """The gradients in a list of their own; none is left in the one that they were in."""
    moved = list(grads)
    grads.clear()
    return moved


def _zeros(meta: tuple[Any, ...] | None, device: Device) -> Tensor | None:
    """The gradient of a result that nobody used."""
    if meta is None:
        return None
    zeros = wrap(np.zeros(meta[0], meta[1].np), meta[1])
    return zeros if device.type == "cpu" else zeros.to(device)


class FunctionMeta(type):
    """Gives each Function the class of its backward nodes."""

    def __init__(cls, name: str, bases: tuple[type, ...], attributes: dict[str, Any]) -> None:
        super().__init__(name, bases, attributes)
        cls._backward_cls = type(
            name + "Backward", (BackwardCFunction,), {"_forward_cls": cls, "__module__": "torch.autograd.function"}
        )


class Function(FunctionCtx, metaclass=FunctionMeta):
    """Base of operations with a derivative of the user's own: static methods `forward` and `backward`, called by `apply`.

    Either `forward(ctx, *args)`, or `forward(*args)` with `setup_context(ctx, inputs, output)`.
    """

    _backward_cls: type[BackwardCFunction]
    generate_vmap_rule = False
    boxed_grads_call = False  # `backward(ctx, grads)` is given one list, which it may empty
    clear_saved_tensors_on_access = False  # `saved_tensors` hands the tensors out once, and keeps none
    _is_generated = False  # of an operator, whose calls transforms follow

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """Compute the result."""
        raise NotImplementedError("You must implement the forward function for custom autograd.Function.")

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> Any:
        """Save for backward, apart from computing."""
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        """The gradients of the inputs from those of the results."""
        raise NotImplementedError(
            "You must implement either the backward or vjp method for your custom autograd.Function to use it with backward mode AD."
        )

    vjp = backward

    @staticmethod
    def jvp(ctx: Any, *grad_inputs: Any) -> Any:
        """The tangents of the results from those of the inputs."""
        raise NotImplementedError(
            "You must implement the jvp function for custom autograd.Function to use it with forward mode AD."
        )

    @staticmethod
    def vmap(info: Any, in_dims: Any, *args: Any) -> Any:
        """The results for batched inputs, and where they have the batch."""
        raise NotImplementedError(
            "To use autograd.Function with vmap, you must either override the vmap static method or set generate_vmap_rule=True."
        )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        warnings.warn(
            f"{type(self)} should not be instantiated. Methods on autograd functions are all static, so you should invoke them on the class "
            "itself. Instantiating an autograd function will raise an error in a future version of PyTorch.",
            DeprecationWarning,
            stacklevel=2,
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(
            "Legacy autograd function with non-static forward method is deprecated. Please use new-style autograd function with "
            "static forward method. (Example: https://pytorch.org/docs/stable/autograd.html#torch.autograd.Function)"
        )

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Run `forward` and link its results into the graph."""
        own_context = cls.setup_context is not Function.setup_context
        args, ctx, recorded = begin_call(cls, args, kwargs, own_context)
        if _record.begin is None:
            output = _call_forward(cls, ctx, args, own_context)
        else:
            with _record.scope(cls.__name__, (args, ctx._seq if recorded else -1)):
                output = _call_forward(cls, ctx, args, own_context)
        to_jvp, dirty = ctx.to_save_forward, ctx.dirty_tensors or ()
        wrapped = end_call(ctx, args, output, recorded)
        if uses(args, keys.DUAL):
            wrapped = _carried(cls, ctx, args, wrapped, to_jvp, dirty)
        return wrapped if isinstance(output, tuple) else wrapped[0]


Function.vjp = staticmethod(lambda ctx, *grad_outputs: Function.backward(ctx, *grad_outputs))


def begin_call(
    cls: type[Function], args: tuple[Any, ...], kwargs: dict[str, Any], own_context: bool
) -> tuple[tuple[Any, ...], BackwardCFunction, bool]:
    """The arguments in order, a new context, and whether it becomes a node of the graph."""
    if kwargs or own_context:
        args = _bind(cls.forward, args, kwargs, skip_context=not own_context)
    if state.transforms:
        check_usable(cls, own_context)
        args = lift_arguments(args)
    ctx = cls._backward_cls()
    ctx.needs_input_grad = tuple([isinstance(a, Tensor) and a._keys & keys.AUTOGRAD != 0 for a in args])
    recorded = state.grad_enabled and not state.inference and True in ctx.needs_input_grad
    if recorded:
        ctx._seq = next_sequence()  # as torch: before what `forward` may make
    return args, ctx, recorded


def end_call(ctx: BackwardCFunction, args: tuple[Any, ...], output: Any, recorded: bool) -> tuple[Any, ...]:
    """The results of `forward`, linked to the graph if the call is recorded in it."""
    outputs = output if isinstance(output, tuple) else (output,)
    if state.transforms:
        _check_returned_inputs(ctx, args, outputs)
    return _link(ctx, args, outputs) if recorded else _unlinked(ctx, args, outputs)


def _bind(forward: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], *, skip_context: bool) -> tuple[Any, ...]:
    """All arguments in order, defaults filled in."""
    signature = inspect.signature(forward)
    bound = signature.bind(None, *args, **kwargs) if skip_context else signature.bind(*args, **kwargs)
    bound.apply_defaults()
    return bound.args[1:] if skip_context else bound.args


def _call_forward(cls: type[Function], ctx: BackwardCFunction, args: tuple[Any, ...], own_context: bool) -> Any:
    previous, state.grad_enabled = state.grad_enabled, False
    state.carrying += 1  # `jvp` says what happens to tangents, and not the operators that compute the result
    below = state.below
    if below is None and state.level is not None:
        state.below = previous
    try:
        if not own_context:
            return cls.forward(ctx, *args)
        output = batched_forward(cls, args) if uses(args, keys.BATCHED) else cls.forward(*args)
        cls.setup_context(ctx, args, output)
        return output
    finally:
        state.grad_enabled = previous
        state.carrying -= 1
        state.below = below


def _check_returned_inputs(ctx: BackwardCFunction, args: tuple[Any, ...], outputs: tuple[Any, ...]) -> None:
    """torch: inside transforms, what is saved must not be an input that is returned as it is."""
    for saved in (*(ctx.to_save or ()), *(ctx.to_save_forward or ())):
        dirty = any(saved is t for t in ctx.dirty_tensors or ())
        if saved is not None and not dirty and any(saved is a for a in args) and any(saved is o for o in outputs):
            raise RuntimeError(
                "An input that has been returned as-is from forward was saved. This is not supported inside of transforms: return a view "
                "of it instead, as in x.view_as(x)."
            )


class _ForwardContext:
    """The context as `jvp` sees it: `saved_tensors` are those for forward mode."""

    def __init__(self, ctx: FunctionCtx, saved: tuple[Any, ...]) -> None:
        self.__dict__.update({k: v for k, v in vars(ctx).items() if not k.startswith("_")})
        self.saved_tensors = saved
        self.needs_input_grad = ctx.needs_input_grad
        self.materialize_grads = ctx.materialize_grads


def _carried(
    cls: type[Function], ctx: BackwardCFunction, args: tuple[Any, ...], outputs: tuple[Any, ...], saved: Any, dirty: tuple[Any, ...]
) -> tuple[Any, ...]:
    """The results with their tangents; one that is an input is another tensor, so that the input keeps its own."""
    outputs = tuple(
        wrap_view(o._array, o)
        if isinstance(o, Tensor) and _is_among(o, args) and not _is_among(o, dirty) and not o.requires_grad
        else o
        for o in outputs
    )
    carry_tangents(_ForwardContext(ctx, tuple(saved or ())), cls, args, outputs, dirty)
    return outputs


def _is_among(t: Tensor, tensors: tuple[Any, ...]) -> bool:
    return any(t is other for other in tensors)


def _check_marks(ctx: BackwardCFunction, outputs: tuple[Any, ...]) -> None:
    for t in ctx.non_differentiable or ():
        if not isinstance(t, Tensor):
            raise RuntimeError("mark_non_differentiable only accepts variable arguments, but got " + type(t).__name__)
    for i, t in enumerate(ctx.dirty_tensors or ()):
        if not isinstance(t, Tensor):
            raise TypeError(f"mark_dirty can only accept variables, but argument {i} is of type {type(t).__name__}")
        if not any(t is o for o in outputs):
            raise RuntimeError(
                "Some elements marked as dirty during the forward method were not returned as output. The inputs that are "
                "modified inplace must all be outputs of the Function."
            )
    for i, t in enumerate(ctx.to_save or ()):
        if t is not None and not isinstance(t, Tensor):
            raise TypeError(f"save_for_backward can only save variables, but argument {i} is of type {type(t).__name__}")


def _unlinked(ctx: BackwardCFunction, args: tuple[Any, ...], outputs: tuple[Any, ...]) -> tuple[Any, ...]:
    _check_marks(ctx, outputs)
    ctx.to_save = None
    return outputs


def _link(ctx: BackwardCFunction, args: tuple[Any, ...], outputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """Make the results computed by `ctx`, and save what was asked for."""
    _check_marks(ctx, outputs)
    inputs = [a for a in args if isinstance(a, Tensor)]
    ctx._is_tensor_input = tuple([isinstance(a, Tensor) for a in args])
    ctx._edges = tuple([edge_of(t) for t in inputs])
    ctx._device = inputs[0].device
    ctx._multi = len(outputs) > 1
    metas = [(o._array.shape, o.dtype) if isinstance(o, Tensor) else None for o in outputs]
    if ctx._multi:
        ctx._metas = metas
    elif metas[0] is not None:
        ctx._shape, ctx._dtype = metas[0]
    if anomaly.state.enabled:
        anomaly.note_creation(ctx)
    wrapped = tuple([_wrap_output(ctx, i, o, inputs) if isinstance(o, Tensor) else o for i, o in enumerate(outputs)])
    ctx._saved = [_save(t, outputs, wrapped) for t in ctx.to_save or ()]
    ctx.to_save = ctx.dirty_tensors = ctx.non_differentiable = None
    return wrapped


def _save(t: Tensor | None, outputs: tuple[Any, ...], wrapped: tuple[Any, ...]) -> tuple[Packed | None, int]:
    if t is None:
        return (None, -1)
    for i, (before, after) in enumerate(zip(outputs, wrapped, strict=True)):
        if t is before and isinstance(after, Tensor) and after._keys & keys.AUTOGRAD and (before is after):
            # kept outside of the graph: the node must not own its own result
            return (pack(shallow_copy(t)), i)
    return (pack(t), -1)


def _wrap_output(ctx: BackwardCFunction, index: int, out: Tensor, inputs: list[Tensor]) -> Tensor:
    is_input = any(out is t for t in inputs)
    is_dirty = any(out is t for t in ctx.dirty_tensors or ())
    if not out.dtype.inexact or any(out is t for t in ctx.non_differentiable or ()):
        if not out._keys & keys.AUTOGRAD:
            return out
        return shallow_copy(out)  # an input keeps its own requires_grad
    edge = Output(ctx, index) if ctx._multi else ctx
    if is_dirty:
        return _write_through(ctx, out, edge)
    if is_input:
        view = wrap_view(out._array, out)
        ctx._views_forbid_inplace = True
        out = view
    elif out._base is not None:
        ctx._views_forbid_inplace = True
    out._keys |= keys.AUTOGRAD
    out._node = edge
    return out


def _write_through(ctx: BackwardCFunction, out: Tensor, edge: Node | Output | None) -> Tensor:
    """An input that was written in place: its history, and its base's, now lead here."""
    if out._node is None and out._keys & keys.AUTOGRAD and out._base is None:
        raise RuntimeError("a leaf Variable that requires grad has been used in an in-place operation.")
    check_inplace(out)
    if out._base is not None and ctx._multi:
        raise RuntimeError(
            "a view was modified in place by a custom Function that returns several tensors; return the written view alone, or clone it first"
        )
    if out._base is None:
        rebase_history(out, ctx)
        out._node = edge
    else:
        rebase_history(out, ctx)
    return out


class InplaceFunction(Function):
    """torch keeps this name for old code: a Function that may be constructed with `inplace=True`."""

    def __init__(self, inplace: bool = False) -> None:
        self.inplace = inplace


class NestedIOFunction(Function):
    """torch keeps this name for old code."""


class _DelayedError(Node):
    """Refuses to differentiate what was computed without recording."""

    message = ""

    def _run(self, grad: Tensor, edges: tuple[Any, ...]) -> tuple[Any, ...]:
        raise RuntimeError(self.message)

    def name(self) -> str:
        return "torch::autograd::Error"


def once_differentiable(fn: F) -> F:
    """Mark a `backward` that is not differentiable itself: differentiating its results raises."""

    @functools.wraps(fn)
    def wrapper(ctx: Any, *args: Any) -> Any:
        recording, state.grad_enabled = state.grad_enabled, False
        try:
            outputs = fn(ctx, *args)
        finally:
            state.grad_enabled = recording
        if not recording or not any(isinstance(a, Tensor) and a.requires_grad for a in args):
            return outputs
        edges = tuple([edge_of(a) for a in args if isinstance(a, Tensor)])
        if isinstance(outputs, tuple):
            return tuple(_refusing(o, edges) for o in outputs)
        return _refusing(outputs, edges)

    return wrapper  # type: ignore[return-value]


def _refusing(out: Tensor, edges: tuple[Any, ...]) -> Tensor:
    if not isinstance(out, Tensor):
        return out
    node = _DelayedError()
    node.message = "trying to differentiate twice a function that was marked with @once_differentiable"
    node._edges, node._seq = edges, next_sequence()
    node._shape, node._dtype = out._array.shape, out.dtype
    return attached(out, node)
