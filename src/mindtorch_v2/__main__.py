"""`python -m mindtorch_v2 COMMAND …`."""

from __future__ import annotations

from .cli.frame import main

if __name__ == "__main__":
    main()
