"""Observers that a profiler starts and stops with its recordings; torch's `ExecutionTraceObserver` is one."""

from __future__ import annotations

import os
import warnings
from abc import ABC, abstractmethod
from typing import NoReturn

__all__ = ["ExecutionTraceObserver"]


class _ITraceObserver(ABC):
    """What a profiler asks of an observer."""

    @abstractmethod
    def start(self) -> None: ...

    @abstractmethod
    def stop(self) -> None: ...

    @abstractmethod
    def cleanup(self) -> None: ...


class ExecutionTraceObserver(_ITraceObserver):
    """Writes execution traces. It can be made and passed around, but not registered: such traces are not supported yet."""

    def __init__(self) -> None:
        self.extra_resources_collection = False
        self.resources_dir = ""
        self.output_file_path = ""
        self.output_file_path_observer = ""

    @staticmethod
    def build_execution_trace_obs_from_env() -> ExecutionTraceObserver | None:
        """The observer that the environment asks for, or None."""
        if os.environ.get("ENABLE_PYTORCH_EXECUTION_TRACE", "0") != "1":
            return None
        return ExecutionTraceObserver().register_callback("")

    def register_callback(self, output_file_path: str) -> NoReturn:
        raise NotImplementedError("ExecutionTraceObserver.register_callback: execution traces are not supported yet")

    def unregister_callback(self) -> None:
        """Nothing is registered, so there is nothing to undo."""

    @property
    def is_registered(self) -> bool:
        return False

    def is_running(self) -> bool:
        return False

    def set_extra_resource_collection(self, val: bool) -> None:
        self.extra_resources_collection = val

    def get_resources_dir(self, can_create: bool = False) -> str | None:
        return None  # there is one for a registered observer only

    @staticmethod
    def get_resources_dir_for_et_path(trace_path: str, create_dir: bool = False) -> str | None:
        """Where an execution trace keeps its other files: next to it, in a folder of its name; None if there is none."""
        folder = os.path.splitext(trace_path)[0] + "_resources"
        if not os.path.exists(folder):
            if not create_dir:
                return None
            try:
                os.mkdir(folder)
            except OSError as error:
                warnings.warn(f"the folder {folder} of an execution trace cannot be made: {error}", stacklevel=2)
                return None
        return folder

    def start(self) -> None:
        """Nothing is registered, so nothing starts."""

    def stop(self) -> None:
        """Nothing is registered, so nothing runs."""

    def cleanup(self) -> None:
        self.unregister_callback()

    def get_output_file_path(self) -> str | None:
        return self.output_file_path or None
