"""Operators: the recorder inside every recorded call, what it was called with, and the keys that switch it on."""
