"""What `vmap` computes and what it refuses, as torch's does: keyword arguments, random numbers, ranks of samples, writes, leaked tensors."""

import functools

import numpy as np
import pytest

import mindtorch_v2 as mt

pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore")]


def outcome(lib, call):
    """What a call returns from a seed, as arrays; or that it raised."""
    lib.manual_seed(0)
    try:
        found = call(lib)
    except (RuntimeError, TypeError, ValueError, IndexError):
        return "refused"
    return [t.numpy() for t in lib.utils._pytree.tree_leaves(found)]


def compare(call, *, refused=False):
    import torch

    ours, theirs = outcome(mt, call), outcome(torch, call)
    assert (theirs == "refused") is refused
    if refused:
        assert ours == "refused"
        return
    assert len(ours) == len(theirs)
    for a, b in zip(ours, theirs, strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-7)


def scale(x, factor=None):
    return x * factor


def batches(t, *sizes):
    return [t.arange(float(np.prod(s))).reshape(s) / 7 - 1 for s in sizes]


VALUES = {
    "a keyword argument is the same for all samples": lambda t: t.vmap(scale)(t.ones(3), factor=t.arange(3.0)),
    "in chunks, too": lambda t: t.vmap(scale, chunk_size=2)(t.ones(3), factor=t.arange(4.0)),
    "the same numbers in all chunks": lambda t: t.vmap(lambda x: x + t.randn(2), randomness="same", chunk_size=2)(t.zeros(4)),
    "different numbers in all chunks": lambda t: t.vmap(lambda x: x + t.randn(2), randomness="different", chunk_size=2)(t.zeros(4)),
    "the same numbers in place": lambda t: t.vmap(lambda x: x.uniform_(), randomness="same")(t.zeros(4, 3)),
    "the same whole numbers in place": lambda t: t.vmap(lambda x: x.random_(9), randomness="same", in_dims=1)(t.zeros(4, 3)),
    "the same numbers by one chance": lambda t: t.vmap(lambda x: x.bernoulli_(t.tensor(0.3)), randomness="same")(t.zeros(4, 3)),
    "filled with each sample's number": lambda t: t.vmap(lambda x, v: x.clone().fill_(v))(t.zeros(2, 3), t.tensor([1.0, 2.0])),
    "filled in two levels": lambda t: t.vmap(t.vmap(lambda x, v: x.clone().fill_(v)))(
        t.zeros(2, 2, 3), t.arange(4.0).reshape(2, 2)
    ),
    "functionally filled": lambda t: t.vmap(lambda x, v: t.fill(x, v), in_dims=(None, 0))(t.zeros(3), t.tensor([1.0, 2.0])),
}

SQUARE = "cholesky_ex det slogdet eig eigh eigvals eigvalsh inv inv_ex lu lu_factor matrix_exp qr svd svdvals ldl_factor ldl_factor_ex pinv"
REFUSALS = {
    **{f"linalg.{name} of vectors": lambda t, name=name: t.vmap(getattr(t.linalg, name))(t.eye(3)) for name in SQUARE.split()},
    "cholesky of vectors": lambda t: t.vmap(t.cholesky)(t.eye(3)),
    "geqrf of vectors": lambda t: t.vmap(t.geqrf)(t.eye(3)),
    "solve_triangular of vectors": lambda t: t.vmap(lambda a: t.linalg.solve_triangular(a, a, upper=True))(t.eye(3)),
    "mm of vectors": lambda t: t.vmap(t.mm)(*batches(t, (3, 3), (3, 3))),
    "mm of matrices in a batch": lambda t: t.vmap(t.mm)(*batches(t, (2, 3, 3, 3), (2, 3, 3, 3))),
    "bmm of matrices": lambda t: t.vmap(t.bmm)(*batches(t, (2, 3, 3), (2, 3, 3))),
    "mv of vectors": lambda t: t.vmap(t.mv)(*batches(t, (3, 3), (3, 3))),
    "dot of matrices": lambda t: t.vmap(t.dot)(*batches(t, (2, 3, 3), (2, 3, 3))),
    "addmm of vectors": lambda t: t.vmap(t.addmm)(*batches(t, (3, 3), (3, 3), (3, 3))),
    "positions of what is not zero": lambda t: t.vmap(t.where)(t.ones(3, 4)),
    "positions as a tuple": lambda t: t.vmap(lambda x: t.nonzero(x, as_tuple=True))(t.ones(3, 4)),
    "data": lambda t: t.vmap(lambda x: x.data)(t.ones(2, 3)),
    "data of a sample set": lambda t: t.vmap(lambda x: _with_data(x, t.ones(3)))(t.ones(2, 3)),
    "data set to a sample": lambda t: t.vmap(lambda x: _with_data(t.ones(3), x))(t.ones(2, 3)),
    "the same numbers by chances that differ": lambda t: t.vmap(lambda x, p: x.bernoulli_(p), randomness="same")(
        t.zeros(4), t.full((4,), 0.5)
    ),
    "what has left its vmap": lambda t: _leaked(t).sin(),
    "what has left its vmap, written": lambda t: _leaked(t).sin_(),
    "what has left its vmap, in a list": lambda t: t.stack([_leaked(t)]),
}  # fmt: skip


