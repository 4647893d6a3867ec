"""Losses with margins: hinges, rankings, triplets."""

from __future__ import annotations

from ..._backends.cpu.nn import loss as kernels
from ..._tensor import Tensor
from ..elementwise.arithmetic import add_number, sub_number
from ..machinery.declare import op
from ..machinery.lookup import aten
from .loss import MEAN, grad_of_grad_output, reduce, share


def one_minus(x: Tensor, one: float = 1) -> Tensor:
    """A number minus a tensor, by the operators that ATen's own code uses for it."""
    return aten.empty_like(x).fill_(one).sub_(x)


def _hinge_embedding_loss(self: Tensor, target: Tensor, margin: float, reduction: int) -> Tensor:
    zeros = aten.zeros_like(self)
    beyond = one_minus(self, margin).clamp_min_(0)
    loss = aten.where(target != 1, beyond, zeros) + aten.where(target != -1, self, zeros)
    return reduce(loss, reduction)


hinge_embedding_loss = op(
    "hinge_embedding_loss(Tensor self, Tensor target, float margin=1.0, int reduction=1) -> Tensor",
    composite=_hinge_embedding_loss,
    variants="function",
)


def _margin_ranking_loss(input1: Tensor, input2: Tensor, target: Tensor, margin: float, reduction: int) -> Tensor:
    return reduce(add_number(-target * (input1 - input2), margin).clamp_min_(0), reduction)


margin_ranking_loss = op(
    "margin_ranking_loss(Tensor input1, Tensor input2, Tensor target, float margin=0.0, int reduction=1) -> Tensor",
    composite=_margin_ranking_loss,
    variants="function",
)


def _soft_margin_loss(self: Tensor, target: Tensor, reduction: int) -> Tensor:
    return reduce(self.neg().mul_(target).exp_().log1p_(), reduction)


def _soft_margin_loss_backward(grad_output: Tensor, self: Tensor, target: Tensor, reduction: int) -> Tensor:
    z = (target.neg() * self).exp()
    slope = (target * z).mul_(-1.0 / self.numel() if reduction == MEAN else -1.0)
    return slope.div_(z.add_(1)).mul_(grad_output)


def _soft_margin_curvature(grad: Tensor, self: Tensor, target: Tensor, reduction: int) -> Tensor:
    z = (self * target).exp()
    s = z + 1
    return share(grad * target * target * z / (s * s), self, reduction)


soft_margin_loss = op(
    "soft_margin_loss(Tensor self, Tensor target, int reduction=1) -> Tensor",
    composite=_soft_margin_loss,
    grad={"self": lambda grad, self, target, reduction: soft_margin_loss_backward(grad, self, target, reduction)},
    variants="",
    fixed=("target",),
    tags=("fresh",),
)
soft_margin_loss_backward = op(
    "soft_margin_loss_backward(Tensor grad_output, Tensor self, Tensor target, int reduction) -> Tensor",
    composite=_soft_margin_loss_backward,
    grad={
        "grad_output": lambda grad, grad_output, self, target, reduction: grad_of_grad_output(
            soft_margin_loss_backward(aten.ones_like(grad_output), self, target, reduction), grad, reduction
        ),
        "self": lambda grad, grad_output, self, target, reduction: _soft_margin_curvature(
            grad * grad_output, self, target, reduction
        ),
    },
    variants="",
    fixed=("target",),
    tags=("fresh",),
)
multi_margin_loss = op(
    "multi_margin_loss(Tensor self, Tensor target, Scalar p=1, Scalar margin=1, Tensor? weight=None, int reduction=1) -> Tensor",
    cpu=kernels.multi_margin_loss,
    grad={
        "self": lambda grad, self, target, p, margin, weight, reduction: multi_margin_loss_backward(
            grad, self, target, p, margin, weight, reduction
        )
    },
    variants="",
    refuses=("multi_margin_loss_cpu_kernel", "bic"),
)
multi_margin_loss_backward = op(
    "multi_margin_loss_backward(Tensor grad_output, Tensor self, Tensor target, Scalar p, Scalar margin, Tensor? weight=None, "
    "int reduction=1) -> Tensor",
    cpu=kernels.multi_margin_loss_backward,
    variants="",
    rows=True,
)
multilabel_margin_loss = op(
    "multilabel_margin_loss(Tensor self, Tensor target, int reduction=1) -> Tensor",
    composite=lambda self, target, reduction: multilabel_margin_loss_forward(self, target, reduction)[0],
    variants="",
)
multilabel_margin_loss_forward = op(
    "multilabel_margin_loss_forward(Tensor self, Tensor target, int reduction) -> (Tensor output, Tensor is_target)",
    cpu=kernels.multilabel_margin_loss_forward,
    grad={
        "self": lambda grad, self, target, reduction, is_target: multilabel_margin_loss_backward(
            grad, self, target, reduction, is_target
        )
    },
    node="MultilabelMarginLossBackward0",
    nondifferentiable=("is_target",),
    variants="",
    refuses=("multilabel_margin_loss_forward_out_frame", "bic"),
)
multilabel_margin_loss_backward = op(
    "multilabel_margin_loss_backward(Tensor grad_output, Tensor self, Tensor target, int reduction, Tensor is_target) -> Tensor",
    cpu=kernels.multilabel_margin_loss_backward,
    variants="",
)


