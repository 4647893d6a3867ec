"""`python -m mindtorch_v2.profiler script.py`."""

from __future__ import annotations

from .cli import main

if __name__ == "__main__":
    main()
