"""A softmax over many classes, of which most are rare (Grave et al., 2017)."""

from __future__ import annotations

import itertools
from collections import namedtuple
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..._ops.machinery.lookup import aten
from ..._tensor import Tensor
from .. import functional as F
from .container import ModuleList, Sequential
from .linear import Linear
from .module import Module

if TYPE_CHECKING:
    from ..._types import OptionalDevice, OptionalDType

__all__ = ["AdaptiveLogSoftmaxWithLoss"]

_ASMoutput = namedtuple("_ASMoutput", ["output", "loss"])


class AdaptiveLogSoftmaxWithLoss(Module):
    """Scores of frequent classes and of clusters of rare ones in a head; within a cluster, by a narrower network in the tail."""

    def __init__(
        self, in_features: int, n_classes: int, cutoffs: Sequence[int], div_value: float = 4.0, head_bias: bool = False,
        device: OptionalDevice = None, dtype: OptionalDType = None,
    ) -> None:  # fmt: skip
        super().__init__()
        cutoffs = list(cutoffs)
        if not cutoffs:
            raise ValueError("cutoffs should be a sequence of length larger than 0")
        if cutoffs != sorted(set(cutoffs)) or cutoffs[0] <= 0 or cutoffs[-1] > n_classes - 1 or any(int(c) != c for c in cutoffs):
            raise ValueError(
                "cutoffs should be a sequence of unique, positive integers sorted in an increasing order, where each value is between "
                "1 and n_classes-1"
            )
        place: dict[str, Any] = {"device": device, "dtype": dtype}
        self.in_features, self.n_classes, self.div_value, self.head_bias = in_features, n_classes, div_value, head_bias
        self.cutoffs = [*cutoffs, n_classes]
        self.shortlist_size, self.n_clusters = cutoffs[0], len(cutoffs)
        self.head_size = self.shortlist_size + self.n_clusters
        self.head = Linear(in_features, self.head_size, bias=head_bias, **place)
        self.tail = ModuleList()
        for i, (low, high) in enumerate(itertools.pairwise(self.cutoffs), 1):
            hidden = int(in_features // div_value**i)
            self.tail.append(
                Sequential(Linear(in_features, hidden, bias=False, **place), Linear(hidden, high - low, bias=False, **place))
            )

    def reset_parameters(self) -> None:
        """Draw new weights."""
        self.head.reset_parameters()
        for layers in self.tail:
            for layer in layers:
                layer.reset_parameters()

    def forward(self, input_: Tensor, target_: Tensor) -> _ASMoutput:
        _check(input_, target_)
        batched = target_.dim() > 0
        input, target = (input_, target_) if batched else (input_.unsqueeze(0), target_.unsqueeze(0))
        output = input.new_zeros(target.size(0))
        places = target.new_empty(target.size(0))  # in the head: of the class, or of its cluster
        found = 0
        for i, (low, high) in enumerate(itertools.pairwise([0, *self.cutoffs])):
            mask = (target >= low) & (target < high)
            rows = mask.nonzero().squeeze()
            if not rows.numel():
                continue
            if i == 0:
                places.index_copy_(0, rows, target[mask])
            else:
                within = target[mask] - low
                scores = self.tail[i - 1](input.index_select(0, rows))
                places.index_fill_(0, rows, self.shortlist_size + i - 1)
                own = F.log_softmax(scores, dim=1).gather(1, within.unsqueeze(1))
                output.index_copy_(0, rows, own.squeeze(1))
            found += rows.numel()
        if found != target.size(0):
            raise RuntimeError(
                f"Target values should be in [0, {self.n_classes - 1}], but values in range [{target.min().item()}, "
                f"{target.max().item()}] were found. "
            )
        output += F.log_softmax(self.head(input), dim=1).gather(1, places.unsqueeze(1)).squeeze()
        loss = (-output).mean()
        return _ASMoutput(output if batched else output.squeeze(0), loss)

    def _get_full_log_prob(self, input: Tensor, head_output: Tensor) -> Tensor:
        out: Tensor = input.new_empty((head_output.size(0), self.n_classes))
        head = F.log_softmax(head_output, dim=1)
        out[:, : self.shortlist_size] = head[:, : self.shortlist_size]
        for i, (low, high) in enumerate(itertools.pairwise(self.cutoffs)):
            within = F.log_softmax(self.tail[i](input), dim=1)
            out[:, low:high] = within + head[:, self.shortlist_size + i].unsqueeze(1)
        return out

    def log_prob(self, input: Tensor) -> Tensor:
        """The log probabilities of all classes."""
        return self._get_full_log_prob(input, self.head(input))

    def predict(self, input: Tensor) -> Tensor:
        """The most probable classes; clusters are looked into only where they are the head's choice."""
        head_output = self.head(input)
        output: Tensor = aten.argmax(head_output, dim=1)
        rare = output >= self.shortlist_size
        if not rare.any():
            return output
        if rare.all():
            return aten.argmax(self._get_full_log_prob(input, head_output), dim=1)
        output[rare] = aten.argmax(self._get_full_log_prob(input[rare], head_output[rare]), dim=1)
        return output


def _check(input: Tensor, target: Tensor) -> None:
    if target.dim() > 1:
        raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
    if target.dim() == 1 and input.size(0) != target.size(0):
        raise RuntimeError("Input and target should have the same size in the batch dimension.")
    if input.dim() != target.dim() + 1:
        raise RuntimeError(
            f"{target.dim()}D target tensor expects {target.dim() + 1}D input tensors, but found inputs with size {input.size()}"
        )
