"""`vmap`: mapped functions against one call for each sample."""

import pytest

import mindtorch_v2 as torch
from mindtorch_v2.func import grad, vmap

F = torch.nn.functional


def check(function, *args, in_dims=0, out_dims=0):
    """Compare a mapped function with calls for single samples."""
    dims = in_dims if isinstance(in_dims, tuple) else (in_dims,) * len(args)
    size = next(t.shape[d] for t, d in zip(args, dims, strict=True) if d is not None)
    single = [function(*[t if d is None else t.select(d, i) for t, d in zip(args, dims, strict=True)]) for i in range(size)]
    found = vmap(function, in_dims, out_dims)(*args)
    torch.testing.assert_close(found, torch.stack(single, out_dims))


x, y, w = (torch.randn(*shape, generator=torch.Generator().manual_seed(i)) for i, shape in enumerate([(4, 3, 5), (4, 5), (5, 2)]))
images = torch.randn(5, 2, 3, 6, 6, generator=torch.Generator().manual_seed(3))
positions = torch.tensor([[0, 1], [1, 2], [2, 2], [0, 0]])
mask = torch.tensor([True, False, True])


@pytest.mark.parametrize(
    ("function", "args"),
    [
        (lambda a, b: a + b, (x, y)),
        (lambda a, b: (a * b).sum(0), (x, y)),
        (lambda a: a @ w, (x,)),
        (lambda a: a.mean(), (x,)),
        (lambda a: a.softmax(-1), (x,)),
        (lambda a: a.reshape(15), (x,)),
        (lambda a: a.t().contiguous().view(-1), (x,)),
        (lambda a: a[0], (x,)),
        (lambda a: a[:, 1:3], (x,)),
        (lambda a, b: torch.cat([a, b[None]]), (x, y)),
        (lambda a, i: a[i], (x, positions)),
        (lambda a, i: a[:, i], (x, positions)),
        (lambda a: a[:, torch.tensor([1, 2])], (x,)),
        (lambda a: a[mask], (x,)),
        (lambda i: w[i % 2], (positions,)),
        (lambda a: a.sort(1)[0] + a.argmax(), (x,)),
        (lambda a: a.std() + a.norm() + a.median(), (x,)),
        (lambda a: torch.linalg.det(a[:, :3]), (x,)),
        (lambda a: F.layer_norm(a, (5,), y[0]), (x,)),
        (lambda a, b: F.mse_loss(a[0], b), (x, y)),
        (lambda a: F.interpolate(a, scale_factor=2), (images,)),
        (lambda a: F.max_pool2d(a, 2), (images,)),
        (lambda a, b: torch.where(b > 0, a, b), (x, y)),
        (lambda a: a.masked_fill(mask[:, None], 0.0).cumsum(0), (x,)),
    ],
)
def test_a_mapped_function(function, args):
    check(function, *args)


def test_dimensions():
    check(lambda a: a[:, 1:3], x, in_dims=2)
    check(lambda a, b: a * b, x, y[0], in_dims=(0, None))
    check(lambda a: a * 2, x, in_dims=-1, out_dims=1)
    assert vmap(lambda a: torch.ones(2), out_dims=1)(x).shape == (2, 4)
    nested = vmap(vmap(lambda a, b: a * b, in_dims=(0, None)), in_dims=(0, 0))(x, y)
    torch.testing.assert_close(nested, x * y[:, None])
    tree = vmap(lambda d: {"sum": d["a"] + d["b"][0]}, in_dims=({"a": 0, "b": (None,)},))({"a": y, "b": (y[0],)})
    torch.testing.assert_close(tree["sum"], y + y[0])


def test_convolutions_share_weights_or_have_their_own():
    conv = torch.nn.Conv2d(3, 4, 3)
    weights = torch.randn(5, 4, 3, 3, 3, generator=torch.Generator().manual_seed(4))
    check(lambda a: conv(a), images)
    check(lambda a: conv(a), images[:, 0])
    check(lambda a, v: F.conv2d(a, v, conv.bias), images, weights)
    check(lambda v: F.conv2d(images[0], v), weights)
    check(lambda a, v: F.conv_transpose2d(a, v.transpose(0, 1)), images, weights)


def test_chunks():
    torch.testing.assert_close(vmap(lambda a: a * 2, chunk_size=3)(x), x * 2)
    seen = []
    vmap(lambda a: seen.append(1) or a, chunk_size=1)(x)
    assert len(seen) == 4


def test_gradients_reach_what_is_outside():
    p = torch.randn(5, requires_grad=True)
    vmap(lambda a: (a * p).sum())(y).sum().backward()
    torch.testing.assert_close(p.grad, y.sum(0))


def test_writes_in_place():
    def fill(a):
        room = torch.zeros_like(a)
        room[0] = a[1]
        room[1:].add_(a[0])
        return room

    check(fill, x)
    torch.testing.assert_close(
        vmap(grad(lambda a: (fill(a) ** 2).sum()))(x), torch.stack([grad(lambda a: (fill(a) ** 2).sum())(a) for a in x])
    )
    with pytest.raises(RuntimeError, match="there exists a Tensor `other` in extra_args that has more elements than `self`"):
        vmap(lambda a: torch.zeros(3, 5).add_(a))(x)


