"""Loss functions. `reduction`: 0 none, 1 mean, 2 sum."""

from __future__ import annotations

from ..._backends.cpu.nn import loss as kernels
from ..._checks import broadcast_shapes
from ..._dispatch.tls import state
from ..._tensor import Tensor
from ..elementwise.arithmetic import add_number, div_number, mul_number
from ..machinery.computing import computed
from ..machinery.declare import op
from ..machinery.lookup import aten

NONE, MEAN, SUM = kernels.NONE, kernels.MEAN, kernels.SUM


def reduce(loss: Tensor, reduction: int) -> Tensor:
    """Every element, their mean, or their sum, as operators that can be differentiated."""
    kernels.check_reduction(reduction)
    if reduction == MEAN:
        return loss.mean()
    return loss.sum() if reduction == SUM else loss


def _loss_shape(self: Tensor, target: Tensor, reduction: int) -> tuple[int, ...]:
    return () if reduction else broadcast_shapes(self.shape, target.shape)


def share(grad: Tensor, self: Tensor, reduction: int) -> Tensor:
    return grad / self.numel() if reduction == MEAN else grad


def share_(grad: Tensor, self: Tensor, reduction: int) -> Tensor:
    """`share` in place."""
    return grad.div_(self.numel()) if reduction == MEAN else grad


def grad_of_grad_output(slope: Tensor, grad: Tensor, reduction: int) -> Tensor:
    """The derivative of a loss's backward with respect to its `grad_output`; `slope` is that backward for a gradient of 1."""
    product = slope * grad
    return product if reduction == NONE else product.sum()


# --- differences ----------------------------------------------------------------------------------------------------

mse_loss = op(
    "mse_loss(Tensor self, Tensor target, int reduction=1) -> Tensor",
    over_tensors=lambda self, target, reduction: reduce(computed(kernels.mse_loss, self, target, NONE), reduction),
    shape=lambda self, target, reduction: _loss_shape(self, target, reduction),
    grad={
        "self": lambda grad, self, target, reduction: mse_loss_backward(grad, self, target, reduction),
        "target": lambda grad, self, target, reduction: mse_loss_backward(grad, target, self, reduction),
    },
    variants="",
)
mse_loss_backward = op(
    "mse_loss_backward(Tensor grad_output, Tensor self, Tensor target, int reduction) -> Tensor",
    cpu=kernels.mse_loss_backward,
    shape=lambda self, target: broadcast_shapes(self.shape, target.shape),
    grad={
        "grad_output": lambda grad, grad_output, self, target, reduction: grad_of_grad_output(
            mse_loss_backward(aten.ones_like(grad_output), self, target, reduction), grad, reduction
        ),
        "self": lambda grad, grad_output, self, reduction: share(grad * grad_output * 2, self, reduction),
        "target": lambda grad, grad_output, self, reduction: -share(grad * grad_output * 2, self, reduction),
    },
    variants="",
    rows=True,
)


def _l1_loss(self: Tensor, target: Tensor, reduction: int) -> Tensor:
    return reduce((self - target).abs(), reduction)


l1_loss = op("l1_loss(Tensor self, Tensor target, int reduction=1) -> Tensor", composite=_l1_loss, variants="")


def _smooth_l1_curvature(grad: Tensor, grad_output: Tensor, self: Tensor, target: Tensor, reduction: int, beta: float) -> Tensor:
    inside = (self - target).abs() < beta
    return share(grad * grad_output, self, reduction) * inside.to(grad.dtype) / (beta or 1)


smooth_l1_loss = op(
    "smooth_l1_loss(Tensor self, Tensor target, int reduction=1, float beta=1.0) -> Tensor",
    over_tensors=lambda self, target, reduction, beta: reduce(
        computed(kernels.smooth_l1_loss, self, target, NONE, beta), reduction
    ),
    shape=lambda self, target, reduction: _loss_shape(self, target, reduction),
    grad={
        "self": lambda grad, self, target, reduction, beta: smooth_l1_loss_backward(grad, self, target, reduction, beta),
        "target": lambda grad, self, target, reduction, beta: smooth_l1_loss_backward(grad, target, self, reduction, beta),
    },
    variants="",
)
smooth_l1_loss_backward = op(
    "smooth_l1_loss_backward(Tensor grad_output, Tensor self, Tensor target, int reduction, float beta) -> Tensor",
    cpu=kernels.smooth_l1_loss_backward,
    shape=lambda self, target: broadcast_shapes(self.shape, target.shape),
    grad={
        "grad_output": lambda grad, grad_output, self, target, reduction, beta: grad_of_grad_output(
            smooth_l1_loss_backward(aten.ones_like(grad_output), self, target, reduction, beta), grad, reduction
        ),
        "self": lambda grad, grad_output, self, target, reduction, beta: _smooth_l1_curvature(
            grad, grad_output, self, target, reduction, beta
        ),
        "target": lambda grad, grad_output, self, target, reduction, beta: (
            -_smooth_l1_curvature(grad, grad_output, self, target, reduction, beta)
        ),
    },
    variants="",
    rows=True,
)


