"""torch.utils.tensorboard without the package that it writes with."""

import importlib
import sys

import pytest


def test_without_tensorboard_it_says_so(monkeypatch):
    for name in [n for n in sys.modules if n.startswith(("mindtorch_v2.utils.tensorboard", "tensorboard"))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "tensorboard", None)
    with pytest.raises(ImportError, match="needs the package tensorboard; install it with pip"):
        importlib.import_module("mindtorch_v2.utils.tensorboard")
