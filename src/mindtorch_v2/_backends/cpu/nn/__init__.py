"""Kernels of neural networks: convolutions, normalisations, activations, losses."""