def _huber_curvature(grad: Tensor, grad_output: Tensor, self: Tensor, target: Tensor, reduction: int, delta: float) -> Tensor:
    inside = (self - target).abs() < delta
    return share(grad * grad_output, self, reduction) * inside.to(grad.dtype)


huber_loss = op(
    "huber_loss(Tensor self, Tensor target, int reduction=1, float delta=1.0) -> Tensor",
    over_tensors=lambda self, target, reduction, delta: reduce(computed(kernels.huber_loss, self, target, NONE, delta), reduction),
    shape=lambda self, target, reduction: _loss_shape(self, target, reduction),
    grad={
        "self": lambda grad, self, target, reduction, delta: huber_loss_backward(grad, self, target, reduction, delta),
        "target": lambda grad, self, target, reduction, delta: huber_loss_backward(grad, target, self, reduction, delta),
    },
    variants="",
)
huber_loss_backward = op(
    "huber_loss_backward(Tensor grad_output, Tensor self, Tensor target, int reduction, float delta) -> Tensor",
    cpu=kernels.huber_loss_backward,
    shape=lambda self, target: broadcast_shapes(self.shape, target.shape),
    grad={
        "grad_output": lambda grad, grad_output, self, target, reduction, delta: grad_of_grad_output(
            huber_loss_backward(aten.ones_like(grad_output), self, target, reduction, delta), grad, reduction
        ),
        "self": lambda grad, grad_output, self, target, reduction, delta: _huber_curvature(
            grad, grad_output, self, target, reduction, delta
        ),
        "target": lambda grad, grad_output, self, target, reduction, delta: (
            -_huber_curvature(grad, grad_output, self, target, reduction, delta)
        ),
    },
    variants="",
    rows=True,
)

# --- binary cross entropy -------------------------------------------------------------------------------------------


def _weighted(grad: Tensor, weight: Tensor | None) -> Tensor:
    return grad if weight is None else grad * weight


def _bce(self: Tensor, target: Tensor, weight: Tensor | None, reduction: int) -> Tensor:
    loss = computed(kernels.binary_cross_entropy, self, target)
    return reduce(loss if weight is None else loss.mul_(weight), reduction)


def _bce_target_grad(grad: Tensor, self: Tensor, weight: Tensor | None, reduction: int) -> Tensor:
    if state.grad_enabled:
        return share(_weighted(-self.logit() * grad, weight), self, reduction)
    slope = self.logit().neg_().mul_(grad)
    return share_(slope if weight is None else slope.mul_(weight), self, reduction)


def _bce_curvature(grad: Tensor, self: Tensor, target: Tensor) -> Tensor:
    low, high = self + 1e-12, 1 - self + 1e-12
    return grad * (self * self - 2 * self * target + target) / (low.pow(2) * high.pow(2))


def _bce_backward(grad_output: Tensor, self: Tensor, target: Tensor, weight: Tensor | None, reduction: int) -> Tensor:
    slopes: Tensor = computed(kernels.binary_cross_entropy_backward, grad_output, self, target, reduction and SUM)
    return share_(slopes if weight is None else slopes.mul_(weight), self, reduction)


binary_cross_entropy = op(
    "binary_cross_entropy(Tensor self, Tensor target, Tensor? weight=None, int reduction=1) -> Tensor",
    over_tensors=lambda self, target, weight, reduction: _bce(self, target, weight, reduction),
    shape=lambda self, target, reduction: _loss_shape(self, target, reduction),
    grad={
        "self": lambda grad, self, target, weight, reduction: binary_cross_entropy_backward(grad, self, target, weight, reduction),
        "target": lambda grad, self, weight, reduction: _bce_target_grad(grad, self, weight, reduction),
    },
    variants="",
)
binary_cross_entropy_backward = op(
    "binary_cross_entropy_backward(Tensor grad_output, Tensor self, Tensor target, Tensor? weight=None, int reduction=1) -> Tensor",
    over_tensors=lambda grad_output, self, target, weight, reduction: _bce_backward(grad_output, self, target, weight, reduction),
    shape=lambda self, target: broadcast_shapes(self.shape, target.shape),
    grad={
        "grad_output": lambda grad, self, target, weight, reduction: grad_of_grad_output(
            share(_weighted((self - target) / ((self + 1e-12) * (1 - self + 1e-12)), weight), self, reduction), grad, reduction
        ),
        "self": lambda grad, grad_output, self, target, weight, reduction: share(
            _weighted(_bce_curvature(grad * grad_output, self, target), weight), self, reduction
        ),
        "target": lambda grad, grad_output, self, weight, reduction: share(
            _weighted(-grad * grad_output / (self - self * self).clamp(min=1e-12), weight), self, reduction
        ),
    },
    variants="",
)


