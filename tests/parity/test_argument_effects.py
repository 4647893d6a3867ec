"""Arguments that torch gives an effect have it here, or are refused as torch refuses them."""

import operator
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch

import mindtorch_v2
from mindtorch_v2._dispatch import registry

pytestmark = pytest.mark.parity


def outcome(call: Callable[[Any], Any], lib: Any) -> Any:
    """The kind of error that a call raises, or its result."""
    try:
        return call(lib)
    except (RuntimeError, ValueError, TypeError, AssertionError) as error:
        return "NotImplementedError" if isinstance(error, NotImplementedError) else type(error).__name__


REFUSED = {
    "_to_copy to another layout": lambda lib: lib.ops.aten._to_copy(lib.ones(2), layout=lib.sparse_coo),
    "norm of a sparse tensor with keepdim": lambda lib: lib.eye(2).to_sparse().norm(dim=(0, 1), keepdim=True),
    "_sparse_softmax from half to float": lambda lib: lib.ops.aten._sparse_softmax(lib.eye(2).to_sparse(), 1, True),
    "clone of a sparse tensor, contiguous": lambda lib: lib.eye(2).to_sparse().clone(memory_format=lib.contiguous_format),
    "clone of a sparse tensor, channels last": lambda lib: lib.eye(2).to_sparse().clone(memory_format=lib.channels_last),
    "zeros_like a sparse tensor, contiguous": lambda lib: lib.zeros_like(
        lib.eye(2).to_sparse(), memory_format=lib.contiguous_format
    ),
    "to of a sparse tensor, contiguous": lambda lib: lib.eye(2).to_sparse().to(lib.float64, memory_format=lib.contiguous_format),
    "from_file of another layout": lambda lib: lib.from_file("/dev/null", size=0, layout=lib.sparse_coo),
    "from_file in pinned memory": lambda lib: lib.from_file("/dev/null", size=0, pin_memory=True),
    "compile with mode and options": lambda lib: lib.compile(abs, mode="default", options={"max_autotune": True}),
    "compile with an unknown mode": lambda lib: lib.compile(abs, mode="fastest"),
    "python_code with an unknown option": lambda lib: (
        fx(lib).symbolic_trace(lambda x: x).graph.python_code("self", no_such_option=True)
    ),
    "print_readable with an unknown option": lambda lib: (
        fx(lib).symbolic_trace(lambda x: x).print_readable(False, no_such_option=True)
    ),
}


def fx(lib: Any) -> Any:
    return __import__(f"{lib.__name__}.fx", fromlist=["fx"])


@pytest.mark.parametrize("name", REFUSED)
def test_what_torch_refuses(name):
    expected = outcome(REFUSED[name], torch)
    assert isinstance(expected, str)
    assert outcome(REFUSED[name], mindtorch_v2) == expected


TARGETS = {
    **{name: operator.attrgetter(name) for name in (
        "rand randn randint randperm rand_like randn_like randint_like normal poisson bernoulli multinomial dropout add empty manual_seed _assert"
        " ops.aten.rand ops.aten.rand.default ops.aten.bernoulli.default ops.aten.add_.Tensor ops.aten.add_ ops.aten.add.Tensor"
        " ops.aten.dropout.default ops.aten.uniform_.default nn.functional.dropout set_grad_enabled"
    ).split()},
    "setitem": lambda lib: operator.setitem,
    "iadd": lambda lib: operator.iadd,
    "setattr": lambda lib: setattr,
}  # fmt: skip


@pytest.mark.parametrize("impure_random", [True, False])
@pytest.mark.parametrize("name", TARGETS)
def test_which_calls_of_a_graph_have_an_effect_besides_their_result(name, impure_random):
    ours, theirs = (fx(lib).Graph().call_function(TARGETS[name](lib), ()).is_impure(impure_random) for lib in (mindtorch_v2, torch))
    assert ours == theirs


