"""Masks of `torch.masked`: what they may look like, and which results they leave."""

import pytest

import mindtorch_v2 as torch

X = torch.arange(6.0).reshape(2, 3)
MASK = torch.tensor([[True, False, True], [False, False, False]])


def test_masks_of_other_shapes_dtypes_and_layouts():
    wanted = torch.masked.sum(X, 1, mask=MASK)
    assert wanted.tolist() == [2, 0]
    assert torch.equal(torch.masked.sum(X, 1, mask=MASK.long()), wanted)
    assert torch.equal(torch.masked.sum(X, 1, mask=MASK.to_sparse()), wanted)
    assert torch.masked.sum(X, 1, mask=MASK[0]).tolist() == [2, 8]
    with pytest.raises(IndexError, match="mask dimensionality higher than of the input"):
        torch.masked.sum(X, mask=MASK.unsqueeze(0))


@pytest.mark.parametrize("name", ["sum", "prod", "amax", "amin", "mean", "norm", "var", "std", "logsumexp"])
def test_no_dimensions_are_all_dimensions(name):
    function = getattr(torch.masked, name)
    order = (2.0,) if name == "norm" else ()
    torch.testing.assert_close(function(X, *order, (), mask=MASK), function(X, *order, None, mask=MASK))
    assert function(X, *order, (), mask=MASK).shape == ()


def test_which_results_have_elements():
    assert torch.masked._output_mask(torch.masked.sum, X, 1, mask=MASK).tolist() == [True, False]
    assert torch.masked._output_mask(torch.masked.norm, X, 2.0, 0, mask=MASK).tolist() == [True, False, True]
    assert torch.masked._output_mask(torch.masked.amax, X, mask=MASK, keepdim=True).tolist() == [[True]]
    assert torch.equal(torch.masked._output_mask(torch.masked.softmax, X, 1, mask=MASK), MASK)
    with pytest.raises(ValueError, match=r"_output_mask expected masked operation \(got sin\)"):
        torch.masked._output_mask(torch.sin, X, mask=MASK)
    with pytest.raises(ValueError, match="requires explicit mask"):
        torch.masked._input_mask(X)


def test_dimensions_in_order():
    assert torch.masked._canonical_dim((-1, 0), 3) == (0, 2)
    assert torch.masked._canonical_dim(None, 2) == torch.masked._canonical_dim((), 2) == (0, 1)
    assert torch.masked._canonical_dim([], 2) == ()
    assert torch.masked.prod(X, [], mask=MASK).shape == X.shape
    with pytest.raises(RuntimeError, match="dim=0 appears multiple times"):
        torch.masked._canonical_dim((0, -2), 2)