def _bce_with_logits(self: Tensor, target: Tensor, weight: Tensor | None, pos_weight: Tensor | None, reduction: int) -> Tensor:
    log_sigmoid = aten.log_sigmoid(self)
    if pos_weight is not None:
        log_sigmoid = log_sigmoid.mul_((pos_weight - 1).mul(target).add_(1))
    loss = aten.empty_like(target).fill_(1).sub_(target).mul_(self).sub_(log_sigmoid)
    return reduce(loss if weight is None else loss.mul_(weight), reduction)


def _bce_with_logits_grad(
    grad: Tensor, self: Tensor, target: Tensor, weight: Tensor | None, pos_weight: Tensor | None, reduction: int
) -> Tensor:
    """(sigmoid(x) - t) times weights and the gradient; in place unless a graph is being made."""
    s = self.sigmoid()
    if state.grad_enabled:
        if pos_weight is None:
            slope = s - target
        else:
            t = pos_weight * target
            slope = (t + 1 - target) * s - t
        return share(_weighted(slope * grad, weight), self, reduction)
    if pos_weight is None:
        slope = s.sub_(target)
    else:
        t = pos_weight.mul(target)
        slope = t.add(1).sub_(target).mul_(s).sub_(t)
    slope = slope.mul_(grad)
    if weight is not None:
        slope = slope.mul_(weight)
    return share_(slope, self, reduction)


def _bce_with_logits_target_grad(
    grad: Tensor, self: Tensor, weight: Tensor | None, pos_weight: Tensor | None, reduction: int
) -> Tensor:
    if pos_weight is None:
        slope = self.neg().mul(grad)
    elif state.grad_enabled:
        slope = (aten.log_sigmoid(-self) - pos_weight * aten.log_sigmoid(self)) * grad
    else:
        slope = aten.log_sigmoid(-self).sub_(aten.log_sigmoid(self).mul_(pos_weight)).mul_(grad)
    if state.grad_enabled:
        return share(_weighted(slope, weight), self, reduction)
    return share_(slope if weight is None else slope.mul_(weight), self, reduction)


binary_cross_entropy_with_logits = op(
    "binary_cross_entropy_with_logits(Tensor self, Tensor target, Tensor? weight=None, Tensor? pos_weight=None, "
    "int reduction=1) -> Tensor",
    composite=_bce_with_logits,
    grad={
        "self": lambda grad, self, target, weight, pos_weight, reduction: _bce_with_logits_grad(
            grad, self, target, weight, pos_weight, reduction
        ),
        "target": lambda grad, self, weight, pos_weight, reduction: _bce_with_logits_target_grad(
            grad, self, weight, pos_weight, reduction
        ),
    },
    variants="function",
)

# --- negative log likelihood ----------------------------------------------------------------------------------------

