"""Operators whose `out=` must have the dtype of the result, and how they say so. The others convert where a cast is allowed."""

from __future__ import annotations

from ..._dtype import dtype
from ..._promotion import can_cast

__all__ = ["check_out_dtype"]

_EXACT = frozenset(
    """
    addmm addmv addbmm baddbmm bmm mm mv cross expand_copy diag diagonal_copy alias_copy isin lu_unpack lu_solve as_strided_copy
    avg_pool2d avg_pool3d linear view_copy permute_copy qr slice_scatter triangular_solve svd index_copy index_add index_reduce scatter
    scatter_add scatter_reduce unfold_copy squeeze_copy take_along_dim unsqueeze_copy transpose_copy tril triu t_copy narrow_copy
    linalg_cross linalg_det linalg_cholesky linalg_cholesky_ex linalg_eigh linalg_eigvalsh linalg_ldl_factor linalg_ldl_factor_ex
    linalg_ldl_solve linalg_matrix_power linalg_qr linalg_slogdet linalg_lu_factor linalg_lu_factor_ex linalg_lu linalg_lu_solve
    linalg_inv linalg_inv_ex linalg_solve linalg_solve_ex linalg_svd linalg_svdvals detach_copy select_copy slice_copy view_as_real_copy
    logsumexp_copy select_scatter diagonal_scatter inverse
    """.split()
)
_JOINING = frozenset("cat concat concatenate stack hstack vstack dstack column_stack row_stack _chunk_cat".split())
_MESSAGES = {
    **dict.fromkeys(
        "abs ceil conj_physical frac floor round sign sgn trunc neg softshrink hardshrink gelu softplus".split(),
        "Found dtype {out} but expected {result}",
    ),
    **dict.fromkeys("dot vdot matmul".split(), "result dtype {out} does not match input dtype {result}"),
    **dict.fromkeys("masked_select index_select".split(), "{name}(): self and result must have the same scalar type"),
    **dict.fromkeys("signbit isposinf isneginf".split(), "{name} does not support non-boolean outputs."),
    **dict.fromkeys(
        "tensordot".split(),
        "tensordot: Expected the output tensor to have dtype {result}, but got an output tensor with dtype {out}",
    ),
    **dict.fromkeys("norm linalg_norm".split(), "linalg.norm expected out tensor dtype {result} but got: {out}"),
    **dict.fromkeys(
        "native_batch_norm _native_batch_norm_legit log_sigmoid log_sigmoid_forward linalg_solve_triangular diff".split(),
        "expected scalar type {result} but found {out}",
    ),
    "linalg_matrix_norm": "linalg.matrix_norm expected out tensor dtype {result} but got: {out}",
    "linalg_vecdot": "linalg.vecdot: Expected out of dtype{result} but found {out}",
    "linalg_multi_dot": "multi_dot(): expected out tensor to have dtype {result_cpp} but got {out_cpp}",
    "frexp": "torch.frexp() expects mantissa to have dtype {result_cpp} but got {out_cpp}",
    "heaviside": "heaviside is not yet implemented for tensors with different dtypes.",
    "nan_to_num": "nan_to_num: dtype of out: {out} should be same as input: {result}",
    "nonzero": "nonzero: Expected out tensor to have scalar type Long but got scalar type{out}",
    "hash_tensor": "Expected result to be of dtype uint64, but got {out}",
    "ormqr": "torch.ormqr: Expected input and result to have the same dtype, but input has dtype{result} and result has dtype {out}",
    **dict.fromkeys("quantile nanquantile".split(), "quantile() out tensor must be same dtype as the input tensor"),
    "histogram": "torch.histogram: input tensor and hist tensor should have the same dtype, but got input {result_cpp} and hist {out_cpp}",
}


def check_out_dtype(name: str, tags: tuple[str, ...], result: dtype, out: dtype) -> None:
    """Refuse an `out=` of another dtype than the result where this operator does."""
    if result is out:
        return
    if name in _EXACT or "exact_out" in tags or "dtype_of_out" in tags:
        raise RuntimeError(f"Expected out tensor to have dtype {result.cpp_name}, but got {out.cpp_name} instead")
    if name in _JOINING and not can_cast(result, out):
        raise TypeError(f"torch.cat(): input types can't be cast to the desired output type {out.scalar_name}")
    message = _MESSAGES.get(name)
    if message is not None:
        names = {"result": result.scalar_name, "out": out.scalar_name, "result_cpp": result.cpp_name, "out_cpp": out.cpp_name}
        raise RuntimeError(message.format(name=name, **names))
