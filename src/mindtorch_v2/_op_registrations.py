"""Registrations of `torch.library`: operators of the user's own, their kernels per device, shape rules and derivatives."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import re
import sys
import weakref
from collections.abc import Callable, Iterator
from typing import Any

from . import _op_packet
from ._device import KNOWN_TYPES
from ._dispatch import dispatcher, keys, registry
from ._dispatch.op import Op
from ._dispatch.schema import Schema, parse
from ._dtype import BY_NAME, dtype
from ._infer_schema import infer_schema
from ._ops.machinery.calling import call_op
from ._ops.machinery.declare import register
from ._tag import as_marks
from ._transforms.batch_key import rules as batch_rules
from ._transforms.custom_functions import user_rule
from .amp import policies
from .autograd.function import BackwardCFunction
from .autograd.function import Function as AutogradFunction
from .utils._python_dispatch import dispatch_rules

__all__ = [
    "Definition",
    "Library",
    "autograd_kernel",
    "define",
    "device_key_name",
    "find_op",
    "fragment",
    "impl",
    "no_formula",
    "refuse_tensors_by_keyword",
    "register_autocast",
    "register_autograd",
    "register_fake",
    "register_kernel",
    "register_torch_dispatch",
    "register_vmap",
    "scoped_library",
    "set_kernel",
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
# Keys of devices and layouts that there are no tensors of: kernels for them are never called.
_ABSENT_KEYS = frozenset(
    f"{prefix}{name}"
    for name in "XPU HPU MPS XLA MTIA IPU VE MAIA VULKAN Vulkan Metal QuantizedCPU MkldnnCPU NestedTensorCPU".split()
    for prefix in ("", "Autograd")
)
_DEVICES = {"cpu": keys.CPU, "meta": keys.META, "npu": keys.NPU, "cuda": keys.NPU, "privateuseone": keys.NPU}


_shape_rules_ahead: dict[str, Function] = {}  # of operators that are not defined yet, by name


class Definition:
    """An object that `torch.library` functions accept in place of the name of the operator it defines."""

    _op: Op


def find_op(qualname: Any) -> Op:
    """The operator of a name, an overload or a definition."""
    if isinstance(qualname, Definition):
        return qualname._op
    if isinstance(qualname, _op_packet.OpOverload):
        return qualname.op
    if isinstance(qualname, _op_packet.OpOverloadPacket):
        return qualname.only_overload().op
    name, _, overload = str(qualname).partition(".")
    op = registry.find(name, overload or "default")
    if op is None:
        raise RuntimeError(f"operator {qualname} does not exist; define it first, with torch.library.define or custom_op")
    return op


def set_kernel(op: Op, key: str, function: Function, lib: Library | None = None) -> None:
    """Register a kernel. One registered through a Library is removed with it."""
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
    elif key not in _ABSENT_KEYS:
        known = ", ".join([*_KEYS, "CompositeImplicitAutograd", "CompositeExplicitAutograd"])
        raise RuntimeError(f"could not parse dispatch key: {key}; known are {known}")
    op.tags = (*op.tags, "foreign")
    dispatcher.invalidate(op)


def _with_keywords(op: Op, function: Function) -> Function:
    """Return a kernel that is passed the schema's keyword-only arguments by name."""
    names = [a.name for a in op.schema.arguments if a.keyword_only]
    if not names:
        return function
    count = len(op.schema.arguments) - len(names)
    return lambda *arguments: function(*arguments[:count], **dict(zip(names, arguments[count:], strict=True)))


_SCHEMA_TYPES = frozenset(
    "Tensor int float bool str complex Scalar ScalarType Layout Device DeviceIndex MemoryFormat Generator Dimname Stream Storage AnyEnumType t Any".split()
)
_SPELLED_OTHERWISE = {"int64_t": "`SymInt` or `int`", "int32_t": "`int`", "double": "`float`", "string": "`str`"}


def _check_types(schema: Schema) -> None:
    """Refuse a schema with types that torch does not know."""
    for kind in [*(a.type for a in schema.arguments), *(r.type for r in schema.returns)]:
        base = re.split(r"[\[?(]", kind)[0]
        if base not in _SCHEMA_TYPES:
            hint = (
                f"Use {_SPELLED_OTHERWISE[base]}" if base in _SPELLED_OTHERWISE else f"known are {', '.join(sorted(_SCHEMA_TYPES))}"
            )
            raise RuntimeError(f"unknown type specifier {base!r} in the schema {schema}. {hint}")


def _with_dtypes(schema: Schema) -> Schema:
    """Return the schema with dtypes as defaults where its text names them."""
    arguments = tuple(
        dataclasses.replace(a, default=BY_NAME.get(str(a.default).removeprefix("torch."), a.default))
        if a.type.startswith("ScalarType") and isinstance(a.default, str)
        else a
        for a in schema.arguments
    )
    return dataclasses.replace(schema, arguments=arguments)


