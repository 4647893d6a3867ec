"""The checks of `torch.library.opcheck`: an operator's schema, shape rule and derivative on sample arguments."""

from __future__ import annotations

from typing import Any

from . import _op_packet
from ._autograd.differentiate import grad
from ._dispatch import keys
from ._tensor import Tensor
from .testing import assert_close
from .utils._pytree import tree_leaves, tree_map

__all__ = ["OpCheckError", "check_autograd_registration", "check_fake", "check_repeated", "check_schema"]


class OpCheckError(Exception):
    """An operator is not registered as it should be."""


def check_schema(call: _op_packet.OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Arguments that the schema does not mark as written must not change."""
    before = [a._version if isinstance(a, Tensor) else None for a in args]
    call(*args, **kwargs)
    for argument, a, version in zip(call.op.schema.arguments, args, before, strict=False):
        if version is not None and not argument.is_written and a._version != version:
            raise RuntimeError(f"{call}: argument {argument.name} is not defined as mutable but was mutated")


def check_fake(call: _op_packet.OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """The shape rule must agree with what the kernel returns."""
    real = call(*args, **kwargs)
    fake = call(*[a.detach().to("meta") if isinstance(a, Tensor) else a for a in args], **kwargs)
    for r, f in zip(*[x if isinstance(x, list | tuple) else (x,) for x in (real, fake)], strict=True):
        if isinstance(r, Tensor) and (r.shape != f.shape or r.dtype is not f.dtype):
            raise RuntimeError(f"{call}: the shape rule gives {f.dtype}{list(f.shape)}, the kernel {r.dtype}{list(r.shape)}")


def check_autograd_registration(call: _op_packet.OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Where an argument requires grad, the operator must have a derivative, or be made of others that do."""
    op = call.op
    has_derivative = bool(op.formulas) or op.composite is not None or keys.AUTOGRAD in op.kernels
    given = [t for a in (*args, *kwargs.values()) for t in (a if isinstance(a, list | tuple) else (a,))]
    if not has_derivative and any(isinstance(t, Tensor) and t.requires_grad for t in given):
        raise OpCheckError(
            f"{call}: the operator does not have an autograd kernel registered, and kernels of devices record nothing that is right; register "
            "one with torch.library.register_autograd"
        )


def check_repeated(
    call: _op_packet.OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any], *, atol: float | None, rtol: float | None
) -> None:
    """Two runs on copies of the arguments must give the same results and gradients."""
    first, second = (_results_and_gradients(call, *_copied((args, kwargs))) for _ in range(2))
    if (atol is None) is not (rtol is None):
        atol, rtol = atol or 0.0, rtol or 0.0
    for one, other in zip(first, second, strict=True):
        try:
            assert_close(one, other, atol=atol, rtol=rtol, equal_nan=True)
        except AssertionError as error:
            raise OpCheckError(f"{call}: a second run on the same arguments gave something else: {error}") from None


def _copied(given: Any) -> Any:
    return tree_map(lambda x: x.detach().clone().requires_grad_(x.requires_grad) if isinstance(x, Tensor) else x, given)


def _results_and_gradients(call: _op_packet.OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Tensor]:
    results = [r for r in tree_leaves(call(*args, **kwargs)) if isinstance(r, Tensor)]
    sources = [t for t in tree_leaves((args, kwargs)) if isinstance(t, Tensor) and t.requires_grad and t.is_leaf]
    differentiable = [r.sum() for r in results if r.requires_grad]
    if not sources or not differentiable:
        return results
    gradients = grad(differentiable, sources, allow_unused=True)
    return [*(r.detach() for r in results), *(g for g in gradients if g is not None)]
