"""What the steps of all optimisers share: the choice of an implementation, and parameters one by one or as lists."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from .._dtype import dtype, float32, float64, get_default_dtype
from .._functions import functions
from .._tensor import Tensor

__all__ = [
    "Prepared", "as_lists", "as_real", "decayed", "each", "group_by_device_and_dtype", "one_by_one", "plain", "run",
    "scalar_dtype", "to_scalar",
]  # fmt: skip

Tensors = list[Tensor]
Lists = Sequence[list[Any]]
Prepared = Iterator[tuple[Any, ...]]  # what `one_by_one` gives
# torch: an option for CUDA graphs, and these are the devices that have such
CAPTURABLE_DEVICES = ["cuda", "xpu", "hpu", "privateuseone", "xla"]


def each(name: str) -> Callable[..., Any]:
    """The operator `_foreach_name`, which takes lists of tensors."""
    return functions["_foreach_" + name]


# --- numbers ----------------------------------------------------------------------------------------------------------


def plain(value: float | Tensor) -> float:
    """A number from a number or a tensor with one element."""
    return value.item() if isinstance(value, Tensor) else value


def to_scalar(value: float | Tensor) -> float | Tensor:
    """An option without dimensions: a tensor of shape [1] becomes one of shape []."""
    return value.squeeze() if isinstance(value, Tensor) and value.dim() != 0 else value


def scalar_dtype(is_fused: bool | None = None) -> dtype:
    """The dtype in which steps are counted."""
    return float64 if get_default_dtype() is float64 and not is_fused else float32


# --- which implementation ---------------------------------------------------------------------------------------------


def run(
    single: Callable[..., None],
    lists: Callable[..., None],
    params: Tensors,
    grads: Tensors,
    states: Lists,
    state_steps: Tensors,
    *,
    foreach: bool | None,
    maximize: bool,
    differentiable: bool,
    capturable: bool = False,
    weight_decay: float | Tensor = 0,
    count_first: tuple[bool, bool] = (False, False),
    xla: tuple[bool, bool] = (True, False),
    tensors: str = "params and state_steps",
    **options: Any,
) -> None:
    """Call `single` with an iterator over (param, grad, state …, step), or, with `foreach`, `lists` with lists of these.

    What `one_by_one` and `as_lists` say is done before. The loop is in `single` because a call for each parameter costs 2 µs, a
    tenth of what Adam takes for it. Of the pairs, the first is for `single`, the second for `lists`: when
    steps are counted, and whether torch's message names XLA among the devices for `capturable`.
    """
    if not all(isinstance(t, Tensor) for t in state_steps):
        raise RuntimeError("API has changed, `state_steps` argument must contain a list of singleton tensors")
    if foreach and differentiable:
        raise AssertionError("_foreach ops don't support autograd")
    chosen = bool(foreach)
    if capturable:
        _check_capturable(params, tensors=tensors, xla=xla[chosen])
    common: Any = {"maximize": maximize, "weight_decay": weight_decay, "count_first": count_first[chosen]}
    if foreach:
        for of_group in as_lists(params, grads, states, state_steps, **common):
            lists(*of_group, **options)
    else:
        single(one_by_one(params, grads, states, state_steps, **common), differentiable=differentiable, **options)


def _check_capturable(params: Tensors, *, tensors: str = "params and state_steps", xla: bool = True) -> None:
    """Refuse `capturable=True` for parameters on a device without graphs."""
    devices = CAPTURABLE_DEVICES if xla else CAPTURABLE_DEVICES[:-1]
    if any(p.device.type not in devices for p in params):
        raise AssertionError(f"If capturable=True, {tensors} must be on supported devices: {devices}.")


# --- parameters, their gradients and state ----------------------------------------------------------------------------


def as_real(t: Tensor) -> Tensor:
    """A complex tensor as pairs of real numbers, any other as it is."""
    return functions["view_as_real"](t) if t.dtype.is_complex else t


def decayed(grad: Tensor, param: Tensor, weight_decay: float | Tensor) -> Tensor:
    """The gradient with the weight decay added."""
    result: Tensor
    if isinstance(weight_decay, Tensor) and weight_decay.requires_grad:
        result = grad.addcmul_(param.clone(), weight_decay)  # torch: in place
    else:
        result = grad.add(param, alpha=weight_decay)
    return result


def one_by_one(
    params: Tensors, grads: Tensors, states: Lists, steps: Tensors,
    *, maximize: bool, weight_decay: float | Tensor = 0, count_first: bool = False,
) -> Prepared:  # fmt: skip
    """(parameter, gradient, state …, step) for each parameter, complex ones as real numbers.

    The gradient has the direction to descend and contains the weight decay; the step is counted. `count_first`: before the
    gradient is negated, which only the order of operators in a profile shows.
    """
    changed = maximize or weight_decay != 0
    for of_param in zip(params, grads, *states, steps, strict=True):
        param, grad, step = of_param[0], of_param[1], of_param[-1]
        if count_first:
            step += 1
        if maximize:
            grad = -grad
        if not count_first:
            step += 1
        if weight_decay != 0:
            grad = decayed(grad, param, weight_decay)
        if changed:
            of_param = (param, grad, *of_param[2:])
        yield (*map(as_real, of_param[:-1]), step) if param.dtype.is_complex else of_param


def as_lists(
    params: Tensors, grads: Tensors, states: Lists, steps: Tensors,
    *, maximize: bool, weight_decay: float | Tensor = 0, count_first: bool = False,
) -> Iterator[list[Any]]:  # fmt: skip
    """[parameters, gradients, states …, steps] for each device and dtype, prepared as by `one_by_one`.

    Gradients are new tensors if `maximize` or a weight decay is given, else the parameters' own.
    """
    for (_, kind), (tensors, _) in group_by_device_and_dtype([params, grads, *states, steps]).items():
        *lists, counts = tensors
        if count_first:
            each("add_")(counts, 1.0)
        group, descent, *rest = [list(map(as_real, of_group)) for of_group in lists] if kind.is_complex else lists
        if maximize:
            descent = each("neg")(descent)
        if not count_first:
            each("add_")(counts, 1.0)
        if weight_decay != 0:
            if maximize:
                each("add_")(descent, group, alpha=plain(weight_decay))
            else:
                descent = each("add")(descent, group, alpha=plain(weight_decay))
        yield [group, descent, *rest, counts]


def group_by_device_and_dtype(
    tensorlistlist: Lists, with_indices: bool = False
) -> dict[tuple[Any, Any], tuple[list[list[Any]], list[int]]]:
    """Parallel lists split by device and dtype of the first list's tensors; lists without tensors stay empty.

    With each group come, if asked for, the places that its tensors had.
    """
    if not tensorlistlist[0]:
        return {}
    device, kind = tensorlistlist[0][0].device, tensorlistlist[0][0].dtype
    if all(t.dtype is kind and t.device is device for t in tensorlistlist[0]):  # almost always
        places = list(range(len(tensorlistlist[0]))) if with_indices else []
        return {(device, kind): ([list(tensors) for tensors in tensorlistlist], places)}
    members: dict[tuple[Any, Any], list[int]] = {}
    for i, t in enumerate(tensorlistlist[0]):
        members.setdefault((t.device, t.dtype), []).append(i)
    return {
        key: ([[tensors[i] for i in indices] if tensors else [] for tensors in tensorlistlist], indices if with_indices else [])
        for key, indices in members.items()
    }
