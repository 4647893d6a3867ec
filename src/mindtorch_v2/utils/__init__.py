"""Helpers around tensors and modules."""

from . import dlpack, hooks, weak
from ._swapping import swap_tensors
