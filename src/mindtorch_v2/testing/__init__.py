"""torch.testing: comparing results with what is expected, and tensors to try things with."""

from __future__ import annotations

from .._file_check import FileCheck
from . import _utils
from ._closeness import assert_allclose, assert_close
from ._samples import make_tensor

__all__ = ["FileCheck", "assert_allclose", "assert_close", "make_tensor"]
