"""Derivatives of functions: `grad`, `vjp`, `jvp`, and whole Jacobians and Hessians by mapping these over a basis."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from .._dispatch import registry
from .._dispatch.tls import state
from .._functions import functions
from .._tensor import Tensor
from ..utils import _pytree as pytree
from . import dual_key  # noqa: F401 - the layer is registered
from .batched import lifted
from .tangents import begin_level, end_level, set_tangent, stripped, tangent_of
from .tapes import Tape
from .vmap import vmap

__all__ = ["grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp", "linearize", "vjp"]

Function = Callable[..., Any]
Argnums = int | tuple[int, ...]


# --- which arguments --------------------------------------------------------------------------------------------------------


def _position(argnum: object, count: int) -> int:
    if not isinstance(argnum, int):
        raise RuntimeError(f"argnum must be int, got: {type(argnum)}")
    if not -count <= argnum < count:
        raise RuntimeError(f"Got argnum={argnum}, but only {count} positional inputs")
    return argnum % count


def _chosen(args: tuple[Any, ...], argnums: int | tuple[int, ...]) -> Any:
    """The arguments that are differentiated: one, or a tuple of several."""
    if isinstance(argnums, int):
        return args[_position(argnums, len(args))]
    if not isinstance(argnums, tuple):
        raise RuntimeError(f"argnums must be int or Tuple[int, ...], got: {type(argnums)}")
    if not argnums:
        raise RuntimeError("argnums must be non-empty")
    positions = [_position(a, len(args)) for a in argnums]
    if len(set(positions)) != len(positions):
        raise RuntimeError(f"argnums elements must be unique, got {tuple(positions)}")
    return tuple(args[p] for p in positions)


def _replaced(args: tuple[Any, ...], new: Any, argnums: Argnums) -> tuple[Any, ...]:
    found = list(args)
    pairs = [(argnums, new)] if isinstance(argnums, int) else zip(argnums, new, strict=True)
    for argnum, value in pairs:
        found[_position(argnum, len(args))] = value
    return tuple(found)


def _with_aux(output: Any, has_aux: bool, what: str) -> Any:
    if not has_aux:
        return output, None
    if not (isinstance(output, tuple) and len(output) == 2):
        raise RuntimeError(f"{what}: output of function f should be a tuple: (output, aux) if has_aux is True")
    return output


def _zeros(t: Tensor) -> Tensor:
    found: Tensor = functions["zeros_like"](t)
    return found


# --- backward -----------------------------------------------------------------------------------------------------------------


def grad_and_value(func: Function, argnums: Argnums = 0, has_aux: bool = False) -> Function:
    """A function that returns the gradient of `func`, and what `func` returns."""

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        with Tape() as tape:
            inputs = tape.differentiable(_chosen(args, argnums))
            given = _replaced(args, inputs, argnums)
            what = "grad_and_value(f)(*args)"
            output, aux = _with_aux(func(*given, **kwargs), has_aux, what)
            if not isinstance(output, Tensor):
                raise RuntimeError(f"{what}: Expected f(*args) to return a Tensor, got {type(output)}")
            if output.dim():
                raise RuntimeError(
                    f"{what}: Expected f(*args) to return a scalar Tensor, got tensor with {output.dim()} dims. Maybe you wanted to use "
                    "the vjp or jacrev APIs instead?"
                )
            grads = _filled(tape, (output,), (functions["ones_like"](output),))
            found = pytree.tree_unflatten(grads, pytree.tree_structure(inputs))
            found, output, aux = tape.outer(found), tape.outer(output), tape.outer(aux)
        return (found, (output, aux)) if has_aux else (found, output)

    return wrapper


def _filled(tape: Tape, outputs: Sequence[Tensor], grads: Sequence[Tensor], *, keep_graph: bool = False) -> list[Tensor]:
    """Gradients of a tape's inputs, zeros where there are none."""
    inputs = tape.inputs
    found = tape.gradients(outputs, grads, keep_graph=keep_graph)
    return [_zeros(tape.outer(x)) if g is None else g for x, g in zip(inputs, found, strict=True)]


def grad(func: Function, argnums: Argnums = 0, has_aux: bool = False) -> Function:
    """A function that returns the gradient of `func`, which returns a single number as a tensor."""
    both = grad_and_value(func, argnums, has_aux)

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        found, value = both(*args, **kwargs)
        return (found, value[1]) if has_aux else found

    return wrapper


