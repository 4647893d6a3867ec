"""`torch.library.custom_op`: an operator from a Python function."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from . import _op_packet
from ._dispatch import dispatcher, keys, registry
from ._dispatch.op import Op
from ._dispatch.schema import parse
from ._dtype import dtype
from ._infer_schema import infer_schema
from ._op_registrations import (
    Definition,
    autograd_kernel,
    device_key_name,
    find_op,
    fragment,
    no_formula,
    refuse_tensors_by_keyword,
    register_autocast,
    register_autograd,
    register_vmap,
    set_kernel,
)
from ._tensor import Tensor

__all__ = ["CustomOpDef", "custom_op"]

Function = Callable[..., Any]

_log = logging.getLogger("torch._library.custom_ops")
_WORDS = {True: ("enable", "already enabled"), False: ("disable", "already disabled")}


class CustomOpDef(Definition):
    """An operator made from a Python function by `custom_op`."""

    _has_rule = False

    def __init__(self, op: Op, function: Function) -> None:
        self._op = op
        self._init_fn = function
        self._namespace, self._name = op.schema.namespace, op.name
        self.__name__, self.__doc__ = function.__name__, function.__doc__
        self._kernels: dict[str, Function] = {}  # by device type
        self._disabled: set[str] = set()

    @property
    def _qualname(self) -> str:
        return self._op.qualified_name

    @property
    def _opoverload(self) -> _op_packet.OpOverload:
        return _op_packet.overload_of(self._op)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        assert self._op.entry is not None
        return self._op.entry(*args, **kwargs)

    def register_kernel(self, device_types: str | Sequence[str] | None, fn: Function | None = None, /) -> Callable[..., Any]:
        """Register a kernel for device types; also a decorator."""

        def decorate(function: Function) -> Function:
            names = [device_types] if isinstance(device_types, str) else list(device_types or ["default"])
            schema = self._op.schema
            if names != ["default"] and not schema.tensor_arguments and "device" not in schema.argument_names:
                raise ValueError("Functions without tensor inputs are required to have a `device: torch.device` argument")
            for name in names:
                if name != "default":
                    device_key_name(name)
                self._kernels[name] = _guarded(self._op, function)
            self._install()
            return function

        return decorate if fn is None else decorate(fn)

    def _install(self) -> None:
        """Give the operator the kernels that are not disabled: those of devices in place of the one for all."""
        rule = self._op.kernels.get(keys.META) if self._has_rule else None
        for backend in (keys.CPU, keys.META, keys.NPU):
            self._op.kernels.pop(backend, None)
        for name, kernel in self._kernels.items():
            if name != "default" and name not in self._disabled:
                set_kernel(self._op, device_key_name(name), kernel)
        if "default" in self._kernels:
            set_kernel(self._op, "default", self._kernels["default"])
        if rule is not None:
            self._op.kernels[keys.META] = rule
        dispatcher.invalidate(self._op)

    @contextlib.contextmanager
    def set_kernel_enabled(self, device_type: str, enabled: bool = True) -> Iterator[None]:
        """A context in which the kernel of a device type is used, or the one for all device types in its place."""
        was_disabled = device_type in self._disabled
        if device_type not in self._kernels:
            _log.warning("Attempted to disable kernel for %s but no kernel was registered for this device type.", device_type)
        elif enabled is not was_disabled:
            _log.warning("Attempted to %s kernel for %s but it was %s.", _WORDS[enabled][0], device_type, _WORDS[enabled][1])
        self._disabled = self._disabled - {device_type} if enabled else self._disabled | {device_type}
        self._install()
        try:
            yield
        finally:
            self._disabled = self._disabled | {device_type} if was_disabled else self._disabled - {device_type}
            self._install()

    def register_fake(self, fn: Function, /) -> Function:
        """Register the shape rule for meta tensors."""
        self._has_rule = True
        set_kernel(self._op, "Meta", fn)
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
        for t in _tensors(arguments[i] for i in written):
            t._storage.version += 1
        seen = {id(t._storage) for t in _tensors(arguments)}
        for r in _tensors((result,)):
            if id(r._storage) in seen:
                raise RuntimeError(
                    f"{op.qualified_name} (with implementation in {function.__module__}): The output of this custom operator (1) must "
                    "not also be an input to this custom operator and (2) may not alias any inputs to this custom operator or other "
                    "returns. The most common way to trigger this error is if we have y = custom_op(x) and y and x are the same Tensor. "
                    "Please instead return a clone of the offending output tensor(s) (e.g. return x.clone()) or refactor the custom "
                    "operator to not return y."
                )
            seen.add(id(r._storage))
        return result

    return kernel


def _tensors(values: Iterable[Any]) -> list[Tensor]:
    """The tensors among these, and in lists of them."""
    return [t for v in values for t in (v if isinstance(v, list | tuple) else (v,)) if isinstance(t, Tensor)]


def custom_op(
    name: str,
    fn: Function | None = None,
    /,
    *,
    mutates_args: str | Iterable[str],
    device_types: str | Sequence[str] | None = None,
    schema: str | None = None,
    tags: Any = None,
) -> Callable[..., Any]:
    """Make an operator `namespace::name` from a Python function; its schema comes from the annotations. Also a decorator."""

    def decorate(function: Function) -> CustomOpDef:
        namespace, separator, short = name.partition("::")
        if not separator:
            raise ValueError(f"name must have the form namespace::name, not {name!r}")
        text = schema if schema is not None else infer_schema(function, mutates_args=mutates_args)
        if schema is not None:
            _check_mutations(name, schema, mutates_args)
        refuse_tensors_by_keyword(parse(name + text), "custom_op")
        previous = registry.find(name)
        if previous is not None:
            dispatcher.invalidate(previous)
            registry.remove(previous)
            _op_packet.forget(previous)
        fragment(namespace).define(short + text, tags=tags)
        op = find_op(name)
        definition = CustomOpDef(op, function)
        definition.register_kernel(device_types or "default", function)
        if not any(a.is_written for a in op.schema.arguments):
            set_kernel(op, "Autograd", autograd_kernel(op, no_formula(op), None))
        return definition

    return decorate if fn is None else decorate(fn)


def _check_mutations(name: str, schema: str, mutates_args: str | Iterable[str]) -> None:
    """A schema must say of the same arguments that they are written."""
    written = {a.name for a in parse(name + schema).arguments if a.is_written}
    given = mutates_args if isinstance(mutates_args, str) else set(mutates_args)
    if given not in ("unknown", written):
        raise ValueError(
            f"Attempted to create a custom op with `mutates_args={mutates_args}` and `schema={schema}`. The schema suggests that the op "
            f"mutates {written}, which is different from what was provided to us in `mutates_args`. Please make these consistent."
        )
