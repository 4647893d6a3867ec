"""Saving a module's state to a dictionary and loading it back."""

from __future__ import annotations

import warnings
import weakref
from collections import OrderedDict, namedtuple
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from ... import __future__ as switches
from ..._autograd.grad_mode import no_grad
from ..._tensor import Tensor
from ...utils.hooks import RemovableHandle, add_hook
from ..parameter import Parameter, is_lazy
from .conversion import swap_in

if TYPE_CHECKING:
    from .module import Module

__all__ = ["StateDict"]

EXTRA_STATE = "_extra_state"


class _IncompatibleKeys(namedtuple("IncompatibleKeys", ["missing_keys", "unexpected_keys"])):
    __slots__ = ()

    def __repr__(self) -> str:
        return super().__repr__() if any(self) else "<All keys matched successfully>"

    __str__ = __repr__


class _WrappedHook:
    """A hook of a module's state; with a module, which it does not keep alive, it is called with that first.

    Its name and its state are torch's: files of whole modules have such hooks in them.
    """

    def __init__(self, hook: Callable[..., Any], module: StateDict | None = None) -> None:
        self.hook, self.with_module = hook, module is not None
        self.module = weakref.ref(module) if module is not None else None

    def __call__(self, *args: Any) -> Any:
        if self.module is None:
            return self.hook(*args)
        module = self.module()
        if module is None:
            raise RuntimeError("You are trying to call the hook of a dead Module!")
        return self.hook(module, *args)

    def __getstate__(self) -> dict[str, Any]:
        state = {"hook": self.hook, "with_module": self.with_module}
        return state if self.module is None else {**state, "module": self.module()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["hook"], state["module"] if state["with_module"] else None)  # type: ignore[misc]


