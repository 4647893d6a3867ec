"""Operators that give elements another shape, order or frame."""
