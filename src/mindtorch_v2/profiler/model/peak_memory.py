"""The moment at which a recording had the most memory in use on the CPU, and which operators had made what was alive then."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from . import live_memory
from .places import own_frame
from .recording import Recording
from .session import Column, MemoryLog, Session

__all__ = ["Owner", "PeakMemory"]

BEFORE = "(before the recording)"
NO_OPERATOR = "(no operator)"


@dataclass(frozen=True)
class Owner:
    """Storages alive at the peak that one operator made at one place."""

    operator: str
    source: str  # the line of the program that led to it, or ""
    size_bytes: int
    count: int


@dataclass(frozen=True)
class PeakMemory:
    """The peak, and who made it."""

    peak_bytes: int
    peak_ns: int  # after the start of the recording
    before_bytes: int  # in use when the recording began
    end_bytes: int
    made_bytes: int  # in the recording, whether freed or not
    made_count: int
    owners: tuple[Owner, ...]  # the largest first

    @classmethod
    def of(cls, session: Session) -> PeakMemory | None:
        """The peak of a session; None if memory was not recorded."""
        log = session.memory
        if log is None or not len(log.time_ns):
            return None
        on_cpu = np.flatnonzero(np.array([track.device_type == "CPU" for track in session.tracks], bool)[log.track])
        if not len(on_cpu):
            return None
        at = int(np.argmax(log.total_bytes[on_cpu]))
        alive = _alive_at(log, on_cpu[: at + 1])
        first = on_cpu.item(0)
        before = int(log.total_bytes[first] - log.size_bytes[first])
        made = log.size_bytes[on_cpu] > 0
        owners = _owners(session, alive)
        known = sum(owner.size_bytes for owner in owners)
        rest = int(log.total_bytes[on_cpu[at]]) - known
        if rest > 0:
            owners = [*owners, Owner(BEFORE, "", rest, 0)]
        return cls(
            peak_bytes=int(log.total_bytes[on_cpu[at]]),
            peak_ns=int(log.time_ns[on_cpu[at]] - session.info.started_ns),
            before_bytes=max(before, 0),
            end_bytes=int(log.total_bytes[on_cpu[-1]]),
            made_bytes=int(log.size_bytes[on_cpu][made].sum()),
            made_count=int(made.sum()),
            owners=tuple(sorted(owners, key=lambda owner: -owner.size_bytes)),
        )


def _alive_at(log: MemoryLog, changes: Column) -> list[int]:
    """Of these changes, those that made storages which none of the later ones freed."""
    alive: dict[int, int] = {}
    for row, address, size in zip(changes.tolist(), log.address[changes].tolist(), log.size_bytes[changes].tolist()):
        if size > 0:
            alive[address] = row
        else:
            alive.pop(address, None)
    return list(alive.values())


def _owners(session: Session, made: list[int]) -> list[Owner]:
    log = session.memory
    assert log is not None, "there are changes"
    recording, operator = Recording(session), live_memory.active_operators(session)
    found: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
    for row in made:
        event = operator.item(row)
        name = session.labels[session.label.item(event)].name if event >= 0 else NO_OPERATOR
        stack = recording.stack.item(event) if event >= 0 else -1 if log.stack is None else log.stack.item(row)
        frames = session.stack_table[stack] if stack >= 0 else ()
        own = own_frame(frames, session.frames, recording.places)
        found[name, recording.places[own] if own >= 0 else ""].append(log.size_bytes.item(row))
    return [Owner(name, source, sum(sizes), len(sizes)) for (name, source), sizes in found.items()]
