"""Writes in place: histories of bases and views, versions."""

from __future__ import annotations

import pytest

import mindtorch_v2 as torch


def leaf(*values):
    return torch.tensor(list(values), dtype=torch.float64, requires_grad=True)


def test_inplace_chain():
    x = leaf(2.0)
    y = x * 3
    y.add_(1).mul_(x)
    y.sum().backward()
    assert x.grad.item() == 6 * 2 + 1


def test_inplace_that_reads_its_old_value():
    x, w = leaf(2.0), leaf(5.0)
    y = x * 1
    y.mul_(w)
    y.sum().backward()
    assert (x.grad.item(), w.grad.item()) == (5, 2)


def test_double_backward_through_an_inplace_write():
    x, w = leaf(2.0), leaf(5.0)
    y = x * x
    y.mul_(w * w)
    (g,) = torch.autograd.grad(y.sum(), w, create_graph=True)  # 2 w x²
    gx, gw = torch.autograd.grad(g.sum(), (x, w))
    assert (gx.item(), gw.item()) == (4 * 5 * 2, 8)


def test_a_plain_tensor_joins_the_graph():
    x = leaf(2.0, 3.0)
    buffer = torch.zeros(2, dtype=torch.float64)
    buffer.add_(x)
    assert buffer.requires_grad
    assert not buffer.is_leaf
    (buffer * buffer).sum().backward()
    assert x.grad.tolist() == [4, 6]


def test_rows_of_a_buffer():
    x = leaf(2.0, 3.0)
    buffer = torch.zeros(2, 2, dtype=torch.float64)
    buffer[0] = x
    buffer[1] = x * x
    buffer.sum().backward()
    assert x.grad.tolist() == [5, 7]


def test_views_made_before_their_base_joins_the_graph():
    x = leaf(2.0, 3.0)
    buffer = torch.ones(2, dtype=torch.float64)
    before = buffer[1]
    buffer.mul_(x)
    assert before.requires_grad
    assert before.grad_fn.name() == "AsStridedBackward0"
    assert buffer[1].grad_fn.name() == "SelectBackward0"
    (before * 5).backward()
    assert x.grad.tolist() == [0, 5]


def test_sibling_views_see_the_write():
    x = leaf(2.0, 3.0)
    y = x * 1
    left, whole = y[:1], y[:]
    left.mul_(10)
    whole.sum().backward()
    assert x.grad.tolist() == [10, 1]


def test_view_of_a_view():
    x = torch.ones(2, 3, dtype=torch.float64, requires_grad=True)
    y = x * 1
    y.t()[1].mul_(4)
    y.sum().backward()
    assert x.grad.tolist() == [[1, 4, 1], [1, 4, 1]]


def test_overwritten_part_gets_no_gradient():
    x, w = leaf(1.0, 2.0), leaf(7.0)
    y = x * 1
    y[0] = w[0]
    y.sum().backward()
    assert x.grad.tolist() == [0, 1]
    assert w.grad.item() == 1


def test_write_of_a_constant():
    x = leaf(1.0, 2.0)
    y = x * 3
    y[1] = 5
    y.sum().backward()
    assert x.grad.tolist() == [3, 0]
    y = x * 3
    y.zero_()
    y.sum().backward()
    assert x.grad.tolist() == [3, 0]


def test_double_backward_through_copy_slices():
    x = leaf(2.0, 3.0)
    y = x * x
    y[0].mul_(x[0])
    (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    assert g.tolist() == [12, 6]
    (gg,) = torch.autograd.grad(g.sum(), x)
    assert gg.tolist() == [12, 2]


def test_versions_are_shared_by_views():
    base = torch.zeros(4)
    version = base._version
    view = base[1:]
    view.add_(1)
    assert base._version == view._version == version + 1


def test_second_backward_through_copy_slices_is_refused():
    x = leaf(1.0, 2.0)
    y = x * 1
    y[0].mul_(2)
    z = y.sum()
    z.backward()
    with pytest.raises(RuntimeError, match=r"backward through the graph a second time"):
        z.backward()


def test_a_view_made_without_grad_still_requires_it():
    x = leaf(1.0, 2.0)
    with torch.no_grad():
        view = x[0]
    assert view.requires_grad  # torch: as a leaf of its own
    assert view.grad_fn is None


def test_inplace_under_no_grad_leaves_the_history():
    x = leaf(1.0)
    y = x * 2
    with torch.no_grad():
        y.add_(5)
    assert y.grad_fn.name() == "MulBackward0"
    y.sum().backward()
    assert x.grad.item() == 2


def test_requires_grad_of_a_view_of_data():
    data = torch.zeros(3)
    view = data[0].requires_grad_()
    (view * 2).backward()
    assert view.grad.item() == 2


def test_retained_gradient_follows_a_write_through_a_view():
    x = leaf(1.0, 2.0)
    y = x * 2
    y.retain_grad()
    y[0].mul_(5)
    (y * y).sum().backward()
    assert y.grad.tolist() == [20, 8]


def test_retained_gradient_of_a_view_whose_base_is_written():
    x = leaf(1.0, 2.0)
    y = x * 2
    view = y[:]
    view.retain_grad()
    y.mul_(5)
    view.sum().backward()
    assert view.grad.tolist() == [1, 1]


def test_double_backward_through_a_saved_result_written_into_a_view():
    x = leaf(0.0, 1.0)
    y = x * 1
    view = y[:1]
    view.exp_()
    (g,) = torch.autograd.grad((y * y).sum(), x, create_graph=True)  # 2 exp(2x), 2x
    assert g.tolist() == [2, 2]
    (g * g).sum().backward()  # 2 g g': g' = 4 exp(2x), 2
    assert x.grad.tolist() == [16, 8]


def test_strided_views_keep_their_geometry_only():
    x = leaf(1.0, 2.0)
    y = x * 1
    view = y.as_strided((1,), (1,), 1)
    y.mul_(3)  # what as_strided saved is not the memory
    (view * 2).sum().backward()
    assert x.grad.tolist() == [0, 6]


def test_overlapping_view_of_a_written_base():
    x = leaf(1.0, 2.0)
    y = x * 1
    view = y[:1].expand(3)
    y.mul_(3)
    view.sum().backward()
    assert x.grad.tolist() == [9, 0]
