"""Running a program under a recording, as the command lines do."""

from __future__ import annotations

import sys
from types import FrameType
from typing import NoReturn

from ..._launch import program
from ..._launch.children import answer_torch
from ..._launch.program import Request
from ..capture.stacks import stack_walk
from .whole_run import WholeRun

__all__ = ["fail", "run_recorded"]


def run_recorded(recording: WholeRun, request: Request) -> None:
    """Run the program; returns when it has ended well, and raises what it raised. The results are made when the process ends."""
    try:
        try:
            script = None if request.form == "module" else program.find(request)
            answer_torch()
            _hide_the_command()
            recording.start()
            # the packages around a module are imported to find it, and are part of the program
            script = script or program.find(request)
            recording.code = script.code
            program.run(script, request.arguments)
        finally:
            # here and not in a function, which a signal's handler could interrupt before it has begun
            while not recording.signals.is_guarded:
                try:
                    recording.signals.guard()
                except KeyboardInterrupt:
                    recording.signals.count()
    except program.CannotRunError as error:
        recording.abandon()
        fail(recording.command, str(error), error.status)
    except SystemExit as end:
        recording.failed = end.code not in (None, 0)
        raise
    except BaseException:
        recording.failed = True
        program.show_errors_without_own_frames()
        raise


def _hide_the_command() -> None:
    """Have the files that lead to here, a console script among them, in no stack: the program is what is shown."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        stack_walk.internal_files[frame.f_code.co_filename] = True
        frame = frame.f_back


def fail(command: str, reason: str, status: int) -> NoReturn:
    """End the command with a sentence about what is wrong."""
    print(f"{command}: {reason}", file=sys.stderr)
    raise SystemExit(status)
