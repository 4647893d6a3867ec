"""The public contract of torch.autograd: backward, grad, hooks, modes, Function."""

from __future__ import annotations

import numpy as np
import pytest

import mindtorch_v2 as torch
from mindtorch_v2.autograd import Function


def leaf(*values, dtype=torch.float64):
    return torch.tensor(list(values), dtype=dtype, requires_grad=True)


def same(t, values):
    np.testing.assert_allclose(t.detach().numpy(), values)


# --- backward ---------------------------------------------------------------------------------------------------------


def test_backward_of_a_scalar_fills_the_grad_of_leaves():
    x, w = leaf(1.0, 2.0), leaf(3.0, 4.0)
    (x * w).sum().backward()
    same(x.grad, [3, 4])
    same(w.grad, [1, 2])


def test_backward_adds_to_grad_in_place():
    x = leaf(1.0, 2.0)
    (x * 2).sum().backward()
    first = x.grad
    (x * 3).sum().backward()
    assert x.grad is first
    same(x.grad, [5, 5])


def test_grad_is_not_shared_between_leaves():
    x, y = leaf(1.0), leaf(1.0)
    (x + y).sum().backward()
    x.grad.add_(1)
    same(y.grad, [1])


def test_grad_does_not_alias_the_gradient_argument():
    x = leaf(1.0, 2.0)
    g = torch.ones(2, dtype=torch.float64)
    x.backward(g)
    g.fill_(7)
    same(x.grad, [1, 1])


def test_grad_has_the_layout_of_its_leaf():
    x = torch.zeros(2, 3).t().requires_grad_()
    (x * torch.ones(3, 2)).sum().backward()
    assert x.grad.stride() == x.stride()


def test_backward_with_a_gradient():
    x = leaf(1.0, 2.0)
    (x * x).backward(torch.tensor([1.0, 10.0], dtype=torch.float64))
    same(x.grad, [2, 40])


def test_backward_of_a_leaf_itself():
    x = leaf(3.0)
    x.sum().backward()
    x.backward(torch.ones(1, dtype=torch.float64))
    same(x.grad, [2])


def test_gradient_of_broadcasting_is_summed():
    x, b = torch.ones(4, 3, requires_grad=True), torch.ones(3, requires_grad=True)
    (x + b).sum().backward()
    same(b.grad, [4, 4, 4])
    assert b.grad.shape == (3,)


def test_several_roots():
    x = leaf(2.0)
    torch.autograd.backward([x * 2, x * 3], [torch.ones(1, dtype=torch.float64), None])
    same(x.grad, [5])


