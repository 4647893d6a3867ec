"""torch.library: operators of the user's own, with kernels per device, shape rules and derivatives."""

from __future__ import annotations

import contextlib
import functools
import inspect
import typing
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from . import _op_packet
from ._dispatch import dispatcher, keys, registry
from ._dispatch.op import Op
from ._dispatch.schema import parse
from ._dtype import dtype
from ._ops.machinery.calling import call_op
from ._ops.machinery.declare import register
from ._tag import as_marks
from ._tensor import Tensor
from ._transforms.batch_key import rules as batch_rules
from ._transforms.custom_functions import user_rule
from .amp import policies
from .autograd.function import Function as AutogradFunction
from .autograd.gradcheck import gradcheck

__all__ = [
    "CustomOpDef",
    "Library",
    "custom_op",
    "define",
    "impl",
    "infer_schema",
    "opcheck",
    "register_autocast",
    "register_autograd",
    "register_fake",
    "register_kernel",
    "register_torch_dispatch",
    "register_vmap",
]

Function = Callable[..., Any]

_KEYS = {
    "CPU": keys.CPU,
    "Meta": keys.META,
    "NPU": keys.NPU,
    "PrivateUse1": keys.NPU,
    "CUDA": keys.NPU,
    "Autograd": keys.AUTOGRAD,
    "AutogradCPU": keys.AUTOGRAD,
}
_DEVICES = {"cpu": keys.CPU, "meta": keys.META, "npu": keys.NPU, "cuda": keys.NPU, "privateuseone": keys.NPU}


_shape_rules_ahead: dict[str, Function] = {}  # of operators that are not defined yet, by name


def _find(qualname: Any) -> Op:
    if isinstance(qualname, CustomOpDef):
        return qualname._op
    if isinstance(qualname, _op_packet.OpOverload):
        return qualname.op
    name, _, overload = str(qualname).partition(".")
    op = registry.find(name, overload or "default")
    if op is None:
        raise RuntimeError(f"operator {qualname} does not exist; define it first, with torch.library.define or custom_op")
    return op


def _set_kernel(op: Op, key: str, function: Function, lib: Library | None = None) -> None:
    """Register a kernel; one registered through a Library goes with it."""
    if key not in ("Autograd", "AutogradCPU"):
        function = _with_keywords(op, function)
    if lib is not None:
        lib._replaced.append((op, op.composite, dict(op.kernels)))
    if key in ("CompositeImplicitAutograd", ""):
        op.composite = function
    elif key in ("CompositeExplicitAutograd", "BackendSelect", "default"):
        for backend in (keys.CPU, keys.META, keys.NPU):
            op.kernels.setdefault(backend, function)
    elif key in _KEYS:
        op.kernels[_KEYS[key]] = function
    else:
        known = ", ".join([*_KEYS, "CompositeImplicitAutograd", "CompositeExplicitAutograd"])
        raise RuntimeError(f"could not parse dispatch key: {key}; known are {known}")
    op.tags = (*op.tags, "foreign")
    dispatcher.invalidate(op)


def _with_keywords(op: Op, function: Function) -> Function:
    """A kernel that is given what its schema has behind `*` by name, as it was written."""
    names = [a.name for a in op.schema.arguments if a.keyword_only]
    if not names:
        return function
    count = len(op.schema.arguments) - len(names)
    return lambda *arguments: function(*arguments[:count], **dict(zip(names, arguments[count:], strict=True)))


