"""Operators that make, copy and convert tensors, and their values as Python's."""
