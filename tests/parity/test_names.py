"""No public name is invented: what `torch` and `Tensor` have here, PyTorch has too."""

import types

import pytest

import mindtorch_v2 as mt

pytestmark = pytest.mark.parity

OURS = {"npu", "is_npu"}  # the device that PyTorch reaches through an extension
MODULES = ["", "Tensor", "nn.functional", "nn.init", "linalg", "fft", "special", "autograd", "nn", "optim", "nn.utils", "sparse"]


def _find(root, path):
    for part in path.split(".") if path else ():
        root = getattr(root, part)
    return root


def _own(module):
    """Public names, without what the module merely imports."""
    names = getattr(module, "__all__", None) or [n for n in dir(module) if not n.startswith("_")]
    return {
        n
        for n in names
        if not isinstance(getattr(module, n), types.ModuleType) and n not in ("Any", "annotations", "TYPE_CHECKING")
    }


@pytest.mark.parametrize("path", MODULES)
def test_every_public_name_is_torchs(path):
    import torch

    theirs = _find(torch, path)
    invented = sorted(n for n in _own(_find(mt, path)) - OURS if not hasattr(theirs, n))
    assert not invented


@pytest.mark.parametrize("path", ["linalg", "fft", "special", "nn.init", "signal.windows"])
def test_no_public_function_is_missing(path):
    import torch

    theirs = _find(torch, path)
    names = {n for n in dir(theirs) if not n.startswith("_") and callable(getattr(theirs, n))}
    names -= {"ParamSpec", "TypeVar", "Tensor", "Optional", "Literal", "TYPE_CHECKING"}
    assert sorted(n for n in names if not hasattr(_find(mt, path), n)) == []
