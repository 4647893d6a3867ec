"""PyTorch's own test files, run on this package: how many pass, and why the others do not. The table of docs/compatibility.md."""

from __future__ import annotations

__all__ = ["SUITES", "section"]

# By file of PyTorch's `test/`: of a fixed sample of up to 300 tests, those that pass under PyTorch and ran here; those of them that pass
# here; and what the others miss.
SUITES: dict[str, tuple[int, int, str]] = {
    "test_nn": (238, 238, ""),
    "nn/test_convolution": (93, 89, "a channels-last result of dilated convolutions with weights of another layout (2), a weight without dimensions, NNPACK"),
    "nn/test_dropout": (8, 8, ""),
    "nn/test_embedding": (64, 63, "the order of entries in the sum of two sparse gradients"),
    "nn/test_init": (44, 44, ""),
    "nn/test_lazy_modules": (56, 56, ""),
    "nn/test_load_state_dict": (29, 29, ""),
    "nn/test_module_hooks": (52, 50, "reading a view whose base was written after a hook's identity; a private dictionary of hooks"),
    "nn/test_multihead_attention": (12, 11, "a test that replaces the fast path's private function"),
    "nn/test_packed_sequence": (13, 13, ""),
    "nn/test_parametrization": (48, 45, "weights normalised in bfloat16 round otherwise (2), a parametrized wrapper subclass"),
    "nn/test_pooling": (72, 68, "strides of dimensions of one element (1), the format of volumes without a batch (2), a size that overflows"),
    "nn/test_pruning": (34, 34, ""),
    "test_modules": (256, 226, "`Tensor._cdata`, the address of a C++ object (19), a helper of FakeTensor (10), a text"),
    "test_optim": (260, 260, ""),
    "optim/test_optim": (22, 22, ""),
    "optim/test_lrscheduler": (30, 30, ""),
    "optim/test_swa_utils": (13, 13, ""),
    "test_dataloader": (132, 128, "a process that a private variable makes look like a worker (2), a private function that makes seeds (2)"),
    "test_masked": (55, 35, "reductions of sparse tensors whose result is sparse (14), the private `torch.masked._where` (6)"),
    "test_serialization": (110, 97, "PyTorch's C++ readers and writers of archives (7), numbers in `complex32` (2), zero tensors without memory (2), texts (2)"),
    "distributions/test_distributions": (94, 93, "a tangent of zeros for drawn numbers, which have none here"),
    "functorch/test_eager_transforms": (296, 264, "writes to captured tensors and returned inputs are not refused (9), higher-order operators by dispatch key (6), wrappers of `grad` that print (3), C++ functions of levels (4), custom Functions with keyword tensors and nested lists (4)"),
    "functorch/test_vmap": (264, 254, "texts of errors (4), time-outs of a slow machine (3), private names (2)"),
}  # fmt: skip


def section() -> str:
    """The part of the page."""
    total, passing = (sum(row[i] for row in SUITES.values()) for i in (0, 1))
    lines = [
        "\n## PyTorch's own tests\n\n",
        "PyTorch's test files, run with this package in the place of torch: a fixed sample of up to 300 tests of each file, without those for CUDA,\n"
        "TorchScript, compilation, quantized, nested and named tensors. Tests that fail under PyTorch here, too, are not counted.\n\n",
        f"**{passing} of {total} pass ({100 * passing // total}%).**\n\n",
        "| file | pass | of | what the others miss |\n|---|---|---|---|\n",
    ]
    lines += [f"| `{name}` | {ours} | {theirs} | {missing} |\n" for name, (theirs, ours, missing) in SUITES.items()]
    return "".join(lines)
