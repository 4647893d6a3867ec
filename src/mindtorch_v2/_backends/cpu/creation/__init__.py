"""Kernels that copy and fill arrays, and draw random numbers."""
