"""`gradcheck` and `gradgradcheck`: derivative formulas against finite differences."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .._autograd.differentiate import grad
from .._autograd.grad_mode import no_grad
from .._dispatch import keys
from .._dtype import float64
from .._pending import resolved
from .._tensor import Tensor, wrap
from . import gradcheck_modes
from .function import Function, FunctionCtx
from .gradcheck_sparse import fully_specified, is_checked_sparse, is_sparse, specified, write_values

if TYPE_CHECKING:
    from .._types import TensorOrTensors

__all__ = ["GradcheckError", "gradcheck", "gradgradcheck"]

Array = np.ndarray[Any, Any]
NONDETERMINISTIC = """
NOTE: If your op relies on non-deterministic operations i.e., it is listed here:
https://pytorch.org/docs/stable/generated/torch.use_deterministic_algorithms.html
this failure might be expected.

Allow for the difference with `nondet_tol=<tol>`.
"""


class GradcheckError(RuntimeError):
    """A derivative is wrong, or a function cannot be checked."""


def gradcheck(
    func: Callable[..., Any],
    inputs: TensorOrTensors,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_batched_forward_grad: bool = False,
    check_forward_ad: bool = False,
    check_backward_ad: bool = True,
    fast_mode: bool = False,
    masked: bool | None = None,
) -> bool:
    """Compare the gradients of `func` with finite differences; raise GradcheckError (or return False) where they differ.

    fast_mode compares products of the Jacobians with random vectors instead of whole Jacobians. `masked` is for sparse inputs: elements
    that are not specified are left out, instead of being zeros like any others.
    """
    if not (check_backward_ad or check_forward_ad):
        raise AssertionError("Expected at least one of check_forward_ad or check_backward_ad to be True")
    if check_batched_grad and not check_backward_ad:
        raise AssertionError("Setting check_batched_grad=True requires check_backward_ad to be True")
    if check_batched_forward_grad and not check_forward_ad:
        raise AssertionError("Setting check_batched_forward_grad=True requires check_forward_ad to be True")
    try:
        check = _Check(func, inputs, eps=eps, atol=atol, rtol=rtol, nondet_tol=nondet_tol, masked=bool(masked))
        check.run(
            fast_mode=fast_mode,
            undefined=check_undefined_grad,
            dtypes=check_grad_dtypes,
            backward=check_backward_ad,
            forward=check_forward_ad,
            batched=check_batched_grad,
            batched_forward=check_batched_forward_grad,
        )
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def gradgradcheck(
    func: Callable[..., Any],
    inputs: TensorOrTensors,
    grad_outputs: TensorOrTensors | None = None,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    gen_non_contig_grad_outputs: bool = False,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_fwd_over_rev: bool = False,
    check_rev_over_rev: bool = True,
    fast_mode: bool = False,
    masked: bool = False,
) -> bool:
    """Check second derivatives: `gradcheck` of the gradients of `func`."""
    if not (check_fwd_over_rev or check_rev_over_rev):
        raise AssertionError("Expected at least one of check_fwd_over_rev or check_rev_over_rev to be True")
    xs = _as_tuple(inputs)
    if grad_outputs is None:
        vectors = tuple(
            _random_like(o, non_contiguous=gen_non_contig_grad_outputs).requires_grad_() for o in _differentiable(func(*xs))
        )
    else:
        vectors = _as_tuple(grad_outputs)
    count = len(vectors)
    # what is carried forward comes here without its place in the graph
    tracked = [isinstance(x, Tensor) and x.requires_grad for x in xs + vectors]

    def gradient(*args: Any) -> tuple[Tensor, ...]:
        args = tuple(x.requires_grad_() if wanted else x for x, wanted in zip(args, tracked, strict=True))
        given = args[:-count]
        # inputs that are leaves of an outer graph would be written to by their own checks
        given = tuple(x.view_as(x) if isinstance(x, Tensor) and x.requires_grad else x for x in given)
        wanted = tuple(x for x in given if isinstance(x, Tensor) and x.requires_grad)
        outs = _differentiable(func(*given))
        grads = grad(outs, wanted, args[-count:], create_graph=True, allow_unused=True)
        return tuple(g for g in grads if g is not None)

    return gradcheck(
        gradient,
        xs + vectors,
        eps=eps,
        atol=atol,
        rtol=rtol,
        raise_exception=raise_exception,
        nondet_tol=nondet_tol,
        check_undefined_grad=check_undefined_grad,
        check_grad_dtypes=check_grad_dtypes,
        check_batched_grad=check_batched_grad and check_rev_over_rev,
        check_forward_ad=check_fwd_over_rev,
        check_backward_ad=check_rev_over_rev,
        fast_mode=fast_mode,
        masked=masked,
    )


def _as_tuple(x: Any) -> tuple[Any, ...]:
    return (x,) if isinstance(x, Tensor) else tuple(x)


def _differentiable(outs: Any) -> tuple[Tensor, ...]:
    return tuple(o for o in ((outs,) if not isinstance(outs, tuple | list) else outs) if o.requires_grad)


def _random_like(t: Tensor, *, non_contiguous: bool = False) -> Tensor:
    generator = np.random.default_rng(t.numel())
    shape = (*t.shape, 2) if non_contiguous else tuple(t.shape)
    array = generator.uniform(-1, 1, shape)
    if t.dtype.is_complex:
        array = array + 1j * generator.uniform(-1, 1, shape)
    made = wrap(np.asarray(array.astype(t.dtype.np)), t.dtype)
    return made[..., 0] if non_contiguous else made


def _elements(t: Tensor) -> Array:
    """A tensor's elements, copied; a tensor that stands for another one is asked by an operator."""
    if is_sparse(t):
        t = t.detach().to_dense()
    if not t._keys & keys.PYTHON:
        return np.array(resolved(t)._array)
    made = wrap(np.empty(t.shape, t.dtype.np), t.dtype)
    with no_grad():
        made.copy_(t.detach())
    return made._array


