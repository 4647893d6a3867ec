"""torch.utils.backend_registration: devices of extensions in C++, which are refused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._refusals import refused

globals().update(
    refused(
        __name__,
        "devices of extensions in C++ cannot be attached; kernels for a device are registered with torch.library",
        functions="generate_methods_for_privateuse1_backend rename_privateuse1_backend",
    )
)

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...
