"""`autograd.Function`, `gradcheck` and inference mode at their edges: what torch computes, and where it refuses."""

import importlib
import weakref

import pytest
import torch

import mindtorch_v2 as mt

pytestmark = [
    pytest.mark.parity,
    # torch's own: of what it imports for forward mode, and about layouts
    pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:Sparse BS. tensor support is in beta:UserWarning"),
]


def _function(lib, **methods):
    return type("Made", (lib.autograd.Function,), {name: staticmethod(method) for name, method in methods.items()})


def _forward_ad(lib):
    return importlib.import_module(f"{lib.__name__}.autograd.forward_ad")


def _outcome(program):
    try:
        return program()
    except Exception as error:
        return type(error).__name__


def in_place_functions_carry_their_tangent_once(lib):
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x.mul_(2)

    fw = _forward_ad(lib)
    found = []
    for jvp in (lambda ctx, t: t.mul_(2), lambda ctx, t: 2 * t, lambda ctx, t: t):
        with fw.dual_level():
            x = fw.make_dual(lib.ones(2), lib.ones(2)).clone()
            made = _function(lib, forward=forward, jvp=jvp)
            found.append(_outcome(lambda: (fw.unpack_dual(made.apply(x)).tangent.tolist(), fw.unpack_dual(x).tangent.tolist())))  # noqa: B023
    return found


def views_have_tangents_that_are_views(lib):
    fw = _forward_ad(lib)
    found = []
    for forward in (lambda ctx, x: x.view_as(x), lambda ctx, x: x.clone()):
        for jvp in (lambda ctx, t: t.view_as(t), lambda ctx, t: t.clone()):
            with fw.dual_level():
                x = fw.make_dual(lib.ones(2), lib.ones(2))
                found.append(_outcome(lambda: fw.unpack_dual(_function(lib, forward=forward, jvp=jvp).apply(x)).tangent.tolist()))  # noqa: B023
    return found


def gradients_in_a_list(lib):
    class Boxed(lib.autograd.Function):
        boxed_grads_call = True

        @staticmethod
        def forward(ctx, x):
            return x * 2, x * 3

        @staticmethod
        def backward(ctx, grads):
            reference = weakref.ref(grads[0])
            found.append([g.tolist() for g in grads])
            second = grads[1]
            grads.clear()
            found.append(reference() is None)
            return second * 3

    found = []
    x = lib.ones(2, requires_grad=True)
    a, b = Boxed.apply(x)
    (a.sum() + b.sum()).backward()
    return found, x.grad.tolist()


def saved_tensors_that_are_handed_out_once(lib):
    class Once(lib.autograd.Function):
        clear_saved_tensors_on_access = True

        @staticmethod
        def forward(ctx, x, twice):
            ctx.save_for_backward(x)
            ctx.twice = twice
            return x.clone()

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            reference = weakref.ref(x)
            del x
            found.append(reference() is None)
            return (grad, ctx.saved_tensors) if ctx.twice else (grad, None)

    found = []
    x = lib.ones(2, requires_grad=True)
    Once.apply(x * 1, False).sum().backward()
    return found, _outcome(lambda: Once.apply(x * 1, True).sum().backward())


def functions_without_a_setup_in_batched_gradients(lib):
    made = _function(lib, forward=lambda ctx, x: x * 2, vjp=lambda ctx, g: again.apply(g), jvp=lambda ctx, t: t * 2)
    again = _function(lib, forward=lambda ctx, x: x * 2, vjp=lambda ctx, g: g * 2)
    x = lib.ones(2, dtype=lib.float64, requires_grad=True)
    rows = lib.autograd.grad(made.apply(x), x, lib.eye(2, dtype=lib.float64), is_grads_batched=True)[0]
    checked = lib.autograd.gradcheck(
        made.apply, (x,), check_batched_grad=True, check_forward_ad=True, check_batched_forward_grad=True
    )
    return rows.tolist(), checked


def an_instance_is_a_mistake(lib):
    with pytest.warns(DeprecationWarning, match="should not be instantiated"):
        _function(lib)()


def fast_checks_notice_what_changes(lib):
    calls = iter(range(1000))
    drawn = _function(lib, forward=lambda ctx, x: x.clone(), backward=lambda ctx, g: g * (1 + 1e-6 * next(calls)))
    x = lib.ones(2, 2, dtype=lib.float64, requires_grad=True)
    with pytest.raises(RuntimeError, match="Backward is not reentrant"):
        lib.autograd.gradcheck(drawn.apply, (x,), fast_mode=True)


def checks_of_complex_results_and_real_inputs(lib):
    x = lib.ones(2, dtype=lib.complex128, requires_grad=True)
    y = lib.ones(2, dtype=lib.float64, requires_grad=True)
    return [lib.autograd.gradcheck(lambda a, b: a + b, (x, y), check_forward_ad=True, fast_mode=fast) for fast in (True, False)]


