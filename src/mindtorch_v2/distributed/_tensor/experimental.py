"""torch.distributed._tensor.experimental: for tensors over several devices."""

from __future__ import annotations

from .._refused import refused_here

globals().update(refused_here(__name__, functions="implicit_replication local_map register_sharding"))
