"""Function transforms over PyTorch's own operator database, and `torch.func` beside torch's."""

import importlib

import numpy as np
import pytest

pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore")]

GROUPS = 24
# What differs, by operator and transform, and why.
KNOWN = {
    ("as_strided_partial_views", "gradients"): "the sample reads outside of what one sample has",
    ("as_strided", "vmap"): "positions in a sample's memory, which a copy of the sample does not have",
    ("as_strided_copy", "vmap"): "as as_strided",
    ("as_strided_partial_views", "vmap"): "as as_strided",
    ("as_strided_scatter", "vmap"): "as as_strided",
    ("as_strided_scatter", "jvp"): "torch scatters the tangent by the strides of the input",
    ("index_put", "vmap"): "several values by masks that differ between samples: refused in torch too",
    ("index_put", "gradients"): "as vmap",
    ("_native_batch_norm_legit", "vmap"): "running statistics that all samples share: refused in torch too",
    ("native_batch_norm", "vmap"): "as _native_batch_norm_legit",
    ("nn_functional_batch_norm", "vmap"): "as _native_batch_norm_legit",
    ("nn_functional_instance_norm", "vmap"): "as _native_batch_norm_legit",
    ("linalg_cholesky", "jvp"): "the symmetric part of the tangent counts here, its lower triangle there",
    ("linalg_cholesky_ex", "jvp"): "as linalg_cholesky",
    ("linalg_eigh", "jvp"): "as linalg_cholesky",
    ("triangular_solve", "jvp"): "the triangle of the tangent counts here, all of it there",
    ("linspace_tensor_overload", "vmap"): "bounds are read in Python",
    ("linspace_tensor_overload", "gradients"): "bounds are read in Python",
    ("logspace_tensor_overload", "vmap"): "bounds are read in Python",
    ("masked_norm", "jvp"): "0 / 0 where all is masked; torch has 0 there",
    ("masked_prod", "gradients"): "0 / 0 where an element is zero, for a single sample and not for a batch",
    ("nn_functional_gaussian_nll_loss", "vmap"): "the function asks `if` about values, in torch too",
    ("nn_functional_gaussian_nll_loss", "gradients"): "the function asks `if` about values, in torch too",
    ("narrow", "vmap"): "a start that differs between samples: refused in torch too",
    ("narrow", "gradients"): "as vmap",
    ("tensor_split", "vmap"): "places that differ between samples: refused in torch too",
    ("tensor_split", "gradients"): "as vmap",
    ("nanquantile", "jvp"): "the quantile's own tangent does not count here",
    ("quantile", "jvp"): "the quantile's own tangent does not count here",
    ("scatter_reduce_prod", "jvp"): "torch has no tangent where nothing is scattered to",
    ("std_mean_unbiased", "jvp"): "of no elements: not a number here, zero there",
    ("var_mean_unbiased", "jvp"): "of no elements: not a number here, zero there",
    ("var_unbiased", "jvp"): "of no elements: not a number here, zero there",
    ("to_sparse", "vmap"): "sparse tensors are not mapped",
    ("to_sparse", "gradients"): "sparse tensors are not mapped",
    ("to_sparse", "batched gradients"): "sparse tensors are not mapped",
    ("view_as_complex", "vmap"): "a batch in the last dimension keeps pairs apart, in torch too",
}


def _names():
    try:
        import opinfo
    except ModuleNotFoundError:
        return []
    return opinfo.names()


@pytest.mark.parametrize("group", range(GROUPS))
def test_operators(group):
    import transforms

    wrong = {}
    for name in _names()[group::GROUPS]:
        found = transforms.failures(name)
        known = {kind for other, kind in KNOWN if other == name}
        wrong |= {(name, kind): text for kind, text in found.items() if kind not in known}
        wrong |= {(name, kind): "known to differ, but right" for kind in known - found.keys()}
    assert not wrong, "\n\n".join(f"{name}: {kind}: {text}" for (name, kind), text in wrong.items())


def _both():
    import torch

    import mindtorch_v2 as mt

    return torch, mt


