"""From an operator and the keys of its arguments to the one function that runs it.

    entry point  →  op.table[keys of the arguments]  →  a flat generated function:
        recording, modes, autograd and the backend's adapter are blocks of its body

A table entry is made on first use. Activating a key (a mode is entered) empties the tables, so that each operator is looked up anew with
that key; while a key is inactive not even a branch remains of it. When a profiler starts or stops, the entries are exchanged instead:
no call in a recording has to look its function up.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from .._allocation_failure import allocation_error
from .._dtype import NarrowDtype
from ..return_types import named_results
from . import compiling, keys
from .codegen import Body, compile_function, compile_lock, indent
from .entry import NUMBERS
from .op import Op, Table

__all__ = [
    "activate",
    "active_keys",
    "active_modes",
    "compiled",
    "deactivate",
    "drop",
    "invalidate",
    "limit_key",
    "look_up_anew",
    "precompile",
    "register_backend",
    "register_layer",
    "resolve",
    "unlimit_key",
    "unregister_layer",
]

BackendBody = Callable[[Op, int], Body]
Layer = Callable[[Op, int, Body], Body]

_backends: dict[int, BackendBody] = {}
_layers: dict[int, Layer] = {}
_limited: dict[int, Callable[[Op], bool]] = {}  # keys of layers for some operators only, and for which
_lock = compile_lock
_active = 0
_activations: dict[int, int] = {}
_filled: list[Op] = []  # operators whose tables may have entries; once for each entry
_compiled: dict[Op, None] = {}  # operators that have functions: few of 1,400, which take a millisecond to look through


def register_backend(key: int, body: BackendBody) -> None:
    """Say how the body that calls a kernel of this backend is made."""
    _backends[key] = body


def register_layer(key: int, layer: Layer, *, only: Callable[[Op], bool] | None = None) -> None:
    """Say how a body is extended when this key is in the set, and `only` of which operators: others run the same function with it and without."""
    _layers[key] = layer
    if only is not None:
        limit_key(key, only)


def limit_key(key: int, only: Callable[[Op], bool]) -> None:
    """Say which operators a key concerns: others run the same function with it and without."""
    with _lock:
        _limited[key] = only


def unlimit_key(key: int) -> None:
    """Let a key concern all operators again; it must not be active."""
    with _lock:
        _limited.pop(key, None)


def unregister_layer(key: int) -> None:
    """Take a layer back, and what was compiled with it."""
    with _lock:
        del _layers[key]
        _limited.pop(key, None)
        for op in _compiled:
            for full in [f for f in op.compiled if f & key]:
                del op.compiled[full]


def active_keys() -> int:
    return _active


def active_modes() -> int:
    """The keys of modes that are active in every set: not those of recording, on which nothing that runs depends, of casts, or switches."""
    return _active & ~(keys.OBSERVING | keys.AUTOCAST | keys.SWITCHES | keys.DRAWING)


def activate(key: int) -> None:
    """Put a key into every key set. Activations nest and are counted, over all threads."""
    global _active
    with _lock:
        _activations[key] = _activations.get(key, 0) + 1
        if key & ~_active:
            _active |= key
            _renew_tables(key)


def deactivate(key: int) -> None:
    global _active
    with _lock:
        _activations[key] -= 1
        if _activations[key] == 0:
            _active &= ~key
            _renew_tables(key)


def drop(key_set: int) -> None:
    """Take keys out of every key set, however often they were activated."""
    global _active
    with _lock:
        for key in [k for k in _activations if k & key_set]:
            del _activations[key]
        _active &= ~key_set
        _renew_tables(key_set)


def _renew_tables(changed: int) -> None:
    """Have the tables lead to no functions but those with the keys that are active now."""
    if changed in _limited:
        for op in _filled:
            if _limited[changed](op):
                op.table.clear()
        return
    if changed & ~keys.OBSERVING:
        # a program that enters a mode for each call pays for the operators it calls in between, and not for all
        look_up_anew()
        return
    for op in _filled:
        table, compiled = op.table, op.compiled
        for argument_keys in list(table):
            function = compiled.get(_full_set(op, argument_keys))
            if function is None:
                table.pop(argument_keys, None)
            else:
                table[argument_keys] = function
    _filled[:] = [op for op in dict.fromkeys(_filled) if op.table]


def look_up_anew() -> None:
    """Empty the tables, because a key concerns other operators now."""
    with _lock:
        for op in _filled:
            op.table.clear()
        _filled.clear()


def invalidate(op: Op) -> None:
    """Forget what was compiled for an operator, because its kernels changed."""
    with _lock:
        op.compiled.clear()
        op.table.clear()
        _compiled.pop(op, None)


def resolve(op: Op, argument_keys: int) -> Callable[..., Any]:
    """The function for this operator and key set, from the table's second chance: what was compiled before."""
    with _lock:
        full = _full_set(op, argument_keys)
        function = op.compiled.get(full)
        if function is None:
            _compiled[op] = None
            function = op.compiled[full] = compiling.run(op.qualified_name, lambda: _compile(op, full))
        _filled.append(op)  # before the table is filled: what is cut short in between leaves nothing that is never cleared
        op.table[argument_keys] = function
        return function


