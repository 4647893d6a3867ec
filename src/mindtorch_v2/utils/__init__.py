"""Helpers around tensors and modules."""
