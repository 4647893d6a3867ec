"""Where messages about processes go: nowhere, unless a program adds a handler."""

from __future__ import annotations

import logging

__all__: list[str] = []

_log_handlers: dict[str, logging.Handler] = {"default": logging.NullHandler()}