def vjp(func: Function, *primals: Any, has_aux: bool = False) -> Any:
    """What `func` returns, and the function from cotangents of that to those of the primals."""
    return _vjp(func, primals, None, has_aux)


def _vjp(func: Function, primals: tuple[Any, ...], argnums: Argnums | None, has_aux: bool) -> Any:
    what = "vjp(f, *primals)"
    with Tape() as tape:
        chosen = primals if argnums is None else _chosen(primals, argnums)
        inputs = tape.differentiable(chosen)
        given = inputs if argnums is None else _replaced(primals, inputs, argnums)
        output, aux = _with_aux(func(*given), has_aux, what)
        flat, spec = pytree.tree_flatten(output)
        _check_outputs(flat, "vjp(f, *primals)")
        for t in flat:
            if not t.dtype.inexact:
                raise RuntimeError(
                    f"vjp(f, ...): All outputs of f must be floating-point or complex Tensors, got Tensor with dtype {t.dtype}"
                )
        result, aux = tape.outer(output), tape.outer(aux)
    inputs_spec = pytree.tree_structure(inputs)

    def pull_back(cotangents: Any, retain_graph: bool = True, create_graph: bool | None = None) -> Any:
        given, given_spec = pytree.tree_flatten(cotangents)
        if given_spec != spec:
            raise RuntimeError(
                "Expected pytree structure of cotangents to be the same as pytree structure of outputs to the function. cotangents: "
                f"{pytree.treespec_pprint(given_spec)}, primal output: {pytree.treespec_pprint(spec)}"
            )
        tape.outer_mode = state.grad_enabled if create_graph is None else create_graph
        found = _filled(tape, flat, given, keep_graph=retain_graph)
        outside = [tape.outer(g) for g in found]
        if argnums is None and len(outside) == 1 and len(primals) == 1 and isinstance(primals[0], Tensor):
            return (outside[0],)
        return pytree.tree_unflatten(outside, inputs_spec)

    pull_back.tape = tape  # type: ignore[attr-defined]
    return (result, pull_back, aux) if has_aux else (result, pull_back)


def _check_outputs(flat: Sequence[Any], api: str) -> None:
    if not flat or (len(flat) == 1 and flat[0] is None):
        raise RuntimeError(f"{api}: Expected f to be a function that has non-empty output (got output = {list(flat)})")
    for t in flat:
        if not isinstance(t, Tensor):
            raise RuntimeError(f"{api}: expected f(*primals) to return only tensors, got unsupported type {type(t)}")


# --- forward --------------------------------------------------------------------------------------------------------------------

_JVP = "jvp(f, primals, tangents)"


def jvp(func: Function, primals: Any, tangents: Any, *, strict: bool = False, has_aux: bool = False) -> Any:
    """What `func` returns, and the derivative of that in the direction of the tangents."""
    return _jvp(func, primals, tangents, None, strict=strict, has_aux=has_aux)


def _jvp(
    func: Function, primals: Any, tangents: Any, argnums: Argnums | None, *, strict: bool = False, has_aux: bool = False
) -> Any:
    if not isinstance(primals, tuple):
        raise RuntimeError(f"{_JVP}: Expected primals to be a tuple. E.g. it should be valid to call f(*primals).")
    chosen = primals if argnums is None else _chosen(primals, argnums)
    flat, spec = pytree.tree_flatten(chosen)
    flat_tangents, tangents_spec = pytree.tree_flatten(tangents)
    if spec != tangents_spec:
        raise RuntimeError(
            f"{_JVP}: Expected primals and tangents to have the same python structure. For example, if primals is a tuple of 3 tensors, "
            f"tangents also must be. Got primals with structure {spec} and tangents with structure {tangents_spec}"
        )
    for values, name in ((flat, "primals"), (flat_tangents, "tangents")):
        if not values:
            raise RuntimeError(f"{_JVP}: Expected {name} to contain at least one Tensor.")
        for t in values:
            if not isinstance(t, Tensor):
                raise RuntimeError(f"{_JVP}: Expected {name} to only contain Tensors, got {type(t)}")
    level = begin_level()
    state.transforms += 1
    carrying, state.carrying = state.carrying, 0  # this level's tangents are its own, whatever is switched off around it
    try:
        duals = pytree.tree_unflatten([_dual(p, t, level) for p, t in zip(flat, flat_tangents, strict=True)], spec)
        given = duals if argnums is None else _replaced(primals, duals, argnums)
        output, aux = _with_aux(func(*given), has_aux, _JVP)
        outputs, output_spec = pytree.tree_flatten(output)
        _check_outputs(outputs, _JVP)
        parts = [_unpacked(t, level, strict) for t in outputs]
        aux = pytree.tree_map_only(Tensor, lambda t: stripped(t, level), aux)
    finally:
        state.carrying = carrying
        state.transforms -= 1
        end_level(level)
    values, derivatives = (pytree.tree_unflatten([p[i] for p in parts], output_spec) for i in (0, 1))
    return (values, derivatives, aux) if has_aux else (values, derivatives)


