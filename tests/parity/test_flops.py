"""Floating point operations as torch counts them: `FlopCounterMode` by module and operator, and `with_flops` in profiles."""

import collections
import contextlib
import importlib
import inspect
import io
import runpy
import sys
import tempfile
from pathlib import Path
from unittest import mock

import pytest

import mindtorch_v2

torch = pytest.importorskip("torch")

import profile_comparison  # noqa: E402 - needs torch
from profile_comparison import plain_torch  # noqa: E402
from profile_programs import PROGRAMS  # noqa: E402

pytestmark = pytest.mark.parity

# What torch's profiler counts.
COUNTED = {f"aten::{name}" for name in ("conv2d", "mm", "addmm", "bmm", "baddbmm", "mul", "add")}


# Examples that do not profile themselves, and that train and no more: a transformer that is evaluated is one operator, which is not counted.
EXAMPLES = {
    name: path for name, path in profile_comparison.EXAMPLES.items() if path.stem in ("mlp", "cnn", "gpt", "lstm", "autoencoder")
}


def counter_of(library):
    return importlib.import_module(f"{library.__name__}.utils.flop_counter")


def step_of(library, name):
    """One step of a program, or a whole example of two steps."""
    library.manual_seed(0)
    if name in PROGRAMS:
        return PROGRAMS[name](library)
    return lambda: run_example(library, EXAMPLES[name])


def run_example(library, path):
    with (
        tempfile.TemporaryDirectory() as folder,
        mock.patch.object(sys, "argv", [path.name, "--steps", "2"]),
        contextlib.redirect_stdout(io.StringIO()),
    ):
        script = Path(folder) / path.name
        script.write_text(path.read_text().replace("mindtorch_v2", library.__name__))
        runpy.run_path(str(script), run_name="__main__")


def counted(library, name):
    step = step_of(library, name)
    with counter_of(library).FlopCounterMode(display=False) as counter:
        step()
    return counter


def by_name(counter):
    return {module: {str(op): n for op, n in counts.items()} for module, counts in counter.get_flop_counts().items()}


# torch's counter follows modules with hooks on several gradients, which do not run for the tensor that a pass begins at, and raise for a
# leaf that `autograd.grad` is asked for.
BEGINS_AT_A_MODULE = "recomputed"
GRAD_OF_A_LEAF = "double backward"


@pytest.mark.parametrize("name", [n for n in [*EXAMPLES, *PROGRAMS] if n not in (BEGINS_AT_A_MODULE, GRAD_OF_A_LEAF)])
def test_counts_by_module_and_operator(name):
    with plain_torch():
        ours, theirs = (counted(library, name) for library in (mindtorch_v2, torch))
    assert by_name(ours) == by_name(theirs)
    assert ours.get_total_flops() == theirs.get_total_flops()


@pytest.mark.parametrize("name", ["examples/gpt.py", "examples/cnn.py", "transformer block by hand"])
def test_tables(name):
    pytest.importorskip("tabulate", "0.9.0", reason="torch prints its table with it")
    with plain_torch():
        theirs = counted(torch, name)
    ours = counted(mindtorch_v2, name)
    for depth in (1, 2, 9):
        assert ours.get_table(depth) == theirs.get_table(depth)


def test_a_pass_that_begins_at_a_module_is_the_modules_here():
    with plain_torch():
        theirs = by_name(counted(torch, BEGINS_AT_A_MODULE))
    ours = by_name(counted(mindtorch_v2, BEGINS_AT_A_MODULE))
    backward = ours["Sequential"].pop("aten.mm")
    assert backward == ours["Sequential.0"]["aten.mm"]
    assert ours == theirs


def test_gradients_of_leaves():
    with plain_torch(), pytest.raises(RuntimeError, match="A leaf node was passed"):
        counted(torch, GRAD_OF_A_LEAF)
    assert counted(mindtorch_v2, GRAD_OF_A_LEAF).get_total_flops() > 0


def events(library, name):
    step = step_of(library, name)
    step()
    with library.profiler.profile(with_flops=True) as prof:
        step()
    return prof.events()


PROFILED = [*EXAMPLES, *PROGRAMS]


