"""Writes docs/compatibility.md from a run of the operator database."""

from __future__ import annotations

import collections
from pathlib import Path
from typing import Any

import pytorch_suites
import surface
from known import KNOWN, SECOND_GRADIENTS

from mindtorch_v2._dispatch import registry
from mindtorch_v2._missing import NAMES, reason_for

__all__ = ["write_page"]

HEAD = """# Compatibility with PyTorch 2.13

This page is generated: `make coverage`.

## PyTorch's operator database

PyTorch's wheel carries sample and error inputs for its public operators (OpInfo). Each operator that takes float32 is called here by the same
public name with the same inputs. It is *wholly right* when every sample has torch's values (rtol and atol 1e-5), dtypes, shapes and
gradients (rtol 1e-4, atol 1e-5). For factorisations, transforms and convolutions, whose errors are those of sums that cancel, atol is
relative to the largest element of the result.

"""

DIFFERENCES = """
## Where we differ on purpose

| | PyTorch | here |
|---|---|---|
| `dropout` and `bernoulli_(p)` with a number on Intel processors | MKL's generator | the default generator, as PyTorch on other processors |
| sparse tensors | several layouts, most operators | coordinates and compressed rows, columns and blocks: conversions, arithmetic with dense tensors, products, sums, softmax, gradients; parts are checked unless a program switches that off; other operators refuse them by name |
| quantized and nested tensors | layouts of their own | not part of the runtime; refused where asked for |
| attention | a blocked kernel by default | its mathematical form, made of operators; the blocked kernel when `sdpa_kernel(FLASH_ATTENTION)` asks for it |
| `complex32`, 8-bit floating types | dtypes | NumPy has none; refused |
| operands of two layouts | the result follows the first | so it does for images and volumes once a channels-last format is used; otherwise it is contiguous |
| more than 64 dimensions | tensors have any number | refused: NumPy arrays have at most 64 |
| a copy or pickle of a conjugate | stays one | is computed |
| tensors inside `grad` and `jvp` | wrappers that print their level | plain tensors; inside `vmap`, batched ones that print as there |
| `functionalize` | rewrites a function for tracing | nothing is traced; refused |
| resizing a storage | all tensors on it see the new memory | the tensor that was resized does |
| kernels of one build (oneDNN, MKL, flash attention) | appear in profiles | the plain ATen operators appear; a layer of an LSTM is one operator as there, `mkldnn_rnn_layer`, computed by NumPy and BLAS |
| padding in a `TransformerEncoder` without gradients | left out, by nested tensors | masked, and zero in the result as there |
| `DataParallel`, `SyncBatchNorm` | several devices | one: they are the module alone |
| `torch.distributed` | backends for each device | "gloo" over TCP, in Python, with `DistributedDataParallel`; `send` does not wait for its `recv`; tensors and parameters spread over processes (`fsdp`, `tensor`) and `rpc` are refused |
| a copy or pickle of an `LBFGS` optimizer | cannot step | steps like the original |
| casts of weights in nested regions of autocast with two dtypes | one cast for both, so that products of the inner region raise | one for each dtype |
| table of a profile | the empty string when nothing ran | a table without rows; below every table, one line more: `Count: … events, Total: …` |
| Python functions in a profile | take their time away from the operator around them | inside an operator they have no self time: the operator's does not depend on them |
| `FunctionEvent.stack` | filled with `_ExperimentalConfig(verbose=True)` only | filled whenever `with_stack=True` |
"""


def write_page(path: str, outcomes: list[Any]) -> None:
    """Write the page: totals, what is not wholly right and why, and the list of operators."""
    right = [o for o in outcomes if o.right]
    lines = [HEAD]
    lines.append(f"**{len(right)} of {len(outcomes)} operators are wholly right.**\n")
    cases, wrong_type = sum(o.errors for o in outcomes), sum(len(o.error_failures) for o in outcomes)
    wrong_text = sum(len(o.message_failures) for o in outcomes)
    second = sorted(o.name for o in outcomes if o.gradgrad_failures)
    lines.append(
        f"Of {cases} error inputs, {cases - wrong_type} raise torch's exception type, {cases - wrong_type - wrong_text} of them with a text "
        f"that torch's own test accepts. Second gradients are right for all operators that are wholly right{' but those in the second table.' if second else '.'}\n"
    )
    rest = [o for o in outcomes if not o.right]
    if rest:
        lines.append("\n| not wholly right | why |\n|---|---|\n")
        lines += [f"| `{o.name}` | {KNOWN.get(o.name) or _cell(o.reason)} |\n" for o in rest]
    if second:
        lines.append("\n| second gradients beyond the tolerance | as measured against float64 |\n|---|---|\n")
        lines += [f"| `{name}` | {SECOND_GRADIENTS.get(name, '')} |\n" for name in second]
    lines.append(DIFFERENCES)
    lines.append(pytorch_suites.section())
    lines.append(surface.section([surface.compare(namespace) for namespace in surface.NAMESPACES]))
    lines.append(missing_names())
    lines.append(_operators())
    Path(path).write_text("".join(lines))


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def missing_names() -> str:
    """What PyTorch has and this package has not, by reason."""
    import mindtorch_v2

    by_reason: dict[str, list[str]] = collections.defaultdict(list)
    for path, names in NAMES.items():
        module: Any = mindtorch_v2
        for part in path.split(".") if path else ():
            module = getattr(module, part)
        for name in sorted(names):
            if not hasattr(module, name):
                full = f"{path}.{name}" if path else name
                by_reason[reason_for(full)].append(full)
    lines = [
        "\n## Names that are missing\n\nAsking for one of these raises an error with the reason. [Running programs](running-programs.md) says what is there.\n\n"
    ]
    lines.append("| names of PyTorch, behind `torch.` | why they are not here |\n|---|---|\n")
    lines += [
        f"| {' '.join(f'`{n}`' for n in names)} | {reason} |\n"
        for reason, names in sorted(by_reason.items(), key=lambda item: -len(item[1]))
    ]
    return "".join(lines)


def _operators() -> str:
    names: dict[str, list[str]] = collections.defaultdict(list)
    total = 0
    for op in registry.all_ops():
        if op.schema.namespace == "aten":
            names[op.name].append(op.overload_name)
            total += 1
    listed = " ".join(f"`{n}`" for n in sorted(names))
    return f"\n## Every operator\n\n{len(names)} names, {total} overloads.\n\n{listed}\n"
