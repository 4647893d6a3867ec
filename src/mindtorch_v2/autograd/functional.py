"""torch.autograd.functional: Jacobians, Hessians and their products with vectors, of functions of tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .._autograd.differentiate import grad
from .._autograd.grad_mode import enable_grad, set_grad_enabled
from .._dispatch.tls import state
from .._functions import functions
from .._tensor import Tensor, shallow_copy
from .._transforms.gradients import _basis, jacfwd
from .._transforms.tangents import carry_over
from .._vmap_internals import vmap

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]

Tensors = tuple[Tensor, ...]
Function = Callable[..., Any]


def vjp(
    func: Function,
    inputs: Tensor | tuple[Tensor, ...],
    v: Tensor | tuple[Tensor, ...] | None = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:
    """`func(inputs)`, and the product of the vector `v` with its Jacobian."""
    with enable_grad():
        single_in, xs = _tensors(inputs, "inputs", "vjp")
        xs = _prepare(xs, create_graph)
        single_out, outs = _call(func, xs, "vjp", strict)
        vs = _vector(
            v, outs, single_out, "vjp", default_for="the user-provided function returns a single Tensor with a single element"
        )
    with _recording(create_graph):
        grads = _filled(_grads(outs, xs, vs, create_graph), xs, strict, create_graph, "back")
    return _result(outs, create_graph, single_out), _result(grads, create_graph, single_in)


def jvp(
    func: Function,
    inputs: Tensor | tuple[Tensor, ...],
    v: Tensor | tuple[Tensor, ...] | None = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:
    """`func(inputs)`, and the product of its Jacobian with the vector `v`, by differentiating backward twice."""
    with enable_grad():
        single_in, xs = _tensors(inputs, "inputs", "jvp")
        xs = _prepare(xs, create_graph)
        vs = _vector(
            v, xs, single_in, "jvp", default_for="the input to the user-provided function is a single Tensor with a single element"
        )
        single_out, outs = _call(func, xs, "jvp", strict)
        # the vector-Jacobian product is linear in its vector: its derivative with respect to that is what is wanted
        dummies = tuple(o.new_zeros(o.shape).requires_grad_() for o in outs)
        back = _filled(_grads(outs, xs, dummies, True), xs, strict, True, "back")
    with _recording(create_graph):
        products = _filled(_grads(back, dummies, vs, create_graph), outs, strict, create_graph, "back_trick")
    return _result(outs, create_graph, single_out), _result(products, create_graph, single_out)


def jacobian(
    func: Function,
    inputs: Tensor | tuple[Tensor, ...],
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Any:
    """The derivative of each element of `func(inputs)` by each element of the inputs."""
    if strategy not in ("reverse-mode", "forward-mode"):
        raise AssertionError(
            'Expected strategy to be either "forward-mode" or "reverse-mode". Hint: If your function has more outputs than inputs, '
            '"forward-mode" tends to be more performant. Otherwise, prefer to use "reverse-mode".'
        )
    if strict and vectorize:
        raise RuntimeError(
            "torch.autograd.functional.jacobian: `strict=True` and `vectorize=True` are not supported together. Please either set `strict=False` or `vectorize=False`."
        )
    if strategy == "forward-mode":
        return _jacobian_forward(func, inputs, create_graph, strict, vectorize)
    with enable_grad():
        single_in, xs = _tensors(inputs, "inputs", "jacobian")
        xs = _prepare(xs, create_graph)
        single_out, outs = _call(func, xs, "jacobian", strict)
        if vectorize:
            rows = _rows_at_once(outs, xs, create_graph)
        else:
            rows = tuple(_rows(i, out, xs, create_graph, strict) for i, out in enumerate(outs))
    rows = rows if create_graph else tuple(tuple(j.detach() for j in row) for row in rows)
    found: Any = tuple(row[0] if single_in else row for row in rows)
    return found[0] if single_out else found


def _rows_at_once(outs: Tensors, xs: Tensors, create_graph: bool) -> tuple[Tensors, ...]:
    """The Jacobians of all results, whose rows are gradients under `vmap`."""
    used = [o for o in outs if o.requires_grad]

    def row(*vectors: Tensor) -> Tensors:
        found = _grads(used, xs, vectors, create_graph)
        return tuple(x.new_zeros(x.shape) if g is None else g for g, x in zip(found, xs, strict=True))

    total = sum(o.numel() for o in used)
    columns = vmap(row)(*_basis(used, 0, total)) if total else ()
    found: list[Tensors] = []
    at = 0
    for o in outs:
        if not o.requires_grad or not total:
            found.append(tuple(x.new_zeros(o.shape + x.shape) for x in xs))
            continue
        found.append(tuple(c[at : at + o.numel()].view(o.shape + x.shape) for c, x in zip(columns, xs, strict=True)))
        at += o.numel()
    return tuple(found)


def _jacobian_forward(
    func: Function, inputs: Tensor | tuple[Tensor, ...], create_graph: bool, strict: bool, vectorize: bool
) -> Any:
    """The Jacobian a column at a time, or all columns under `vmap`, with tangents carried forward."""
    if strict:
        raise NotImplementedError(
            'torch.autograd.functional.jacobian: `strict=True` and `strategy="forward-mode"` are not supported together (yet). '
            'Please either set `strict=False` or `strategy="reverse-mode"`.'
        )
    if not vectorize:
        raise NotImplementedError(
            "Computing Jacobian using forward-AD or forward-over-reverse Hessian isonly implemented for `vectorize=True`."
        )
    single_in, xs = _tensors(inputs, "inputs", "jacobian")
    shapes: list[bool] = []

    def checked(*args: Tensor) -> Tensors:
        single, outs = _tensors(func(*args), "outputs of the user-provided function", "jacobian")
        shapes[:] = [single]
        return outs

    with enable_grad():
        given = xs if create_graph else tuple(x.detach() for x in xs)
        rows = jacfwd(checked, tuple(range(len(given))))(*given)
    rows = rows if create_graph else tuple(tuple(j.detach() for j in row) for row in rows)
    found: Any = tuple(row[0] if single_in else row for row in rows)
    return found[0] if shapes[0] else found


def _rows(i: int, out: Tensor, xs: Tensors, create_graph: bool, strict: bool) -> Tensors:
    """The Jacobian of one result: a tensor of shape (result's, input's) for each input."""
    parts: list[list[Tensor]] = [[] for _ in xs]
    flat = out.reshape(-1)
    for at in range(out.numel()):
        grads = _grads((flat[at],), xs, None, create_graph)
        for position, (x, g) in enumerate(zip(xs, grads, strict=True)):
            if g is None:
                if strict:
                    raise RuntimeError(
                        f"Output {i} of the user-provided function is independent of input {position}. This is not allowed in strict mode."
                    )
                g = x.new_zeros(x.shape)
            elif strict and create_graph and not g.requires_grad:
                raise RuntimeError(
                    "The jacobian of the user-provided function is independent of "
                    f"input {position}. This is not allowed in strict mode when create_graph=True."
                )
            parts[position].append(g)
    return tuple(
        functions["stack"](got).view(out.shape + x.shape) if got else x.new_zeros(out.shape + x.shape)
        for got, x in zip(parts, xs, strict=True)
    )


def hessian(
    func: Function,
    inputs: Tensor | tuple[Tensor, ...],
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Any:
    """The second derivatives of a function with a single scalar result."""
    if outer_jacobian_strategy not in ("reverse-mode", "forward-mode"):
        raise AssertionError('Expected strategy to be either "forward-mode" or "reverse-mode".')
    single_in, xs = _tensors(inputs, "inputs", "hessian")

    def gradient(*args: Tensor) -> tuple[Tensor, ...]:
        if outer_jacobian_strategy == "forward-mode":
            args = tuple(_tracked(a) for a in args)
        out = _scalar(_call(func, args, "hessian", strict), "hessian")
        # args are inputs of the outer Jacobian, and so part of its graph
        return _varying(_filled(_grads((out,), args, None, True), args, False, True, "jac"), strict)

    found = jacobian(gradient, xs, create_graph, strict, vectorize, outer_jacobian_strategy)
    return found[0][0] if single_in else found


def _tracked(dual: Tensor) -> Tensor:
    """A dual tensor that requires grad, for the gradient whose derivative is carried forward."""
    if dual.requires_grad:
        return dual
    made = carry_over(dual, shallow_copy(dual))
    made.requires_grad = True
    return made


def vhp(
    func: Function,
    inputs: Tensor | tuple[Tensor, ...],
    v: Tensor | tuple[Tensor, ...] | None = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:
    """`func(inputs)`, and the product of `v` with its Hessian."""
    with enable_grad():
        single_in, xs = _tensors(inputs, "inputs", "vhp")
        xs = _prepare(xs, create_graph)
        vs = _vector(
            v, xs, single_in, "vhp", default_for="the input to the user-provided function is a single Tensor with a single element"
        )
        out = _scalar(_call(func, xs, "vhp", strict), "vhp")
        first = _varying(_filled(_grads((out,), xs, None, True), xs, strict, True, "jac"), strict)
    with _recording(create_graph):
        products = _filled(_grads(first, xs, vs, create_graph), xs, strict, create_graph, "double_back")
    return _result((out,), create_graph, True), _result(products, create_graph, single_in)


def hvp(
    func: Function,
    inputs: Tensor | tuple[Tensor, ...],
    v: Tensor | tuple[Tensor, ...] | None = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:
    """`func(inputs)`, and the product of its Hessian with `v`; `vhp` is the same by symmetry, and faster."""
    with enable_grad():
        single_in, xs = _tensors(inputs, "inputs", "hvp")
        xs = _prepare(xs, create_graph)
        vs = _vector(
            v, xs, single_in, "hvp", default_for="the input to the user-provided function is a single Tensor with a single element"
        )
        out = _scalar(_call(func, xs, "hvp", strict), "hvp")
        first = _varying(_filled(_grads((out,), xs, None, True), xs, strict, True, "jac"), strict)
        dummies = tuple(x.new_zeros(x.shape).requires_grad_() for x in xs)
        second = _filled(_grads(first, xs, dummies, True), xs, strict, True, "double_back")
    with _recording(create_graph):
        products = _filled(_grads(second, dummies, vs, create_graph), xs, strict, create_graph, "double_back_trick")
    return _result((out,), create_graph, True), _result(products, create_graph, single_in)


# --- arguments and results --------------------------------------------------------------------------------------------


def _recording(create_graph: bool) -> set_grad_enabled:
    return set_grad_enabled(create_graph or state.grad_enabled)


def _tensors(given: Any, name: str, function: str) -> tuple[bool, Tensors]:
    """Whether a single tensor was given, and a tuple in any case."""
    single = not isinstance(given, tuple)
    found = (given,) if single else given
    for i, t in enumerate(found):
        if not isinstance(t, Tensor):
            what = f"the given {name} has type {type(t)}" if single else f"the value at index {i} has type {type(t)}"
            raise TypeError(f"The {name} given to {function} must be either a Tensor or a tuple of Tensors but {what}.")
    return single, found


def _prepare(xs: Tensors, create_graph: bool) -> Tensors:
    """Inputs of their own for this computation; part of the caller's graph when the results shall be."""
    if create_graph:
        return tuple(x.view_as(x) if x.requires_grad else x.detach().requires_grad_() for x in xs)
    return tuple(x.detach().requires_grad_(x.dtype.inexact) for x in xs)


