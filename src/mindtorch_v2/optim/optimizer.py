"""`Optimizer`: parameter groups, state, hooks, and the scopes that profiles show."""

from __future__ import annotations

import functools
import warnings
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from itertools import chain, product
from typing import Any, Self, TypeAlias, TypeVar

from .. import _record
from .._autograd.grad_mode import enable_grad
from .._autograd.leaf import clear_gradients, constant_gradients
from .._dispatch.tls import state as tls
from .._tensor import Tensor
from ..utils.hooks import RemovableHandle, add_hook
from .state import cast_state, ids_of, pack_groups
from .steps import each, group_by_device_and_dtype

__all__ = ["Optimizer", "register_optimizer_step_post_hook", "register_optimizer_step_pre_hook"]

F = TypeVar("F", bound=Callable[..., Any])
Hooks = OrderedDict[int, Callable[..., Any]]
Args: TypeAlias = tuple[Any, ...]
Kwargs: TypeAlias = dict[str, Any]
StateDict: TypeAlias = dict[str, Any]
ParamsT: TypeAlias = Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]]
GlobalOptimizerPreHook: TypeAlias = Callable[["Optimizer", Args, Kwargs], tuple[Args, Kwargs] | None]
GlobalOptimizerPostHook: TypeAlias = Callable[["Optimizer", Args, Kwargs], None]

_global_optimizer_pre_hooks: Hooks = OrderedDict()
_global_optimizer_post_hooks: Hooks = OrderedDict()
step_observers: list[Callable[[Optimizer], None]] = []  # called after each step, outside of its scope: hooks are part of the step


class _RequiredParameter:
    """Marks a default that each parameter group must give itself."""

    def __repr__(self) -> str:
        return "<required parameter>"


required = _RequiredParameter()


def register_optimizer_step_pre_hook(hook: GlobalOptimizerPreHook) -> RemovableHandle:
    """Call `hook(optimizer, args, kwargs)` before the steps of all optimisers."""
    return add_hook(_global_optimizer_pre_hooks, hook)


def register_optimizer_step_post_hook(hook: GlobalOptimizerPostHook) -> RemovableHandle:
    """Call `hook(optimizer, args, kwargs)` after the steps of all optimisers."""
    return add_hook(_global_optimizer_post_hooks, hook)


def _use_grad_for_differentiable(step: F) -> F:
    """Run a step with recording on exactly when the optimiser is `differentiable`."""

    @functools.wraps(step)
    def run(self: Optimizer, *args: Any, **kwargs: Any) -> Any:
        previous = tls.grad_enabled
        tls.grad_enabled = self.defaults.get("differentiable", False)
        try:
            return step(self, *args, **kwargs)
        finally:
            tls.grad_enabled = previous

    return run  # type: ignore[return-value]


