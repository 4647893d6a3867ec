"""Calls of a module with other parameters and buffers than its own."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator
from typing import Any

from ..._tensor import Tensor
from ..modules.module import Module

__all__ = ["functional_call"]

_ABSENT: Any = object()


def _swap(module: Module, path: str, value: Tensor | None) -> Tensor | None:
    """Put a tensor in the place of another one, which is returned; it becomes neither a parameter nor a buffer by that."""
    owner_path, _, name = path.rpartition(".")
    owner = module.get_submodule(owner_path)
    if value is not _ABSENT and value is not None and not isinstance(value, Tensor):
        raise TypeError(f"{value} is not an instance of torch.Tensor")
    for members in (owner._parameters, owner._buffers):
        if name in members:
            before = members[name]
            members[name] = value
            return before
    before = getattr(owner, name, _ABSENT)
    if before is not _ABSENT and before is not None and not isinstance(before, Tensor):
        raise TypeError(f"attribute `{name}`: {before} is not an instance of torch.Tensor")
    if value is not _ABSENT:
        setattr(owner, name, value)
    elif before is not _ABSENT:
        delattr(owner, name)
    return before


def _named_tensors(module: Module) -> dict[str, Any]:
    return {**dict(module.named_parameters(remove_duplicate=False)), **dict(module.named_buffers(remove_duplicate=False))}


def _with_tied(module: Module, given: dict[str, Any]) -> dict[str, Any]:
    """The given tensors under all names that stand for the same tensor of the module."""
    names: dict[int, list[str]] = {}
    own = _named_tensors(module)
    for name, tensor in own.items():
        names.setdefault(id(tensor), []).append(name)
    result = dict(given)
    for name in given:
        tied = names[id(own[name])] if name in own else [name]
        values = {id(given[other]) for other in tied if other in given}
        if len(values) > 1:
            raise ValueError(
                f"functional_call got multiple values for keys {sorted(tied)}, which are tied. Consider using tie_weights=False"
            )
        result.update(dict.fromkeys(tied, given[name]))
    return result


def _check_keys(module: Module, given: dict[str, Any]) -> None:
    own = _named_tensors(module)
    told = [
        f"{kind} key(s): {', '.join(map(repr, keys))}."
        for kind, keys in (("Unexpected", sorted(set(given) - set(own))), ("Missing", sorted(set(own) - set(given))))
        if keys
    ]
    if told:
        lines = "\n\t".join(told)
        raise RuntimeError(f"Error(s) in reparametrizing for {module._get_name()}:\n\t{lines}")


@contextlib.contextmanager
def _reparametrize_module(
    module: Module, parameters_and_buffers: dict[str, Any], tie_weights: bool = False, strict: bool = False
) -> Iterator[None]:
    """Give a module other tensors inside; those that it replaced meanwhile are in the dictionary afterwards."""
    given = _with_tied(module, parameters_and_buffers) if tie_weights else parameters_and_buffers
    if strict:
        _check_keys(module, given)
    before: dict[str, Any] = {}
    try:
        for name, value in given.items():
            before[name] = _swap(module, name, value)
        yield
    finally:
        after = {name: _swap(module, name, value) for name, value in before.items()}
        parameters_and_buffers.update({name: after[name] for name in parameters_and_buffers if name in after})


def functional_call(
    module: Module, parameters_and_buffers: dict[str, Any], args: Any = None, kwargs: dict[str, Any] | None = None, *,
    tie_weights: bool = True, strict: bool = False,
) -> Any:  # fmt: skip
    """Call a module with these tensors in the place of its own (deprecated by torch in favor of `torch.func`)."""
    warnings.warn(
        "`torch.nn.utils.stateless.functional_call` is deprecated as of PyTorch 2.0 and will be removed in a future version of "
        "PyTorch. Please use `torch.func.functional_call` instead which is a drop-in replacement.",
        FutureWarning,
        stacklevel=2,
    )
    arguments = () if args is None else args if isinstance(args, tuple) else (args,)
    with _reparametrize_module(module, parameters_and_buffers, tie_weights=tie_weights, strict=strict):
        return module(*arguments, **(kwargs or {}))
