"""Calling a module that has hooks: pre-hooks, forward, hooks, and the nodes that run its backward hooks."""

from __future__ import annotations

import functools
import warnings
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ..._autograd.grad_mode import is_grad_enabled
from ..._tensor import Tensor
from ...autograd import Function
from ...utils.hooks import RemovableHandle, add_hook

if TYPE_CHECKING:
    from ..._autograd.node import Node
    from ...autograd.function import FunctionCtx
    from .module import Module

__all__ = [
    "register_module_backward_hook",
    "register_module_buffer_registration_hook",
    "register_module_forward_hook",
    "register_module_forward_pre_hook",
    "register_module_full_backward_hook",
    "register_module_full_backward_pre_hook",
    "register_module_module_registration_hook",
    "register_module_parameter_registration_hook",
]

Hook = Callable[..., Any]
Hooks = OrderedDict[int, Hook]


class GlobalHooks:
    """Hooks of all modules. The dictionaries are never replaced: `Module.__call__` refers to them directly."""

    __slots__ = (
        "backward", "backward_pre", "buffer_registration", "forward", "forward_always", "forward_pre", "forward_with_kwargs",
        "full_backward", "module_registration", "parameter_registration",
    )  # fmt: skip

    def __init__(self) -> None:
        self.forward_pre: Hooks = OrderedDict()
        self.forward: Hooks = OrderedDict()
        self.forward_with_kwargs: dict[int, bool] = {}
        self.forward_always: dict[int, bool] = {}
        self.backward_pre: Hooks = OrderedDict()
        self.backward: Hooks = OrderedDict()
        self.full_backward: bool | None = None
        self.buffer_registration: Hooks = OrderedDict()
        self.module_registration: Hooks = OrderedDict()
        self.parameter_registration: Hooks = OrderedDict()


GLOBAL = GlobalHooks()


def register_module_buffer_registration_hook(hook: Hook) -> RemovableHandle:
    """Run `hook(module, name, buffer)` whenever a module registers a buffer; it may return another one."""
    return add_hook(GLOBAL.buffer_registration, hook)


def register_module_module_registration_hook(hook: Hook) -> RemovableHandle:
    """Run `hook(module, name, submodule)` whenever a module registers a child; it may return another one."""
    return add_hook(GLOBAL.module_registration, hook)


def register_module_parameter_registration_hook(hook: Hook) -> RemovableHandle:
    """Run `hook(module, name, param)` whenever a module registers a parameter; it may return another one."""
    return add_hook(GLOBAL.parameter_registration, hook)


def register_module_forward_pre_hook(hook: Hook) -> RemovableHandle:
    """Run `hook(module, args)` before the forward of every module."""
    return add_hook(GLOBAL.forward_pre, hook)


def register_module_forward_hook(hook: Hook, *, with_kwargs: bool = False, always_call: bool = False) -> RemovableHandle:
    """Run `hook(module, args, output)` after the forward of every module."""
    marks = [(GLOBAL.forward_with_kwargs, with_kwargs), (GLOBAL.forward_always, always_call)]
    return add_hook(GLOBAL.forward, hook, marks=marks)


def register_module_backward_hook(hook: Hook) -> RemovableHandle:
    """Run `hook(module, grad_input, grad_output)` in the backward of every module; deprecated for the full variant."""
    return _add_backward(hook, full=False)


def register_module_full_backward_pre_hook(hook: Hook) -> RemovableHandle:
    """Run `hook(module, grad_output)` before the backward of every module."""
    return add_hook(GLOBAL.backward_pre, hook)


def register_module_full_backward_hook(hook: Hook) -> RemovableHandle:
    """Run `hook(module, grad_input, grad_output)` when a module's gradients with respect to its inputs are known."""
    return _add_backward(hook, full=True)


def _add_backward(hook: Hook, *, full: bool) -> RemovableHandle:
    if GLOBAL.full_backward is (not full):
        raise RuntimeError(
            "Cannot use both regular backward hooks and full backward hooks as a global Module hook. Please use only one of them."
        )
    GLOBAL.full_backward = full
    return add_hook(GLOBAL.backward, hook)


# --- one call -------------------------------------------------------------------------------------------------------