def _call(func: Function, xs: tuple[Tensor, ...], function: str, strict: bool) -> tuple[bool, Tensors]:
    single, outs = _tensors(func(*xs), "outputs of the user-provided function", function)
    if strict:
        for i, out in enumerate(outs):
            if not out.requires_grad:
                raise RuntimeError(
                    f"Output {i} of the user-provided function does not require gradients. The outputs must be computed in a "
                    "differentiable manner from the input when running in strict mode."
                )
    return single, outs


def _scalar(called: tuple[bool, Tensors], function: str) -> Tensor:
    single, outs = called
    if not single:
        raise RuntimeError(f"The function given to {function} should return a single Tensor")
    if outs[0].numel() != 1:
        raise RuntimeError(f"The Tensor returned by the function given to {function} should contain a single element")
    return outs[0].reshape(()) if outs[0].dim() > 1 else outs[0]


def _vector(
    v: Tensor | tuple[Tensor, ...] | None, like: Tensors, single: bool, function: str, *, default_for: str
) -> Tensors | None:
    if v is None:
        if len(like) != 1 or like[0].numel() != 1:
            raise RuntimeError(f"The vector v can only be None if {default_for}.")
        return (like[0].new_ones(like[0].shape),)
    _, vs = _tensors(v, "v", function)
    if single and len(vs) != 1:
        raise RuntimeError("The given v should contain a single Tensor.")
    if len(vs) != len(like):
        raise RuntimeError(f"v is a tuple of invalid length: should be {len(like)} but got {len(vs)}.")
    for i, (a, b) in enumerate(zip(vs, like, strict=True)):
        if a.shape != b.shape:
            raise RuntimeError(f"{'' if single else f'Entry {i} in '}v has invalid size: should be {b.shape} but got {a.shape}.")
    return vs