_namespaces: weakref.WeakValueDictionary[str, Library] = weakref.WeakValueDictionary()  # that a library of kind DEF defines


def _claim_namespace(lib: Library, ns: str) -> None:
    """Refuse a second library of kind DEF for a namespace."""
    caller = sys._getframe(2)
    while caller.f_code.co_filename in (__file__, contextlib.__file__) and caller.f_back is not None:
        caller = caller.f_back
    lib._place = f"{caller.f_code.co_filename}:{caller.f_lineno}"
    previous = _namespaces.setdefault(ns, lib)
    if previous is not lib:
        raise RuntimeError(
            f"Only a single Library of kind DEF can define the namespace {ns}; put all definitions in one, or use FRAGMENT. The previous one "
            f"was made at {previous._place}, this one at {lib._place}"
        )


class Library:
    """Defines operators in a namespace (`DEF`), or adds kernels to existing ones (`IMPL`). `FRAGMENT` is as `DEF`."""

    _place = ""  # where it was made

    def __init__(self, ns: str, kind: str, dispatch_key: str = "") -> None:
        if kind not in ("IMPL", "DEF", "FRAGMENT"):
            raise ValueError(f"Unsupported kind: {kind}; it is IMPL, DEF or FRAGMENT")
        if ns in ("prim", "prims"):
            raise ValueError(f"{ns} is a reserved namespace. Please try creating a library with another name.")
        if kind == "DEF":
            _claim_namespace(self, ns)
        self.ns = ns
        self.kind = kind
        self.dispatch_key = dispatch_key
        self._defined: list[Op] = []
        self._registrations: list[Callable[[], object]] = []  # what takes back rules that were registered with this library
        self._replaced: list[tuple[Op, Any, dict[int, Any]]] = []  # operators as they were before this library's kernels

    def define(self, schema: str, alias_analysis: str = "", *, tags: Any = ()) -> str:
        """Define an operator by its schema; returns its name."""
        if alias_analysis not in ("", "FROM_SCHEMA", "CONSERVATIVE"):
            raise RuntimeError(f"Invalid alias_analysis type {alias_analysis}")
        if self.kind == "IMPL":
            raise RuntimeError("a Library of kind IMPL cannot define operators; use DEF or FRAGMENT")
        parsed = parse(f"{self.ns}::{schema}")
        _check_types(parsed)
        op = Op(_with_dtypes(parsed), tags=as_marks(tags))
        register(op)
        self._defined.append(op)
        rule = _shape_rules_ahead.pop(op.qualified_name, None)
        if rule is not None:
            set_kernel(op, "Meta", rule, self)
        return op.name if not op.schema.overload else f"{op.name}.{op.schema.overload}"

    def impl(
        self, op_name: str, fn: Function, dispatch_key: str = "", *, with_keyset: bool = False, allow_override: bool = False
    ) -> None:
        """Register a kernel for a dispatch key."""
        if not callable(fn):
            raise TypeError(f"Input function is required to be a callable but found type {type(fn)}")
        if with_keyset:
            raise NotImplementedError("with_keyset=True is not supported: kernels here get no key set")
        op = (
            op_name.op
            if isinstance(op_name, _op_packet.OpOverload)
            else find_op(op_name if "::" in op_name else f"{self.ns}::{op_name}")
        )
        key = dispatch_key or self.dispatch_key or "CompositeImplicitAutograd"
        if not allow_override and key in _KEYS and _KEYS[key] in op.kernels:
            raise RuntimeError(f"{op.qualified_name} has a kernel for {key} already; pass allow_override=True to replace it")
        set_kernel(op, key, fn, self)

    def _register_torch_dispatch_rule(self, op_name: str, torch_dispatch_class: Any, fn: Function) -> None:
        """Register what is called for an operator of this namespace in place of a class's `__torch_dispatch__`."""
        register_torch_dispatch(f"{self.ns}::{op_name}", torch_dispatch_class, fn, lib=self)

    def _destroy(self) -> None:
        """Take back the operators that this library defined, and its kernels of others."""
        if _namespaces.get(self.ns) is self:
            del _namespaces[self.ns]
        for op, composite, kernels in reversed(self._replaced):
            op.composite = composite
            op.kernels.clear()
            op.kernels.update(kernels)
            dispatcher.invalidate(op)
        self._replaced.clear()
        for take_back in reversed(self._registrations):
            take_back()
        self._registrations.clear()
        for op in self._defined:
            dispatcher.invalidate(op)
            registry.remove(op)
            _op_packet.forget(op)
        self._defined.clear()


_fragments: dict[str, Library] = {}


@contextlib.contextmanager
def scoped_library(ns: str, kind: str, dispatch_key: str = "") -> Iterator[Library]:
    """A library whose operators and kernels are there inside the context only."""
    lib = Library(ns, kind, dispatch_key)
    try:
        yield lib
    finally:
        lib._destroy()


def fragment(namespace: str) -> Library:
    return _fragments.setdefault(namespace, Library(namespace, "FRAGMENT"))


