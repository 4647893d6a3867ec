"""torch.utils.collect_env: what a report about a problem should say about the machine. `python -m mindtorch_v2.utils.collect_env` prints it."""

from __future__ import annotations

import os
import platform
import sys
from importlib import metadata
from typing import NamedTuple

from .._missing import PACKAGE
from .._threads import get_num_threads
from ..torch_version import __version__

__all__ = ["SystemEnv", "get_env_info", "get_pretty_env_info", "main"]

_PACKAGES = ("numpy", "scipy", "ml_dtypes", "threadpoolctl", "torch")


class SystemEnv(NamedTuple):
    """Facts about the machine and what is installed."""

    torch_version: str
    package: str
    os: str
    machine: str
    python_version: str
    cpu_count: int
    num_threads: int
    is_cuda_available: bool
    packages: tuple[str, ...]


def get_env_info() -> SystemEnv:
    """Look the facts up."""
    return SystemEnv(
        torch_version=str(__version__),
        package=PACKAGE,
        os=platform.platform(),
        machine=platform.machine(),
        python_version=sys.version.replace("\n", " "),
        cpu_count=os.cpu_count() or 1,
        num_threads=get_num_threads(),
        is_cuda_available=False,
        packages=tuple(f"{name}=={version}" for name in _PACKAGES if (version := _version(name))),
    )


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""


def get_pretty_env_info() -> str:
    """The facts, one in each line."""
    found = get_env_info()._asdict()
    packages = found.pop("packages")
    lines = [f"{name.replace('_', ' ')}: {value}" for name, value in found.items()]
    return "\n".join([*lines, "packages:", *[f"  {package}" for package in packages]])


def main() -> None:
    """Print the facts."""
    print("Collecting environment information...")
    print(get_pretty_env_info())


if __name__ == "__main__":
    main()
