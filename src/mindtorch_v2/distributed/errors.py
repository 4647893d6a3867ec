"""Errors between processes."""

from __future__ import annotations

__all__ = ["DistBackendError", "DistError", "DistNetworkError", "DistStoreError", "QueueEmptyError"]


class DistError(RuntimeError):
    """An error between processes."""


class DistBackendError(DistError):
    """An error of a backend."""


class DistNetworkError(DistError):
    """No connection to another process."""


class DistStoreError(DistError):
    """A store that does not answer in time."""


class QueueEmptyError(DistStoreError):
    """A queue of a store that has nothing to give."""


for _class in (DistError, DistBackendError, DistNetworkError, DistStoreError, QueueEmptyError):
    _class.__module__ = "torch.distributed"