def _with_data(x, data):
    x.data = data
    return x


def _leaked(t):
    found = []
    t.vmap(lambda x: found.append(x) or x * 1)(t.ones(3, 4))
    return found[0]


@pytest.mark.parametrize("call", VALUES.values(), ids=VALUES)
def test_values(call):
    compare(call)


@pytest.mark.parametrize("call", REFUSALS.values(), ids=REFUSALS)
def test_refusals(call):
    compare(call, refused=True)


@pytest.mark.parametrize("name", ["_is_any_true", "_is_all_true"])
def test_one_answer_about_all_samples(name):
    import torch

    def found(t):
        seen = []

        def note(x):
            result = getattr(t.ops.aten, name)(x)
            seen.append((t._C._functorch.is_batchedtensor(result), result.item()))
            return x

        for values in ([1, 1, 1], [0, 1, 0], [0, 0, 0]):
            t.vmap(note)(t.tensor(values).bool())
        return seen

    assert found(mt) == found(torch)


def test_several_gradients_leave_retained_ones_alone():
    x = mt.ones(2, requires_grad=True)
    y = x * 2
    y.retain_grad()
    z = (y * y).sum()
    mt.autograd.grad(z, x, mt.ones(3), is_grads_batched=True, retain_graph=True)
    assert y.grad is None
    z.backward()
    assert y.grad.tolist() == [4.0, 4.0]


def test_several_gradients_through_noise():
    import torch

    def found(t):
        t.manual_seed(0)
        x = t.linspace(-1, 1, 6).requires_grad_()
        out = t.nn.functional.rrelu(x, training=True)
        return t.autograd.grad(out, x, t.eye(6)[:2] + 1, is_grads_batched=True)[0].numpy()

    np.testing.assert_allclose(found(mt), found(torch), rtol=1e-6)


def test_names_of_the_implementation():
    """What libraries ask of `torch._C._functorch`."""
    import torch

    def found(t):
        ft, seen = t._C._functorch, []
        t.vmap(
            lambda x: seen.append([ft.is_batchedtensor(x), ft.maybe_get_bdim(x), tuple(ft.get_unwrapped(x).shape)]) or x, in_dims=1
        )(t.ones(2, 3))
        x = t.arange(24.0).reshape(2, 3, 4)
        shapes = [
            ft.reshape_dim_into(0, 1, x),
            ft.reshape_dim_into(-1, 0, x),
            ft.reshape_dim_outof(1, 3, x),
            ft.reshape_dim_outof(-1, 2, x),
        ]
        return seen, ft.is_batchedtensor(x), ft.maybe_get_bdim(x), [s.tolist() for s in shapes]

    assert found(mt) == found(torch)


def test_switches_of_the_loop():
    """An operator without a rule warns, or is refused, as switches say."""
    import torch

    for t in (mt, torch):
        ft, histc = t._C._functorch, functools.partial(t.histc, bins=3)
        x = t.arange(6.0).reshape(2, 3)
        assert ft._is_vmap_fallback_enabled()
        with pytest.warns(UserWarning, match="There is a performance drop"):
            t.vmap(histc)(x)
        ft._set_vmap_fallback_warning_enabled(False)
        ft._set_vmap_fallback_enabled(False)
        try:
            with pytest.raises(RuntimeError, match="aten::histc hit the vmap fallback which is currently disabled"):
                t.vmap(histc)(x)
            ft._set_vmap_fallback_enabled(True)
            assert t.vmap(histc)(x).shape == (2, 3)
        finally:
            ft._set_vmap_fallback_enabled(True)
            ft._set_vmap_fallback_warning_enabled(True)
