"""The protocol of a recording's sources."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from ..model.session import Frame, Label
    from .log_records import Records
    from .memory.roles import Column
    from .memory.storages import Noted
    from .memory.survivors import References
    from .tasks import Task
    from .threads import Thread

__all__ = ["Findings", "Source"]


@dataclass(kw_only=True)
class Findings:
    """The results of a recording's sources at its end. Each source fills in its own."""

    stopped: float  # by the recorder's clock
    read_later: bool = False  # whether the program goes on at once, and another thread reads the records
    collected: tuple[tuple[float, float], ...] = ()  # from when to when, by the same clock
    event_costs_ns: tuple[tuple[str, int], ...] = ()  # kind of event, and what recording one costs
    cpu_ns: int = -1  # how long the thread that records was on the processor meanwhile; -1 if that is not known
    records: Records | None = None
    read_records: Callable[[], Records] | None = None  # gives them, where they were not read yet
    dropped: Mapping[str, int] = field(default_factory=dict)  # events that are not kept, by the option that says so
    recorder_threads: Set[int] = frozenset()  # identifiers of threads that the recording started for itself
    labels: Mapping[int, Label] = field(default_factory=dict)  # by number, as all that records refer to
    inputs: Mapping[int, tuple[Any, ...]] = field(default_factory=dict)
    stacks: Mapping[int, tuple[Frame, ...]] = field(default_factory=dict)
    tasks: Mapping[int, Task] = field(default_factory=dict)
    threads: Sequence[Thread] = ()
    memory: Noted | None = None
    memory_lost: bool = False  # whether there was no memory for that
    roles: tuple[Column, Column, Column] | None = None  # times in nanoseconds, addresses, roles
    roles_at_end: Mapping[int, int] = field(default_factory=dict)  # by address
    survivors: References = field(default_factory=dict)  # storages that were alive at the end
    owners_known: bool = True  # whether there was memory to look for these, and for roles


class Source(Protocol):
    """One thing that a recording observes: operators, scopes, storages, Python functions, ….

    A recording walks the list of its sources forwards to begin, resume and take, and backwards to pause and end:

        begin → resume ⇄ pause → end → take

    `discard` ends a source in whatever state it is; it is called when an exception has come in between, an interrupt at any line included. It may
    itself be interrupted and called again. A source overrides the methods in which it has something to do.
    """

    def begin(self) -> None:
        """Get ready, and switch on what stays on during a pause. Nothing is collected before `resume`."""
        return

    def resume(self) -> None:
        """Collect from here on."""
        return

    def pause(self, now: float) -> None:
        """Collect no more; what runs is recorded up to `now`, a reading of the recorder's clock. Harmless for a source that is paused."""
        return

    def end(self) -> None:
        """Switch off what `begin` switched on."""
        return

    def take(self, findings: Findings) -> None:
        """Hand over what was collected, and forget it."""
        return

    def meanwhile(self, free_bytes: int) -> None:
        """Do what is to be done now and then while the recording goes on, by another thread; `free_bytes` of memory are left."""
        return

    def make_room(self) -> bool:
        """Give up all that was collected, because memory is short and no records are left to give up; False if there is nothing."""
        return False

    def discard(self) -> None:
        """Switch off whatever is on, and forget what was collected. Harmless for a source that never began."""
        return
