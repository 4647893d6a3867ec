"""Samples made up from schemas, arguments as torch's, and what sets our registry apart from torch's."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch

import mindtorch_v2 as mt
from mindtorch_v2._dispatch.op import Op

# Operators that torch has no overload of, with the reason.
OURS: dict[str, str] = {}

# Operators whose values differ on purpose, with the reason.
DIFFERENT: dict[str, str] = {
    **dict.fromkeys(
        ("_linalg_eigh", "linalg_eigh", "linalg_eig", "_linalg_svd", "linalg_svd", "svd"), "signs and phases of vectors are free"
    ),
    **dict.fromkeys(("linalg_matrix_exp", "matrix_exp"), "large values in single precision: sums in another order"),
    "_convolution_double_backward": "torch computes the first gradient whether the mask asks for it or not",
    "_reshape_alias": "strides of the caller's, over memory that a copied sample does not have",
    **dict.fromkeys(("embedding_bag", "_embedding_bag"), "what is kept for backward only, of which torch leaves parts empty"),
}

# Operators of sparse tensors, which samples do not carry: compared in tests/mindtorch_v2/test_sparse.py.
SPARSE = frozenset(
    (
        "_coalesce _coalesced_ _indices _nnz _sparse_coo_tensor_with_dims_and_tensors _sparse_mm _to_dense _to_sparse _values coalesce dense_dim "
        "embedding_sparse_backward indices is_coalesced sparse_coo_tensor sparse_dim to_sparse values"
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


def to_torch(op: Op, sample: tuple[Any, ...], *, keywords: bool = False) -> Any:
    """A sample's arguments as torch's: positional ones, or those that are keyword-only."""
    pairs = list(zip(op.schema.arguments, sample, strict=True))
    if keywords:
        # None is left out: our factories take a generator in every overload, and torch's `randint` has a dtype by default
        return {a.name: _torch(v) for a, v in pairs if a.keyword_only and v is not None}
    return [_torch(_listed(a.type, v)) for a, v in pairs if not a.keyword_only]


def _listed(kind: str, value: Any) -> Any:
    """A number as the list it stands for: `int[2]` takes one number for both."""
    found = re.fullmatch(r"(?:int|SymInt|float)\[(\d*)\]\??", kind)
    return [value] * int(found[1] or 1) if found and isinstance(value, int | float) else value


def _torch(x: Any) -> Any:
    if isinstance(x, mt.Tensor):
        array = x._array.copy(order="K")
        if x.dtype is mt.bfloat16:
            return torch.from_numpy(array.view("int16")).view(torch.bfloat16)
        return torch.from_numpy(array)
    if isinstance(x, mt.dtype):
        return getattr(torch, x.name)
    if isinstance(x, mt.device):
        return torch.device(str(x))
    if type(x).__name__ in ("memory_format", "layout"):
        return getattr(torch, str(x).removeprefix("torch."))
    if isinstance(x, list | tuple):
        return [_torch(v) for v in x]
    return x
