"""The modules of `torch.nn`."""

from __future__ import annotations

from . import (
    activation,
    batchnorm,
    channelshuffle,
    container,
    conv,
    distance,
    dropout,
    flatten,
    fold,
    instancenorm,
    linear,
    loss,
    module,
    normalization,
    padding,
    pixelshuffle,
    pooling,
    rnn,
    sparse,
    transformer,
    upsampling,
)

__all__ = ["Module"]
for _module in (
    activation, batchnorm, channelshuffle, container, conv, distance, dropout, flatten, fold, instancenorm, linear, loss,
    normalization, padding, pixelshuffle, pooling, rnn, sparse, transformer, upsampling,
):  # fmt: skip
    globals().update({name: getattr(_module, name) for name in _module.__all__})
    __all__ += _module.__all__
Module = module.Module
