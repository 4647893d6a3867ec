"""Maps between sets, with inverses and the logarithms of their Jacobian determinants."""

from __future__ import annotations

from ._transform import Transform, _InverseTransform
from ._transforms_of_numbers import (
    AbsTransform,
    AffineTransform,
    CumulativeDistributionTransform,
    ExpTransform,
    PowerTransform,
    SigmoidTransform,
    SoftplusTransform,
    TanhTransform,
)
from ._transforms_of_parts import CatTransform, ComposeTransform, IndependentTransform, StackTransform, identity_transform
from ._transforms_of_vectors import (
    CorrCholeskyTransform,
    LowerCholeskyTransform,
    PositiveDefiniteTransform,
    ReshapeTransform,
    SoftmaxTransform,
    StickBreakingTransform,
)

__all__ = [
    "AbsTransform", "AffineTransform", "CatTransform", "ComposeTransform", "CorrCholeskyTransform", "CumulativeDistributionTransform",
    "ExpTransform", "IndependentTransform", "LowerCholeskyTransform", "PositiveDefiniteTransform", "PowerTransform",
    "ReshapeTransform", "SigmoidTransform", "SoftmaxTransform", "SoftplusTransform", "StackTransform", "StickBreakingTransform",
    "TanhTransform", "Transform", "identity_transform",
]  # fmt: skip

for _class in (_InverseTransform, *(c for c in map(globals().get, __all__) if isinstance(c, type))):
    _class.__module__ = __name__  # pickles name them by this module, as torch's do
