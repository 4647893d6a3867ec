"""NumPy kernels, and the adapter that turns a kernel over arrays into one over tensors."""
