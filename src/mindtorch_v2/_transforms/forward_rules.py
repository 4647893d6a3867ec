"""How a tangent goes through an operator: rules for linear operators and products, and two ways to get one from the backward formulas.

A pointwise operator multiplies each element of a gradient by a number, which it does with a tangent too. Of any other operator the
formulas give a function that is linear in the gradient; its derivative by the gradient, in the direction of the tangents, is what the
operator does to them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from .._autograd.differentiate import grad as autograd_grad
from .._autograd.fitting import sum_to
from .._dispatch import keys, registry
from .._dispatch.entry import NUMBERS
from .._dispatch.op import FACTS, Formula, Op
from .._dispatch.tls import state
from .._ops.machinery.calling import call_op
from .._tensor import Tensor
from .tangents import suspended

if TYPE_CHECKING:
    from .._types import TensorOrTensors

__all__ = ["outgoing"]

Tangents = dict[str, Any]  # argument → tangent, or a list with None where there is none

# Operators that are linear in these arguments taken together.
_SELF = """
    view _reshape_alias _unsafe_view alias expand transpose t permute squeeze unsqueeze select slice split split_with_sizes unbind diagonal
    unfold view_as_real view_as_complex as_strided unsafe_split unsafe_split_with_sizes
    view_copy expand_copy transpose_copy t_copy permute_copy squeeze_copy unsqueeze_copy select_copy slice_copy split_copy split_with_sizes_copy
    unbind_copy diagonal_copy unfold_copy view_as_real_copy alias_copy as_strided_copy
    sum.default sum.dim_IntList mean.default mean.dim cumsum flip roll rot90 repeat gather index index_select take tril triu trace
    constant_pad_nd clone _conj _conj_physical diag_embed _fft_c2c _fft_r2c _fft_c2r pixel_shuffle pixel_unshuffle im2col col2im masked_select
    avg_pool2d avg_pool3d _adaptive_avg_pool2d _adaptive_avg_pool3d reflection_pad1d reflection_pad2d reflection_pad3d
    replication_pad1d replication_pad2d replication_pad3d upsample_nearest1d upsample_nearest2d upsample_nearest3d upsample_linear1d
    upsample_bilinear2d upsample_trilinear3d upsample_bicubic2d _upsample_nearest_exact1d _upsample_nearest_exact2d
    _upsample_nearest_exact3d neg channel_shuffle narrow_copy
""".split()
LINEAR: dict[str, tuple[str, ...]] = dict.fromkeys(_SELF, ("self",)) | {
    "cat": ("tensors",),
    "embedding": ("weight",),
    "max_unpool2d": ("self",),
    "max_unpool3d": ("self",),
    "stack": ("tensors",),
    "where.self": ("self", "other"),
    "index_add": ("self", "source"),
    "index_copy": ("self", "source"),
    "scatter_add": ("self", "src"),
    "scatter.src": ("self", "src"),
    "select_backward": ("grad_output",),
    "slice_backward": ("grad_output",),
    "diagonal_backward": ("grad_output",),
    "select_scatter": ("self", "src"),
    "slice_scatter": ("self", "src"),
    "diagonal_scatter": ("self", "src"),
}
# Operators that are linear in each of these arguments.
PRODUCTS: dict[str, tuple[str, ...]] = {
    "mm": ("self", "mat2"),
    "bmm": ("self", "mat2"),
    "mv": ("self", "vec"),
    "dot": ("self", "tensor"),
}
# Pointwise operators whose declarations do not say so.
ELEMENTWISE = frozenset(
    """masked_fill masked_fill_ lerp lerp_ clamp clamp_ clamp_min clamp_min_ clamp_max clamp_max_ relu relu_ hardtanh hardtanh_ celu celu_
    rsub pow addcmul_ addcdiv_ mul_ ldexp deg2rad rad2deg""".split()
)

# Drawn numbers, which do not change with the parameters: torch gives them a tangent of zeros.
DRAWN = frozenset("normal.Tensor_float normal.float_Tensor normal.Tensor_Tensor bernoulli.default poisson.default".split())


def outgoing(op: Op, primals: tuple[Any, ...], tangents: Tangents, result: TensorOrTensors) -> list[Any]:
    """The tangents of an operator's results, None where there is none; `tangents` has those of its arguments."""
    name, full = op.name, f"{op.name}.{op.overload_name}"
    results = [result] if isinstance(result, Tensor) else list(result)
    if full in DRAWN:
        return [_zeros(r) for r in results]
    linear = LINEAR.get(full) or LINEAR.get(name)
    if linear is not None and set(tangents) <= set(linear):
        return _linear(op, primals, tangents, linear)
    if name in PRODUCTS:
        return [_sum([_replaced(op, primals, {n: t}) for n, t in tangents.items() if n in PRODUCTS[name]])]
    if name == "_to_copy":
        return [call_op(op, (tangents["self"], *primals[1:]))] if results[0].dtype.inexact else [None]
    if name == "logcumsumexp":
        return [_of_logcumsumexp(primals[0], tangents["self"], results[0], primals[1])]
    if name == "copy_":
        source = tangents.get("src")
        return [
            registry.entry("zeros_like")(results[0]) if source is None else source.to(results[0].dtype).expand(results[0].shape)
        ]
    if (op.pointwise is not None or name in ELEMENTWISE) and len(results) == 1 and _is_real(primals, results[0]):
        found = _pointwise(op, primals, tangents, results[0])
        if found is not None:
            return [found]
    return _by_formulas(op, primals, tangents, results)