@pytest.mark.parametrize("name", PROFILED)
def test_profiles_have_torchs_numbers_where_it_has_any(name):
    with plain_torch():
        theirs = {(e.name, str(e.input_shapes)): e.flops for e in events(torch, name) if e.name in COUNTED}
        found = events(mindtorch_v2, name)
    ours = {(e.name, str(e.input_shapes)): e.flops for e in found if e.name in COUNTED}
    both = ours.keys() & theirs.keys()
    assert {call: ours[call] for call in both} == {call: theirs[call] for call in both}
    assert {call for call in theirs if call[0] not in ("aten::add", "aten::mul")} <= both


PRODUCTS = {f"aten::{name}" for name in ("mm", "addmm", "bmm", "baddbmm", "convolution_backward", "conv1d", "conv2d", "conv3d")}
PRODUCTS |= {f"aten::conv_transpose{n}d" for n in (1, 2, 3)} | {"aten::mkldnn_rnn_layer", "aten::mkldnn_rnn_layer_backward"}


@pytest.mark.parametrize("name", PROFILED)
def test_profiles_agree_with_the_counter(name):
    found = events(mindtorch_v2, name)
    total = sum(e.flops for e in found if e.name in PRODUCTS)
    step = step_of(mindtorch_v2, name)
    step()
    with counter_of(mindtorch_v2).FlopCounterMode(display=False) as counter:
        step()
    # torch: the gradient of a grouped kernel is counted as if there were one group
    convolved = sum(e.flops for e in found if e.name == "aten::conv2d") if name == "pooling and norms" else 0
    assert total + convolved == counter.get_total_flops()


def test_the_table_of_a_profile():
    """The same events, with torch's counts, in either library's table."""
    from torch.autograd import profiler_util

    from mindtorch_v2.autograd.profiler_util import EventList, FunctionEvent

    def table(make_list, make_event, scale):
        made = [
            make_event(i, f"aten::{i}", 1, 10 * i, 10 * i + 5, stack=[], flops=n * scale)
            for i, n in enumerate((1, 0, 12345, 10**7))
        ]
        rows = make_list(made, with_flops=True)
        rows._build_tree()
        return rows.key_averages().table()

    for scale in (1, 10**3, 10**6, 10**10):
        theirs = table(profiler_util.EventList, profiler_util.FunctionEvent, scale)
        ours = table(EventList, FunctionEvent, scale)
        assert ours.splitlines()[: len(theirs.splitlines())] == theirs.splitlines()


SHAPES = [
    ("mm_flop", ((2, 3), (3, 4))),
    ("addmm_flop", ((4,), (2, 3), (3, 4))),
    ("bmm_flop", ((5, 2, 3), (5, 3, 4))),
    ("baddbmm_flop", ((4,), (5, 2, 3), (5, 3, 4))),
    ("conv_flop_count", ([2, 3, 8, 8], [4, 3, 3, 3], [2, 4, 6, 6])),
    ("conv_flop_count", ([2, 3, 8, 8], [3, 4, 3, 3], [2, 4, 10, 10], True)),
    ("sdpa_flop_count", ((2, 4, 5, 8), (2, 2, 6, 8), (2, 2, 6, 3))),
    ("sdpa_flop", ((2, 4, 5, 8), (2, 4, 6, 8), (2, 4, 6, 8))),
    ("sdpa_backward_flop_count", ((2, 4, 5, 3), (2, 4, 5, 8), (2, 2, 6, 8), (2, 2, 6, 3))),
    ("get_suffix_str", (9999,)),
    ("get_suffix_str", (10000,)),
    ("get_suffix_str", (10**20,)),
    ("convert_num_with_suffix", (1234567, "K")),
    ("convert_to_percent_str", (1, 3)),
    ("convert_to_percent_str", (1, 0)),
    ("normalize_tuple", (3,)),
    # shapes that do not fit
    ("mm_flop", ((2, 3), (4, 4))),
    ("bmm_flop", ((5, 2, 3), (6, 3, 4))),
    ("bmm_flop", ((5, 2, 3), (5, 4, 4))),
    ("sdpa_flop_count", ((2, 4, 5, 8), (3, 2, 6, 8), (2, 2, 6, 3))),
    ("sdpa_flop_count", ((2, 3, 5, 8), (2, 2, 6, 8), (2, 2, 6, 3))),
    ("sdpa_backward_flop_count", ((2, 4, 5, 4), (2, 4, 5, 8), (2, 2, 6, 8), (2, 2, 6, 3))),
    ("sdpa_backward_flop_count", ((2, 4, 5, 4), (2, 5, 5, 8), (2, 2, 6, 8), (2, 2, 6, 3))),
]


