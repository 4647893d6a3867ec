"""Gradients, products and Jacobians of functions, nested in every order, against what calculus says."""

import pytest

import mindtorch_v2 as torch
from mindtorch_v2.func import grad, grad_and_value, hessian, jacfwd, jacrev, jvp, linearize, vjp, vmap

close = torch.testing.assert_close
x = torch.tensor([0.3, -1.2, 2.0], dtype=torch.float64)
rows = torch.stack([x, x * 2, x - 1, x * x])


def f(t):
    return (t.sin() * t.exp()).sum()


def first(t):
    return t.cos() * t.exp() + t.sin() * t.exp()


def second(t):
    return 2 * t.cos() * t.exp()


def test_one_transform():
    close(grad(f)(x), first(x))
    assert not grad(f)(x).requires_grad
    gradient, value = grad_and_value(f)(x)
    close(gradient, first(x))
    close(value, f(x))
    close(jvp(f, (x,), (torch.ones_like(x),))[1], first(x).sum())
    value, pull_back = vjp(torch.sin, x)
    close(value, x.sin())
    close(pull_back(torch.ones_like(x))[0], x.cos())
    value, push_forward = linearize(lambda t: t.sin() * t, x)
    close(push_forward(torch.ones_like(x)), x.sin() + x * x.cos())
    close(push_forward(x), (x.sin() + x * x.cos()) * x)
    for jacobian in (jacrev, jacfwd):
        close(jacobian(torch.sin)(x), torch.diag(x.cos()))
    close(jacrev(torch.sin, chunk_size=1)(x), torch.diag(x.cos()))
    close(jacrev(torch.sin, chunk_size=2)(x), torch.diag(x.cos()))


def test_nesting():
    close(grad(lambda t: grad(f)(t).sum())(x), second(x))
    close(vmap(grad(f))(rows), first(rows))
    close(vmap(grad(lambda t: grad(f)(t).sum()))(rows), second(rows))
    close(grad(lambda t: vmap(f)(t).sum())(rows), first(rows))
    close(grad(lambda t: vmap(grad(f))(t).sum())(rows), second(rows))
    close(vmap(lambda t, u: jvp(f, (t,), (u,))[1])(rows, torch.ones_like(rows)), first(rows).sum(1))
    close(jvp(vmap(f), (rows,), (torch.ones_like(rows),))[1], first(rows).sum(1))
    close(jvp(lambda t: jvp(f, (t,), (torch.ones_like(x),))[1], (x,), (torch.ones_like(x),))[1], second(x).sum())
    close(vmap(vmap(grad(torch.sin)))(rows), rows.cos())


@pytest.mark.parametrize("outer", [jacrev, jacfwd])
@pytest.mark.parametrize("inner", [jacrev, jacfwd, grad])
def test_second_derivatives(outer, inner):
    close(outer(inner(f))(x), torch.diag(second(x)))
    close(vmap(outer(inner(f)))(rows), torch.diag_embed(second(rows)))


def test_a_hessian_of_several_arguments():
    def g(a, b):
        return (a * b * b).sum()

    (aa, ab), (ba, bb) = hessian(g, argnums=(0, 1))(x, x + 1)
    close(aa, torch.zeros(3, 3, dtype=torch.float64))
    close(ab, torch.diag(2 * (x + 1)))
    close(ba, torch.diag(2 * (x + 1)))
    close(bb, torch.diag(2 * x))


def test_levels_are_not_confused():
    one, two = torch.tensor(1.0), torch.tensor(2.0)
    close(grad(lambda a: a * grad(lambda b: a + b)(one))(two), one)
    close(jvp(lambda a: a * jvp(lambda b: a + b, (one,), (one,))[1], (two,), (one,))[1], one)
    close(grad(lambda a: a * jvp(lambda b: a * b, (one,), (one,))[1])(two), 2 * two)


