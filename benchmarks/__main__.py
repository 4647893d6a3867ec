"""Print every figure: `python -m benchmarks [small] [large] [training] [recording]`."""

from __future__ import annotations

import os
import sys

# before NumPy starts its threads: one each for both sides
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

import torch

import mindtorch_v2

from . import operators, recording, training
from .timing import print_table

GROUPS = {
    "small": ("Small operators", operators.small),
    "large": ("Large sizes", operators.large),
    "training": ("A training step", training.steps),
    "recording": ("Recording an operator: the cost added to x + y, 8×8", recording.overhead),
}


def main() -> None:
    torch.set_num_threads(1)
    chosen = sys.argv[1:] or list(GROUPS)
    unknown = [name for name in chosen if name not in GROUPS]
    if unknown:
        sys.exit(f"unknown: {', '.join(unknown)}; choose from {', '.join(GROUPS)}")
    print(f"mindtorch_v2 against torch {torch.__version__}, one thread each, best of several")
    for name in chosen:
        title, measure = GROUPS[name]
        print_table(title, measure(mindtorch_v2, torch))


if __name__ == "__main__":
    main()
