"""`python -m mindtorch_v2 run script.py`."""

from __future__ import annotations

from ._launch.command import main

if __name__ == "__main__":
    main()
