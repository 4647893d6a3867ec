"""Kernels that make fewer elements of many along dimensions, and running ones."""
