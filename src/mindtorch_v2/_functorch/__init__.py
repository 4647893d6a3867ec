"""torch._functorch: the transforms of `torch.func` under the names that the package `functorch` and libraries import."""