def call_with_hooks(module: Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run a module's forward with everything registered around it."""
    called: set[int] = set()
    try:
        return _call(module, args, kwargs, called)
    except Exception:
        if GLOBAL.forward_always or module._forward_hooks_always_called:
            _run_always_called(module, args, kwargs, called)
        raise


def _call(module: Module, args: tuple[Any, ...], kwargs: dict[str, Any], called: set[int]) -> Any:
    full, plain = _backward_hooks(module)
    pre = [*GLOBAL.backward_pre.values(), *module._backward_pre_hooks.values()]
    args, kwargs = _run_pre_hooks(module, args, kwargs)
    watcher = None
    if full or pre:
        watcher = BackwardHook(module, full, pre)
        args = watcher.setup_input_hook(args)
    result = module.forward(*args, **kwargs)
    result = _run_forward_hooks(module, args, kwargs, result, called)
    if watcher is not None:
        if not isinstance(result, Tensor | tuple):
            warnings.warn(
                "For backward hooks to be called, module output should be a Tensor or a tuple of Tensors but received "
                f"{type(result)}",
                stacklevel=3,
            )
        result = watcher.setup_output_hook(result)
    if plain:
        _attach_plain(module, plain, args, result)
    return result


def _backward_hooks(module: Module) -> tuple[list[Hook], list[Hook]]:
    """Full backward hooks, and those of the deprecated kind."""
    full: list[Hook] = []
    plain: list[Hook] = []
    for hooks, is_full in ((GLOBAL.backward, GLOBAL.full_backward), (module._backward_hooks, module._is_full_backward_hook)):
        (full if is_full else plain).extend(hooks.values())
    return full, plain


def _run_pre_hooks(module: Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    for hook in list(GLOBAL.forward_pre.values()):
        args = _new_args(hook(module, args), args)
    for key, hook in list(module._forward_pre_hooks.items()):
        if key not in module._forward_pre_hooks_with_kwargs:
            args = _new_args(hook(module, args), args)
            continue
        result = hook(module, args, kwargs)
        if result is not None:
            if not (isinstance(result, tuple) and len(result) == 2):
                raise RuntimeError(f"forward pre-hook must return None or a tuple of (new_args, new_kwargs), but got {result}.")
            args, kwargs = result
    return args, kwargs


def _new_args(result: Any, args: tuple[Any, ...]) -> tuple[Any, ...]:
    if result is None:
        return args
    return result if isinstance(result, tuple) else (result,)


def _forward_hooks(module: Module) -> list[tuple[int, Hook, bool]]:
    """Id, hook, and whether it takes the keyword arguments."""
    found = [(i, h, i in GLOBAL.forward_with_kwargs) for i, h in GLOBAL.forward.items()]
    return found + [(i, h, i in module._forward_hooks_with_kwargs) for i, h in module._forward_hooks.items()]


def _run_forward_hooks(module: Module, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any, called: set[int]) -> Any:
    for key, hook, with_kwargs in _forward_hooks(module):
        called.add(key)
        changed = hook(module, args, kwargs, result) if with_kwargs else hook(module, args, result)
        if changed is not None:
            result = changed
    return result


def _run_always_called(module: Module, args: tuple[Any, ...], kwargs: dict[str, Any], called: set[int]) -> None:
    """After an error, the hooks that asked to be called in any case."""
    for key, hook, with_kwargs in _forward_hooks(module):
        if key in called or not (key in GLOBAL.forward_always or key in module._forward_hooks_always_called):
            continue
        scope = "global module" if key in GLOBAL.forward_always else "module"
        try:
            _ = hook(module, args, kwargs, None) if with_kwargs else hook(module, args, None)
        except Exception as error:
            warnings.warn(
                f"{scope} forward hook with ``always_call=True`` raised an exception that was silenced as another error was "
                f"raised in forward: {error}",
                stacklevel=3,
            )


def _attach_plain(module: Module, hooks: list[Hook], args: tuple[Any, ...], result: Any) -> None:
    found = result
    while not isinstance(found, Tensor):
        if isinstance(found, dict):
            found = next((v for v in found.values() if isinstance(v, Tensor)), None)
        else:
            found = found[0]
        if found is None:
            return
    node = found.grad_fn
    if node is not None:
        for hook in hooks:
            node.register_hook(functools.partial(hook, module))
        _warn_plain(args, result, node)


def _warn_plain(args: tuple[Any, ...], result: Any, node: Node) -> None:
    """The deprecated kind of hook sees the last node only: say when that is not the whole module."""
    found = _unseen(args, (result,) if isinstance(result, Tensor) else result, node)
    if found is not None:
        what, missing, advice = found
        warnings.warn(
            f"Using {what} is deprecated and will be removed in future versions. This hook will be missing some {missing}."
            + (" Please use register_full_backward_hook to get the documented behavior." if advice else ""),
            FutureWarning,
            stacklevel=5,
        )


def _unseen(args: tuple[Any, ...], results: Sequence[Tensor], node: Node) -> tuple[str, str, bool] | None:
    """What a hook of the last node does not see of a call: which calls these are, the gradients, and whether a full hook would."""
    if not isinstance(results, tuple) or not all(isinstance(r, Tensor) for r in results):
        return (
            "non-full backward hooks on a Module that does not return a single Tensor or a tuple of Tensors",
            "of the grad_output",
            True,
        )
    if not all(isinstance(a, Tensor) for a in args):
        return (
            "non-full backward hooks on a Module that does not take as input a single Tensor or a tuple of Tensors",
            "of the grad_input",
            True,
        )
    nodes = {r.grad_fn for r in results} - {None}
    if node not in nodes and len(nodes) <= 1:
        return "a non-full backward hook when outputs are nested in python data structure", "grad_output", False
    if len(nodes) > 1:
        return "a non-full backward hook when outputs are generated by different autograd Nodes", "grad_output", True
    if {a.grad_fn for a in args} - {None} != {n[0] for n in node.next_functions}:
        return "a non-full backward hook when the forward contains multiple autograd Nodes", "grad_input", True
    return None


# --- full backward hooks --------------------------------------------------------------------------------------------


NO_INPUTS = (
    "Full backward hook is firing when gradients are computed with respect to module outputs since no inputs require gradients. See "
    "https://docs.pytorch.org/docs/main/generated/torch.nn.Module.html#torch.nn.Module.register_full_backward_hook for more details."
)


class BackwardHook:
    """Watches the gradients at both ends of one call of a module.

    Identity nodes are put around the module's inputs and outputs; the gradients that reach them are the module's
    `grad_output` and `grad_input`.
    """

    def __init__(self, module: Module, hooks: list[Hook], pre_hooks: list[Hook]) -> None:
        self.module = module
        self.hooks = hooks
        self.pre_hooks = pre_hooks
        self.grad_outputs: tuple[Any, ...] | None = None
        self.input_positions: list[int] | None = None
        self.input_count = 0
        self.output_positions: list[int] = []
        self.output_count = 0

    def setup_input_hook(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        made, node, positions = _through_identity(args)
        self.input_count = len(args)
        if node is not None:
            self.input_positions = positions
            node.register_hook(self._on_grad_input)
        return made

    def setup_output_hook(self, result: Any) -> Any:
        single = isinstance(result, Tensor)
        if not single and not isinstance(result, tuple):
            return result
        outputs = (result,) if single else result
        made, node, positions = _through_identity(outputs)
        if node is not None:
            self.output_positions, self.output_count = positions, len(outputs)
            node.register_prehook(self._on_grad_output)
        if single:
            return made[0]
        return type(result)(*made) if hasattr(result, "_fields") else made

    def _on_grad_output(self, grads: tuple[Any, ...]) -> tuple[Any, ...] | None:
        outputs = _spread(grads, self.output_positions, self.output_count)
        for hook in self.pre_hooks:
            changed = hook(self.module, outputs)
            if changed is None:
                continue
            changed = changed if isinstance(changed, tuple) else (changed,)
            if len(changed) != len(outputs):
                raise RuntimeError(
                    f"Backward pre hook returned an invalid number of grad_output, got {len(changed)}, but expected {len(outputs)}"
                )
            outputs = changed
        self.grad_outputs = outputs
        if self.input_positions is None:
            # no input requires grad: the hook runs now, without gradients of inputs
            if self.hooks:
                warnings.warn(NO_INPUTS, stacklevel=5)
            self._run((None,) * self.input_count)
        return tuple(outputs[i] for i in self.output_positions)

    def _on_grad_input(self, grad_inputs: tuple[Any, ...], _grad_outputs: tuple[Any, ...]) -> tuple[Any, ...] | None:
        if self.grad_outputs is None:
            return None  # torch: the gradient did not come through the module's output, as in a second backward
        assert self.input_positions is not None
        inputs = self._run(_spread(grad_inputs, self.input_positions, self.input_count))
        self.grad_outputs = None
        return tuple(inputs[i] for i in self.input_positions)

    def _run(self, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        for hook in self.hooks:
            changed = hook(self.module, inputs, self.grad_outputs)
            if changed is None:
                continue
            if self.input_positions is None:
                if isinstance(changed, tuple) and all(g is None for g in changed):
                    continue
                raise RuntimeError(
                    "Backward hook for Modules where no input requires gradient should always return None or None for all gradients."
                )
            changed = changed if isinstance(changed, tuple) else (changed,)
            if len(changed) != len(inputs):
                raise RuntimeError(
                    f"Backward hook returned an invalid number of grad_input, got {len(changed)}, but expected {len(inputs)}"
                )
            inputs = changed
        return inputs


def _spread(grads: tuple[Any, ...], positions: list[int], count: int) -> tuple[Any, ...]:
    full: list[Any] = [None] * count
    for i, g in zip(positions, grads, strict=True):
        full[i] = g
    return tuple(full)


def _through_identity(values: tuple[Any, ...]) -> tuple[tuple[Any, ...], Any, list[int]]:
    """The values with their tensors passed through one identity node, that node, and the tensors' positions."""
    positions = [i for i, v in enumerate(values) if isinstance(v, Tensor)]
    if not positions or not is_grad_enabled() or not any(values[i].requires_grad for i in positions):
        return values, None, []
    made = _identity().apply(*[values[i] for i in positions])
    made = (made,) if isinstance(made, Tensor) else made
    nodes = [t.grad_fn for t in made if t.grad_fn is not None]
    replaced = list(values)
    for i, t in zip(positions, made, strict=True):
        replaced[i] = t
    return tuple(replaced), nodes[0] if nodes else None, positions


@functools.cache
def _identity() -> type[Function]:
    class BackwardHookFunction(Function):
        @staticmethod
        def forward(ctx: FunctionCtx, *tensors: Tensor) -> tuple[Tensor | None, ...]:
            ctx.mark_non_differentiable(*[t for t in tensors if not t.requires_grad])
            return tensors

        @staticmethod
        def backward(ctx: FunctionCtx, *grads: Any) -> tuple[Tensor | None, ...]:
            return grads

    return BackwardHookFunction
