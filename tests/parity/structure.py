"""The operators a call runs, as parent-child pairs: each by its library's profiler."""

from __future__ import annotations

import collections
import functools
from collections.abc import Callable
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile

import mindtorch_v2 as mt
from mindtorch_v2._dispatch import keys, registry

__all__ = ["compare", "ours", "theirs"]

# Rows of memory and conversion, which need not be imitated, wherever they are; nothing below them counts either.
BOOKKEEPING = {
    "aten::" + name
    for name in (
        "empty empty_like empty_strided new_empty resize_ resize_as_ as_strided as_strided_ to _to_copy copy_ resolve_conj resolve_neg detach detach_ item "
        "_local_scalar_dense "
        # an input made contiguous for a kernel, here read as it is
        "contiguous "
        # what the Python layer's torch.tensor leaves behind; an alias instead of a copy, as conjugates are lazy only there
        "lift_fresh alias "
        # questions about dtypes and libraries, which are attributes here
        "result_type is_same_size _nnpack_available cudnn_is_acceptable "
        # where ATen's formula keeps a tensor to expand to, ours keeps its shape
        "expand expand_as"
    ).split()
}

# Rows that an operator makes inside its kernel: outputs sized and filled, parts of arguments selected and viewed. They count where
# the operator is a composite here too, and are left out where it is a kernel of this package, which does that work in NumPy.
KERNELS_OWN = {
    "aten::" + name
    for name in (
        "fill_ zero_ zeros zeros_like clone select narrow slice view reshape permute squeeze squeeze_ unsqueeze unsqueeze_ "
        "view_as view_as_real scalar_tensor transpose transpose_ mT mH real"
    ).split()
}

# Composites here because they serve every device, while what they do on the CPU is one NumPy call.
KERNELS_OVER_TENSORS = {"aten::" + name for name in "arange eye linspace index _index_put_impl_ randperm".split()}

# ATen's kernels take the samples of a batch one by one, see weights as matrices, and clear what they then write, by operators:
# here samples are taken many at once, matrices are NumPy's, and nothing is cleared that is overwritten.
KERNELS_OF_CONVOLUTIONS = {("aten::convolution_backward", "aten::" + name) for name in "select view zero_".split()}

# One view here, two in ATen.
ONE_VIEW = {("aten::t", "aten::transpose"), ("aten::t_", "aten::transpose_")}

# Kernels that are one piece here, while torch's call operators for parts of their work: what those show inside is left out.
# Nothing is recorded here that did not run.
ONE_KERNEL = {
    "aten::" + name
    for name in (
        # a lower limit of zero; a sum and a quotient; a copy that is then written; memory that is then drawn into; windows that are copied into
        "relu mean masked_fill rand randn randint repeat "
        # the norm of one element is its size, which is an operator there; the size of the result and the signs are found by operators there
        "linalg_vector_norm repeat_interleave "
        # a helper that writes to empty results there; the variant with `out=` of another operator there
        "cummax cummin _conj_physical "
        # positions start from an arange there; NumPy's argsort makes its own
        "sort "
        # sorted with positions there; values only here unless the positions are asked for
        "_unique _unique2 "
        # the number of results is counted by a sum there
        "masked_select "
        # the checks of the probabilities and the drawing are one kernel
        "multinomial "
        # a mean of their own for all elements; the gradient of the bias; the sums share passes over the data here
        "std var native_batch_norm_backward "
        # by scatter_add_ for some shapes there; counts for means by operators there
        "index_add index_add_ scatter_reduce "
        # NumPy's `isin` looks integers up in a table, where ATen's sorts
        "isin "
        # compares the pivots with their bounds by operators there
        "linalg_lu_solve "
        # LAPACK's wrappers in NumPy and SciPy: they clear triangles and raise errors themselves
        "linalg_cholesky_ex linalg_qr _linalg_svd _linalg_eigh linalg_eig _linalg_eigvals linalg_matrix_exp "
        # bins are found and counted by NumPy; there, counts of threads are summed
        "bincount histc histogram "
        # offsets become bags by index_add_ and cumsum there
        "_embedding_bag _embedding_bag_forward_only _embedding_bag_dense_backward _embedding_bag_backward "
        "_embedding_bag_per_sample_weights_backward "
        # LAPACK's wrappers again, which raise errors and clear triangles themselves; pivots are compared with their bounds by NumPy
        "cholesky cholesky_inverse _cholesky_solve_helper linalg_ldl_factor_ex linalg_ldl_solve linalg_lstsq "
        # products of batches are added up by a loop of addmm_ there, by one product of matrices here
        "addbmm "
        # edges and densities are made of linspace, diff, sum and div_ there; NumPy gives both at once
        "_histogramdd_bin_edges _histogramdd_from_bin_cts _histogramdd_from_bin_tensors "
        # targets and lengths are compared with their bounds by operators there, in the kernel here
        "multilabel_margin_loss_forward multilabel_margin_loss_backward segment_reduce "
        # what is not to be included is overwritten by index_fill_ there, and means are counted by operators
        "index_reduce index_reduce_ "
        # positions come from an arange there; slices of NumPy here
        "unfold_backward "
        # the bias is added as a product with ones there; nearest positions are weighted by ones there
        "slow_conv_transpose3d upsample_nearest1d _upsample_nearest_exact1d "
        # filled by full_like there before the recursion; NumPy's arrays of the recursion here
        "_ctc_loss_backward "
        # coordinates and values are found by operators there, by NumPy here
        "_to_sparse"
    ).split()
}

