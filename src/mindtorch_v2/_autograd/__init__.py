"""Reverse-mode differentiation: what the Autograd key adds to a call, the graph it builds, and the engine that walks it."""

from . import autograd_key, inference, leaf
