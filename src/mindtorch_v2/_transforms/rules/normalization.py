"""Normalisations: over the same dimensions of values; weights that differ between samples are applied after."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..._dispatch import keys
from ..._dispatch.op import Op
from ..._dispatch.tls import state
from ..._ops.nn.normalization_gradients import normalized_gradient
from ..._tensor import Tensor
from ..batched import Level, unwrapped
from .loop import quietly_one_by_one
from .values import bind, call, is_batched, rank, rule, use, with_front, wrapped

__all__: list[str] = []


def _affine(found: Tensor, weight: Tensor | None, bias: Tensor | None, level: Level, place: Callable[[Tensor], Tensor]) -> Tensor:
    """Multiply by weights and add biases; `place` gives them the dimensions that they lack."""
    if weight is not None:
        found = found * place(with_front(weight, level))
    if bias is not None:
        found = found + place(with_front(bias, level))
    return found


def _statistics(value: Tensor, dims: list[int], mean: Tensor, scale: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and inverse deviation: those that were saved, or as functions of the input where these are to be differentiated again."""
    if not (state.grad_enabled and value._keys & keys.TRACKED) and not value._keys & keys.DUAL:
        return mean, scale
    variance = value.var(dims, correction=0, keepdim=True)
    eps = scale.detach().pow(-2) - variance.detach()
    return value.mean(dims, True), (variance + eps).rsqrt()


@rule("native_layer_norm")
def _layer_norm(op: Op, level: Level, args: tuple[Any, ...]) -> tuple[Tensor, ...]:
    x, shape, weight, bias, eps = args
    value = with_front(x, level)
    if not is_batched(weight, level) and not is_batched(bias, level):
        plain = [None if t is None else _plain(t, level) for t in (weight, bias)]
        return wrapped(call("native_layer_norm", value, shape, *plain, eps), level)
    found, mean, scale = call("native_layer_norm", value, shape, None, None, eps)
    lead = [1] * (rank(x) - len(shape))
    found = _affine(found, weight, bias, level, lambda t: call("reshape", t, [level.batch_size, *lead, *shape]))
    return wrapped((found, mean, scale), level)


def _plain(t: Tensor, level: Level) -> Tensor:
    return unwrapped(t, level)[0]


@rule("native_layer_norm_backward")
def _layer_norm_backward(op: Op, level: Level, args: tuple[Any, ...]) -> tuple[Tensor | None, ...]:
    """The gradients of a sample's weights are sums over its own leading dimensions."""
    given = bind(op, args)
    x, weight = given["input"], given["weight"]
    shape, wants = given["normalized_shape"], given["output_mask"]
    g, value, mean, scale = (with_front(given[n], level) for n in ("grad_out", "input", "mean", "rstd"))
    lead = list(range(1, 1 + rank(x) - len(shape)))
    mean, scale = _statistics(value, list(range(-len(shape), 0)), mean, scale)
    of_weight = of_bias = of_input = None
    if wants[2]:
        of_bias = call("sum.dim_IntList", g, lead) if lead else g
    if wants[1]:
        products = g * (value - mean) * scale
        of_weight = call("sum.dim_IntList", products, lead) if lead else products
    if wants[0]:
        scaled = (
            g if weight is None else g * call("reshape", with_front(weight, level), [level.batch_size, *[1] * len(lead), *shape])
        )
        dims = list(range(-len(shape), 0))
        of_input = normalized_gradient(scaled, (value - mean) * scale, scale, dims)
    return tuple(None if r is None else wrapped(r, level) for r in (of_input, of_weight, of_bias))


@rule("native_group_norm")
def _group_norm(op: Op, level: Level, args: tuple[Any, ...]) -> tuple[Tensor, ...]:
    x, weight, bias, n, channels, size, groups, eps = args
    value = with_front(x, level)
    joined = call("reshape", value, [level.batch_size * n, *x._array.shape[1:]])
    found, mean, scale = call("native_group_norm", joined, None, None, level.batch_size * n, channels, size, groups, eps)
    found = call("reshape", found, [level.batch_size, *x._array.shape])
    tail = [1] * (rank(x) - 2)
    found = _affine(found, weight, bias, level, lambda t: call("reshape", t, [level.batch_size, 1, channels, *tail]))
    apart = [call("reshape", t, [level.batch_size, n, groups]) for t in (mean, scale)]
    return wrapped((found, *apart), level)


