"""`GroupOptimizer`: optimisers whose step is a function of a group's parameters, gradients and state."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

from .._autograd.leaf import with_gradients
from .._creation import tensor
from .._dispatch.keys import SPARSE
from .._functions import functions
from .._tensor import Tensor
from .optimizer import Optimizer, _use_grad_for_differentiable
from .steps import scalar_dtype

if TYPE_CHECKING:
    from .._device import device

__all__ = ["GroupOptimizer", "beside", "columns", "new_count", "pick"]

State = dict[str, Any]


class GroupOptimizer(Optimizer):
    """Subclasses say what state a parameter begins with (`_new_state`), and change the parameters of a group (`_update`)."""

    # options that older pickles lack, with their defaults
    _later_options: ClassVar[dict[str, Any]] = {"foreach": None, "maximize": False, "differentiable": False, "capturable": False}
    # state that is one number for a parameter: a tensor, which older pickles have as a number
    _counts: ClassVar[tuple[str, ...]] = ("step",)
    # which gradients are refused: those with the key SPARSE, those with none of it (0), or neither
    _refused_gradients: ClassVar[tuple[int, ...]] = (SPARSE,)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._set_group_defaults(**self._later_options)
        for group in self.param_groups:
            for p in group["params"]:
                kept = self.state.get(p, {})
                for name in self._counts if kept else ():
                    if not isinstance(kept[name], Tensor):
                        kept[name] = new_count(float(kept[name]), p, group)

    @_use_grad_for_differentiable
    def step(self, closure: Callable[[], Any] | None = None) -> Tensor | None:
        """Change the parameters once; `closure` computes the loss again and returns it."""
        loss = self._loss_of(closure)
        for group in self.param_groups:
            self._step_group(group)
        return loss

    def _step_group(self, group: dict[str, Any]) -> None:
        pairs = with_gradients(group["params"])
        states = []
        refused, kept = self._refused_gradients, self.state
        for p, grad in pairs:
            if grad._keys & SPARSE in refused:  # is_sparse takes three times as long
                self._refuse_gradient()
            state: State = kept[p]
            if not state:
                state.update(self._new_state(p, grad, group))
            states.append(state)
        self._update([p for p, _ in pairs], [grad for _, grad in pairs], states, group)

    def _refuse_gradient(self) -> NoReturn:
        raise RuntimeError(f"{type(self).__name__} does not support sparse gradients")

    def _new_state(self, p: Tensor, grad: Tensor, group: dict[str, Any]) -> State:
        """What is kept for a parameter, before its first step."""
        raise NotImplementedError

    def _update(self, params: list[Tensor], grads: list[Tensor], states: list[State], group: dict[str, Any]) -> None:
        """Change the parameters, which are those of the group that have gradients."""
        raise NotImplementedError


def new_count(value: float, p: Tensor, group: dict[str, Any]) -> Tensor:
    """torch: a count is a tensor on the CPU, next to the parameter only where the implementation needs it there."""
    fused = group.get("fused")
    count: Tensor
    if fused or group.get("capturable"):
        count = functions["full"]((), value, dtype=scalar_dtype(fused), device=p.device)
    else:
        count = tensor(value, dtype=scalar_dtype())
    return count


def beside(p: Tensor, group: dict[str, Any]) -> device | None:
    """The device of a parameter's counts."""
    return p.device if group["capturable"] else None


def columns(states: list[State], *names: str) -> list[Any]:
    """The states of many parameters as one list for each name."""
    return [[state[name] for state in states] for name in names]


def pick(group: dict[str, Any], names: str) -> dict[str, Any]:
    """Some options of a group."""
    return {name: group[name] for name in names.split()}