def _cosine_embedding_loss(input1: Tensor, input2: Tensor, target: Tensor, margin: float, reduction: int) -> Tensor:
    if target.dim() > 1 or input1.dim() - 1 != target.dim() or input2.dim() - 1 != target.dim():
        raise _cosine_embedding_error(input1, input2, target)
    eps = 1e-12
    dot = (input1 * input2).sum(-1)
    square1 = add_number((input1 * input1).sum(-1), eps)
    square2 = add_number((input2 * input2).sum(-1), eps)
    cos = dot / (square1 * square2).sqrt_()
    zeros = aten.zeros_like(cos)
    loss = aten.where(target == 1, one_minus(cos), zeros) + aten.where(target == -1, sub_number(cos, margin).clamp_min_(0), zeros)
    return reduce(loss, reduction)


def _cosine_embedding_error(input1: Tensor, input2: Tensor, target: Tensor) -> RuntimeError:
    sizes = f"input1:{list(input1.shape)} input2: {list(input2.shape)}"
    if target.dim() == 1:
        return RuntimeError(f"1D target tensor expects 2D input tensors, but found inputs with sizes {sizes}.")
    if target.dim() == 0:
        return RuntimeError(f"0D target tensor expects 1D input tensors, but found inputs with sizes {sizes}.")
    return RuntimeError("0D or 1D target tensor expected, multi-target not supported")


cosine_embedding_loss = op(
    "cosine_embedding_loss(Tensor input1, Tensor input2, Tensor target, float margin=0.0, int reduction=1) -> Tensor",
    composite=_cosine_embedding_loss,
    variants="function",
)


def _triplet_margin_loss(
    anchor: Tensor, positive: Tensor, negative: Tensor, margin: float, p: float, eps: float, swap: bool, reduction: int
) -> Tensor:
    if not anchor.dim() == positive.dim() == negative.dim():
        raise RuntimeError(
            "The anchor, positive, and negative tensors are expected to have the same number of dimensions, but got: "
            f"anchor {anchor.dim()}D, positive {positive.dim()}D, and negative {negative.dim()}D inputs"
        )
    if margin <= 0:
        raise RuntimeError(f"triplet_margin_loss: margin must be greater than 0, got {margin}")
    near = aten.pairwise_distance(anchor, positive, p, eps)
    far = aten.pairwise_distance(anchor, negative, p, eps)
    if swap:
        far = far.min(aten.pairwise_distance(positive, negative, p, eps))
    return reduce((add_number(near, margin) - far).clamp_min(0), reduction)


triplet_margin_loss = op(
    "triplet_margin_loss(Tensor anchor, Tensor positive, Tensor negative, float margin=1.0, float p=2.0, float eps=1e-06, "
    "bool swap=False, int reduction=1) -> Tensor",
    composite=_triplet_margin_loss,
    variants="function",
)
