"""`Module`: the base class of neural network modules."""

from __future__ import annotations

import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any

from ..._autograd.grad_mode import no_grad
from ..._device import device as Device
from ..._dtype import dtype as DType
from ..._tensor import Tensor
from ...utils.hooks import RemovableHandle
from ..parameter import Buffer, Parameter, set_tensor_data
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
from .state import StateDict

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


def typename(value: Any) -> str:
    """The name of a value's type as error messages give it."""
    if isinstance(value, Tensor) and type(value) is Tensor:
        return value.type()  # type: ignore[no-any-return]
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
            _parameters={},
            _buffers={},
            _non_persistent_buffers_set=set(),
            _backward_pre_hooks=OrderedDict(),
            _backward_hooks=OrderedDict(),
            _is_full_backward_hook=None,
            _forward_hooks=OrderedDict(),
            _forward_hooks_with_kwargs=OrderedDict(),
            _forward_hooks_always_called=OrderedDict(),
            _forward_pre_hooks=OrderedDict(),
            _forward_pre_hooks_with_kwargs=OrderedDict(),
            _state_dict_hooks=OrderedDict(),
            _state_dict_pre_hooks=OrderedDict(),
            _load_state_dict_pre_hooks=OrderedDict(),
            _load_state_dict_post_hooks=OrderedDict(),
            _modules={},
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
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(f"cannot assign '{typename(tensor)}' object to buffer '{name}' (torch Tensor or None required)")
        for hook in GLOBAL.buffer_registration.values():
            changed = hook(self, name, tensor)
            tensor = tensor if changed is None else changed
        self._buffers[name] = tensor
        if persistent:
            self._non_persistent_buffers_set.discard(name)
        else:
            self._non_persistent_buffers_set.add(name)

    def _check_name(self, name: Any, kind: str, known: dict[str, Any]) -> None:
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
            for hook in GLOBAL.parameter_registration.values():
                changed = hook(self, name, param)
                param = param if changed is None else changed
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
        for kind in ("_parameters", "_buffers", "_modules"):
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
        persistent = name not in self._non_persistent_buffers_set
        if isinstance(value, Buffer):
            self._forget(name, "_buffers")
            persistent = value.persistent
            self.register_buffer(name, value, persistent)
            return
        for hook in GLOBAL.buffer_registration.values():
            changed = hook(self, name, value)
            value = value if changed is None else changed
        buffers[name] = value

    def _forget(self, name: str, keep: str) -> None:
        """Drop what an attribute name stood for before it is registered anew as something of the kind `keep`."""
        self.__dict__.pop(name, None)
        for kind in ("_parameters", "_buffers", "_modules"):
            if kind != keep and kind in self.__dict__:
                self.__dict__[kind].pop(name, None)
        self._non_persistent_buffers_set.discard(name)

    def __delattr__(self, name: str) -> None:
        if name in self._parameters:
            del self._parameters[name]
        elif name in self._buffers:
            del self._buffers[name]
            self._non_persistent_buffers_set.discard(name)
        elif name in self._modules:
            del self._modules[name]
        else:
            super().__delattr__(name)

    def __dir__(self) -> list[str]:
        names = [*dir(type(self)), *self.__dict__, *self._parameters, *self._modules, *self._buffers]
        # torch: names that cannot be written as an attribute are left out
        return sorted(n for n in names if not n[0].isdigit())

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        for name, kind in (
            ("_forward_pre_hooks", OrderedDict),
            ("_forward_pre_hooks_with_kwargs", OrderedDict),
            ("_forward_hooks_with_kwargs", OrderedDict),
            ("_forward_hooks_always_called", OrderedDict),
            ("_state_dict_hooks", OrderedDict),
            ("_state_dict_pre_hooks", OrderedDict),
            ("_load_state_dict_pre_hooks", OrderedDict),
            ("_load_state_dict_post_hooks", OrderedDict),
            ("_non_persistent_buffers_set", set),
            ("_backward_pre_hooks", OrderedDict),
        ):
            # pickles from before an attribute was there
            self.__dict__.setdefault(name, kind())
        self.__dict__.setdefault("_is_full_backward_hook", None)

    # --- walking ----------------------------------------------------------------------------------------------------

    def named_modules(
        self, memo: set[Module] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Module]]:
        """This module and all below it, with their dotted names."""
        memo = set() if memo is None else memo
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None:
                yield from module.named_modules(memo, prefix + ("." if prefix else "") + name, remove_duplicate)

    def modules(self, remove_duplicate: bool = True) -> Iterator[Module]:
        for _, module in self.named_modules(remove_duplicate=remove_duplicate):
            yield module

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """The modules directly in this one, each once."""
        seen = set()
        for name, module in self._modules.items():
            if module is not None and module not in seen:
                seen.add(module)
                yield name, module

    def children(self) -> Iterator[Module]:
        for _, module in self.named_children():
            yield module

    def _named_members(
        self, get_members_fn: Callable[[Module], Any], prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Any]]:
        seen = set()
        modules = self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate) if recurse else [(prefix, self)]
        for path, module in modules:
            for name, member in get_members_fn(module):
                if member is None or member in seen:
                    continue
                if remove_duplicate:
                    seen.add(member)
                yield path + ("." if path else "") + name, member

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """Parameters of this module, and with `recurse` of all below it, with their dotted names."""
        yield from self._named_members(lambda m: m._parameters.items(), prefix, recurse, remove_duplicate)

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        for _, parameter in self.named_parameters(recurse=recurse):
            yield parameter

    def named_buffers(self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True) -> Iterator[tuple[str, Tensor]]:
        """Buffers of this module, and with `recurse` of all below it, with their dotted names."""
        yield from self._named_members(lambda m: m._buffers.items(), prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        for _, buffer in self.named_buffers(recurse=recurse):
            yield buffer

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
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        if not hasattr(module, name):
            raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
        found = getattr(module, name)
        if not isinstance(found, Parameter):
            raise AttributeError(f"`{name}` is not an nn.Parameter")
        return found

    def get_buffer(self, target: str) -> Tensor:
        """The buffer at a dotted path."""
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        if not hasattr(module, name):
            raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
        if name not in module._buffers:
            raise AttributeError(f"`{name}` is not a buffer")
        return getattr(module, name)  # type: ignore[no-any-return]

    # --- hooks ------------------------------------------------------------------------------------------------------

    def register_forward_pre_hook(self, hook: Any, *, prepend: bool = False, with_kwargs: bool = False) -> RemovableHandle:
        """Run `hook(module, args)`, or `hook(module, args, kwargs)`, before forward; it may return other arguments."""
        handle = RemovableHandle(self._forward_pre_hooks, extra_dict=self._forward_pre_hooks_with_kwargs)
        self._forward_pre_hooks[handle.id] = hook
        if with_kwargs:
            self._forward_pre_hooks_with_kwargs[handle.id] = True
        if prepend:
            self._forward_pre_hooks.move_to_end(handle.id, last=False)
        return handle

    def register_forward_hook(
        self, hook: Any, *, prepend: bool = False, with_kwargs: bool = False, always_call: bool = False
    ) -> RemovableHandle:
        """Run `hook(module, args, output)`, or with the keyword arguments before the output; it may return another output."""
        handle = RemovableHandle(
            self._forward_hooks, extra_dict=[self._forward_hooks_with_kwargs, self._forward_hooks_always_called]
        )
        self._forward_hooks[handle.id] = hook
        if with_kwargs:
            self._forward_hooks_with_kwargs[handle.id] = True
        if always_call:
            self._forward_hooks_always_called[handle.id] = True
        if prepend:
            self._forward_hooks.move_to_end(handle.id, last=False)
        return handle

    def register_full_backward_pre_hook(self, hook: Any, prepend: bool = False) -> RemovableHandle:
        """Run `hook(module, grad_output)` before the module's backward; it may return other gradients."""
        handle = RemovableHandle(self._backward_pre_hooks)
        self._backward_pre_hooks[handle.id] = hook
        if prepend:
            self._backward_pre_hooks.move_to_end(handle.id, last=False)
        return handle

    def register_full_backward_hook(self, hook: Any, prepend: bool = False) -> RemovableHandle:
        """Run `hook(module, grad_input, grad_output)` when the gradients of the inputs are known; it may return others."""
        return self._register_backward(hook, full=True, prepend=prepend)

    def register_backward_hook(self, hook: Any) -> RemovableHandle:
        """The deprecated kind of backward hook, which sees the module's last node only."""
        return self._register_backward(hook, full=False, prepend=False)

    def _register_backward(self, hook: Any, *, full: bool, prepend: bool) -> RemovableHandle:
        if self._is_full_backward_hook is (not full):
            raise RuntimeError(
                "Cannot use both regular backward hooks and full backward hooks on a single Module. Please use only one of them."
            )
        self._is_full_backward_hook = full
        handle = RemovableHandle(self._backward_hooks)
        self._backward_hooks[handle.id] = hook
        if prepend:
            self._backward_hooks.move_to_end(handle.id, last=False)
        return handle

    # --- converting -------------------------------------------------------------------------------------------------

    def apply(self, fn: Callable[[Module], None]) -> Any:
        """Call `fn` with every module below this one, then with this one."""
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Any:
        """Replace the elements of parameters, their gradients and buffers by what `fn` makes of them."""
        if recurse:
            for module in self.children():
                module._apply(fn)
        for param in self._parameters.values():
            if param is None:
                continue
            with no_grad():
                set_tensor_data(param, fn(param))
                if param.grad is not None:
                    set_tensor_data(param.grad, fn(param.grad))
        for name, buffer in self._buffers.items():
            if buffer is not None:
                self._buffers[name] = fn(buffer)
        return self

    def to(self, *args: Any, **kwargs: Any) -> Any:
        """Move parameters and buffers to a device, and floating-point ones to a dtype."""
        device, dtype, non_blocking, memory_format = _parse_to(args, kwargs)
        if dtype is not None and not (dtype.is_floating_point or dtype.is_complex):
            raise TypeError(f"nn.Module.to only accepts floating point or complex dtypes, but got desired dtype={dtype}")

        def convert(t: Tensor) -> Tensor:
            target = dtype if t.dtype.is_floating_point or t.dtype.is_complex else None
            extra = {"memory_format": memory_format} if memory_format is not None and t.dim() in (4, 5) else {}
            return t.to(device=device, dtype=target, non_blocking=non_blocking, **extra)  # type: ignore[no-any-return]

        return self._apply(convert)

    def cpu(self) -> Any:
        """Move parameters and buffers to the CPU."""
        return self._apply(lambda t: t.cpu())

    def type(self, dst_type: Any) -> Any:
        """Convert all parameters and buffers to this dtype."""
        return self._apply(lambda t: t.type(dst_type))

    def _cast(self, name: str) -> Any:
        return self._apply(lambda t: getattr(t, name)() if t.dtype.is_floating_point else t)

    def float(self) -> Any:
        """Convert floating-point parameters and buffers to float32."""
        return self._cast("float")

    def double(self) -> Any:
        """Convert floating-point parameters and buffers to float64."""
        return self._cast("double")

    def half(self) -> Any:
        """Convert floating-point parameters and buffers to float16."""
        return self._cast("half")

    def bfloat16(self) -> Any:
        """Convert floating-point parameters and buffers to bfloat16."""
        return self._cast("bfloat16")

    def to_empty(self, *, device: Any, recurse: bool = True) -> Any:
        """Move parameters and buffers to a device without copying their elements."""
        from ..._ops.lookup import aten

        return self._apply(lambda t: aten.empty_like(t, device=device), recurse=recurse)

    def share_memory(self) -> Any:
        """Move parameters and buffers to shared memory."""
        return self._apply(lambda t: t.share_memory_())

    # --- modes ------------------------------------------------------------------------------------------------------

    def train(self, mode: bool = True) -> Any:
        """Set training mode, which dropout, batch norm and the like ask for, in this module and all below it."""
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self) -> Any:
        """Set evaluation mode."""
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True) -> Any:
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
        for p in self.parameters():
            grad = p.grad
            if grad is None:
                continue
            if set_to_none:
                p.grad = None
            elif grad.grad_fn is not None:
                grad.detach_()
                grad.zero_()
            else:
                grad.requires_grad_(False)
                grad.zero_()

    # --- printing ---------------------------------------------------------------------------------------------------

    def _get_name(self) -> str:
        return type(self).__name__

    def extra_repr(self) -> str:
        """What stands in the parentheses of the module's line; subclasses say."""
        return ""

    def __repr__(self) -> str:
        extra = self.extra_repr()
        lines = extra.split("\n") if extra else []
        children = [f"({name}): {_indented(repr(module))}" for name, module in self._modules.items()]
        if len(lines) == 1 and not children:
            return f"{self._get_name()}({lines[0]})"
        if not lines and not children:
            return f"{self._get_name()}()"
        return f"{self._get_name()}(\n  " + "\n  ".join(lines + children) + "\n)"


def _hooked_module(owner: Module, name: str, module: Any) -> Any:
    for hook in GLOBAL.module_registration.values():
        changed = hook(owner, name, module)
        module = module if changed is None else changed
    return module


def _indented(text: str) -> str:
    """All lines but the first moved to the right."""
    return text.replace("\n", "\n  ")


def _parse_to(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any, bool, Any]:
    """device, dtype, non_blocking and memory format of `to(device)`, `to(dtype)`, `to(tensor)`, …"""
    given = dict(kwargs)
    device, dtype = given.pop("device", None), given.pop("dtype", None)
    tensor, non_blocking = given.pop("tensor", None), given.pop("non_blocking", False)
    memory_format = given.pop("memory_format", None)
    given.pop("copy", None)
    if given:
        raise TypeError(f"to() got an unexpected keyword argument '{next(iter(given))}'")
    for value in args:
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