def _of_logcumsumexp(x: Tensor, tangent: Tensor, result: Tensor, dim: int) -> Tensor:
    """The sum of tangents up to each position, weighted as the exponentials are; by logarithms, so that none overflows."""
    lowest = registry.entry("full_like")(tangent, float("-inf"))
    parts = []
    for signed in (tangent, -tangent):
        logs = registry.entry("where", "self")(signed > 0, signed.log(), lowest)
        parts.append((registry.entry("logcumsumexp")(x + logs, dim) - result).exp())
    found: Tensor = parts[0] - parts[1]
    return found


def _replaced(op: Op, primals: tuple[Any, ...], new: dict[str, Any]) -> Any:
    return call_op(op, tuple(new.get(a.name, p) for a, p in zip(op.schema.arguments, primals, strict=True)))


def _zeros(t: Tensor) -> Tensor:
    return None if t is None else registry.entry("zeros_like")(t)


def _linear(op: Op, primals: tuple[Any, ...], tangents: Tangents, names: Sequence[str]) -> list[Any]:
    new: dict[str, Any] = {}
    for a, p in zip(op.schema.arguments, primals, strict=True):
        if a.name in names:
            given = tangents.get(a.name)
            if isinstance(p, list | tuple):
                new[a.name] = [_zeros(x) if t is None else t for x, t in zip(p, given or [None] * len(p), strict=True)]
            else:
                new[a.name] = _zeros(p) if given is None else given
    if op.name == "constant_pad_nd":
        new["value"] = 0
    elif op.name == "embedding":
        new["padding_idx"] = -1
    found = _replaced(op, primals, new)
    return [found] if isinstance(found, Tensor) else list(found)


def _sum(parts: list[Any]) -> Any:
    total = None
    for p in parts:
        if p is not None:
            total = p if total is None else total + p
    return total


def _is_real(primals: tuple[Any, ...], result: Tensor) -> bool:
    return not result.dtype.is_complex and not any(isinstance(p, Tensor) and p.dtype.is_complex for p in primals)


# --- from the formulas ----------------------------------------------------------------------------------------------------


def _parameters(
    op: Op, formula: Formula, primals: tuple[Any, ...], results: list[Any], grads: list[Any], needs: Sequence[bool]
) -> list[Any]:
    """The arguments of a formula."""
    names = op.schema.argument_names
    given = dict(zip(names, primals, strict=True))
    if len(op.schema.returns) == 1:
        given["result"] = results if op.schema.returns[0].type == "Tensor[]" else results[0]
    else:
        given |= dict(zip(op.schema.output_names, results, strict=True))
        given.setdefault("result", results[0])
    given |= {"grad": grads[0], "grads": grads, "needs": tuple(needs)}
    return [given[p] if p in given else _fact(given, p) for p in formula.parameters]


