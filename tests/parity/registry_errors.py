"""Bad arguments made from good samples: where torch refuses them, so must this package, with an error of the same type."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from registry_arguments import Sample, both, call_ours, call_theirs
from samples import INVARIANTS, SPARSE, UNDEFINED

import mindtorch_v2 as mt
from mindtorch_v2._dispatch.op import Op

__all__ = ["checks", "compare", "mutations"]

# Calls that end torch's process, by a segmentation fault or an abort: operators, changes (both as regular expressions), what it
# does. It is not asked about these; this package must refuse them.
Accident = tuple[str, str, str]
TORCH_CRASHES: list[Accident] = [
    ("slow_conv_transpose3d", "weight longer", "writes beyond the result of a kernel of another size"),
    ("lu_unpack", "LU_pivots no elements|LU_data (one dimension more|no elements)", "reads pivots where there are none"),
    ("native_batch_norm", "running_(mean|var) no elements", "reads and writes statistics of channels that have none"),
    ("lstm", "input one dimension more|params no elements", "reads beyond the weights"),
    ("lstm|gru|rnn_(tanh|relu)", "batch_sizes no elements", "reads the first of no steps"),
]


def checks(op: Op) -> bool:
    """Whether torch checks the arguments: not those of operators that only formulas and its own functions call.

    Bad arguments to the latter make torch read and write beyond its memory: of 300, twenty crashed.
    """
    internal = (op.name.startswith(("_", "mkldnn_")) and not op.name.startswith("_foreach")) or "_backward" in op.name
    return not internal and op.name not in SPARSE


# What torch does with bad arguments by accident: operators, changes and what this package says about them (both as regular
# expressions: the first of the whole name, the second of the beginning of "change: message"), what it does.
# None of these covers what both refuse with errors of other types. A test fails when one covers nothing.
ACCIDENTAL_ANSWERS: list[Accident] = [
    (
        ".*_loss(_forward)?|.*cross_entropy.*|kl_div|nll_.*",
        "reduction .*: -?99 is not a valid value for reduction",
        "takes numbers that mean no reduction for one of them: for none in some operators, for the sum in others",
    ),
    (
        "new_empty_strided",
        "stride far below: strides must be nonnegative",
        "takes strides below zero, which no tensor with elements has, where there are none",
    ),
    (
        "binary_cross_entropy",
        "(self|target) .*: binary_cross_entropy",
        "writes one element and drops the others, where one of the shapes is of one element",
    ),
    (
        "special_bessel_..|special_airy_ai",
        "self float64|x float64",
        "is less precise than float64 for some arguments; SciPy agrees with the values here",
    ),
    (
        "(native_)?batch_norm",
        "(weight|bias|running_mean|running_var) .*: .*should contain",
        "reads as many elements as there are channels, without asking how many there are",
    ),
    (
        "thnn_conv2d|slow_conv.*",
        "(weight|kernel_size) .*: (weight.2:. shape .* must be equal|non-empty weight tensor)",
        "reads the weight as if it were of the kernel's size",
    ),
    (
        "native_batch_norm",
        "input (longer|one dimension more): weight should contain",
        "reads parameters, and writes statistics, beyond their end, for channels that they have no place for",
    ),
    (
        "reflection_pad2d|resize_",
        "(padding|size) far below: (input .* is too small|Trying to create tensor with negative dimension)",
        "makes a tensor of a negative size, where another one is zero",
    ),
    (
        "linalg_lstsq",
        "self one dimension more: torch.linalg.lstsq: other has as many dimensions as input",
        "takes the rows of the right-hand side for a batch of them, and answers with more solutions than ranks",
    ),
    ("embedding_bag", "offsets longer: offsets must not decrease", "gives bags of sizes below zero, or fails in an assertion"),
    ("fractional_max_pool.d", "kernel_size far below: .*greater than zero", "takes maxima over windows without elements"),
    ("gru|rnn_(tanh|relu)", "batch_sizes one dimension more: ", "reads as many sizes as there are rows of them"),
    ("lu_unpack", "LU_pivots .*: torch.lu_unpack: Expected LU_pivots", "reads pivots as if they were of the matrices' batch"),
    (
        "lstm",
        "(input|params) .*: mkldnn_rnn_layer: expected weight",
        "hands the weights to a library that reads as many as the input's size says",
    ),
    (
        "addbmm_",
        ".*: Bad in-place call",
        "resizes the tensor that is written in place, with a warning that this will not be done any more",
    ),
    ("grid_sampler.*", "(interpolation|padding)_mode .*: grid_sampler.*but got -?99", "leaves the result uninitialised"),
]
# What torch refuses by accident and this package takes: operators, torch's messages, what it does.
ACCIDENTAL_REFUSALS: list[Accident] = [
    ("stft|fft_.*", "MKL FFT error: .*", "fails inside MKL where there are no elements to transform"),
]

# What torch refuses, as this package does, with an error of another type by accident: operators, its messages, why.
ACCIDENTAL_TYPES: list[Accident] = [
    (
        "index_(copy|fill)_?",
        "setStorage: .*",
        "complains about its storage where that is empty; in an empty view of a larger one, about the index, as here",
    ),
    (
        ".*",
        "cannot create std::vector larger than max_size.*|SmallVector unable to grow.*",
        "makes a container of a negative length; which type of error C++ has for that is nobody's choice",
    ),
]

# Operators that may give the position of another one of equal elements; of mutated samples, which repeat some, only values count.
TIES = ("topk", "kthvalue")

FAR = 99  # no dimension, and no position in a dimension, of any sample


def compare(op: Op, theirs: Any, sample: Sample, report: Any) -> None:
    """Each mutation: the same exception type as torch's, or the same result."""
    from registry_compare import describe, first_words

    for change, mutated in mutations(op, sample):
        ours_in, theirs_in = both(op, mutated)
        crash = _matching(TORCH_CRASHES, op, change)
        if crash is not None:
            report.counts[crash] += 1
            if not isinstance(_outcome(lambda ours_in=ours_in: call_ours(op, ours_in)), Exception):
                report.differs("error", f"{describe(mutated)}, {change}: no error where torch crashes")
            continue
        expected = _outcome(lambda theirs_in=theirs_in: call_theirs(theirs, theirs_in))
        ours = _outcome(lambda ours_in=ours_in: call_ours(op, ours_in))
        try:
            _compare_outcomes(op, [ours, ours_in.written], [expected, theirs_in.written], _precision(mutated))
        except AssertionError as difference:
            both_refuse = isinstance(ours, Exception) and isinstance(expected, Exception)
            told = change + (f": {ours}" if isinstance(ours, Exception) else "")
            if isinstance(expected, Exception):
                accident = _matching(ACCIDENTAL_TYPES if both_refuse else ACCIDENTAL_REFUSALS, op, str(expected))
            else:
                accident = _matching(ACCIDENTAL_ANSWERS, op, told)
            report.counts["error"] += 1
            if accident is None:
                report.differs("error", f"{describe(mutated)}, {change}: {first_words(difference)}")
            else:
                report.counts[accident] += 1
        else:
            report.counts["error"] += 1
        if isinstance(ours, Exception) and foreign(ours):
            report.differs("text", f"{describe(mutated)}, {change}: {first_words(ours)}")


