"""torch.cuda.random: there are no generators on GPUs. Seeding does nothing, asking for one raises."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._absent_device import absent_device

_NAMES = "get_rng_state get_rng_state_all initial_seed manual_seed manual_seed_all seed seed_all set_rng_state set_rng_state_all"
__all__ = _NAMES.split()

_known = absent_device("CUDA", "Torch not compiled with CUDA enabled")
globals().update({name: _known[name] for name in _NAMES.split()})

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...
