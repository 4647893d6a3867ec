"""The options of a recording, in the one form that the profiler, the recording, the session and the command line use."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass, field, fields, replace

from .activity import HEAP, STORAGES, ProfilerActivity, kinds_wanted, memory_source
from .bounds import Bounds
from .experimental_config import _ExperimentalConfig
from .model.callers_level import callers_level
from .model.filtering import is_named

__all__ = ["OptionAttributes", "Options"]


@dataclass(frozen=True, kw_only=True)
class Options:
    """The options: what to record, and how results are made. The names are those of the arguments of `profile`, where they are explained."""

    activities: Set[ProfilerActivity] = frozenset({ProfilerActivity.CPU})
    activity_filters: Mapping[ProfilerActivity, set[str]] = field(default_factory=dict)  # the types of events, where they are named
    use_device: str | None = None
    record_shapes: bool = False
    profile_memory: bool | str = False
    with_stack: bool = False
    with_flops: bool = False
    with_modules: bool = False
    experimental_config: _ExperimentalConfig | None = None
    acc_events: bool = False
    custom_trace_id_callback: Callable[[], str] | None = None
    post_processing_timeout_s: float | None = None
    bounds: Bounds = field(default_factory=Bounds)

    def __post_init__(self) -> None:
        memory_source(self.profile_memory)  # which refuses what is no source
        if self.post_processing_timeout_s is not None and self.post_processing_timeout_s < 0:
            raise ValueError("post_processing_timeout_s must be non-negative")

    @property
    def cpu(self) -> bool:
        """Whether what runs on the host is recorded."""
        return ProfilerActivity.CPU in self.activities

    @property
    def shapes(self) -> bool:
        """Whether inputs are recorded; floating point operations are counted from them."""
        return self.record_shapes or self.with_flops

    @property
    def storages(self) -> bool:
        """Whether the storages of tensors are recorded."""
        return memory_source(self.profile_memory) == STORAGES

    @property
    def heap(self) -> bool:
        """Whether Python's heap is recorded instead."""
        return memory_source(self.profile_memory) == HEAP

    @property
    def data_flow(self) -> bool:
        """Whether to record what a memory timeline is made of."""
        return self.shapes and self.with_stack and self.storages

    @property
    def recorded_names(self) -> Callable[[str], bool] | None:
        """Which operators are recorded, by their names; None for all.

        Where storages are recorded, or Python functions, operators of other names are recorded as well, and left out later: the memory that they
        make and the functions inside them count.
        """
        include, exclude = self.bounds.include, self.bounds.exclude
        if not (include or exclude) or self.storages or self.with_stack:
            return None
        return functools.partial(is_named, include=include, exclude=exclude)

    @property
    def config(self) -> _ExperimentalConfig:
        """The experimental options, by default those of a new config."""
        return self.experimental_config or _ExperimentalConfig()

    @property
    def kinds(self) -> set[str] | None:
        """The kinds of events to keep; None for all."""
        return kinds_wanted(self.activity_filters)

    def consistent(self) -> Options:
        """These options, without `trace_only` where stacks are asked for, which need events."""
        if not (self.config.trace_only and self.with_stack):
            return self
        warnings.warn(
            "trace_only=True is incompatible with with_stack=True (stack traces require event post-processing). Disabling trace_only.",
            stacklevel=callers_level(),
        )
        return replace(self, experimental_config=replace(self.config, trace_only=False))


class OptionAttributes:
    """The options of a profiler as its attributes, as in torch. One that a program sets counts from the next recording on."""

    activities: Set[ProfilerActivity]
    activity_filters: Mapping[ProfilerActivity, set[str]]
    use_device: str | None
    record_shapes: bool
    profile_memory: bool | str
    with_stack: bool
    with_flops: bool
    with_modules: bool
    experimental_config: _ExperimentalConfig | None
    acc_events: bool
    custom_trace_id_callback: Callable[[], str] | None
    post_processing_timeout_s: float | None
    bounds: Bounds

    def _set_options(self, options: Options) -> None:
        vars(self).update({option.name: getattr(options, option.name) for option in fields(options)})

    def _options(self) -> Options:
        """The options by the attributes of now."""
        return Options(**{option.name: getattr(self, option.name) for option in fields(Options)})
