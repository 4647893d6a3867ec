"""Smooth activation functions, of exponentials and error functions, and their derivatives."""

from __future__ import annotations

from ..._backends.cpu.nn import activation as kernels
from ..._dispatch.tls import state
from ..._memory_format import contiguous_format
from ..._tensor import Tensor
from ..._types import Number
from ..machinery.computing import computed
from ..machinery.declare import op
from ..machinery.lookup import aten

# --- exponential units ----------------------------------------------------------------------------------------------

_SELU_ALPHA = 1.6732632423543772848170429916717
_SELU_SCALE = 1.0507009873554804934193349852946

elu = op(
    "elu(Tensor self, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1) -> Tensor",
    pointwise="same",
    cpu=kernels.elu,
    grad={"self": lambda grad, self, alpha, scale, input_scale: elu_backward(grad, alpha, scale, input_scale, False, self)},
    variants="",
)
elu_ = op(
    "elu_(Tensor(a!) self, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1) -> Tensor(a!)",
    pointwise="same",
    cpu=kernels.elu,
    grad={"self": lambda grad, result, alpha, scale, input_scale: elu_backward(grad, alpha, scale, input_scale, True, result)},
    node="EluBackward1",
    variants="",
)


def _elu_double_backward(
    grad: Tensor, grad_output: Tensor, alpha: Number, scale: float, input_scale: float, is_result: bool, self_or_result: Tensor
) -> Tensor:
    if is_result:
        slope = aten.zeros_like(self_or_result) + input_scale
    else:
        slope = (self_or_result * input_scale).exp() * (input_scale * input_scale * alpha * scale)
    zero = aten.zeros([], dtype=grad.dtype, device=grad.device)
    return aten.where(self_or_result < 0, grad * grad_output * slope, zero)


elu_backward = op(
    "elu_backward(Tensor grad_output, Scalar alpha, Scalar scale, Scalar input_scale, bool is_result, Tensor self_or_result) -> Tensor",
    pointwise="same",
    cpu=kernels.elu_backward,
    grad={
        "grad_output": lambda grad, alpha, scale, input_scale, is_result, self_or_result: elu_backward(
            grad, alpha, scale, input_scale, is_result, self_or_result
        ),
        "self_or_result": lambda grad, grad_output, alpha, scale, input_scale, is_result, self_or_result: _elu_double_backward(
            grad, grad_output, alpha, scale, input_scale, is_result, self_or_result
        ),
    },
    variants="",
)
selu = op("selu(Tensor self) -> Tensor", composite=lambda self: elu(self, _SELU_ALPHA, _SELU_SCALE), variants="function")
selu_ = op("selu_(Tensor(a!) self) -> Tensor(a!)", composite=lambda self: elu_(self, _SELU_ALPHA, _SELU_SCALE), variants="function")


def _celu_scale(alpha: float) -> float:
    if alpha == 0:
        raise RuntimeError("ZeroDivisionError: alpha cannot be 0 for CELU")
    return 1.0 / alpha


celu = op(
    "celu(Tensor self, Scalar alpha=1.) -> Tensor",
    composite=lambda self, alpha: elu(self, alpha, 1, _celu_scale(alpha)),
    grad={"self": lambda grad, self, alpha: elu_backward(grad, alpha, 1, 1.0 / alpha, False, self)},
    variants="function",
)
celu_ = op(
    "celu_(Tensor(a!) self, Scalar alpha=1.) -> Tensor(a!)",
    composite=lambda self, alpha: elu_(self, alpha, 1, _celu_scale(alpha)),
    grad={"self": lambda grad, result, alpha: elu_backward(grad, alpha, 1, 1.0 / alpha, True, result)},
    node="CeluBackward1",
    variants="function",
)


def _softplus_double_backward(grad: Tensor, self: Tensor, beta: Number, threshold: float) -> Tensor:
    scaled = self * beta
    s = scaled.sigmoid()
    return grad * s * (1 - s) * beta * (scaled <= threshold).to(grad.dtype)


softplus = op(
    "softplus(Tensor self, Scalar beta=1, Scalar threshold=20) -> Tensor",
    pointwise="same",
    cpu=kernels.softplus,
    grad={"self": lambda grad, self, beta, threshold: softplus_backward(grad, self, beta, threshold)},
    variants="",
)
softplus_backward = op(
    "softplus_backward(Tensor grad_output, Tensor self, Scalar beta, Scalar threshold) -> Tensor",
    pointwise="same",
    cpu=kernels.softplus_backward,
    grad={
        "grad_output": lambda grad, self, beta, threshold: softplus_backward(grad, self, beta, threshold),
        "self": lambda grad, grad_output, self, beta, threshold: _softplus_double_backward(
            grad * grad_output, self, beta, threshold
        ),
    },
    variants="",
)
log_sigmoid = op("log_sigmoid(Tensor self) -> Tensor", composite=lambda self: log_sigmoid_forward(self)[0], variants="")
log_sigmoid_forward = op(
    "log_sigmoid_forward(Tensor self) -> (Tensor output, Tensor buffer)",
    cpu=kernels.log_sigmoid_forward,
    grad={"self": lambda grad, self, buffer: log_sigmoid_backward(grad, self, buffer)},
    node="LogSigmoidBackward0",
    nondifferentiable=("buffer",),
    variants="",
)


def _log_sigmoid_double_backward(grad: Tensor, self: Tensor) -> Tensor:
    z = self.sigmoid()
    return grad * (z - 1) * z


