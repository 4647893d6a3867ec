"""Compressed rows and columns: made, taken apart, turned into other layouts, multiplied and saved."""

import copy
import io
import pickle

import pytest

import mindtorch_v2 as torch

DENSE = [[0.0, 0.0, 3.0], [4.0, 0.0, 5.0]]
LAYOUTS = [torch.sparse_csr, torch.sparse_csc, torch.sparse_bsr, torch.sparse_bsc]


def rows():
    return torch.sparse_csr_tensor([0, 1, 3], [2, 0, 2], [3.0, 4.0, 5.0], (2, 3))


def in_layout(dense, layout):
    return dense.to_sparse(layout=layout, blocksize=(2, 1) if layout in LAYOUTS[2:] else None)


def test_rows_are_made_of_starts_columns_and_values():
    r = rows()
    assert r.layout is torch.sparse_csr
    assert r.is_sparse_csr
    assert not r.is_sparse
    assert (r.shape, r._nnz(), r.sparse_dim(), r.dense_dim()) == ((2, 3), 3, 2, 0)
    assert r.crow_indices().tolist() == [0, 1, 3]
    assert r.col_indices().tolist() == [2, 0, 2]
    assert r.values().tolist() == [3.0, 4.0, 5.0]
    assert r.to_dense().tolist() == DENSE


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_has_the_same_elements(layout):
    dense = torch.tensor(DENSE)
    compressed = in_layout(dense, layout)
    assert compressed.layout is layout
    assert torch.equal(compressed.to_dense(), dense)
    assert torch.equal(compressed.to_sparse().to_dense(), dense)
    assert torch.equal(in_layout(dense.to_sparse(), layout).to_dense(), dense)
    assert torch.equal(compressed.t().to_dense(), dense.t())


@pytest.mark.parametrize("layout", LAYOUTS)
def test_batches_of_matrices(layout):
    batch = torch.tensor([DENSE, [[1.0, 0.0, 0.0], [2.0, 0.0, 6.0]]])
    compressed = in_layout(batch, layout)
    assert torch.equal(compressed.to_dense(), batch)
    assert torch.equal(compressed[1].to_dense(), batch[1])
    with pytest.raises(RuntimeError, match="same number of specified elements per batch"):
        torch.stack([torch.eye(2), torch.ones(2, 2)]).to_sparse_csr()


@pytest.mark.parametrize("layout", [torch.sparse_coo, *LAYOUTS])
def test_products_are_those_of_dense_matrices(layout):
    dense, other = torch.tensor(DENSE), torch.arange(12.0).reshape(3, 4)
    sparse = in_layout(dense, layout)
    assert torch.equal(sparse @ other, dense @ other)
    assert torch.equal(other.t() @ sparse.t(), other.t() @ dense.t())
    assert torch.equal(sparse @ other[:, 0], dense @ other[:, 0])
    assert torch.equal(sparse.mm(sparse.t()).to_dense(), dense @ dense.t())


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        (([0, 1, 4], [2, 0, 2], [3.0, 4.0, 5.0]), r"crow_indices\[..., -1\] == nnz"),
        (([1, 1, 3], [2, 0, 2], [3.0, 4.0, 5.0]), r"crow_indices\[..., 0\] == 0"),
        (([0, 1, 3], [2, 0, 3], [3.0, 4.0, 5.0]), "col_indices < ncols"),
        (([0, 1, 3], [2, 2, 0], [3.0, 4.0, 5.0]), "sorted and distinct"),
        (([0, 1, 3], [2, 0, 2], [3.0, 4.0]), "equal to nnz"),
        (([0, 3], [2, 0, 2], [3.0, 4.0, 5.0]), r"number of nrows \+ 1"),
    ],
)
def test_bad_parts_are_named(parts, message):
    with pytest.raises(RuntimeError, match=message):
        torch.sparse_csr_tensor(*parts, (2, 3))
    with torch.sparse.check_sparse_tensor_invariants(False):
        torch.sparse_csr_tensor(*parts, (2, 3))


@pytest.mark.parametrize("size", [(2, 3), (0, 3), (2, 0), (0, 0), (2, 2, 3), (0, 2, 3)])
def test_there_may_be_no_elements(size):
    starts = torch.zeros(*size[:-2], size[-2] + 1, dtype=torch.int64)
    empty = torch.sparse_csr_tensor(starts, torch.empty(*size[:-2], 0, dtype=torch.int64), torch.empty(*size[:-2], 0), size)
    assert (empty.shape, empty._nnz()) == (size, 0)
    assert torch.equal(empty.to_dense(), torch.zeros(size))
    assert torch.equal(torch.zeros(size).to_sparse_csr().to_sparse().to_dense(), torch.zeros(size))


def test_gradients_reach_values_and_dense_factors():
    values = torch.tensor([3.0, 4.0, 5.0], requires_grad=True)
    weight = torch.ones(3, 2, requires_grad=True)
    r = torch.sparse_csr_tensor([0, 1, 3], [2, 0, 2], values, (2, 3))
    (r @ weight).sum().backward()
    assert values.grad.tolist() == [2.0, 2.0, 2.0]
    assert weight.grad.tolist() == [[4.0, 4.0], [0.0, 0.0], [8.0, 8.0]]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_copies_pickles_and_checkpoints(layout):
    made = in_layout(torch.tensor(DENSE), layout)
    file = io.BytesIO()
    torch.save({"a": made}, file)
    file.seek(0)
    for again in (copy.deepcopy(made), pickle.loads(pickle.dumps(made)), torch.load(file)["a"], made.clone()):
        assert again.layout is layout
        assert torch.equal(again.to_dense(), made.to_dense())


def test_what_is_not_supported_refuses():
    r = rows()
    for wrong in (lambda: r.exp(), lambda: r[[0]], lambda: torch.ones_like(r), lambda: r.max()):
        with pytest.raises(NotImplementedError, match="Could not run"):
            wrong()
    with pytest.raises(RuntimeError, match="expected sparse column compressed tensor layout but got SparseCsr"):
        r.ccol_indices()


def test_a_product_at_the_places_of_a_sparse_matrix():
    a, b = torch.arange(4.0).reshape(2, 2), torch.arange(6.0).reshape(2, 3)
    made = torch.sparse.sampled_addmm(rows(), a, b, beta=2, alpha=3)
    expected = 2 * torch.tensor(DENSE) + 3 * (a @ b) * (torch.tensor(DENSE) != 0)
    assert torch.equal(made.to_dense(), expected)


def test_rows_reduced_otherwise_than_by_sums():
    m = torch.tensor([[1.0], [2.0], [-3.0]])
    assert torch.sparse.mm(rows(), m, "mean").tolist() == [[-9.0], [-5.5]]
    assert torch.sparse.mm(rows(), m, "amax").tolist() == [[-9.0], [4.0]]
    assert torch.sparse.mm(rows(), m, "amin").tolist() == [[-9.0], [-15.0]]
