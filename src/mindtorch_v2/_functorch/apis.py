"""torch._functorch.apis."""

from .._transforms.gradients import grad, grad_and_value
from .._transforms.vmap import chunk_vmap, vmap

__all__ = ["chunk_vmap", "grad", "grad_and_value", "vmap"]
