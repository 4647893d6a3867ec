"""`Module`: the base class of neural network modules."""

from __future__ import annotations

import inspect
import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from types import FunctionType
from typing import Any, Self

from ... import compiler
from ..._autograd.leaf import clear_gradients
from ..._device import device as Device
from ..._dispatch.codegen import compile_function
from ..._dtype import PYTHON_TYPES, dtype
from ..._dtype import dtype as DType
from ..._ops.machinery.lookup import aten
from ..._tensor import Tensor
from ..._types import OptionalDevice
from ...utils.hooks import RemovableHandle, add_hook
from ..parameter import Buffer, Parameter
from .conversion import convert_parameter
from .hooks import (
    GLOBAL,
    call_with_hooks,
    register_module_backward_hook,
    register_module_buffer_registration_hook,
    register_module_forward_hook,
    register_module_forward_pre_hook,
    register_module_full_backward_hook,
    register_module_full_backward_pre_hook,
    register_module_module_registration_hook,
    register_module_parameter_registration_hook,
)
from .state import StateDict, _IncompatibleKeys, _WrappedHook  # noqa: F401 - libraries and files import them from here, as in torch

__all__ = [
    "Module",
    "register_module_backward_hook",
    "register_module_buffer_registration_hook",
    "register_module_forward_hook",
    "register_module_forward_pre_hook",
    "register_module_full_backward_hook",
    "register_module_full_backward_pre_hook",
    "register_module_module_registration_hook",
    "register_module_parameter_registration_hook",
]

_global_forward, _global_forward_pre = GLOBAL.forward, GLOBAL.forward_pre
_global_backward, _global_backward_pre = GLOBAL.backward, GLOBAL.backward_pre


_MEMBERS = ("_parameters", "_buffers", "_modules")
_HOOKS = (
    "_forward_hooks", "_forward_hooks_with_kwargs", "_forward_hooks_always_called", "_forward_pre_hooks", "_forward_pre_hooks_with_kwargs",
    "_backward_hooks", "_backward_pre_hooks", "_state_dict_hooks", "_state_dict_pre_hooks", "_load_state_dict_pre_hooks",
    "_load_state_dict_post_hooks",
)  # fmt: skip


def _takes_persistent(register_buffer: Callable[..., Any]) -> bool:
    """Whether a module's `register_buffer` has the argument, which subclasses of old leave out."""
    own = getattr(register_buffer, "__func__", None) is Module.register_buffer
    return own or "persistent" in inspect.signature(register_buffer).parameters


def typename(value: object) -> str:
    """The name of a value's type as error messages give it."""
    if isinstance(value, Tensor) and type(value) is Tensor:
        return value.type()
    kind = value if isinstance(value, type) else type(value)
    module = kind.__module__.replace("mindtorch_v2", "torch", 1)
    return kind.__qualname__ if module == "builtins" else f"{module}.{kind.__qualname__}"


