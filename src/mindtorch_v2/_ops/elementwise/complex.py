"""Complex numbers: their parts, conjugates, and views between real and complex tensors.

A conjugate is a view: what is still to be done to the elements is a bit of its key set (`machinery/pending.py`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import _checks, _dtype
from ..._backends.cpu.elementwise import complex as kernels
from ..._backends.meta.adapter import meta_tensor
from ..._dispatch import keys
from ..._dispatch.tls import state
from ..._memory_format import contiguous_format
from ..._pending import toggled
from ..._tensor import Tensor
from ..machinery.declare import op, public
from .arithmetic import zeros_like
from .ternary import where

view_as_real = op(
    "view_as_real(Tensor(a) self) -> Tensor(a)",
    cpu=kernels.view_as_real,
    grad={"self": lambda grad: view_as_complex(grad.contiguous())},
    variants="function",
    tags=("dtype_view",),
)
view_as_complex = op(
    "view_as_complex(Tensor(a) self) -> Tensor(a)",
    cpu=kernels.view_as_complex,
    grad={"self": lambda grad: view_as_real(grad.contiguous())},
    variants="function",
    tags=("dtype_view",),
)


def _real(self: Tensor) -> Tensor:
    if not self.dtype.is_complex:
        return self
    return view_as_real(_conj(self) if self._keys & keys.CONJUGATE else self).select(-1, 0)


def _imag(self: Tensor) -> Tensor:
    if not self.dtype.is_complex:
        raise RuntimeError("imag is not implemented for tensors with non-complex dtypes.")
    if self._keys & keys.CONJUGATE:
        return _neg_view(view_as_real(_conj(self)).select(-1, 1))
    return view_as_real(self).select(-1, 1)


real = op("real(Tensor(a) self) -> Tensor(a)", composite=_real, variants="function")
imag = op("imag(Tensor(a) self) -> Tensor(a)", composite=_imag, variants="function")


def _conjugate_view(self: Tensor) -> Tensor:
    return _conj_physical(self) if self._keys & keys.SPARSE_LAYOUTS else toggled(self, keys.CONJUGATE)


_conj = op(
    "_conj(Tensor(a) self) -> Tensor(a)",
    composite=_conjugate_view,
    grad={"self": lambda grad: grad.conj()},
    node="ConjBackward0",
    variants="function",
)
_neg_view = op(
    "_neg_view(Tensor(a) self) -> Tensor(a)",
    composite=lambda self: toggled(self, keys.NEGATIVE),
    grad={"self": lambda grad: grad.neg()},
    node="NegViewBackward0",
    variants="function method",
)


@public()
def conj(input: Tensor) -> Tensor:
    """The complex conjugate, as a view; a real tensor itself."""
    # torch: of a real tensor there is no operator at all
    return _conj(input) if input.dtype.is_complex else input


_conj_physical = op(
    "_conj_physical(Tensor self) -> Tensor",
    cpu=np.conjugate,
    shape=lambda self: self.shape,
    grad={"self": lambda grad: grad.conj_physical()},
    variants="",
)
conj_physical = op(
    "conj_physical(Tensor self) -> Tensor", composite=lambda self: _conjugated(self) if self.dtype.is_complex else self
)
conj_physical_ = op(
    "conj_physical_(Tensor(a!) self) -> Tensor(a!)",
    pointwise="same",
    cpu=np.conjugate,
    grad={"self": lambda grad: grad.conj_physical()},
    node="ConjPhysicalBackward1",
)


def _conjugated(self: Tensor) -> Tensor:
    return _conj(self).clone() if self._keys & keys.CONJUGATE else _conj_physical(self)


resolve_conj = op(
    "resolve_conj(Tensor(a) self) -> Tensor(a)", composite=lambda self: self.clone() if self._keys & keys.CONJUGATE else self
)
resolve_neg = op(
    "resolve_neg(Tensor(a) self) -> Tensor(a)", composite=lambda self: self.clone() if self._keys & keys.NEGATIVE else self
)


@public()
def is_conj(input: Tensor) -> bool:
    """Whether the elements are the conjugates of what the memory holds."""
    return input._keys & keys.CONJUGATE != 0


@public()
def is_neg(input: Tensor) -> bool:
    """Whether the elements are the negatives of what the memory holds."""
    return input._keys & keys.NEGATIVE != 0


angle = op(
    "angle(Tensor self) -> Tensor",
    cpu=kernels.angle,
    shape=lambda self: meta_tensor(self._array.shape, self.dtype.to_real() if self.dtype.inexact else _dtype.get_default_dtype()),
    grad={"self": lambda grad, self: _angle_backward(grad, self)},
)


def _angle_backward(grad: Tensor, self: Tensor) -> Tensor:
    if not self.dtype.is_complex:
        return zeros_like(grad)
    length = self.abs()
    return where(length == 0.0, 0.0, grad * self / (length * length) * 1j)


complex = op(
    "complex(Tensor real, Tensor imag) -> Tensor",
    cpu=kernels.make_complex,
    shape=lambda real, imag: meta_tensor(_checks.broadcast_shapes(real.shape, imag.shape), real.dtype.to_computed_complex()),
    grad={"real": lambda grad: real(grad), "imag": lambda grad: imag(grad)},
    variants="function",
    tags=("exact_out",),
)
polar = op(
    "polar(Tensor abs, Tensor angle) -> Tensor",
    cpu=kernels.polar,
    shape=lambda abs, angle: meta_tensor(_checks.broadcast_shapes(abs.shape, angle.shape), abs.dtype.to_computed_complex()),
    grad={("abs", "angle"): lambda grad, needs, result: _polar_backward(grad, result, needs)},
    variants="function",
    tags=("exact_out",),
)


def _polar_backward(grad: Tensor, result: Tensor, needs: tuple[bool, ...]) -> tuple[Any, Any]:
    conjugate = grad.conj()
    return (
        real(conjugate * result.sgn()) if needs[0] else None,
        real(conjugate * (result * 1j)) if needs[1] else None,
    )


view_as_real_copy = op(
    "view_as_real_copy(Tensor self) -> Tensor",
    composite=lambda self: view_as_real(self).clone(memory_format=contiguous_format),
    grad={"self": lambda grad: view_as_complex(grad.contiguous())},
    node="ViewAsRealBackward0_copy",
    variants="function",
)


def _view_as_complex_copy(self: Tensor) -> Tensor:
    if state.grad_enabled and self.requires_grad:
        raise RuntimeError("view_as_complex_copy does not support automatic differentiation for outputs with complex dtype.")
    return view_as_complex(self).clone(memory_format=contiguous_format)


view_as_complex_copy = op("view_as_complex_copy(Tensor self) -> Tensor", composite=_view_as_complex_copy, variants="function")
