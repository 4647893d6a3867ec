"""What recording an operator costs: a stand-in for the profiler's layer, against torch.profiler's default."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from typing import Any

from mindtorch_v2._dispatch import dispatcher, keys
from mindtorch_v2._dispatch.codegen import Body, indent
from mindtorch_v2._dispatch.op import Op

from .timing import Comparison, compare

__all__ = ["overhead", "recording"]


@contextlib.contextmanager
def recording() -> Iterator[list[tuple[str, int, int]]]:
    """Record (name, start, end) of every operator called inside, children before their parents."""
    events: list[tuple[str, int, int]] = []
    # names that no schema uses (`diff` has an argument called append)
    names = {"clock_": time.perf_counter_ns, "append_": events.append}

    def layer(op: Op, full: int, body: Body) -> Body:
        if "transparent" in op.tags:
            return body
        lines = [
            "began_ = clock_()",
            "try:",
            *indent(body.lines),
            "except BaseException:",
            f"    append_(({op.qualified_name!r}, began_, clock_()))",
            "    raise",
            f"append_(({op.qualified_name!r}, began_, clock_()))",
        ]
        return Body(lines, {**body.names, **names})

    dispatcher.register_layer(keys.PROFILER, layer)
    dispatcher.activate(keys.PROFILER)
    try:
        yield events
    finally:
        dispatcher.deactivate(keys.PROFILER)
        dispatcher.unregister_layer(keys.PROFILER)


def overhead(ours: Any, torch: Any) -> list[Comparison]:
    x, y = ours.randn(8, 8), ours.randn(8, 8)
    a, b = torch.randn(8, 8), torch.randn(8, 8)
    off = compare("off", lambda: x + y, lambda: a + b)
    with recording() as events, torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]):
        on = compare("on", lambda: x + y, lambda: a + b)
        events.clear()
    added = Comparison("added by recording", on.ours_us - off.ours_us, on.torch_us - off.torch_us, 0.7)
    return [off, on, added]
