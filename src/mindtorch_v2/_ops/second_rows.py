"""Operators that profiles show twice, one inside the other: ATen's functional or in-place variant calls the one with `out=`.

In-place variants show the functional name inside (`aten::abs_` over `aten::abs`).
"""

from __future__ import annotations

__all__ = ["CALLS_OUT"]

CALLS_OUT = frozenset(
    [
        "_conj_physical",
        "abs",
        "abs_",
        "addr_",
        "arange",
        "arange.start",
        "arange.start_step",
        "complex",
        "cummax",
        "cummin",
        "deg2rad",
        "eye",
        "eye.m",
        "frexp.Tensor",
        "hardtanh",
        "huber_loss_backward",
        "kthvalue",
        "linspace",
        "logical_and",
        "logical_and_",
        "logical_not",
        "logical_not_",
        "logical_or",
        "logical_or_",
        "logical_xor",
        "logical_xor_",
        "logit_",
        "logspace",
        "logsumexp",
        "median.dim",
        "mse_loss_backward",
        "mul_.Scalar",
        "mvlgamma",
        "nan_to_num",
        "nan_to_num_",
        "nanmedian.dim",
        "polar",
        "rad2deg",
        "randperm",
        "smooth_l1_loss_backward",
        "soft_margin_loss",
    ]
)