Pairs = collections.Counter[tuple[str, str]]


@functools.cache
def _is_kernel(name: str) -> bool:
    """Whether an operator, or an overload of it, is a kernel of this package on the CPU."""
    return name in KERNELS_OVER_TENSORS or any(
        o.composite is None or keys.CPU in o.kernels or keys.CPU in o.array_kernels for o in registry.overloads(name).values()
    )


def _pairs(events: list[tuple[str, int, int]]) -> Pairs:
    """Parents and children from intervals, with the rows left out that need not be imitated."""
    found: Pairs = collections.Counter()
    stack: list[tuple[str, int, bool]] = []  # name, end, left out
    for name, start, end in sorted(events, key=lambda e: (e[1], -e[2])):
        while stack and stack[-1][1] <= start:
            stack.pop()
        parent = next((n for n, _, left_out in reversed(stack) if not left_out), "")
        left_out = (
            bool(stack and stack[-1][2])
            or name in BOOKKEEPING
            or (name in KERNELS_OWN and _is_kernel(parent))
            or (parent, name) in KERNELS_OF_CONVOLUTIONS
            or (parent, name) in ONE_VIEW
        )
        # torch: many functional and in-place variants call the one with `out=`, which shows as a second row of the functional name
        out_variant = name == parent.rstrip("_") and parent
        if not left_out and not out_variant and not any(n in ONE_KERNEL for n, _, _ in stack):
            found[parent, name] += 1
        stack.append((name, end, left_out))
    return found


def ours(call: Callable[[], Any]) -> Pairs:
    call()
    with mt.profiler.profile() as prof:
        call()
    return _pairs([(e["name"], e["start_ns"], e["end_ns"]) for e in prof.events() if e["name"].startswith("aten::")])


def theirs(call: Callable[[], Any]) -> Pairs:
    call()
    with profile(activities=[ProfilerActivity.CPU]) as prof:
        call()
    events = [(e.name, e.time_range.start, e.time_range.end) for e in prof.events() if e.name.startswith("aten::")]
    return _pairs([(n, int(s * 1000), int(t * 1000)) for n, s, t in events])


def compare(make: Callable[[Any], Callable[[], Any]], mine: Any) -> tuple[Pairs, Pairs]:
    """(pairs that only torch has, pairs that only we have) for a call made with each library."""
    with torch.backends.mkldnn.flags(enabled=False), mine.backends.mkldnn.flags(enabled=False):
        a, b = ours(make(mine)), theirs(make(torch))
    return b - a, a - b
