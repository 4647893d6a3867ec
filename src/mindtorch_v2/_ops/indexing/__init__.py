"""Operators that read, write, sort or search elements by position."""