class Module(StateDict):
    """A part of a network: it holds parameters, buffers and other modules, and computes in `forward`."""

    dump_patches: bool = False
    training: bool
    call_super_init: bool = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if self.call_super_init is False and kwargs:
            raise TypeError(f"{type(self).__name__}.__init__() got an unexpected keyword argument '{next(iter(kwargs))}'")
        if self.call_super_init is False and args:
            raise TypeError(f"{type(self).__name__}.__init__() takes 1 positional argument but {len(args) + 1} were given")
        # straight to the dictionary: the class's __setattr__ asks these very attributes
        self.__dict__.update(
            training=True,
            _non_persistent_buffers_set=set(),
            _is_full_backward_hook=None,
            **{name: {} for name in _MEMBERS},
            **{name: OrderedDict() for name in _HOOKS},
        )
        if self.call_super_init:
            super().__init__(*args, **kwargs)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Compute the module's result; every subclass defines it."""
        raise NotImplementedError(f'Module [{type(self).__name__}] is missing the required "forward" function')

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if (
            self._forward_hooks
            or self._forward_pre_hooks
            or self._backward_hooks
            or self._backward_pre_hooks
            or _global_forward
            or _global_forward_pre
            or _global_backward
            or _global_backward_pre
        ):
            return call_with_hooks(self, args, kwargs)
        return self.forward(*args, **kwargs)

    _call_impl = _wrapped_call_impl = __call__

    # --- registering ------------------------------------------------------------------------------------------------

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Add a tensor that belongs to the module's state but is no parameter."""
        if "_buffers" not in self.__dict__:
            raise AttributeError("cannot assign buffer before Module.__init__() call")
        self._check_name(name, "buffer", self._buffers)
        if tensor is not None and not isinstance(tensor, Tensor) and not hasattr(type(tensor), "__torch_function__"):
            raise TypeError(f"cannot assign '{typename(tensor)}' object to buffer '{name}' (torch Tensor or None required)")
        self._buffers[name] = _after_hooks(GLOBAL.buffer_registration, self, name, tensor)
        mark = set.discard if persistent else set.add
        mark(self._non_persistent_buffers_set, name)

    def _check_name(self, name: object, kind: str, known: dict[str, Any]) -> None:
        if not isinstance(name, str):
            raise TypeError(f"{kind} name should be a string. Got {typename(name)}")
        if "." in name:
            raise KeyError(f'{kind} name can\'t contain "."')
        if name == "":
            raise KeyError(f'{kind} name can\'t be empty string ""')
        if hasattr(self, name) and name not in known:
            raise KeyError(f"attribute '{name}' already exists")

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Add a parameter under this name; None keeps the name for a parameter the module does without."""
        if "_parameters" not in self.__dict__:
            raise AttributeError("cannot assign parameter before Module.__init__() call")
        self._check_name(name, "parameter", self._parameters)
        if param is not None:
            if not isinstance(param, Parameter):
                raise TypeError(
                    f"cannot assign '{typename(param)}' object to parameter '{name}' (torch.nn.Parameter or None required)"
                )
            if param.grad_fn is not None:
                raise ValueError(
                    f"Cannot assign non-leaf Tensor to parameter '{name}'. Model parameters must be created explicitly. To "
                    f"express '{name}' as a function of another Tensor, compute the value in the forward() method."
                )
            param = _after_hooks(GLOBAL.parameter_registration, self, name, param)
        self._parameters[name] = param

    def add_module(self, name: str, module: Module | None) -> None:
        """Add a child under this name."""
        if not isinstance(module, Module) and module is not None:
            raise TypeError(f"{typename(module)} is not a Module subclass")
        if not isinstance(name, str):
            raise TypeError(f"module name should be a string. Got {typename(name)}")
        if hasattr(self, name) and name not in self._modules:
            raise KeyError(f"attribute '{name}' already exists")
        if "." in name:
            raise KeyError(f'module name can\'t contain ".", got: {name}')
        if name == "":
            raise KeyError('module name can\'t be empty string ""')
        self._modules[name] = _hooked_module(self, name, module)

    def register_module(self, name: str, module: Module | None) -> None:
        """Another name of `add_module`."""
        self.add_module(name, module)

    # --- attributes -------------------------------------------------------------------------------------------------

    def __getattr__(self, name: str) -> Any:
        own = self.__dict__
        for kind in _MEMBERS:
            if kind in own and name in own[kind]:
                return own[kind][name]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __setattr__(self, name: str, value: Any) -> None:
        own = self.__dict__
        if isinstance(value, Parameter):
            if "_parameters" not in own:
                raise AttributeError("cannot assign parameters before Module.__init__() call")
            self._forget(name, "_parameters")
            self.register_parameter(name, value)
            return
        if isinstance(value, Module):
            if "_modules" not in own:
                raise AttributeError("cannot assign module before Module.__init__() call")
            self._forget(name, "_modules")
            self._modules[name] = _hooked_module(self, name, value)
            return
        parameters = own.get("_parameters")
        if parameters is not None and name in parameters:
            if value is not None:
                raise TypeError(f"cannot assign '{typename(value)}' as parameter '{name}' (torch.nn.Parameter or None expected)")
            self.register_parameter(name, value)
            return
        modules = own.get("_modules")
        if modules is not None and name in modules:
            if value is not None:
                raise TypeError(f"cannot assign '{typename(value)}' as child module '{name}' (torch.nn.Module or None expected)")
            modules[name] = _hooked_module(self, name, value)
            return
        buffers = own.get("_buffers")
        if isinstance(value, Tensor | None) and (isinstance(value, Buffer) or (buffers is not None and name in buffers)):
            self._set_buffer(name, value, buffers)
            return
        if buffers is not None and name in buffers:
            raise TypeError(
                f"cannot assign '{typename(value)}' as buffer '{name}' (torch.nn.Buffer, torch.Tensor or None expected)"
            )
        object.__setattr__(self, name, value)

    def _set_buffer(self, name: str, value: Any, buffers: dict[str, Any] | None) -> None:
        if buffers is None:
            raise AttributeError("cannot assign buffer before Module.__init__() call")
        if isinstance(value, Buffer):
            self._forget(name, "_buffers")
            if _takes_persistent(self.register_buffer):
                self.register_buffer(name, value, value.persistent)
            elif value.persistent:
                self.register_buffer(name, value)
            else:
                raise RuntimeError(
                    "Registering a non-persistent buffer on a Module subclass that implements register_buffer() without the persistent "
                    "argument is not allowed."
                )
            return
        buffers[name] = _after_hooks(GLOBAL.buffer_registration, self, name, value)

    def _forget(self, name: str, keep: str) -> None:
        """Drop what an attribute name stood for before it is registered anew as something of the kind `keep`."""
        self.__dict__.pop(name, None)
        for kind in _MEMBERS:
            if kind != keep and kind in self.__dict__:
                self.__dict__[kind].pop(name, None)
        self._non_persistent_buffers_set.discard(name)

    def __delattr__(self, name: str) -> None:
        for members in (self._parameters, self._buffers, self._modules):
            if name in members:
                del members[name]
                self._non_persistent_buffers_set.discard(name)
                return
        super().__delattr__(name)

    def __dir__(self) -> list[str]:
        names = [*dir(type(self)), *self.__dict__, *self._parameters, *self._modules, *self._buffers]
        # torch: names that cannot be written as an attribute are left out
        return sorted(n for n in names if not n[0].isdigit())

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        # pickles may be from before an attribute was there
        for name in _HOOKS:
            self.__dict__.setdefault(name, OrderedDict())
        self.__dict__.setdefault("_non_persistent_buffers_set", set())
        self.__dict__.setdefault("_is_full_backward_hook", None)

    # --- walking ----------------------------------------------------------------------------------------------------

    def named_modules(
        self, memo: set[Module] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Module]]:
        """This module and all below it, with their dotted names."""
        seen = set() if memo is None else memo
        if self not in seen:
            seen.update([self] if remove_duplicate else [])
            yield prefix, self
            path = prefix + "." if prefix else ""
            for name, child in self._modules.items():
                if child is not None:
                    yield from child.named_modules(seen, path + name, remove_duplicate)

    def modules(self, remove_duplicate: bool = True) -> Iterator[Module]:
        """This module and all below it."""
        return (module for _, module in self.named_modules(remove_duplicate=remove_duplicate))

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """The modules directly in this one, each once."""
        first_names: dict[Any, str] = {}
        for name, child in self._modules.items():
            if child is not None and first_names.setdefault(child, name) == name:
                yield name, child

    def children(self) -> Iterator[Module]:
        """The modules directly in this one, each once, without their names."""
        return (child for _, child in self.named_children())

    def _named_members(
        self, get_members_fn: Callable[[Module], Any], prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Any]]:
        owners = self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate) if recurse else [(prefix, self)]
        members = (
            (f"{path}.{name}" if path else name, member)
            for path, owner in owners
            for name, member in get_members_fn(owner)
            if member is not None
        )
        return _unique(members) if remove_duplicate else members

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """Parameters of this module, and with `recurse` of all below it, with their dotted names."""
        return self._named_members(lambda m: m._parameters.items(), prefix, recurse, remove_duplicate)

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """The parameters without their names."""
        return (parameter for _, parameter in self.named_parameters(recurse=recurse))

    def named_buffers(self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True) -> Iterator[tuple[str, Tensor]]:
        """Buffers of this module, and with `recurse` of all below it, with their dotted names."""
        return self._named_members(lambda m: m._buffers.items(), prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """The buffers without their names."""
        return (buffer for _, buffer in self.named_buffers(recurse=recurse))

    def get_submodule(self, target: str) -> Module:
        """The module at a dotted path below this one."""
        module: Module = self
        for name in target.split(".") if target else ():
            if not hasattr(module, name):
                raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
            module = getattr(module, name)
            if not isinstance(module, Module):
                raise AttributeError(f"`{name}` is not an nn.Module")
        return module

    def set_submodule(self, target: str, module: Module, strict: bool = False) -> None:
        """Put a module at a dotted path below this one; with `strict`, only in the place of another."""
        if target == "":
            raise ValueError("Cannot set the submodule without a target name!")
        *path, name = target.split(".")
        parent = self.get_submodule(".".join(path))
        if strict and not hasattr(parent, name):
            raise AttributeError(f"{parent._get_name()} has no attribute `{name}`")
        if hasattr(parent, name) and not isinstance(getattr(parent, name), Module):
            raise AttributeError(f"`{name}` is not an nn.Module")
        if not isinstance(module, Module):
            raise ValueError(f'"module" is not an nn.Module, found {type(module)}')
        setattr(parent, name, module)

    def get_parameter(self, target: str) -> Parameter:
        """The parameter at a dotted path."""
        _, name, found = self._at(target)
        if not isinstance(found, Parameter):
            raise AttributeError(f"`{name}` is not an nn.Parameter")
        return found

    def get_buffer(self, target: str) -> Tensor:
        """The buffer at a dotted path."""
        owner, name, found = self._at(target)
        if name not in owner._buffers:
            raise AttributeError(f"`{name}` is not a buffer")
        return found

    def _at(self, target: str) -> tuple[Module, str, Any]:
        """The owner, name and value of the attribute at a dotted path."""
        path, _, name = target.rpartition(".")
        owner = self.get_submodule(path)
        if not hasattr(owner, name):
            raise AttributeError(f"{owner._get_name()} has no attribute `{name}`")
        return owner, name, getattr(owner, name)

    # --- hooks ------------------------------------------------------------------------------------------------------

    def register_forward_pre_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """Run `hook(module, args)`, or `hook(module, args, kwargs)`, before forward; it may return other arguments."""
        marks = [(self._forward_pre_hooks_with_kwargs, with_kwargs)]
        return add_hook(self._forward_pre_hooks, hook, prepend=prepend, marks=marks)

    def register_forward_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False, always_call: bool = False
    ) -> RemovableHandle:
        """Run `hook(module, args, output)`, or with the keyword arguments before the output; it may return another output."""
        marks = [(self._forward_hooks_with_kwargs, with_kwargs), (self._forward_hooks_always_called, always_call)]
        return add_hook(self._forward_hooks, hook, prepend=prepend, marks=marks)

    def register_full_backward_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Run `hook(module, grad_output)` before the module's backward; it may return other gradients."""
        return add_hook(self._backward_pre_hooks, hook, prepend=prepend)

    def register_full_backward_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Run `hook(module, grad_input, grad_output)` when the gradients of the inputs are known; it may return others."""
        return self._register_backward(hook, full=True, prepend=prepend)

    def register_backward_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """The deprecated kind of backward hook, which sees the module's last node only."""
        return self._register_backward(hook, full=False, prepend=False)

    def _register_backward(self, hook: Callable[..., Any], *, full: bool, prepend: bool) -> RemovableHandle:
        if self._is_full_backward_hook is (not full):
            raise RuntimeError(
                "Cannot use both regular backward hooks and full backward hooks on a single Module. Please use only one of them."
            )
        self._is_full_backward_hook = full
        return add_hook(self._backward_hooks, hook, prepend=prepend)

    # --- converting -------------------------------------------------------------------------------------------------

    def apply(self, fn: Callable[[Module], None]) -> Self:
        """Call `fn` with every module below this one, then with this one."""
        for child in self.children():
            child.apply(fn)
        fn(self)
        return self

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        """Replace the elements of parameters, their gradients and buffers by what `fn` makes of them."""
        if recurse:
            for child in self.children():
                child._apply(fn)
        for key, param in self._parameters.items():
            if param is not None:
                convert_parameter(self, key, param, fn)
        self._buffers.update({name: fn(buffer) for name, buffer in self._buffers.items() if buffer is not None})
        return self

    def to(self, *args: Any, **kwargs: Any) -> Self:
        """Move parameters and buffers to a device, and floating-point ones to a dtype."""
        device, dtype, non_blocking, memory_format = parse_to(args, kwargs)
        if dtype is not None and not (dtype.is_floating_point or dtype.is_complex):
            raise TypeError(f"nn.Module.to only accepts floating point or complex dtypes, but got desired dtype={dtype}")

        def convert(t: Tensor) -> Tensor:
            target = dtype if t.dtype.is_floating_point or t.dtype.is_complex else None
            extra = {"memory_format": memory_format} if memory_format is not None and t.dim() in (4, 5) else {}
            return t.to(device=device, dtype=target, non_blocking=non_blocking, **extra)

        return self._apply(convert)

    def cpu(self) -> Self:
        """Move parameters and buffers to the CPU."""
        return self._apply(lambda t: t.cpu())

    def cuda(self, device: OptionalDevice = None) -> Self:
        """Move parameters and buffers to a GPU: there is none, and torch's AssertionError says so."""
        return self._apply(lambda t: t.cuda(device))

    def xpu(self, device: OptionalDevice = None) -> Self:
        """Move parameters and buffers to an XPU: there is none, and torch's AssertionError says so."""
        return self._apply(lambda t: t.to("xpu" if device is None else device))

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """As `torch.compile`, which leaves the module as it is."""
        compiler.compile(self, *args, **kwargs)

    def type(self, dst_type: dtype | str) -> Self:
        """Convert all parameters and buffers to this dtype."""
        return self._apply(lambda t: t.type(dst_type))

    def _cast(self, name: str) -> Self:
        return self._apply(lambda t: getattr(t, name)() if t.dtype.is_floating_point else t)

    def float(self) -> Self:
        """Convert floating-point parameters and buffers to float32."""
        return self._cast("float")

    def double(self) -> Self:
        """Convert floating-point parameters and buffers to float64."""
        return self._cast("double")

    def half(self) -> Self:
        """Convert floating-point parameters and buffers to float16."""
        return self._cast("half")

    def bfloat16(self) -> Self:
        """Convert floating-point parameters and buffers to bfloat16."""
        return self._cast("bfloat16")

    def to_empty(self, *, device: OptionalDevice, recurse: bool = True) -> Self:
        """Move parameters and buffers to a device without copying their elements."""
        return self._apply(lambda t: aten.empty_like(t, device=device), recurse=recurse)

    def share_memory(self) -> Self:
        """Move parameters and buffers to shared memory."""
        return self._apply(lambda t: t.share_memory_())

    # --- modes ------------------------------------------------------------------------------------------------------

    def train(self, mode: bool = True) -> Self:
        """Set training mode, which dropout, batch norm and the like ask for, in this module and all below it."""
        if mode is not True and mode is not False:
            raise ValueError("training mode is expected to be boolean")
        for child in self.children():
            child.train(mode)
        self.training = mode
        return self

    def eval(self) -> Self:
        """Set evaluation mode."""
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Say whether gradients are computed for the parameters."""
        for p in self.parameters():
            p.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Clear the parameters' gradients."""
        if getattr(self, "_is_replica", False):
            warnings.warn(
                "Calling .zero_grad() from a module created with nn.DataParallel() has no effect. The parameters are copied (in "
                "a differentiable manner) from the original module. This means they are not leaf nodes in autograd and so don't "
                "accumulate gradients. If you need gradients in your forward method, consider using autograd.grad instead.",
                stacklevel=2,
            )
        clear_gradients(self.parameters(), set_to_none=set_to_none)

    # --- printing ---------------------------------------------------------------------------------------------------

    def _get_name(self) -> str:
        return type(self).__name__

    def extra_repr(self) -> str:
        """Return the text in the parentheses of the module's line; subclasses override it."""
        return ""

    def __repr__(self) -> str:
        extra = self.extra_repr()
        lines = extra.split("\n") if extra else []
        children = [f"({name}): {indented(repr(module))}" for name, module in self._modules.items()]
        if len(lines) == 1 and not children:
            return f"{self._get_name()}({lines[0]})"
        if not lines and not children:
            return f"{self._get_name()}()"
        return f"{self._get_name()}(\n  " + "\n  ".join(lines + children) + "\n)"


