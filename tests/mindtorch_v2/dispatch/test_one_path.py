"""Recording observes, it never chooses: the same kernels run, recorded or not."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import NamedTuple

import capture
import numpy as np
import pytest

import mindtorch_v2 as torch
from mindtorch_v2._dispatch import dispatcher, keys, registry
from mindtorch_v2._dispatch.codegen import Body
from mindtorch_v2._ops.machinery.calling import call_op

F = torch.nn.functional
SOURCES = Path(torch.__file__).parent
SAMPLES = capture.load()
OPERATORS = [pytest.param(op, id=capture.label(op)) for op in registry.all_ops() if capture.label(op) in SAMPLES]
RECORDING = [keys.PROFILER, keys.PROFILER | keys.NOTING, keys.EXECUTION_TRACE, keys.PROFILER | keys.EXECUTION_TRACE]


# --- by declaration -------------------------------------------------------------------------------------------------


class Made(NamedTuple):
    """What an operator's function is made of: the keys and the body that the backend gives, and all lines and names but those that record."""

    op: object
    given: int
    body: Body
    lines: list[str]
    names: dict[str, object]


def made_for(monkeypatch, full):
    """What each operator's function is made of, for a key set."""
    chosen, found = [], []
    choose = dispatcher._backend_body
    layers = {key: layer for key, layer in dispatcher._layers.items() if not key & (keys.RECORDING | keys.OBSERVING)}

    def kept(op, given):
        chosen.append((op, given, choose(op, given)))
        return chosen[-1][2]

    def compiled(name, parameters, lines, names, **options):
        found.append(Made(*chosen[-1], lines, names))

    with monkeypatch.context() as patch:
        patch.setattr(dispatcher, "_backend_body", kept)
        patch.setattr(dispatcher, "_layers", layers)
        patch.setattr(dispatcher, "compile_function", compiled)
        for op in registry.and_variants():
            dispatcher._compile(op, full)
    return found


def callables(names):
    """What is called, by name: functions that a body made for itself are told apart by where they are written."""
    return {name: getattr(value, "__code__", value) for name, value in names.items()}


@pytest.mark.parametrize("recording", RECORDING)
@pytest.mark.parametrize(
    "plain", [keys.CPU, keys.CPU | keys.NUMBER, keys.CPU | keys.AUTOGRAD, keys.META, keys.SPARSE, keys.CPU | keys.META]
)
def test_every_operator_has_the_same_body(monkeypatch, plain, recording):
    for unrecorded, recorded in zip(made_for(monkeypatch, plain), made_for(monkeypatch, plain | recording), strict=True):
        assert recorded.given == plain, recorded.op
        assert recorded.body.lines == unrecorded.body.lines, recorded.op
        assert recorded.lines == unrecorded.lines, recorded.op
        for one, other in ((unrecorded.body.names, recorded.body.names), (unrecorded.names, recorded.names)):
            assert callables(one) == callables(other), recorded.op


def test_only_the_dispatcher_and_the_profiler_know_whether_somebody_records():
    asking = re.compile(r"active_keys|keys\.(RECORDING|PROFILER|EXECUTION_TRACE|OBSERVING|NOTING|RECORD_)")
    found = {str(path.relative_to(SOURCES)) for path in SOURCES.rglob("*.py") if asking.search(path.read_text())}
    assert {name for name in found if not name.startswith(("_dispatch/", "profiler/"))} == set()


# --- by running -----------------------------------------------------------------------------------------------------

GENERATED = re.compile(r"<mindtorch_v2 (\w+::\S+) \d+>")


def calls_of(run):
    """Operators, kernels and NumPy functions that are called, in order; and the result."""
    seen = []

    def note(frame, event, function):
        if event == "call":
            path = frame.f_code.co_filename
            generated = GENERATED.match(path)
            if generated and frame.f_code.co_name != "<listcomp>":  # shapes of a list are read by one
                seen.append(generated[1])
            elif "_backends" in path:
                seen.append(f"{Path(path).stem}.{frame.f_code.co_name}")
        elif event == "c_call":
            of_array = isinstance(getattr(function, "__self__", None), np.ndarray)
            if of_array or str(getattr(function, "__module__", "")).startswith("numpy"):
                seen.append(function.__name__)

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        result = run()
    finally:
        sys.setprofile(before)
    return seen, result


def facts(result):
    """All there is to see of a result."""
    return [
        (t.dtype, tuple(t.shape), t.stride(), t._version, t.requires_grad, t.is_contiguous(), t._array.tobytes())
        if isinstance(t, torch.Tensor)
        else repr(t)
        for t in (result if isinstance(result, list | tuple) else [result])
    ]


def compare(run, **options):
    """Run both ways, twice each: first calls compile functions and look things up."""
    observed = []
    for recorded in (False, True):
        for _ in range(2):
            torch.manual_seed(0)
            if recorded:
                with torch.profiler.profile(**options):
                    calls, result = calls_of(run)
            else:
                calls, result = calls_of(run)
        observed.append((calls, facts(result)))
    (calls, result), (recorded_calls, recorded_result) = observed
    assert recorded_calls == calls
    assert recorded_result == result
    return calls


