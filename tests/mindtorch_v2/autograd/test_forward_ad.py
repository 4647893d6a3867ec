"""Forward mode: dual tensors, custom Functions under transforms, and `gradcheck` with all of its modes."""

import gc
import weakref

import pytest

import mindtorch_v2 as torch
from mindtorch_v2.autograd import Function, gradcheck, gradgradcheck
from mindtorch_v2.autograd import forward_ad as fw
from mindtorch_v2.func import grad, jacfwd, jvp, vmap

close = torch.testing.assert_close
D = torch.float64
x, t, w = (torch.randn(*s, dtype=D, generator=torch.Generator().manual_seed(i)) for i, s in enumerate([(3, 4), (3, 4), (4, 4)]))


def differences(function, step=1e-6):
    return (function(x + step * t) - function(x - step * t)) / (2 * step)


@pytest.mark.parametrize(
    "function",
    [
        lambda a: a.sin() * a,
        lambda a: a @ w,
        lambda a: a.softmax(1),
        lambda a: (a @ w).logsumexp(0),
        lambda a: a.t().reshape(-1).cumprod(0),
        lambda a: torch.linalg.det(a[:, :3]),
        lambda a: a.clone().mul_(a).sum(1),
        lambda a: a.norm() + a.std(0).sum(),
        lambda a: torch.nn.functional.layer_norm(a, (4,)),
        lambda a: a.sort(1)[0] * 2,
        lambda a: torch.linalg.svdvals(a),
        lambda a: a.logcumsumexp(1),
        lambda a: torch.nn.functional.pad(a, (1, 1), value=3.0) * 2,
        lambda a: torch.nn.functional.conv1d(a[None], w[:, :3, None]),
        lambda a: a.clone().zero_() + a[0],
    ],
)
def test_a_tangent_is_the_derivative(function):
    with fw.dual_level():
        primal, tangent = fw.unpack_dual(function(fw.make_dual(x, t)))
    close(primal, function(x))
    close(tangent, differences(function), atol=1e-6, rtol=1e-6)


def test_both_modes_compose():
    leaf = x.clone().requires_grad_()
    with fw.dual_level():
        dual = fw.make_dual(leaf, t)
        (g,) = torch.autograd.grad((dual.exp() * dual.sin()).sum(), dual)
        forward_over_reverse = fw.unpack_dual(g).tangent
        tangent = fw.unpack_dual((fw.make_dual(leaf, t).exp() * 2).sum()).tangent
        (reverse_over_forward,) = torch.autograd.grad(tangent, leaf)
    close(forward_over_reverse, 2 * x.exp() * x.cos() * t)
    close(reverse_over_forward, 2 * x.exp() * t)


def test_levels_end():
    with fw.dual_level():
        tangent = t.clone()
        dual = fw.make_dual(x, tangent)
        reference = weakref.ref(tangent)
        del tangent
        assert fw.unpack_dual(dual).tangent is reference()
        assert fw.unpack_dual(x).tangent is None
        with pytest.raises(RuntimeError, match="Nested forward mode AD is not supported"):
            fw.enter_dual_level()
    gc.collect()
    assert reference() is None
    assert fw.unpack_dual(dual).tangent is None
    with pytest.raises(RuntimeError, match="no level exists"):
        fw.make_dual(x, t)
    with fw.dual_level():
        with pytest.raises(RuntimeError, match="different size"):
            fw.make_dual(x, t[0])
        with pytest.raises(ValueError, match="floating point"):
            fw.make_dual(torch.ones(1, dtype=torch.int64), torch.ones(1))
        assert fw.unpack_dual(fw.make_dual(x, t).detach()).tangent is None


def test_gradcheck_with_all_modes():
    a, b = x.clone().requires_grad_(), w[:, :2].clone().requires_grad_()

    def function(p, q):
        return (p @ q).sin(), p.softmax(1)

    for fast in (False, True):
        assert gradcheck(
            function,
            (a, b),
            check_forward_ad=True,
            check_batched_grad=True,
            check_batched_forward_grad=True,
            check_undefined_grad=True,
            fast_mode=fast,
        )
    assert gradgradcheck(function, (a, b), check_fwd_over_rev=True, check_batched_grad=True)
    z = torch.randn(3, dtype=torch.complex128, requires_grad=True)
    assert gradcheck(lambda v: (v * v).abs().sum() + v.sum() * 2j, (z,), check_forward_ad=True, check_batched_grad=True)


