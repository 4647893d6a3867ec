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
from .blas import threaded
from .parallel import split_function, split_ufunc

__all__ = ["split"]

Array = np.ndarray[Any, Any]
Kernel = Callable[..., Any]


def split(op: Op, kernel: Kernel) -> Kernel:
    """The kernel as it is called where an argument is large."""
    if op.pointwise is not None:
        return split_ufunc(kernel) if isinstance(kernel, np.ufunc) else split_function(kernel)
    products = _PRODUCTS.get(op.name.rstrip("_"))
    return kernel if products is None else threaded(kernel, products)


def _of_two(a: Array, b: Array) -> int:
    """The terms of a product."""
    return a.size * b.shape[-1] if b.ndim > 1 else 0  # with a vector it is bound by memory


def _of_third(a: Array, b: Array, c: Array, *_: Any) -> int:
    return _of_two(b, c)


def _of_largest(*arguments: Any) -> int:
    """Of a convolution or a factorisation, about: a product of the largest array with another that has as many places to a row."""
    return max(a.size for a in arguments if isinstance(a, np.ndarray)) * 64


# The terms of the products that operators call BLAS for.
_PRODUCTS: dict[str, Callable[..., int]] = {
    "mm": _of_two,
    "bmm": _of_two,
    **dict.fromkeys(["addmm", "baddbmm", "addbmm"], _of_third),
    **dict.fromkeys(
        "_slow_conv2d_forward slow_conv3d_forward slow_conv_dilated2d slow_conv_dilated3d slow_conv_transpose3d conv_tbc "
        "_scaled_dot_product_flash_attention_for_cpu _scaled_dot_product_flash_attention_for_cpu_backward "
        "linalg_cholesky_ex cholesky cholesky_inverse _cholesky_solve_helper linalg_solve_triangular triangular_solve linalg_lu_factor_ex "
        "linalg_lu_solve _linalg_eigh linalg_eig _linalg_eigvals _linalg_svd linalg_qr geqrf linalg_householder_product ormqr linalg_ldl_factor_ex "
        "linalg_ldl_solve linalg_matrix_exp _cdist_forward".split(),
        _of_largest,
    ),
}


def _concerned(op: Op) -> bool:
    """Whether a call with a large tensor runs a function of its own. It says of its result whether it is large, too."""
    return get_num_threads() > 1 and keys.CPU in op.array_kernels and not op.schema.is_view


dispatcher.limit_key(keys.LARGE, _concerned)
on_change(dispatcher.look_up_anew)