def test_randomness():
    with pytest.raises(RuntimeError, match="randomness error mode"):
        vmap(lambda a: a + torch.randn(3))(y[:, :3])
    same = vmap(lambda a: a + torch.rand(5), randomness="same")(torch.zeros(4, 5))
    assert all(torch.equal(row, same[0]) for row in same)
    different = vmap(lambda a: a + torch.rand(5), randomness="different")(torch.zeros(4, 5))
    assert not torch.equal(different[0], different[1])
    dropped = vmap(lambda a: F.dropout(a, 0.5), randomness="same")(torch.ones(3, 64))
    assert torch.equal(dropped[0], dropped[2])
    dropped = vmap(lambda a: F.dropout(a, 0.5), randomness="different")(torch.ones(3, 64))
    assert not torch.equal(dropped[0], dropped[2])
    assert torch.rand(2).shape == (2,)  # as ever, outside


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: vmap(lambda a: a.item())(y[:, 0]), r"calling .item\(\) on a Tensor"),
        (lambda: vmap(lambda a: a if a > 0 else -a)(y[:, 0]), "data-dependent control flow"),
        (lambda: vmap(lambda a: a.nonzero())(y), "dynamic shape"),
        (lambda: vmap(lambda a: a.tolist())(y), "tolist"),
        (lambda: vmap(torch.sum)(), "got no inputs"),
        (lambda: vmap(torch.add, in_dims=(0, 0))(x, y[:3]), "same size in the mapped dimension"),
        (lambda: vmap(torch.sum, in_dims=3)(x), "expected in_dim to satisfy"),
        (lambda: vmap(torch.sum, in_dims=(0, 0))(x), "not compatible with the structure"),
        (lambda: vmap(lambda a: 3)(x), "must only return Tensors"),
        (lambda: vmap(lambda a: a, out_dims=None)(x), "when out_dim is None"),
        (lambda: vmap(torch.sum, randomness="some")(x), "Only allowed values for randomness"),
        (lambda: vmap(torch.sum, chunk_size=0)(x), "chunk_size should be None or greater than 0"),
        (lambda: vmap(lambda a: a.requires_grad_())(x), "requires_grad_"),
    ],
)
def test_refusals(call, says):
    with pytest.raises((RuntimeError, ValueError), match=says):
        call()


def test_an_operator_without_a_rule_runs_for_each_sample_and_says_so():
    with pytest.warns(
        UserWarning, match="performance drop because we have not yet implemented the batching rule for aten::_pdist_forward"
    ):
        found = vmap(torch.pdist)(x)
    torch.testing.assert_close(found, torch.stack([torch.pdist(a) for a in x]))


def test_what_a_batched_tensor_shows():
    seen = []
    vmap(lambda a: seen.append((repr(a), a.shape, a.dim(), a.numel(), a.stride())) or a)(torch.zeros(2, 3))
    assert seen == [
        ("BatchedTensor(lvl=1, bdim=0, value=\n    tensor([[0., 0., 0.],\n            [0., 0., 0.]])\n)", (3,), 1, 3, (1,))
    ]


def test_conjugates_are_resolved():
    z = torch.tensor([[1 + 2j, 3 - 1j]])
    assert vmap(lambda a: torch.view_as_real(a.conj()))(z).tolist() == [[[1.0, -2.0], [3.0, 1.0]]]
    assert vmap(torch.view_as_real)(z.conj()).tolist() == [[[1.0, -2.0], [3.0, 1.0]]]


def test_no_trace_is_left():
    from mindtorch_v2._dispatch import dispatcher, keys
    from mindtorch_v2._dispatch.tls import state

    vmap(lambda a: a * 2)(x)
    with pytest.raises(ZeroDivisionError):
        vmap(lambda a: 1 / 0)(x)
    assert not dispatcher.active_keys() & keys.DRAWING
    assert state.level is None
    assert not state.transforms


def test_rules_keep_gradients():
    """A rule for a composite without formulas would hide the composite's parts from autograd: only those without gradients have one."""
    from mindtorch_v2._dispatch import registry
    from mindtorch_v2._transforms.batch_key import find_rule

    ruled = {op.name for op in registry.all_ops() if op.composite is not None and not op.formulas and find_rule(op) is not None}
    made = {
        "empty_like",
        "zeros_like",
        "ones_like",
        "full_like",
        "new_empty",
        "new_zeros",
        "new_ones",
        "new_full",
        "new_empty_strided",
    }
    assert ruled <= made | {"detach", "item", "is_nonzero", "allclose", "view", "view_copy", "_is_any_true", "_is_all_true"}
    rows = x.transpose(1, 2)
    torch.testing.assert_close(vmap(grad(lambda a: (a.contiguous() ** 3).sum()))(rows), 3 * rows**2)
