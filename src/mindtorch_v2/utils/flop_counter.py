"""Count the floating point operations of a block, by module and operator, while it runs.

Torch's registry has products of matrices, convolutions and attention; so has this one, and layers of an LSTM. Profiles with `with_flops=True` use the same
formulas and count the rest of the arithmetic too.
"""

from __future__ import annotations

import functools
import warnings
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

from .._op_packet import OpOverload, OpOverloadPacket, ops
from .._tensor import Tensor
from ..profiler.model import flop_formulas
from ._python_dispatch import TorchDispatchMode
from .module_tracker import ModuleTracker

__all__ = ["FlopCounterMode", "register_flop_formula"]

aten = ops.aten
flop_registry: dict[Any, Any] = {}


def get_shape(i: object) -> Any:
    """The shape of a tensor; anything else as it is."""
    return i.shape if isinstance(i, Tensor) else i


def _shapes(value: Any) -> Any:
    """Shapes in the place of tensors, in nested lists, tuples and dicts."""
    if isinstance(value, dict):
        return {key: _shapes(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(map(_shapes, value)) if type(value) in (list, tuple) else tuple(map(_shapes, value))
    return get_shape(value)


def shape_wrapper(f: Callable[..., Any]) -> Callable[..., Any]:
    """A formula over shapes as one over tensors, which gets the result as `out_val`."""

    @functools.wraps(f)
    def nf(*args: Any, out_val: object = None, **kwargs: Any) -> Any:
        return f(*_shapes(args), out_shape=_shapes(out_val), **_shapes(kwargs))

    return nf


def register_flop_formula(targets: Any, get_raw: bool = False) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorate the formula of an operator, or of each in a list: `torch.ops.mylib.foo`.

    It takes the operator's arguments with shapes for tensors, and the shape of the result as `out_shape`. With `get_raw` it takes the
    arguments as they are, and the result as `out_val`.
    """

    def register(flop_formula: Callable[..., Any]) -> Callable[..., Any]:
        formula = flop_formula if get_raw else shape_wrapper(flop_formula)
        for target in targets if isinstance(targets, list | tuple) else [targets]:
            if not isinstance(target, OpOverloadPacket):
                raise ValueError(
                    "register_flop_formula(targets): expected each target to be OpOverloadPacket (i.e. torch.ops.mylib.foo), "
                    f"JitFunction, or HigherOrderOperator, got {target} which is of type {type(target)}"
                )
            if target in flop_registry:
                raise RuntimeError(f"duplicate registrations for {target}")
            flop_registry[target] = formula
        return formula

    return register


# --- formulas -------------------------------------------------------------------------------------------------------------------


@register_flop_formula(aten.mm)
def mm_flop(
    a_shape: Sequence[int], b_shape: Sequence[int], *args: Any, out_shape: Sequence[int] | None = None, **kwargs: Any
) -> int:
    """Of the product of two matrices."""
    (_, k), (k2, _) = a_shape, b_shape
    if k != k2:
        raise AssertionError(f"matmul: inner dimensions must match (k == k2), got {k} and {k2}")
    return flop_formulas.matrix_product(a_shape, b_shape)


@register_flop_formula(aten.addmm)
def addmm_flop(
    self_shape: Sequence[int], a_shape: Sequence[int], b_shape: Sequence[int], out_shape: Sequence[int] | None = None, **kwargs: Any
) -> int:
    """Of the product alone."""
    return mm_flop(a_shape, b_shape)


@register_flop_formula(aten.bmm)
def bmm_flop(a_shape: Sequence[int], b_shape: Sequence[int], out_shape: Sequence[int] | None = None, **kwargs: Any) -> int:
    """Of the products of two batches of matrices."""
    (b, _, k), (b2, k2, _) = a_shape, b_shape
    if b != b2:
        raise AssertionError(f"bmm: batch dimensions must match (b == b2), got {b} and {b2}")
    if k != k2:
        raise AssertionError(f"bmm: inner dimensions must match (k == k2), got {k} and {k2}")
    return flop_formulas.matrix_product(a_shape, b_shape)


@register_flop_formula(aten.baddbmm)
def baddbmm_flop(
    self_shape: Sequence[int], a_shape: Sequence[int], b_shape: Sequence[int], out_shape: Sequence[int] | None = None, **kwargs: Any
) -> int:
    """Of the products alone."""
    return bmm_flop(a_shape, b_shape)


def conv_flop_count(x_shape: Sequence[int], w_shape: Sequence[int], out_shape: Sequence[int], transposed: bool = False) -> int:
    """Of a convolution without its bias: the kernel at each position of the result, or of the input when transposed."""
    return flop_formulas.convolution((x_shape if transposed else out_shape)[2:], w_shape, x_shape[0])


@register_flop_formula([aten.convolution, aten._convolution])
def conv_flop(
    x_shape: Sequence[int], w_shape: Sequence[int], _bias: Sequence[int] | None, _stride: object, _padding: object, _dilation: object, transposed: bool, *args: Any,
    out_shape: Any = None, **kwargs: Any,
) -> int:  # fmt: skip
    """Of a convolution."""
    return conv_flop_count(x_shape, w_shape, out_shape, transposed=transposed)


@register_flop_formula(aten._slow_conv2d_forward)
def _slow_conv2d_flop(x_shape: Sequence[int], w_shape: Sequence[int], *args: Any, out_shape: Any = None, **kwargs: Any) -> int:
    return conv_flop_count(x_shape, w_shape, out_shape)


@register_flop_formula(aten.convolution_backward)
def conv_backward_flop(
    grad_out_shape: Sequence[int], x_shape: Sequence[int], w_shape: Sequence[int], _bias: Sequence[int] | None, _stride: object, _padding: object, _dilation: object, transposed: bool,
    _output_padding: object, _groups: int, output_mask: Sequence[bool], out_shape: object, **kwargs: Any,
) -> int:  # fmt: skip
    """Of the gradients that the mask asks for: one convolution for the input's, one for the kernel's."""
    # torch: the kernel's is counted as if there were one group
    return flop_formulas.convolution_backward(grad_out_shape, x_shape, w_shape, transposed, 1, output_mask)


def _check_heads(what: str, query_heads: int, heads: int) -> None:
    if query_heads < heads or query_heads % heads:
        raise AssertionError(f"{what}: query heads ({query_heads}) must be a multiple of key/value heads ({heads})")


def sdpa_flop_count(query_shape: Sequence[int], key_shape: Sequence[int], value_shape: Sequence[int]) -> int:
    """Of attention: the scores and the weighted sum. Keys and values may have fewer heads, which queries then share."""
    (b, h_q, _, d_q), (b2, h_k, s_k, d_k), (b3, h_v, s_v, _) = query_shape, key_shape, value_shape
    if not (b == b2 == b3 and h_k == h_v and d_q == d_k and s_k == s_v):
        raise AssertionError(
            f"sdpa_flop_count: query/key/value shapes are incompatible: q={query_shape}, k={key_shape}, v={value_shape}"
        )
    _check_heads("sdpa_flop_count", h_q, h_k)
    return flop_formulas.attention(query_shape, key_shape, value_shape)


def sdpa_backward_flop_count(
    grad_out_shape: Sequence[int], query_shape: Sequence[int], key_shape: Sequence[int], value_shape: Sequence[int]
) -> int:
    """Of the gradients of attention, for which the scores are computed again."""
    (b, h_q, s_q, d_q), (b2, h_k, s_k, d_k), (b3, h_v, s_v, d_v) = query_shape, key_shape, value_shape
    b4, h_g, s_g, d_g = grad_out_shape
    if not (b == b2 == b3 == b4 and h_k == h_v and h_q == h_g):
        raise AssertionError("sdpa_backward_flop_count: batch/heads mismatch among tensors")
    _check_heads("sdpa_backward_flop_count", h_q, h_k)
    if not (d_q == d_k and d_v == d_g and s_k == s_v and s_q == s_g):
        raise AssertionError("sdpa_backward_flop_count: grad_out/value/key/query shapes are incompatible")
    return flop_formulas.attention_backward(query_shape, key_shape, value_shape)


@register_flop_formula(aten._scaled_dot_product_flash_attention_for_cpu)
def sdpa_flop(
    query_shape: Sequence[int],
    key_shape: Sequence[int],
    value_shape: Sequence[int],
    *args: Any,
    out_shape: object = None,
    **kwargs: Any,
) -> int:
    """Of attention; a causal mask makes no difference."""
    return sdpa_flop_count(query_shape, key_shape, value_shape)


@register_flop_formula(aten._scaled_dot_product_flash_attention_for_cpu_backward)
def sdpa_backward_flop(
    grad_out_shape: Sequence[int],
    query_shape: Sequence[int],
    key_shape: Sequence[int],
    value_shape: Sequence[int],
    *args: Any,
    out_shape: object = None,
    **kwargs: Any,
) -> int:
    """Of the gradients of attention."""
    return sdpa_backward_flop_count(grad_out_shape, query_shape, key_shape, value_shape)


@register_flop_formula(aten.mkldnn_rnn_layer)
def lstm_layer_flop(
    input_shape: Sequence[int],
    w_ih_shape: Sequence[int],
    w_hh_shape: Sequence[int],
    *args: Any,
    out_shape: object = None,
    **kwargs: Any,
) -> int:
    """Of a layer of an LSTM; torch counts none where it is one operator."""
    return flop_formulas.lstm_layer(input_shape, w_ih_shape, w_hh_shape)


@register_flop_formula(aten.mkldnn_rnn_layer_backward)
def lstm_layer_backward_flop(
    input_shape: Sequence[int],
    w_ih_shape: Sequence[int],
    w_hh_shape: Sequence[int],
    *args: Any,
    out_shape: object = None,
    **kwargs: Any,
) -> int:
    """Of its gradients."""
    return 2 * flop_formulas.lstm_layer(input_shape, w_ih_shape, w_hh_shape)


# --- text -----------------------------------------------------------------------------------------------------------------------


def normalize_tuple(x: Any) -> tuple[Any, ...]:
    """A tuple as it is, anything else in one."""
    return x if isinstance(x, tuple) else (x,)


suffixes = ["", "K", "M", "B", "T"]


def get_suffix_str(number: int) -> str:
    """The unit that leaves at least two digits before the point: 10,000 is the first that is shown in thousands."""
    return suffixes[max(0, min(len(suffixes) - 1, (len(str(number)) - 2) // 3))]


def convert_num_with_suffix(number: float, suffix: str) -> str:
    """In thousands, millions and so on, with three decimals."""
    return f"{number / 1000 ** suffixes.index(suffix):.3f}{suffix}"


def convert_to_percent_str(num: float, denom: float) -> str:
    return f"{num / denom:.2%}" if denom else "0%"


def _tabulate(rows: Sequence[Sequence[str]], headers: Sequence[str]) -> str:
    """Columns two spaces apart, the first to the left and the others to the right; each two wider than its header at least."""
    widths = [max(len(header) + 2, *(len(row[i]) for row in rows)) for i, header in enumerate(headers)]
    rules = ["-" * width for width in widths]
    lines = [
        "  ".join(cell.rjust(width) if i else cell.ljust(width) for i, (cell, width) in enumerate(zip(row, widths, strict=True)))
        for row in (headers, rules, *rows)
    ]
    return "\n".join(line.rstrip() for line in lines)


# --- counting -------------------------------------------------------------------------------------------------------------------


class FlopCounterMode:
    """Counts what runs while it is entered: `with FlopCounterMode() as counter: …`, then `counter.get_total_flops()`.

    Counts are kept for each module that runs and for "Global", the block. `depth` limits the modules in the table, which is printed at
    the end if `display` is set. `custom_mapping` has formulas for further operators, as `register_flop_formula` takes them.
    """

    def __init__(
        self, mods: Any = None, depth: int = 2, display: bool = True, custom_mapping: dict[Any, Any] | None = None
    ) -> None:
        self.flop_counts: dict[str, dict[Any, int]] = defaultdict(lambda: defaultdict(int))
        self.depth = depth
        self.display = display
        self.mode: _FlopCounterMode | None = None
        if mods is not None:
            warnings.warn("mods argument is not needed anymore, you can stop passing it", stacklevel=2)
        custom = {op: f if getattr(f, "_get_raw", False) else shape_wrapper(f) for op, f in (custom_mapping or {}).items()}
        self.flop_registry = {**flop_registry, **custom}
        self.mod_tracker = ModuleTracker()

    def get_total_flops(self) -> int:
        """Of all that ran in the block."""
        return sum(self.flop_counts["Global"].values())

    def get_flop_counts(self) -> dict[str, dict[Any, int]]:
        """By module, then by operator."""
        return {module: dict(counts) for module, counts in self.flop_counts.items()}

    def get_table(self, depth: int | None = None) -> str:
        """A line for each module down to `depth`, and below it one for each of its operators."""
        depth = self.depth if depth is None else depth
        modules = [name for name in sorted(self.flop_counts) if name != "Global" and (depth is None or name.count(".") < depth)]
        total = self.get_total_flops()
        rows = [row for name in modules for row in self._rows(name, name.count("."), total)]
        if "Global" in self.flop_counts and all(sum(self.flop_counts[name].values()) < total for name in modules):
            # the block has its lines only if no module did all there was
            rows = self._rows("Global", 0, total) + [[" " + row[0], *row[1:]] for row in rows]
        return _tabulate(rows or [["Global", "0", "0%"]], ["Module", "FLOP", "% Total"])

    def _rows(self, module: str, indent: int, total: int) -> list[list[str]]:
        counts = self.flop_counts[module]
        lines = [(module, sum(counts.values())), *((f" - {op}", count) for op, count in counts.items())]
        return [[" " * indent + name, _in_unit_of(count, total), convert_to_percent_str(count, total)] for name, count in lines]

    def __enter__(self) -> FlopCounterMode:
        self.flop_counts.clear()
        self.mode = _FlopCounterMode(self)
        for part in (self.mod_tracker, self.mode):
            part.__enter__()
        return self

    def __exit__(self, *args: Any) -> None:
        mode, self.mode = self.mode, None
        if mode is None:
            raise AssertionError("Internal error: FlopCounter.__exit__ called but mode is None")
        mode.__exit__(*args)
        self.mod_tracker.__exit__()
        if self.display:
            print(self.get_table(self.depth))

    def _count_flops(self, func_packet: OpOverloadPacket, out: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        formula = self.flop_registry.get(func_packet)
        if formula is not None:
            count = formula(*args, **kwargs, out_val=out)
            for module in self.mod_tracker.parents:
                self.flop_counts[module][func_packet] += count
        return out


def _in_unit_of(count: int, total: int) -> str:
    suffix = get_suffix_str(total)
    # torch: what its table takes for numbers loses the decimals
    return convert_num_with_suffix(count, suffix) if suffix else f"{count:g}"


class _FlopCounterMode(TorchDispatchMode):
    """Hands every operator to the counter."""

    def __init__(self, counter: FlopCounterMode) -> None:
        super().__init__()
        self.counter = counter

    def __torch_dispatch__(
        self, func: OpOverload, types: Sequence[type], args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        return self.counter._count_flops(func.overloadpacket, func(*args, **kwargs), args, kwargs)