def _dual(primal: Tensor, tangent: Tensor, level: int) -> Tensor:
    if primal.shape != tangent.shape:
        raise RuntimeError(
            "Trying to set a forward gradient that has a different size than that of the original Tensor, this is not supported. Tensor "
            f"is of size {list(primal.shape)} while the given forward gradient is of size {list(tangent.shape)}."
        )
    if not primal.dtype.inexact:
        raise ValueError(f"Expected primal to be floating point or complex, but got: {primal.dtype}")
    dual: Tensor = registry.entry("alias")(lifted(primal, state.level))
    set_tangent(dual, level, lifted(tangent if tangent.dtype is primal.dtype else tangent.to(primal.dtype), state.level))
    return dual


def _unpacked(t: Tensor, level: int, strict: bool) -> tuple[Tensor, Tensor]:
    primal, tangent = stripped(t, level), tangent_of(t, level)
    if tangent is None:
        if strict:
            raise RuntimeError(
                "jvp(f, primals, tangents, strict=True): The output of f is independent of the inputs. This is not allowed with "
                "strict=True."
            )
        tangent = _zeros(primal)
    return primal, tangent


def linearize(func: Function, *primals: Any) -> tuple[Any, Function]:
    """What `func` returns, and its derivative at the primals as a linear function of tangents.

    The function is evaluated once: the derivative goes backward through the graph twice, in which it is linear.
    """
    output, pull_back = vjp(func, *primals)
    flat, spec = pytree.tree_flatten(output)
    flat_primals, primals_spec = pytree.tree_flatten(primals)
    seeds = pytree.tree_unflatten([_zeros(t) for t in flat], spec)
    back = _vjp(lambda seed: pull_back(seed, create_graph=True), (seeds,), None, False)[1]

    def push_forward(*tangents: Any) -> Any:
        given, given_spec = pytree.tree_flatten(tangents)
        if given_spec != primals_spec:
            raise RuntimeError(
                f"Expected the tangents {given_spec} to have the same structure as the primals {primals_spec} that linearize was given"
            )
        for t, p in zip(given, flat_primals, strict=True):
            if t.shape != p.shape:
                raise RuntimeError(f"Expected a tangent of shape {tuple(p.shape)}, got {tuple(t.shape)}")
        found = back(pytree.tree_unflatten(given, primals_spec))[0]
        pull_back.tape.outer_mode = state.grad_enabled
        return pull_back.tape.outer(found)

    return output, push_forward


# --- Jacobians ----------------------------------------------------------------------------------------------------------------------


def _refuse_complex(name: str, tree: Any, kind: str) -> None:
    for i, t in enumerate(pytree.tree_leaves(tree)):
        if isinstance(t, Tensor) and t.dtype.is_complex:
            raise RuntimeError(f"{name}: Expected all {kind} to be real but received complex tensor at flattened input idx: {i}")


def _basis(flat: Sequence[Tensor], start: int, stop: int) -> list[Tensor]:
    """Rows of the identity over all elements of some tensors, one piece for each of these."""
    pieces = []
    offset = 0
    for t in flat:
        n = t.numel()
        rows = functions["zeros"](stop - start, n, dtype=t.dtype, device=t.device)
        first, last = max(start, offset), min(stop, offset + n)
        if first < last:
            at = functions["arange"](first, last)
            rows[at - start, at - offset] = 1
        pieces.append(rows.view([stop - start, *t.shape]))
        offset += n
    return pieces


