"""Kernels of matrix products and linear algebra."""