# --- observing calls ------------------------------------------------------------------------------------------------

_call: Any = vars(Module)["__call__"]
CALL_CODE = _call.__code__  # by which a tracer of Python functions knows the call of a module, whoever wraps it
call_unobserved = FunctionType(CALL_CODE, globals(), "call_unobserved")


def _pass_on(module: Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return call_unobserved(module, *args, **kwargs)


_observer: Callable[[Any, tuple[Any, ...], dict[str, Any]], Any] = _pass_on


# generated, and so none of the functions that a program is shown
_observed = compile_function("observed", "self, *args, **kwargs", ["return _observer(self, args, kwargs)"], {}, title="module call")


def observe_calls(observer: Callable[[Any, tuple[Any, ...], dict[str, Any]], Any] | None) -> None:
    """Have `observer(module, args, kwargs)` called in place of every module, or none; it makes the call with `call_unobserved`.

    The code of `Module.__call__` is another then. Were the function another, it would have to go to every subclass, 0.13 ms for each of its three
    names, and could not be taken back where someone has put a function around it.
    """
    global _observer
    if observer is not None:
        _observer = observer
        _call.__code__ = _observed.__code__
    else:
        _call.__code__ = CALL_CODE
        _observer = _pass_on  # after that: other threads may be on their way in


def _after_hooks(hooks: dict[int, Callable[..., Any]], owner: Module, name: str, value: Any) -> Any:
    """Call the registration hooks with a value that `owner` is about to register, and return what they make of it."""
    for hook in hooks.values():
        changed = hook(owner, name, value)
        value = value if changed is None else changed
    return value


def _hooked_module(owner: Module, name: str, module: Module | None) -> Module | None:
    return _after_hooks(GLOBAL.module_registration, owner, name, module)


def _unique(members: Iterable[tuple[str, Any]]) -> Iterator[tuple[str, Any]]:
    """Each member once, under the name it came with first."""
    seen = set()
    for name, member in members:
        if member not in seen:
            seen.add(member)
            yield name, member


def indented(text: str) -> str:
    """All lines but the first moved to the right, empty ones emptied."""
    first, *others = text.split("\n")
    return "\n".join([first, *("  " + line if line.strip() else "" for line in others)])


def parse_to(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any, bool, Any]:
    """device, dtype, non_blocking and memory format of `to(device)`, `to(dtype)`, `to(tensor)`, …"""
    given = dict(kwargs)
    device, dtype = given.pop("device", None), given.pop("dtype", None)
    tensor, non_blocking = given.pop("tensor", None), given.pop("non_blocking", False)
    memory_format = given.pop("memory_format", None)
    given.pop("copy", None)
    if given:
        raise TypeError(f"to() got an unexpected keyword argument '{next(iter(given))}'")
    for value in (*args, dtype):
        if value.__class__ is type:
            value = PYTHON_TYPES.get(value, value)
        if isinstance(value, Tensor):
            tensor = value
        elif isinstance(value, DType):
            dtype = value
        elif isinstance(value, bool):
            non_blocking = value
        elif isinstance(value, str | Device | int):
            device = value
        elif value is not None:
            raise TypeError(f"to() received an invalid combination of arguments - got ({typename(value)})")
    if tensor is not None:
        device, dtype = tensor.device, tensor.dtype
    if device is not None and not isinstance(device, Device):
        device = Device(device)
    return device, dtype, non_blocking, memory_format