def _fact(given: dict[str, Any], name: str) -> Any:
    fact = next(f for f in FACTS if name.endswith(f))
    value = given[name[: -len(fact)]]
    read: Callable[[Any], Any] = {
        "_shape": lambda t: t._array.shape,
        "_dtype": lambda t: t.dtype,
        "_device": lambda t: t.device,
        "_strides": lambda t: t.stride(),
        "_geometry": lambda t: (t._array.shape, t.stride(), t.storage_offset()),
        "_byte_steps": lambda t: t._array.strides,
    }[fact]
    if value is None or value.__class__ in NUMBERS:
        return None
    return [read(t) for t in value] if isinstance(value, list | tuple) else read(value)


def _gradients(op: Op, primals: tuple[Any, ...], results: list[Any], grads: list[Any], wanted: set[str]) -> dict[str, Any]:
    """Gradients of these arguments from those of the results, by the operator's formulas."""
    found: dict[str, Any] = {}
    for formula in op.formulas:
        needs = [t in wanted for t in formula.targets]
        if any(needs):
            made = formula.function(*_parameters(op, formula, primals, results, grads, needs))
            found |= {formula.targets[0]: made} if len(formula.targets) == 1 else dict(zip(formula.targets, made, strict=True))
    return {name: g for name, g in found.items() if name in wanted}


def _pointwise(op: Op, primals: tuple[Any, ...], tangents: Tangents, result: Tensor) -> Tensor | None:
    """Each element's derivative times its tangent; None where the formulas do more than that."""
    shape = result._array.shape
    parts = []
    for name, tangent in tangents.items():
        if tangent.dtype is not result.dtype:
            tangent = tangent.to(result.dtype)
        if tangent._array.shape != shape:
            tangent = tangent.expand(shape)
        part = _gradients(op, primals, [result], [tangent], {name}).get(name)
        if part is None or part._array.shape != shape:
            return None
        parts.append(part if part.dtype is result.dtype else part.to(result.dtype))
    return _sum(parts)


def _by_formulas(op: Op, primals: tuple[Any, ...], tangents: Tangents, results: list[Any]) -> list[Any]:
    """Differentiate the formulas, which are linear in the gradients of the results, by these."""
    outputs = op.schema.output_names
    carries = [
        r is not None and r.dtype.inexact and (len(results) != len(outputs) or outputs[i] not in op.nondifferentiable)
        for i, r in enumerate(results)
    ]
    recorded = state.grad_enabled
    seeds = [registry.entry("zeros_like")(r).detach() if c else None for r, c in zip(results, carries, strict=True)]
    for seed in seeds:
        if seed is not None:
            seed._keys |= keys.AUTOGRAD
    with suspended(True):
        made = _gradients(op, primals, results, seeds, set(tangents))
        pairs = list(_pairs(op, primals, made, tangents))
    if not pairs:
        return [None] * len(results)
    create = recorded and _is_tracked([*primals, *[t for _, t in pairs]])
    wanted = [s for s in seeds if s is not None]
    found = iter(
        autograd_grad(
            [g for g, _ in pairs], wanted, [t for _, t in pairs], allow_unused=True, create_graph=create, retain_graph=create
        )
    )
    return [None if s is None else next(found) for s in seeds]


def _pairs(op: Op, primals: tuple[Any, ...], made: dict[str, Any], tangents: Tangents) -> Any:
    """Gradients that depend on the seeds, in the shape of their arguments, each with its tangent."""
    by_name = dict(zip(op.schema.argument_names, primals, strict=True))
    for name, g in made.items():
        many = isinstance(by_name[name], list | tuple)
        rows = zip(g or (), by_name[name], tangents[name], strict=False) if many else [(g, by_name[name], tangents[name])]
        for gradient, primal, tangent in rows:
            if gradient is None or tangent is None or not gradient._keys & keys.AUTOGRAD:
                continue
            if gradient._array.shape != primal._array.shape:
                gradient = sum_to(gradient, primal._array.shape)
            if gradient.dtype.is_complex and not primal.dtype.is_complex:
                gradient = gradient.real
            yield gradient, tangent if tangent.dtype is gradient.dtype else tangent.to(gradient.dtype)


def _is_tracked(arguments: Sequence[Any]) -> bool:
    return any(
        isinstance(t, Tensor) and t._keys & keys.AUTOGRAD for a in arguments for t in (a if isinstance(a, list | tuple) else (a,))
    )
