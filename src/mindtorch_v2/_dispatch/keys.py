"""Dispatch keys: bits of an integer. A tensor carries the bits that its own state calls for; recording and modes
add theirs for as long as they are active.
"""

from __future__ import annotations

CPU = 1
META = 2
NPU = 4
SPARSE = 8192  # coordinates and values on the CPU
BACKENDS = CPU | META | NPU | SPARSE

AUTOGRAD = 8  # the tensor requires grad
SUBCLASS = 16  # the tensor's class overrides __torch_function__
PYTHON = 32  # the tensor's class overrides __torch_dispatch__

INFERENCE = 2048  # the tensor was made in inference mode; active while some thread is in it

NUMBER = 1024  # an operand is a Python number: pointwise operators have a body of their own for it

# Active while something in the process asks for them, see `dispatcher.activate`.
SAVED_HOOKS = 64
DISPATCH_MODE = 128
FUNCTION_MODE = 256
PROFILER = 512
RECORD_SHAPES = 16384  # what recorded operators note about themselves
RECORD_STACKS = 32768
RECORD_TASKS = 65536  # of asyncio
RECORD_OPERANDS = 131072  # the memory of the arguments
EXECUTION_TRACE = 262144  # somebody writes down every call with its tensors
RECORD_STORAGES = 524288  # the memory of the results
RECORD_HEAP = 1048576  # of Python, before and after
OUT_VARIANT = 2097152  # called by its variant with `out=`, which is what is recorded

RECORDING = PROFILER | EXECUTION_TRACE
NOTING = RECORD_SHAPES | RECORD_STACKS | RECORD_TASKS | RECORD_OPERANDS | RECORD_STORAGES | RECORD_HEAP

# From the innermost (nearest the kernel) to the outermost.
LAYER_ORDER = (INFERENCE, PYTHON, DISPATCH_MODE, AUTOGRAD, FUNCTION_MODE, SUBCLASS, PROFILER, EXECUTION_TRACE)

BACKEND_OF_DEVICE = {"cpu": CPU, "meta": META, "npu": NPU}
NAMES = {
    CPU: "CPU",
    META: "Meta",
    NPU: "NPU",
    SPARSE: "SparseCPU",
    AUTOGRAD: "Autograd",
    SUBCLASS: "Subclass",
    PYTHON: "Python",
    SAVED_HOOKS: "SavedTensorHooks",
    DISPATCH_MODE: "DispatchMode",
    FUNCTION_MODE: "FunctionMode",
    PROFILER: "Profiler",
    NUMBER: "Number",
    INFERENCE: "Inference",
    RECORD_SHAPES: "RecordShapes",
    RECORD_STACKS: "RecordStacks",
    RECORD_TASKS: "RecordTasks",
    RECORD_OPERANDS: "RecordOperands",
    EXECUTION_TRACE: "ExecutionTrace",
    RECORD_STORAGES: "RecordStorages",
    RECORD_HEAP: "RecordHeap",
    OUT_VARIANT: "OutVariant",
}


def describe(keys: int) -> str:
    """The names of the keys in a set, for error messages and debugging."""
    return ", ".join(name for bit, name in NAMES.items() if keys & bit) or "none"
