"""What all kernels are called through: the adapter, dtypes, promotion, errors, memory layouts."""
