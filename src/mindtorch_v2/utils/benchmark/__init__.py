"""torch.utils.benchmark: how long statements take, measured and compared."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..._refusals import refused
from .utils.common import Measurement, TaskSpec, ordered_unique, select_unit, set_torch_threads, trim_sigfig, unit_to_english
from .utils.compare import Colorize, Compare
from .utils.fuzzer import FuzzedParameter, FuzzedTensor, Fuzzer, ParameterAlias
from .utils.timer import Language, Timer, timer

globals().update(
    refused(
        __name__,
        "instructions are not counted; measure times with Timer.blocked_autorange, or record a profile with torch.profiler",
        classes="CallgrindStats CopyIfCallgrind FunctionCount FunctionCounts",
    )
)
globals().update(
    refused(__name__, "give FuzzedTensor a tensor_constructor that makes sparse tensors", classes="FuzzedSparseTensor")
)

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...
