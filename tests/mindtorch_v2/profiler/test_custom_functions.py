"""A custom Function in profiles is an operator with its name."""

import mindtorch_v2 as torch
from mindtorch_v2.profiler import profile


class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, factor, label, flag):
        if factor == 0:
            raise ValueError(label)
        ctx.factor = factor
        return x * factor

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.factor, None, None, None


def test_a_call_is_an_operator_with_inputs_and_the_number_of_its_node():
    x = torch.ones(2, 3, requires_grad=True)
    with profile(record_shapes=True) as prof:
        Scale.apply(x, 2.0, "text", True).sum().backward()
    events = {e.name: e for e in prof.events()}
    call, node = events["Scale"], events["ScaleBackward"]
    assert (call["kind"], call.scope, call.is_user_annotation) == ("op", 0, False)
    assert call.input_shapes == [[2, 3], [], []]  # texts are left out
    assert call.concrete_inputs == [None, 2.0, True]
    assert call.sequence_nr == node.sequence_nr >= 0
    assert events["aten::mul"].name == "aten::mul"


def test_one_that_raises_is_recorded():
    x = torch.ones(2, requires_grad=True)
    with profile() as prof:
        try:
            Scale.apply(x, 0, "no", False)
        except ValueError:
            pass
    assert [e["kind"] for e in prof.events() if e.name == "Scale"] == ["op"]


def test_gradients_of_some_inputs_run_only_what_leads_to_them():
    x, w = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    with profile() as prof:
        torch.autograd.grad((x.exp() * w.sin()).sum(), x)
    names = [e.name for e in prof.events()]
    assert "autograd::engine::evaluate_function: ExpBackward0" in names
    assert "autograd::engine::evaluate_function: SinBackward0" not in names
