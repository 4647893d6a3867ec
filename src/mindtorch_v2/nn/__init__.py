"""`torch.nn`: modules and functions of neural networks."""

from __future__ import annotations

from . import attention, functional, init, modules, parameter, utils
from .modules import *  # noqa: F403 - the names are `modules.__all__`
from .parameter import Buffer, Parameter

__all__ = ["Buffer", "Parameter", "attention", "functional", "init", "parameter", "utils"]
__all__ += modules.__all__
