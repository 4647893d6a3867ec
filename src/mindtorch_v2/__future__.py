"""torch.__future__: how modules convert their parameters.

By default a parameter keeps its identity and gets the converted elements (`param.data = …`). It can be replaced by a new one instead
(overwrite), or exchanged with the converted tensor (swap), which also holds for `load_state_dict` and goes first.
"""

from __future__ import annotations

__all__ = [
    "get_overwrite_module_params_on_conversion",
    "get_swap_module_params_on_conversion",
    "set_overwrite_module_params_on_conversion",
    "set_swap_module_params_on_conversion",
]

_overwrite_module_params_on_conversion = False
_swap_module_params_on_conversion = False


def set_overwrite_module_params_on_conversion(value: bool) -> None:
    """Have `module.to()` and its kind give modules new parameters."""
    global _overwrite_module_params_on_conversion
    _overwrite_module_params_on_conversion = value


def get_overwrite_module_params_on_conversion() -> bool:
    """Whether modules get new parameters when they are converted."""
    return _overwrite_module_params_on_conversion


def set_swap_module_params_on_conversion(value: bool) -> None:
    """Have `module.to()` and its kind, and `load_state_dict`, use `torch.utils.swap_tensors`."""
    global _swap_module_params_on_conversion
    _swap_module_params_on_conversion = value


def get_swap_module_params_on_conversion() -> bool:
    """Whether modules swap parameters when they are converted or loaded."""
    return _swap_module_params_on_conversion
