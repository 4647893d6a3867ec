"""torch.fx: the same graphs, code and texts as torch makes of the same functions."""

import copy
import importlib
import math
import operator
import pickle

import pytest
import torch

import mindtorch_v2 as mt

pytestmark = pytest.mark.parity


def _modules(t):
    """Modules and functions to trace, made with one package or the other."""
    nn, functional = t.nn, t.nn.functional

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv, self.norm, self.fc = nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.Linear(4, 2)
            self.scale = nn.Parameter(t.ones(4))
            self.register_buffer("shift", t.zeros(4))
            self.inner = nn.Sequential(nn.Linear(2, 2), nn.ReLU())

        def forward(self, x, factor: float = 2.0, *, flag=None):
            y = functional.relu(self.norm(self.conv(x)), inplace=False)
            y = functional.interpolate(y, scale_factor=2, mode="nearest")
            y = functional.max_pool2d(y, 2)
            y = functional.adaptive_avg_pool2d(y, 1).flatten(1)
            y = y * self.scale + self.shift + t.tensor([1.0, 2.0, 3.0, 4.0])
            y = functional.dropout(self.fc(y), 0.5, self.training)
            return {"y": self.inner(y) * factor, "parts": [y, (x.shape[0], x.size(1))]}

    def operators(x, y=2.5, *args, flag=True, **rest):
        total = x**2 + 2**x - (1 - x) / x % 3
        less = x < y
        first, second = t.cat([x, total], dim=0).chunk(2)
        return (
            total,
            (~less) & (less | True),
            x[..., None],
            x[x > 0],
            -x // 2,
            first @ second.T,
            math.sqrt(2) * x,
            None,
            t.float32,
            1.5,
        )

    def typed(x: t.Tensor, n: int = 1) -> t.Tensor:
        return functional.softmax(x.sum(dim=n, keepdim=True), dim=-1)

    def convolved(x, w):
        y = functional.logsigmoid(functional.gelu(functional.avg_pool2d(functional.conv2d(x, w, padding=1), 2)))
        return y.view(x.size(0), -1).add_(1)

    return {"block": Block, "operators": lambda: operators, "typed": lambda: typed, "convolved": lambda: convolved}


def _both(name):
    return [(t, _modules(t)[name]()) for t in (mt, torch)]


@pytest.mark.parametrize("name", ["block", "operators", "typed", "convolved"])
def test_graphs_and_code_are_torchs(name):
    (_, ours), (_, theirs) = _both(name)
    own, other = mt.fx.symbolic_trace(ours), torch.fx.symbolic_trace(theirs)
    assert own.code == other.code
    assert str(own.graph) == str(other.graph)
    assert str(own) == str(other)
    assert [n.format_node() for n in own.graph.nodes] == [n.format_node() for n in other.graph.nodes]


def test_a_traced_module_computes_the_same():
    results = []
    for t, module in _both("block"):
        module.eval()
        with t.no_grad():
            for parameter in module.parameters():
                parameter.copy_(t.arange(float(parameter.numel())).view(parameter.shape) / 50)
        traced = t.fx.symbolic_trace(module)
        x = t.arange(96.0).view(2, 3, 4, 4) / 50
        plain = module(x)["y"]
        for made in (traced, copy.deepcopy(traced), t.fx.Transformer(traced).transform()):
            assert t.equal(made(x)["y"], plain)
        assert t.equal(t.fx.Interpreter(traced).run(x)["y"], plain)
        results.append((plain.detach().numpy(), list(traced.state_dict()), [n for n, _ in traced.named_parameters()]))
    assert results[0][0] == pytest.approx(results[1][0], rel=1e-5)
    assert results[0][1:] == results[1][1:]


