"""Sparse tensors: coordinates and values (COO), and rows or columns in compressed form (CSR, CSC and their blocks).

Operators without a kernel for a sparse layout refuse it.
"""