def _same(ours, theirs):
    torch, mt = _both()
    a, b = mt.utils._pytree.tree_leaves(ours), torch.utils._pytree.tree_leaves(theirs)
    assert len(a) == len(b)
    for x, y in zip(a, b, strict=True):
        assert str(x.dtype) == str(y.dtype)
        assert tuple(x.shape) == tuple(y.shape)
        assert x.requires_grad == y.requires_grad
        np.testing.assert_allclose(x.detach().numpy(), y.detach().numpy(), rtol=1e-5, atol=1e-6)


PROGRAMS = {
    "grad": lambda t, x, y: t.func.grad(lambda a: (a * y).sin().sum())(x),
    "argnums": lambda t, x, y: t.func.grad_and_value(lambda a, b: (a * b).exp().sum(), argnums=(1, 0))(x, y),
    "vjp": lambda t, x, y: t.func.vjp(lambda a, b: (a @ b.t(), a.sum()), x, y)[1]((x @ y.t(), x.sum())),
    "jvp": lambda t, x, y: t.func.jvp(lambda a: (a.softmax(1), a.cumsum(0)), (x,), (y,)),
    "linearize": lambda t, x, y: t.func.linearize(lambda a: a.tanh() * a, x)[1](y),
    "jacrev": lambda t, x, y: t.func.jacrev(lambda a, b: {"one": a * b.sum(), "two": a.sum(1)}, argnums=(0, 1))(x, y),
    "jacfwd": lambda t, x, y: t.func.jacfwd(lambda a, b: (a * b).sum(0), argnums=1)(x, y),
    "hessian": lambda t, x, y: t.func.hessian(lambda a: (a.sin() * y).sum())(x),
    "jacrev of jacfwd": lambda t, x, y: t.func.jacrev(t.func.jacfwd(lambda a: (a.sin() * y).sum(0)))(x),
    "vmap of hessian": lambda t, x, y: t.func.vmap(t.func.hessian(lambda a, b: (a.sin() * b).prod()))(x, y),
    "grad of vmap of grad": lambda t, x, y: t.func.grad(lambda a: t.func.vmap(t.func.grad(lambda r: r.exp().norm()))(a).sum())(x),
    "vmap with dims": lambda t, x, y: t.vmap(lambda a, b: (a + b, a.sum()), in_dims=(1, None), out_dims=(1, 0))(x, y[:, 0]),
    "vmap in chunks": lambda t, x, y: t.vmap(lambda a: a.sort()[0], chunk_size=2)(x),
    "types of scalars": lambda t, x, y: t.vmap(lambda a: (a.sum().double() + t.ones(2), a.argmax() * 2.5))(x),
    "vmap of a linear map": lambda t, x, y: t.vmap(t.func.linearize(lambda a: (a.cos(), a.sum()), x[0])[1])(y),
    "a part switched off": lambda t, x, y: t.func.jvp(lambda a: a**2 - _constant(t, lambda: a**2), (x,), (y,)),
    "switched off around": lambda t, x, y: _constant(t, lambda: t.func.jvp(t.sin, (x,), (y,))),
    "jvp in a Function": lambda t, x, y: _jvp_in_function(t).apply(x.clone().requires_grad_()),
    "a view of what is written": lambda t, x, y: t.func.jvp(lambda a: _written_base(x, a), (x * 2,), (y,)),
    "a batched view of what is written": lambda t, x, y: t.vmap(
        lambda p, q: t.func.jvp(lambda a: _written_base(p, a), (p * 2,), (q,))
    )(t.stack([x, y]), t.stack([y, x])),
    "a view of what is written through another": lambda t, x, y: t.func.jvp(lambda a: _written_part(x, a), (x[0] * 2,), (y[0],)),
    "shared parameters": lambda t, x, y: _shared_parameters(t, x),
    "batched gradients": lambda t, x, y: _batched_gradients(t, x, y),
    "forward mode": lambda t, x, y: _forward_mode(t, x, y),
}


def _constant(t, call):
    with t.autograd.forward_ad._set_fwd_grad_enabled(False):
        return call()