def test_patterns_are_replaced():
    found = []
    for t in (mt, torch):

        def pattern(a, b):
            return t.add(a, b).relu()  # noqa: B023 - called in this turn of the loop, here and below

        def replacement(a, b):
            return t.sub(a, b)  # noqa: B023

        def function(x, y):
            return t.add(x, y).relu() * t.add(y, x).relu() + t.add(x, 1)  # noqa: B023

        traced = t.fx.symbolic_trace(function)
        matches = t.fx.replace_pattern(traced, pattern, replacement)
        found.append((len(matches), traced.code, traced(t.ones(2), t.zeros(2)).tolist()))
    assert found[0] == found[1]


def test_a_graph_that_is_made_and_changed_by_hand():
    texts = []
    for t in (mt, torch):
        graph = t.fx.Graph()
        a = graph.placeholder("a", default_value=1)
        b = graph.call_function(t.relu, (a,))
        c = graph.call_method("view", (b, -1))
        graph.call_function(operator.add, (a, 1))
        graph.output((c, {"k": b}))
        before = str(graph)
        removed = graph.eliminate_dead_code()
        with graph.inserting_after(b):
            new = graph.call_function(t.neg, (b,), name="turned")
        b.replace_all_uses_with(new, lambda user, new=new: user is not new)
        graph.lint()
        module = t.fx.GraphModule(t.nn.Module(), graph)
        with pytest.raises(RuntimeError) as caught:
            graph.erase_node(b)
        with pytest.raises(TypeError, match="does not support mutation"):
            new.kwargs["x"] = 1
        facts = [
            len(graph.nodes),
            [n.name for n in reversed(graph.nodes)],
            b.all_input_nodes,
            list(b.users),
            c.args,
            repr(graph.output_node()),
        ]
        texts.append((before, removed, module.code, str(facts), str(caught.value), str(module(t.tensor([-1.0, 2.0])))))
    assert texts[0] == texts[1]


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x if x.sum() > 0 else -x,
        lambda x: list(x),
        lambda x: len(x),
        lambda x: int(x),
        lambda x: range(x),
    ],
)
def test_what_cannot_be_traced(function):
    errors = []
    for t in (mt, torch):
        with pytest.raises(Exception) as caught:
            t.fx.symbolic_trace(function)
        errors.append((type(caught.value).__name__, str(caught.value)))
    assert errors[0] == errors[1]


@pytest.mark.parametrize("value", [True, None, 3, "x"])
def test_arguments_with_a_value(value):
    codes = []
    for t in (mt, torch):

        def choose(x, y, flag):
            return x + y if flag else x - y

        traced = t.fx.symbolic_trace(choose, concrete_args={"flag": value})
        with pytest.raises(AssertionError) as caught:
            traced(t.ones(1), t.ones(1), "another")
        codes.append((traced.code, traced(t.ones(1), t.ones(1), value).item(), str(caught.value)))
    assert codes[0] == codes[1]


def test_leaves_of_a_tracer_of_ones_own():
    codes = []
    for t in (mt, torch):
        fx = importlib.import_module(f"{t.__name__}.fx")

        class Whole(fx.Tracer):
            def is_leaf_module(self, m, qualified_name):
                return qualified_name == "inner"

        module = _modules(t)["block"]().eval()
        graph = Whole().trace(module.inner)
        codes.append(fx.GraphModule(module.inner, graph).code)
        small = _small(t)
        codes.append(fx.GraphModule(small, Whole(param_shapes_constant=True).trace(small)).code)
    assert codes[:2] == codes[2:]


def _small(t):
    class Small(t.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = t.nn.Linear(2, 2)
            self.weight = t.nn.Parameter(t.ones(3))

        def forward(self, x):
            return self.inner(x) * self.weight.shape[0] + self.weight

    return Small()


def test_a_traced_module_can_be_pickled():
    for t, module in _both("block"):
        traced = t.fx.symbolic_trace(module.eval())
        again = pickle.loads(pickle.dumps(traced))
        x = t.arange(96.0).view(2, 3, 4, 4) / 50
        assert again.code == traced.code
        assert t.equal(again(x)["y"], traced(x)["y"])
