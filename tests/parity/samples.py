"""Samples made up from schemas, arguments as torch's, and what sets our registry apart from torch's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch

import mindtorch_v2 as mt
from mindtorch_v2._dispatch.op import Op

# Operators that torch has no overload of, with the reason.
OURS: dict[str, str] = {}


def _eigen(results: Any) -> Any:
    """Eigenvalues, and a function of the matrix that vectors give whatever their signs and phases are."""
    (values, vectors), *rest = results
    if not vectors.numel():
        return [values, *rest]
    return [values, (vectors * values.sin().unsqueeze(-2)) @ vectors.mH, *rest]


def _general_eigen(results: Any) -> Any:
    (values, vectors), *rest = results
    return [values, (vectors * values.sin().unsqueeze(-2)) @ vectors.inverse(), *rest] if vectors.numel() else [values, *rest]


def _singular(results: Any) -> Any:
    """Singular values, and a function of the matrix that is the same for every choice of vectors."""
    (u, s, vh), *rest = results
    k = s.shape[-1]
    if not u.numel() or not vh.numel():
        return [s, *rest]
    return [s, (u[..., :k] * s.sin().unsqueeze(-2)) @ vh[..., :k, :], *rest]


def _old_singular(results: Any) -> Any:
    (u, s, v), *rest = results
    return _singular([(u, s, v.mH), *rest])


def _bags(results: Any) -> Any:
    """The embeddings alone: the other results are for backward, and torch leaves parts of them empty."""
    return [results[0][0], *results[1:]]


def _without_workspace(results: Any) -> Any:
    """The outputs and the state: the last result is memory for the backward pass, which each library uses as it likes."""
    return [results[0][:3], *results[1:]]


# Operators whose results torch leaves a choice in → what of [results, written arguments] is determined.
INVARIANTS: dict[str, Callable[[Any], Any]] = {
    **dict.fromkeys(("_linalg_eigh", "linalg_eigh"), _eigen),
    "linalg_eig": _general_eigen,
    **dict.fromkeys(("_linalg_svd", "linalg_svd"), _singular),
    "svd": _old_singular,
    **dict.fromkeys(("embedding_bag", "_embedding_bag"), _bags),
    "mkldnn_rnn_layer": _without_workspace,
}
# Operators that take such memory of their own library.
OPAQUE = ("mkldnn_rnn_layer_backward",)
# Operators that no machine without an accelerator runs.
OF_ACCELERATORS = ("_pin_memory", "pin_memory")

# Operators of sparse tensors, which samples do not carry: compared in tests/parity/test_sparse.py and test_rare_operators.py.
SPARSE = frozenset(
    (
        "_coalesce _coalesced_ _gather_sparse_backward _indices _nnz _sparse_addmm _sparse_compressed_tensor_unsafe "
        "_sparse_coo_tensor_unsafe _sparse_coo_tensor_with_dims_and_tensors _sparse_log_softmax _sparse_log_softmax_backward_data "
        "_sparse_mm _sparse_softmax _sparse_softmax_backward_data _sparse_sparse_matmul _sparse_sum _sparse_sum_backward _to_dense "
        "_to_sparse _to_sparse_bsc _to_sparse_bsr _to_sparse_csc _to_sparse_csr _values ccol_indices coalesce col_indices crow_indices "
        "dense_dim embedding_sparse_backward indices is_coalesced resize_as_sparse_ row_indices sparse_coo_tensor sparse_dim "
        "sparse_mask sparse_resize_ sparse_resize_and_clear_ sparse_sampled_addmm to_sparse to_sparse_bsc to_sparse_bsr to_sparse_csc "
        "to_sparse_csr values ccol_indices_copy col_indices_copy crow_indices_copy hspmm indices_copy row_indices_copy smm sspaddmm values_copy"
    ).split()
)

# Drawn from a generator, or whatever the memory held: values are compared elsewhere.
UNDEFINED = ("empty", "new_empty", "resize", "_fused_dropout", "native_dropout", "record_stream")

_SHAPE = (3, 3)


def _tensors(kind: str) -> Callable[..., Any]:
    """A source of small tensors of one kind, the same at each call of this function."""
    rng = np.random.default_rng(0)
    make = {
        "float": lambda shape: rng.standard_normal(shape).astype(np.float32),
        "positive": lambda shape: rng.uniform(0.1, 0.9, shape).astype(np.float32),
        "int": lambda shape: rng.integers(1, 5, shape),
        "index": lambda shape: rng.integers(0, 2, shape),
        "bool": lambda shape: rng.random(shape) > 0.5,
    }[kind]
    return lambda shape=_SHAPE: mt.from_numpy(np.asarray(make(shape)))


def generated(op: Op) -> Iterator[tuple[Any, ...]]:
    """Arguments made up from the schema: small tensors of several kinds, and plain numbers."""
    for kind in ("float", "positive", "int", "index", "bool"):
        for scalar in (2, 0.5):
            for keep_defaults in (True, False):
                tensor = _tensors(kind)
                yield tuple(_argument(a, tensor, scalar, keep_defaults) for a in op.schema.arguments)


def _argument(a: Any, tensor: Callable[..., Any], scalar: float, keep_default: bool) -> Any:
    kind = a.type.rstrip("?")
    if a.has_default and (keep_default or kind not in ("Tensor", "Scalar", "float")):
        return a.default
    if kind == "Tensor":
        return tensor(()) if a.name in ("scalar", "value", "end") else tensor()
    if kind.startswith("Tensor"):
        return [tensor(), tensor((2,))]
    if kind.startswith(("Scalar[", "float[")):
        return [0.5, 2.0]
    if kind.startswith("int["):
        return [1, 0]
    return {"Scalar": scalar, "float": 0.5, "int": 1, "bool": False, "str": "sum"}.get(kind)


def torch_overload(op: Op) -> Any:
    """torch's overload of the same name, or None."""
    packet = getattr(torch.ops.aten, op.name, None)
    return None if packet is None else getattr(packet, op.overload_name, None)