def _jvp_in_function(t):
    class Sine(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            assert not t.autograd.forward_ad._is_fwd_grad_enabled()
            return -t.func.jvp(t.cos, (x,), (t.ones_like(x),))[1]

        @staticmethod
        def backward(ctx, grad):
            return grad

    return Sine


def _written_base(x, other):
    x = x.clone()
    view = x[0]
    x.copy_(other)
    return view * 2, x


def _written_part(x, other):
    x = x.clone()
    views = x[0], x[0:2]
    views[0].copy_(other)
    return *views, x


def _shared_parameters(t, x):
    t.manual_seed(0)
    net = t.nn.Sequential(t.nn.Linear(x.shape[1], x.shape[1]), t.nn.Linear(x.shape[1], x.shape[1]))
    net[1].weight = net[0].weight
    function, weights = importlib.import_module(f"{t.__name__}._functorch.make_functional").make_functional(net)
    return [function([w.detach() * 2 for w in weights], x), *[w.detach() for w in weights]]


def _batched_gradients(t, x, y):
    leaf = x.clone().requires_grad_()
    return t.autograd.grad(leaf.sin().sum(0), leaf, t.stack([y[0], y[1]]), is_grads_batched=True)


def _forward_mode(t, x, y):
    with t.autograd.forward_ad.dual_level():
        dual = t.autograd.forward_ad.make_dual(x, y)
        return list(t.autograd.forward_ad.unpack_dual((dual.exp() * 2).log1p()))


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name):
    torch, mt = _both()
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal((3, 4)).astype(np.float32) for _ in range(2)]
    program = PROGRAMS[name]
    _same(program(mt, *map(mt.from_numpy, arrays)), program(torch, *[torch.from_numpy(a.copy()) for a in arrays]))


ERRORS = {
    "item": lambda t, x: t.vmap(lambda a: a.sum().item())(x),
    "branch": lambda t, x: t.vmap(lambda a: a if a.sum() > 0 else -a)(x),
    "random": lambda t, x: t.vmap(lambda a: a + t.rand(4))(x),
    "no scalar": lambda t, x: t.func.grad(lambda a: a * 2)(x),
    "structure": lambda t, x: t.vmap(t.sin, in_dims=(0, 0))(x),
    "requires_grad_": lambda t, x: t.func.grad(lambda a: a.sum().requires_grad_())(x),
    "primals": lambda t, x: t.func.jvp(t.sin, x, (x,)),
    "no level": lambda t, x: t.autograd.forward_ad.make_dual(x, x),
    "sizes": lambda t, x: t.vmap(t.add)(x, x[:2]),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name):
    torch, mt = _both()
    with pytest.raises(Exception, match=r".") as theirs:
        ERRORS[name](torch, torch.ones(3, 4))
    with pytest.raises(type(theirs.value), match=r".") as ours:
        ERRORS[name](mt, mt.ones(3, 4))
    assert str(ours.value).split()[:6] == str(theirs.value).split()[:6]


def test_names():
    torch, mt = _both()
    assert sorted(mt.func.__all__) == sorted(torch.func.__all__)
    assert set(torch.autograd.forward_ad.__all__) <= set(dir(mt.autograd.forward_ad))
    assert sorted(mt.utils._pytree.__all__) == sorted(torch.utils._pytree.__all__)


def test_trees():
    from collections import OrderedDict, defaultdict, deque, namedtuple

    torch, mt = _both()
    point = namedtuple("point", "x y")
    tree = [1, {"a": 2, "b": (3, None)}, point(4, [5]), OrderedDict(c=6), defaultdict(int, {7: 8}), deque([9, 10]), (), {}]
    ours, theirs = mt.utils._pytree, torch.utils._pytree
    assert ours.tree_leaves(tree) == theirs.tree_leaves(tree)
    assert repr(ours.tree_structure(tree)) == repr(theirs.tree_structure(tree))
    assert ours.treespec_dumps(ours.tree_structure(tree[:2])) == theirs.treespec_dumps(theirs.tree_structure(tree[:2]))
    paths = [[p.keystr(path) for path, _ in p.tree_leaves_with_path(tree)] for p in (ours, theirs)]
    assert paths[0] == paths[1]
    for wrong in (lambda p: p.tree_unflatten([1], p.tree_structure([1, 2])), lambda p: p.tree_map(max, [1, 2], [3])):
        with pytest.raises(ValueError, match=r".") as expected:
            wrong(theirs)
        with pytest.raises(ValueError, match=r".") as found:
            wrong(ours)
        assert str(found.value) == str(expected.value)
