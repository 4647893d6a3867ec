"""What each operator is: declarations, grouped by subject. Importing this package registers them all."""

from . import (
    activation,
    loss,
    matmul,
    normalization,
    pointwise,
    shape,
)
