"""Sparse tensors in coordinate form: arithmetic, sums, softmax, parts of them, and gradients through their values."""

import pytest

import mindtorch_v2 as torch

INDICES = [[0, 1, 1], [2, 0, 2]]
DENSE = torch.tensor([[0.0, 0.0, 3.0], [4.0, 0.0, 5.0]])


def sparse(values=(3.0, 4.0, 5.0)):
    return torch.sparse_coo_tensor(INDICES, values, (2, 3))


def twice():
    """The same coordinates more than once."""
    return torch.sparse_coo_tensor([[1, 0, 1], [1, 0, 1]], [2.0, 1.0, 3.0], (2, 2))


@pytest.mark.parametrize(
    "of",
    [
        lambda t: t + t, lambda t: t - 2 * t, lambda t: t * t, lambda t: t * 3, lambda t: t / 2, lambda t: -t, lambda t: t**2,
        lambda t: t.sqrt(), lambda t: t.abs().sin(), lambda t: t.t(), lambda t: t.unsqueeze(1), lambda t: t[1], lambda t: t[:, 1],
        lambda t: torch.cat([t, t], 1), lambda t: torch.stack([t, t]), lambda t: t.index_select(0, torch.tensor([1, 1, 0])),
        lambda t: t.sum(0), lambda t: t.narrow_copy(1, 1, 1), lambda t: t * DENSE[:, :1], lambda t: t.to(torch.float64),
    ],
)  # fmt: skip
@pytest.mark.parametrize("make", [sparse, twice])
def test_the_result_is_that_of_the_dense_tensor(of, make):
    made = make()
    result = of(made)
    assert result.is_sparse
    expected = of(made.to_dense()) if of.__code__.co_names != ("narrow_copy",) else made.to_dense()[:, 1:2]
    assert torch.equal(result.to_dense(), expected)


def test_sums_over_dimensions():
    s = sparse()
    assert torch.sparse.sum(s, 1).to_dense().tolist() == [3.0, 9.0]
    assert torch.sparse.sum(s, [0, 1]).tolist() == 12.0
    rows = torch.sparse_coo_tensor([[1]], [[1.0, 2.0]], (3, 2))
    assert torch.sparse.sum(rows, 0).tolist() == [1.0, 2.0]
    assert torch.sparse.sum(rows, 1).to_dense().tolist() == [0.0, 3.0, 0.0]


def test_softmax_is_over_the_elements_that_there_are():
    total = torch.sparse.sum(torch.sparse.softmax(sparse(), 1), 1).to_dense()
    assert total.tolist() == pytest.approx([1.0, 1.0])
    logs = torch.sparse.log_softmax(sparse(), 1).coalesce().values()
    assert logs.exp().tolist() == pytest.approx([1.0, 0.26894143, 0.7310586])


def test_gradients_through_values():
    values = torch.tensor([3.0, 4.0, 5.0], requires_grad=True)
    torch.sparse.mm(sparse(values), torch.arange(6.0).reshape(3, 2)).sum().backward()
    assert values.grad.tolist() == [9.0, 1.0, 9.0]
    values = torch.tensor([2.0, 1.0, 3.0], requires_grad=True)
    made = torch.sparse_coo_tensor([[1, 0, 1], [1, 0, 1]], values, (2, 2))
    made.coalesce().values().square().sum().backward()
    assert values.grad.tolist() == [10.0, 2.0, 10.0]


def test_a_leaf_that_is_sparse_has_a_sparse_gradient():
    s = sparse().coalesce().requires_grad_()
    for passes in (1, 2):
        s.to_dense().square().sum().backward()
        assert s.grad.is_sparse
        assert s.grad.to_dense().tolist() == (2 * passes * DENSE).tolist()


def test_gather_can_have_a_sparse_gradient():
    x = torch.ones(2, 3, requires_grad=True)
    x.gather(1, torch.tensor([[0, 0], [1, 2]]), sparse_grad=True).sum().backward()
    assert x.grad.is_sparse
    assert x.grad.to_dense().tolist() == [[2.0, 0.0, 0.0], [0.0, 1.0, 1.0]]


def test_a_number_is_sparse_too():
    number = torch.tensor(3.0).to_sparse()
    assert (number.sparse_dim(), number._nnz(), number.to_dense().item()) == (0, 1, 3.0)


def test_checks_are_on_until_a_program_says_otherwise():
    checks = torch.sparse.check_sparse_tensor_invariants
    bad = lambda **options: torch.sparse_coo_tensor(INDICES, [3.0, 4.0, 5.0], (2, 2), **options)
    assert not checks.is_enabled()
    with pytest.raises(RuntimeError, match="size is inconsistent with indices"):
        bad()
    bad(check_invariants=False)
    with checks(False):
        bad()
        with checks():
            assert checks.is_enabled()
            with pytest.raises(RuntimeError, match="size is inconsistent"):
                bad()
    with pytest.raises(RuntimeError, match="size is inconsistent"):
        checks(True)(bad)()


def test_another_size():
    s = sparse().clone().sparse_resize_((4, 5), 2, 0)
    assert s.shape == (4, 5)
    assert s.to_dense()[:2, :3].tolist() == DENSE.tolist()
    with pytest.raises(RuntimeError, match="shrinking"):
        s.sparse_resize_((1, 1), 2, 0)
