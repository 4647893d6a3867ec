"""Imports of torch in this process and in the processes that it starts.

A forked process has what its parent has. Any other Python (a spawned worker, `subprocess`, a shell script that calls python) inherits two
environment variables: PYTHONPATH begins with the folder `startup`, whose `sitecustomize` Python runs before anything else, and
MINDTORCH_AS_TORCH names the environment (`sys.prefix`) it is meant for.
"""

from __future__ import annotations

import os
import sys

from . import finder

__all__ = ["STARTUP", "answer_torch"]

STARTUP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "startup")


def answer_torch() -> None:
    """Have `import torch` mean this package, from here on and in other processes."""
    loaded = sys.modules.get("torch")
    if loaded is not None and loaded is not sys.modules[finder.PACKAGE]:
        raise ImportError(
            f"{finder.PACKAGE} cannot stand for torch: another torch is imported already, from {getattr(loaded, '__file__', None)}. "
            f"Import {finder.PACKAGE}.as_torch before anything that imports torch, or start the program with `mindtorch run`."
        )
    finder.install()
    os.environ["MINDTORCH_AS_TORCH"] = sys.prefix
    entries = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    if STARTUP not in entries:
        os.environ["PYTHONPATH"] = os.pathsep.join([STARTUP, *filter(None, [os.environ.get("PYTHONPATH")])])
