"""A recording walks its sources: forwards to switch on, backwards to switch off, and an error leaves none of them on."""

from __future__ import annotations

import pytest

from mindtorch_v2.profiler.capture import capture
from mindtorch_v2.profiler.capture.capture import Capture
from mindtorch_v2.profiler.capture.source import Findings, Source
from mindtorch_v2.profiler.experimental_config import _ExperimentalConfig
from mindtorch_v2.profiler.options import Options

METHODS = ("begin", "resume", "pause", "end", "take", "discard")


class Listed(Source):
    """Lists what is called, and raises in the methods that `failing` names."""

    def __init__(self, name: str, calls: list[str], *failing: str) -> None:
        self._name, self._calls, self._failing = name, calls, failing

    def _call(self, method: str) -> None:
        self._calls.append(f"{method} {self._name}")
        if method in self._failing:
            raise LookupError(self._name)

    def begin(self) -> None:
        self._call("begin")

    def resume(self) -> None:
        self._call("resume")

    def pause(self, now: float) -> None:
        self._call("pause")

    def end(self) -> None:
        self._call("end")

    def take(self, findings: Findings) -> None:
        self._call("take")

    def discard(self) -> None:
        self._call("discard")


def recording(calls: list[str], **failing: str) -> Capture:
    """A recording with two sources more, the first and the last."""
    made = Capture(Options())
    first, last = [Listed(name, calls, *[m for m, n in failing.items() if n == name]) for name in ("first", "last")]
    made._sources = (first, *made._sources, last)
    return made


def test_the_order_of_a_recording() -> None:
    calls: list[str] = []
    running = recording(calls)
    running.start()
    running.pause()
    running.pause()
    running.resume()
    running.stop()
    assert calls == [
        *["begin first", "begin last", "resume first", "resume last"],
        *["pause last", "pause first", "resume first", "resume last"],
        *["pause last", "pause first", "end last", "end first", "take first", "take last"],
    ]
    assert capture.is_clean()


@pytest.mark.parametrize("method", ["begin", "resume"])
@pytest.mark.parametrize("name", ["first", "last"])
def test_one_that_cannot_start(method: str, name: str) -> None:
    calls: list[str] = []
    with pytest.raises(LookupError, match=name):
        recording(calls, **{method: name}).start()
    assert calls[-2:] == ["discard last", "discard first"]
    assert capture.active is None
    assert capture.is_clean()


@pytest.mark.parametrize("method", ["pause", "end", "take"])
@pytest.mark.parametrize("name", ["first", "last"])
def test_one_that_cannot_stop(method: str, name: str) -> None:
    calls: list[str] = []
    running = recording(calls, **{method: name})
    running.start()
    with pytest.raises(LookupError, match=name):
        running.stop()
    assert calls[-2:] == ["discard last", "discard first"]
    assert capture.active is None
    assert capture.is_clean()
    assert not len(running.stop()())


def test_all_are_given_up_even_if_one_fails_to() -> None:
    calls: list[str] = []
    running = recording(calls, take="last", discard="last")
    running.start()
    with pytest.raises(LookupError):
        running.stop()
    assert calls[-2:] == ["discard last", "discard first"]
    assert not capture.is_clean()  # so that whoever comes next tries again
    running._sources[-1]._failing = ()  # type: ignore[attr-defined]
    capture.abandon()
    assert capture.is_clean()


def test_every_source_may_be_discarded_at_any_time() -> None:
    everything = Options(
        record_shapes=True,
        with_stack=True,
        profile_memory=True,
        with_modules=True,
        with_flops=True,
        experimental_config=_ExperimentalConfig(record_python_gc_info=True),
    )
    for options in (Options(), everything, Options(profile_memory="tracemalloc")):
        sources = Capture(options)._sources
        assert all(hasattr(source, method) for source in sources for method in METHODS)
        for _ in range(2):
            for source in reversed(sources):
                source.discard()
