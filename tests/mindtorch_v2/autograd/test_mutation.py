"""Writing to tensors that are saved for backward."""

import pytest

import mindtorch_v2 as torch


def test_may_be_written():
    with torch.autograd.graph.allow_mutation_on_saved_tensors() as saved:
        a = torch.tensor([3.0], requires_grad=True)
        b = a.clone()
        out = (b**2).sum()
        b.zero_()
        assert (len(saved.cloned), len(saved.original)) == (1, 0)
        out.backward()
    assert a.grad.tolist() == [6]


def test_only_inside():
    with torch.autograd.graph.allow_mutation_on_saved_tensors():
        a = torch.tensor([3.0], requires_grad=True)
        out = (a**2).sum()
        with (
            pytest.raises(RuntimeError, match="cannot be nested"),
            torch.autograd.graph.allow_mutation_on_saved_tensors(),
        ):
            pass
    with pytest.raises(AssertionError, match="Trying to backward outside"):
        out.backward()
