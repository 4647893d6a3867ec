"""torch.hub: models from a folder with a `hubconf.py`. Nothing is downloaded."""

from __future__ import annotations

import builtins
import contextlib
import importlib.util
import os
import re
import sys
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any
from urllib.parse import urlparse

from ._refusals import refuse
from .serialization import load as load_checkpoint

try:  # libraries take it from here, as torch.hub has it
    from tqdm import tqdm as tqdm
except ImportError:

    class tqdm:  # type: ignore[no-redef]  # noqa: N801 - its name
        """Stands for the progress bars of the package `tqdm`, where that is not installed: the items, and no bar."""

        def __init__(self, iterable: Any = (), *args: Any, **options: Any) -> None:
            self.iterable = iterable
            self.n = 0

        def __iter__(self) -> Iterator[Any]:
            return iter(self.iterable)

        def update(self, n: int = 1) -> None:
            self.n += n

        def set_description(self, *args: Any, **options: Any) -> None:
            """No bar, no description."""

        def close(self) -> None:
            """Nothing is open."""

        def __enter__(self) -> tqdm:
            return self

        def __exit__(self, *exc: object) -> None:
            self.close()


__all__ = ["download_url_to_file", "get_dir", "help", "list", "load", "load_state_dict_from_url", "set_dir"]

_CONFIGURATION = "hubconf.py"
_WHY = "nothing is downloaded here; put the files on this machine"
_directory: str | None = None


HASH_REGEX = re.compile(r"-([a-f0-9]*)\.")  # the beginning of a file's hash in its name: model-abcd1234.pth


def _get_torch_home() -> str:
    """The folder that `TORCH_HOME` names, or the one for torch among the user's caches."""
    cache = os.environ.get("XDG_CACHE_HOME", os.path.join("~", ".cache"))
    return os.path.expanduser(os.environ.get("TORCH_HOME", os.path.join(cache, "torch")))


def get_dir() -> str:
    """The folder in which PyTorch keeps what it downloads."""
    return os.path.join(_get_torch_home(), "hub") if _directory is None else _directory


def set_dir(d: str | os.PathLike[str]) -> None:
    """Choose that folder."""
    global _directory
    _directory = os.path.expanduser(d)


@contextlib.contextmanager
def _first_on_path(folder: str) -> Iterator[None]:
    sys.path.insert(0, folder)
    try:
        yield
    finally:
        sys.path.remove(folder)


def _configuration(folder: str, source: str) -> ModuleType:
    """The module `hubconf` of a folder."""
    if source not in ("github", "local"):
        raise ValueError(f'Unknown source: "{source}". Allowed values: "github" | "local".')
    if source == "github":
        refuse("torch.hub with source='github'", f"{_WHY} and pass source='local'")
    folder = os.path.expanduser(folder)
    spec = importlib.util.spec_from_file_location("hubconf", os.path.join(folder, _CONFIGURATION))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    missing = [name for name in getattr(module, "dependencies", ()) if importlib.util.find_spec(name) is None]
    if missing:
        raise RuntimeError(f"Missing dependencies: {', '.join(missing)}")
    return module


def _entry(module: ModuleType, model: str) -> Callable[..., Any]:
    if not isinstance(model, str):
        raise ValueError("Invalid input: model should be a string of function name")
    found = getattr(module, model, None)
    if not callable(found):
        raise RuntimeError(f"Cannot find callable {model} in hubconf")
    return found


def load(repo_or_dir: str, model: str, *args: Any, source: str = "github", trust_repo: bool | str | None = None, force_reload: bool = False,
         verbose: bool = True, skip_validation: bool = False, **kwargs: Any) -> Any:  # fmt: skip
    """What the function `model` in the folder's `hubconf.py` returns for these arguments."""
    with _first_on_path(os.path.expanduser(repo_or_dir)):
        return _entry(_configuration(repo_or_dir, source), model)(*args, **kwargs)


def list(github: str, force_reload: bool = False, skip_validation: bool = False, trust_repo: bool | str | None = None, verbose: bool = True,
         source: str = "local") -> builtins.list[str]:  # fmt: skip
    """The functions in a folder's `hubconf.py`."""
    with _first_on_path(os.path.expanduser(github)):
        module = _configuration(github, source)
    return [name for name in dir(module) if callable(getattr(module, name)) and not name.startswith("_")]


def help(github: str, model: str, force_reload: bool = False, skip_validation: bool = False, trust_repo: bool | str | None = None,
         source: str = "local") -> str | None:  # fmt: skip
    """The docstring of a function in a folder's `hubconf.py`."""
    with _first_on_path(os.path.expanduser(github)):
        return _entry(_configuration(github, source), model).__doc__


def download_url_to_file(url: str, dst: str, hash_prefix: str | None = None, progress: bool = True) -> None:
    """Refuses."""
    refuse("torch.hub.download_url_to_file", _WHY)


def load_state_dict_from_url(
    url: str, model_dir: str | None = None, map_location: Any = None, progress: bool = True, check_hash: bool = False,
    file_name: str | None = None, weights_only: bool = False,
) -> dict[str, Any]:  # fmt: skip
    """The checkpoint of this name, if it is in `model_dir` already; `get_dir()/checkpoints` by default."""
    folder = os.path.join(get_dir(), "checkpoints") if model_dir is None else model_dir
    file = os.path.join(folder, file_name or os.path.basename(urlparse(url).path))
    if not os.path.exists(file):
        refuse("a download by torch.hub.load_state_dict_from_url", f"{_WHY}: {url} as {file}")
    return load_checkpoint(file, map_location=map_location, weights_only=weights_only)
