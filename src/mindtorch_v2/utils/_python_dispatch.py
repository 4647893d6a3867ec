"""`TorchDispatchMode`: sees every operator below autograd, with ATen's overloads, as its kernels are about to run."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, Self

from .._dispatch import dispatcher, keys
from .._dispatch.codegen import Body, indent
from .._dispatch.op import Op
from .._dispatch.tls import state
from .._op_packet import OpOverload, overload_of
from .._tensor import Tensor
from ..overrides import split_arguments

__all__ = [
    "AliasInfo",
    "BaseTorchDispatchMode",
    "SchemaInfo",
    "TensorWithFlatten",
    "TorchDispatchMode",
    "TraceableWrapperSubclass",
    "any_torch_dispatch_mode_on_stack",
    "get_alias_info",
    "is_in_torch_dispatch_mode",
    "is_traceable_wrapper_subclass",
    "is_traceable_wrapper_subclass_type",
    "return_and_correct_aliasing",
    "transform_subclass",
]


class TorchDispatchMode:
    """While entered, operators that reach a backend on this thread go to `__torch_dispatch__` instead.

    Inside the handler the mode is off, so that calling `func(*args, **kwargs)` runs the operator.
    """

    def __init__(self, _dispatch_key: Any = None) -> None:
        if _dispatch_key is not None:
            raise NotImplementedError("infra modes with a dispatch key of their own are not supported")

    def __torch_dispatch__(
        self, func: OpOverload, types: Sequence[type], args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        raise NotImplementedError(f"{type(self).__name__} does not implement __torch_dispatch__")

    @classmethod
    def is_infra_mode(cls) -> bool:
        """Whether the mode belongs to a system and not to a program; a subclass may say so."""
        return False

    def __enter__(self) -> Self:
        state.dispatch_modes.append(self)
        dispatcher.activate(keys.DISPATCH_MODE)
        return self

    def __exit__(self, *exc: object) -> None:
        state.dispatch_modes.pop()
        dispatcher.deactivate(keys.DISPATCH_MODE)


class BaseTorchDispatchMode(TorchDispatchMode):
    """A mode that changes nothing."""

    def __torch_dispatch__(
        self, func: OpOverload, types: Sequence[type], args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        return func(*args, **(kwargs or {}))


def _get_current_dispatch_mode() -> TorchDispatchMode | None:
    """The innermost mode of this thread."""
    return state.dispatch_modes[-1] if state.dispatch_modes else None


def _get_current_dispatch_mode_stack() -> list[TorchDispatchMode]:
    """The modes of this thread, the outermost first."""
    return list(state.dispatch_modes)


def is_in_torch_dispatch_mode(include_infra_modes: bool = True) -> bool:
    """Whether this thread is in a mode; `include_infra_modes=False` leaves out those that say of themselves that they are not a program's."""
    return any(include_infra_modes or not mode.is_infra_mode() for mode in state.dispatch_modes)


def any_torch_dispatch_mode_on_stack(*, include_infra_modes: bool = True) -> bool:
    """Whether this thread is in a mode, as `is_in_torch_dispatch_mode` says it."""
    return is_in_torch_dispatch_mode(include_infra_modes)


@contextlib.contextmanager
def _pop_mode_temporarily(k: Any = None) -> Iterator[TorchDispatchMode]:
    """A context without the innermost mode, which it gives."""
    mode = state.dispatch_modes.pop()
    try:
        yield mode
    finally:
        state.dispatch_modes.append(mode)


@contextlib.contextmanager
def _disable_current_modes() -> Iterator[list[TorchDispatchMode]]:
    """A context without modes; it gives those that there were."""
    modes, state.dispatch_modes = state.dispatch_modes, []
    try:
        yield modes
    finally:
        state.dispatch_modes = modes


def is_traceable_wrapper_subclass_type(t: type) -> bool:
    """Whether tensors of a class can be taken apart into others, and made of them again."""
    return (
        issubclass(t, Tensor)
        and t is not Tensor
        and bool(t._class_keys & keys.PYTHON)
        and hasattr(t, "__tensor_flatten__")
        and hasattr(t, "__tensor_unflatten__")
    )


def is_traceable_wrapper_subclass(t: object) -> bool:
    """Whether this is a tensor that can be taken apart into others, and made of them again."""
    return isinstance(t, Tensor) and is_traceable_wrapper_subclass_type(type(t))