def test_what_was_there_before_is_differentiated_too():
    w = torch.randn(3, dtype=torch.float64, requires_grad=True)
    grad(lambda t: (t * t * w).sum())(x).sum().backward()
    close(w.grad, 2 * x)
    w.grad = None
    vmap(grad(lambda t: (t * t * w).sum()))(rows).sum().backward()
    close(w.grad, 2 * rows.sum(0))
    with torch.no_grad():
        assert not grad(lambda t: (t * t * w).sum())(x).requires_grad
        assert not vmap(grad(lambda t: (t * t * w).sum()))(rows).requires_grad
    close(grad(lambda t: (t.detach() * t).sum())(x), x)

    def with_constant(t):
        with torch.no_grad():
            c = t**2
        return (t**2 - c).sum()

    close(grad(with_constant)(x), 2 * x)


def test_aux_and_trees():
    gradient, aux = grad(lambda d: ((d["a"] * d["b"]).sum(), d["a"] + 1), has_aux=True)({"a": x, "b": x * 3})
    close(gradient["a"], x * 3)
    close(gradient["b"], x)
    close(aux, x + 1)
    assert not aux.requires_grad
    jacobian, aux = jacrev(lambda t: (t * 2, t), has_aux=True)(x)
    close(jacobian, 2 * torch.eye(3, dtype=torch.float64))
    _value, derivative, aux = jvp(lambda t: (t * t, t), (x,), (x,), has_aux=True)
    close(derivative, 2 * x * x)
    close(aux, x)
    close(grad(lambda a, b: (a * b).sum(), argnums=1)(x, rows[1]), x)


def test_per_sample_gradients_of_a_module():
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.LayerNorm(4), torch.nn.Tanh(), torch.nn.Linear(4, 2)).double()
    targets = torch.tensor([0, 1, 1, 0])
    parameters = {name: p.detach() for name, p in model.named_parameters()}

    def loss(params, sample, target):
        out = torch.func.functional_call(model, params, (sample[None],))
        return torch.nn.functional.cross_entropy(out, target[None])

    found = vmap(grad(loss), in_dims=(None, 0, 0))(parameters, rows, targets)
    for i in range(4):
        model.zero_grad()
        torch.nn.functional.cross_entropy(model(rows[i : i + 1]), targets[i : i + 1]).backward()
        for name, p in model.named_parameters():
            close(found[name][i], p.grad)


def test_writes_are_differentiated_forward():
    def g(t):
        z = torch.zeros(3, dtype=t.dtype)
        z[0] = t[0]
        z[1:].add_(t[1:] ** 2)
        return z.mul_(t)

    expected = torch.diag(torch.cat([2 * x[:1], 3 * x[1:] ** 2]))
    close(jacfwd(g)(x), expected)
    close(jacrev(g)(x), expected)

    def scaled(weights, row):
        room = torch.zeros(3, dtype=weights.dtype)
        room[1:] = weights[1:]
        return (room * row).sum()

    close(vmap(grad(scaled), in_dims=(None, 0))(x, rows), torch.cat([torch.zeros(4, 1, dtype=torch.float64), rows[:, 1:]], 1))


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: grad(torch.sin)(x), "return a scalar Tensor"),
        (lambda: grad(lambda t: 3)(x), "to return a Tensor"),
        (lambda: grad(f)(3.0), "must be Tensor"),
        (lambda: grad(f, argnums=1)(x), "only 1 positional inputs"),
        (lambda: grad(f, argnums=())(x), "argnums must be non-empty"),
        (lambda: grad(f, has_aux=True)(x), r"should be a tuple: \(output, aux\)"),
        (lambda: vjp(f, x)[1]((x, x)), "pytree structure of cotangents"),
        (lambda: jvp(f, x, (x,)), "Expected primals to be a tuple"),
        (lambda: jvp(f, (x,), (x, x)), "same python structure"),
        (lambda: jvp(lambda t: torch.ones(2), (x,), (x,), strict=True), "independent of the inputs"),
        (lambda: jacrev(torch.sin, chunk_size=0), "should be greater than 0"),
        (lambda: jacrev(torch.sin)(x + 0j), "to be real"),
        (lambda: torch.func.functionalize(f), "nothing is traced"),
    ],
)
def test_refusals(call, says):
    with pytest.raises((RuntimeError, ValueError, NotImplementedError), match=says):
        call()
