"""The functions of `torch.nn.functional` that are written out, by subject."""

from __future__ import annotations

from . import activations, attention, layers, losses, normalizations, products, spatial
from .activations import *  # noqa: F403
from .attention import *  # noqa: F403
from .layers import *  # noqa: F403
from .losses import *  # noqa: F403
from .normalizations import *  # noqa: F403
from .products import *  # noqa: F403
from .spatial import *  # noqa: F403

__all__: list[str] = []
for _module in (activations, attention, layers, losses, normalizations, products, spatial):
    __all__ += _module.__all__