def results_that_change_their_kind(lib):
    x = lib.ones(1, dtype=lib.float64, requires_grad=True)
    for what, other in (("shape", lambda t: lib.cat([t, t])), ("dtype", lambda t: t.to(lib.float32))):
        for fast in (True, False):
            with pytest.raises(AssertionError, match=f"same {what} when inputs are perturbed"):
                lib.autograd.gradcheck(lambda t, other=other: other(t) if bool((t >= 1).all()) else t, (x,), fast_mode=fast)


def every_input_has_a_tangent_in_a_check(lib):
    fw = _forward_ad(lib)
    seen = []

    def product(a, b):
        if fw._current_level >= 0:
            seen.append([fw.unpack_dual(t).tangent is not None for t in (a, b)])
        return a * b

    x = lib.ones(1, dtype=lib.float64, requires_grad=True)
    lib.autograd.gradcheck(product, (x, x.detach().clone().requires_grad_()), check_forward_ad=True, check_backward_ad=False)
    return [True, True] in seen


def views_in_inference_mode_require_what_their_base_does(lib):
    found = []
    for requires_grad in (True, False):
        x = lib.ones(2, requires_grad=requires_grad).clone()
        with lib.inference_mode():
            view = x.view(-1)
            made = lib.ones(2)
            found.append([view.requires_grad, view.is_inference(), view.view(-1).requires_grad, made.view(-1).requires_grad])
    return found


def shapes_of_inference_tensors_are_not_written(lib):
    with lib.inference_mode():
        x = lib.ones(1, 2, 3)
    return [_outcome(lambda: x.transpose_(0, 1)), _outcome(lambda: x.squeeze_(0)), _outcome(lambda: x.add_(1))]


def tensors_are_resized_in_inference_mode_even_if_they_require_gradients(lib):
    outside = lib.ones(1, 2, 3, requires_grad=True)
    with lib.inference_mode():
        for x in (outside, lib.ones(1, 2, 3, requires_grad=True)):
            x.resize_(1, 2).resize_as_(lib.ones(3))
    return [tuple(outside.shape), outside.requires_grad, _outcome(lambda: outside.resize_(2))]


def hooks_of_modules_in_second_backwards(lib):
    loss = lib.nn.MSELoss()
    calls = []
    loss.register_full_backward_hook(lambda module, grad_input, grad_output: calls.append(len(grad_input)))
    x, y = lib.rand(2, requires_grad=True), lib.rand(2)
    (grad,) = lib.autograd.grad(loss(x, y), x, create_graph=True)
    lib.autograd.grad(grad.sum(), x)
    return calls


def edges_have_no_zeros(lib):
    x = lib.ones(2, requires_grad=True).clone()
    y = lib.ones(2, requires_grad=True).clone()
    edge = lib.autograd.graph.get_gradient_edge(y)
    return _outcome(lambda: lib.autograd.grad(x.sum(), (x, edge), allow_unused=True, materialize_grads=True))


def operators_without_a_derivative_forward(lib):
    fw = _forward_ad(lib)
    with fw.dual_level():
        x = fw.make_dual(lib.ones(2), lib.ones(2))
        with pytest.raises(NotImplementedError, match=r"Trying to use forward AD with .* that does not support it"):
            lib.igamma(x, x)
    with fw.dual_level():
        dual = fw.make_dual(lib.ones(2), lib.ones(2))
        return _outcome(lambda: fw.make_dual(lib.ones(2), dual)), "tangent=" in str(dual)


def one_number_for_a_block(lib):
    return lib.ones(4, 4).to_sparse_bsr(2).values().shape, lib.ones(4, 4).to_sparse(
        layout=lib.sparse_bsc, blocksize=2
    ).values().shape


def hooks_may_leave_once_too_often(lib):
    outer = lib.autograd.graph.saved_tensors_hooks(lambda x: x, lambda x: x)
    inner = lib.autograd.graph.saved_tensors_hooks(lambda x: x, lambda x: inner.__exit__() or x)
    for _ in range(10):
        with outer:
            inner.__enter__()
            lib.ones(2, requires_grad=True).sin().sum().backward()
    for _ in range(10):
        inner.__exit__()
    x = lib.ones(2, requires_grad=True)
    return _outcome(lambda: x.exp().grad_fn._raw_saved_result.register_hooks(lambda t: t, lambda t: t))


PROGRAMS = [value for value in dict(globals()).values() if callable(value) and getattr(value, "__module__", "") == __name__]


@pytest.mark.parametrize("program", [p for p in PROGRAMS if not p.__name__.startswith("_")], ids=lambda program: program.__name__)
def test_same_outcome(program):
    assert program(mt) == program(torch)