class Cube(Function):
    """A Function whose derivatives are wrong on purpose, by a factor that shows that they were used."""

    generate_vmap_rule = True

    @staticmethod
    def forward(a):
        return a**3

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    @staticmethod
    def backward(ctx, g):
        (a,) = ctx.saved_tensors
        return 30 * a**2 * g

    @staticmethod
    def jvp(ctx, tangent):
        (a,) = ctx.saved_tensors
        return 300 * a**2 * tangent


class CubeByHand(Cube):
    generate_vmap_rule = False

    @staticmethod
    def vmap(info, in_dims, a):
        assert info.batch_size == 3
        return CubeByHand.apply(a.movedim(in_dims[0], 0)), 0


@pytest.mark.parametrize("cube", [Cube, CubeByHand])
def test_custom_functions(cube):
    row = x[0]
    close(grad(lambda a: cube.apply(a).sum())(row), 30 * row**2)
    close(jvp(cube.apply, (row,), (row,))[1], 300 * row**3)
    close(vmap(cube.apply)(x), x**3)
    close(vmap(cube.apply, in_dims=1, out_dims=1)(x.t().contiguous()), (x**3).t())
    close(grad(lambda a: vmap(cube.apply)(a).sum())(x), 30 * x**2)
    close(vmap(grad(lambda a: cube.apply(a).sum()))(x), 30 * x**2)
    close(jvp(vmap(cube.apply), (x,), (x,))[1], 300 * x**3)
    close(vmap(jacfwd(cube.apply))(x), torch.diag_embed(300 * x**2))
    leaf = x.clone().requires_grad_()
    vmap(cube.apply)(leaf).sum().backward()
    close(leaf.grad, 30 * x**2)


def test_custom_functions_that_cannot():
    class Old(Function):
        @staticmethod
        def forward(ctx, a):
            return a * 2

    class Alone(Cube):
        generate_vmap_rule = False

    class Both(CubeByHand):
        generate_vmap_rule = True

    with pytest.raises(RuntimeError, match="must override the setup_context staticmethod"):
        vmap(Old.apply)(x)
    with pytest.raises(RuntimeError, match="does not have vmap support"):
        vmap(Alone.apply)(x)
    with pytest.raises(RuntimeError, match="has both generate_vmap_rule=True and an overridden vmap"):
        vmap(Both.apply)(x)
    with fw.dual_level(), pytest.raises(RuntimeError, match="You must implement the jvp function"):
        Old.apply(fw.make_dual(x, t))


def test_rules_of_custom_operators():
    @torch.library.custom_op("forward_ad_tests::twice", mutates_args=())
    def twice(a: torch.Tensor) -> torch.Tensor:
        return a * 2

    with pytest.warns(UserWarning, match="performance drop"):
        close(vmap(twice)(x), x * 2)

    @torch.library.register_vmap("forward_ad_tests::twice")
    def rule(info, in_dims, a):
        return twice(a), in_dims[0]

    close(vmap(twice, in_dims=1)(x), (x * 2).t())


def test_gradients_of_many_vectors():
    leaf = x.clone().requires_grad_()
    vectors = torch.stack([t, t * 2])
    (found,) = torch.autograd.grad(leaf.sin(), leaf, vectors, is_grads_batched=True)
    close(found, vectors * x.cos())
    jacobian = torch.autograd.functional.jacobian
    expected = jacobian(lambda a: (a @ w).sin(), x)
    for strategy in ("reverse-mode", "forward-mode"):
        close(jacobian(lambda a: (a @ w).sin(), x, vectorize=True, strategy=strategy), expected)
    hessian = torch.autograd.functional.hessian
    expected = hessian(lambda a: (a.sin() * a.exp()).sum(), x)
    for strategy in ("reverse-mode", "forward-mode"):
        close(hessian(lambda a: (a.sin() * a.exp()).sum(), x, vectorize=True, outer_jacobian_strategy=strategy), expected)