def transform_subclass(
    t: Any, callback: Callable[[str, Any], Any], outer_size: Sequence[int] | None = None, outer_stride: Sequence[int] | None = None
) -> Tensor:
    """A tensor made of what `callback(name, part)` makes of the parts of another."""
    names, context = t.__tensor_flatten__()
    parts = {name: callback(name, getattr(t, name)) for name in names}
    size = t.size() if outer_size is None else outer_size
    made = type(t).__tensor_unflatten__(parts, context, size, t.stride() if outer_stride is None else outer_stride)
    if tuple(made.size()) != tuple(size):
        raise AssertionError(f"Expected return value from {type(t)}.__tensor_unflatten__() to have shape {size}, got {made.size()}")
    return made


# What `torch.library.register_torch_dispatch` has called in place of a class's handler, by operator and class.
dispatch_rules: dict[Op, dict[Any, Callable[..., Any]]] = {}


def _handler(op: Op, owner: Any, cls: type) -> Any:
    """The handler of a mode or a class for an operator: `owner` is the mode, or the class."""
    rule = dispatch_rules[op].get(cls) if op in dispatch_rules else None
    return owner.__torch_dispatch__ if rule is None else functools.partial(rule, owner)


def _candidates(arguments: tuple[Any, ...]) -> list[type[Tensor]]:
    """The classes among the arguments that override `__torch_dispatch__`, subclasses before their bases."""
    found: list[type[Tensor]] = []
    for a in arguments:
        for t in a if isinstance(a, list | tuple) else (a,):
            cls = type(t)
            if isinstance(t, Tensor) and cls._class_keys & keys.PYTHON and cls not in found:
                at = next((i for i, c in enumerate(found) if issubclass(cls, c)), len(found))
                found.insert(at, cls)
    return found


def _call(handler: Callable[..., Any], op: Op, classes: list[type[Tensor]], arguments: tuple[Any, ...]) -> Any:
    """Call a `__torch_dispatch__` handler; what it runs is below autograd, so nothing is recorded."""
    args, kwargs = split_arguments(op, arguments)
    previous, state.grad_enabled = state.grad_enabled, False
    try:
        result = handler(overload_of(op), tuple(classes), args, kwargs)
    finally:
        state.grad_enabled = previous
    if result is not NotImplemented:
        _check_returned(op, result)
    return result


def _check_returned(op: Op, result: object) -> None:
    """A handler returns what the operator would: a tensor, or None for one that there is not."""
    returned = [r.type for r in op.schema.returns]
    fits: tuple[type, ...] = (Tensor,) if returned == ["Tensor"] else (list, tuple) if returned == ["Tensor[]"] else ()
    if fits and result is not None and not isinstance(result, fits):
        raise RuntimeError(
            f"Unable to cast what __torch_dispatch__ returned for {op.qualified_name}, of type {type(result)}, to {returned[0]}"
        )


def _refused(op: Op, asked: list[Any]) -> TypeError:
    return TypeError(
        f"Multiple dispatch failed for 'torch.ops.{op.schema.namespace}.{op.name}.{op.overload_name}'; all __torch_dispatch__ handlers "
        f"returned NotImplemented: {asked}"
    )


def _call_mode(op: Op, arguments: tuple[Any, ...]) -> Any:
    """What the innermost mode returns; NotImplemented leaves a call to the subclasses among its arguments."""
    mode = state.dispatch_modes[-1]
    if isinstance(getattr(mode.__torch_dispatch__, "__self__", None), type):
        raise RuntimeError(
            f"{type(mode).__name__}.__torch_dispatch__: defining a mode's handler as a classmethod is not supported, please make it a "
            "plain method"
        )
    classes = _candidates(arguments)
    state.dispatch_modes.pop()
    try:
        result = _call(_handler(op, mode, type(mode)), op, classes, arguments)
    finally:
        state.dispatch_modes.append(mode)
    if result is NotImplemented and not classes:
        raise _refused(op, [mode])
    return result


def _call_subclass(op: Op, arguments: tuple[Any, ...]) -> Any:
    classes = _candidates(arguments)
    for cls in classes:
        result = _call(_handler(op, cls, cls), op, classes, arguments)
        if result is not NotImplemented:
            return result
    raise _refused(op, classes)


def _packed(op: Op) -> str:
    return "(" + "".join(f"{n}, " for n in op.schema.argument_names) + ")"


