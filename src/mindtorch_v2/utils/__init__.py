"""Helpers around tensors and modules."""

from typing import Any

from . import backend_registration, cpp_backtrace, deterministic, dlpack, hooks, throughput_benchmark, weak
from ._swapping import swap_tensors
from .backend_registration import generate_methods_for_privateuse1_backend, rename_privateuse1_backend
from .cpp_backtrace import get_cpp_backtrace
from .throughput_benchmark import ThroughputBenchmark


def set_module(obj: Any, mod: str) -> None:
    """Say in which module a function or class is, for its repr."""
    if not isinstance(mod, str):
        raise TypeError("The mod argument should be a string")
    obj.__module__ = mod
