"""Kernels of views, padding and repetition."""
