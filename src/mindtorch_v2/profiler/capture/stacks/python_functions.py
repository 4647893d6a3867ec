"""Python functions as events: `sys.monitoring` tells of their calls where there is one (3.12), `sys.setprofile` before."""

from __future__ import annotations

import sys
import threading

from ..operators import recorder
from ..operators.recorder import Log
from ..scopes.module_calls import ModuleCalls
from ..source import Source
from . import python_tracer, stack_walk

if sys.version_info >= (3, 12):
    from . import monitoring as mechanism
else:
    from . import python311 as mechanism

__all__ = ["PythonFunctions", "warn_of_gaps"]


class PythonFunctions(Source):
    """Records calls of Python functions, those of modules by what `modules` calls them; without it, somebody else records these.

    It is the last to resume: functions that run begin when all else is on, so that what starting the recording took is in nobody's frame.
    """

    def __init__(self, log: Log, modules: ModuleCalls | None) -> None:
        self._log = log
        self._modules = modules

    def begin(self) -> None:
        mechanism.forget_gaps()  # of a recording that was not asked for its own

    def resume(self) -> None:
        python_tracer.begin(self._log, self._modules)
        python_tracer.follow(stack_walk.shown_caller(sys._getframe(1)))
        mechanism.install()
        python_tracer.begin_anew(threading.get_ident())

    def pause(self, now: float) -> None:
        if python_tracer.is_active():
            mechanism.uninstall()
            python_tracer.end(now)

    def discard(self) -> None:
        self.pause(recorder.clock())
        python_tracer.forget()  # an interrupt may have come in between
        mechanism.forget_gaps()  # of a recording that nobody sees


def warn_of_gaps() -> None:
    """Warn if functions are missing in what was recorded since the last time."""
    mechanism.warn_of_gaps()
