"""Dispatch keys: bits of an integer.

A tensor carries the bits that its own state calls for; recording and modes add theirs for as long as they are active.
"""

from __future__ import annotations

CPU = 1 << 0
META = 1 << 1
NPU = 1 << 2
SPARSE = 1 << 13  # coordinates and values on the CPU
NARROW = 1 << 23  # elements that are kept as bits, on the CPU
SPARSE_COMPRESSED = 1 << 31  # compressed rows or columns and values on the CPU
SPARSE_LAYOUTS = SPARSE | SPARSE_COMPRESSED
BATCHED = 1 << 25  # a tensor inside `vmap`: another tensor with one more dimension, which operators do not see
BACKENDS = CPU | META | NPU | SPARSE_LAYOUTS | NARROW | BATCHED

AUTOGRAD = 1 << 3  # the tensor requires grad
SUBCLASS = 1 << 4  # the tensor's class overrides __torch_function__
PYTHON = 1 << 5  # the tensor's class overrides __torch_dispatch__

DUAL = 1 << 30  # the tensor has a tangent: a derivative is carried forward with it
INFERENCE = 1 << 11  # the tensor was made in inference mode; active while some thread is in it

CONJUGATE = 1 << 26  # the tensor's elements are the conjugates of what its memory holds
NEGATIVE = 1 << 27  # they are its negatives
PENDING = CONJUGATE | NEGATIVE
LARGE = 1 << 12  # the tensor, or what it is a view of, has so many elements that kernels may be worth splitting over threads
LARGE_SIZE = 1 << 15  # so many
OF_VIEWS = BACKENDS | PENDING | LARGE  # what a view takes from its base

NUMBER = 1 << 10  # an operand is a Python number: pointwise operators have a body of their own for it

# Active while something in the process asks for them, see `dispatcher.activate`.
SAVED_HOOKS = 1 << 6
DISPATCH_MODE = 1 << 7
FUNCTION_MODE = 1 << 8
PROFILER = 1 << 9
RECORD_SHAPES = 1 << 14  # what recorded operators note about themselves
RECORD_STACKS = 1 << 15
RECORD_TASKS = 1 << 16  # of asyncio
RECORD_OPERANDS = 1 << 17  # the memory of the arguments
EXECUTION_TRACE = 1 << 18  # somebody writes down every call with its tensors
RECORD_STORAGES = 1 << 19  # the memory of the results
RECORD_HEAP = 1 << 20  # of Python, before and after
DRAWING = 1 << 24  # some thread is inside `vmap`: operators that draw random numbers ask how often
OUT_VARIANT = 1 << 21  # called by its variant with `out=`, which is what is recorded
AUTOCAST = 1 << 22  # some thread has operands cast

# Switches of the process: active from some call on, and carried by no tensor.
LAYOUT = 1 << 28  # some tensor is in a channels-last format: results of two operands follow the first one's order of dimensions
FILLING = 1 << 29  # new memory is filled, because deterministic algorithms were asked for
SWITCHES = LAYOUT | FILLING

RECORDING = PROFILER | EXECUTION_TRACE
NOTING = RECORD_SHAPES | RECORD_STACKS | RECORD_TASKS | RECORD_OPERANDS | RECORD_STORAGES | RECORD_HEAP
OBSERVING = RECORDING | NOTING  # no kernel is chosen by these

# A derivative may be asked for, of the tensor or of what is behind it.
TRACKED = AUTOGRAD | DUAL | BATCHED

# With one of these, an operator calls functions of the program.
CALLING_BACK = SUBCLASS | PYTHON | SAVED_HOOKS | DISPATCH_MODE | FUNCTION_MODE

# From the innermost (nearest the kernel) to the outermost.
LAYER_ORDER = (
    FILLING,
    INFERENCE,
    PYTHON,
    DISPATCH_MODE,
    PENDING,
    AUTOGRAD,
    DUAL,
    BATCHED,
    DRAWING,
    AUTOCAST,
    SUBCLASS,
    FUNCTION_MODE,
    PROFILER,
    EXECUTION_TRACE,
)

BACKEND_OF_DEVICE = {"cpu": CPU, "meta": META, "npu": NPU}
NAMES = {
    CPU: "CPU",
    META: "Meta",
    NPU: "NPU",
    SPARSE: "SparseCPU",
    NARROW: "NarrowCPU",
    SPARSE_COMPRESSED: "SparseCsrCPU",
    AUTOGRAD: "Autograd",
    SUBCLASS: "Subclass",
    PYTHON: "Python",
    SAVED_HOOKS: "SavedTensorHooks",
    DISPATCH_MODE: "DispatchMode",
    FUNCTION_MODE: "FunctionMode",
    PROFILER: "Profiler",
    NUMBER: "Number",
    INFERENCE: "Inference",
    CONJUGATE: "Conjugate",
    NEGATIVE: "Negative",
    RECORD_SHAPES: "RecordShapes",
    RECORD_STACKS: "RecordStacks",
    RECORD_TASKS: "RecordTasks",
    RECORD_OPERANDS: "RecordOperands",
    EXECUTION_TRACE: "ExecutionTrace",
    RECORD_STORAGES: "RecordStorages",
    RECORD_HEAP: "RecordHeap",
    OUT_VARIANT: "OutVariant",
    AUTOCAST: "Autocast",
    LAYOUT: "Layout",
    FILLING: "Filling",
    BATCHED: "Batched",
    DUAL: "Dual",
    DRAWING: "Drawing",
    LARGE: "Large",
}


def describe(keys: int) -> str:
    """The names of the keys in a set, for error messages and debugging."""
    return ", ".join(name for bit, name in NAMES.items() if keys & bit) or "none"