def _compare_outcomes(op: Op, ours: list[Any], expected: list[Any], precision: float) -> None:
    """The same type of error, or the same results and the same values written."""
    from registry_compare import assert_close, first_words

    if isinstance(ours[0], Exception):
        assert type(ours[0]) is type(expected[0]), f"{first_words(ours[0])} instead of {_short(expected[0])}"
        return
    assert not isinstance(expected[0], Exception), f"no error instead of {first_words(expected[0])}"
    if not op.name.strip("_").startswith(UNDEFINED):
        compared = INVARIANTS.get(op.name, lambda results: results)
        if op.name in TIES:
            ours, expected = ([results[0][0]] for results in (ours, expected))
        assert_close(compared(ours), compared(expected), precision)


def _precision(sample: Any) -> float:
    """Roundings of float64 in one of the least precise tensor: what is computed of a float32 alone is rounded as one."""
    parts = {np.finfo(d).dtype.name for d in _dtypes(sample) if d.kind in "fc"}
    return float(np.finfo(np.float32).eps / np.finfo(np.float64).eps) if {"float32", "float64"} <= parts else 1.0


def _dtypes(x: Any) -> Iterator[np.dtype[Any]]:
    if isinstance(x, mt.Tensor):
        yield x._array.dtype
    elif isinstance(x, list | tuple):
        for v in x:
            yield from _dtypes(v)


# Words of NumPy, SciPy or Python itself about an operator's inner workings, which mean nothing to whoever called it.
FOREIGN_WORDS = re.compile(
    r"broadcast together|objects cannot be broadcast|could not (be )?broadcast|non-broadcastable|cannot reshape array|axes don't match|for axis|for array|"
    r"array element with a sequence|matmul: |input types|numpy|Cannot cast|used as indices must be|boolean index did not|zero-size array|"
    r"at least one array|input arrays? |attempt to get arg|ufunc|dtype\('|values to unpack|(tuple|list) index|subscriptable|has no len|"
    r"between instances|unsized|zip\(\) argument|division by zero|negative dimensions|truth value|NoneType|has no attribute|"
    r"slice indices|non-empty take|cannot convert|real number|positional argument|argument must be|keyword argument|core dimension|"
    r"einstein sum|cannot select an axis|repeated axis|unhashable|not iterable|out of bounds for (Python|int|uint)|Python int"
)


