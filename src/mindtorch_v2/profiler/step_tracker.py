"""`KinetoStepTracker`: one count of steps for several who make them."""

from __future__ import annotations

import warnings
from collections import defaultdict

__all__ = ["KinetoStepTracker"]


class KinetoStepTracker:
    """Counts steps for several who make them: the global step is the largest count."""

    _current_step = 0
    _step_dict: dict[str, int] = defaultdict(int)

    @classmethod
    def init_step_count(cls, requester: str) -> None:
        cls._step_dict[requester] = cls._current_step

    @classmethod
    def erase_step_count(cls, requester: str) -> bool:
        return cls._step_dict.pop(requester, None) is not None

    @classmethod
    def increment_step(cls, requester: str) -> int:
        """Count one more step of a requester; returns the global step."""
        cls._step_dict[requester] = cls._step_dict.get(requester, cls._current_step) + 1
        latest = max(cls._step_dict.values())
        if latest > cls._current_step + 1:
            warnings.warn(
                f"Profiler step count has increased more than 1 - current_step = {cls._current_step} step dict =  {cls._step_dict}",
                stacklevel=2,
            )
        cls._current_step = max(cls._current_step, latest)
        return cls._current_step

    @classmethod
    def current_step(cls) -> int:
        return cls._current_step
