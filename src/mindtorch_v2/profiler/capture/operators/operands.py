"""The memory that operators read and write: the addresses of their tensor arguments' storages, noted as each call begins.

An address is that of the array which owns the memory, as in the log of allocations; it tells one storage from another for as long
as that lives, and keeps nothing alive. The address of what an operator writes to is negative.
"""

from __future__ import annotations

from ...._dispatch.op import Op
from ...._dispatch.schema import Argument

__all__ = ["addresses"]


def addresses(op: Op, *, numbers: tuple[str, ...] = ()) -> str:
    """The expression for the tuple of addresses; `numbers` are the arguments that may be numbers in a tensor's place."""
    parts = [_of_argument(a, is_number=a.name in numbers) for a in op.schema.tensor_arguments]
    return f"({', '.join(parts)},)" if parts else "()"


def _of_argument(a: Argument, *, is_number: bool) -> str:
    n, sign = a.name, "-" if a.is_written else ""
    if a.is_tensor_list:
        each = f"*[{sign}id_(t._storage.array) for t in {n} if t is not None]"
        return f"*(() if {n} is None else [{each}])" if "]?" in a.type else each
    address = f"{sign}id_({n}._storage.array)"
    if is_number:
        return f"0 if {n}.__class__ in NUMBERS_ else {address}"
    return f"0 if {n} is None else {address}" if a.type == "Tensor?" else address