@rule("native_group_norm_backward")
def _group_norm_backward(op: Op, level: Level, args: tuple[Any, ...]) -> tuple[Tensor | None, ...]:
    given = bind(op, args)
    x, weight = given["input"], given["weight"]
    n, channels, size, groups, wants = given["N"], given["C"], given["HxW"], given["group"], given["output_mask"]
    batch = level.batch_size
    g, value = (call("reshape", with_front(given[k], level), [batch, n, channels, size]) for k in ("grad_out", "input"))
    in_groups = [batch, n, groups, channels // groups * size]
    saved = (call("reshape", with_front(given[k], level), [batch, n, groups, 1]) for k in ("mean", "rstd"))
    mean, scale = _statistics(call("reshape", value, in_groups), [-1], *saved)
    x_hat = (call("reshape", value, in_groups) - mean) * scale
    of_input = None
    if wants[0]:
        scaled = g if weight is None else g * call("reshape", with_front(weight, level), [batch, 1, channels, 1])
        found = normalized_gradient(call("reshape", scaled, in_groups), x_hat, scale, [-1])
        of_input = call("reshape", found, [batch, *x._array.shape])
    of_weight = call("sum.dim_IntList", g * call("reshape", x_hat, [batch, n, channels, size]), [1, 3]) if wants[1] else None
    of_bias = call("sum.dim_IntList", g, [1, 3]) if wants[2] else None
    return tuple(None if r is None else wrapped(r, level) for r in (of_input, of_weight, of_bias))


def _batch_norm(op: Op, level: Level, args: tuple[Any, ...]) -> tuple[Tensor, ...]:
    """Each sample's channels are channels of their own, of one wider image."""
    given = bind(op, args)
    x, weight, bias = given["input"], given["weight"], given["bias"]
    mean, var = given.get("running_mean"), given.get("running_var")
    training = given["training"]
    batch, (n, channels), rest = level.batch_size, x._array.shape[:2], x._array.shape[2:]
    if training and mean is not None and not (is_batched(mean, level) and is_batched(var, level)):
        raise RuntimeError(
            "Batch norm got a batched tensor as input while the running_mean or running_var, which will be updated in place, were not "
            "batched.\nIf you are using a module and do not need eval mode, please set `track_running_stats` to be False.If you are using "
            "a prebuilt module and do not need eval mode, please see the functorch website for resources on how to patch your module to "
            "work with vmap"
        )
    wide = call("reshape", call("transpose.int", with_front(x, level), 0, 1), [n, batch * channels, *rest])
    stats = [None if t is None else call("reshape", with_front(t, level), [batch * channels]) for t in (mean, var)]
    found, saved_mean, saved_scale = call("native_batch_norm", wide, None, None, *stats, training, given["momentum"], given["eps"])
    if training and mean is not None:
        for t, stat in zip((mean, var), stats, strict=True):
            with_front(t, level).copy_(call("reshape", stat, [batch, channels]))
    found = call("transpose.int", call("reshape", found, [n, batch, channels, *rest]), 0, 1)
    found = _affine(found, weight, bias, level, lambda t: call("reshape", t, [batch, 1, channels, *[1] * len(rest)]))
    saved = [
        call("reshape", t, [batch, -1]) if t._array.size else call("new_empty", t, [batch, 0]) for t in (saved_mean, saved_scale)
    ]
    return wrapped((found, *saved), level)


use(["native_batch_norm", "_native_batch_norm_legit.default", "_native_batch_norm_legit.no_stats"], _batch_norm)


@rule("native_batch_norm_backward")
def _batch_norm_backward(op: Op, level: Level, args: tuple[Any, ...]) -> tuple[Tensor | None, ...]:
    """As the gradient of one sample is, over all dimensions but the batch and the channels."""
    given = bind(op, args)
    x, weight, train, wants = given["input"], given["weight"], given["train"], given["output_mask"]
    batch, channels = level.batch_size, x._array.shape[1]
    place = [batch, 1, channels, *[1] * (rank(x) - 2)]
    dims = [1, *range(3, rank(x) + 1)]
    g, value = (with_front(given[k], level) for k in ("grad_out", "input"))
    if train:
        mean = call("reshape", with_front(given["save_mean"], level), place)
        scale = call("reshape", with_front(given["save_invstd"], level), place)
        mean, scale = _statistics(value, dims, mean, scale)
    else:
        mean = call("reshape", with_front(given["running_mean"], level), place)
        scale = call("reshape", (with_front(given["running_var"], level) + given["eps"]).rsqrt(), place)
    x_hat = (value - mean) * scale
    of_input = None
    if wants[0]:
        scaled = g if weight is None else g * call("reshape", with_front(weight, level), place)
        of_input = normalized_gradient(scaled, x_hat, scale, dims) if train else scaled * scale
    of_weight = call("sum.dim_IntList", g * x_hat, dims) if wants[1] else None
    of_bias = call("sum.dim_IntList", g, dims) if wants[2] else None
    return tuple(None if r is None else wrapped(r, level) for r in (of_input, of_weight, of_bias))


use("_weight_norm_interface _weight_norm_interface_backward".split(), quietly_one_by_one)
