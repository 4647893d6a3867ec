"""Operators of PyTorch's database that are not wholly right here, and why. A test fails when an entry is right after all."""

SPARSE = "sparse tensors are not part of the runtime"
JITERATOR = "jiterator compiles CUDA kernels"

KNOWN: dict[str, str] = {
    "jiterator_2inputs_2outputs": JITERATOR,
    "jiterator_4inputs_with_extra_args": JITERATOR,
    "jiterator_binary": JITERATOR,
    "jiterator_binary_return_by_ref": JITERATOR,
    "jiterator_unary": JITERATOR,
    "sparse_mm_reduce": SPARSE,
    "sparse_sampled_addmm": SPARSE,
    "to_sparse": SPARSE,
}
