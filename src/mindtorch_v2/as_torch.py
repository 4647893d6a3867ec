"""`import mindtorch_v2.as_torch`, and `import torch` means this package from then on: here and in processes that are started later."""

from __future__ import annotations

from ._launch.children import answer_torch

answer_torch()