def _is_decomposed(op: Op) -> bool:
    """Composites without a derivative of their own are seen as what they are made of; factories are seen whole."""
    is_explicit = "factory" in op.tags or "explicit" in op.tags  # torch: `zeros_like`, `detach` and others reach modes whole
    return op.composite is not None and not op.formulas and bool(op.schema.tensor_arguments) and not is_explicit


def _mode_layer(op: Op, full: int, body: Body) -> Body:
    if _is_decomposed(op) or full & keys.BATCHED:  # a batched tensor's own operators are seen, which its rule calls
        return body
    lines = [
        "result = NotImplemented",
        "if tls.dispatch_modes and not tls.dispatch_override_off:",
        f"    result = call_mode(op, {_packed(op)})",
        "if result is NotImplemented:",
        *indent(body.lines),
    ]
    body = body.edited(lines, {"tls": state, "op": op, "call_mode": _call_mode})
    body.result_is_new = False
    return body


def _subclass_layer(op: Op, full: int, body: Body) -> Body:
    if _is_decomposed(op) or full & keys.BATCHED:
        return body
    lines = ["if tls.dispatch_override_off:", *indent(body.lines), "else:", f"    result = call_dispatch(op, {_packed(op)})"]
    body = body.edited(lines, {"tls": state, "op": op, "call_dispatch": _call_subclass})
    body.result_is_new = False
    return body


dispatcher.register_layer(keys.DISPATCH_MODE, _mode_layer)
dispatcher.register_layer(keys.PYTHON, _subclass_layer)


def return_and_correct_aliasing(func: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Any:
    """Return what a `__torch_dispatch__` handler is to return: the arguments that were written, and results in the storage of what they view."""
    schema = func.op.schema
    given = dict(zip([a.name for a in schema.arguments], args, strict=False)) | dict(kwargs or {})
    sources = {a.alias.rstrip("!"): given.get(a.name) for a in schema.arguments if a.alias}
    if len(schema.returns) != 1:
        written = [(r.alias.endswith("!"), sources.get(r.alias.rstrip("!"))) for r in schema.returns]
        return (
            type(out)(x if is_written else o for o, (is_written, x) in zip(out, written, strict=True)) if out is not None else out
        )
    mark = schema.returns[0].alias
    source = sources.get(mark.rstrip("!"))
    if mark.endswith("!"):
        return source
    if isinstance(source, Tensor):
        for made in out if isinstance(out, list | tuple) else (out,):
            if isinstance(made, Tensor):
                made._storage = source._storage
    return out


class TraceableWrapperSubclass(Protocol):
    """A tensor made of other tensors, which can be taken apart and put together again."""

    def __tensor_flatten__(self) -> tuple[Sequence[str], object]: ...

    @staticmethod
    def __tensor_unflatten__(
        inner_tensors: Mapping[str, Tensor], metadata: object, outer_size: Sequence[int], outer_stride: Sequence[int]
    ) -> Tensor: ...


TensorWithFlatten = TraceableWrapperSubclass


@dataclass
class AliasInfo:
    """Of an argument or a result: the memory that it shares, by letters, and whether it is written to."""

    alias_set: set[str]
    is_write: bool
    name: str | None


@dataclass
class SchemaInfo:
    """Of an operator: the memory that its arguments and results share."""

    args: list[AliasInfo]
    outs: list[AliasInfo]
    is_inplace_view_op: bool
    outs_write_aliases: list[str] | None
    read_only_alias_match_indexes: list[tuple[int, int]]


@functools.cache
def get_alias_info(func: OpOverload) -> SchemaInfo:
    """What an operator's schema says of the memory that its arguments and results share."""
    schema = func.op.schema
    args = [_alias(a.alias, a.name) for a in schema.arguments]
    outs = [_alias(r.alias, r.name or None) for r in schema.returns]
    written = [next(iter(out.alias_set)) for out in outs if out.is_write]
    shared = [
        (i, o) for i, arg in enumerate(args) for o, out in enumerate(outs) if arg.alias_set & out.alias_set and not arg.is_write
    ]
    is_inplace_view = func.op.name in (
        "t_",
        "transpose_",
        "squeeze_",
        "unsqueeze_",
        "swapaxes_",
        "swapdims_",
        "as_strided_",
        "resize_",
    )
    return SchemaInfo(args, outs, is_inplace_view, written or None, shared)


def _alias(mark: str, name: str | None) -> AliasInfo:
    letters = mark.partition("->")[0].replace("!", "").strip()
    return AliasInfo({each.strip() for each in letters.split("|") if each.strip()}, "!" in mark, name)
