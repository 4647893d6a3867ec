"""`swap_in_optimizer_params_and_state`: an optimiser with other parameters and other state, for a while."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from .._tensor import Tensor
from .optimizer import Optimizer

__all__ = ["swap_in_optimizer_params_and_state"]

NAME = "swap_in_optimizer_params_and_state"


@contextmanager
def swap_in_optimizer_params_and_state(
    optimizer: Optimizer, swapin_parameters: dict[str, Tensor], swapin_optim_state: dict[str, Any]
) -> Iterator[None]:
    """Give an optimiser these parameters, in the order of its own, and this state dict; at the end it has its own again.

    Tensors of the state dict are changed in place by steps; what else a step makes is dropped.
    """
    states, groups = _checked_parts(optimizer, swapin_optim_state)
    chosen = _parameters_of_groups(swapin_parameters, groups)
    own_state, own_groups = optimizer.state, [dict(group) for group in optimizer.param_groups]
    try:
        swapped: defaultdict[Any, Any] = defaultdict(dict)
        for group, other, params in zip(optimizer.param_groups, groups, chosen, strict=True):
            group.update({**other, "params": params})
            for param, number in zip(params, other["params"], strict=True):
                swapped[param] = dict(states.get(number, {}))
        optimizer.state = swapped
        yield
    finally:
        for group, own in zip(optimizer.param_groups, own_groups, strict=True):
            group.clear()
            group.update(own)
        optimizer.state = own_state


def _checked_parts(optimizer: Optimizer, given: object) -> tuple[dict[Any, Any], list[dict[str, Any]]]:
    """State and groups of a state dict that fits the optimiser."""
    if not optimizer.state:
        raise RuntimeError(f"{NAME} requires initialized optimizer state.")
    if not isinstance(given, dict):
        raise RuntimeError(f"{NAME} requires a DCP-style optimizer state_dict.")
    states: Any = given.get("state")
    groups: Any = given.get("param_groups")
    _check_states(states)
    if not isinstance(groups, list):
        raise RuntimeError(
            f"{NAME} requires swapin_optim_state['param_groups'] to be a list of param-group dicts, got {type(groups).__name__}."
        )
    if len(optimizer.param_groups) != len(groups):
        raise RuntimeError("swapin_optim_state has a different number of parameter groups than the live optimizer.")
    for i, (own, other) in enumerate(zip(optimizer.param_groups, groups, strict=True)):
        _check_group(i, own, other)
    known = {number for group in groups for number in group["params"]}
    extra = [key for key in states if key not in known]
    if extra:
        raise RuntimeError(
            f"{NAME} requires swapin_optim_state['state'] to be keyed only by packed parameter ids from "
            f"param_groups[*]['params']; got extra keys {extra!r}."
        )
    return states, groups


def _check_states(states: object) -> None:
    if not isinstance(states, dict):
        raise RuntimeError(
            f"{NAME} requires swapin_optim_state['state'] to be a dict mapping packed parameter ids to per-param state dicts, "
            f"got {type(states).__name__}."
        )
    if any(isinstance(key, Tensor) for key in states):
        raise RuntimeError(f"{NAME} requires optimizer.state_dict()-style state keyed by packed parameter ids.")
    if any(isinstance(key, int) and not isinstance(state, dict) for key, state in states.items()):
        raise RuntimeError(f"{NAME} requires per-parameter optimizer state entries to be dictionaries.")


def _check_group(i: int, own: dict[str, Any], other: object) -> None:
    if not isinstance(other, dict):
        raise RuntimeError(f"{NAME} requires each optimizer param group to be a dictionary.")
    numbers = other.get("params")
    if not isinstance(numbers, list) or not all(isinstance(number, int) for number in numbers):
        raise RuntimeError(
            f"{NAME} requires optimizer.state_dict()-style param_groups[*]['params'] entries keyed by packed parameter ids."
        )
    if len(own["params"]) != len(numbers):
        raise RuntimeError(
            f"swapin_optim_state param group {i} has a different number of params than the live optimizer param group."
        )
    theirs, ours = [k for k in other if k not in own], [k for k in own if k not in other]
    if theirs or ours:
        raise RuntimeError(
            f"{NAME} requires optimizer.state_dict()-style param group keys to exactly match the live optimizer group keys for "
            f"group {i}. Keys only in swap-in: {theirs}. Keys only in live: {ours}."
        )


def _parameters_of_groups(parameters: dict[str, Tensor], groups: list[dict[str, Any]]) -> list[list[Tensor]]:
    left = list(parameters.values())
    chosen = []
    for group in groups:
        count = len(group["params"])
        if count > len(left):
            raise RuntimeError(f"{NAME} requires the explicit parameter state to match optimizer.param_groups ordering.")
        chosen.append(left[:count])
        left = left[count:]
    return chosen