def _write(x: Tensor, values: Array) -> None:
    """Give an input other elements; autograd does not see the write."""
    if is_sparse(x):
        write_values(x, values)
        return
    if x._keys & keys.PYTHON:
        with no_grad():
            x.detach().copy_(wrap(np.array(values), x.dtype))
        return
    values = values.conj() if x._keys & keys.CONJUGATE else values
    x._array[...] = -values if x._keys & keys.NEGATIVE else values


class _Check:
    """One function at one point."""

    def __init__(
        self,
        func: Callable[..., Any],
        inputs: TensorOrTensors,
        *,
        eps: float,
        atol: float,
        rtol: float,
        nondet_tol: float,
        masked: bool,
    ) -> None:
        self.func = func
        self.eps, self.atol, self.rtol, self.nondet_tol = eps, atol, rtol, nondet_tol
        self.inputs = _as_tuple(inputs)
        self._check_inputs()
        self.checked = [x for x in self.inputs if isinstance(x, Tensor) and x.requires_grad]
        self.positions = [i for i, x in enumerate(self.inputs) if isinstance(x, Tensor) and x.requires_grad]
        # the numerical side has a copy of sparse inputs: what is moved must be specified, and distinct
        self.moved = tuple(
            (x.detach().clone().requires_grad_() if masked else fully_specified(x)) if is_checked_sparse(x) else x
            for x in self.inputs
        )

    def _check_inputs(self) -> None:
        any_grad = False
        for i, x in enumerate(self.inputs):
            if not (isinstance(x, Tensor) and x.requires_grad):
                continue
            any_grad = True
            if x.dtype.to_real() is not float64:
                warnings.warn(
                    f"Input #{i} requires gradient and is not a double precision floating point or complex. This check will likely "
                    "fail if all the inputs are not of double precision floating point or complex. ",
                    stacklevel=5,
                )
            if is_sparse(x):
                continue
            if any(s == 0 and n > 1 for s, n in zip(x.stride(), x.shape, strict=True)):
                raise RuntimeError(
                    f"The {i}th input has a dimension with stride 0. gradcheck only supports inputs that are non-overlapping to be able "
                    "to compute the numerical gradients correctly. You should call .contiguous on the input before passing it to gradcheck."
                )
            x.retain_grad()
        if not any_grad:
            raise ValueError(
                "gradcheck expects at least one input tensor to require gradient, but none of them have requires_grad=True."
            )

    def run(
        self, *, fast_mode: bool, undefined: bool, dtypes: bool, backward: bool, forward: bool, batched: bool, batched_forward: bool
    ) -> None:
        outs = self.outputs()
        if any(map(is_checked_sparse, outs)):
            raise ValueError(
                "Sparse output is not supported at gradcheck yet. "
                "Please call to_dense(masked_grad=...) on the output of fn for gradcheck."
            )
        if not outs:
            self._check_no_outputs()
            return
        if forward:
            self._check_forward(outs, fast_mode=fast_mode)
        if batched_forward:
            for i in self.positions:
                _raise_unless_none(gradcheck_modes.batched_forward(self.func, self.inputs, i))
        if not backward:
            return
        for o, out in enumerate(outs):
            if fast_mode:
                self._compare_fast(o, out)
            else:
                self._compare(o, out)
        if batched:
            for out in outs:
                _raise_unless_none(gradcheck_modes.batched_backward(out, self.checked))
        self._check_types(outs)
        if dtypes:
            self._check_dtypes(outs)
        if undefined:
            self._check_undefined(outs)

    def outputs(self) -> tuple[Tensor, ...]:
        return _differentiable(self.func(*self.inputs))

    def _values(self) -> list[Array]:
        """The results that are differentiable, for the numerical side."""
        return [_elements(o) for o in _differentiable(self.func(*self.moved))]

    def _movable(self, x: Tensor) -> Tensor:
        """What the numerical side moves in the place of an input."""
        return next(m for given, m in zip(self.inputs, self.moved, strict=True) if given is x)

    def _check_no_outputs(self) -> None:
        """Without a differentiable result the numerical derivatives must be zero."""
        outs = self.func(*self.inputs)
        for o in (outs,) if isinstance(outs, Tensor) else outs:
            if not isinstance(o, Tensor):
                raise TypeError(f"gradcheck expects the function to return tensors, but got {type(o).__name__}")
        first = [_elements(o) for o in _as_tuple(outs) if o.dtype.inexact]
        for x in self.checked:
            for index in np.ndindex(*x.shape):
                moved = self._at(
                    x,
                    index,
                    self.eps,
                    lambda: [_elements(o) for o in _as_tuple(self.func(*self.inputs)) if o.dtype.inexact],
                )
                if any(not np.array_equal(a, b) for a, b in zip(first, moved, strict=True)):
                    raise GradcheckError("Numerical gradient for function expected to be zero")

    # --- derivatives ------------------------------------------------------------------------------------------------

    def _at(self, x: Tensor, index: tuple[int, ...], step: float | complex, values: Callable[[], list[Array]]) -> list[Array]:
        """The results with one element of an input moved; autograd does not see the write."""
        x = self._movable(x)
        old = _elements(x)
        moved = old.copy()
        moved[index] += step
        _write(x, moved)
        try:
            return values()
        finally:
            _write(x, old)

    def numerical(self, x: Tensor) -> list[Array]:
        """For each result, a matrix (elements of x, elements of the result): d result / d x, and d/d conj(x) doubled if complex.

        For a complex input, rows hold the derivative by the real part plus i times that by the imaginary part.
        """
        counts = [o.numel() for o in self.outputs()]
        size = x.numel()
        complex_result = [np.zeros((size, n), np.complex128) for n in counts]
        imaginary = [np.zeros((size, n), np.complex128) for n in counts]
        moves = specified(self._movable(x))
        for row, index in enumerate(np.ndindex(*x.shape)):
            if not moves[index]:
                continue
            self._differences(x, index, self.eps, complex_result, row)
            if x.dtype.is_complex:
                self._differences(x, index, self.eps * 1j, imaginary, row)
        self.by_imaginary = imaginary
        return complex_result

    def _differences(self, x: Tensor, index: tuple[int, ...], step: float | complex, into: list[Array], row: int) -> None:
        up = self._at(x, index, step, self._values)
        down = self._at(x, index, -step, self._values)
        for o, (a, b) in enumerate(zip(up, down, strict=True)):
            _check_same_kind(a, b, into[o].shape[1])
            into[o][row] = ((a - b) / (2 * self.eps)).reshape(-1)

    def analytical(self, out: Tensor, x: Tensor, unit: complex = 1) -> Array:
        """The matrix (elements of x, elements of the result) of gradients for a unit gradient at each element of the result."""
        columns = np.zeros((x.numel(), out.numel()), np.complex128)
        vector = np.zeros(out.shape, out.dtype.np)
        for column, index in enumerate(np.ndindex(*out.shape)):
            vector[index] = unit
            columns[:, column] = self.back(out, x, vector)
            vector[index] = 0
        return columns

    def back(self, out: Tensor, x: Tensor, vector: Array) -> Array:
        (g,) = grad(out, x, wrap(np.array(vector, out.dtype.np), out.dtype), retain_graph=True, allow_unused=True)
        if g is None:
            return np.zeros(x.numel())
        if g.shape != x.shape:
            raise GradcheckError("Analytical gradient has incorrect size")
        return _elements(g).reshape(-1)

    # --- comparison -------------------------------------------------------------------------------------------------

    def _parts(self, out: Tensor) -> list[tuple[str, complex]]:
        """A complex result is two real ones."""
        if not out.dtype.is_complex:
            return [("", 1)]
        return [
            ("While considering the imaginary part of complex outputs only, ", 1j),
            ("While considering the real part of complex outputs only, ", 1),
        ]

    def _compare(self, o: int, out: Tensor) -> None:
        for i, x in zip(self.positions, self.checked, strict=True):
            by_real = self.numerical(x)[o]
            by_imaginary = self.by_imaginary[o]
            for prefix, unit in self._parts(out):
                # the gradient of Re(conj(unit) * result): by the real part, plus i times by the imaginary part
                expected = (np.conj(unit) * by_real).real + 1j * (np.conj(unit) * by_imaginary).real
                got = self.analytical(out, x, unit)
                again = self.analytical(out, x, unit)
                if not x.dtype.is_complex:
                    expected, got, again = expected.real, got.real, again.real
                self._check_reentrant(prefix, got, again)
                if not np.allclose(got, expected, rtol=self.rtol, atol=self.atol):
                    raise GradcheckError(_mismatch(prefix, i, o, _shown(expected, x), _shown(got, x)))

    def _check_reentrant(self, prefix: str, got: Array, again: Array) -> None:
        if np.abs(got - again).max(initial=0) > self.nondet_tol:
            raise GradcheckError(
                prefix + "Backward is not reentrant, i.e., running backward with same input and grad_output multiple times gives "
                "different values, although analytical gradient matches numerical gradient."
                f"The tolerance for nondeterminism was {self.nondet_tol}.\n" + NONDETERMINISTIC
            )

    def _compare_fast(self, o: int, out: Tensor) -> None:
        generator = np.random.default_rng(0)
        for i, x in zip(self.positions, self.checked, strict=True):
            for prefix, unit in self._parts(out):
                vector = generator.uniform(0, 1, tuple(out.shape))
                vector /= float(np.linalg.norm(vector)) or 1.0
                direction = generator.uniform(0, 1, tuple(x.shape)) * specified(self._movable(x))
                direction /= float(np.linalg.norm(direction)) or 1.0
                products = self.back(out, x, vector * unit)
                self._check_reentrant(prefix, products, self.back(out, x, vector * unit))
                got = float((products * direction.reshape(-1)).real.sum())
                expected = self._directional(o, x, direction, vector, unit)
                # the products sum over elements: so does what may be their error
                if not np.isclose(
                    got, expected, rtol=self.rtol, atol=self.atol * max(1.0, float(np.abs(vector).sum() * np.abs(direction).sum()))
                ):
                    raise GradcheckError(_mismatch(prefix, i, o, expected, got) + self._slow_report(o, out, x, unit))

    def _directional(self, o: int, x: Tensor, direction: Array, vector: Array, unit: complex) -> float:
        difference = self._difference(o, x, direction).reshape(vector.shape)
        return float((np.conj(unit) * difference * vector).real.sum())

    def _slow_report(self, o: int, out: Tensor, x: Tensor, unit: complex) -> str:
        by_real = self.numerical(x)[o]
        expected, got = (np.conj(unit) * by_real).real, self.analytical(out, x, unit).real
        return (
            "\nThe above quantities relating the numerical and analytical jacobians are computed \n"
            "in fast mode. See: https://github.com/pytorch/pytorch/issues/53876 for more background \n"
            "about fast mode. Below, we recompute numerical and analytical jacobians in slow mode:\n\n"
            f"Numerical:\n {_shown(expected, x)}\nAnalytical:\n{_shown(got, x)}\n\n"
            f"The max per-element difference (slow mode) is: {np.abs(expected - got).max()}.\n"
        )

    # --- forward ------------------------------------------------------------------------------------------------------

    def _check_forward(self, outs: Sequence[Tensor], *, fast_mode: bool) -> None:
        """Compare derivatives in the direction of each element of the inputs, or in fast mode of one vector."""
        found = self.func(*self.inputs)
        kept = [k for k, out in enumerate((found,) if isinstance(found, Tensor) else found) if out.requires_grad]
        for i, x in zip(self.positions, self.checked, strict=True):
            units = [("real", 1), ("imaginary", 1j)] if x.dtype.is_complex else [("", 1)]
            for part, unit in units:
                directions = self._directions(x, fast_mode)
                tangents = [wrap((d * unit).astype(x.dtype.np), x.dtype) for d in directions]
                carried = [gradcheck_modes.forward_products(self.func, self.inputs, i, tangent) for tangent in tangents]
                for o in range(len(outs)):
                    expected = np.array([self._difference(o, x, d * unit) for d in directions])
                    got = np.array([_elements(found[kept[o]].detach()).reshape(-1) for found in carried]).reshape(expected.shape)
                    if not np.allclose(got, expected, rtol=self.rtol, atol=self.atol):
                        prefix = f"While considering the {part} part of complex inputs only, " if part else ""
                        text = _mismatch(prefix, i, o, wrap(expected), wrap(got))
                        raise GradcheckError(text.replace("Jacobian mismatch", "Jacobian computed with forward mode mismatch"))

    def _directions(self, x: Tensor, fast_mode: bool) -> list[Array]:
        if fast_mode:
            made = np.random.default_rng(0).uniform(0, 1, tuple(x.shape))
            return [made / (float(np.linalg.norm(made)) or 1.0)]
        found = []
        for index in np.ndindex(*x.shape):
            direction = np.zeros(tuple(x.shape))
            direction[index] = 1
            found.append(direction)
        return found

    def _difference(self, o: int, x: Tensor, direction: Array) -> Array:
        """The numerical derivative of a result in a direction."""
        x = self._movable(x)
        old = _elements(x)
        values = []
        for sign in (1, -1):
            _write(x, old + sign * self.eps * direction)
            try:
                values.append(self._values()[o])
            finally:
                _write(x, old)
        _check_same_kind(values[0], values[1])
        found: Array = ((values[0] - values[1]) / (2 * self.eps)).reshape(-1)
        return found

    # --- further properties -----------------------------------------------------------------------------------------

    def _gradients(self, outs: Sequence[Tensor], vectors: Sequence[Any]) -> tuple[Any, ...]:
        return grad(outs, self.checked, vectors, retain_graph=True, allow_unused=True)

    def _check_types(self, outs: Sequence[Tensor]) -> None:
        """Zero gradients in give zero gradients out, of the inputs' shapes."""
        grads = self._gradients(outs, [o.new_zeros(o.shape) for o in outs])
        if all(g is None for g in grads):
            raise GradcheckError("no Tensors requiring grad found in input graph") if not self.checked else _no_gradients()
        for g, x in zip(grads, self.checked, strict=True):
            if g is None:
                continue
            if np.any(_elements(g) != 0):
                raise GradcheckError("backward not multiplied by grad_output")
            if g.shape != x.shape:
                raise GradcheckError(f"grad is incorrect size: expected {x.shape}, got {g.shape}")

    def _check_dtypes(self, outs: Sequence[Tensor]) -> None:
        for g, x in zip(self._gradients(outs, [o.new_zeros(o.shape) for o in outs]), self.checked, strict=True):
            if g is not None and g.dtype is not x.dtype:
                raise GradcheckError(f"grad is incorrect type: expected {x.dtype}, got {g.dtype}")

    def _check_undefined(self, outs: Sequence[Tensor]) -> None:
        """A missing gradient acts as zeros."""

        class Undefined(Function):
            @staticmethod
            def forward(ctx: FunctionCtx, *tensors: Tensor) -> tuple[Tensor | None, ...]:
                return tuple(t.clone() for t in tensors)

            @staticmethod
            def backward(ctx: FunctionCtx, *grads: Any) -> tuple[Tensor | None, ...]:
                return (None,) * len(grads)

        stopped = Undefined.apply(*outs)
        try:
            grads = self._gradients(stopped, [o.new_ones(o.shape) for o in stopped])
        except RuntimeError as error:
            raise GradcheckError(
                "Expected backward function to handle undefined output grads. Please look at 'Notes about undefined output gradients' "
                'in "tools/autograd/derivatives.yaml"'
            ) from error
        if any(g is not None and np.any(_elements(g) != 0) for g in grads):
            raise GradcheckError("Expected all input grads to be undefined or zero when all output grads are undefined or zero.")


def _check_same_kind(up: Array, down: Array, size: int | None = None) -> None:
    """Results keep their shape and dtype while an input is moved."""
    for what, a, b in (("shape", up.shape, down.shape), ("dtype", up.dtype, down.dtype)):
        if a != b or (what == "shape" and size not in (None, up.size)):
            raise AssertionError(
                f"Expected `func` to return outputs with the same {what} when inputs are perturbed up and down, but got: {a} and {b}"
            )


def _raise_unless_none(problem: str | None) -> None:
    if problem is not None:
        raise GradcheckError(problem)


def _no_gradients() -> GradcheckError:
    return GradcheckError("Backward gave no gradient to any input")


def _shown(jacobian: Array, x: Tensor) -> Tensor:
    """A Jacobian as messages print it."""
    return wrap(np.asarray(jacobian.astype(x.dtype.np)))


def _mismatch(prefix: str, i: int, o: int, numerical: Tensor | float, analytical: Tensor | float) -> str:
    return f"{prefix}Jacobian mismatch for output {o} with respect to input {i},\nnumerical:{numerical}\nanalytical:{analytical}\n"
