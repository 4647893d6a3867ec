"""The modules of `torch.nn`."""

from __future__ import annotations

import sys

from . import (
    activation,
    adaptive,
    batchnorm,
    channelshuffle,
    container,
    conv,
    distance,
    dropout,
    flatten,
    fold,
    instancenorm,
    lazy,
    lazy_layers,
    linear,
    linear_cross_entropy_options,
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
    activation, adaptive, batchnorm, channelshuffle, container, conv, distance, dropout, flatten, fold, instancenorm, lazy_layers, linear,
    linear_cross_entropy_options, loss,
    normalization, padding, pixelshuffle, pooling, rnn, sparse, transformer, upsampling,
):  # fmt: skip
    globals().update({name: getattr(_module, name) for name in _module.__all__})
    __all__ += _module.__all__
# in torch they stand beside the layers that they become, where programs and pickles look for them
for _name in lazy_layers.__all__:
    _lazy = getattr(lazy_layers, _name)
    setattr(sys.modules[_lazy.__bases__[-1].__module__], _name, _lazy)
Module = module.Module
