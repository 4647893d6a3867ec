"""torch.utils.benchmark.utils.timer: times of a statement, run often enough to be sure of them."""

from __future__ import annotations

import enum
import sys
import textwrap
import timeit
from collections.abc import Callable
from timeit import default_timer as timer
from typing import Any

import numpy as np

from ...._missing import PACKAGE
from ...._refusals import refuse
from .common import Measurement, TaskSpec, set_torch_threads

__all__ = ["Language", "Timer", "timer"]

Callback = Callable[[int, float], Any]


class Language(enum.Enum):
    """What a statement is written in."""

    PYTHON = 0
    CPP = 1


class Timer:
    """Measures a statement, as `timeit.Timer`, on one thread unless told otherwise, after a warmup.

    `label`, `sub_label`, `description` and `env` say where a measurement stands in the tables of `Compare`.
    """

    _timer_cls: type[timeit.Timer] = timeit.Timer

    def __init__(
        self,
        stmt: str = "pass",
        setup: str = "pass",
        global_setup: str = "",
        timer: Callable[[], float] = timer,
        globals: dict[str, Any] | None = None,
        label: str | None = None,
        sub_label: str | None = None,
        description: str | None = None,
        env: str | None = None,
        num_threads: int = 1,
        language: Language | str = Language.PYTHON,
    ) -> None:
        if not isinstance(stmt, str):
            raise ValueError("Currently only a `str` stmt is supported.")
        _check_language(language, global_setup)
        self._language = Language.PYTHON
        self._globals = {"torch": sys.modules[PACKAGE], **(globals or {})}
        stmt, setup = _dedented(stmt), _dedented(setup)
        self._timer = self._timer_cls(stmt=stmt, setup=setup, timer=timer, globals=self._globals)
        self._task_spec = TaskSpec(stmt, setup, global_setup, label, sub_label, description, env, num_threads)

    def _timeit(self, number: int) -> float:
        return max(self._timer.timeit(number), 1e-9)  # a quotient of it is needed, and clocks may stand still

    def timeit(self, number: int = 1000000) -> Measurement:
        """Execute the statement so often, as one run."""
        with set_torch_threads(self._task_spec.num_threads):
            self._timeit(max(int(number // 100), 2))
            return Measurement(number, [self._timeit(number)], self._task_spec)

    def repeat(self, repeat: int = -1, number: int = -1) -> None:
        """Refused, as in torch: `blocked_autorange` does it better."""
        raise NotImplementedError("See `Timer.blocked_autorange.`")

    def autorange(self, callback: Callback | None = None) -> None:
        """Refused, as in torch: `blocked_autorange` does it better."""
        raise NotImplementedError("See `Timer.blocked_autorange.`")

    def blocked_autorange(self, callback: Callback | None = None, min_run_time: float = 0.2) -> Measurement:
        """Runs for at least so many seconds, each of so many executions that reading the clock does not count."""
        number = self._block_size(min_run_time)
        return self._measured(number, lambda times: True, min_run_time, None, callback)

    def adaptive_autorange(
        self,
        threshold: float = 0.1,
        *,
        min_run_time: float = 0.01,
        max_run_time: float = 10.0,
        callback: Callback | None = None,
    ) -> Measurement:
        """Runs until the interquartile range is below this part of the median, or for `max_run_time` seconds."""
        number = self._block_size(0.05)

        def is_enough(times: list[float]) -> bool:
            return len(times) > 3 and Measurement(number, times, self._task_spec).meets_confidence(threshold)

        return self._measured(number, is_enough, min_run_time, max_run_time, callback)

    def _block_size(self, min_run_time: float) -> int:
        """A power of ten: that many executions take 10,000 times as long as none, or longer than all runs are meant to."""
        with set_torch_threads(self._task_spec.num_threads):
            overhead = float(np.median([self._timeit(0) for _ in range(5)]))
            number = 1
            while number * 10 <= 2**31 - 1:
                taken = self._timeit(number)
                if taken > min_run_time or (overhead / taken <= 1e-4 and taken >= min_run_time / 1000):
                    break
                number *= 10
        return number

    def _measured(
        self,
        number: int,
        is_enough: Callable[[list[float]], bool],
        min_run_time: float,
        max_run_time: float | None,
        callback: Callback | None,
    ) -> Measurement:
        times: list[float] = []
        with set_torch_threads(self._task_spec.num_threads):
            while sum(times) < min_run_time or not is_enough(times):
                times.append(self._timeit(number))
                if callback is not None:
                    callback(number, times[-1])
                if max_run_time is not None and sum(times) > max_run_time:
                    break
        return Measurement(number, times, self._task_spec)

    def collect_callgrind(
        self, number: int = 100, *, repeats: int | None = None, collect_baseline: bool = True, retain_out_file: bool = False
    ) -> Any:
        """Refused: instructions of an interpreter say little about the program that it runs."""
        refuse(
            "torch.utils.benchmark.Timer.collect_callgrind",
            "instructions are not counted; measure times with blocked_autorange, or record a profile with torch.profiler",
        )


def _check_language(language: Language | str, global_setup: str) -> None:
    if language in (Language.CPP, "cpp", "c++"):
        refuse("torch.utils.benchmark.Timer(language='c++')", "the package is pure Python, and compiles no C++")
    if language not in (Language.PYTHON, "py", "python"):
        raise ValueError(f"Invalid language `{language}`.")
    if global_setup:
        raise ValueError(f"global_setup is C++ only, got `{global_setup}`. Most likely this code can simply be moved to `setup`.")


def _dedented(text: str) -> str:
    return textwrap.dedent(text).removeprefix("\n").rstrip()
