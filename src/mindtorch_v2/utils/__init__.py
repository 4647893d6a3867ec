"""Helpers around tensors and modules."""

from . import deterministic, dlpack, hooks, weak
from ._swapping import swap_tensors