class Library:
    """Defines operators in a namespace (`DEF`), or adds kernels to existing ones (`IMPL`). `FRAGMENT` is as `DEF`."""

    def __init__(self, ns: str, kind: str, dispatch_key: str = "") -> None:
        if kind not in ("IMPL", "DEF", "FRAGMENT"):
            raise ValueError(f"Unsupported kind: {kind}; it is IMPL, DEF or FRAGMENT")
        if ns in ("prim", "prims"):
            raise ValueError(f"{ns} is a reserved namespace. Please try creating a library with another name.")
        self.ns = ns
        self.kind = kind
        self.dispatch_key = dispatch_key
        self._defined: list[Op] = []
        self._replaced: list[tuple[Op, Any, dict[int, Any]]] = []  # operators as they were before this library's kernels

    def define(self, schema: str, alias_analysis: str = "", *, tags: Any = ()) -> str:
        """Define an operator by its schema; returns its name."""
        if alias_analysis not in ("", "FROM_SCHEMA", "CONSERVATIVE"):
            raise RuntimeError(f"Invalid alias_analysis type {alias_analysis}")
        if self.kind == "IMPL":
            raise RuntimeError("a Library of kind IMPL cannot define operators; use DEF or FRAGMENT")
        op = Op(parse(f"{self.ns}::{schema}"), tags=as_marks(tags))
        register(op)
        self._defined.append(op)
        rule = _shape_rules_ahead.pop(op.qualified_name, None)
        if rule is not None:
            _set_kernel(op, "Meta", rule, self)
        return op.name if not op.schema.overload else f"{op.name}.{op.schema.overload}"

    def impl(
        self, op_name: Any, fn: Function, dispatch_key: str = "", *, with_keyset: bool = False, allow_override: bool = False
    ) -> None:
        """Register a kernel for a dispatch key."""
        if not callable(fn):
            raise TypeError(f"Input function is required to be a callable but found type {type(fn)}")
        if with_keyset:
            raise NotImplementedError("with_keyset=True is not supported: kernels here get no key set")
        op = (
            op_name.op
            if isinstance(op_name, _op_packet.OpOverload)
            else _find(op_name if "::" in op_name else f"{self.ns}::{op_name}")
        )
        key = dispatch_key or self.dispatch_key or "CompositeImplicitAutograd"
        if not allow_override and key in _KEYS and _KEYS[key] in op.kernels:
            raise RuntimeError(f"{op.qualified_name} has a kernel for {key} already; pass allow_override=True to replace it")
        _set_kernel(op, key, fn, self)

    def _destroy(self) -> None:
        """Take back the operators that this library defined, and its kernels of others."""
        for op, composite, kernels in reversed(self._replaced):
            op.composite = composite
            op.kernels.clear()
            op.kernels.update(kernels)
            dispatcher.invalidate(op)
        self._replaced.clear()
        for op in self._defined:
            dispatcher.invalidate(op)
            registry.remove(op)
            _op_packet.forget(op)
        self._defined.clear()


_fragments: dict[str, Library] = {}


@contextlib.contextmanager
def _scoped_library(ns: str, kind: str, dispatch_key: str = "") -> Iterator[Library]:
    """A library whose operators and kernels are there inside the context only."""
    lib = Library(ns, kind, dispatch_key)
    try:
        yield lib
    finally:
        lib._destroy()


def _fragment(namespace: str) -> Library:
    return _fragments.setdefault(namespace, Library(namespace, "FRAGMENT"))


def _define_in(lib: Library, schema: Any, function: Function) -> Function:
    lib.impl(lib.define(schema), function)
    return function


def define(qualname: Any, schema: str | None = None, *, lib: Library | None = None, tags: Any = ()) -> Any:
    """Define `namespace::name` with a schema such as `(Tensor x, float scale=1.0) -> Tensor`.

    `define(library, "name(Tensor x) -> Tensor")` decorates the operator's function.
    """
    if isinstance(qualname, Library):
        return functools.partial(_define_in, qualname, schema)
    namespace, separator, name = qualname.partition("::")
    if not separator:
        raise ValueError(f"qualname must have the form namespace::name, not {qualname!r}")
    if schema is None:
        return lambda function: (
            define(qualname, infer_schema(function, mutates_args=()), lib=lib, tags=tags),
            impl(qualname, "default", function),
        )[1]
    (lib or _fragment(namespace)).define(name + schema, tags=tags)
    return None


def _impl_in(lib: Library, name: str, dispatch_key: str, function: Function) -> Function:
    lib.impl(name, function, dispatch_key)
    return function


def impl(qualname: Any, types: Any, func: Any = None, *, lib: Library | None = None) -> Any:
    """Register a kernel for device types (`"cpu"`, `"npu"`), or for all with `"default"`; also a decorator.

    `impl(library, "name", "CPU")` decorates a kernel of one of the library's operators.
    """
    if isinstance(qualname, Library):
        return functools.partial(_impl_in, qualname, types, func or "")
    names = [types] if isinstance(types, str) else list(types)

    def decorate(function: Function) -> Function:
        op = _find(qualname)
        for name in names:
            _set_kernel(op, name if name == "default" or name in _KEYS else _device_key_name(name), function, lib)
        return function

    return decorate if func is None else decorate(func)


def _device_key_name(device_type: str) -> str:
    if device_type not in _DEVICES:
        raise ValueError(f"unknown device type {device_type!r}; known are {', '.join(_DEVICES)}")
    return next(name for name, key in _KEYS.items() if key == _DEVICES[device_type])


def register_kernel(op: Any, device_types: Any, func: Function | None = None, /, *, lib: Library | None = None) -> Any:
    """Register a kernel for device types; None means all of them."""
    return impl(op, "default" if device_types is None else device_types, func, lib=lib)


