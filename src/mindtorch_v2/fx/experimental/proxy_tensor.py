"""torch.fx.experimental.proxy_tensor: libraries ask whether operators are being traced."""

from __future__ import annotations

from ..._refusals import refused

globals().update(refused(__name__, "operators are not traced; torch.fx.symbolic_trace traces modules", functions="make_fx"))


def get_proxy_mode() -> None:
    """None: nothing is traced."""
