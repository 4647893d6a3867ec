"""Operators that would compute with the single zero behind a sparse tensor, because they are made of others or read arrays themselves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

from ..._dispatch import keys
from ..._memory_format import strided
from ..._tensor import Tensor, wrap
from ..._types import OptionalDevice, OptionalDType, OptionalLayout
from ..creation import constants, random  # noqa: F401 - declared first
from ..elementwise import comparison  # noqa: F401
from ..indexing import index as _index  # noqa: F401
from ..linalg import pseudo_inverse  # noqa: F401
from .construction import empty_coo
from .storage import kernel

__all__: list[str] = []

ALL = (keys.SPARSE, keys.SPARSE_COMPRESSED, keys.CPU | keys.SPARSE, keys.CPU | keys.SPARSE_COMPRESSED)
REFUSED = [
    ("index", "Tensor"), ("index_put_", "default"), ("_index_put_impl_", "default"), ("ones_like", "default"), ("full_like", "default"),
    ("rand_like", "default"), ("randn_like", "default"), ("randint_like", "default"), ("new_ones", "default"), ("new_full", "default"),
    ("new_empty_strided", "default"), ("normal", "Tensor_float"), ("isreal", "default"), ("linalg_lstsq", "default"),
]  # fmt: skip


def _refusal(name: str, overload: str) -> Callable[..., Any]:
    qualified = name if overload == "default" else f"{name}.{overload}"

    def refuse(*arguments: Any) -> NoReturn:
        layouts = sorted({str(a.layout) for a in arguments if isinstance(a, Tensor) and a._keys & keys.SPARSE_LAYOUTS})
        raise NotImplementedError(
            f"Could not run 'aten::{qualified}' with a tensor of layout {' and '.join(layouts)}; call to_dense() on it first"
        )

    return refuse


for _name, _overload in REFUSED:
    for _key in ALL:
        kernel(_name, _overload, key=_key)(_refusal(_name, _overload))


def _new(
    self: Tensor, size: Sequence[int], dtype: OptionalDType, layout: OptionalLayout, device: OptionalDevice, pin_memory: bool | None
) -> Tensor:
    """A sparse tensor without elements, or zeros if a dense one is asked for."""
    kind = dtype or self.dtype
    if layout is strided:
        return wrap(np.zeros(tuple(size), kind.np), kind)
    return empty_coo(list(size), kind)


for _name in ("new_zeros", "new_empty"):
    kernel(_name)(_new)
