"""JSON of whatever users name their things."""

from __future__ import annotations

import json
import math
from typing import Any

__all__ = ["json_text"]


def json_text(value: object, *, compact: bool = False) -> str:
    """JSON of any value that JSON knows, and of any text: a lone surrogate, which UTF-8 has no bytes for, is spelled out."""
    if isinstance(value, str):
        return json.dumps(_encodable(value), ensure_ascii=False)
    return json.dumps(_plain(value), ensure_ascii=False, allow_nan=False, separators=(",", ":") if compact else None)


def _encodable(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _plain(value: Any) -> Any:
    match value:
        case str():
            return _encodable(value)
        case float() if not math.isfinite(value):
            return str(value)  # JSON has no such numbers
        case dict():
            return {_encodable(str(k)): _plain(v) for k, v in value.items()}
        case list() | tuple():
            return [_plain(v) for v in value]
        case None | bool() | int() | float():
            return value
    return _encodable(str(value))
