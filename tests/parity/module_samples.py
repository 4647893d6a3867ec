"""Ways to make and call every module of `torch.nn`: PyTorch's own table, and rows for the modules that it leaves out."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import torch
from torch.testing._internal.common_modules import module_db

import mindtorch_v2 as mt

__all__ = ["NAMES", "REST", "WITHOUT_CALL", "leaves", "samples", "translated"]

# Modules that other tests cover or that have nothing to call: containers, bases, and those whose first call makes their weights.
WITHOUT_CALL = {
    "AdaptiveLogSoftmaxWithLoss", "Container", "LazyBatchNorm1d", "LazyBatchNorm2d", "LazyBatchNorm3d", "LazyInstanceNorm1d",
    "LazyInstanceNorm2d", "LazyInstanceNorm3d", "LazyLinear", "LinearCrossEntropyOptions", "Module", "ModuleDict", "ModuleList",
    "ParameterDict", "ParameterList", "RNNBase", "RNNCellBase", "Sequential", "SyncBatchNorm",
}  # fmt: skip


def _normal(*shape: int) -> torch.Tensor:
    return torch.randn(shape, dtype=torch.float64, requires_grad=True)


def _pooled(n: int) -> tuple[torch.Tensor, torch.Tensor]:
    pool = getattr(torch.nn, f"MaxPool{n}d")(2, return_indices=True)
    values, indices = pool(_normal(2, 3, *[4] * n))
    return values.detach().requires_grad_(), indices


# by name: (arguments, options, inputs) of modules that are not in PyTorch's table
REST: dict[str, list[tuple[tuple[Any, ...], dict[str, Any], Any]]] = {
    "AlphaDropout": [((), {}, lambda: [_normal(4, 3)]), ((0.3,), {"inplace": False}, lambda: [_normal(4, 3)])],
    "ChannelShuffle": [((2,), {}, lambda: [_normal(2, 4, 3, 3)])],
    "CosineSimilarity": [((), {}, lambda: [_normal(4, 3), _normal(4, 3)]), ((0, 1e-3), {}, lambda: [_normal(4, 3), _normal(4, 3)])],
    "CrossMapLRN2d": [((2,), {"alpha": 1e-2}, lambda: [_normal(2, 5, 3, 3)])],
    "Dropout": [((), {}, lambda: [_normal(4, 3)]), ((0.1,), {}, lambda: [_normal(4, 3)])],
    "Dropout1d": [((), {}, lambda: [_normal(2, 4, 3)]), ((0.1,), {}, lambda: [_normal(4, 3)])],
    "Dropout2d": [((), {}, lambda: [_normal(2, 4, 3, 3)])],
    "Dropout3d": [((), {}, lambda: [_normal(2, 4, 3, 3, 3)]), ((0.2,), {}, lambda: [_normal(4, 3, 3, 3)])],
    "EmbeddingBag": [
        ((5, 3), {"mode": mode, "include_last_offset": last, "padding_idx": pad, "max_norm": norm, "dtype": torch.float64},
         lambda last=last: [torch.tensor([1, 2, 4, 0, 2]), torch.tensor([0, 2, 5] if last else [0, 2])])
        for mode in ("sum", "mean", "max") for last in (False, True) for pad in (None, 2) for norm in (None, 1.0)
    ],
    "FeatureAlphaDropout": [((), {}, lambda: [_normal(4, 3, 2)])],
    "Flatten": [((), {}, lambda: [_normal(2, 3, 4)]), ((0, 1), {}, lambda: [_normal(2, 3, 4)])],
    "Fold": [(((4, 5), (2, 2)), {}, lambda: [_normal(2, 12, 12)]), (((4, 5), 2), {"stride": 2, "padding": (0, 1)}, lambda: [_normal(8, 6)])],
    "Hardsigmoid": [((), {}, lambda: [_normal(4, 3)])],
    "Identity": [((1, "x"), {"y": 2}, lambda: [_normal(4, 3)])],
    "MaxUnpool1d": [((2,), {}, lambda: _pooled(1))],
    "MaxUnpool2d": [((2,), {"stride": 2}, lambda: _pooled(2))],
    "MaxUnpool3d": [((2,), {}, lambda: _pooled(3))],
    "NLLLoss2d": [((), {}, lambda: [_normal(2, 3, 2, 2), torch.randint(3, (2, 2, 2))])],
    "PairwiseDistance": [((), {}, lambda: [_normal(4, 3), _normal(4, 3)]), ((1.0,), {"keepdim": True}, lambda: [_normal(4, 3), _normal(3)])],
    "PixelShuffle": [((2,), {}, lambda: [_normal(2, 8, 3, 2)])],
    "PixelUnshuffle": [((2,), {}, lambda: [_normal(2, 3, 4, 2)])],
    "RReLU": [((), {}, lambda: [_normal(4, 3)]), ((0.2, 0.4), {}, lambda: [_normal(4, 3)])],
    "TransformerDecoder": [
        ((torch.nn.TransformerDecoderLayer(4, 2, 8, 0.0, dtype=torch.float64), 2), {}, lambda: [_normal(3, 2, 4), _normal(5, 2, 4)]),
    ],
    "TripletMarginLoss": [
        ((), {"swap": swap, "p": p, "reduction": reduction}, lambda: [_normal(4, 3), _normal(4, 3), _normal(4, 3)])
        for swap in (False, True) for p in (1.0, 2.0) for reduction in ("mean", "sum", "none")
    ],
    "TripletMarginWithDistanceLoss": [((), {"swap": True, "margin": 2.0}, lambda: [_normal(4, 3), _normal(4, 3), _normal(4, 3)])],
    "Unflatten": [((1, (2, 3)), {}, lambda: [_normal(2, 6, 2)]), ((-1, torch.Size([2, 1])), {}, lambda: [_normal(2, 2)])],
    "Unfold": [((2,), {}, lambda: [_normal(2, 3, 4, 4)]), (((2, 3),), {"dilation": 2, "padding": 1, "stride": (1, 2)}, lambda: [_normal(2, 3, 5, 6)])],
    "Upsample": [
        ((), {"scale_factor": scale, "mode": mode, **extra}, lambda n=n: [_normal(2, 3, *[4] * n)])
        for n, mode, extra in [
            (1, "nearest", {}), (2, "nearest-exact", {}), (3, "nearest", {}), (1, "linear", {"align_corners": True}),
            (2, "bilinear", {"align_corners": False}), (2, "bicubic", {}), (3, "trilinear", {"recompute_scale_factor": True}),
        ]
        for scale in (2, 1.5)
    ],
    "UpsamplingBilinear2d": [(((5, 6),), {}, lambda: [_normal(2, 3, 4, 4)])],
    "UpsamplingNearest2d": [((), {"scale_factor": 2}, lambda: [_normal(2, 3, 4, 4)])],
}  # fmt: skip

_INFOS = {info.module_cls.__name__: info for info in module_db}
NAMES = sorted({*_INFOS, *REST})


def samples(name: str, training: bool) -> Iterator[tuple[tuple[Any, ...], dict[str, Any], tuple[Any, ...], dict[str, Any]]]:
    """Arguments and options of the module, then those of a call of it, as torch's."""
    torch.manual_seed(0)
    if name in REST:
        for args, options, inputs in REST[name]:
            yield args, options, tuple(inputs()), {}
        return
    info = _INFOS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = info.module_inputs_func(info, device="cpu", dtype=torch.float64, requires_grad=True, training=training)
        for sample in found:
            made, called = sample.constructor_input, sample.forward_input
            if any(isinstance(v, torch.nn.LinearCrossEntropyOptions) for v in (*made.args, *made.kwargs.values())):
                continue  # a computation in chunks is refused
            yield made.args, made.kwargs, called.args, called.kwargs


