"""Operators of neural networks: convolutions, normalisations, activations, losses."""
