"""What each operator is: declarations, grouped by subject. Importing this package registers them all."""

from . import activation, matmul, pointwise, shape
