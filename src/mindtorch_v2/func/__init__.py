"""torch.func: transforms of functions."""

from .._transforms.gradients import grad, grad_and_value, hessian, jacfwd, jacrev, jvp, linearize, vjp
from .._transforms.vmap import vmap
from .axes import rearrange
from .debugging import debug_unwrap, functionalize
from .modules import functional_call, replace_all_batch_norm_modules_, stack_module_state

__all__ = [
    "debug_unwrap",
    "functional_call",
    "functionalize",
    "grad",
    "grad_and_value",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "linearize",
    "rearrange",
    "replace_all_batch_norm_modules_",
    "stack_module_state",
    "vjp",
    "vmap",
]