class Optimizer:
    """Base of all optimisers. `params` are tensors, (name, tensor) pairs, or dicts that describe parameter groups."""

    OptimizerPreHook: TypeAlias = Callable[[Self, Args, Kwargs], tuple[Args, Kwargs] | None]  # type: ignore[misc]
    OptimizerPostHook: TypeAlias = Callable[[Self, Args, Kwargs], None]  # type: ignore[misc]

    state: defaultdict[Any, Any]
    param_groups: list[dict[str, Any]]
    _optimizer_step_pre_hooks: Hooks
    _optimizer_step_post_hooks: Hooks
    _optimizer_state_dict_pre_hooks: Hooks
    _optimizer_state_dict_post_hooks: Hooks
    _optimizer_load_state_dict_pre_hooks: Hooks
    _optimizer_load_state_dict_post_hooks: Hooks
    _opt_called: bool  # since a scheduler began to count

    def __init__(self, params: ParamsT, defaults: dict[str, Any]) -> None:
        self.defaults = defaults
        self._make_hooks()
        self._patch_step_function()
        if isinstance(params, Tensor):
            raise TypeError(
                f"params argument given to the optimizer should be an iterable of Tensors or dicts, but got {_type_name(params)}"
            )
        self.state = defaultdict(dict)
        self.param_groups = []
        groups: list[Any] = list(params)
        if not groups:
            raise ValueError("optimizer got an empty parameter list")
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(group)

    def _make_hooks(self) -> None:
        for name in HOOKS:
            if name not in self.__dict__:
                setattr(self, name, OrderedDict())
        self._zero_grad_profile_name = f"Optimizer.zero_grad#{type(self).__name__}.zero_grad"

    def _patch_step_function(self) -> None:
        """Wrap the class's `step` once, so that subclasses get hooks and a scope without asking."""
        cls = type(self)
        if not getattr(cls.step, "hooked", None):
            cls.step = self.profile_hook_step(cls.step)  # type: ignore[method-assign]
            cls.step.hooked = True  # type: ignore[attr-defined]

    @staticmethod
    def profile_hook_step(func: F) -> F:
        """`func`, a method `step`, between its hooks, in the scope `Optimizer.step#SGD.step`."""

        @functools.wraps(func)
        def run(*args: Any, **kwargs: Any) -> Any:
            self = args[0]
            with _record.scope(f"Optimizer.step#{type(self).__name__}.step"):
                for hook in chain(_global_optimizer_pre_hooks.values(), self._optimizer_step_pre_hooks.values()):
                    changed = hook(self, args, kwargs)
                    if changed is not None:
                        if not (isinstance(changed, tuple) and len(changed) == 2):
                            raise RuntimeError(f"{func} must return None or a tuple of (new_args, new_kwargs), but got {changed}.")
                        args, kwargs = changed
                out = func(*args, **kwargs)
                for hook in chain(self._optimizer_step_post_hooks.values(), _global_optimizer_post_hooks.values()):
                    hook(self, args, kwargs)
            for observe in step_observers:
                observe(self)
            return out

        return run  # type: ignore[return-value]

    # --- what users call --------------------------------------------------------------------------------------------

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Change the parameters once; `closure` computes the loss again and returns it."""
        raise NotImplementedError

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drop the gradients, or fill them with zeros."""
        params = chain.from_iterable(group["params"] for group in self.param_groups)
        with _record.scope(self._zero_grad_profile_name):
            if not set_to_none and (self.defaults.get("foreach") or self.defaults.get("fused")):
                grads = list(constant_gradients(params))
                for grad in (grad for grad in grads if grad.is_sparse):
                    grad.zero_()
                for (group,), _ in group_by_device_and_dtype([[grad for grad in grads if not grad.is_sparse]]).values():
                    each("zero_")(group)
            else:
                clear_gradients(params, set_to_none=set_to_none)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add parameters with options of their own."""
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        params = param_group["params"]
        if isinstance(params, Tensor):
            params = [params]
        elif isinstance(params, set):
            raise TypeError(
                "optimizer parameters need to be organized in ordered collections, but the ordering of tensors in sets will change "
                "between runs. Please use a list instead."
            )
        _set_params(param_group, list(params))
        for p in param_group["params"]:
            if not isinstance(p, Tensor):
                raise TypeError(f"optimizer can only optimize Tensors, but one of the params is {_type_name(p)}")
            if not self.defaults.get("differentiable") and not (p.is_leaf or p.retains_grad):
                raise ValueError("can't optimize a non-leaf Tensor")
        missing = {name: default for name, default in self.defaults.items() if name not in param_group}
        for name, default in missing.items():
            if default is required:
                raise ValueError(f"parameter group didn't specify a value of required optimization parameter {name}")
        param_group.update(missing)
        self._check_duplicates(param_group)
        self.param_groups.append(param_group)

    def _check_duplicates(self, param_group: dict[str, Any]) -> None:
        params = param_group["params"]
        if len(params) != len(set(params)):
            warnings.warn(
                "optimizer contains a parameter group with duplicate parameters; in future, this will cause an error; see "
                "github.com/pytorch/pytorch/issues/40967 for more information",
                stacklevel=4,
            )
        if self.param_groups and ("param_names" in param_group) != ("param_names" in self.param_groups[0]):
            with_names = "param_names" in param_group
            raise ValueError(
                "all optimizer param groups should be with/without names. "
                f"cannot add param group {'with' if with_names else 'without'} names to the optimizer"
            )
        known = {p for group in self.param_groups for p in group["params"]}
        if not known.isdisjoint(params):
            raise ValueError("some parameters appear in more than one parameter group")

    # --- saving and loading -----------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """State and groups as plain containers, parameters replaced by numbers."""
        for hook in self._optimizer_state_dict_pre_hooks.values():
            hook(self)
        ids = ids_of(self.param_groups)
        state = {ids[k] if isinstance(k, Tensor) else k: v for k, v in self.state.items()}
        found = {"state": state, "param_groups": pack_groups(self.param_groups, ids)}
        for hook in self._optimizer_state_dict_post_hooks.values():
            replaced = hook(self, found)
            if replaced is not None:
                found = replaced
        return found

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what `state_dict` of an optimiser with the same groups returned."""
        state_dict = state_dict.copy()
        for hook in self._optimizer_load_state_dict_pre_hooks.values():
            replaced = hook(self, state_dict)
            if replaced is not None:
                state_dict = replaced
        groups = self.param_groups
        saved = deepcopy(state_dict["param_groups"])
        if len(groups) != len(saved):
            raise ValueError("loaded state dict has a different number of parameter groups")
        if any(len(g["params"]) != len(s["params"]) for g, s in zip(groups, saved, strict=True)):
            raise ValueError("loaded state dict contains a parameter group that doesn't match the size of optimizer's group")
        params = dict(
            zip(chain.from_iterable(g["params"] for g in saved), chain.from_iterable(g["params"] for g in groups), strict=True)
        )
        state: defaultdict[Any, Any] = defaultdict(dict)
        for key, value in state_dict["state"].items():
            if key in params:
                state[params[key]] = cast_state(params[key], value, key, saved)
            else:
                state[key] = value
        for group, new in zip(groups, saved, strict=True):
            new["params"] = group["params"]
            if "param_names" in group and "param_names" not in new:
                new["param_names"] = group["param_names"]
        self.__setstate__({"state": state, "param_groups": saved})
        for hook in self._optimizer_load_state_dict_post_hooks.values():
            hook(self)

    def __getstate__(self) -> dict[str, Any]:
        return {"defaults": self.defaults, "state": self.state, "param_groups": self.param_groups}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._make_hooks()
        self._patch_step_function()
        self.defaults.setdefault("differentiable", False)

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__} ("]
        for i, group in enumerate(self.param_groups):
            lines += [] if i == 0 else [""]
            lines.append(f"Parameter Group {i}")
            lines += [f"    {key}: {group[key]}" for key in sorted(group) if key != "params"]
        return "\n".join([*lines, ")"])

    # --- hooks ------------------------------------------------------------------------------------------------------

    def register_step_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(optimizer, args, kwargs)` before each step; it may return new (args, kwargs)."""
        return add_hook(self._optimizer_step_pre_hooks, hook)

    def register_step_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(optimizer, args, kwargs)` after each step."""
        return add_hook(self._optimizer_step_post_hooks, hook)

    def register_state_dict_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call `hook(optimizer)` before `state_dict`."""
        return add_hook(self._optimizer_state_dict_pre_hooks, hook, prepend=prepend)

    def register_state_dict_post_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call `hook(optimizer, state_dict)` after `state_dict`; it may return another one."""
        return add_hook(self._optimizer_state_dict_post_hooks, hook, prepend=prepend)

    def register_load_state_dict_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call `hook(optimizer, state_dict)` before loading; it may return another one."""
        return add_hook(self._optimizer_load_state_dict_pre_hooks, hook, prepend=prepend)

    def register_load_state_dict_post_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call `hook(optimizer)` after loading."""
        return add_hook(self._optimizer_load_state_dict_post_hooks, hook, prepend=prepend)

    # --- for subclasses ---------------------------------------------------------------------------------------------

    def _set_group_defaults(self, **defaults: Any) -> None:
        """Give groups that were pickled before an option was there its default."""
        for group, (name, value) in product(self.param_groups, defaults.items()):
            group.setdefault(name, value)

    def _loss_of(self, closure: Callable[[], Any] | None) -> Any:
        if closure is None:
            return None
        with enable_grad():
            return closure()


HOOKS = (
    "_optimizer_step_pre_hooks", "_optimizer_step_post_hooks", "_optimizer_state_dict_pre_hooks", "_optimizer_state_dict_post_hooks",
    "_optimizer_load_state_dict_pre_hooks", "_optimizer_load_state_dict_post_hooks",
)  # fmt: skip


def _type_name(value: object) -> str:
    return f"torch.{value.dtype.scalar_name}Tensor" if isinstance(value, Tensor) else type(value).__name__


def _set_params(param_group: dict[str, Any], given: list[Any]) -> None:
    """Take names apart from parameters that come as (name, tensor) pairs."""
    named = [isinstance(p, tuple) for p in given]
    if any(named):
        if not all(named):
            raise ValueError("all optimizer params should be with/without names. Some param names are missing")
        param_group["params"] = [p for _, p in given]
        param_group["param_names"] = [name for name, _ in given]
    else:
        param_group["params"] = given


def check_fused(fused: bool | None, foreach: bool | None, differentiable: bool) -> None:
    """Refuse combinations of implementations."""
    if fused and differentiable:
        raise RuntimeError("`fused` does not support `differentiable`")
    if fused and foreach:
        raise RuntimeError("`fused` and `foreach` cannot be `True` together.")


def check_fused_params(params: Iterable[Tensor]) -> None:
    """Refuse parameters for which there is no fused step."""
    for p in params:
        if not (p.dtype.is_floating_point and p.device.type in FUSED_DEVICES):
            raise RuntimeError(
                "`fused=True` requires all the params to be floating point Tensors of supported devices: "
                f"{FUSED_DEVICES} but {p.dtype} and {p.device.type}"
            )


FUSED_DEVICES = ["mps", "cuda", "xpu", "hpu", "cpu", "mtia", "privateuseone"]


def check_rate(lr: float | Tensor) -> None:
    """Refuse a learning rate that is negative or has several elements."""
    if isinstance(lr, Tensor) and lr.numel() != 1:
        raise ValueError("Tensor lr must be 1-element")
    check_number("learning rate", lr)


def check_betas(betas: Sequence[float | Tensor]) -> None:
    """Refuse factors of running averages outside of [0, 1)."""
    for i in (0, 1):
        if not 0.0 <= betas[i] < 1.0:
            raise ValueError(f"Invalid beta parameter at index {i}: {betas[i]}")


def check_number(what: str, value: float | Tensor) -> None:
    """Refuse a number that is negative or none."""
    if not value >= 0.0:
        raise ValueError(f"Invalid {what}: {value}")
