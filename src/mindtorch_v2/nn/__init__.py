"""`torch.nn`: modules and functions of neural networks."""

from . import functional
