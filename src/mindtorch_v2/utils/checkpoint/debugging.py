"""Which operators ran in the first computation of a checkpoint and in the second, for an error that shows both."""

from __future__ import annotations

import traceback
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .._python_dispatch import TorchDispatchMode
from .recomputation import CheckpointError

if TYPE_CHECKING:
    from ..._op_packet import OpOverload

__all__ = ["OperatorLog", "explained"]


class OperatorLog(TorchDispatchMode):
    """Notes each operator with its result, and the places in the program that led to it."""

    def __init__(self) -> None:
        super().__init__()
        self.operators: list[str] = []
        self.stacks: list[list[str]] = []

    def __torch_dispatch__(
        self, func: OpOverload, types: Sequence[type], args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        given = ", ".join([*map(_short, args), *[f"{key}={_short(value)}" for key, value in (kwargs or {}).items()]])
        self.operators.append(f"{_short(result)} = torch.ops.{func}({given})")
        frames = traceback.extract_stack()[:-1]
        self.stacks.append([f"{f.filename}:{f.lineno}:{f.name}" for f in reversed(frames) if "<mindtorch_v2 " not in f.filename])
        return result

    def text(self, title: str) -> str:
        """The operators, each with its stack, innermost place first."""
        blocks = [
            "\n".join([f"{operator}   ({i} of {len(self.operators)} in {title})", *stack])
            for i, (operator, stack) in enumerate(zip(self.operators, self.stacks, strict=True), 1)
        ]
        return "\n\n".join(blocks)


def _short(value: object) -> str:
    if hasattr(value, "dtype") and hasattr(value, "shape"):
        return f"{str(value.dtype).removeprefix('torch.')}{list(value.shape)}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_short, value))}]"
    return repr(value)


def explained(error: CheckpointError, first: OperatorLog, again: OperatorLog) -> CheckpointError:
    """The error with the operators of both computations."""
    parts = [
        "The checkpointed function computed something else in backward than in forward.",
        f"1. Operators of the forward computation, with their places\n\n{first.text('original')}",
        f"2. Operators of the recomputation, with their places\n\n{again.text('recompute')}",
        "3. Operators in order",
        "Operations executed during the original forward:\n\n" + "\n".join(first.operators),
        "Operations executed during recomputation:\n\n" + "\n".join(again.operators),
        f"4. The error\n\n{error}",
        "You are seeing this error because you passed `debug=True` to checkpoint. Compare the operators of both lists to find the "
        "first that differs, and look up its place above. Calls of detach are the checkpoint's own.",
    ]
    return CheckpointError("\n\n".join(parts))