def register_fake(
    op: Any, func: Function | None = None, /, *, lib: Library | None = None, _stacklevel: int = 1, allow_override: bool = True
) -> Any:
    """Register the shape rule: the function that runs for meta tensors.

    The operator may be defined later. In PyTorch it may not; there, torchvision defines its operators in C++ before it gives their rules here.
    """

    def decorate(function: Function) -> Function:
        if isinstance(op, str) and not registry.overloads(op.partition(".")[0]):
            _shape_rules_ahead[op] = function
            return function
        target = _find(op)
        if not allow_override and keys.META in target.kernels:
            raise RuntimeError(f"{target.qualified_name} has a shape rule already; pass allow_override=True to replace it")
        _set_kernel(target, "Meta", function, lib)
        return function

    return decorate if func is None else decorate(func)


impl_abstract = register_fake


def register_autograd(op: Any, backward: Function, /, *, setup_context: Function | None = None, lib: Library | None = None) -> None:
    """Register `backward(ctx, *grads)`, and `setup_context(ctx, inputs, output)` that saves what it needs."""
    target = _find(op)
    _set_kernel(target, "Autograd", _autograd_kernel(target, backward, setup_context), lib)


def _autograd_kernel(op: Op, backward: Function, setup_context: Function | None) -> Function:
    def forward(ctx: Any, *arguments: Any) -> Any:
        result = call_op(op, arguments)
        if setup_context is not None:
            count = len(op.schema.arguments)
            keyword_only = {a.name: v for a, v in zip(op.schema.arguments, arguments, strict=True) if a.keyword_only}
            positional = arguments[: count - len(keyword_only)]
            if keyword_only:
                setup_context(ctx=ctx, inputs=positional, keyword_only_inputs=keyword_only, output=result)
            else:
                setup_context(ctx=ctx, inputs=positional, output=result)
        return result

    def run_backward(ctx: Any, *grads: Any) -> Any:
        out = backward(ctx, *grads)
        outs = list(out) if isinstance(out, tuple) else [out]
        missing = len(op.schema.arguments) - len(outs)
        return tuple(outs + [None] * missing)

    members = {"forward": staticmethod(forward), "backward": staticmethod(run_backward), "_is_generated": True}
    function: Any = type(f"GeneratedBackwardFor_{op.schema.namespace}_{op.name}_{op.overload_name}", (AutogradFunction,), members)
    return function.apply


def register_autocast(op: Any, device_type: str, cast_inputs: dtype, /, *, lib: Library | None = None) -> None:
    """Have floating-point inputs of an operator cast to a dtype in autocast for a device. Only the CPU has tensors here."""
    if device_type not in ("cpu", "cuda"):
        raise ValueError(f"Unknown device type: {device_type}")
    target = _find(op)
    if device_type == "cpu":
        policies.register(target, cast_inputs)


def register_vmap(op: Any, func: Function | None = None, /, *, lib: Library | None = None) -> Any:
    """Register `func(info, in_dims, *args)`, which returns the results for batched arguments and where they have the batch."""

    def decorate(function: Function) -> Function:
        target = _find(op)
        batch_rules[target.qualified_name] = user_rule(function)
        dispatcher.invalidate(target)
        return function

    return decorate if func is None else decorate(func)


def register_torch_dispatch(
    op: Any, torch_dispatch_class: Any, func: Function | None = None, /, *, lib: Library | None = None
) -> Any:
    raise NotImplementedError(
        "register_torch_dispatch is not supported: override __torch_dispatch__ of the subclass or mode, and compare `func` there"
    )


# --- custom_op --------------------------------------------------------------------------------------------------------