def _full_set(op: Op, argument_keys: int) -> int:
    """The keys of the arguments and the active ones, without those that mean nothing to this operator."""
    full = argument_keys | _active
    for key, concerns in _limited.items():
        if full & key and not concerns(op):
            full &= ~key
    return full


def precompile(extra: int) -> None:
    """Compile whatever has run, recorded or not, with these keys of recording, so that activating them delays no call."""
    with _lock:
        for op in _compiled:
            for full in {f & ~keys.OBSERVING | extra for f in op.compiled} - op.compiled.keys():
                op.compiled[full] = _compile(op, full)


def compiled(op: Op, full: int) -> Callable[..., Any]:
    """A function for this operator and key set that no table leads to."""
    return _compile(op, full)


def _compile(op: Op, full: int) -> Callable[..., Any]:
    body = _body(op, full)
    parameters = ", ".join(op.schema.argument_names)
    suffix = "_" + op.schema.overload if op.schema.overload else ""
    # Without a module, NumPy's warnings about floating-point errors in this very frame are dropped by CPython. Composites keep
    # it: the warnings they mean for users may be attributed to this frame.
    module = None if op.pointwise is not None and op.composite is None else __name__
    lines = [*body.lines, "return result"]
    return compile_function(op.name + suffix, parameters, lines, body.names, module=module, title=op.qualified_name)


def _body(op: Op, full: int) -> Body:
    """What the backend makes for these keys, with what each layer adds to it."""
    body = _naming_failed_allocations(_backend_body(op, full & ~keys.OBSERVING))  # the same kernel, recorded or not
    named = named_results(op.schema)
    if named is not None:
        body = body.edited([*body.lines, "result = new_tuple(named, result)"], {"named": named, "new_tuple": tuple.__new__})
    for key in keys.LAYER_ORDER:
        # a variant with `out=` is recorded in place of the operator that it calls, to which all else happens
        elsewhere = full & keys.OUT_VARIANT if key & keys.RECORDING else "out_variant" in op.tags
        if full & key and key in _layers and not elsewhere:
            body = _layers[key](op, full, body)
    return body


def _naming_failed_allocations(body: Body) -> Body:
    """Raise torch's error where memory runs out. A `try` that nothing leaves by an exception costs nothing."""
    lines = ["try:", *indent(body.lines), "except MemoryError as error_:", "    raise allocation_error(error_)"]
    return body.edited(lines, {"allocation_error": allocation_error})