def leaves(x: Any) -> Any:
    """The same inputs, each tensor a leaf of its own graph."""
    if isinstance(x, torch.Tensor):
        return x.detach().clone().requires_grad_(x.requires_grad)
    if isinstance(x, dict):
        return {key: leaves(value) for key, value in x.items()}
    return type(x)(map(leaves, x)) if isinstance(x, list | tuple) else x


def translated(x: Any) -> Any:
    """The same value, with this package's tensors, dtypes, modules and functions for torch's."""
    if isinstance(x, torch.Tensor):
        return mt.from_numpy(x.detach().numpy().copy()).requires_grad_(x.requires_grad)
    if isinstance(x, torch.nn.Module):
        return _module(x)
    if isinstance(x, torch.dtype):
        return getattr(mt, str(x).removeprefix("torch."))
    if isinstance(x, torch.device):
        return mt.device(str(x))
    if isinstance(x, torch.Size):
        return mt.Size(x)
    if isinstance(x, dict):
        return {key: translated(value) for key, value in x.items()}
    if isinstance(x, list | tuple):
        return type(x)(map(translated, x))
    if callable(x) and getattr(torch.nn.functional, x.__name__, None) is x:
        return getattr(mt.nn.functional, x.__name__)
    return x


def _module(x: torch.nn.Module) -> Any:
    """A layer of a transformer with the same weights and options."""
    attention = x.self_attn
    made = getattr(mt.nn, type(x).__name__)(
        attention.embed_dim, attention.num_heads, x.linear1.out_features, x.dropout.p,
        activation=translated(x.activation), layer_norm_eps=x.norm1.eps, batch_first=attention.batch_first, norm_first=x.norm_first,
        bias=x.linear1.bias is not None, dtype=translated(x.linear1.weight.dtype),
    )  # fmt: skip
    made.load_state_dict({key: translated(value.detach()) for key, value in x.state_dict().items()})
    return made.train(x.training)
