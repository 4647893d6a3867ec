"""Execution traces: every operator with its tensors, written as text while it runs."""