class CustomOpDef:
    """An operator made from a Python function by `custom_op`."""

    def __init__(self, op: Op, function: Function) -> None:
        self._op = op
        self._init_fn = function
        self._namespace, self._name = op.schema.namespace, op.name
        self.__name__, self.__doc__ = function.__name__, function.__doc__

    @property
    def _qualname(self) -> str:
        return self._op.qualified_name

    @property
    def _opoverload(self) -> _op_packet.OpOverload:
        return _op_packet.overload_of(self._op)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        assert self._op.entry is not None
        return self._op.entry(*args, **kwargs)

    def register_kernel(self, device_types: Any, fn: Function | None = None, /) -> Any:
        """Register a kernel for device types; also a decorator."""

        def decorate(function: Function) -> Function:
            for name in [device_types] if isinstance(device_types, str) else device_types or ["default"]:
                key = "default" if name == "default" else _device_key_name(name)
                _set_kernel(self._op, key, _guarded(self._op, function))
            return function

        return decorate if fn is None else decorate(fn)

    def register_fake(self, fn: Function, /) -> Function:
        """Register the shape rule for meta tensors."""
        _set_kernel(self._op, "Meta", fn)
        return fn

    def register_autograd(self, backward: Function, /, *, setup_context: Function | None = None) -> None:
        """Register the derivative."""
        if any(a.is_written for a in self._op.schema.arguments):
            raise RuntimeError(f"Cannot register autograd formula for non-functional operator {self}: it mutates its arguments")
        register_autograd(self, backward, setup_context=setup_context)

    def register_autocast(self, device_type: str, cast_inputs: dtype, /) -> None:
        """Have floating-point inputs cast to a dtype in autocast for a device."""
        register_autocast(self, device_type, cast_inputs)

    def register_vmap(self, func: Any = None, /) -> Any:
        """Register the batching rule; also a decorator."""

        def decorate(function: Function) -> Function:
            register_vmap(self, function)
            return function

        return decorate if func is None else decorate(func)

    def __repr__(self) -> str:
        return f"<CustomOpDef({self._qualname})>"


def _guarded(op: Op, function: Function) -> Function:
    """The kernel with the rules of custom operators: results are new tensors, and written arguments are marked so."""
    written = [i for i, a in enumerate(op.schema.arguments) if a.is_written]

    def kernel(*arguments: Any, **keywords: Any) -> Any:
        result = function(*arguments, **keywords)
        arguments = (*arguments, *keywords.values())
        for i in written:
            arguments[i]._storage.version += 1
        inputs = {id(a) for a in arguments if isinstance(a, Tensor)}
        for r in result if isinstance(result, list | tuple) else (result,):
            if isinstance(r, Tensor) and id(r) in inputs:
                raise RuntimeError(
                    f"{op.qualified_name} (with implementation in {function.__module__}): The output of this custom operator (1) must "
                    "not also be an input to this custom operator and (2) may not alias any inputs to this custom operator or other "
                    "returns. The most common way to trigger this error is if we have y = custom_op(x) and y and x are the same Tensor. "
                    "Please instead return a clone of the offending output tensor(s) (e.g. return x.clone()) or refactor the custom "
                    "operator to not return y."
                )
        return result

    return kernel


def custom_op(
    name: str,
    fn: Function | None = None,
    /,
    *,
    mutates_args: str | Iterable[str],
    device_types: str | Sequence[str] | None = None,
    schema: str | None = None,
    tags: Any = None,
) -> Any:
    """Make an operator `namespace::name` from a Python function; its schema comes from the annotations. Also a decorator."""

    def decorate(function: Function) -> CustomOpDef:
        namespace, separator, short = name.partition("::")
        if not separator:
            raise ValueError(f"name must have the form namespace::name, not {name!r}")
        text = schema if schema is not None else infer_schema(function, mutates_args=mutates_args)
        previous = registry.find(name)
        if previous is not None:
            dispatcher.invalidate(previous)
            registry.remove(previous)
            _op_packet.forget(previous)
        _fragment(namespace).define(short + text, tags=tags)
        definition = CustomOpDef(_find(name), function)
        definition.register_kernel(device_types or "default", function)
        return definition

    return decorate if fn is None else decorate(fn)


_ANNOTATIONS: dict[Any, str] = {
    Tensor: "Tensor", int: "SymInt", float: "float", bool: "bool", str: "str", int | float | bool: "Scalar",
}  # fmt: skip


def _schema_type(annotation: Any) -> str:
    if annotation in _ANNOTATIONS:
        return _ANNOTATIONS[annotation]
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if type(None) in arguments:
        rest = [a for a in arguments if a is not type(None)]
        if len(rest) == 1:
            return _schema_type(rest[0]) + "?"
    if origin in (list, Sequence, typing.Sequence) and len(arguments) == 1:
        return _schema_type(arguments[0]) + "[]"
    if getattr(annotation, "__name__", "") in ("dtype", "device"):
        return {"dtype": "ScalarType", "device": "Device"}[annotation.__name__]
    if annotation is int | float | bool or set(arguments) == {int, float, bool}:
        return "Scalar"
    raise ValueError(
        f"type {annotation} is not supported; use Tensor, int, float, bool, str, their Optional and Sequence forms, dtype or device"
    )


