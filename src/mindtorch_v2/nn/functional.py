"""`torch.nn.functional`: the operators of neural networks with torch's signatures."""

from __future__ import annotations

from .._ops.lookup import aten
from .._tensor import Tensor


def relu(input: Tensor, inplace: bool = False) -> Tensor:  # noqa: A002
    return aten.relu_(input) if inplace else aten.relu(input)  # type: ignore[no-any-return]