def _backend_body(op: Op, full: int) -> Body:
    backend = full & keys.BACKENDS or keys.CPU  # an empty list of tensors has no keys
    if backend & keys.BATCHED:
        return _backends[keys.BATCHED](op, full)  # whatever else is among the arguments
    if op.composite is not None and backend not in op.kernels and backend not in op.array_kernels:
        body = call_body(op, op.composite, "composite", calls_operators=True)
        made_inside = "factory" in op.tags or "fresh" in op.tags or op.formulas
        return _as_unwritten(op, full, body) if made_inside else body
    if backend in op.kernels:
        kernel = op.kernels[backend]
        # a kernel written as statements is inlined: the call it saves is a tenth of a small factory
        if isinstance(kernel, Body):
            return kernel
        return _as_unwritten(op, full, call_body(op, kernel, "kernel", calls_operators=True))
    if backend & keys.NARROW and not backend & keys.META:
        return call_body(op, _not_computed(op), "not_computed")
    if backend & keys.SPARSE_LAYOUTS:
        return call_body(op, _no_backend(op, full), "no_backend")
    if backend & (backend - 1):
        return call_body(op, _mixed_devices(op), "mixed_devices")
    if backend in _backends:
        return _backends[backend](op, full)
    return call_body(op, _no_backend(op, full), "no_backend")


def call_body(op: Op, function: Callable[..., Any], name: str, *, calls_operators: bool = False) -> Body:
    """The body that calls a function over tensors with all of the operator's arguments."""
    lines = [f"result = {name}({', '.join(op.schema.argument_names)})"]
    return Body(lines, {name: function}, calls_operators=calls_operators)


def _as_unwritten(op: Op, full: int, body: Body) -> Body:
    """Hide writes of an operator's parts into a result that they made themselves: nobody has seen it before."""
    overridden = full & (keys.DISPATCH_MODE | keys.PYTHON | keys.SUBCLASS)  # the result may be anything
    returned = op.schema.returns
    is_tuple = op.schema.text.endswith(")")  # a tuple of one tensor, as a custom operator may return
    if overridden or len(returned) != 1 or returned[0].type != "Tensor" or returned[0].alias or is_tuple:
        return body
    conditions = ["made_.version"]  # written out: a call with the arguments would take 0.9 µs
    for a in op.schema.arguments:
        if a.is_tensor:
            absent = f"{a.name} is None or " if a.type == "Tensor?" else ""
            number = f"{a.name}.__class__ in NUMBERS or " if a.name in op.numbers else ""
            conditions.append(f"({absent}{number}{a.name}._storage is not made_)")
        elif a.is_tensor_list:
            conditions.append(f"all([t is None or t._storage is not made_ for t in {a.name}])")
    lines = ["made_ = result._storage", f"if {' and '.join(conditions)}:", "    made_.version = 0"]
    return body.edited([*body.lines, *lines], {"NUMBERS": NUMBERS})


def _mixed_devices(op: Op) -> Callable[..., Any]:
    def raise_mixed(*arguments: Any) -> NoReturn:
        devices: list[str] = []
        for a in arguments:
            for t in a if isinstance(a, list | tuple) else (a,):
                d = getattr(t, "device", None)
                if d is not None and str(d) not in devices:
                    devices.append(str(d))
        raise RuntimeError(
            f"Expected all tensors to be on the same device, but got tensors on {' and '.join(devices)} "
            f"(when calling {op.qualified_name}); move them with .to(device)"
        )

    return raise_mixed


def _not_computed(op: Op) -> Callable[..., Any]:
    def raise_refused(*arguments: Any) -> NoReturn:
        found = [t.dtype for a in arguments for t in (a if isinstance(a, list | tuple) else (a,)) if hasattr(t, "_keys")]
        narrow = next(d for d in found if isinstance(d, NarrowDtype))
        other = next((d for d in found if d is not narrow), None)
        if other is not None and narrow.is_floating_point:
            raise RuntimeError(
                f"Promotion for Float8 Types is not supported, attempted to promote {narrow.scalar_name} and {other.scalar_name}"
            )
        raise NotImplementedError(
            f"\"{op.name.rstrip('_')}_cpu\" not implemented for '{narrow.scalar_name}'; convert the tensor with .to(torch.float32)"
        )

    return raise_refused


def _no_backend(op: Op, full: int) -> Callable[..., Any]:
    def raise_missing(*arguments: Any) -> NoReturn:
        raise NotImplementedError(
            f"Could not run '{op.qualified_name}' with arguments of the keys: {keys.describe(full) or 'none'}; "
            "register a kernel for them with torch.library.impl"
        )

    return raise_missing


Table.resolve = staticmethod(resolve)
