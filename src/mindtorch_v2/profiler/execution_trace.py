"""`ExecutionTraceObserver`: writes down every operator with its tensors, in the form that tools of the Chakra project read.

One observer of a process writes at a time. Between `start` and `stop` operators have another layer (`execution_layer`); while none
runs, nothing is left of it.
"""

from __future__ import annotations

import atexit
import os
import tempfile
import warnings
from abc import ABC, abstractmethod

from .._dispatch import dispatcher, keys
from .._forking import new_lock
from .capture.execution_trace import execution_extras, execution_layer
from .capture.execution_trace.execution_nodes import NodeFile
from .capture.execution_trace.execution_scopes import ExecutionScopes
from .capture.scopes import observers

__all__ = ["ExecutionTraceObserver"]

_lock = new_lock()
_file: NodeFile | None = None  # of the observer that is registered
_running = False


class _ITraceObserver(ABC):
    """The interface between a profiler and an observer."""

    @abstractmethod
    def start(self) -> None: ...

    @abstractmethod
    def stop(self) -> None: ...

    @abstractmethod
    def cleanup(self) -> None: ...


class ExecutionTraceObserver(_ITraceObserver):
    """Writes execution traces, alone or with a profiler.

        observer = ExecutionTraceObserver().register_callback("trace.json")
        observer.start()
        train_step()
        observer.unregister_callback()

        with profile(execution_trace_observer=ExecutionTraceObserver().register_callback("trace.json")): …

    The file is there when the observer is unregistered, which a profiler does at its end and the program at its exit.
    """

    def __init__(self) -> None:
        self._file: NodeFile | None = None
        self.extra_resources_collection = False
        self.resources_dir = ""
        self.output_file_path = ""
        self.output_file_path_observer = ""

    def __del__(self) -> None:
        self.unregister_callback()

    @staticmethod
    def build_execution_trace_obs_from_env() -> ExecutionTraceObserver | None:
        """The observer that the environment asks for, registered to a temporary file; or None."""
        if os.environ.get("ENABLE_PYTORCH_EXECUTION_TRACE", "0") != "1":
            return None
        if _file is not None and _file.is_open:
            warnings.warn(f"no execution trace as the environment asks for: {_file.path} is being written", stacklevel=2)
            return None
        try:
            descriptor, path = tempfile.mkstemp(suffix=".et.json")
            os.close(descriptor)
            observer = ExecutionTraceObserver().register_callback(path)
        except OSError as error:
            warnings.warn(f"no execution trace as the environment asks for: {error}", stacklevel=2)
            return None
        observer.set_extra_resource_collection(os.environ.get("ENABLE_PYTORCH_EXECUTION_TRACE_EXTRAS", "0") == "1")
        return observer

    def register_callback(self, output_file_path: str | os.PathLike[str]) -> ExecutionTraceObserver:
        """Get ready to write to this path, gzipped if it ends with `.gz`. A registered observer stays as it is."""
        global _file
        path = os.fspath(output_file_path)
        if not isinstance(path, str):
            raise TypeError(f"register_callback takes a path of type str, got {type(path).__name__}")
        with _lock:
            if self.is_registered:
                return self
            if _file is not None and _file.is_open:
                raise RuntimeError(
                    f"an execution trace is being written to {_file.path}; unregister its observer before you register another"
                )
            _file = self._file = NodeFile(path)
            self.output_file_path = self.output_file_path_observer = path
            self.resources_dir = ""
        return self

    def unregister_callback(self) -> None:
        """Stop, complete the file and put it into its place. Raises an OSError that says what kept it from being complete."""
        if not self.is_registered:
            return
        self.stop()
        assert self._file is not None
        file, self._file = self._file, None
        file.finish()

    @property
    def is_registered(self) -> bool:
        """Whether there is a file to write to."""
        return self._file is not None and self._file.is_open

    def is_running(self) -> bool:
        """Whether operators are being written down."""
        return _running and self.is_registered

    def set_extra_resource_collection(self, val: bool) -> None:
        """Have a folder next to the file for what belongs to it; call it after `register_callback`."""
        self.extra_resources_collection = val
        if val:
            self.get_resources_dir(can_create=True)

    def get_resources_dir(self, can_create: bool = False) -> str | None:
        """Return that folder; None if there is none."""
        if not self.extra_resources_collection:
            return None
        if not self.resources_dir:
            self.resources_dir = self.get_resources_dir_for_et_path(self.output_file_path, create_dir=can_create) or ""
        return self.resources_dir or None

    @staticmethod
    def get_resources_dir_for_et_path(trace_path: str, create_dir: bool = False) -> str | None:
        """Return the folder of an execution trace's other files: next to it, with its name; None if there is none."""
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
        """Write down what happens from here on. Does nothing unless registered."""
        global _running
        with _lock:
            if not self.is_registered or _running:
                return
            assert self._file is not None
            execution_layer.current.file = self._file
            execution_layer.current.extras = execution_extras.from_environment(self._extras_folder)
            _running = True
            observers.set_execution_trace(ExecutionScopes(self._file))
            dispatcher.activate(keys.EXECUTION_TRACE)

    def stop(self) -> None:
        """Write down no more. Scopes that are open go on."""
        global _running
        with _lock:
            if not self.is_running():
                return
            dispatcher.deactivate(keys.EXECUTION_TRACE)
            observers.set_execution_trace(None)
            observers.forget_tasks()
            _running = False

    def cleanup(self) -> None:
        """The same as `unregister_callback`."""
        self.unregister_callback()

    def get_output_file_path(self) -> str | None:
        """The path that was registered last."""
        return self.output_file_path or None

    def _extras_folder(self) -> str | None:
        return self.get_resources_dir_for_et_path(self.output_file_path, create_dir=True)


def _finish_at_exit() -> None:
    """Complete what a program that ends has left open."""
    if _file is not None and _file.is_open and _file.pid == os.getpid():
        _file.finish()


def _forget_in_child() -> None:
    """A forked process starts without the trace of its parent, which goes on there."""
    global _running
    _running = False
    if _file is not None and _file.is_open:
        _file.abandon()
    dispatcher.drop(keys.EXECUTION_TRACE)
    observers.set_execution_trace(None)
    observers.forget_tasks()


atexit.register(_finish_at_exit)
os.register_at_fork(after_in_child=_forget_in_child)
