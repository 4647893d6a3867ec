"""Interrupts of a backward pass."""

import pytest

import mindtorch_v2 as torch
from mindtorch_v2._autograd import engine


@pytest.mark.parametrize("name", ["_next_id", "guard", "_propagate"])
def test_an_interrupt_at_the_beginning_of_backward_leaves_no_mode_behind(monkeypatch, name):
    def interrupt(*args):
        raise KeyboardInterrupt

    w = torch.ones(2, requires_grad=True)
    loss = (w * 2).sum()
    with monkeypatch.context() as patched:
        patched.setattr(engine, name, interrupt)
        with pytest.raises(KeyboardInterrupt):
            loss.backward()
    assert torch.is_grad_enabled()
    assert engine.state.backward_depth == 0
    loss.backward()
    assert w.grad.tolist() == [2, 2]
