"""Products of groups of matrices."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..._dtype import int32
from ..._ops.machinery.lookup import aten
from ..._tensor import Tensor

if TYPE_CHECKING:
    from ..._types import OptionalDType

__all__ = ["grouped_mm"]


def grouped_mm(
    mat_a: Tensor, mat_b: Tensor, *, offs: Tensor | None = None, bias: Tensor | None = None, out_dtype: OptionalDType = None
) -> Tensor:
    """Products of matrices of which some share a dimension: `offs` holds where each group ends along it."""
    if bias is not None:
        raise RuntimeError("Bias not supported yet")
    if out_dtype is not None and out_dtype is not mat_a.dtype:
        raise RuntimeError("Grouped gemm output dtype must match `mat_a` dtype")
    batched = mat_a.dim() == mat_b.dim() == 3
    if batched != (offs is None):
        raise RuntimeError("Have to provide offsets if there is a 2d matrix, or no offset if both matrices are 3d")
    if offs is None:
        return mat_a.bmm(mat_b)
    if offs.dtype is not int32:
        raise RuntimeError("Offsets have to be int32")
    ends = offs._array.tolist()
    spans = list(zip([0, *ends[:-1]], ends, strict=True))
    if mat_a.dim() == 2 and mat_b.dim() == 2:
        return aten.stack([mat_a[:, i:j].mm(mat_b[i:j]) for i, j in spans])
    if mat_a.dim() == 2:
        return aten.cat([mat_a[i:j].mm(mat_b[g]) for g, (i, j) in enumerate(spans)])
    return aten.cat([mat_a[g].mm(mat_b[:, i:j]) for g, (i, j) in enumerate(spans)], 1)