log_sigmoid_backward = op(
    "log_sigmoid_backward(Tensor grad_output, Tensor self, Tensor buffer) -> Tensor",
    cpu=kernels.log_sigmoid_backward,
    grad={
        "grad_output": lambda grad, self, buffer: log_sigmoid_backward(grad, self, buffer),
        "self": lambda grad, grad_output, self: _log_sigmoid_double_backward(grad * grad_output, self),
    },
    variants="",
    fixed=("buffer",),
)

# --- smooth units: gelu, silu, mish, glu ----------------------------------------------------------------------------


def _gelu_double_backward(grad: Tensor, grad_output: Tensor, self: Tensor, approximate: str) -> Tensor:
    if approximate == "none":
        pdf = (self * self * -0.5).exp() * 0.3989422804014327
        return grad * grad_output * pdf * (2 - self * self)
    k, c = 0.7978845608028654, 0.044715
    x2 = self * self
    inner = (self + self * x2 * c) * k
    tanh = inner.tanh()
    d_inner = (1 + x2 * (3 * c)) * k
    sech2 = 1 - tanh * tanh
    first = sech2 * d_inner
    second = self * (d_inner * d_inner * tanh * sech2 * -2 + sech2 * (self * (6 * c * k)))
    return grad * grad_output * (first + second * 0.5)


gelu = op(
    "gelu(Tensor self, *, str approximate='none') -> Tensor",
    pointwise="same",
    cpu=kernels.gelu,
    grad={"self": lambda grad, self, approximate: gelu_backward(grad, self, approximate=approximate)},
    inplace=True,
    variants="",
)
gelu_backward = op(
    "gelu_backward(Tensor grad_output, Tensor self, *, str approximate='none') -> Tensor",
    pointwise="same",
    cpu=kernels.gelu_backward,
    grad={
        "grad_output": lambda grad, self, approximate: gelu_backward(grad, self, approximate=approximate),
        "self": lambda grad, grad_output, self, approximate: _gelu_double_backward(grad, grad_output, self, approximate),
    },
    variants="",
)


def _silu_grad(grad: Tensor, self: Tensor) -> Tensor:
    """The kernel, or a formula that can be differentiated again when a graph is being made."""
    if not state.grad_enabled:
        return silu_backward(grad, self)
    s = self.sigmoid()
    return grad * s * (1 + self * (1 - s))


silu = op(
    "silu(Tensor self) -> Tensor",
    pointwise="same",
    cpu=kernels.silu,
    grad={"self": lambda grad, self: _silu_grad(grad, self)},
    inplace=True,
    variants="",
)
silu_backward = op(
    "silu_backward(Tensor grad_output, Tensor self) -> Tensor", pointwise="same", cpu=kernels.silu_backward, variants=""
)


def _mish_grad(grad: Tensor, self: Tensor) -> Tensor:
    """The kernel, or a formula that can be differentiated again when a graph is being made."""
    if not state.grad_enabled:
        return mish_backward(grad, self)
    s = self.sigmoid()
    t = softplus(self).tanh()
    return grad * (t + self * s * (1 - t * t))


mish = op(
    "mish(Tensor self) -> Tensor",
    pointwise="same",
    cpu=kernels.mish,
    grad={"self": lambda grad, self: _mish_grad(grad, self)},
    inplace=True,
    variants="",
)
mish_backward = op(
    "mish_backward(Tensor grad_output, Tensor self) -> Tensor", pointwise="same", cpu=kernels.mish_backward, variants=""
)


def _glu_halves(self: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    half = self.size(dim) // 2
    return self.narrow(dim, 0, half), self.narrow(dim, half, half)


def _glu_grad_of_grad_output(grad: Tensor, self: Tensor, dim: int) -> Tensor:
    a, b = _glu_halves(self, dim)
    to_a, to_b = _glu_halves(grad, dim)
    s = b.sigmoid()
    return to_a * s + to_b * a * s * (1 - s)


def _glu_grad_of_self(grad: Tensor, grad_output: Tensor, self: Tensor, dim: int) -> Tensor:
    a, b = _glu_halves(self, dim)
    to_a, to_b = _glu_halves(grad, dim)
    s = b.sigmoid()
    slope = s * (1 - s)
    return aten.cat([to_b * grad_output * slope, (to_a * slope + to_b * a * slope * (1 - 2 * s)) * grad_output], dim)


glu = op(
    "glu(Tensor self, int dim=-1) -> Tensor",
    cpu=kernels.glu,
    grad={"self": lambda grad, self, dim: glu_backward(grad, self, dim)},
    variants="",
)


def _glu_backward(grad_output: Tensor, self: Tensor, dim: int) -> Tensor:
    """The kernel as torch's, which calls `sigmoid` and `mul_` on halves of the result."""
    half = self.shape[dim] // 2
    first, gate = self.narrow(dim, 0, half), self.narrow(dim, half, half).sigmoid()
    out: Tensor = aten.empty_like(self, memory_format=contiguous_format)
    out.narrow(dim, half, half).copy_(computed(lambda g, a, s: g * a * s * (1 - s), grad_output, first, gate))
    out.narrow(dim, 0, half).copy_(gate.mul_(grad_output))
    return out


glu_backward = op(
    "glu_backward(Tensor grad_output, Tensor self, int dim) -> Tensor",
    over_tensors=_glu_backward,
    grad={
        "grad_output": lambda grad, self, dim: _glu_grad_of_grad_output(grad, self, dim),
        "self": lambda grad, grad_output, self, dim: _glu_grad_of_self(grad, grad_output, self, dim),
    },
    variants="",
)