nll_loss_forward = op(
    "nll_loss_forward(Tensor self, Tensor target, Tensor? weight, int reduction, SymInt ignore_index) "
    "-> (Tensor output, Tensor total_weight)",
    cpu=kernels.nll_loss_forward,
    shape=lambda target, reduction: (() if reduction else target.shape, ()),
    grad={
        "self": lambda grad, self, target, weight, reduction, ignore_index, total_weight: nll_loss_backward(
            grad, self, target, weight, reduction, ignore_index, total_weight
        )
    },
    node="NllLossBackward0",
    nondifferentiable=("total_weight",),
    variants="",
    fixed=("weight",),
    refuses=("nll_loss_out_frame", "bic"),
    same_dtype=("self", "weight"),
)
nll_loss_backward = op(
    "nll_loss_backward(Tensor grad_output, Tensor self, Tensor target, Tensor? weight, int reduction, SymInt ignore_index, "
    "Tensor total_weight) -> Tensor",
    cpu=kernels.nll_loss_backward,
    shape=lambda self: self.shape,
    grad={
        "grad_output": lambda grad, target, weight, reduction, ignore_index: nll_loss(
            grad, target, weight, reduction, ignore_index
        ),
        "self": lambda grad: aten.zeros_like(grad),
    },
    variants="",
    fixed=("weight", "total_weight"),
)
nll_loss2d_forward = op(
    "nll_loss2d_forward(Tensor self, Tensor target, Tensor? weight, int reduction, SymInt ignore_index) "
    "-> (Tensor output, Tensor total_weight)",
    cpu=kernels.nll_loss2d_forward,
    shape=lambda target, reduction: (() if reduction else target.shape, ()),
    grad={
        "self": lambda grad, self, target, weight, reduction, ignore_index, total_weight: nll_loss2d_backward(
            grad, self, target, weight, reduction, ignore_index, total_weight
        )
    },
    node="NllLoss2DBackward0",
    nondifferentiable=("total_weight",),
    variants="",
    fixed=("weight",),
    refuses=("nll_loss2d_forward_out_frame", "bic"),
    same_dtype=("self", "weight"),
    rows=True,
)
nll_loss2d_backward = op(
    "nll_loss2d_backward(Tensor grad_output, Tensor self, Tensor target, Tensor? weight, int reduction, SymInt ignore_index, "
    "Tensor total_weight) -> Tensor",
    cpu=kernels.nll_loss2d_backward,
    shape=lambda self: self.shape,
    grad={
        "grad_output": lambda grad, target, weight, reduction, ignore_index: nll_loss2d(
            grad, target, weight, reduction, ignore_index
        ),
        "self": lambda grad: aten.zeros_like(grad),
    },
    variants="",
    fixed=("weight", "total_weight"),
)
nll_loss = op(
    "nll_loss(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, SymInt ignore_index=-100) -> Tensor",
    composite=lambda self, target, weight, reduction, ignore_index: nll_loss_forward(self, target, weight, reduction, ignore_index)[
        0
    ],
    variants="",
)
nll_loss2d = op(
    "nll_loss2d(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, SymInt ignore_index=-100) -> Tensor",
    composite=lambda self, target, weight, reduction, ignore_index: nll_loss2d_forward(
        self, target, weight, reduction, ignore_index
    )[0],
    variants="",
)


def _nll_loss_nd(self: Tensor, target: Tensor, weight: Tensor | None, reduction: int, ignore_index: int) -> Tensor:
    """Any number of dimensions after the classes: as a matrix, as an image, or as an image of one row."""
    ndim = self._array.ndim
    if ndim < 1:
        raise ValueError(f"Expected 1 or more dimensions (got {ndim})")
    batch = target._array.shape[0] if target._array.ndim else 0
    if ndim != 1 and self._array.shape[0] != batch:
        raise ValueError(f"Expected input batch_size ({self.shape[0]}) to match target batch_size ({batch}).")
    if ndim in (1, 2):
        return nll_loss(self, target, weight, reduction, ignore_index)
    if ndim == 4:
        return nll_loss2d(self, target, weight, reduction, ignore_index)
    n, c = self.shape[:2]
    shape = [n, *self.shape[2:]]
    if list(target.shape[1:]) != list(self.shape[2:]):
        raise RuntimeError(f"Expected target size {shape}, got {list(target.shape)}")
    contiguous, goal = self.contiguous(), target.contiguous()
    if self.numel():
        contiguous, goal = contiguous.view([n, c, 1, -1]), goal.view([n, 1, -1])
    else:
        contiguous, goal = contiguous.view([n, c, 0, 0]), goal.view([n, 0, 0])
    loss = nll_loss2d(contiguous, goal, weight, reduction, ignore_index)
    return loss.view(shape) if reduction == NONE else loss


nll_loss_nd = op(
    "nll_loss_nd(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, SymInt ignore_index=-100) -> Tensor",
    composite=_nll_loss_nd,
    variants="",
)


def _per_class(weight: Tensor, self: Tensor) -> Tensor:
    """Class weights in the shape that multiplies the scores."""
    return weight if self.dim() == 1 else weight.view([1, self.shape[1], *[1] * (self.dim() - 2)])


def _class_dim(self: Tensor) -> int:
    return 0 if self._array.ndim == 1 else 1


