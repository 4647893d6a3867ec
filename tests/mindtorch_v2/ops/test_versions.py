"""How often a tensor counts as written: what an operator writes into its own result does not show."""

import pytest

import mindtorch_v2 as torch
import mindtorch_v2.nn.functional as F

X = torch.zeros(3, 3)
AT = torch.tensor([0])


@pytest.mark.parametrize(
    "call",
    [
        lambda: X.index_put((AT,), torch.ones(3)),
        lambda: X.index_fill(0, AT, 1.0),
        lambda: X.put(AT, torch.ones(1)),
        lambda: X.masked_scatter(X == 0, torch.ones(9)),
        lambda: X.slice_scatter(torch.ones(1, 3), 0, 0, 1),
        lambda: torch.diag(torch.ones(3)),
        lambda: torch.block_diag(X, X),
        lambda: X.logsumexp(0),
        lambda: torch.mv(X, X[0]),
        lambda: F.pad(X, (1, 1)),
    ],
)
def test_a_new_result_is_unwritten(call):
    assert call()._version == 0


def test_an_argument_keeps_its_count():
    x = torch.zeros(3)
    x.add_(1)
    assert x.index_put((AT,), torch.ones(1))._version == 0
    assert x._version == 1


def test_parts_of_a_composite_count():
    assert F.one_hot(AT, 3)._version == 2  # zeros, and the ones among them
    assert torch.matmul(X[0], X)._version == 1  # squeeze_


@pytest.mark.parametrize("call", ["squeeze_()", "unsqueeze_(0)", "t_()", "transpose_(0, 1)", "resize_(2, 2)"])
def test_another_shape_in_place_is_a_write(call):
    x = torch.zeros(1, 3)
    eval(f"x.{call}")
    assert x._version == 1
