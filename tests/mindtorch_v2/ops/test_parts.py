"""Kernels that profiles show as several operators give the same results recorded and not, and show those operators."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import mindtorch_v2 as torch
from mindtorch_v2._dispatch import dispatcher, keys
from mindtorch_v2._dispatch.codegen import Body
from mindtorch_v2._dispatch.op import Op

F = torch.nn.functional


@contextlib.contextmanager
def names_called() -> Iterator[list[str]]:
    """The names of the operators called inside, in the order of their beginnings."""
    called: list[str] = []

    def layer(op: Op, full: int, body: Body) -> Body:
        return Body([f"called.append({op.name!r})", *body.lines], {**body.names, "called": called})

    dispatcher.register_layer(keys.PROFILER, layer)
    dispatcher.activate(keys.PROFILER)
    try:
        yield called
    finally:
        dispatcher.deactivate(keys.PROFILER)
        dispatcher.unregister_layer(keys.PROFILER)


def _matrix() -> Any:
    return torch.from_numpy(np.random.default_rng(0).standard_normal((4, 4)).astype(np.float32))


def _positive() -> Any:
    x = _matrix()
    return x @ x.T + 4 * torch.eye(4)


CASES: dict[str, tuple[Callable[[], Any], list[str]]] = {
    "mse_loss": (lambda: F.mse_loss(_matrix(), _positive()), ["mse_loss", "mean", "sum", "div_"]),
    "smooth_l1_loss": (lambda: F.smooth_l1_loss(_matrix(), _positive(), reduction="sum"), ["smooth_l1_loss", "sum"]),
    "bce": (lambda: F.binary_cross_entropy(_matrix().sigmoid(), _matrix().sigmoid()), ["binary_cross_entropy", "mean", "sum", "div_"]),
    "std": (lambda: _matrix().std(), ["std", "mean", "sum", "div_"]),
    "std of rows": (lambda: _matrix().std(1), ["std"]),
    "mv": (lambda: _matrix().mv(_matrix()[0]), ["mv", "new_empty", "addmv_"]),
    "sort": (lambda: _matrix().sort()[1], ["sort", "arange", "arange"]),
    "abs": (lambda: _matrix().abs(), ["abs", "abs"]),
    "abs_": (lambda: _matrix().abs_(), ["abs_", "abs"]),
    "masked_select": (lambda: _matrix().masked_select(_matrix() > 0), ["masked_select", "sum"]),
    "cholesky": (lambda: torch.linalg.cholesky_ex(_positive())[0], ["linalg_cholesky_ex", "tril"]),
    "qr": (lambda: torch.linalg.qr(_matrix())[1], ["linalg_qr", "triu"]),
    "inverse": (lambda: torch.linalg.inv_ex(_positive())[0], ["linalg_inv_ex", "linalg_solve_ex", "linalg_lu_factor_ex", "linalg_lu_solve", "gt", "all"]),
    "multinomial": (lambda: _positive().abs().multinomial(2, generator=torch.Generator().manual_seed(1)), ["multinomial", "aminmax", "ge", "lt", "bitwise_and", "sum", "eq", "any", "topk"]),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_recorded_and_not(name: str) -> None:
    call, expected = CASES[name]
    plain = call()
    with names_called() as called:
        recorded = call()
    np.testing.assert_allclose(recorded._array, plain._array, rtol=1e-5, atol=1e-6)
    remaining = iter(called)
    assert all(n in remaining for n in expected), called


def test_checks_hold_while_recording() -> None:
    with names_called():
        with pytest.raises(RuntimeError, match="probability tensor contains either `inf`, `nan` or element < 0"):
            torch.tensor([1.0, -1.0]).multinomial(1)
        with pytest.raises(RuntimeError, match="sum of probabilities <= 0"):
            torch.zeros(2).multinomial(1)
        with pytest.raises(RuntimeError, match="singular"):
            torch.linalg.inv(torch.zeros(2, 2))


def test_overloads_are_named_as_in_aten() -> None:
    assert torch.ops.aten.pow_.overloads() == ["Tensor", "Scalar"]
    assert torch.ops.aten.floor_divide_.overloads() == ["Tensor"]
    assert sorted(torch.ops.aten.special_xlogy.overloads()) == ["default", "other_scalar", "self_scalar"]


def test_arguments_that_share_a_name_with_recording_are_no_trouble() -> None:
    with names_called() as called:
        assert torch.diff(torch.arange(3), append=torch.tensor([5])).tolist() == [1, 1, 3]
    assert "diff" in called


def test_weight_norm_can_be_differentiated_twice() -> None:
    v = torch.randn(3, 4, dtype=torch.float64, requires_grad=True)
    g = torch.randn(3, 1, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda v, g: torch._weight_norm(v, g, 0), (v, g))
    assert torch.autograd.gradgradcheck(lambda v, g: torch._weight_norm(v, g, 0), (v, g))
