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


# --- sparse inputs --------------------------------------------------------------------------------------------------

STORED = torch.tensor([[1.0, 0, -2], [0, 0, 0], [-1, -3, 0]])
LEFT = torch.tensor([[True, True, False], [True, False, False], [False, False, False]])


@pytest.mark.parametrize("name", ["sum", "prod", "amax", "amin"])
@pytest.mark.parametrize(("dim", "keepdim"), [(None, False), (0, False), (1, True), ((0, 1), True), (-1, False)])
@pytest.mark.parametrize("mask", [LEFT, LEFT.to_sparse(), LEFT[:, :1]], ids=["dense", "sparse", "broadcast"])
def test_reductions_of_coordinates_are_those_of_dense_tensors_where_the_mask_leaves_elements(name, dim, keepdim, mask):
    function = getattr(torch.masked, name)
    found = function(STORED.to_sparse(), dim, keepdim=keepdim, mask=mask)
    assert found.layout is torch.sparse_coo
    wanted = function(STORED, dim, keepdim=keepdim, mask=mask)
    stored = torch.masked._output_mask(function, STORED, dim, keepdim=keepdim, mask=mask)
    assert torch.equal(torch.where(stored, found.to_dense(), 0.0), torch.where(stored, wanted, 0.0))


@pytest.mark.parametrize("name", ["sum", "prod", "amax", "amin", "mean"])
@pytest.mark.parametrize("dim", [None, 0, 1])
def test_reductions_of_rows(name, dim):
    function = getattr(torch.masked, name)
    found = function(STORED.to_sparse_csr(), dim, keepdim=True, mask=LEFT.to_sparse_csr())
    assert found.layout is torch.sparse_csr
    wanted = function(STORED, dim, keepdim=True, mask=LEFT)
    stored = torch.masked._output_mask(function, STORED, dim, keepdim=True, mask=LEFT)
    assert torch.equal(torch.where(stored, found.to_dense(), 0.0), torch.where(stored, wanted, 0.0))


def test_a_hybrid_tensor_is_reduced_over_both_kinds_of_dimensions():
    hybrid = STORED.to_sparse(1)
    for dim in (0, 1, (0, 1)):
        found = torch.masked.sum(hybrid, dim, mask=LEFT)
        assert torch.equal(found.to_dense(), torch.masked.sum(STORED, dim, mask=LEFT))


def test_gradients_of_sparse_reductions_reach_the_values():
    values = torch.tensor([1.0, -2, -1, -3], requires_grad=True)
    x = torch.sparse_coo_tensor(torch.tensor([[0, 0, 2, 2], [0, 2, 0, 1]]), values, (3, 3), is_coalesced=True)
    torch.masked.sum(x, 1, mask=LEFT).to_dense().sum().backward()
    assert values.grad.tolist() == [1, 0, 0, 0]


def test_refusals_of_sparse_inputs():
    with pytest.raises(ValueError, match="masked amax expects explicit mask for sparse_coo tensor input"):
        torch.masked.amax(STORED.to_sparse())
    with pytest.raises(RuntimeError, match="CSR tensors with keepdim=False is unsupported"):
        torch.masked.sum(STORED.to_sparse_csr(), 0, mask=LEFT)
    with pytest.raises(ValueError, match="masked mean expects strided or sparse_csr tensor"):
        torch.masked.mean(STORED.to_sparse(), mask=LEFT)


def test_where_stores_what_the_mask_leaves():
    found = torch.masked._where(LEFT.to_sparse(), STORED.to_sparse(), torch.tensor(9.0))
    assert found.indices().tolist() == [[0, 0, 1], [0, 1, 0]]
    assert found.values().tolist() == [1, 0, 0]
    rows = torch.masked._where(LEFT.to_sparse(1), STORED.to_sparse(1), torch.tensor(9.0))
    assert rows.to_dense().tolist() == [[1, 0, 9], [0, 9, 9], [0, 0, 0]]
