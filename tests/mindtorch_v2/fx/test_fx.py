"""torch.fx without torch: graphs that run, and that nothing stays patched."""

import math

import pytest

import mindtorch_v2 as torch
from mindtorch_v2 import fx, nn
from mindtorch_v2.nn import functional

fx.wrap("len")


@fx.wrap
def doubled(x):
    return x * 2 if x.sum() > 0 else x


def test_wrapped_functions_are_nodes():
    traced = fx.symbolic_trace(lambda x: doubled(x) + len(x))
    assert [n.target for n in traced.graph.nodes if n.op == "call_function"][:2] == [doubled, len]
    assert traced(torch.ones(3)).tolist() == [5.0] * 3


def test_tracing_leaves_nothing_behind():
    before = nn.Module.__call__, nn.Module.__getattr__, functional.relu, torch.add, math.sqrt, doubled
    with pytest.raises(fx.proxy.TraceError):
        fx.symbolic_trace(lambda x: functional.relu(x) if x else x)
    fx.symbolic_trace(nn.Sequential(nn.Linear(2, 2), nn.ReLU()))
    assert before == (nn.Module.__call__, nn.Module.__getattr__, functional.relu, torch.add, math.sqrt, doubled)


def test_gradients_reach_the_parameters_of_a_traced_module():
    module = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1))
    traced = fx.symbolic_trace(module)
    traced(torch.ones(4, 2)).sum().backward()
    assert all(p.grad is not None for p in module.parameters())


def test_a_step_of_a_traced_module_is_in_profiles_as_of_the_module():
    module = nn.Sequential(nn.Linear(2, 3), nn.Tanh())
    names = []
    for each in (module, fx.symbolic_trace(module)):
        each(torch.ones(1, 2))
        with torch.profiler.profile() as prof:
            each(torch.ones(1, 2))
        names.append([e.name for e in prof.events() if e.name.startswith("aten::")])
    assert names[0] == names[1]


def test_submodules_come_and_go():
    traced = fx.symbolic_trace(nn.Sequential(nn.Linear(2, 2), nn.ReLU()))
    assert traced.add_submodule("new.part", nn.ReLU())
    assert "new.part" in dict(traced.named_modules())
    traced.delete_all_unused_submodules()
    assert sorted(name for name, _ in traced.named_modules() if name) == ["0", "1"]
    assert not traced.delete_submodule("new.part")


def test_an_error_inside_a_node_names_it():
    traced = fx.symbolic_trace(lambda x: torch.relu(x).view(7))
    with pytest.raises(RuntimeError, match=r"While executing %view : \[num_users=1\] = call_method\[target=view\]"):
        fx.Interpreter(traced).run(torch.ones(3))


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda g: setattr(next(iter(g.nodes)), "name", "relu"), "Node redefined name relu"),
        (lambda g: next(iter(g.nodes)).next.append(next(iter(g.nodes))), "was used before it has been defined"),
    ],
)
def test_graphs_that_are_wrong_are_found(change, text):
    graph = fx.symbolic_trace(lambda x: torch.relu(x) + 1).graph
    change(graph)
    with pytest.raises(RuntimeError, match=text):
        graph.lint()