def jacrev(
    func: Function,
    argnums: Argnums = 0,
    *,
    has_aux: bool = False,
    chunk_size: int | None = None,
    _preallocate_and_copy: bool = False,
) -> Function:
    """A function that returns the Jacobian of `func`, a row for each element of its results, computed backward."""
    if not (chunk_size is None or chunk_size > 0):
        raise ValueError("jacrev: `chunk_size` should be greater than 0.")

    @functools.wraps(func)
    def wrapper(*args: Any) -> Any:
        _refuse_complex("jacrev", args, "inputs")
        made = _vjp(func, args, argnums, has_aux)
        output, pull_back = made[0], made[1]
        _refuse_complex("jacrev", output, "outputs")
        flat, spec = pytree.tree_flatten(output)
        _check_outputs(flat, "jacrev(f, ...)(*args)")
        chosen = _chosen(args, argnums)
        primals, primals_spec = pytree.tree_flatten(chosen)
        total = sum(t.numel() for t in flat)

        def one(*rows: Tensor) -> tuple[Any, ...]:
            return tuple(pytree.tree_leaves(pull_back(pytree.tree_unflatten(rows, spec))))

        pieces = []
        size = chunk_size or max(total, 1)
        for start in range(0, total, size) or (0,):
            basis = _basis(flat, start, min(start + size, total))
            if size == 1 and total:  # torch: one row at a time needs no vmap, which some functions do not take
                pieces.append(tuple(g.unsqueeze(0) for g in one(*[b[0] for b in basis])))
            elif not total:
                pieces.append(tuple(functions["zeros"](0, *p.shape, dtype=p.dtype) for p in primals))
            else:
                pieces.append(vmap(one)(*basis))
        found = []
        columns = [column[0] if len(column) == 1 else functions["cat"](column) for column in map(list, zip(*pieces, strict=True))]
        offset = 0
        for t in flat:
            rows = [c[offset : offset + t.numel()].reshape([*t.shape, *p.shape]) for c, p in zip(columns, primals, strict=True)]
            found.append(pytree.tree_unflatten(rows, primals_spec))
            offset += t.numel()
        jacobian = pytree.tree_unflatten(found, spec)
        return (jacobian, made[2]) if has_aux else jacobian

    return wrapper


def jacfwd(func: Function, argnums: Argnums = 0, has_aux: bool = False, *, randomness: str = "error") -> Function:
    """A function that returns the Jacobian of `func`, a column for each element of its arguments, computed forward."""

    @functools.wraps(func)
    def wrapper(*args: Any) -> Any:
        _refuse_complex("jacfwd", args, "inputs")
        chosen = _chosen(args, argnums)
        primals, primals_spec = pytree.tree_flatten(chosen)
        for p in primals:
            if not isinstance(p, Tensor):
                raise RuntimeError(f"jacfwd: Expected inputs to be Tensors, got {type(p)}")
        seen: list[Any] = []

        def push(*columns: Tensor) -> Any:
            made = _jvp(func, args, pytree.tree_unflatten(columns, primals_spec), argnums, has_aux=has_aux)
            _refuse_complex("jacfwd", made[0], "outputs")
            outputs, spec = pytree.tree_flatten(made[0])
            seen[:] = [spec, [t.shape for t in outputs]]
            return (tuple(pytree.tree_leaves(made[1])), *([made[2]] if has_aux else []))

        total = sum(p.numel() for p in primals)
        out_dims: Any = (-1, None) if has_aux else (-1,)
        made = vmap(push, out_dims=out_dims, randomness=randomness)(*_basis(primals, 0, total))
        found = []
        for d, shape in zip(made[0], seen[1], strict=True):
            offset = 0
            columns = []
            for p in primals:
                columns.append(d[..., offset : offset + p.numel()].reshape([*shape, *p.shape]))
                offset += p.numel()
            found.append(pytree.tree_unflatten(columns, primals_spec))
        jacobian = pytree.tree_unflatten(found, seen[0])
        return (jacobian, made[1]) if has_aux else jacobian

    return wrapper


def hessian(func: Function, argnums: Argnums = 0) -> Function:
    """A function that returns the Hessian of `func`: the Jacobian, computed forward, of the one computed backward."""
    return jacfwd(jacrev(func, argnums), argnums)
