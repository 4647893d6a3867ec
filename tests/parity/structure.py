"""The operators a call runs, as parent-child pairs: ours by the recording layer, torch's by its profiler."""

from __future__ import annotations

import collections
from collections.abc import Callable
from typing import Any

import torch
from benchmarks.recording import recording
from torch.profiler import ProfilerActivity, profile

__all__ = ["compare", "ours", "theirs"]

# torch's bookkeeping: rows that its kernels and composites make for themselves, which need not be imitated.
BOOKKEEPING = {
    "aten::" + name
    for name in (
        "empty empty_like empty_strided as_strided as_strided_ resolve_conj resolve_neg detach detach_ to _to_copy copy_ item "
        "_local_scalar_dense lift_fresh view reshape _reshape_alias expand expand_as transpose unsqueeze squeeze select narrow slice "
        "contiguous clone alias resize_ set_ result_type scalar_tensor zeros zero_ fill_ ones_like zeros_like new_empty new_zeros "
        "permute view_as is_nonzero _nnpack_available cudnn_is_acceptable _has_compatible_shallow_copy_type new_empty_strided t broadcast_tensors "
        "movedim flatten unflatten "
        # results of reductions reshaped in place, outputs sized, checks that raise later, transposes for LAPACK, comparisons of shapes
        "unsqueeze_ squeeze_ resize_as_ _assert_async mT mH transpose_ is_same_size can_cast new_ones real view_as_real"
    ).split()
}

# Kernels that are one piece here, while torch's call operators for parts of their work: what those show inside is left out.
# Nothing is recorded here that did not run.
ONE_KERNEL = {
    "aten::" + name
    for name in (
        "sort masked_select std var multinomial native_batch_norm_backward index_add index_add_ linalg_cholesky_ex linalg_inv_ex "
        "_linalg_solve_ex linalg_lu_solve _linalg_svd _linalg_eigh linalg_qr _linalg_check_errors"
    ).split()
}

Pairs = collections.Counter[tuple[str, str]]


def _pairs(events: list[tuple[str, int, int]]) -> Pairs:
    """Parents and children from intervals, with bookkeeping rows left out."""
    found: Pairs = collections.Counter()
    stack: list[tuple[str, int]] = []
    for name, start, end in sorted(events, key=lambda e: (e[1], -e[2])):
        while stack and stack[-1][1] <= start:
            stack.pop()
        parent = next((n for n, _ in reversed(stack) if n not in BOOKKEEPING), "")
        # torch: many functional and in-place variants call the one with `out=`, which shows as a second row of the functional name
        out_variant = name == parent.rstrip("_") and parent
        if name not in BOOKKEEPING and not out_variant and not any(n in ONE_KERNEL for n, _ in stack):
            found[parent, name] += 1
        stack.append((name, end))
    return found


def ours(call: Callable[[], Any]) -> Pairs:
    call()
    with recording() as events:
        call()
    return _pairs(list(events))


def theirs(call: Callable[[], Any]) -> Pairs:
    call()
    with profile(activities=[ProfilerActivity.CPU]) as prof:
        call()
    events = [(e.name, e.time_range.start, e.time_range.end) for e in prof.events() if e.name.startswith("aten::")]
    return _pairs([(n, int(s * 1000), int(t * 1000)) for n, s, t in events])


def compare(make: Callable[[Any], Callable[[], Any]], mine: Any) -> tuple[Pairs, Pairs]:
    """(pairs that only torch has, pairs that only we have) for a call made with each library."""
    with torch.backends.mkldnn.flags(enabled=False):
        a, b = ours(make(mine)), theirs(make(torch))
    return b - a, a - b
