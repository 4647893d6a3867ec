"""LBFGS: a quasi-Newton method that keeps the last steps and changes of the gradient."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._autograd.grad_mode import enable_grad
from .._functions import functions
from .._tensor import Tensor
from .optimizer import Optimizer, ParamsT, _use_grad_for_differentiable, check_rate
from .steps import as_real, to_scalar
from .strong_wolfe import strong_wolfe

__all__ = ["LBFGS"]


class LBFGS(Optimizer):
    """Several iterations in each step, along directions made of the last `history_size` changes; `step` needs a closure.

    There is one group of parameters. With `line_search_fn="strong_wolfe"` the length of each move is searched for.
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
    ) -> None:
        check_rate(lr)
        defaults = {
            "lr": lr,
            "max_iter": max_iter,
            "max_eval": max_iter * 5 // 4 if max_eval is None else max_eval,
            "tolerance_grad": tolerance_grad,
            "tolerance_change": tolerance_change,
            "history_size": history_size,
            "line_search_fn": line_search_fn,
        }
        super().__init__(params, defaults)
        if len(self.param_groups) != 1:
            raise ValueError("LBFGS doesn't support per-parameter options (parameter groups)")

    @property
    def _params(self) -> list[Tensor]:
        params: list[Tensor] = self.param_groups[0]["params"]
        return params

    # --- parameters as one vector -----------------------------------------------------------------------------------

    def _flat_grad(self) -> Tensor:
        views = []
        for p in self._params:
            if p.grad is None:
                view = p.new(p.numel()).zero_()
            else:
                view = (p.grad.to_dense() if p.grad.is_sparse else p.grad).view(-1)
            views.append(as_real(view).view(-1))
        flat: Tensor = functions["cat"](views, 0)
        return flat

    def _move(self, length: float | Tensor, direction: Tensor) -> None:
        """Add `length * direction` to the parameters."""
        offset = 0
        for p in map(as_real, self._params):
            count = p.numel()
            p.add_(direction[offset : offset + count].view_as(p), alpha=length)
            offset += count

    def _try(
        self, closure: Callable[[], Any], origin: list[Tensor], length: float | Tensor, direction: Tensor
    ) -> tuple[float, Tensor]:
        """Loss and gradient after a move, which is undone."""
        self._move(length, direction)
        loss, grad = float(closure()), self._flat_grad()
        for p, old in zip(self._params, origin, strict=True):
            p.copy_(old)
        return loss, grad

    # --- a step -----------------------------------------------------------------------------------------------------

    @_use_grad_for_differentiable
    def step(self, closure: Callable[[], Any]) -> Any:  # type: ignore[override]
        """Move the parameters up to `max_iter` times; `closure` computes the loss and the gradients, and returns the loss."""
        if len(self.param_groups) != 1:
            raise AssertionError(f"Expected exactly one param_group, but got {len(self.param_groups)}")
        with_grad = enable_grad()(closure)
        group = self.param_groups[0]
        state = self.state[self._params[0]]
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)
        first_loss = with_grad()
        state["func_evals"] += 1
        grad = self._flat_grad()
        if grad.abs().max() <= group["tolerance_grad"]:
            return first_loss
        self._iterate(with_grad, group, state, float(first_loss), grad)
        return first_loss

    def _iterate(self, closure: Callable[[], Any], group: dict[str, Any], state: dict[str, Any], loss: float, grad: Tensor) -> None:
        lr, line_search_fn, max_iter, max_eval, least = (
            to_scalar(group["lr"]), group["line_search_fn"], group["max_iter"], group["max_eval"], group["tolerance_change"]
        )  # fmt: skip
        memory = {name: state.get(name) for name in MEMORY}
        evaluations = 1
        for iteration in range(1, max_iter + 1):
            state["n_iter"] += 1
            direction = _direction(grad, memory, state, group["history_size"])
            if memory["prev_flat_grad"] is None:
                memory["prev_flat_grad"] = grad.clone()
            else:
                memory["prev_flat_grad"].copy_(grad)
            previous = loss
            length = min(1.0, 1.0 / grad.abs().sum()) * lr if state["n_iter"] == 1 else lr
            memory.update(d=direction, t=length, prev_loss=previous)
            slope = grad.dot(direction)
            if slope > -least:
                break
            calls = 0
            if line_search_fn is not None:
                if line_search_fn != "strong_wolfe":
                    raise RuntimeError("only 'strong_wolfe' is supported")
                origin = [p.clone() for p in self._params]
                evaluate = lambda t, d=direction, origin=origin: self._try(closure, origin, t, d)
                loss, grad, length, calls = strong_wolfe(
                    evaluate, length, direction.abs().max(), (loss, grad, slope), direction, max_ls=max_eval - evaluations
                )
                self._move(length, direction)
            else:
                self._move(length, direction)
                if iteration != max_iter:
                    loss, grad, calls = float(closure()), self._flat_grad(), 1
            memory["t"] = length
            evaluations += calls
            state["func_evals"] += calls
            if (
                iteration == max_iter
                or evaluations >= max_eval
                or grad.abs().max() <= group["tolerance_grad"]
                or direction.mul(length).abs().max() <= least
                or abs(loss - previous) < least
            ):
                break
        state.update(memory)


# what is kept from one step to the next
MEMORY = ("d", "t", "old_dirs", "old_stps", "ro", "H_diag", "prev_flat_grad", "prev_loss")


def _direction(grad: Tensor, memory: dict[str, Any], state: dict[str, Any], history_size: int) -> Tensor:
    """The direction of the next move: the gradient times an estimate of the inverse Hessian, from the moves remembered."""
    if state["n_iter"] == 1:
        memory.update(old_dirs=[], old_stps=[], ro=[], H_diag=1)
        return grad.neg()
    _remember(grad, memory, history_size)
    changes, moves, ro = memory["old_dirs"], memory["old_stps"], memory["ro"]
    if "al" not in state:
        state["al"] = [None] * history_size
    al = state["al"]
    q = grad.neg()
    for i in range(len(changes) - 1, -1, -1):
        al[i] = moves[i].dot(q) * ro[i]
        q.add_(changes[i], alpha=-al[i])
    direction: Tensor = functions["mul"](q, memory["H_diag"])
    for i in range(len(changes)):
        direction.add_(moves[i], alpha=al[i] - changes[i].dot(direction) * ro[i])
    return direction


def _remember(grad: Tensor, memory: dict[str, Any], history_size: int) -> None:
    """Add the last move and the change of the gradient to the history, if the curvature along it is positive."""
    change = grad.sub(memory["prev_flat_grad"])
    move = memory["d"].mul(memory["t"])
    curvature = change.dot(move)
    if curvature > 1e-10:
        history = (memory["old_dirs"], memory["old_stps"], memory["ro"])
        if len(history[0]) == history_size:
            for kept in history:
                kept.pop(0)
        for kept, value in zip(history, (change, move, 1.0 / curvature), strict=True):
            kept.append(value)
        memory["H_diag"] = curvature / change.dot(change)