def copied(x):
    if isinstance(x, torch.Tensor):
        if x._keys & keys.SPARSE:
            return x.clone()
        return x.detach().clone().requires_grad_(x.requires_grad) if x.requires_grad else x.clone()
    return [copied(v) for v in x] if isinstance(x, list | tuple) else x


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("op", OPERATORS)
def test_the_same_calls_and_results(op):
    for sample in SAMPLES[capture.label(op)][:3]:
        arguments = [copied(sample) for _ in range(4)]

        def run(arguments=arguments):
            try:
                return call_op(op, arguments.pop())
            except (RuntimeError, NotImplementedError, IndexError, ValueError) as e:
                return str(e)

        if "empty" in op.name or "resize" in op.name:
            continue  # whose elements are whatever the memory holds
        compare(run)


X = torch.randn(8, 8)
ONE = torch.tensor([2.0])
CALLS = {
    "abs": lambda: torch.abs(X),
    "logical_and": lambda: torch.logical_and(X, X),
    "arange": lambda: torch.arange(8),
    "arange out=": lambda: torch.arange(8, out=torch.zeros(8)),
    "linspace": lambda: torch.linspace(0, 1, 7),
    "eye": lambda: torch.eye(4, 2),
    "zeros": lambda: torch.zeros(8, 8),
    "zeros of odd sizes": lambda: torch.zeros(np.int64(3), torch.tensor(2)),
    "ones_like": lambda: torch.ones_like(X.t()),
    "full": lambda: torch.full((8, 8), 3),
    "new_ones": lambda: X.new_ones(3),
    "randn": lambda: torch.randn(8, 8),
    "randint": lambda: torch.randint(5, (3,)),
    "repeat": lambda: X.repeat(2, 1, 2),
    "repeat_interleave": lambda: torch.repeat_interleave(torch.tensor([1, 2])),
    "item": lambda: ONE.item(),
    "bool": lambda: bool(ONE),
    "relu": lambda: X.relu(),
    "mean": lambda: X.mean(),
    "mean of rows": lambda: X.mean(1),
    "masked_fill": lambda: X.masked_fill(X > 0, 0.0),
    "add out=": lambda: torch.add(X, X, out=torch.zeros(8, 8)),
    "max out=": lambda: torch.max(X, 1, out=(torch.zeros(8), torch.zeros(8, dtype=torch.int64))),
    "index by a tuple": lambda: X[1, 2:5],
    "norm": lambda: torch.linalg.vector_norm(ONE),
    "cummax": lambda: torch.cummax(X, 0),
}


@pytest.mark.parametrize("name", CALLS)
def test_the_same_calls_of_what_users_write(name):
    assert compare(CALLS[name])


def training_step(model, make_input, make_optimizer):
    torch.manual_seed(0)
    model = model()
    optimizer = make_optimizer(model.parameters())

    def step():
        optimizer.zero_grad()
        loss = F.cross_entropy(model(make_input()), torch.tensor([0, 1, 2, 0]))
        loss.backward()
        optimizer.step()
        return loss.item()

    step()
    return step


class Attention(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.out, self.norm = torch.nn.Linear(8, 24), torch.nn.Linear(8, 3), torch.nn.LayerNorm(8)

    def forward(self, x):
        q, k, v = self.qkv(self.norm(x)).chunk(3, -1)
        mask = torch.ones(6, 6).tril() == 0
        weights = (q @ k.transpose(-1, -2)).masked_fill(mask, float("-inf")).softmax(-1)
        return self.out((weights @ v)[:, -1])


MODELS = {
    "mlp": (lambda: torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 3)), (4, 8)),
    "cnn": (
        lambda: torch.nn.Sequential(
            torch.nn.Conv2d(3, 6, 3, padding=1), torch.nn.BatchNorm2d(6), torch.nn.ReLU6(), torch.nn.Conv2d(6, 6, 3, groups=6),
            torch.nn.Conv2d(6, 4, 3, groups=2, dilation=2), torch.nn.MaxPool2d(2), torch.nn.Dropout(0.1), torch.nn.Flatten(),
            torch.nn.Linear(36, 3),
        ),
        (4, 3, 12, 12),
    ),
    "attention": (Attention, (4, 6, 8)),
}  # fmt: skip


@pytest.mark.parametrize("options", [{}, {"record_shapes": True}, {"profile_memory": True}], ids=str)
@pytest.mark.parametrize("optimizer", ["SGD", "AdamW"])
@pytest.mark.parametrize("name", MODELS)
def test_the_same_calls_of_a_training_step(name, optimizer, options):
    model, shape = MODELS[name]

    def run():
        # each of the four runs takes the second step of a model of its own
        step = training_step(model, lambda: torch.randn(shape), lambda p: getattr(torch.optim, optimizer)(p, lr=0.1))
        return step()

    assert len(compare(run, **options)) > 100