def infer_schema(prototype_function: Function, /, *, mutates_args: str | Iterable[str] = (), op_name: str | None = None) -> str:
    """The schema that a function's annotations say: `(Tensor x, float y=1.0) -> Tensor`."""
    signature = inspect.signature(prototype_function)
    hints = typing.get_type_hints(prototype_function)
    everything = mutates_args == "unknown"
    mutated = set() if isinstance(mutates_args, str) else set(mutates_args)
    unknown = mutated - set(signature.parameters)
    if unknown:
        raise ValueError(f"infer_schema(func): mutates_args names {sorted(unknown)}, which are not parameters")
    parts: list[str] = []
    for i, (name, parameter) in enumerate(signature.parameters.items()):
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise ValueError(f"infer_schema(func): we do not support *args and **kwargs, found {name!r}")
        if name not in hints:
            raise ValueError(
                f"infer_schema(func): Parameter {name} must have a type annotation. Got func with signature {signature}"
            )
        if parameter.kind is parameter.KEYWORD_ONLY and "*" not in parts:
            parts.append("*")
        kind = _schema_type(hints[name])
        if (name in mutated or everything) and kind.startswith("Tensor"):
            kind = kind.replace("Tensor", f"Tensor(a{i}!)", 1)
        default = "" if parameter.default is parameter.empty else f"={_default_text(parameter.default)}"
        parts.append(f"{kind} {name}{default}")
    text = f"({', '.join(parts)}) -> {_return_text(hints.get('return', inspect.Signature.empty), signature)}"
    return text if op_name is None else op_name + text


def _default_text(value: Any) -> str:
    return f'"{value}"' if isinstance(value, str) else str(value)


def _return_text(annotation: Any, signature: Any) -> str:
    if annotation is inspect.Signature.empty:
        raise ValueError(f"infer_schema(func): No return type annotation was provided. Please add one. Got {signature}")
    if annotation is None or annotation is type(None):
        return "()"
    if typing.get_origin(annotation) is tuple:
        return "(" + ", ".join(_schema_type(a) for a in typing.get_args(annotation)) + ")"
    return _schema_type(annotation)


def opcheck(
    op: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None, *, test_utils: Any = None, raise_exception: bool = True,
    atol: float | None = None, rtol: float | None = None,
) -> dict[str, str]:  # fmt: skip
    """Check an operator's registrations on sample arguments: its schema, its shape rule, and its derivative."""
    call = _op_packet.overload_of(_find(op)) if not isinstance(op, _op_packet.OpOverload) else op
    checks: dict[str, Callable[[], None]] = {
        "test_schema": lambda: _check_schema(call, args, kwargs or {}),
        "test_faketensor": lambda: _check_fake(call, args, kwargs or {}),
        "test_autograd_registration": lambda: _check_autograd(call, args, kwargs or {}, atol, rtol),
    }
    chosen = list(checks) if test_utils is None else [test_utils] if isinstance(test_utils, str) else list(test_utils)
    results: dict[str, str] = {}
    for name in chosen:
        if name not in checks:
            raise ValueError(f"unknown test {name!r}; known are {', '.join(checks)}")
        try:
            checks[name]()
            results[name] = "SUCCESS"
        except Exception as error:
            if raise_exception:
                raise
            results[name] = f"{type(error).__name__}: {error}"
    return results


def _check_schema(call: _op_packet.OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Arguments that the schema does not mark as written must not change."""
    before = [a._version if isinstance(a, Tensor) else None for a in args]
    call(*args, **kwargs)
    for argument, a, version in zip(call.op.schema.arguments, args, before, strict=False):
        if version is not None and not argument.is_written and a._version != version:
            raise RuntimeError(f"{call}: argument {argument.name} is not defined as mutable but was mutated")


def _check_fake(call: _op_packet.OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """The shape rule must agree with what the kernel returns."""
    real = call(*args, **kwargs)
    fake = call(*[a.detach().to("meta") if isinstance(a, Tensor) else a for a in args], **kwargs)
    for r, f in zip(*[x if isinstance(x, list | tuple) else (x,) for x in (real, fake)], strict=True):
        if isinstance(r, Tensor) and (r.shape != f.shape or r.dtype is not f.dtype):
            raise RuntimeError(f"{call}: the shape rule gives {f.dtype}{list(f.shape)}, the kernel {r.dtype}{list(r.shape)}")


def _check_autograd(
    call: _op_packet.OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any], atol: float | None, rtol: float | None
) -> None:
    given: dict[str, Any] = {name: value for name, value in (("atol", atol), ("rtol", rtol)) if value is not None}
    if any(isinstance(a, Tensor) and a.requires_grad for a in args):
        gradcheck(lambda *xs: call(*xs, **kwargs), args, **given)
