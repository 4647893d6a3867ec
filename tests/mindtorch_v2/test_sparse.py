"""Sparse tensors in coordinate form."""

import pytest

import mindtorch_v2 as torch

INDICES = torch.tensor([[0, 1, 1], [2, 0, 2]])
VALUES = torch.tensor([3.0, 4.0, 5.0])
DENSE = [[0.0, 0.0, 3.0], [4.0, 0.0, 5.0]]


def adjacency():
    return torch.sparse_coo_tensor(INDICES, VALUES, (2, 3))


def test_made_from_coordinates_and_taken_apart():
    s = adjacency()
    assert s.is_sparse
    assert s.layout is torch.sparse_coo
    assert s.shape == (2, 3)
    assert (s._nnz(), s.sparse_dim(), s.dense_dim()) == (3, 2, 0)
    assert s.to_dense().tolist() == DENSE
    assert torch.sparse_coo_tensor([[0, 1], [1, 0]], [1.0, 2.0]).shape == (2, 2)
    assert torch.sparse.FloatTensor(INDICES, VALUES, torch.Size([2, 3])).to_dense().tolist() == DENSE


def test_dense_to_sparse_and_back():
    x = torch.tensor(DENSE)
    s = x.to_sparse()
    assert s.is_coalesced()
    assert s.indices().tolist() == [[0, 1, 1], [2, 0, 2]]
    assert s.values().tolist() == [3.0, 4.0, 5.0]
    assert torch.equal(s.to_dense(), x)
    assert not x.is_sparse


def test_coalesce_adds_values_of_equal_coordinates():
    s = torch.sparse_coo_tensor([[1, 0, 1], [1, 0, 1]], [2.0, 1.0, 3.0], (2, 2))
    assert not s.is_coalesced()
    with pytest.raises(RuntimeError, match="uncoalesced"):
        s.values()
    c = s.coalesce()
    assert c.indices().tolist() == [[0, 1], [0, 1]]
    assert c.values().tolist() == [1.0, 5.0]
    assert s.to_dense().tolist() == [[1.0, 0.0], [0.0, 5.0]]


@pytest.mark.parametrize("product", [torch.spmm, torch.sparse.mm, torch.mm, torch.matmul])
def test_products_with_dense_matrices_and_their_gradients(product):
    weight = torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], requires_grad=True)
    out = product(adjacency(), weight)
    assert out.tolist() == [[15.0, 18.0], [29.0, 38.0]]
    out.sum().backward()
    assert weight.grad.tolist() == [[4.0, 4.0], [0.0, 0.0], [8.0, 8.0]]


def test_sparse_tensors_are_added_to_dense_ones():
    x = torch.ones(2, 3)
    s = torch.sparse_coo_tensor([[0, 1, 1], [2, 0, 0]], [3.0, 4.0, 5.0], (2, 3))
    assert torch.add(x, s, alpha=2).tolist() == [[1.0, 1.0, 7.0], [19.0, 1.0, 1.0]]
    assert x.add_(s, alpha=-1) is x
    assert x.tolist() == [[1.0, 1.0, -2.0], [-8.0, 1.0, 1.0]]
    assert x._version == 1
    x += s.coalesce()
    assert x.tolist() == [[1.0, 1.0, 1.0], [1.0, 1.0, 1.0]]
    with pytest.raises(RuntimeError, match=r"same size, but self has size \[3\] while other has size \[2, 3\]"):
        torch.ones(3).add_(s)
    with pytest.raises(RuntimeError, match=r"Use add\(dense, sparse\) instead"):
        s + x


def test_elements_of_a_dense_tensor_at_the_coordinates_of_a_sparse_one():
    x = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    found = x.sparse_mask(adjacency().coalesce())
    assert found.is_coalesced()
    assert found.indices().tolist() == INDICES.tolist()
    assert found.values().tolist() == [3.0, 4.0, 6.0]
    rows = torch.sparse_coo_tensor([[1]], [[1.0, 1.0, 1.0]], (2, 3))
    assert x.sparse_mask(rows).values().tolist() == [[4.0, 5.0, 6.0]]
    with pytest.raises(RuntimeError, match=r"incompatible sizes; self has size \[2\] but mask has size \[2, 3\]"):
        torch.ones(2).sparse_mask(rows)


def test_sparse_tensors_in_place():
    s, dense = adjacency().clone(), torch.tensor(DENSE)
    s.mul_(2)
    assert s.to_dense().tolist() == (dense * 2).tolist()
    s.add_(adjacency(), alpha=0.5)
    assert s.to_dense().tolist() == (dense * 2.5).tolist()
    assert (s._nnz(), s.is_coalesced()) == (3, False)
    assert s.zero_() is s
    assert (s._nnz(), s.shape) == (0, (2, 3))
    assert s.to_dense().tolist() == torch.zeros(2, 3).tolist()


def test_bad_coordinates_are_named():
    with pytest.raises(RuntimeError, match="size is inconsistent with indices: for dim 1, size is 2 but found index 2"):
        torch.sparse_coo_tensor(INDICES, VALUES, (2, 2))
    with pytest.raises(RuntimeError, match="same nnz"):
        torch.sparse_coo_tensor(INDICES, VALUES[:2], (2, 3))


def test_what_is_not_supported_refuses_instead_of_computing_with_zeros():
    s = adjacency()
    with pytest.raises(NotImplementedError, match=r"aten::exp.*SparseCPU"):
        s.exp()
    with pytest.raises(TypeError, match="to_dense"):
        s.numpy()
    with pytest.raises(RuntimeError, match="to_dense"):
        s.tolist()


def test_printing():
    assert repr(adjacency()) == (
        "tensor(indices=tensor([[0, 1, 1],\n"
        "                       [2, 0, 2]]),\n"
        "       values=tensor([3., 4., 5.]),\n"
        "       size=(2, 3), nnz=3, layout=torch.sparse_coo)"
    )


def test_a_few_plain_operators():
    s = adjacency()
    assert (s * 2).to_dense().tolist() == [[0.0, 0.0, 6.0], [8.0, 0.0, 10.0]]
    assert (s + s).to_dense().tolist() == [[0.0, 0.0, 6.0], [8.0, 0.0, 10.0]]
    assert s.t().to_dense().tolist() == [[0.0, 4.0], [0.0, 0.0], [3.0, 5.0]]
    assert s.sum().item() == 12.0
    assert s.double().dtype is torch.float64
