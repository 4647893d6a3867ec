"""Products of matrices and vectors: `matmul` broadcasts over batches."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..._dispatch.op import Op
from ..._tensor import Tensor
from ..batched import Level
from .pointwise import aligned
from .values import bind, call, check_inplace, front, is_batched, rank, rule, try_sample, wrapped

if TYPE_CHECKING:
    from ..batch_key import Rule

__all__: list[str] = []


def _matmul(a: Tensor, b: Tensor) -> Tensor:
    found: Tensor = call("matmul", a, b)
    return found


def _column(t: Tensor) -> Tensor:
    found: Tensor = call("unsqueeze", t, -1)
    return found


# how many dimensions the two factors have
RANKS = {
    "mm": (2, 2), "addmm": (2, 2), "bmm": (3, 3), "baddbmm": (3, 3), "addbmm": (3, 3), "mv": (2, 1), "addmv": (2, 1),
    "dot": (1, 1), "vdot": (1, 1), "addr": (1, 1),
}  # fmt: skip


def _check_ranks(op: Op, level: Level, args: tuple[Any, ...], a: Tensor, b: Tensor) -> None:
    if (rank(a), rank(b)) != RANKS[op.name.rstrip("_")]:
        try_sample(op, level, args)


@rule("mm")
def _mm(op: Op, level: Level, args: tuple[Any, ...]) -> Tensor:
    _check_ranks(op, level, args, *args[:2])
    return wrapped(_matmul(front(args[0], level), front(args[1], level)), level)


@rule("bmm")
def _bmm(op: Op, level: Level, args: tuple[Any, ...]) -> Tensor:
    _check_ranks(op, level, args, *args[:2])
    a, b = (front(t, level) for t in args[:2])
    return wrapped(_matmul(a, b), level)


@rule("mv")
def _mv(op: Op, level: Level, args: tuple[Any, ...]) -> Tensor:
    _check_ranks(op, level, args, *args)
    found = _matmul(front(args[0], level), _column(front(args[1], level)))
    return wrapped(call("squeeze.dim", found, -1), level)


@rule("dot")
def _dot(op: Op, level: Level, args: tuple[Any, ...]) -> Tensor:
    _check_ranks(op, level, args, *args)
    a, b = aligned(list(args), level)
    found = _matmul(call("unsqueeze", a, -2), _column(b))
    return wrapped(call("view", found, [level.batch_size]), level)


@rule("vdot")
def _vdot(op: Op, level: Level, args: tuple[Any, ...]) -> Tensor:
    _check_ranks(op, level, args, *args)
    a, b = aligned(list(args), level)
    found = _matmul(call("unsqueeze", a.conj(), -2), _column(b))
    return wrapped(call("view", found, [level.batch_size]), level)


def _affine(product: Callable[[Tensor, Tensor], Tensor]) -> Rule:
    """beta * self + alpha * a product of the other two, which `product` gives from their values."""

    def rule_of_affine(op: Op, level: Level, args: tuple[Any, ...]) -> Tensor:
        _check_ranks(op, level, args, *args[1:3])
        given = bind(op, args)
        beta, alpha = given["beta"], given["alpha"]
        inplace = op.schema.is_inplace
        if inplace:
            check_inplace(op, args, level)
        found = wrapped(product(front(args[1], level), front(args[2], level)), level)
        if not any(is_batched(t, level) for t in args[1:3]):
            found = wrapped(product(args[1], args[2]), level, None)
        found_value, self_value = aligned([found, args[0]], level)
        if alpha != 1:
            found_value = found_value * alpha
        if beta == 0:
            total = found_value if is_batched(found, level) else found_value.expand([level.batch_size, *found_value.shape])
        else:
            total = found_value + (self_value if beta == 1 else self_value * beta)
        if inplace:
            front(args[0], level).copy_(total)
            return args[0]
        return wrapped(total, level)

    return rule_of_affine


def _vector(a: Tensor, b: Tensor) -> Tensor:
    found: Tensor = call("squeeze.dim", _matmul(a, _column(b)), -1)
    return found


def _summed(a: Tensor, b: Tensor) -> Tensor:
    found: Tensor = call("sum.dim_IntList", _matmul(a, b), [-3])
    return found


for names, product in (
    (("addmm", "addmm_", "baddbmm", "baddbmm_"), _matmul),
    (("addmv", "addmv_"), _vector),
    (("addbmm", "addbmm_"), _summed),
    (("addr", "addr_"), lambda a, b: _column(a) * call("unsqueeze", b, -2)),
):
    rule(*names)(_affine(product))
