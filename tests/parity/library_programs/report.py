"""Prints what a program computed, for another process to compare."""

import json

import torch


def show(**results):
    """One line for each result: its name, its type and its numbers."""
    for name, value in results.items():
        print("RESULT", json.dumps([name, *plain(value)]))


def plain(value):
    if isinstance(value, torch.Tensor):
        value = value.detach().double() if value.is_floating_point() else value
        return ["tensor", list(value.shape), value.flatten().tolist()]
    if isinstance(value, (list, tuple)):
        return ["list", [len(value)], [float(v) if not isinstance(v, (str, bool)) else v for v in value]]
    return [type(value).__name__, [], [value]]