def _grads(outs: Sequence[Tensor], xs: tuple[Tensor, ...], vs: tuple[Tensor, ...] | None, create_graph: bool) -> tuple[Any, ...]:
    """Gradients where there are any; None for inputs that the results do not depend on."""
    pairs = [(o, None if vs is None else vs[i]) for i, o in enumerate(outs) if o is not None and o.requires_grad]
    if not pairs:
        return (None,) * len(xs)
    return grad([o for o, _ in pairs], xs, [w for _, w in pairs], allow_unused=True, create_graph=create_graph, retain_graph=True)


STRICT_TEXTS = {
    "back": "The output of the user-provided function is independent of input {i}. This is not allowed in strict mode.",
    "back_trick": "The gradient with respect to the input is independent of entry {i} in the grad_outputs when using the double "
    "backward trick to compute forward mode gradients. This is not allowed in strict mode.",
    "jac": "The output of the user-provided function is independent of input {i}. This is not allowed in strict mode.",
    "double_back": "The hessian of the user-provided function is independent of input {i}. This is not allowed in strict mode.",
    "double_back_trick": "The hessian of the user-provided function is independent of entry {i} in the grad_outputs. This is not allowed "
    "in strict mode as it prevents from using the double backward trick to replace forward mode AD.",
}


def _filled(grads: tuple[Any, ...], like: tuple[Tensor, ...], strict: bool, create_graph: bool, stage: str) -> tuple[Any, ...]:
    """Zeros in place of missing gradients, which `strict` refuses."""
    found = []
    for i, (g, x) in enumerate(zip(grads, like, strict=True)):
        if g is None:
            if strict:
                raise RuntimeError(STRICT_TEXTS[stage].format(i=i))
            g = x.new_zeros(x.shape)
        elif strict and create_graph and stage != "jac" and not g.requires_grad:
            raise RuntimeError(
                f"The {'hessian' if 'double' in stage else 'jacobian'} of the user-provided function is independent of input {i}. This is "
                "not allowed in strict mode when create_graph=True."
            )
        found.append(g)
    return tuple(found)


def _varying(jacobian: tuple[Any, ...], strict: bool) -> tuple[Any, ...]:
    """First derivatives, of which `strict` refuses those that are the same for all inputs."""
    for i, g in enumerate(jacobian):
        if strict and not g.requires_grad:
            raise RuntimeError(
                f"While computing the hessian, found that the jacobian of the user-provided function with respect to input {i} is "
                "independent of the input. This is not allowed in strict mode. You should ensure that your function is twice "
                "differentiable and that the jacobian depends on the inputs (this would be violated by a linear function for example)."
            )
    return jacobian


def _result(tensors: tuple[Any, ...], create_graph: bool, single: bool) -> Any:
    found = tuple(tensors) if create_graph else tuple(t.detach() for t in tensors)
    return found[0] if single else found
