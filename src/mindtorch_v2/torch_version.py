"""torch.torch_version: the version as a text that compares as a version."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from ._launch.finder import API_VERSION

__all__ = ["TorchVersion"]

_PARTS = re.compile(
    r"v?(?P<release>\d+(?:\.\d+)*)[-_.]?(?:(?P<stage>a|alpha|b|beta|c|rc|pre)[-_.]?(?P<number>\d*))?(?:\.?(?P<dev>dev)(?P<build>\d*))?(?:\.?post(?P<post>\d*))?(?:\+(?P<local>.*))?"
)
_STAGES = {"a": 0, "alpha": 0, "b": 1, "beta": 1, "c": 2, "rc": 2, "pre": 2, None: 3}


def _key(version: Any) -> tuple[Any, ...]:
    """What to compare: the numbers without trailing zeros, then the stage of the release; a local part is the last."""
    text = ".".join(map(str, version)) if isinstance(version, tuple | list) else str(version)
    parts = _PARTS.fullmatch(text.strip().lower())
    if parts is None:
        raise ValueError(f"not a version: {text!r}")
    release = [int(n) for n in parts["release"].split(".")]
    while release and release[-1] == 0:
        release.pop()
    stage = _STAGES[parts["stage"]] if parts["stage"] or not parts["dev"] else -1
    number = int(parts["number"] or 0)
    build = int(parts["build"] or 0) if parts["dev"] else float("inf")
    post = -1 if parts["post"] is None else int(parts["post"] or 0)
    return release, stage, number, build, post, parts["local"] or ""


class TorchVersion(str):
    """A version. `torch.__version__ >= (2, 1)` and `torch.__version__ >= "2.1"` compare numbers, not texts."""

    __slots__ = ()

    def _compare(self, other: Any, by_version: Callable[[Any, Any], bool], by_text: Callable[[str, Any], bool]) -> bool:
        try:
            return by_version(_key(self), _key(other))
        except ValueError:
            return by_text(self, other)

    def __lt__(self, other: Any) -> bool:
        return self._compare(other, lambda a, b: a < b, str.__lt__)

    def __le__(self, other: Any) -> bool:
        return self._compare(other, lambda a, b: a <= b, str.__le__)

    def __gt__(self, other: Any) -> bool:
        return self._compare(other, lambda a, b: a > b, str.__gt__)

    def __ge__(self, other: Any) -> bool:
        return self._compare(other, lambda a, b: a >= b, str.__ge__)

    def __eq__(self, other: object) -> bool:
        return self._compare(other, lambda a, b: a == b, str.__eq__)

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = str.__hash__


__version__ = TorchVersion(API_VERSION)
