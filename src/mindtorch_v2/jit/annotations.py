"""torch.jit.annotations: the types that annotations for TorchScript use."""

from __future__ import annotations

from typing import Dict, List, Optional, Tuple, Union  # noqa: UP035 - libraries take these from here

__all__ = ["BroadcastingList1", "BroadcastingList2", "BroadcastingList3", "Dict", "List", "Optional", "Tuple", "Union"]


class _Broadcasting:
    """`BroadcastingList2[int]`: one number or so many; written in annotations alone."""

    def __getitem__(self, types: object) -> None:
        return None


BroadcastingList1 = BroadcastingList2 = BroadcastingList3 = _Broadcasting()
