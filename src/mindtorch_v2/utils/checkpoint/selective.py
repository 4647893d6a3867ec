"""Checkpoints that keep the results of some operators, and compute the others again."""

from __future__ import annotations

import enum
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any, Self

from ..._op_packet import OpOverload, ops
from ..._tensor import Tensor
from .._python_dispatch import TorchDispatchMode

__all__ = ["SAC_IGNORED_OPS", "CheckpointPolicy", "SelectiveCheckpointContext", "create_selective_checkpoint_contexts"]

SAC_IGNORED_OPS = {ops.aten.detach.default}  # checkpoints call it themselves, not equally often in both computations
_MISMATCH = "The function of a checkpoint must call the same operators whenever it is called, and depend on nothing that changes."


class CheckpointPolicy(enum.Enum):
    """What is done with the result of an operator: it is kept, or computed again."""

    MUST_SAVE = 0
    PREFER_SAVE = 1
    MUST_RECOMPUTE = 2
    PREFER_RECOMPUTE = 3
    MUST_CPU_OFFLOAD = 4
    PREFER_CPU_OFFLOAD = 5


_KEEPING = (CheckpointPolicy.MUST_SAVE, CheckpointPolicy.PREFER_SAVE)
_OFFLOADING = (CheckpointPolicy.MUST_CPU_OFFLOAD, CheckpointPolicy.PREFER_CPU_OFFLOAD)


class SelectiveCheckpointContext:
    """What a policy is told beside the operator and its arguments: the operator's result."""

    def __init__(self, *, is_recompute: bool, op_output: Any = None) -> None:
        self.is_recompute, self.op_output = is_recompute, op_output


class _Mark(enum.Enum):
    """What stands in the place of a result that is not kept, or not any more."""

    RECOMPUTE = 0
    TAKEN = 1


class _Kept:
    """A result outside of the graph, with its version."""

    def __init__(self, result: Any) -> None:
        self.tensors = [t.detach() if isinstance(t, Tensor) else t for t in _parts(result)]
        self.versions = [t._version if isinstance(t, Tensor) else None for t in self.tensors]
        self.is_single = not isinstance(result, list | tuple)
        self.type = type(result)

    def take(self, *, allow_mutation: bool) -> Any:
        now = [t._version if isinstance(t, Tensor) else None for t in self.tensors]
        if now != self.versions and not allow_mutation:
            raise RuntimeError("Tensor cached during selective activation checkpoint has been mutated")
        return self.tensors[0] if self.is_single else self.tensors if self.type is list else tuple(self.tensors)


def _parts(result: object) -> list[Any]:
    return list(result) if isinstance(result, list | tuple) else [result]


Storage = dict[Any, list[_Kept | _Mark]]  # by operator, in the order of its calls


class _CachingTorchDispatchMode(TorchDispatchMode):
    """In forward: keeps results, as the policy says."""

    def __init__(self, policy_fn: Callable[..., Any], storage: Storage) -> None:
        super().__init__()
        self.policy_fn, self.storage = policy_fn, storage

    def __torch_dispatch__(
        self, func: OpOverload, types: Sequence[type], args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        if func in SAC_IGNORED_OPS:
            return result
        policy = self.policy_fn(SelectiveCheckpointContext(is_recompute=False, op_output=result), func, *args, **kwargs)
        if isinstance(policy, bool):
            policy = CheckpointPolicy.MUST_SAVE if policy else CheckpointPolicy.PREFER_RECOMPUTE
        if policy in _OFFLOADING:
            raise NotImplementedError(
                f"{policy}: results are in the CPU's memory already; return MUST_SAVE or PREFER_SAVE to keep them"
            )
        self.storage[func].append(_Kept(result) if policy in _KEEPING else _Mark.RECOMPUTE)
        return result


class _CachedTorchDispatchMode(TorchDispatchMode):
    """In the recomputation: returns what was kept."""

    def __init__(self, policy_fn: Any, storage: Storage, allow_cache_entry_mutation: bool = False) -> None:
        super().__init__()
        self.storage, self.allow_cache_entry_mutation = storage, allow_cache_entry_mutation
        self.calls: dict[Any, int] = defaultdict(int)

    def __enter__(self) -> Self:
        self.calls.clear()
        return super().__enter__()

    def __torch_dispatch__(
        self, func: OpOverload, types: Sequence[type], args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if func in SAC_IGNORED_OPS:
            return func(*args, **(kwargs or {}))
        call = self.calls[func]
        self.calls[func] += 1
        kept = self.storage.get(func)
        if kept is None:
            raise RuntimeError(f"{func} encountered during backward but not found in storage. {_MISMATCH}")
        if call >= len(kept):
            raise RuntimeError(f"{func} invocation index {call} encountered during backward but not found in storage. {_MISMATCH}")
        entry = kept[call]
        if entry is _Mark.TAKEN:
            raise RuntimeError(
                "Trying to backward an extra time. You are only allowed to backward once on any region computed under selective "
                "activation checkpoint."
            )
        if not isinstance(entry, _Kept):
            return func(*args, **(kwargs or {}))
        kept[call] = _Mark.TAKEN
        return entry.take(allow_mutation=self.allow_cache_entry_mutation)


def create_selective_checkpoint_contexts(
    policy_fn_or_list: Any, allow_cache_entry_mutation: bool = False
) -> tuple[TorchDispatchMode, TorchDispatchMode]:
    """The two contexts for `checkpoint(context_fn=…)` that keep results of the operators in a list, or for which a policy says so.

    A policy is called as `policy_fn(ctx, op, *args, **kwargs)`, and returns a `CheckpointPolicy`.
    """
    if isinstance(policy_fn_or_list, list):
        policy = _policy_of_list(policy_fn_or_list)
    elif callable(policy_fn_or_list):
        policy = policy_fn_or_list
    else:
        raise TypeError("policy_fn_or_list must be either a function or a list of ops.")
    storage: Storage = defaultdict(list)
    return _CachingTorchDispatchMode(policy, storage), _CachedTorchDispatchMode(None, storage, allow_cache_entry_mutation)


def _policy_of_list(kept: list[Any]) -> Callable[..., CheckpointPolicy]:
    overload = type(ops.aten.detach.default)
    for op in kept:
        if not isinstance(op, overload):
            is_packet = isinstance(op, type(ops.aten.detach))
            hint = (
                " Please update the OpOverloadPacket to a specific OpOverload, such as torch.ops.aten.mm.default."
                if is_packet
                else ""
            )
            raise ValueError(f"Expected op in `op_list` to be an OpOverload but got: {op} of type {type(op)}.{hint}")

    def policy(ctx: SelectiveCheckpointContext, op: OpOverload, *args: Any, **kwargs: Any) -> CheckpointPolicy:
        return CheckpointPolicy.MUST_SAVE if op in kept else CheckpointPolicy.PREFER_RECOMPUTE

    return policy
