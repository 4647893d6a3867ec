"""torch.distributed.device_mesh: the processes in a grid, with a group for each row of each dimension."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from .._interop import from_numpy
from .._tensor import Tensor
from .distributed_c10d import get_rank, get_world_size, init_process_group, is_initialized, new_group
from .process_group import ProcessGroup

__all__ = ["DeviceMesh", "init_device_mesh"]


class DeviceMesh:
    """A grid of processes. A dimension has a group of the processes that differ in it alone.

    Args:
        device_type: "cpu".
        mesh: the ranks, as an array with the shape of the grid.
        mesh_dim_names: names of the dimensions.
    """

    def __init__(
        self,
        device_type: str,
        mesh: Any = None,
        *,
        mesh_dim_names: Sequence[str] | None = None,
        _groups: dict[int, ProcessGroup] | None = None,
    ) -> None:
        if device_type != "cpu":
            raise RuntimeError(f"there is no device of type {device_type!r} here; a mesh is of processes on the CPU")
        if mesh is None:
            raise TypeError("DeviceMesh needs the ranks of its processes, mesh=")
        self.device_type = device_type
        self._ranks = np.asarray(mesh._array if isinstance(mesh, Tensor) else mesh, np.int64)
        self.mesh_dim_names = None if mesh_dim_names is None else tuple(mesh_dim_names)
        if self.mesh_dim_names is not None and len(self.mesh_dim_names) != self._ranks.ndim:
            raise RuntimeError(
                f"mesh_dim_names must have one name for each of {self._ranks.ndim} dimensions, got {len(self.mesh_dim_names)}"
            )
        if not is_initialized():
            init_process_group()
        if self._ranks.size > get_world_size():
            raise RuntimeError(
                f"Mesh should not be bigger than default world size {get_world_size()}, but found {self._ranks.size} ranks!"
            )
        self._groups = self._make_groups() if _groups is None else _groups

    def _make_groups(self) -> dict[int, ProcessGroup]:
        groups = {}
        for dim in range(self._ranks.ndim):
            rows = np.moveaxis(self._ranks, dim, -1).reshape(-1, self._ranks.shape[dim])
            for row in rows:  # every process makes every group, in the same order
                members = [int(rank) for rank in row]
                made = new_group(members, group_desc=f"mesh_{self.mesh_dim_names[dim] if self.mesh_dim_names else dim}")
                if get_rank() in members:
                    groups[dim] = made
        return groups

    @property
    def mesh(self) -> Tensor:
        """The ranks."""
        return from_numpy(self._ranks.copy())

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return self._ranks.ndim

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of processes in each dimension."""
        return self._ranks.shape

    def size(self, mesh_dim: int | None = None) -> int:
        """The number of processes, of all or of one dimension."""
        return self._ranks.size if mesh_dim is None else self._ranks.shape[mesh_dim]

    def _dim(self, mesh_dim: int | str) -> int:
        if isinstance(mesh_dim, int):
            return mesh_dim
        if self.mesh_dim_names is None or mesh_dim not in self.mesh_dim_names:
            raise KeyError(
                f"Mesh dimension '{mesh_dim}' does not exist. Available mesh dimensions are: mesh_dim_names={self.mesh_dim_names}"
            )
        return self.mesh_dim_names.index(mesh_dim)

    def get_group(self, mesh_dim: int | str | None = None) -> ProcessGroup:
        """The group of a dimension with this process in it."""
        if mesh_dim is None and self.ndim > 1:
            raise RuntimeError(
                f"Found the DeviceMesh have {self.ndim} dimensions. Optional kwarg `mesh_dim` needs to be specified when device_mesh.ndim > 1."
            )
        return self._groups[0 if mesh_dim is None else self._dim(mesh_dim)]

    def get_all_groups(self) -> list[ProcessGroup]:
        """The groups of all dimensions."""
        return [self._groups[dim] for dim in range(self.ndim)]

    def get_rank(self) -> int:
        """The number of this process in the program."""
        return get_rank()

    def get_local_rank(self, mesh_dim: int | str | None = None) -> int:
        """The number of this process in a dimension."""
        return self.get_group(mesh_dim).rank()

    def get_coordinate(self) -> list[int] | None:
        """The place of this process in the grid, None outside of it."""
        place = np.argwhere(self._ranks == get_rank())
        return [int(i) for i in place[0]] if len(place) else None

    def __getitem__(self, mesh_dim_names: str | tuple[str, ...]) -> DeviceMesh:
        """The part of the grid with this process that has these dimensions."""
        names = (mesh_dim_names,) if isinstance(mesh_dim_names, str) else tuple(mesh_dim_names)
        dims = [self._dim(name) for name in names]
        place = self.get_coordinate() or [0] * self.ndim
        index = tuple(slice(None) if dim in dims else place[dim] for dim in range(self.ndim))
        order = np.argsort(np.argsort(dims))
        part = np.transpose(self._ranks[index], order)
        return DeviceMesh(
            "cpu", part, mesh_dim_names=names, _groups={i: self._groups[dim] for i, dim in enumerate(dims) if dim in self._groups}
        )

    def __repr__(self) -> str:
        names = self.mesh_dim_names
        shape = ", ".join(f"{names[i]}={n}" if names else str(n) for i, n in enumerate(self.shape))
        # torch: a dimension of one process has no stride
        strides = tuple(math.prod(self.shape[i + 1 :]) if n > 1 else () for i, n in enumerate(self.shape))
        return f"DeviceMesh(({shape}), '{self.device_type}', stride={strides})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, DeviceMesh):
            return NotImplemented
        return self.mesh_dim_names == other.mesh_dim_names and np.array_equal(self._ranks, other._ranks)

    def __hash__(self) -> int:
        return hash((self.mesh_dim_names, self._ranks.tobytes(), self.shape))


def init_device_mesh(
    device_type: str, mesh_shape: tuple[int, ...], *, mesh_dim_names: tuple[str, ...] | None = None, backend_override: Any = None
) -> DeviceMesh:
    """The processes of the program in a grid of a shape."""
    if backend_override is not None:
        raise NotImplementedError("backend_override: the one backend is 'gloo'")
    if mesh_dim_names is not None and len(set(mesh_dim_names)) != len(mesh_dim_names):
        raise RuntimeError(f"Each mesh_dim_name must be unique. Found repeated mesh_dim_name in mesh_dim_names {mesh_dim_names}")
    if mesh_dim_names is not None and len(mesh_shape) != len(mesh_dim_names):
        raise RuntimeError(
            f"mesh_shape and mesh_dim_names should have same length! Found len(mesh_dim_names): {len(mesh_dim_names)} and"
            f" len(mesh_shape):{len(mesh_shape)}."
        )
    ranks = np.arange(math.prod(mesh_shape)).reshape(mesh_shape)
    return DeviceMesh(device_type, ranks, mesh_dim_names=mesh_dim_names)
