"""Helpers around tensors and modules."""

from . import dlpack, hooks