def foreign(error: Exception) -> bool:
    """Whether an error was not meant for the operator's caller: raised inside NumPy or SciPy, or in their words."""
    innermost = error.__traceback__
    while innermost is not None and innermost.tb_next is not None:
        innermost = innermost.tb_next
    where = "" if innermost is None else innermost.tb_frame.f_code.co_filename
    return bool(re.search(r"site-packages/(numpy|scipy)/", where) or FOREIGN_WORDS.search(str(error)))


def _matching(entries: list[Accident], op: Op, text: str) -> str | None:
    found = (what for names, texts, what in entries if re.fullmatch(names, op.name) and re.match(texts, text, re.DOTALL))
    return next((f"torch {what}" for what in found), None)


def _outcome(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except Exception as error:
        return error


def _short(x: Any) -> str:
    from registry_compare import first_words

    return first_words(x) if isinstance(x, Exception) else f"a {type(x).__name__}"


Change = Callable[[Any], Any]


def _changes(kind: str) -> dict[str, Change]:
    """Name → change of an argument of this type."""
    base = kind.rstrip("?")
    if base == "Tensor":
        return _TENSOR
    if base == "Tensor[]":
        return {name: lambda ts, f=f: _first_tensor(ts, f) for name, f in _TENSOR.items()} | {"none left": lambda ts: []}
    if base == "int":
        return {"far": lambda x: FAR, "far below": lambda x: -FAR}
    if base.startswith("int["):
        return {
            "far": lambda x: _first(x, FAR),
            "far below": lambda x: _first(x, -FAR),
            "longer": lambda x: [*x, 1] if isinstance(x, list | tuple) else None,
        }
    return {}


def _first_tensor(tensors: Any, change: Change) -> Any:
    changed = change(tensors[0]) if tensors else None
    return None if changed is None else [changed, *tensors[1:]]


def _first(x: Any, value: int) -> Any:
    return [value, *x[1:]] if isinstance(x, list | tuple) and x else None


def _tensor(change: Callable[[np.ndarray[Any, Any]], Any]) -> Change:
    def apply(t: Any) -> Any:
        array = change(t._array) if isinstance(t, mt.Tensor) else None  # a number in place of a tensor stays
        return None if array is None else mt.from_numpy(np.array(array))

    return apply


def _longer(a: np.ndarray[Any, Any]) -> Any:
    """Three more elements along the last dimension: broadcast with no other size."""
    return np.concatenate([a, a[..., :1], a[..., :1], a[..., :1]], axis=-1) if a.ndim and a.shape[-1] else None


_TENSOR: dict[str, Change] = {
    "longer": _tensor(_longer),
    "one dimension more": _tensor(lambda a: a[None]),
    "no dimensions": _tensor(lambda a: a.reshape(-1)[0] if a.ndim and a.size else None),
    "no elements": _tensor(lambda a: a[:0] if a.ndim and a.size else None),
    "bool": _tensor(lambda a: None if a.dtype == bool else a != 0),
    "int64": _tensor(lambda a: None if a.dtype == np.int64 else a.astype(np.int64)),
    "float64": _tensor(lambda a: None if a.dtype == np.float64 else a.astype(np.float64)),
    "complex64": _tensor(lambda a: None if a.dtype.kind == "c" else a.astype(np.complex64)),
}


def mutations(op: Op, sample: Sample) -> Iterator[tuple[str, Sample]]:
    """What was changed, and the sample with it: one argument at a time, and the dtype of all tensors."""
    for i, a in enumerate(op.schema.arguments):
        if sample[i] is None:
            continue
        for name, change in _changes(a.type).items():
            changed = change(sample[i])
            if changed is not None:
                yield f"{a.name} {name}", (*sample[:i], changed, *sample[i + 1 :])
    for name in ("bool", "int64", "complex64"):
        yield f"all {name}", tuple(_all(x, name) for x in sample)


def _all(x: Any, name: str) -> Any:
    """Floating tensors in another dtype."""
    if isinstance(x, mt.Tensor):
        return _TENSOR[name](x) if x.dtype.is_floating_point and name != x.dtype.name else x
    return [_all(v, name) for v in x] if isinstance(x, list | tuple) else x
