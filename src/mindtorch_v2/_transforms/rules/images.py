"""Images and other signals: the batch joins the first dimension, which operators take for a batch anyway."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..._dispatch.op import Op
from ..._ops.machinery.calling import call_op
from ..._tensor import Tensor
from ..batched import Level, unwrapped
from .loop import quietly_one_by_one
from .values import bind, call, front, is_batched, rank, rule, use, with_front, wrapped

if TYPE_CHECKING:
    pass

__all__ = ["folded"]


def _joined(value: Tensor) -> Tensor:
    shape = value._array.shape
    found: Tensor = call("reshape", value, [shape[0] * shape[1], *shape[2:]])
    return found


def _split(result: Any, level: Level, n: int) -> Any:
    if isinstance(result, Tensor):
        return call("reshape", result, [level.batch_size, n, *result._array.shape[1:]])
    return tuple(_split(r, level, n) for r in result)


def folded(spatial: int, sizes: str = "") -> Callable[[Op, Level, tuple[Any, ...]], Any]:
    """The rule of an operator over (batch, channels, …) with so many dimensions after these, or without a batch.

    `sizes`: the name of an argument that is the shape of such a tensor.
    """

    def rule_of_folded(op: Op, level: Level, args: tuple[Any, ...]) -> Any:
        given = bind(op, args)
        first = next(a.name for a in op.schema.arguments if a.is_tensor)
        has_batch = rank(given[first]) == spatial + 2
        n = given[first]._array.shape[0] if has_batch else 1
        for a in op.schema.arguments:
            if a.is_tensor and given[a.name] is not None:
                value = with_front(given[a.name], level)
                given[a.name] = _joined(value) if has_batch else value
            elif a.name == sizes:
                size = list(given[a.name])
                given[a.name] = [level.batch_size * size[0], *size[1:]] if has_batch else [level.batch_size, *size]
        result = call_op(op, tuple(given.values()))
        return wrapped(_split(result, level, n) if has_batch else result, level)

    return rule_of_folded


for spatial, names in {
    1: "reflection_pad1d reflection_pad1d_backward replication_pad1d replication_pad1d_backward",
    2: """
        avg_pool2d avg_pool2d_backward max_pool2d_with_indices max_pool2d_with_indices_backward _adaptive_avg_pool2d
        _adaptive_avg_pool2d_backward adaptive_max_pool2d adaptive_max_pool2d_backward reflection_pad2d reflection_pad2d_backward
        replication_pad2d replication_pad2d_backward max_unpool2d grid_sampler_2d
        """,
    3: """
        avg_pool3d avg_pool3d_backward max_pool3d_with_indices max_pool3d_with_indices_backward _adaptive_avg_pool3d
        _adaptive_avg_pool3d_backward adaptive_max_pool3d adaptive_max_pool3d_backward reflection_pad3d reflection_pad3d_backward
        replication_pad3d replication_pad3d_backward max_unpool3d grid_sampler_3d
        """,
}.items():
    use(names.split(), folded(spatial))

for spatial, modes in {
    1: "upsample_nearest1d _upsample_nearest_exact1d upsample_linear1d",
    2: "upsample_nearest2d _upsample_nearest_exact2d upsample_bilinear2d upsample_bicubic2d _upsample_bilinear2d_aa _upsample_bicubic2d_aa _upsample_lanczos2d_aa",
    3: "upsample_nearest3d _upsample_nearest_exact3d upsample_trilinear3d",
}.items():
    use([f"{name}.default" for name in modes.split()], folded(spatial))
    use([f"{name}_backward" for name in modes.split()], folded(spatial, "input_size"))

use(["im2col"], folded(2))
use(["grid_sampler_2d_backward", "grid_sampler_3d_backward"], quietly_one_by_one)
use(["fractional_max_pool2d_backward", "fractional_max_pool3d_backward"], quietly_one_by_one)


@rule("col2im")
def _col2im(op: Op, level: Level, args: tuple[Any, ...]) -> Tensor:
    x = with_front(args[0], level)
    if rank(args[0]) == 2:
        return wrapped(call_op(op, (x, *args[1:])), level)
    return wrapped(_split(call_op(op, (_joined(x), *args[1:])), level, args[0]._array.shape[0]), level)


# --- convolutions -------------------------------------------------------------------------------------------------------


@rule("convolution", "_convolution")
def _convolution(op: Op, level: Level, args: tuple[Any, ...]) -> Tensor:
    """Weights shared by all samples: more images. Weights of each sample: more groups."""
    given = bind(op, args)
    x, weight, bias = given["input"], given["weight"], given["bias"]
    n = x._array.shape[0]
    of_sample = wrapped(unwrapped(bias, level)[0], level, unwrapped(bias, level)[1]) if bias is not None else None
    given["bias"] = None
    if not is_batched(weight, level):
        given["input"], given["weight"] = _joined(with_front(x, level)), unwrapped(weight, level)[0]
        found = _split(call_op(op, tuple(given.values())), level, n)
    else:
        found = _grouped(op, level, given, x, weight)
    if of_sample is not None:
        shift = front(of_sample, level)
        spatial = [1] * (found._array.ndim - 3)
        shape = [level.batch_size, 1, -1, *spatial] if is_batched(of_sample, level) else [-1, *spatial]
        found = found + call("reshape", shift, shape)
    return wrapped(found, level)


def _grouped(op: Op, level: Level, given: dict[str, Any], x: Tensor, weight: Tensor) -> Tensor:
    size = level.batch_size
    n, channels = x._array.shape[:2]
    images = call("transpose.int", with_front(x, level), 0, 1)
    given["input"] = call("reshape", images, [n, size * channels, *x._array.shape[2:]])
    given["weight"] = _joined(front(weight, level))
    given["groups"] = given["groups"] * size
    found = call_op(op, tuple(given.values()))
    apart = call("reshape", found, [n, size, found._array.shape[1] // size, *found._array.shape[2:]])
    return call("transpose.int", apart, 0, 1)


@rule("convolution_backward")
def _convolution_backward(op: Op, level: Level, args: tuple[Any, ...]) -> tuple[Tensor | None, ...]:
    """The gradient of the input as `convolution`'s rule would have it; that of each sample's weights by groups."""
    given = bind(op, args)
    grad, x, weight = given["grad_output"], given["input"], given["weight"]
    wants = list(given["output_mask"])
    size, n = level.batch_size, x._array.shape[0]
    results: list[Any] = [None, None, None]
    if wants[2]:
        g = with_front(grad, level)
        results[2] = call("sum.dim_IntList", g, [d for d in range(1, g._array.ndim) if d != 2])
    if wants[0] and not is_batched(weight, level):
        given |= {"grad_output": _joined(with_front(grad, level)), "input": _joined(with_front(x, level))}
        given |= {"weight": unwrapped(weight, level)[0], "output_mask": [True, False, False], "bias_sizes": None}
        results[0] = _split(call_op(op, tuple(given.values()))[0], level, n)
        wants[0] = False
    if wants[0] or wants[1]:
        apart = bind(op, args)

        def side_by_side(t: Tensor) -> Tensor:
            shape = t._array.shape
            moved = call("transpose.int", with_front(t, level), 0, 1)
            return call("reshape", moved, [shape[0], size * shape[1], *shape[2:]])

        apart |= {"grad_output": side_by_side(grad), "input": side_by_side(x), "weight": _joined(with_front(weight, level))}
        apart |= {"groups": apart["groups"] * size, "output_mask": [wants[0], wants[1], False], "bias_sizes": None}
        of_input, of_weight, _ = call_op(op, tuple(apart.values()))
        if wants[0]:
            parts = call("reshape", of_input, [n, size, *x._array.shape[1:]])
            results[0] = call("transpose.int", parts, 0, 1)
        if wants[1]:
            results[1] = call("reshape", of_weight, [size, *weight._array.shape])
    return tuple(None if r is None else wrapped(r, level) for r in results)
