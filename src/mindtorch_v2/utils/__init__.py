"""Helpers around tensors and modules."""

from . import hooks