def _define_in(lib: Library, schema: Any, function: Function) -> Function:
    lib.impl(lib.define(schema), function)
    return function


def define(qualname: str, schema: str | None = None, *, lib: Library | None = None, tags: Any = ()) -> Any:
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
    if not schema.lstrip().startswith("("):
        raise ValueError(
            f'define(qualname, schema, ...): expected schema to look like e.g. "(Tensor x) -> Tensor" but got {schema!r}'
        )
    (lib or fragment(namespace)).define(name + schema, tags=tags)
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
    names = [
        name if name == "default" or name in _KEYS else device_key_name(name)
        for name in ([types] if isinstance(types, str) else types)
    ]

    def decorate(function: Function) -> Function:
        op = find_op(qualname)
        for name in names:
            set_kernel(op, name, function, lib)
        return function

    return decorate if func is None else decorate(func)


def device_key_name(device_type: str) -> str:
    if device_type in KNOWN_TYPES and device_type not in _DEVICES:
        return device_type.upper()  # there are no tensors on it
    if device_type not in _DEVICES:
        raise RuntimeError(f"Expected one of {', '.join(KNOWN_TYPES)} device type at start of device string: {device_type}")
    return next(name for name, key in _KEYS.items() if key == _DEVICES[device_type])


def register_kernel(
    op: Any, device_types: Any, func: Function | None = None, /, *, lib: Library | None = None
) -> Callable[..., Any]:
    """Register a kernel for device types; None means all of them."""
    return impl(op, "default" if device_types is None else device_types, func, lib=lib)


def register_fake(
    op: Any, func: Function | None = None, /, *, lib: Library | None = None, _stacklevel: int = 1, allow_override: bool = True
) -> Callable[..., Any]:
    """Register the shape rule: the function that runs for meta tensors.

    The operator may be defined later. In PyTorch it may not; there, torchvision defines its operators in C++ before it gives their rules here.
    """

    def decorate(function: Function) -> Function:
        if isinstance(op, str) and not registry.overloads(op.partition(".")[0]):
            _shape_rules_ahead[op] = function
            return function
        target = find_op(op)
        if not allow_override and keys.META in target.kernels:
            raise RuntimeError(f"{target.qualified_name} has a shape rule already; pass allow_override=True to replace it")
        set_kernel(target, "Meta", function, lib)
        return function

    return decorate if func is None else decorate(func)


def register_autograd(op: Any, backward: Function, /, *, setup_context: Function | None = None, lib: Library | None = None) -> None:
    """Register `backward(ctx, *grads)`, and `setup_context(ctx, inputs, output)` that saves what it needs."""
    target = find_op(op)
    refuse_tensors_by_keyword(target.schema, "register_autograd")
    set_kernel(target, "Autograd", autograd_kernel(target, backward, setup_context), lib)


def refuse_tensors_by_keyword(schema: Schema, what: str) -> None:
    if any(a.keyword_only and a.type.startswith("Tensor") for a in schema.arguments):
        raise NotImplementedError(f"{what} with kwarg-only Tensor args. Please make your tensors not kwarg-only. Got: {schema}")


def no_formula(op: Op) -> Function:
    def backward(ctx: Any, *grads: Any) -> Any:
        raise RuntimeError(
            f"Trying to backward through {_op_packet.overload_of(op)} but no autograd formula was registered. Please use "
            "register_autograd to add one."
        )

    return backward


def autograd_kernel(op: Op, backward: Function, setup_context: Function | None) -> Function:
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

    def run_backward(ctx: BackwardCFunction, *grads: Any) -> Any:
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
    target = find_op(op)
    if device_type == "cpu":
        policies.register(target, cast_inputs)
        if lib is not None:
            lib._registrations.append(lambda: policies.unregister(target))


def register_vmap(op: Any, func: Function | None = None, /, *, lib: Library | None = None) -> Callable[..., Any]:
    """Register `func(info, in_dims, *args)`, which returns the results for batched arguments and where they have the batch."""

    def decorate(function: Function) -> Function:
        target = find_op(op)
        refuse_tensors_by_keyword(target.schema, "register_vmap")
        batch_rules[target.qualified_name] = user_rule(function)
        dispatcher.invalidate(target)
        if lib is not None:
            lib._registrations.append(lambda: batch_rules.pop(target.qualified_name, None))
        return function

    return decorate if func is None else decorate(func)


def register_torch_dispatch(
    op: Any, torch_dispatch_class: Any, func: Function | None = None, /, *, lib: Library | None = None
) -> Any:
    """Register `func(mode_or_class, func, types, args, kwargs)`, called for this operator in place of a class's `__torch_dispatch__`."""

    def decorate(function: Function) -> Function:
        rules = dispatch_rules.setdefault(find_op(op), {})
        rules[torch_dispatch_class] = function
        if lib is not None:
            lib._registrations.append(lambda: rules.pop(torch_dispatch_class, None))
        return function

    return decorate if func is None else decorate(func)
