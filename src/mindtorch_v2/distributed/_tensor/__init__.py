"""torch.distributed._tensor: the older name of `torch.distributed.tensor`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import tensor as _tensor

globals().update({name: value for name, value in vars(_tensor).items() if not name.startswith("_")})

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...
