"""Operators of PyTorch's database that are not wholly right here, and why. A test fails when an entry is right after all."""

SPARSE = "takes compressed sparse tensors, which samples do not carry; tests/parity/test_sparse.py compares it"
NOISE = "a row of one element, whose gradient is zero: torch returns rounding noise (-2.7e-5, -1.1e-4)"
CHUNKS = "linear_cross_entropy(options=…) asks for a computation in chunks, which there is not; it is refused"
JITERATOR = "jiterator compiles CUDA kernels"

KNOWN: dict[str, str] = {
    "_batch_norm_with_update": "the variant that only exported graphs call; batch_norm runs native_batch_norm",
    "chalf": "complex numbers of half precision have no NumPy type",
    "native_layer_norm": NOISE,
    "nn_functional_layer_norm": NOISE,
    "nn_functional_linear_cross_entropy_chunked": CHUNKS,
    "nn_functional_linear_cross_entropy_chunked_none": CHUNKS,
    "nn_functional_scaled_dot_product_attention": "computed by operators; torch's blocked kernel rounds otherwise (one element by 1.05e-5)",
    "jiterator_2inputs_2outputs": JITERATOR,
    "jiterator_4inputs_with_extra_args": JITERATOR,
    "jiterator_binary": JITERATOR,
    "jiterator_binary_return_by_ref": JITERATOR,
    "jiterator_unary": JITERATOR,
    "sparse_mm_reduce": SPARSE,
    "sparse_sampled_addmm": SPARSE,
}

# Those whose second gradients differ by more than the tolerance in float32, as measured against float64.
SECOND_GRADIENTS: dict[str, str] = {
    "cov": "one gradient of weights is zero, the sum of terms that cancel: 7e-4 here, and zero by torch's rounding. Over 300 random "
    "inputs of each of four shapes our errors are 0.78 to 1.02 times torch's (geometric means)",
    "nn_functional_normalize": "a norm over one element, whose second gradient is zero: -6e-5 here and -9e-5 in torch, of terms that "
    "cancel. Over 300 random inputs our errors are 0.91 and 0.79 times torch's (geometric means)",
    "nn_functional_scaled_dot_product_attention": "elements that are small beside the largest, of 77 to 219, in five samples. The largest "
    "error is smaller here in 33 of 64 gradients, and in torch in 12",
    "special_log_ndtr": "torch is further off: by up to 3.7e-4, and 1.1e-4 here",
}
