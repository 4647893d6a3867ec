"""PyTorch's own test files, run on this package: how many pass, and why the others do not. The table of docs/compatibility.md."""

from __future__ import annotations

__all__ = ["SUITES", "section"]

# By file of PyTorch's `test/`: of a fixed sample of up to 300 tests, those that pass under PyTorch and ran here; those of them that pass
# here; and what the others miss.
SUITES: dict[str, tuple[int, int, str]] = {
    "profiler/test_profiler": (66, 26, "private modules that judge recordings and find patterns in them (13), switches, classes and methods of PyTorch's C++ (16), functions that other threads run when the recording begins, and threads that start later, which are recorded here (9), rows of `aten::empty`, ITT"),
    "profiler/test_profiler_tree": (6, 0, "trees of text, which have no compilation of operators and frames of the profiler itself, and rows that prepare memory inside of kernels"),
    "profiler/test_record_function": (7, 0, "data pipes (3), the Python dispatcher (2), an event logger of the compiler, arguments that a private function records"),
    "profiler/test_memory_profiler": (33, 2, "private methods and functions: categories and versions of tensors (22), `Tensor._cdata` (8); a timeline in text"),
    "profiler/test_execution_trace": (7, 5, "arguments that a private function records, a private attribute"),
    "profiler/test_torch_tidy": (15, 4, "fields of C++ structures about tensors, modules and optimizers (9), rows of `aten::empty` (2)"),
    "profiler/test_python_tracer": (1, 1, ""),
    "profiler/test_trace_validator": (2, 0, "checks of NCCL's metadata"),
    "test_autograd": (274, 237, "private functions of PyTorch's C++ and of `gradcheck` (10), sparse inputs of `gradcheck` (3), checks of views that nobody tracks without gradients (4), the layout of tangents (3), an accumulated gradient's memory and the order of hooks (3), texts (4)"),
    "test_torch": (287, 245, "copies on write, which are private (15), Python objects of storages that are brought back to life (8), storages of the meta device are of a subclass (6), arithmetic of `complex32` (2), names of C++ classes (4)"),
    "test_indexing": (115, 113, "an error for ranges in a list of indices, a time-out of a slow machine"),
    "test_view_ops": (157, 150, "quantized tensors (2), sparse complex views (2), a private helper, `split_copy(out=)`, a text"),
    "test_shape_ops": (50, 48, "`torch.Storage`, a text"),
    "test_reductions": (144, 135, "more than 64 dimensions (7), time-outs of a slow machine (2)"),
    "test_binary_ufuncs": (190, 189, "`x //= y` is not a method of its own"),
    "test_unary_ufuncs": (140, 139, "arithmetic of `complex32`"),
    "test_tensor_creation_ops": (99, 97, "`asarray` of NumPy's scalars without a copy, a time-out"),
    "test_type_promotion": (143, 138, "in-place sums and products of sparse and dense integers (3), arithmetic of `complex32` (2)"),
    "test_sort_and_select": (43, 43, ""),
    "test_scatter_gather_ops": (42, 42, ""),
    "test_numpy_interop": (30, 27, "comparison with complex scalars of NumPy, `torch.Storage`, zero tensors without memory"),
    "test_complex": (8, 8, ""),
    "test_linalg": (100, 86, "weights of 4 bits (11), time-outs of a slow machine (3)"),
    "test_spectral_ops": (119, 112, "a private helper (3), texts of warnings (4)"),
    "test_overrides": (60, 52, "an object that overrides functions among the sizes of `layer_norm`, `torch.mean` and `Tensor.mean` are one function here (3), objects that pass for tensors by giving the attributes of one (2), `torch.device` in a mode (2)"),
    "test_python_dispatch": (116, 76, "dispatch keys, their guards and the Python dispatcher (17), sizes, strides, devices and layouts that a subclass computes (9), higher-order operators and re-entrant dispatch (4), streams (2), names of C++ (3), the version of a wrapper, variants with `out` as overloads (2)"),
    "test_custom_ops": (224, 33, "tests generated for traced graphs and fake tensors (80), the deprecated `torch._custom_ops` (52), tests that end by reading its private registry, which is not here (35), dispatch keys, `get_kernel` and names of C++ (14), PyTorch's own checks of `OpOverload` (5)"),
    "test_foreach": (183, 179, "texts"),
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
    "test_masked": (55, 55, ""),
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
        "PyTorch's test files, run with this package in the place of torch: a fixed sample of up to 300 tests of each file (100 of the profiler's), without those for CUDA,\n"
        "TorchScript, compilation, quantized, nested and named tensors. Tests that fail under PyTorch here, too, are not counted.\n\n",
        f"**{passing} of {total} pass ({100 * passing // total}%).**\n\n",
        "| file | pass | of | what the others miss |\n|---|---|---|---|\n",
    ]
    lines += [f"| `{name}` | {ours} | {theirs} | {missing} |\n" for name, (theirs, ours, missing) in SUITES.items()]
    return "".join(lines)
