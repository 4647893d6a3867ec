"""Which operators' kernels are split over threads, and along what; `parallel` says when and into how many parts.

A call with a large tensor among its arguments has the key LARGE in its key set, and a function of its own that calls the split kernel. Others
have nothing of it, not even a question.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...._dispatch import dispatcher, keys
from ...._dispatch.op import Op
from ...._threads import get_num_threads, on_change
from ..creation.copying import clone_large
from .blas import LARGE_PRODUCT, threaded
from .gathering import split_cat, split_gather, split_index_select
from .parallel import split_function, split_in_place, split_ufunc
from .rows import (
    before_dim,
    before_images,
    before_matrices,
    before_normalized,
    before_volumes,
    split_associative,
    split_channels,
    split_mean,
    split_reduction,
    split_rows,
    split_samples,
)

__all__ = ["split"]

Array = np.ndarray[Any, Any]
Kernel = Callable[..., Any]


def split(op: Op, kernel: Kernel) -> Kernel:
    """The kernel as it is called where an argument is large."""
    if op.pointwise is not None:
        return split_ufunc(kernel) if isinstance(kernel, np.ufunc) else split_function(kernel)
    products = _PRODUCTS.get(op.name.rstrip("_"))
    if products is not None:
        return threaded(kernel, products)
    how = _HOW.get(f"{op.name}.{op.schema.overload}") or _HOW.get(op.name)
    return kernel if how is None else how(kernel)


def _of_two(a: Array, b: Array) -> int:
    """The terms of a product."""
    return a.size * b.shape[-1] if b.ndim > 1 else 0  # with a vector it is bound by memory


def _of_third(a: Array, b: Array, c: Array, *_: Any) -> int:
    return _of_two(b, c)


def _of_largest(*arguments: Any) -> int:
    """Of a convolution or a factorisation, about: a product of the largest array with another that has as many places to a row."""
    return max(a.size for a in arguments if isinstance(a, np.ndarray)) * 256


# The terms of the products that operators call BLAS for.
_PRODUCTS: dict[str, Callable[..., int]] = {
    "mm": _of_two,
    **dict.fromkeys(["addmm", "baddbmm", "addbmm"], _of_third),
    **dict.fromkeys(
        "conv_tbc "
        "_scaled_dot_product_flash_attention_for_cpu _scaled_dot_product_flash_attention_for_cpu_backward "
        "linalg_cholesky_ex cholesky cholesky_inverse _cholesky_solve_helper linalg_solve_triangular triangular_solve linalg_lu_factor_ex "
        "linalg_lu_solve _linalg_eigh linalg_eig _linalg_eigvals _linalg_svd linalg_qr geqrf linalg_householder_product ormqr linalg_ldl_factor_ex "
        "linalg_ldl_solve linalg_matrix_exp _cdist_forward".split(),
        _of_largest,
    ),
}


def _split_batch(kernel: Kernel) -> Kernel:
    """Products of a batch: each on as many threads as BLAS has, or if they are small, some on each."""
    together = threaded(kernel, _of_two)
    apart = split_rows(kernel, ("self", "mat2"), before_matrices, ns=1.0, strided=True)
    return lambda self, mat2: (apart if self.ndim == 3 and _of_two(self[:1], mat2) < LARGE_PRODUCT else together)(self, mat2)


def _elementwise(kernel: Kernel) -> Kernel:
    return split_function(kernel, ns=0.4)


def _in_place(kernel: Kernel) -> Kernel:
    return split_in_place(kernel, ns=0.2)


def _along(*arrays: str, ns: float) -> Callable[[Kernel], Kernel]:
    return lambda kernel: split_rows(kernel, arrays, before_dim, ns=ns)


def _reducing(combine: np.ufunc) -> Callable[[Kernel], Kernel]:
    return lambda kernel: split_reduction(kernel, combine, ns=0.07)


def _of_images(*arrays: str, ns: float) -> Callable[[Kernel], Kernel]:
    return lambda kernel: split_rows(kernel, arrays, before_images, ns=ns)


def _of_volumes(*arrays: str, ns: float) -> Callable[[Kernel], Kernel]:
    return lambda kernel: split_rows(kernel, arrays, before_volumes, ns=ns)


def _of_all(kernel: Kernel) -> Kernel:
    return split_associative(kernel, ns=0.06)


# How kernels are split that are not declared pointwise, with what an element of four bytes takes on one thread, in nanoseconds.
_HOW: dict[str, Callable[[Kernel], Kernel]] = {
    **dict.fromkeys(
        "where masked_fill lerp clamp clamp_min clamp_max relu heaviside angle log_sigmoid_backward".split(), _elementwise
    ),
    **dict.fromkeys("lerp_ clamp_ clamp_min_ clamp_max_ addcmul_ addcdiv_ mul_ masked_fill_ copy_ fill_ zero_".split(), _in_place),
    **dict.fromkeys(["sum.", "max.", "min.", "any.", "all."], _of_all),
    "mean.": lambda kernel: split_mean(kernel, ns=0.06),
    "sum.dim_IntList": _reducing(np.add),
    "amax": _reducing(np.maximum),
    "amin": _reducing(np.minimum),
    **dict.fromkeys(["any.dim", "any.dims"], _reducing(np.logical_or)),
    **dict.fromkeys(["all.dim", "all.dims"], _reducing(np.logical_and)),
    **dict.fromkeys(["mean.dim", "prod.dim_int"], _along("self", ns=0.07)),
    **dict.fromkeys(["max.dim", "min.dim", "argmax", "argmin", "cumsum", "cumprod", "linalg_vector_norm"], _along("self", ns=0.25)),
    **dict.fromkeys(["var.correction", "std.correction", "var_mean.correction", "std_mean.correction"], _along("self", ns=0.8)),
    **dict.fromkeys(["sort", "sort.stable", "topk", "kthvalue", "median.dim"], _along("self", ns=20.0)),
    **dict.fromkeys(["_softmax", "_log_softmax"], _along("self", ns=0.9)),
    **dict.fromkeys(["_softmax_backward_data", "_log_softmax_backward_data"], _along("grad_output", "output", ns=1.0)),
    "native_layer_norm": lambda kernel: split_rows(kernel, ("input",), before_normalized, ns=0.7),
    "native_layer_norm_backward": lambda kernel: split_rows(
        kernel, ("grad_out", "input", "mean", "rstd"), before_normalized, ns=2.0, summed=(1, 2)
    ),
    "native_batch_norm": lambda kernel: split_channels(
        kernel, ("input",), ("weight", "bias", "running_mean", "running_var"), ns=1.0
    ),
    "native_batch_norm_backward": lambda kernel: split_channels(
        kernel, ("grad_out", "input"), ("weight", "running_mean", "running_var", "save_mean", "save_invstd"), ns=1.5
    ),
    "max_pool2d_with_indices": _of_images("self", ns=2.0),
    "max_pool2d_with_indices_backward": _of_images("self", "grad_output", "indices", ns=2.0),
    "avg_pool2d": _of_images("self", ns=1.0),
    "avg_pool2d_backward": _of_images("self", "grad_output", ns=1.0),
    "max_pool3d_with_indices": _of_volumes("self", ns=2.0),
    "max_pool3d_with_indices_backward": _of_volumes("self", "grad_output", "indices", ns=2.0),
    "avg_pool3d": _of_volumes("self", ns=1.0),
    "avg_pool3d_backward": _of_volumes("self", "grad_output", ns=1.0),
    "native_group_norm": lambda kernel: split_samples(kernel, ("input",), count="N", ns=1.0),
    "native_group_norm_backward": lambda kernel: split_samples(
        kernel, ("input", "grad_out", "mean", "rstd"), count="N", ns=2.0, summed=True
    ),
    "cat": split_cat,
    "gather": split_gather,
    "index_select": split_index_select,
    "bmm": _split_batch,
    "clone": lambda kernel: clone_large,
}


def _concerned(op: Op) -> bool:
    """Whether a call with a large tensor runs a function of its own. It says of its result whether it is large, too."""
    return get_num_threads() > 1 and keys.CPU in op.array_kernels and not op.schema.is_view


dispatcher.limit_key(keys.LARGE, _concerned)
on_change(dispatcher.look_up_anew)
