"""Operators record while the keys of recording are active."""

from __future__ import annotations

import functools
from collections.abc import Callable

from ...._dispatch import dispatcher, keys
from ...._dispatch.op import Op
from ..source import Source
from . import recorder

__all__ = ["RECORDING_KEYS", "Operators"]

RECORDING_KEYS = keys.PROFILER | sum(recorder.FORMS.values())


class Operators(Source):
    """Puts the keys of recording into every key set: those of `form`, which say what records hold, and the profiler's."""

    def __init__(self, form: int, only: Callable[[str], bool] | None = None) -> None:
        """`only` says of which names operators are recorded. Others run the functions that they run unrecorded, and cost nothing."""
        self.key_set = keys.PROFILER | form
        self._only = only
        self._is_on = False

    def compile(self) -> None:
        """Compile the recording variant of every operator that has run, so that events show no compilation."""
        dispatcher.precompile(self.key_set)

    def begin(self) -> None:
        if dispatcher.active_keys() & keys.EXECUTION_TRACE:  # whose operators are other functions
            dispatcher.precompile(self.key_set | keys.EXECUTION_TRACE)

    def resume(self) -> None:
        """Have operators record; before `begin`, to no effect but that what they call only while recorded gets compiled."""
        if not self._is_on:
            self._is_on = True
            if self._only is not None:
                dispatcher.limit_key(RECORDING_KEYS, functools.cache(self._concerns))
            dispatcher.activate(self.key_set)  # all at once, so that the tables are renewed once

    def pause(self, now: float) -> None:
        self.discard()

    def discard(self) -> None:
        if self._is_on:
            dispatcher.drop(RECORDING_KEYS)
            dispatcher.unlimit_key(RECORDING_KEYS)
            self._is_on = False

    def _concerns(self, op: Op) -> bool:
        return self._only is None or self._only(op.qualified_name)
