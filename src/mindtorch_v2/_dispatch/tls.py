"""State that belongs to a thread: the grad mode, and the stacks of active modes."""

from __future__ import annotations

import threading
from typing import Any

__all__ = ["State", "state"]


class State(threading.local):
    """Class attributes are what a new thread starts with."""

    grad_enabled: bool = True
    inference: bool = False
    autocast: bool = False  # operators on the CPU have their operands cast
    multithreading: bool = True  # whether backward may use other threads
    backward_depth: int = 0
    backward_id: int = 0  # of the pass that runs on this thread
    backward_waiting: Any = None  # what that pass waits for: the nodes and leaves it reaches
    hooks_disabled: str | None = None  # why saved-tensor hooks are refused
    bottom_device: Any = None  # of `set_default_device`, below all `with device:` blocks
    function_override_off: int = 0
    subclass_override_off: int = 0
    dispatch_override_off: int = 0  # neither modes nor subclasses see operators below autograd
    program_override_off: int = 0  # the same, of the code that called backward
    level: Any = None  # the innermost `vmap` whose function runs (`_transforms.levels.Level`)
    below: bool | None = None  # grad mode of what is below the current level, where autograd has switched off its own
    records_below: bool = True  # False: a gradient is computed inside no_grad, which goes on below
    carrying: int = 0  # operators that give their results tangents themselves, whose parts run
    transforms: int = 0  # function transforms whose function runs

    def __init__(self) -> None:
        self.dispatch_modes: list[Any] = []
        self.function_modes: list[Any] = []
        self.saved_hooks: list[Any] = []
        self.default_devices: list[Any] = []


state = State()