def test_which_operators_draw():
    """Every overload, by torch's tag of it."""
    wrong = []
    for op in registry.all_ops():
        packet = getattr(torch.ops.aten, op.name, None) if op.schema.namespace == "aten" else None
        theirs = getattr(packet, op.overload_name, None)
        if theirs is None or theirs._schema.is_mutable:
            continue
        ours = getattr(getattr(mindtorch_v2.ops.aten, op.name), op.overload_name)
        found = [fx(lib).Graph().call_function(target, ()).is_impure() for lib, target in ((mindtorch_v2, ours), (torch, theirs))]
        wrong += [op] if found[0] != found[1] else []
    assert not wrong


def test_random_numbers_that_nobody_uses_stay_in_a_graph():
    def drawn(lib: Any) -> list[str]:
        graph = fx(lib).Graph()
        x = graph.placeholder("x")
        graph.call_function(lib.rand, (2,))
        graph.call_function(lib.add, (x, x))
        graph.output(x)
        graph.eliminate_dead_code()
        return [node.name for node in graph.nodes]

    assert drawn(mindtorch_v2) == drawn(torch) == ["x", "rand", "output"]


def test_registrations_end_with_their_library():
    """A cast and a rule of `vmap` that are given a library are gone with it."""

    def outcomes(lib: Any) -> list[Any]:
        library = lib.library
        with library._scoped_library("effects", "FRAGMENT") as defining:
            defining.define("twice(Tensor x) -> Tensor")
            defining.impl("twice", lambda x: x * 2, "CompositeExplicitAutograd")
            twice = lib.ops.effects.twice
            seen = []
            with library._scoped_library("effects", "FRAGMENT") as rules:
                library.register_autocast("effects::twice", "cpu", lib.bfloat16, lib=rules)
                library.register_vmap("effects::twice", lambda info, dims, x: (x * 3, dims[0]), lib=rules)
                with lib.autocast("cpu"):
                    seen.append(str(twice(lib.ones(2)).dtype))
                seen.append(lib.vmap(twice)(lib.ones(2)).tolist())
            with lib.autocast("cpu"):
                seen.append(str(twice(lib.ones(2)).dtype))
            return seen

    assert outcomes(mindtorch_v2) == outcomes(torch) == ["torch.bfloat16", [3, 3], "torch.float32"]


@pytest.mark.parametrize(
    "call", ["multiply(2, x)", "subtract(2, x, alpha=2)", "divide(2, x, rounding_mode='floor')", "multiply(2, 3)"]
)
def test_a_number_stands_first_in_the_other_names_of_arithmetic_too(call):
    ours, theirs = (eval(call, {**vars(lib), "x": lib.arange(1.0, 4)}) for lib in (mindtorch_v2, torch))
    assert (str(ours.dtype), ours.tolist()) == (str(theirs.dtype), theirs.tolist())


@pytest.mark.parametrize("space", ["torch", "torch.ops.aten", "torch.nn.functional"])
@pytest.mark.parametrize(
    "call",
    [
        "kl_div(x.log(), y)",
        "hinge_embedding_loss(x, signs)",
        "margin_ranking_loss(x, y, signs)",
        "cosine_embedding_loss(x, y, signs[:, 0])",
        "triplet_margin_loss(x, y, x + 1)",
        "binary_cross_entropy_with_logits(x, y)",
        "ctc_loss(x.reshape(3, 2, 2).log_softmax(-1), ones, [3, 3], [1, 1])",
        "ctc_loss(x.reshape(3, 2, 2).log_softmax(-1), ones, 3 * ones[:, 0], ones[:, 0])",
    ],
)
def test_losses_that_are_called_without_a_reduction(space, call):
    """Where each loss is found it has another default: PyTorch's functions of the first namespace reduce nothing."""

    def value(lib: Any) -> Any:
        x = lib.arange(1.0, 13).reshape(4, 3) / 12
        names = {"x": x, "y": x.flip(0), "signs": lib.ones(4, 3) - 2 * (x > 0.5), "ones": lib.ones(2, 1, dtype=lib.int64)}
        inside = {"torch": lib, "torch.ops.aten": lib.ops.aten, "torch.nn.functional": lib.nn.functional}[space]
        return eval(f"inside.{call}", {**names, "inside": inside})

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of `kl_div`, about 'mean'
        ours, theirs = value(mindtorch_v2), value(torch)
    assert ours.shape == theirs.shape
    torch.testing.assert_close(torch.tensor(ours.tolist()), theirs)