class StateDict:
    """The part of `Module` that saves and loads."""

    _version: int = 1
    _parameters: dict[str, Any]
    _buffers: dict[str, Any]
    _modules: dict[str, Any]
    _non_persistent_buffers_set: set[str]
    _state_dict_hooks: OrderedDict[int, Callable[..., Any]]
    _state_dict_pre_hooks: OrderedDict[int, Callable[..., Any]]
    _load_state_dict_pre_hooks: OrderedDict[int, Callable[..., Any]]
    _load_state_dict_post_hooks: OrderedDict[int, Callable[..., Any]]

    # --- hooks ------------------------------------------------------------------------------------------------------

    def register_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Run `hook(module, state_dict, prefix, local_metadata)` after this module's state was saved."""
        hook._from_public_api = True  # type: ignore[attr-defined]
        return add_hook(self._state_dict_hooks, hook)

    def _register_state_dict_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """As the public one, and the dictionary is replaced by what the hook returns."""
        if getattr(hook, "_from_public_api", False):
            raise RuntimeError(
                "Cannot register the same function as the state dict post hook that was previously registered via "
                "register_state_dict_post_hook"
            )
        return add_hook(self._state_dict_hooks, hook)

    def register_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Run `hook(module, prefix, keep_vars)` before this module's state is saved."""
        return add_hook(self._state_dict_pre_hooks, hook)

    def _register_load_state_dict_pre_hook(self, hook: Callable[..., Any], with_module: bool = False) -> RemovableHandle:
        return add_hook(self._load_state_dict_pre_hooks, _WrappedHook(hook, self) if with_module else hook)

    def register_load_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Run `hook(module, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)` first."""
        return self._register_load_state_dict_pre_hook(hook, with_module=True)

    def register_load_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Run `hook(module, incompatible_keys)` after loading; it may change the lists of keys in place."""
        return add_hook(self._load_state_dict_post_hooks, hook)

    # --- saving -----------------------------------------------------------------------------------------------------

    def get_extra_state(self) -> Any:
        """State besides parameters and buffers; a module that overrides this overrides `set_extra_state` too."""
        raise RuntimeError(
            "Reached a code path in Module.get_extra_state() that should never be called. Please file an issue at "
            "https://github.com/pytorch/pytorch/issues/new?template=bug-report.yml to report this bug."
        )

    def set_extra_state(self, state: Any) -> None:
        """Take what `get_extra_state` returned."""
        raise RuntimeError(
            "Reached a code path in Module.set_extra_state() that should never be called. Please file an issue at "
            "https://github.com/pytorch/pytorch/issues/new?template=bug-report.yml to report this bug."
        )

    def _has_own(self, name: str) -> bool:
        return getattr(type(self), name) is not getattr(StateDict, name)

    def _persistent_buffers(self) -> dict[str, Any]:
        return {k: v for k, v in self._buffers.items() if k not in self._non_persistent_buffers_set}

    def _save_to_state_dict(self, destination: dict[str, Any], prefix: str, keep_vars: bool) -> None:
        """Save this module's own state, not that of its children."""
        for name, value in {**self._parameters, **self._persistent_buffers()}.items():
            if value is not None:
                destination[prefix + name] = value if keep_vars else value.detach()
        if self._has_own("get_extra_state"):
            destination[prefix + EXTRA_STATE] = self.get_extra_state()

    def state_dict(self, *args: Any, destination: Any = None, prefix: str = "", keep_vars: bool = False) -> Any:
        """Parameters and persistent buffers of this module and all below it, by their dotted names."""
        # torch: still accepted by position, where the keyword has its default
        by_position = dict(zip(("destination", "prefix", "keep_vars"), args, strict=False))
        destination = by_position.get("destination") if destination is None else destination
        prefix = prefix or by_position.get("prefix", "")
        keep_vars = keep_vars or by_position.get("keep_vars", False)
        if destination is None:
            destination = OrderedDict()
            destination._metadata = OrderedDict()
        metadata = {"version": self._version}
        self._save_tree(destination, prefix, keep_vars, metadata)
        return self._after_saving(destination, prefix, metadata)

    def _save_tree(self, destination: dict[str, Any], prefix: str, keep_vars: bool, metadata: dict[str, Any]) -> None:
        """Note the version, run the hooks, and save this module's own state and then its children's."""
        if hasattr(destination, "_metadata"):
            destination._metadata[prefix[:-1]] = metadata
        for announce in self._state_dict_pre_hooks.values():
            announce(self, prefix, keep_vars)
        self._save_to_state_dict(destination, prefix, keep_vars)
        for name, child in self._modules.items():
            if child is not None:
                child.state_dict(destination=destination, prefix=f"{prefix}{name}.", keep_vars=keep_vars)

    def _after_saving(self, saved: dict[str, Any], prefix: str, metadata: dict[str, Any]) -> dict[str, Any]:
        """Run the hooks on a saved state; only private ones may replace it."""
        for hook in self._state_dict_hooks.values():
            replacement = hook(self, saved, prefix, metadata)
            if replacement is None:
                continue
            if getattr(hook, "_from_public_api", False):
                raise RuntimeError("state_dict post-hook must return None")
            saved = replacement
        return saved

    # --- loading ----------------------------------------------------------------------------------------------------

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False) -> _IncompatibleKeys:
        """Copy a saved state into this module, or, with `assign`, take its tensors over."""
        if not isinstance(state_dict, Mapping):
            raise TypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}.")
        missing: list[str] = []
        unexpected: list[str] = []
        errors: list[str] = []
        metadata = getattr(state_dict, "_metadata", None)
        state = OrderedDict(state_dict)
        if metadata is not None:
            state._metadata = metadata  # type: ignore[attr-defined]
        self._load_tree(state, "", metadata, strict, assign, missing, unexpected, errors)
        if strict:
            if unexpected:
                errors.insert(0, f"Unexpected key(s) in state_dict: {_quoted(unexpected)}. ")
            if missing:
                errors.insert(0, f"Missing key(s) in state_dict: {_quoted(missing)}. ")
        if errors:
            told = "\n\t".join(errors)
            raise RuntimeError(f"Error(s) in loading state_dict for {type(self).__name__}:\n\t{told}")
        return _IncompatibleKeys(missing, unexpected)

    def _load_tree(
        self, state: dict[str, Any], prefix: str, metadata: dict[str, Any] | None, strict: bool, assign: bool, missing: list[str], unexpected: list[str],
        errors: list[str],
    ) -> None:  # fmt: skip
        local: dict[str, Any] = {} if metadata is None else metadata.get(prefix[:-1], {})
        if assign:
            local["assign_to_params_buffers"] = assign
        self._load_from_state_dict(state, prefix, local, True, missing, unexpected, errors)
        for name, child in self._modules.items():
            if child is not None:
                below = prefix + name + "."
                part = OrderedDict((k, v) for k, v in state.items() if k.startswith(below))
                child._load_tree(part, below, metadata, strict, assign, missing, unexpected, errors)
        incompatible = _IncompatibleKeys(missing, unexpected)
        for hook in self._load_state_dict_post_hooks.values():
            if hook(self, incompatible) is not None:
                raise AssertionError(
                    "Hooks registered with ``register_load_state_dict_post_hook`` are not expected to return new values, "
                    "if incompatible_keys need to be modified, it should be done inplace."
                )

    def _load_from_state_dict(
        self, state_dict: dict[str, Any], prefix: str, local_metadata: dict[str, Any], strict: bool, missing_keys: list[str],
        unexpected_keys: list[str], error_msgs: list[str],
    ) -> None:  # fmt: skip
        """Load this module's own state, not that of its children; modules override this to read older versions."""
        for hook in self._load_state_dict_pre_hooks.values():
            hook(state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)
        assign = local_metadata.get("assign_to_params_buffers", False)
        own = {k: v for k, v in {**self._parameters, **self._persistent_buffers()}.items() if v is not None}
        for name, target in own.items():
            key = prefix + name
            if key in state_dict:
                self._load_one(name, key, target, state_dict[key], assign, error_msgs)
            elif strict:
                missing_keys.append(key)
        self._load_extra_state(state_dict, prefix, strict, missing_keys, unexpected_keys)
        if strict:
            for key in state_dict:
                if key.startswith(prefix) and key != prefix + EXTRA_STATE:
                    first = key[len(prefix) :].split(".", 1)
                    if first[0] not in (self._modules if len(first) > 1 else own):
                        unexpected_keys.append(key)

    def _load_extra_state(
        self, state_dict: dict[str, Any], prefix: str, strict: bool, missing: list[str], unexpected: list[str]
    ) -> None:
        key = prefix + EXTRA_STATE
        if self._has_own("set_extra_state"):
            if key in state_dict:
                self.set_extra_state(state_dict[key])
            elif strict:
                missing.append(key)
        elif strict and key in state_dict:
            unexpected.append(key)

    def _load_one(self, name: str, key: str, target: Tensor, value: Any, assign: bool, errors: list[str]) -> None:
        if not isinstance(value, Tensor):
            errors.append(
                f'While copying the parameter named "{key}", expected torch.Tensor or Tensor-like object from checkpoint but '
                f"received {type(value)}"
            )
            return
        if is_lazy(target):  # the hooks of a lazy module gave it a shape, unless the value is without one as well
            return
        swap = switches.get_swap_module_params_on_conversion()
        if target.dim() == 0 and value.dim() == 1 and len(value) == 1:
            value = value[0]  # torch: checkpoints from before there were zero-dim tensors
        if value.shape != target.shape:
            errors.append(
                f"size mismatch for {key}: copying a param with shape {value.shape} from checkpoint, the shape in current model "
                f"is {target.shape}."
            )
            return
        if target.is_meta and not value.is_meta and not assign:
            warnings.warn(
                f"for {key}: copying from a non-meta parameter in the checkpoint to a meta parameter in the current model, which is a "
                "no-op. (Did you mean to pass `assign=True` to assign items in the state dictionary to their corresponding key in the "
                "module instead of copying them in place?)",
                stacklevel=2,
            )
            return
        try:
            with no_grad():
                if swap:
                    swap_in(target, value, assign=assign)
                    return
                if not assign:
                    target.copy_(value)
                    return
                if isinstance(target, Parameter):
                    if not isinstance(value, Parameter):
                        value = Parameter(value, requires_grad=target.requires_grad)
                    else:
                        value.requires_grad_(target.requires_grad)
                setattr(self, name, value)
        except Exception as error:
            errors.append(
                f'While {"swapping" if swap else "copying"} the parameter named "{key}", whose dimensions in the model are {target.shape} and whose '
                f"dimensions in the checkpoint are {value.shape}, an exception occurred : {error.args}."
            )


def _quoted(keys: list[str]) -> str:
    return ", ".join(f'"{k}"' for k in keys)


if TYPE_CHECKING:
    _: Module