def test_roots_that_lead_to_each_other():
    x = leaf(2.0)
    y = x * x
    z = y * 3
    torch.autograd.backward([y.sum(), z.sum()])
    same(x.grad, [16])


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda x: torch.ones(3).sum().backward(), RuntimeError, "element 0 of tensors does not require grad and does not have a grad_fn"),
        (lambda x: (x * 2).backward(), RuntimeError, "grad can be implicitly created only for scalar outputs"),
        (lambda x: (x * 1j).sum().backward(), RuntimeError, "grad can be implicitly created only for real scalar outputs but got torch.complex"),
        (lambda x: (x * 2).backward(torch.ones(2)), RuntimeError, r"Mismatch in shape: grad_output\[0\] has a shape of torch.Size\(\[2\]\) and output\[0\] has a shape of torch.Size\(\[3\]\)."),
        (lambda x: (x * 1j).backward(torch.ones(3)), RuntimeError, "For complex Tensors, both grad_output and output are required to have the same dtype"),
        (lambda x: (x * 2).backward(3), TypeError, "gradients can be either Tensors or None"),
        (lambda x: torch.autograd.grad(x.sum(), torch.ones(3)), RuntimeError, "One of the differentiated Tensors does not require grad"),
        (lambda x: torch.autograd.grad(x.sum(), torch.ones(3, requires_grad=True)), RuntimeError, "The differentiated Tensor at index 0 appears to not have been used in the graph. Set allow_unused=True if this is the desired behavior."),
        (lambda x: torch.autograd.grad(x.sum(), []), RuntimeError, r"`inputs` argument to `grad\(\)` cannot be empty."),
        (lambda x: x.sum().backward(inputs=[]), RuntimeError, r"`inputs` argument to `backward\(\)` cannot be empty."),
        (lambda x: x.sum().backward(inputs=[torch.ones(3)]), RuntimeError, "can't retain_grad on Tensor that has requires_grad=False"),
        (lambda x: torch.autograd.grad(x.sum(), [3]), RuntimeError, "all inputs have to be Tensors or GradientEdges, but got int"),
        (lambda x: torch.autograd.backward([3]), AssertionError, "Expected output to be a torch.Tensor"),
        (lambda x: torch.autograd.grad(x.sum(), x, materialize_grads=True, allow_unused=False), ValueError, "Expected allow_unused to be True or not passed"),
        (lambda x: torch.autograd.grad(x * 2, x, torch.ones(2), is_grads_batched=True), RuntimeError, "we interpret the first dimension of each grad_output as the batch dimension"),
        (lambda x: torch.ones(3).register_hook(print), RuntimeError, "cannot register a hook on a tensor that doesn't require gradient"),
        (lambda x: torch.ones(3).retain_grad(), RuntimeError, "can't retain_grad on Tensor that has requires_grad=False"),
        (lambda x: (x * 2).register_post_accumulate_grad_hook(print), RuntimeError, "post accumulate grad hooks cannot be registered on non-leaf tensors"),
        (lambda x: torch.ones(3, dtype=torch.int64).requires_grad_(), RuntimeError, "only Tensors of floating point dtype can require gradients"),
        (lambda x: (x * 2).requires_grad_(False), RuntimeError, "you can only change requires_grad flags of leaf variables"),
        (lambda x: setattr(x, "grad", torch.ones(4, dtype=torch.float64)), RuntimeError, r"attempting to assign a gradient of size '\[4\]' to a tensor of size '\[3\]'"),
        (lambda x: setattr(x, "grad", 3), TypeError, "assigned grad expected to be a Tensor or None but got grad of type int"),
        (lambda x: setattr(x, "grad", torch.ones(3)), RuntimeError, "attempting to assign a gradient with dtype 'float' to a tensor with grad_dtype 'Double'"),
        (lambda x: setattr(x, "grad", x), RuntimeError, "can't assign Variable as its own grad"),
    ],
)  # fmt: skip
def test_refusals(call, error, text):
    with pytest.raises(error, match=text):
        call(leaf(1.0, 2.0, 3.0))


def test_second_backward_needs_retain_graph():
    x = leaf(1.0, 2.0)
    y = x.exp().sum()
    y.backward(retain_graph=True)
    y.backward()
    with pytest.raises(RuntimeError, match=r"Trying to backward through the graph a second time"):
        y.backward()


def test_second_backward_without_saved_tensors_works():
    x = leaf(1.0)
    y = (x + 1).sum()
    y.backward()
    y.backward()
    same(x.grad, [2])


def test_double_backward():
    x = leaf(2.0, 3.0)
    (g,) = torch.autograd.grad((x**3).sum(), x, create_graph=True)
    same(g, [12, 27])
    g.sum().backward()
    same(x.grad, [12, 18])


def test_create_graph_in_backward_warns_of_a_cycle():
    x = leaf(2.0)
    with pytest.warns(UserWarning, match=r"create_graph=True will create a reference cycle"):
        (x**3).sum().backward(create_graph=True)
    assert x.grad.requires_grad


def test_backward_to_given_inputs_only():
    x, w = leaf(2.0), leaf(3.0)
    y = x * w
    z = y * 5
    z.sum().backward(inputs=[y, w])
    same(y.grad, [5])
    same(w.grad, [10])
    assert x.grad is None


def test_grad_returns_gradients_and_leaves_grad_alone():
    x, w = leaf(2.0), leaf(3.0)
    y = x * w
    gy, gx = torch.autograd.grad((y * y).sum(), (y, x))
    same(gy, [12])
    same(gx, [36])
    assert x.grad is None
    assert w.grad is None


def test_grad_of_unused_inputs():
    x, unused = leaf(2.0), leaf(3.0, 4.0)
    assert torch.autograd.grad(x.sum(), (x, unused), allow_unused=True)[1] is None
    same(torch.autograd.grad(x.sum(), (x, unused), materialize_grads=True)[1], [0, 0])


