"""torch._subclasses.fake_tensor: libraries ask whether a tensor is one of these."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._refusals import refused

globals().update(
    refused(
        __name__, "nothing is traced here; torch.empty(device='meta') has a shape and no data", classes="FakeTensor FakeTensorMode"
    )
)


def is_fake(x: object) -> bool:
    """False."""
    return False


if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...
