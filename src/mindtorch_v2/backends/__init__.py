"""torch.backends: which libraries compute, and their switches. NumPy and its BLAS do; those of PyTorch's builds are not there."""

from __future__ import annotations

from . import cpu, cuda, cudnn, mkl, mkldnn, mps, nnpack, openmp, opt_einsum, quantized

__all__ = ["cpu", "cuda", "cudnn", "mkl", "mkldnn", "mps", "nnpack", "openmp", "opt_einsum", "quantized"]

fp32_precision = "none"  # float32 is computed in float32