def outcome(function, args):
    try:
        return function(*args)
    except AssertionError as error:
        return str(error)


@pytest.mark.parametrize(("name", "args"), SHAPES)
def test_formulas(name, args):
    ours, theirs = (outcome(getattr(counter_of(library), name), args) for library in (mindtorch_v2, torch))
    assert ours == theirs


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("mask", [(True, True, False), (True, False, True), (False, True, True)])
def test_backward_of_convolutions(transposed, groups, mask):
    x, w, y = [2, 4, 8, 8], [6, 4 // groups, 3, 3], [2, 6, 6, 6]
    if transposed:
        w, y = [4, 6 // groups, 3, 3], [2, 6, 10, 10]
    ours, theirs = (
        counter_of(library).conv_backward_flop(
            y, x, w, None, [1, 1], [0, 0], [1, 1], transposed, [0, 0], groups, mask, out_val=(tuple(x), tuple(w), None)
        )
        for library in (mindtorch_v2, torch)
    )
    assert ours == theirs


def parameters(function):
    return [(p.name, p.kind, p.default) for p in inspect.signature(function).parameters.values()]


def test_names_and_signatures():
    ours, theirs = counter_of(mindtorch_v2), counter_of(torch)
    assert ours.__all__ == theirs.__all__
    named = [name for name, value in vars(theirs).items() if getattr(value, "__module__", "") == theirs.__name__]
    public = [name for name in named if not name.startswith("_")]
    assert [name for name in public if not hasattr(ours, name)] == []
    for name in public:
        ours_takes, theirs_takes = parameters(getattr(ours, name)), parameters(getattr(theirs, name))
        assert [p[0] for p in ours_takes] == [p[0] for p in theirs_takes], name
    for name in (n for n in vars(theirs.FlopCounterMode) if not n.startswith("_")):
        assert parameters(getattr(ours.FlopCounterMode, name)) == parameters(getattr(theirs.FlopCounterMode, name)), name


def test_the_registry_has_torchs_operators_that_are_here_and_attention_on_this_device():
    ours, theirs = ({str(op) for op in counter_of(library).flop_registry} for library in (mindtorch_v2, torch))
    missing = {name for name in theirs - ours if name.startswith("aten.")}
    assert [name for name in missing if mindtorch_v2._dispatch.registry.overloads(name.replace(".", "::"))] == []
    blocks = "aten._scaled_dot_product_flash_attention_for_cpu"
    layer = "aten.mkldnn_rnn_layer"  # torch: counted where it runs step by step
    assert ours - theirs == {blocks, f"{blocks}_backward", layer, f"{layer}_backward"}


def test_tracking_modules():
    def parents(library):
        tracker_class = importlib.import_module(f"{library.__name__}.utils.module_tracker").ModuleTracker
        seen = collections.Counter()
        nn = library.nn
        net = nn.Sequential(nn.Linear(2, 3), nn.Sequential(nn.Linear(3, 3), nn.Tanh()))

        class Spy(library.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                seen["forward", tuple(sorted(tracker.parents)), tracker.is_bw] += 1
                return x.clone()

            @staticmethod
            def backward(ctx, grad):
                seen["backward", tuple(sorted(tracker.parents)), tracker.is_bw] += 1
                return grad

        for layer in (net[0], net[1][0], net[1][1]):
            forward = layer.forward
            layer.forward = lambda x, forward=forward: Spy.apply(forward(Spy.apply(x)))
        with tracker_class() as tracker:
            net(library.ones(4, 2, requires_grad=True)).sum().backward()
        return seen, tracker.parents

    assert parents(mindtorch_v2) == parents(torch)