def _cross_entropy_of_probabilities(
    log_p: Tensor, target: Tensor, weight: Tensor | None, reduction: int, label_smoothing: float
) -> Tensor:
    classes = log_p.shape[_class_dim(log_p)]
    if label_smoothing > 0:
        target = add_number(mul_number(target, 1 - label_smoothing), label_smoothing / classes)
    product = log_p * target if weight is None else log_p * target * _per_class(weight, log_p)
    if reduction == MEAN:
        if log_p.numel() == 0:
            return -product.sum().fill_(float("nan"))
        return div_number(product.sum().neg(), log_p.numel() // classes)
    if reduction == SUM:
        return -product.sum()
    return -product.sum(_class_dim(log_p))


def _cross_entropy_smoothed(
    log_p: Tensor, target: Tensor, weight: Tensor | None, reduction: int, ignore_index: int, label_smoothing: float
) -> Tensor:
    nll = nll_loss_nd(log_p, target, weight, reduction, ignore_index)
    dim = _class_dim(log_p)
    smooth = -(log_p if weight is None else log_p * _per_class(weight, log_p)).sum(dim)
    ignored = target == ignore_index
    smooth = smooth.masked_fill_(ignored, 0)
    if reduction == MEAN:
        kept = ignored.bitwise_not()
        if weight is None:
            smooth = smooth.sum() / kept.sum()
        else:
            smooth = smooth.sum() / weight.gather(0, target.masked_select(kept).flatten()).sum()
    elif reduction == SUM:
        smooth = smooth.sum()
    return mul_number(nll, 1 - label_smoothing) + mul_number(smooth, label_smoothing / log_p.shape[dim])


def _cross_entropy_loss(
    self: Tensor, target: Tensor, weight: Tensor | None, reduction: int, ignore_index: int, label_smoothing: float
) -> Tensor:
    kernels.check_reduction(reduction)
    if self._array.shape == target._array.shape:
        if not target.dtype.is_floating_point:
            raise RuntimeError("Expected floating point type for target with class probabilities, got " + target.dtype.scalar_name)
        if ignore_index >= 0:
            raise RuntimeError("ignore_index is not supported for floating point target")
        _check_smoothing(label_smoothing)
        _check_weight(weight, self)
        return _cross_entropy_of_probabilities(
            aten.log_softmax(self, _class_dim(self), self.dtype), target, weight, reduction, label_smoothing
        )
    _check_smoothing(label_smoothing)
    _check_weight(weight, self)
    log_p = aten.log_softmax(self, _class_dim(self), self.dtype)
    if label_smoothing > 0:
        return _cross_entropy_smoothed(log_p, target, weight, reduction, ignore_index, label_smoothing)
    return nll_loss_nd(log_p, target, weight, reduction, ignore_index)


def _check_smoothing(label_smoothing: float) -> None:
    if not 0 <= label_smoothing <= 1:
        raise RuntimeError(f"label_smoothing must be between 0.0 and 1.0. Got: {label_smoothing}")


def _check_weight(weight: Tensor | None, self: Tensor) -> None:
    if weight is not None and (weight.dim() != 1 or weight.numel() != self.shape[_class_dim(self)]):
        raise RuntimeError(
            "cross_entropy: weight tensor should be defined either for all "
            f"{self.shape[_class_dim(self)]} classes or no classes but got weight tensor of shape: {list(weight.shape)}"
        )


cross_entropy_loss = op(
    "cross_entropy_loss(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, SymInt ignore_index=-100, "
    "float label_smoothing=0.0) -> Tensor",
    composite=_cross_entropy_loss,
    variants="",
)


def _kl_div(self: Tensor, target: Tensor, reduction: int, log_target: bool) -> Tensor:
    for operand in (self, target):
        if operand.dtype.is_complex:
            raise RuntimeError("kl_div: Complex inputs not supported.")
        if not operand.dtype.is_floating_point:
            raise RuntimeError("kl_div: Integral inputs not supported.")
    if log_target:
        loss = target.exp() * (target - self)
    else:
        product = target * self
        loss = target.xlogy(target) - product
    return reduce(loss, reduction)


kl_div = op(
    "kl_div(Tensor self, Tensor target, int reduction=1, *, bool log_target=False) -> Tensor",
    composite=_kl_div,
    variants="function",
)


def _poisson_nll_loss(input: Tensor, target: Tensor, log_input: bool, full: bool, eps: float, reduction: int) -> Tensor:
    if log_input:
        product = target * input
        loss = input.exp() - product
    else:
        loss = input - target * (input + eps).log()
    if full:
        stirling = target * target.log() - target + 0.5 * (2 * 3.141592653589793 * target).log()
        loss = loss.add_(stirling.masked_fill(target <= 1, 0))
    return reduce(loss, reduction)


poisson_nll_loss = op(
    "poisson_nll_loss(Tensor input, Tensor target, bool log_input, bool full, float eps, int reduction) -> Tensor",
    composite=_poisson_nll_loss,
    variants="function",
)
