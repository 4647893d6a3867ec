"""Which operators autocast casts the operands of, and to what: torch's lists for the CPU, by name and overload."""

from __future__ import annotations

from enum import Enum

from .._dispatch import dispatcher
from .._dispatch.op import Op
from .._dtype import dtype

__all__ = ["Policy", "concerns", "policy_of", "register", "unregister"]


class Policy(Enum):
    """What the operands are cast to."""

    LOWER = "the lower precision"
    FLOAT32 = "float32"
    PROMOTE = "float32 if one of them is, else the lower precision"


_LOWER = """
    conv1d conv1d.padding conv2d conv2d.padding conv3d conv3d.padding conv_tbc
    conv_transpose1d conv_transpose2d.input conv_transpose3d.input
    mm bmm matmul addmm addbmm baddbmm _addmm_activation linear linalg_vecdot
    prelu scaled_dot_product_attention _native_multi_head_attention mkldnn_rnn_layer
"""
_PROMOTE = "cat stack index_copy"
_FLOAT32 = """
    avg_pool3d adaptive_avg_pool3d adaptive_max_pool3d max_pool3d fractional_max_pool2d fractional_max_pool3d max_unpool2d max_unpool3d
    reflection_pad1d reflection_pad2d replication_pad1d replication_pad2d replication_pad3d
    grid_sampler grid_sampler_2d grid_sampler_3d _grid_sampler_2d_cpu_fallback
    binary_cross_entropy binary_cross_entropy_with_logits cosine_embedding_loss cross_entropy_loss ctc_loss.IntList ctc_loss.Tensor
    hinge_embedding_loss huber_loss kl_div l1_loss margin_ranking_loss mse_loss multi_margin_loss multilabel_margin_loss
    multilabel_margin_loss_forward nll_loss nll_loss2d poisson_nll_loss smooth_l1_loss soft_margin_loss triplet_margin_loss
    fft_fft fft_fft2 fft_fftn fft_hfft fft_ifft fft_ifft2 fft_ifftn fft_ihfft fft_irfft fft_irfft2 fft_irfftn fft_rfft fft_rfft2 fft_rfftn
    stft stft.center
    cholesky cholesky_inverse cholesky_solve geqrf inverse lu_solve _lu_with_info orgqr ormqr pinverse qr svd triangular_solve
    linalg_cholesky linalg_cholesky_ex linalg_cond linalg_cond.p_str linalg_eig linalg_eigh linalg_eigvals linalg_eigvalsh
    linalg_householder_product linalg_inv linalg_inv_ex linalg_lstsq linalg_matrix_rank linalg_matrix_rank.atol_rtol_float
    linalg_matrix_rank.atol_rtol_tensor linalg_matrix_rank.tol_tensor linalg_qr linalg_solve linalg_svd linalg_svdvals linalg_tensorinv
    linalg_tensorsolve
    cdist nanquantile nanquantile.scalar polar prod prod.dim_int quantile quantile.scalar trace view_as_complex
"""

_POLICIES: dict[str, Policy | dtype] = {
    f"aten::{name}": policy
    for names, policy in ((_LOWER, Policy.LOWER), (_FLOAT32, Policy.FLOAT32), (_PROMOTE, Policy.PROMOTE))
    for name in names.split()
}


def policy_of(op: Op) -> Policy | dtype:
    """What the operands of an operator in the lists are cast to: by a rule, or one dtype whatever autocast's is."""
    return _POLICIES[_full_name(op)]


def register(op: Op, cast_to: dtype) -> None:
    """Have the operands of an operator cast to a dtype in autocast."""
    _POLICIES[_full_name(op)] = cast_to
    dispatcher.invalidate(op)


def unregister(op: Op) -> None:
    """Take such a registration back."""
    _POLICIES.pop(_full_name(op), None)
    dispatcher.invalidate(op)


def concerns(op: Op) -> bool:
    """Whether an operator is in the lists."""
    return _full_name(op) in _POLICIES


def _full_name(op: Op) -> str:
    schema = op.schema
    return f"{schema.qualified_name}.{schema.overload}" if schema.overload else schema.qualified_name
