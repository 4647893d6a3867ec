"""Timings side by side with PyTorch, in one process, one thread each. `python -m benchmarks` runs them all."""