def test_grad_computes_only_what_leads_to_the_inputs():
    ran = []

    class Watched(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            ran.append(1)
            return g

    x, w = leaf(2.0), leaf(3.0)
    y = Watched.apply(w) * x
    torch.autograd.grad(y.sum(), x, retain_graph=True)
    assert not ran
    torch.autograd.grad(y.sum(), w)
    assert ran


def test_gradient_edges_stand_for_tensors():
    x = leaf(2.0)
    y = x * x
    edge = torch.autograd.graph.get_gradient_edge(y)
    z = (y * 3).sum()
    same(torch.autograd.grad(z, edge, retain_graph=True)[0], [3])
    same(torch.autograd.grad(z, torch.autograd.graph.get_gradient_edge(x), retain_graph=True)[0], [12])
    same(torch.autograd.grad(edge, x, torch.ones(1, dtype=torch.float64))[0], [4])


# --- hooks ------------------------------------------------------------------------------------------------------------


def test_hooks_run_in_order_and_replace_the_gradient():
    x = leaf(1.0)
    seen = []
    x.register_hook(lambda g: seen.append(g.item()) or g * 2)
    x.register_hook(lambda g: seen.append(g.item()))
    (x * 3).sum().backward()
    assert seen == [3, 6]
    same(x.grad, [6])


def test_a_hook_on_a_leaf_sees_the_sum_once():
    x = leaf(1.0)
    seen = []
    x.register_hook(lambda g: seen.append(g.item()))
    (x * 2 + x * 3).sum().backward()
    assert seen == [5]


def test_hooks_on_computed_tensors():
    x = leaf(1.0)
    y = x * 2
    handle = y.register_hook(lambda g: g * 10)
    (y * 3).sum().backward()
    same(x.grad, [60])
    handle.remove()
    x.grad = None
    y = x * 2
    with y.register_hook(lambda g: g * 10):
        pass
    (y * 3).sum().backward()
    same(x.grad, [6])


def test_a_hook_may_remove_itself():
    x = leaf(1.0)
    handles, seen = [], []

    def once(g):
        seen.append(1)
        handles[0].remove()

    handles.append(x.register_hook(once))
    x.register_hook(lambda g: seen.append(2))
    x.sum().backward()
    x.sum().backward()
    assert seen == [1, 2, 2]


def test_hook_results_are_checked():
    for wrong, error, text in [
        (lambda g: 3, TypeError, "expected Variable, but hook returned 'int'"),
        (lambda g: torch.ones(4, dtype=torch.float64), RuntimeError, "has changed the size of value"),
        (lambda g: g.float(), RuntimeError, r"has changed the type of value \(was torch.DoubleTensor got torch.FloatTensor\)"),
    ]:
        x = leaf(1.0)
        x.register_hook(wrong)
        with pytest.raises(error, match=text):
            (x * 1).sum().backward()


def test_retain_grad():
    x = leaf(1.0, 2.0)
    y = x * 2
    y.retain_grad()
    assert y.retains_grad
    assert not x.retains_grad
    (y * y).sum().backward()
    same(y.grad, [4, 8])


def test_retain_grad_follows_an_inplace_write():
    x = leaf(3.0)
    y = x * 2
    y.retain_grad()
    y.mul_(5)
    y.sum().backward()
    same(y.grad, [1])
    same(x.grad, [10])


def test_hook_sees_the_gradient_before_retain_grad_keeps_it():
    x = leaf(1.0)
    y = x * 2
    y.retain_grad()
    y.register_hook(lambda g: g * 3)
    y.sum().backward()
    same(y.grad, [3])


def test_post_accumulate_hook():
    x = leaf(1.0)
    seen = []
    handle = x.register_post_accumulate_grad_hook(lambda t: seen.append(t.grad.item()))
    (x * 2).sum().backward()
    (x * 2).sum().backward()
    handle.remove()
    (x * 2).sum().backward()
    assert seen == [2, 4]


def test_node_hooks():
    x = leaf(1.0)
    y = x * 2
    log = []
    y.grad_fn.register_prehook(lambda grads: log.append(("pre", grads[0].item())) or (grads[0] * 10,))
    y.grad_fn.register_hook(lambda ins, outs: log.append(("post", ins[0].item(), outs[0].item())) or (ins[0] + 1, ins[1]))
    y.sum().backward()
    assert log == [("pre", 1), ("post", 20, 10)]
    same(x.grad, [21])


def test_hook_on_the_accumulator_of_a_leaf():
    x = leaf(1.0)
    node = x.view_as(x).grad_fn.next_functions[0][0]
    assert node.variable is x
    seen = []
    node.register_hook(lambda ins, outs: seen.append(outs[0].item()))
    (x * 4).sum().backward()
    assert seen == [4]


def test_multi_grad_hook():
    a, b, c = leaf(1.0), leaf(2.0), leaf(3.0)
    seen, first = [], []
    torch.autograd.graph.register_multi_grad_hook(
        (a, b, c), lambda grads: seen.append([None if g is None else g.item() for g in grads])
    )
    torch.autograd.graph.register_multi_grad_hook((a, b), lambda g: first.append(g.item()), mode="any")
    (a * b).sum().backward()
    assert seen == [[2, 1, None]]
    assert len(first) == 1


def test_grad_of_a_computed_tensor_warns():
    y = leaf(1.0) * 2
    with pytest.warns(UserWarning, match=r"not a leaf Tensor is being accessed"):
        assert y.grad is None


# --- the graph --------------------------------------------------------------------------------------------------------


def test_nodes_and_edges():
    x = leaf(1.0)
    y = (x * 2 + x).sum()
    assert y.grad_fn.name() == "SumBackward0"
    (add, index) = y.grad_fn.next_functions[0]
    assert (add.name(), index) == ("AddBackward0", 0)
    assert [n.name() for n, _ in add.next_functions] == ["MulBackward0", "torch::autograd::AccumulateGrad"]
    assert add.next_functions[1][0] is add.next_functions[0][0].next_functions[0][0]
    assert add.next_functions[0][0].next_functions[1] == (None, 0)
    assert isinstance(add, torch.autograd.graph.Node)
    assert x.grad_fn is None
    assert x.is_leaf
    assert not y.is_leaf
    add.metadata["note"] = 1
    assert y.grad_fn.next_functions[0][0].metadata == {"note": 1}


def test_saved_values_of_nodes():
    x, w = leaf(1.0), leaf(2.0)
    node = (x * w).grad_fn
    assert node._saved_self is x
    assert node._saved_other is w
    y = x.exp()
    assert y.grad_fn._saved_result.grad_fn is y.grad_fn
    y.sum().backward()
    with pytest.raises(RuntimeError, match=r"after they have already been freed"):
        _ = y.grad_fn._saved_result


def test_saved_numbers_and_lists():
    x = leaf(1.0, 2.0)
    assert (x * 2).grad_fn._saved_other.item() == 2
    assert x.view(1, 2).sum(0).grad_fn._saved_dim == (0,)
    assert x.sum().grad_fn._saved_self_sym_sizes == (2,)


def test_a_leaf_that_stopped_requiring_grad_gets_none():
    x = leaf(1.0)
    y = x * 2
    x.requires_grad_(False)
    y.sum().backward()
    assert x.grad is None


def test_only_what_gradients_need_is_saved():
    x, constant = leaf(1.0), torch.ones(1, dtype=torch.float64)
    assert (x * constant).grad_fn._saved_self is None
    assert (x * constant).grad_fn._saved_other is constant


# --- modes ------------------------------------------------------------------------------------------------------------


def test_no_grad_and_enable_grad_nest():
    x = leaf(1.0)
    with torch.no_grad():
        assert not torch.is_grad_enabled()
        assert not (x * 2).requires_grad
        with torch.enable_grad():
            assert (x * 2).requires_grad
        assert not (x * 2).requires_grad
    assert (x * 2).requires_grad


def test_modes_decorate_functions_and_generators():
    x = leaf(1.0)

    @torch.no_grad()
    def with_call():
        return x * 2

    @torch.no_grad
    def without_call():
        return x * 2

    @torch.no_grad()
    def generator():
        yield (x * 2).requires_grad
        yield torch.is_grad_enabled()

    assert not with_call().requires_grad
    assert not without_call().requires_grad
    values = []
    for value in generator():
        values.append(value)
        assert torch.is_grad_enabled()
    assert values == [False, False]


def test_modes_decorate_classes_with_a_warning():
    class Made:
        def __init__(self):
            self.recording = torch.is_grad_enabled()

    with pytest.warns(FutureWarning, match=r"Decorating classes is deprecated"):
        decorated = torch.no_grad()(Made)
    assert not decorated().recording


def test_set_grad_enabled():
    torch.set_grad_enabled(False)
    try:
        assert not torch.is_grad_enabled()
        with torch.set_grad_enabled(True):
            assert torch.is_grad_enabled()
        assert not torch.is_grad_enabled()
    finally:
        torch.set_grad_enabled(True)

    @torch.set_grad_enabled(False)
    def decorated():
        return torch.is_grad_enabled()

    assert torch.is_grad_enabled()
    assert not decorated()


def test_inference_mode():
    x = leaf(1.0, 2.0)
    with torch.inference_mode():
        assert torch.is_inference_mode_enabled()
        made, computed, view = torch.ones(2, dtype=torch.float64), x * 2, x[0]
        made.add_(1)
        with torch.enable_grad():
            assert not (x * 2).requires_grad
        with torch.inference_mode(False):
            assert (x * 2).requires_grad
    assert made.is_inference()
    assert computed.is_inference()
    assert not computed.requires_grad
    assert not view.is_inference()
    assert not torch.ones(2).is_inference()
    assert made[0].is_inference()
    assert not (made * 2).is_inference()
    assert (made + x).requires_grad
    with pytest.raises(
        RuntimeError, match=r"Inference tensors cannot be saved for backward. Please do not use Tensors created in inference mode"
    ):
        made * x
    with pytest.raises(RuntimeError, match=r"Inplace update to inference tensor outside InferenceMode is not allowed."):
        made.add_(1)
    with pytest.raises(RuntimeError, match=r"Setting requires_grad=True on inference tensor outside InferenceMode is not allowed."):
        made.requires_grad_()
    with pytest.raises(RuntimeError, match=r"Inference tensors do not track version counter."):
        _ = made._version
    (made.clone() * x).sum().backward()
    same(x.grad, [2, 2])


def test_inference_mode_and_operators_without_a_derivative():
    x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    with torch.inference_mode():
        counts, edges = torch.histogram(x, 2)
        parts = torch._foreach_addcmul([x], [x], [x], torch.tensor([2.0]))
    assert counts.tolist() == [1.0, 2.0]
    assert all(t.is_inference() for t in (counts, edges, *parts))


def test_inference_mode_decorates():
    @torch.inference_mode()
    def run(x):
        return x * 2

    assert run(leaf(1.0)).is_inference()


# --- in place ---------------------------------------------------------------------------------------------------------


def test_inplace_refusals():
    x = leaf(1.0, 2.0)
    with pytest.raises(RuntimeError, match=r"a leaf Variable that requires grad is being used in an in-place operation."):
        x.add_(1)
    with pytest.raises(RuntimeError, match=r"a view of a leaf Variable that requires grad is being used in an in-place operation."):
        x[0].add_(1)
    with torch.no_grad():
        x.add_(1)
        view = (x * 2)[0]
    same(x, [2, 3])
    y = x * 2
    with torch.no_grad():
        view = y[0]
    with pytest.raises(
        RuntimeError, match=r"A view was created in no_grad mode and is being modified inplace with grad mode enabled."
    ):
        view.mul_(2)
    with pytest.raises(
        RuntimeError,
        match=r"Output 0 of Unbind is a view and is being modified inplace. This view is the output of a function that returns multiple views.",
    ):
        y.unbind()[0].mul_(2)


def test_overwriting_what_backward_needs():
    x = leaf(1.0, 2.0)
    y = x.exp()
    y.mul_(2)
    with pytest.raises(
        RuntimeError,
        match=r"modified by an inplace operation: \[torch.DoubleTensor \[2\]\], which is output 0 of Exp, is at version 1; expected version 0 instead",
    ):
        y.sum().backward()
    w = torch.tensor([1.0, 1.0], dtype=torch.float64)
    z = x * w
    w.add_(1)
    with pytest.raises(RuntimeError, match=r"\[torch.DoubleTensor \[2\]\] is at version"):
        z.sum().backward()


def test_inplace_on_a_view_changes_the_history_of_the_base():
    x = leaf(1.0, 2.0, 3.0)
    y = x * 2
    v = y[1:]
    v.mul_(10)
    assert type(y.grad_fn).__name__ == "CopySlices"
    assert v.grad_fn.name() == "AsStridedBackward0"
    y.sum().backward()
    same(x.grad, [2, 20, 20])


def test_detach_shares_memory_and_version_and_data_only_memory():
    x = leaf(1.0, 2.0)
    version = x._version
    x.detach().add_(1)
    assert x._version == version + 1
    x.data.add_(1)
    assert x._version == version + 1
    same(x, [3, 4])
    x.data = torch.zeros(3, dtype=torch.float64)
    assert x.shape == (3,)
    assert x.requires_grad


# --- anomaly mode -----------------------------------------------------------------------------------------------------


def test_anomaly_mode_names_the_function_and_the_forward_call():
    x = leaf(0.0, 1.0)
    with pytest.warns(UserWarning, match=r"Anomaly Detection has been enabled"):
        mode = torch.autograd.detect_anomaly()
    with mode:
        y = (x.sqrt() * 0).sum()  # the forward call
        with (
            pytest.warns(UserWarning, match=r"(?s)Error detected in SqrtBackward0. Traceback of forward call.*# the forward call"),
            pytest.raises(RuntimeError, match=r"Function 'SqrtBackward0' returned nan values in its 0th output."),
        ):
            y.backward()
    assert not torch.is_anomaly_enabled()
    (x.sqrt() * 0).sum().backward()
    assert np.isnan(x.grad.numpy()[0])


def test_anomaly_mode_without_the_nan_check():
    with torch.autograd.set_detect_anomaly(True, check_nan=False):
        assert torch.is_anomaly_enabled()
        assert not torch.is_anomaly_check_nan_enabled()
        (leaf(0.0).sqrt() * 0).sum().backward()
    assert not torch.is_anomaly_enabled()


# --- Function ---------------------------------------------------------------------------------------------------------


class Scale(Function):
    @staticmethod
    def forward(ctx, x, factor):
        ctx.factor = factor
        ctx.shape = ctx.dtype = ctx.outputs = "the user's own"  # must not disturb the engine
        return x * factor

    @staticmethod
    def backward(ctx, grad):
        assert ctx.shape == "the user's own"
        return grad * ctx.factor, None


def test_function():
    x = leaf(1.0, 2.0)
    y = Scale.apply(x, 3)
    assert type(y.grad_fn).__name__ == "ScaleBackward"
    assert y.grad_fn.name() == "ScaleBackward"
    assert y.grad_fn.factor == 3
    assert repr(y.grad_fn).startswith("<torch.autograd.function.ScaleBackward object at ")
    y.sum().backward()
    same(x.grad, [3, 3])


def test_function_does_not_record_what_forward_does():
    class F(Function):
        @staticmethod
        def forward(ctx, x):
            assert not torch.is_grad_enabled()
            assert ctx.needs_input_grad == (True,)
            return x * 2

        @staticmethod
        def backward(ctx, g):
            assert not torch.is_grad_enabled()
            return g * 2

    assert F.apply(leaf(1.0)).grad_fn.next_functions[0][0].name() == "torch::autograd::AccumulateGrad"
    with torch.no_grad():
        x = leaf(1.0)
        assert not Scale.apply(x, 2).requires_grad


def test_function_is_differentiable_twice():
    class Cube(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return g * 3 * x**2

    x = leaf(2.0)
    (g,) = torch.autograd.grad(Cube.apply(x).sum(), x, create_graph=True)
    (gg,) = torch.autograd.grad(g.sum(), x)
    same(gg, [12])


def test_function_saving_its_result_frees_it():
    import weakref

    class Exp(Function):
        @staticmethod
        def forward(ctx, x):
            y = x.exp()
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx, g):
            return g * ctx.saved_tensors[0]

    x = leaf(0.0)
    y = Exp.apply(x)
    (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    (gg,) = torch.autograd.grad(g.sum(), x)
    same(gg, [1])
    node = weakref.ref(y.grad_fn)
    del y, g
    assert node() is None  # no cycle through the saved result


def test_function_with_setup_context():
    class Multiply(Function):
        @staticmethod
        def forward(x, factor=2):
            return x * factor

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.factor = inputs[1]

        @staticmethod
        def backward(ctx, g):
            return g * ctx.factor, None

    x = leaf(1.0)
    Multiply.apply(x).sum().backward()
    Multiply.apply(x, factor=5).sum().backward()
    same(x.grad, [7])


def test_function_with_several_results():
    class Two(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2, "text", x.long(), x * 3

        @staticmethod
        def backward(ctx, a, text, integral, b):
            assert text is None
            assert integral.dtype is torch.int64
            return a * 2 + b * 3

    x = leaf(1.0)
    a, text, integral, b = Two.apply(x)
    assert text == "text"
    assert not integral.requires_grad
    assert (a.output_nr, b.output_nr) == (0, 3)
    b.sum().backward()  # the gradient of `a` is made zeros
    same(x.grad, [3])


def test_function_without_materialised_grads():
    class Two(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(False)
            return x * 2, x * 3

        @staticmethod
        def backward(ctx, a, b):
            assert a is None
            return b * 3

    x = leaf(1.0)
    Two.apply(x)[1].sum().backward()
    same(x.grad, [3])


def test_function_mark_non_differentiable():
    class F(Function):
        @staticmethod
        def forward(ctx, x):
            a, b = x * 2, x * 3
            ctx.mark_non_differentiable(b)
            return a, b

        @staticmethod
        def backward(ctx, a, b):
            same(b, [0])
            return a * 2

    a, b = F.apply(leaf(1.0))
    assert a.requires_grad
    assert not b.requires_grad
    a.sum().backward()


def test_function_mark_dirty():
    class Double(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            return x.mul_(2)

        @staticmethod
        def backward(ctx, g):
            return g * 2

    x = leaf(1.0, 2.0)
    y = x * 1
    z = Double.apply(y)
    assert z is y
    assert z.grad_fn.name() == "DoubleBackward"
    z.sum().backward()
    same(x.grad, [2, 2])
    x.grad = None
    y = x * 1
    Double.apply(y[0])
    assert type(y.grad_fn).__name__ == "CopySlices"
    y.sum().backward()
    same(x.grad, [2, 1])
    with pytest.raises(RuntimeError, match=r"a leaf Variable that requires grad has been used in an in-place operation."):
        Double.apply(leaf(1.0))


def test_function_returning_its_input():
    class Same(Function):
        @staticmethod
        def forward(ctx, x):
            return x

        @staticmethod
        def backward(ctx, g):
            return g * 5

    x = leaf(1.0)
    y = x * 1
    z = Same.apply(y)
    assert z is not y
    assert y.grad_fn.name() == "MulBackward0"
    z.sum().backward()
    same(x.grad, [5])
    with pytest.raises(
        RuntimeError,
        match=r"Output 0 of Same is a view and is being modified inplace. This view was created inside a custom Function",
    ):
        z.mul_(2)


@pytest.mark.parametrize(
    ("result", "error", "text"),
    [
        (lambda g: (g, g), RuntimeError, r"function FBackward returned an incorrect number of gradients \(expected 1, got 2\)"),
        (lambda g: 3, RuntimeError, r"expected Variable or None \(got int\)"),
        (lambda g: torch.ones(5, dtype=torch.float64), RuntimeError, r"Function FBackward returned an invalid gradient at index 0 - got \[5\] but expected shape compatible with \[3\]"),
    ],
)  # fmt: skip
def test_function_results_are_checked(result, error, text):
    class F(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return result(g)

    with pytest.raises(error, match=text):
        F.apply(leaf(1.0, 2.0, 3.0)).sum().backward()


def test_function_with_missing_methods():
    class NoForward(Function):
        pass

    class NoBackward(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

    with pytest.raises(NotImplementedError, match=r"You must implement the forward function for custom autograd.Function."):
        NoForward.apply(leaf(1.0))
    with pytest.raises(NotImplementedError, match=r"You must implement either the backward or vjp method"):
        NoBackward.apply(leaf(1.0)).sum().backward()
    with pytest.warns(DeprecationWarning, match="should not be instantiated"):
        made = NoBackward()
    with pytest.raises(RuntimeError, match=r"Legacy autograd function with non-static forward method is deprecated"):
        made(leaf(1.0))


def test_once_differentiable():
    class F(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx, g):
            return g * 2

    x, v = leaf(1.0), leaf(1.0)
    (g,) = torch.autograd.grad(F.apply(x), x, v, create_graph=True)
    with pytest.raises(RuntimeError, match=r"trying to differentiate twice a function that was marked with @once_differentiable"):
        g.sum().backward()


def test_none_gradients_stop_the_flow():
    class Stop(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return None

    x = leaf(1.0)
    Stop.apply(x * x).sum().backward()
    assert x.grad is None


# --- saved tensors hooks ----------------------------------------------------------------------------------------------


def test_saved_tensors_hooks():
    x, w = leaf(2.0), leaf(3.0)
    packed = []

    def pack(t):
        packed.append(t)
        return t.numpy(force=True).copy()

    with torch.autograd.graph.saved_tensors_hooks(pack, torch.from_numpy):
        y = x * w
        z = y.exp()
    assert len(packed) == 3
    z.sum().backward()
    same(x.grad, [3 * np.exp(6)])


def test_saved_tensors_hooks_and_double_backward():
    x = leaf(2.0)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t.detach().clone(), lambda t: t):
        y = x**3
    (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    (gg,) = torch.autograd.grad(g.sum(), x)
    same(gg, [12])


def test_save_on_cpu():
    x = leaf(2.0)
    with torch.autograd.graph.save_on_cpu():
        y = x * x
    y.sum().backward()
    same(x.grad, [4])


def test_disable_saved_tensors_hooks():
    hooks = torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t)
    with torch.autograd.graph.disable_saved_tensors_hooks("not here"), pytest.raises(RuntimeError, match="not here"), hooks:
        pass


def test_hooks_on_one_saved_tensor():
    x, w = leaf(2.0), leaf(3.0)
    y = x * w
    y.grad_fn._raw_saved_self.register_hooks(lambda t: t.detach() * 10, lambda t: t)
    y.sum().backward()
    same(w.grad, [20])
    same(x.grad, [3])


def test_pack_hook_must_not_write():
    def pack(t):
        t.add_(1)
        return t

    x = leaf(2.0)
    with (
        pytest.raises(RuntimeError, match=r"A saved tensor pack hook is modifying its input in place."),
        torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t),
    ):
        (x * 1).exp()


# --- old names --------------------------------------------------------------------------------------------------------


def test_variable():
    t = torch.ones(2)
    v = torch.autograd.Variable(t, requires_grad=True)
    assert isinstance(t, torch.autograd.Variable)
    assert v.requires_grad
    assert v.data_ptr() == t.data_ptr()


def test_queue_callback():
    x = leaf(1.0)
    log = []
    x.register_hook(lambda g: torch.autograd.Variable._execution_engine.queue_callback(lambda: log.append("end")))
    x.register_post_accumulate_grad_hook(lambda t: log.append("accumulated"))
    (x * 2).sum().backward()
    assert log == ["accumulated", "end"]


@pytest.mark.parametrize("depth", [2, 150])
def test_callbacks_run_when_the_pass_ends_that_asked_for_them(depth):
    """Also where passes are nested so deeply that some run on threads of their own."""
    log = []

    class Nested(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, depth):
            ctx.depth = depth
            return x.clone()

        @staticmethod
        def backward(ctx, grad):
            if ctx.depth:
                with torch.enable_grad():
                    Nested.apply(torch.ones(1, requires_grad=True), ctx.depth - 1).backward()
                log.append("nested")
            else:
                torch.autograd.Variable._execution_engine.queue_callback(lambda: log.append("end"))
            return grad, None

    Nested.apply(torch.ones(1, requires_grad=True), depth).backward()
    assert log == ["end"] + ["nested"] * depth
