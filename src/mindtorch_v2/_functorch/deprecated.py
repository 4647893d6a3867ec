"""The transforms under the names of the package `functorch`, each of which says that it moved to `torch.func`."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

from .. import func as _func
from . import make_functional as _modules

__all__ = [
    "combine_state_for_ensemble",
    "functionalize",
    "grad",
    "grad_and_value",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "make_functional",
    "make_functional_with_buffers",
    "vjp",
    "vmap",
]


def _moved(function: Callable[..., Any], new_name: str = "") -> Callable[..., Any]:
    """The same function with a warning that names its new place."""
    name = function.__name__
    text = (
        "We've integrated functorch into PyTorch. As the final step of the integration, "
        f"`functorch.{name}` is deprecated as of PyTorch 2.0 and will be deleted in a future version of PyTorch >= 2.3. Please use "
        f"`{new_name or f'torch.func.{name}'}` instead; see the PyTorch 2.0 release notes and/or the `torch.func` migration guide for more "
        "details https://pytorch.org/docs/main/func.migrating.html"
    )

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        warnings.warn(text, FutureWarning, stacklevel=2)
        return function(*args, **kwargs)

    return wrapper


vmap = _moved(_func.vmap, "torch.vmap")
grad, grad_and_value = _moved(_func.grad), _moved(_func.grad_and_value)
vjp, jvp = _moved(_func.vjp), _moved(_func.jvp)
jacrev, jacfwd, hessian = _moved(_func.jacrev), _moved(_func.jacfwd), _moved(_func.hessian)
functionalize = _moved(_func.functionalize)
make_functional = _moved(_modules.make_functional, "torch.func.functional_call")
make_functional_with_buffers = _moved(_modules.make_functional_with_buffers, "torch.func.functional_call")
combine_state_for_ensemble = _moved(_modules.combine_state_for_ensemble, "torch.func.stack_module_state")
