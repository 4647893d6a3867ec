"""torch.distributed.algorithms: what is built on operations of groups."""

from __future__ import annotations
