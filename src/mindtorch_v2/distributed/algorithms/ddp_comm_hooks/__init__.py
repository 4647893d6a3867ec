"""Hooks that average the buckets of `DistributedDataParallel`."""

from __future__ import annotations

from . import default_hooks as default_hooks
