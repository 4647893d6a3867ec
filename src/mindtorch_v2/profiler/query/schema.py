"""The tables that can be asked, and what each column means. Documentation and tables are made of this list."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["SCHEMA", "ColumnMeaning"]


@dataclass(frozen=True)
class ColumnMeaning:
    """A column: its name, its type in SQL, and what it says. Times are nanoseconds; those of day are of the Unix clock."""

    name: str
    type: str
    meaning: str


def _columns(text: str) -> tuple[ColumnMeaning, ...]:
    rows = [line.split(maxsplit=2) for line in text.strip().splitlines()]
    return tuple(ColumnMeaning(name, kind, meaning) for name, kind, meaning in rows)


SCHEMA: dict[str, tuple[ColumnMeaning, ...]] = {
    "events": _columns("""
        process       BIGINT   number of the process
        row           BIGINT   number of the event in its process, in order of start, from 0
        name          VARCHAR  aten::mm, ProfilerStep#3, …
        kind          VARCHAR  op, scope, python_function, memory, runtime, kernel, gc or compile
        start_ns      BIGINT   when it began
        end_ns        BIGINT   when it ended
        duration_ns   BIGINT   how long it took
        self_ns       BIGINT   of that, what no event inside of it has
        step          BIGINT   the step it belongs to
        thread        BIGINT   number of the thread, of the system
        track         VARCHAR  name of the thread, task or stream
        device        VARCHAR  CPU, CUDA, NPU, …
        depth         BIGINT   how many events are around it
        parent        BIGINT   row of the event around it; NULL for none
        sequence      BIGINT   number of the backward node that it made or ran; NULL for none
        backward      BOOLEAN  whether it is in a backward pass
        shapes        VARCHAR  shapes of its inputs; NULL if they were not recorded
        dtypes        VARCHAR  their types
        stack         BIGINT   number in the table stacks; NULL if there is none
        place         VARCHAR  file:line:function of the program that called it; NULL if stacks were not recorded
        module        VARCHAR  path of the module it belongs to; NULL if there is none
        flops         BIGINT   floating point operations, as far as they are known
        memory_bytes  BIGINT   memory made and not freed while it was open; NULL if memory was not recorded
    """),
    "operators": _columns("""
        process       BIGINT   number of the process
        name          VARCHAR  name of the operator
        calls         BIGINT   how often it was called
        total_ns      BIGINT   time of all calls
        self_ns       BIGINT   of that, what no event inside has
        mean_ns       DOUBLE   total_ns divided by calls
        median_ns     DOUBLE   the median of its durations
        min_ns        BIGINT   the shortest
        max_ns        BIGINT   the longest
        flops         BIGINT   floating point operations of all calls
        memory_bytes  BIGINT   memory made and not freed in all calls; NULL if memory was not recorded
    """),
    "steps": _columns("""
        process       BIGINT   number of the process
        number        BIGINT   number of the step
        start_ns      BIGINT   when it began
        end_ns        BIGINT   when it ended
        duration_ns   BIGINT   how long it took
    """),
    "memory": _columns("""
        process       BIGINT   number of the process
        time_ns       BIGINT   when memory was made or freed
        address       BIGINT   of the memory; one that is free may be used again
        size_bytes    BIGINT   bytes made; negative for those freed
        total_bytes   BIGINT   bytes in use after it
        row           BIGINT   row of the event that was open; NULL for none
    """),
    "stacks": _columns("""
        process       BIGINT   number of the process
        stack         BIGINT   number of the stack
        level         BIGINT   0 for the innermost frame
        file          VARCHAR  path of the source
        line          BIGINT   line in it
        function      VARCHAR  name of the function
    """),
    "modules": _columns("""
        process           BIGINT   number of the process
        module            VARCHAR  path of the module: GPT.blocks.0.mlp
        class             VARCHAR  name of its class
        calls             BIGINT   how often it was called
        forward_ns        BIGINT   time in forward passes, with the modules inside
        backward_ns       BIGINT   time in backward passes, with the modules inside
        self_forward_ns   BIGINT   without the modules inside
        self_backward_ns  BIGINT   without the modules inside
    """),
    "kernels": _columns("""
        process       BIGINT   number of the process
        row           BIGINT   number of the event
        name          VARCHAR  name of the kernel, copy or fill
        device        BIGINT   number of the device
        stream        BIGINT   number of the stream
        start_ns      BIGINT   when it began
        end_ns        BIGINT   when it ended
        duration_ns   BIGINT   how long it took
        launch        BIGINT   row of the call that started it; NULL if that is not known
        delay_ns      BIGINT   from the start of that call to its own
        operator      BIGINT   row of the operator that made that call; NULL for none
    """),
    "processes": _columns("""
        process       BIGINT   number of the process
        parent        BIGINT   number of the process that started it; 0 if that is not known
        command       VARCHAR  the program and its arguments
        started_ns    BIGINT   when the recording began
        stopped_ns    BIGINT   when it ended
        events        BIGINT   how many events it has
    """),
}
