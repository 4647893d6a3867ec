"""Distinct elements, membership, and positions in sorted sequences."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ... import _checks, _dtype
from ..._backends.cpu.indexing import unique as kernels
from ..._backends.cpu.machinery.dtype_rules import refuse
from ..._backends.cpu.machinery.dtypes import scalar_name
from ..._tensor import Tensor
from ..machinery.declare import not_implemented, op, public
from ..machinery.lookup import aten

if TYPE_CHECKING:
    from ..._types import Number, TensorOrTensors

Array = np.ndarray[Any, Any]
THREE = "(Tensor, Tensor, Tensor)"

_unique = op(
    "_unique(Tensor self, bool sorted=True, bool return_inverse=False) -> (Tensor, Tensor)",
    cpu=lambda self, return_inverse: kernels.unique(self, return_inverse, False)[:2],
    tags=("data_dependent",),
    variants="function",
)
_unique2 = op(
    f"_unique2(Tensor self, bool sorted=True, bool return_inverse=False, bool return_counts=False) -> {THREE}",
    cpu=lambda self, return_inverse, return_counts: kernels.unique(self, return_inverse, return_counts),
    tags=("data_dependent",),
    variants="function",
    grad={"self": not_implemented("_unique2")},
    nondifferentiable=("result1", "result2"),
)
unique_dim = op(
    f"unique_dim(Tensor self, int dim, bool sorted=True, bool return_inverse=False, bool return_counts=False) -> {THREE}",
    cpu=lambda self, dim: kernels.unique_dim(self, _dim_with_elements(self, dim)),
    tags=("data_dependent",),
    variants="",
    grad={"self": not_implemented("unique_dim")},
    nondifferentiable=("result1", "result2"),
    refuses=("unique_dim", "c"),
)
_unique_consecutive = op(
    f"unique_consecutive(Tensor self, bool return_inverse=False, bool return_counts=False, int? dim=None) -> {THREE}",
    cpu=lambda self, dim, return_inverse, return_counts: kernels.unique_consecutive(
        self, None if dim is None else _dim_with_elements(self, dim), return_inverse, return_counts
    ),
    tags=("data_dependent",),
    grad={"self": not_implemented("unique_consecutive")},
    nondifferentiable=("result1", "result2"),
    refuses=("unique", "c"),
)
unique_dim_consecutive = op(
    f"unique_dim_consecutive(Tensor self, int dim, bool return_inverse=False, bool return_counts=False) -> {THREE}",
    cpu=lambda self, dim, return_inverse, return_counts: kernels.unique_consecutive(
        self, _dim_with_elements(self, dim), return_inverse, return_counts
    ),
    tags=("data_dependent",),
    variants="",
    grad={"self": not_implemented("unique_dim_consecutive")},
    nondifferentiable=("result1", "result2"),
    refuses=("unique_dim", "c"),
)


def _dim_with_elements(self: Array, dim: int) -> int:
    dim = _checks.wrap_dim(dim, self.ndim)
    if self.shape.count(0) > 1:
        raise RuntimeError("Number of zero sized dimensions is more than one, so unique cannot be applied ")
    if 0 in self.shape and self.shape[dim]:
        raise RuntimeError("There are 0 sized dimensions, and they aren't selected, so unique cannot be applied")
    return dim


def _chosen(results: tuple[Tensor, ...], return_inverse: bool, return_counts: bool) -> TensorOrTensors:
    values, inverse, counts = results
    if return_inverse and return_counts:
        return values, inverse, counts
    if return_inverse:
        return values, inverse
    return (values, counts) if return_counts else values


@public()
def unique(
    input: Tensor,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> TensorOrTensors:
    """The distinct elements, or the distinct slices along a dimension, in ascending order."""
    if dim is None:
        found = _unique2(input, sorted, return_inverse, return_counts)
    else:
        found = unique_dim(input, dim, sorted, return_inverse, return_counts)
    return _chosen(found, return_inverse, return_counts)


@public()
def unique_consecutive(
    input: Tensor,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> TensorOrTensors:
    """The elements without immediate repetitions."""
    return _chosen(_unique_consecutive(input, return_inverse, return_counts, dim), return_inverse, return_counts)


# --- membership -----------------------------------------------------------------------------------------------------


def _check_members(*dtypes: Any) -> None:
    for d in dtypes:
        if d.kind in "bc":
            raise RuntimeError(f"Unsupported input type encountered for isin(): {_dtype.FROM_NUMPY[d].scalar_name}")


def _is_number(elements: Tensor, number: Number, invert: bool) -> Tensor:
    """Return a mask of the elements that are the number; or the other way round, of the numbers that are among the elements."""
    _check_members(elements.dtype.np)
    return elements != number if invert else elements == number


def _isin(elements: Array, test_elements: Array, assume_unique: bool, invert: bool) -> Array:
    _check_members(elements.dtype, test_elements.dtype)
    found = np.isin(kernels.orderable(elements), kernels.orderable(test_elements), assume_unique=assume_unique, invert=invert)
    return np.asarray(found).reshape(elements.shape)


isin = op(
    "isin.Tensor_Tensor(Tensor elements, Tensor test_elements, *, bool assume_unique=False, bool invert=False) -> Tensor",
    cpu=_isin,
    tags=("nondifferentiable",),
    variants="function",
)
isin_scalar = op(
    "isin.Tensor_Scalar(Tensor elements, Scalar test_element, *, bool assume_unique=False, bool invert=False) -> Tensor",
    composite=lambda elements, test_element, assume_unique, invert: _is_number(elements, test_element, invert),
    variants="function",
)
isin_of_scalar = op(
    "isin.Scalar_Tensor(Scalar element, Tensor test_elements, *, bool assume_unique=False, bool invert=False) -> Tensor",
    composite=lambda element, test_elements, assume_unique, invert: isin(
        aten.scalar_tensor(element, device=test_elements.device), test_elements, assume_unique=assume_unique, invert=invert
    ),
    variants="function",
    tags=("transparent",),
)

# --- positions ------------------------------------------------------------------------------------------------------

_SEARCH = "*, bool out_int32=False, bool right=False, str? side=None, Tensor? sorter=None) -> Tensor"


def _searchsorted(
    sorted_sequence: Array, self: Array, out_int32: bool, right: bool, side: str | None, sorter: Array | None
) -> Array:
    if side is not None and side not in ("left", "right"):
        raise RuntimeError(f"torch.searchsorted(): side can only be 'left' or 'right' but got {side}")
    if right and side == "left":
        raise RuntimeError("torch.searchsorted(): side and right can't be set to opposites, got side of left while right was True")
    _check_sequence(sorted_sequence, self, sorter)
    _check_ordered(sorted_sequence, self)
    return kernels.search(sorted_sequence, self, right or side == "right", np.int32 if out_int32 else np.int64, sorter)


def _check_ordered(sequence: Array, values: Array) -> None:
    for operand in (sequence, values) if values.size else ():
        refuse("searchsorted_out_cpu", operand, "bc" if sequence.dtype == values.dtype else "c")


def _check_sequence(sequence: Array, values: Array, sorter: Array | None) -> None:
    if sequence.ndim == 0:
        raise RuntimeError("torch.searchsorted(): boundaries tensor should have positive dimension, but got 0 dimension")
    if values.ndim == 0 and sequence.ndim != 1:
        raise RuntimeError(
            "torch.searchsorted(): input value can be a scalar only when boundaries tensor dimension is 1, but we got boundaries tensor "
            f"dim({sequence.ndim}) and input value's dim({values.ndim}) numel({values.size})"
        )
    if sequence.ndim > 1 and sequence.shape[:-1] != values.shape[:-1]:
        raise RuntimeError(
            "torch.searchsorted(): boundaries tensor should be 1 dimension or the first N-1 dimensions of boundaries tensor and input value "
            f"tensor must match, but we got boundaries tensor {list(sequence.shape)} and input value tensor {list(values.shape)}"
        )
    if sorter is not None:
        if sorter.shape != sequence.shape:
            raise RuntimeError(
                "torch.searchsorted(): boundary and sorter must have the same size, but got boundary tensor "
                f"{list(sequence.shape)}and got sorter tensor {list(sorter.shape)}"
            )
        if sorter.dtype != np.int64:
            raise RuntimeError(f"torch.searchsorted(): sorter must be a tensor of long dtype but got dtype {scalar_name(sorter)}")
        if sorter.size and (sorter.min() < 0 or sorter.max() >= sequence.shape[-1]):
            raise RuntimeError("torch.searchsorted(): sorter index out of range")


searchsorted = op(
    f"searchsorted.Tensor(Tensor sorted_sequence, Tensor self, {_SEARCH}",
    cpu=_searchsorted,
    tags=("nondifferentiable", "exact_out"),
    variants="function",
)


def _number_among(number: Number, sequence: Array) -> Array:
    """The number in the dtype of the sequence, unless it is of a higher category."""
    category = _dtype.FROM_NUMPY[sequence.dtype].category
    return np.asarray(number, sequence.dtype if category >= _dtype.of_scalar(number).category else None)


searchsorted_scalar = op(
    f"searchsorted.Scalar(Tensor sorted_sequence, Scalar self, {_SEARCH}",
    cpu=lambda sorted_sequence, self, out_int32, right, side, sorter: _searchsorted(
        sorted_sequence, _number_among(self, sorted_sequence), out_int32, right, side, sorter
    ),
    tags=("nondifferentiable",),
    variants="function",
)


def _bucketize(self: Array, boundaries: Array, out_int32: bool, right: bool) -> Array:
    if boundaries.ndim != 1:
        raise RuntimeError(f"boundaries tensor must be 1 dimension, but got dim({boundaries.ndim})")
    _check_ordered(boundaries, self)
    return kernels.search(boundaries, self, right, np.int32 if out_int32 else np.int64, None)


bucketize = op(
    "bucketize.Tensor(Tensor self, Tensor boundaries, *, bool out_int32=False, bool right=False) -> Tensor",
    cpu=_bucketize,
    tags=("nondifferentiable", "exact_out"),
    variants="function",
)
bucketize_scalar = op(
    "bucketize.Scalar(Scalar self, Tensor boundaries, *, bool out_int32=False, bool right=False) -> Tensor",
    cpu=lambda self, boundaries, out_int32, right: _bucketize(np.asarray(self), boundaries, out_int32, right),
    tags=("nondifferentiable",),
    variants="function",
)
