"""torch.utils.throughput_benchmark: calls of a module from threads in C++, which is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._refusals import refused

globals().update(
    refused(
        __name__,
        "modules run as Python, one thread at a time; measure calls with torch.utils.benchmark.Timer",
        functions="format_time",
        classes="ExecutionStats ThroughputBenchmark",
    )
)

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...
