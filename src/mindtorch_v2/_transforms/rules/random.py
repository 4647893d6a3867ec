"""Random numbers: `vmap` is asked whether samples get the same or different ones, or none at all.

While some thread is inside `vmap`, operators that draw have a layer that asks; in threads outside they run as ever.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..._dispatch import dispatcher, keys, registry
from ..._dispatch.codegen import Body, indent
from ..._dispatch.op import Op
from ..._dispatch.tls import state
from ..._ops.machinery.calling import call_op
from ..._tensor import Tensor
from ..batch_key import Rule, run_below
from ..batched import Level, unwrapped
from .loop import quietly_one_by_one
from .values import bind, call, check_inplace, front, is_batched, rank, use, with_front, wrapped

if TYPE_CHECKING:
    from ..._types import TensorOrTensors

__all__ = ["DRAWING", "draws"]

FACTORIES = "rand randn randint randperm normal.float_float".split()
LIKE = "rand_like randn_like randint_like".split()
IN_PLACE = "uniform_ normal_ random_ bernoulli_ exponential_ geometric_ log_normal_ cauchy_".split()
OF_TENSORS = "bernoulli.default bernoulli.p poisson binomial normal.Tensor_float normal.float_Tensor normal.Tensor_Tensor multinomial".split()
DRAWING = frozenset([*FACTORIES, *LIKE, *IN_PLACE, *OF_TENSORS])

SAME_OF_BATCHED = "Vmap does not currently support same randomness with a batched tensor input"


def draws(op: Op) -> bool:
    """Whether an operator draws random numbers."""
    return op.name in DRAWING or f"{op.name}.{op.overload_name}" in DRAWING


def _check(level: Level) -> None:
    if level.randomness == "error":
        raise RuntimeError(
            "vmap: called random operation while in randomness error mode. Please either use the 'same' or 'different' randomness flags on "
            "vmap or perform the randomness operation out of vmap"
        )


def _draw(op: Op, arguments: tuple[Any, ...]) -> TensorOrTensors:
    """Run an operator that draws, once or for each sample of the innermost `vmap`."""
    level: Level = state.level
    _check(level)
    return run_below(_rule(op), level, op, level, arguments)


def _rule(op: Op) -> Rule:
    if op.name in IN_PLACE:
        return _in_place
    if op.name in LIKE:
        return _like
    return _factory if not op.schema.tensor_arguments else _of_tensor


def _factory(op: Op, level: Level, args: tuple[Any, ...]) -> Tensor:
    if level.randomness == "same":
        return call_op(op, args)
    given = bind(op, args)
    if op.name == "randperm":
        return wrapped(call("stack", [call_op(op, args) for _ in range(level.batch_size)]), level)
    given["size"] = [level.batch_size, *given["size"]]
    return wrapped(call_op(op, tuple(given.values())), level)


def _like(op: Op, level: Level, args: tuple[Any, ...]) -> Tensor:
    value, bdim = unwrapped(args[0], level)
    if level.randomness == "same":
        if bdim is not None:
            value = call("select.int", value, bdim, 0)
        return wrapped(call_op(op, (value, *args[1:])), level, None) if bdim is not None else call_op(op, (value, *args[1:]))
    return wrapped(call_op(op, (with_front(args[0], level), *args[1:])), level)


def _in_place(op: Op, level: Level, args: tuple[Any, ...]) -> Tensor:
    target = args[0]
    if level.randomness == "same":
        if any(is_batched(a, level) for a in args[1:]):
            raise RuntimeError(f"{SAME_OF_BATCHED} ({op.qualified_name}). Please use different randomness.")
        if is_batched(target, level):  # numbers for one sample, written to all
            one = call("new_zeros", unwrapped(target, level)[0], list(target._array.shape))
            front(target, level).copy_(call_op(op, (one, *args[1:])))
            return target
    check_inplace(op, args, level)
    if level.randomness == "different" and not is_batched(target, level):
        raise RuntimeError(
            "vmap: Cannot ask for different inplace randomness on an unbatched tensor. This will appear like same randomness. If this is "
            "necessary for your usage, please file an issue with functorch."
        )
    values = [front(a, level) if isinstance(a, Tensor) else a for a in args]
    call_op(op, tuple(values))
    return target


def _of_tensor(op: Op, level: Level, args: tuple[Any, ...]) -> Tensor:
    """Numbers whose distribution tensors give."""
    tensors = [a for a in args if isinstance(a, Tensor)]
    if level.randomness == "same":
        if any(is_batched(t, level) for t in tensors):
            raise RuntimeError(f"{SAME_OF_BATCHED} ({op.qualified_name}). Please use different randomness.")
        return call_op(op, tuple(unwrapped(a, level)[0] if isinstance(a, Tensor) else a for a in args))
    if op.name == "multinomial" and rank(args[0]) != 1:
        return quietly_one_by_one(op, level, args)
    return wrapped(call_op(op, tuple(with_front(a, level) if isinstance(a, Tensor) else a for a in args)), level)


def _noisy(op: Op, level: Level, args: tuple[Any, ...]) -> TensorOrTensors:
    """Draw noise of its own for each sample."""
    if bind(op, args)["training"]:
        _check(level)
    return quietly_one_by_one(op, level, args)


use(["rrelu_with_noise", "rrelu_with_noise_"], _noisy)
use(["rrelu_with_noise_backward"], quietly_one_by_one)  # of noise that was drawn before


def _drawing_layer(op: Op, full: int, body: Body) -> Body:
    packed = "(" + "".join(f"{n}, " for n in op.schema.argument_names) + ")"
    lines = ["if tls.level is not None:", f"    result = draw(op, {packed})", "else:", *indent(body.lines)]
    body = body.edited(lines, {"tls": state, "op": op, "draw": _draw})
    body.result_is_new = False
    return body


_drawing = {op for op in registry.all_ops() if op.schema.namespace == "aten" and draws(op)}
dispatcher.register_layer(keys.DRAWING, _drawing_layer, only=_drawing.__contains__)
