"""Files of the recorder, in a program that may close all descriptors it finds, as one does that becomes a daemon."""

from __future__ import annotations

import io
import os

__all__ = ["OwnFile"]


class OwnFile(io.FileIO):
    """An open file that knows whether its descriptor is still its own. If not, the number may stand for a file of the program, which is left alone."""

    def __init__(self, descriptor: int, mode: str) -> None:
        super().__init__(descriptor, mode, closefd=False)
        self._identity = os.fstat(descriptor)

    @property
    def is_there(self) -> bool:
        """Whether nobody else has closed it."""
        try:
            return not self.closed and os.path.samestat(os.fstat(self.fileno()), self._identity)
        except OSError:
            return False

    def close(self) -> None:
        if self.is_there:
            os.close(self.fileno())
        super().close()
