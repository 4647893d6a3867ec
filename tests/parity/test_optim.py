"""Every optimiser of torch.optim next to PyTorch's: weights, state, operators, texts."""

import copy
import inspect
import pickle
import warnings

import numpy as np
import pytest
import torch as reference

import mindtorch_v2 as torch

pytestmark = pytest.mark.parity

LIBRARIES = (reference, torch)
FOREACH = [{}, {"foreach": True}]
FUSED = [*FOREACH, {"fused": True}]

# optimiser → ways to run it, and options of which each set is tried in each way
OPTIMIZERS = {
    "Adadelta": (FOREACH, [{}, {"rho": 0.7, "eps": 1e-3, "weight_decay": 0.1}, {"maximize": True}, {"maximize": True, "weight_decay": 0.1}]),
    "Adagrad": (FUSED, [{"lr": 0.1}, {"lr_decay": 0.1, "weight_decay": 0.1, "initial_accumulator_value": 0.5, "eps": 1e-3}, {"maximize": True}]),
    "Adam": (FUSED, [{"lr": 0.1}, {"amsgrad": True, "weight_decay": 0.1, "maximize": True}, {"weight_decay": 0.2, "decoupled_weight_decay": True}]),
    "AdamW": (FUSED, [{"lr": 0.1}, {"amsgrad": True, "betas": (0.8, 0.9)}]),
    "Adamax": (FOREACH, [{"lr": 0.1}, {"betas": (0.8, 0.9), "eps": 1e-3, "weight_decay": 0.1}, {"maximize": True}]),
    "ASGD": (FOREACH, [{"lr": 0.1}, {"lambd": 0.1, "alpha": 0.5, "t0": 3, "weight_decay": 0.1}, {"t0": 0, "maximize": True}]),
    "NAdam": (FOREACH, [{"lr": 0.1}, {"betas": (0.8, 0.9), "weight_decay": 0.1, "momentum_decay": 0.1}, {"weight_decay": 0.1, "decoupled_weight_decay": True, "maximize": True}]),
    "RAdam": (FOREACH, [{"lr": 0.1}, {"betas": (0.8, 0.9), "weight_decay": 0.1}, {"weight_decay": 0.1, "decoupled_weight_decay": True, "maximize": True}]),
    "RMSprop": (FOREACH, [{"lr": 0.1}, {"alpha": 0.8, "momentum": 0.9, "weight_decay": 0.1}, {"centered": True}, {"centered": True, "momentum": 0.9, "maximize": True}]),
    "Rprop": (FOREACH, [{"lr": 0.1}, {"etas": (0.3, 1.5), "step_sizes": (1e-3, 0.2)}, {"maximize": True}]),
    "SGD": (FUSED, [{"lr": 0.1}, {"momentum": 0.9, "dampening": 0.1, "weight_decay": 0.1}, {"momentum": 0.9, "nesterov": True, "maximize": True}]),
}  # fmt: skip
REAL_ONLY = {
    "Adafactor": (
        FOREACH,
        [{"lr": 0.1}, {"beta2_decay": -0.5, "eps": (1e-2, 1e-2), "d": 2.0, "weight_decay": 0.1}, {"maximize": True}],
    ),
}
VARIANTS = [
    pytest.param(name, {**options, **how}, id=f"{name} { ({**options, **how}) }")
    for name, (ways, sets) in {**OPTIMIZERS, **REAL_ONLY}.items()
    for how in ways
    for options in sets
]
COMPLEX = [v for v in VARIANTS if v.values[0] in OPTIMIZERS and not v.values[1].get("fused")]
SHAPES = ((4, 5), (3,), (), (2, 3, 4))


def arrays(shapes, dtype, count, seed=0):
    """`count` lists of arrays, some of them of small numbers and zeros."""
    rng = np.random.default_rng(seed)

    def one(shape):
        made = rng.standard_normal(shape) * 10.0 ** rng.integers(-3, 1)
        if np.issubdtype(dtype, np.complexfloating):
            made = made + 1j * rng.standard_normal(shape)
        return np.asarray(made).astype(dtype)

    return [[one(shape) for shape in shapes] for _ in range(count)]


def make(library, name, options, dtype=np.float32, shapes=SHAPES):
    (values,) = arrays(shapes, dtype, 1)
    params = [library.tensor(v).requires_grad_() for v in values]
    return params, getattr(library.optim, name)(params, **options)


def run(library, params, optimizer, grads):
    for of_step in grads:
        for p, g in zip(params, of_step, strict=True):
            p.grad = library.tensor(g)
        optimizer.step()


def plain(value):
    """Tensors as arrays, in containers of any kind."""
    if isinstance(value, reference.Tensor | torch.Tensor):
        return value.detach().numpy().copy()
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(plain(v) for v in value)
    return value


def assert_same(ours, theirs, rtol=1e-5, atol=1e-6, path=""):
    if isinstance(theirs, dict):
        assert list(ours) == list(theirs), path
        for key in theirs:
            assert_same(ours[key], theirs[key], rtol, atol, f"{path}.{key}")
    elif isinstance(theirs, list | tuple):
        assert len(ours) == len(theirs), path
        for i, (a, b) in enumerate(zip(ours, theirs, strict=True)):
            assert_same(a, b, rtol, atol, f"{path}[{i}]")
    elif isinstance(theirs, np.ndarray):
        assert (ours.dtype, ours.shape, ours.strides) == (theirs.dtype, theirs.shape, theirs.strides), path
        np.testing.assert_allclose(ours, theirs, rtol=rtol, atol=atol, err_msg=path)
    else:
        assert type(ours) is type(theirs), path
        assert ours == theirs or ours == pytest.approx(theirs, rel=rtol), path


# --- values -----------------------------------------------------------------------------------------------------------


def after_steps(library, name, options, dtype, shapes=SHAPES, steps=8):
    params, optimizer = make(library, name, options, dtype, shapes)
    run(library, params, optimizer, arrays(shapes, dtype, steps, seed=1))
    return plain(params), plain(optimizer.state_dict())


@pytest.mark.parametrize(("name", "options"), VARIANTS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_weights_and_state_after_eight_steps(name, options, dtype):
    theirs, ours = (after_steps(library, name, options, dtype) for library in LIBRARIES)
    # torch: the rate of ASGD over lists is a power in float32, whatever the parameters are
    double = dtype is np.float64 and not (name == "ASGD" and options.get("foreach"))
    tolerance = (1e-9, 1e-11) if double else (2e-5, 2e-6)
    assert_same(ours, theirs, *tolerance)


@pytest.mark.parametrize(("name", "options"), COMPLEX)
def test_complex_parameters(name, options):
    theirs, ours = (after_steps(library, name, options, np.complex64) for library in LIBRARIES)
    assert_same(ours, theirs, 2e-5, 2e-6)


@pytest.mark.parametrize(
    ("name", "foreach"),
    [
        (name, foreach)
        for name in [*OPTIMIZERS, *REAL_ONLY]
        for foreach in ((None,) if name in ("Adam", "AdamW") else (None, True))  # torch refuses it: test_refusals
    ],
)
def test_a_learning_rate_that_is_a_tensor(name, foreach):
    for shape in ((), (1,)):
        found = []
        for library in LIBRARIES:
            lr = library.full(shape, 0.1)
            params, state = after_steps(library, name, {"lr": lr, "foreach": foreach}, np.float32, steps=4)
            found.append((params, state["state"]))
        assert_same(found[1], found[0], 2e-5, 2e-6)


def test_muon():
    for options in ({}, {"lr": 0.1, "nesterov": False, "weight_decay": 0.0}, {"adjust_lr_fn": "match_rms_adamw", "ns_steps": 3}):
        theirs, ours = (after_steps(library, "Muon", options, np.float32, ((4, 6), (6, 4), (3, 3))) for library in LIBRARIES)
        lr = options.get("lr", 1e-3)
        # the direction is computed in bfloat16, whose products torch rounds in another order
        assert_same(ours, theirs, 1e-5, 8 * lr * 2**-7)


@pytest.mark.filterwarnings("ignore:Sparse invariant checks")
@pytest.mark.parametrize("name", ["SGD", "Adagrad", "SparseAdam"])
@pytest.mark.parametrize("maximize", [False, True])
def test_sparse_gradients(name, maximize):
    found = []
    for library in LIBRARIES:
        table = library.nn.Embedding(6, 3, sparse=True)
        with library.no_grad():
            table.weight.copy_(library.tensor(arrays(((6, 3),), np.float32, 1)[0][0]))
        optimizer = getattr(library.optim, name)(table.parameters(), lr=0.1, maximize=maximize)
        for i in range(4):
            optimizer.zero_grad()
            (table(library.tensor([0, 2, 2, 5 - i])) ** 2).sum().backward()
            optimizer.step()
        found.append((plain(table.weight), plain(optimizer.state_dict())))
    assert_same(found[1], found[0])


# --- operators and scopes ---------------------------------------------------------------------------------------------


def operators(library, name, options):
    """The operators that a step calls itself, in order, as a profile has them; without those of bookkeeping."""
    shapes = ((3, 2), (4,))
    params, optimizer = make(library, name, options, shapes=shapes)
    grads = arrays(shapes, np.float32, 2, seed=1)
    run(library, params, optimizer, grads[:1])
    for p, g in zip(params, grads[1], strict=True):
        p.grad = library.tensor(g)
    with library.profiler.profile(activities=[library.profiler.ProfilerActivity.CPU]) as prof:
        optimizer.step()
    scope = f"Optimizer.step#{name}.step"
    (step,) = (e for e in prof.events() if e.name == scope)
    return [e.name for e in step.cpu_children if e.name not in BOOKKEEPING]


# torch's rows that are not imitated: numbers from tensors and back, memory, views
BOOKKEEPING = {
    "aten::" + name
    for name in "item _local_scalar_dense empty empty_like empty_strided to detach detach_ as_strided result_type is_nonzero "
    "lift_fresh resolve_conj".split()
}


@pytest.mark.parametrize(("name", "options"), VARIANTS)
def test_a_step_runs_torchs_operators(name, options):
    theirs, ours = (operators(library, name, options) for library in LIBRARIES)
    assert ours == theirs
    assert ours


# --- state dicts, copies, texts ---------------------------------------------------------------------------------------


def to_library(library, value):
    """Arrays as tensors of a library."""
    if isinstance(value, np.ndarray):
        return library.tensor(value)
    if isinstance(value, dict):
        return {k: to_library(library, v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(to_library(library, v) for v in value)
    return value


@pytest.mark.parametrize("name", [*OPTIMIZERS, *REAL_ONLY])
@pytest.mark.parametrize("source", LIBRARIES, ids=["from torch", "to torch"])
def test_a_state_dict_goes_from_one_library_to_the_other(name, source):
    target = torch if source is reference else reference
    options = OPTIMIZERS.get(name, REAL_ONLY.get(name))[1][1]
    first, rest = arrays(SHAPES, np.float32, 3, seed=1), arrays(SHAPES, np.float32, 3, seed=2)
    params, optimizer = make(source, name, options)
    run(source, params, optimizer, first)
    others, other = make(target, name, {})
    with target.no_grad():
        for p, q in zip(params, others, strict=True):
            q.copy_(target.tensor(plain(p)))
    other.load_state_dict(to_library(target, plain(optimizer.state_dict())))
    run(source, params, optimizer, rest)
    run(target, others, other, rest)
    assert_same(plain(others), plain(params), 2e-5, 2e-6)
    assert_same(plain(other.state_dict()), plain(optimizer.state_dict()), 2e-5, 2e-6)


@pytest.mark.parametrize("name", [*OPTIMIZERS, *REAL_ONLY])
def test_old_state_with_counts_that_are_numbers(name):
    """State of older versions has counts that are no tensors."""
    found = []
    for library in LIBRARIES:
        _, optimizer = make(library, name, {"lr": 0.1})
        params = optimizer.param_groups[0]["params"]
        run(library, params, optimizer, arrays(SHAPES, np.float32, 2, seed=1))
        saved = optimizer.state_dict()
        for state in saved["state"].values():
            for key in ("step", "mu_product", "eta", "mu"):
                if key in state:
                    state[key] = state[key].item()
        for group in saved["param_groups"]:
            for key in ("foreach", "maximize", "differentiable", "capturable", "fused"):
                group.pop(key, None)
        if name == "Adafactor":
            saved["param_groups"][0]["maximize"] = False
        _, other = make(library, name, {"lr": 0.1})
        other.load_state_dict(saved)
        found.append(plain(other.state_dict()))
    groups = [f["param_groups"][0] for f in found]
    assert groups[1] == groups[0]  # in any order
    assert_same(found[1]["state"], found[0]["state"], 2e-5, 2e-6)


@pytest.mark.parametrize("name", [*OPTIMIZERS, *REAL_ONLY, "LBFGS", "SparseAdam"])
def test_text_defaults_and_signature(name):
    theirs, ours = (getattr(library.optim, name) for library in LIBRARIES)
    optimizers = []
    for library in LIBRARIES:
        groups = [{"params": [library.ones(2, requires_grad=True)]}, {"params": [library.ones(1, requires_grad=True)], "lr": 0.5}]
        optimizers.append(getattr(library.optim, name)(groups[:1] if name == "LBFGS" else groups))
    assert repr(optimizers[1]) == repr(optimizers[0])
    assert list(optimizers[1].defaults.items()) == list(optimizers[0].defaults.items())
    assert list(optimizers[1].param_groups[0])[1:] == list(optimizers[0].param_groups[0])[1:]
    shown = [[(n, p.default, p.kind) for n, p in inspect.signature(cls).parameters.items()] for cls in (theirs, ours)]
    assert shown[1] == shown[0]


FUNCTIONS = {
    name.lower(): name.lower() for name in OPTIMIZERS
} | {"_adafactor": "adafactor", "_muon": "muon", "_functional": "sparse_adam"}  # fmt: skip


@pytest.mark.parametrize(("module", "name"), FUNCTIONS.items())
def test_functions_have_torchs_signatures(module, name):
    import importlib

    functions = [getattr(importlib.import_module(f"{library.__name__}.optim.{module}"), name) for library in LIBRARIES]
    shown = [[(n, p.default, p.kind) for n, p in inspect.signature(f).parameters.items()] for f in functions]
    if name == "adamw":  # passes everything on
        return
    assert shown[1] == shown[0]


@pytest.mark.parametrize("name", [*OPTIMIZERS, *REAL_ONLY])
@pytest.mark.parametrize("how", [copy.deepcopy, lambda o: pickle.loads(pickle.dumps(o))], ids=["deepcopy", "pickle"])
def test_copies_go_on_like_the_original(name, how):
    params, optimizer = make(torch, name, {"lr": 0.1})
    run(torch, params, optimizer, arrays(SHAPES, np.float32, 2, seed=1))
    other = how(optimizer)
    copies = other.param_groups[0]["params"]
    more = arrays(SHAPES, np.float32, 2, seed=2)
    run(torch, params, optimizer, more)
    run(torch, copies, other, more)
    assert_same(plain(copies), plain(params), 0, 0)


# --- refusals ---------------------------------------------------------------------------------------------------------


def outcome(call, library):
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            call(library)
    except Exception as error:
        return type(error).__name__, str(error)
    return None


def stepped(name, sparse=False, dtype=None, shape=(2,), **options):
    def call(library):
        p = library.ones(shape, dtype=dtype and getattr(library, dtype)).requires_grad_()
        optimizer = getattr(library.optim, name)([p], **options)
        grad = library.ones_like(p)
        p.grad = grad.to_sparse() if sparse else grad
        optimizer.step()

    return call


def made(name, **options):
    return lambda library: getattr(library.optim, name)([library.ones(2, requires_grad=True)], **options)


WRONG = {
    "Adadelta": [{"lr": -1}, {"rho": 1.1}, {"rho": -1}, {"eps": -1}, {"weight_decay": -1}, {"lr": float("nan")}],
    "Adagrad": [{"lr": -1}, {"lr_decay": -0.5}, {"weight_decay": -1}, {"initial_accumulator_value": -1}, {"eps": -1}, {"fused": True, "foreach": True}, {"fused": True, "differentiable": True}],
    "Adam": [{"lr": -1}, {"eps": -1}, {"betas": (1.0, 0.1)}, {"betas": (0.1, 1)}, {"weight_decay": -1}, {"betas": (0, 0.5)}],
    "Adamax": [{"lr": -1}, {"eps": -1}, {"betas": (0.0, 1.0)}, {"betas": (-1, 1.0)}, {"weight_decay": -1}],
    "ASGD": [{"lr": -1}, {"weight_decay": -0.5}],
    "NAdam": [{"lr": -1}, {"eps": -1}, {"betas": (1.0, 0.0)}, {"weight_decay": -1}, {"momentum_decay": -0.2}],
    "RAdam": [{"lr": -1}, {"eps": -1}, {"betas": (0.5, 1.0)}, {"weight_decay": -1}],
    "RMSprop": [{"lr": -1}, {"eps": -1}, {"momentum": -1.0}, {"weight_decay": -1}, {"alpha": -1}],
    "Rprop": [{"lr": -1}, {"etas": (1.0, 0.5)}],
    "SGD": [{"lr": -1}, {"momentum": -0.5}, {"weight_decay": -1}, {"nesterov": True}],
    "SparseAdam": [{"lr": 0}, {"lr": -1}, {"eps": 0}, {"betas": (1.0, 0.0)}],
    "Adafactor": [{"lr": -1}, {"beta2_decay": 0.8}, {"eps": (-1, 1)}, {"eps": (None, -1)}, {"d": 0.0}, {"weight_decay": -1}],
    "Muon": [{"lr": -1}, {"momentum": -1}, {"weight_decay": -1}, {"adjust_lr_fn": "arbitrary"}, {}],
    "LBFGS": [{"lr": -1}],
}  # fmt: skip
REFUSALS = {f"{name} {options}": made(name, **options) for name, sets in WRONG.items() for options in sets}
REFUSALS |= {
    f"{name} tensor lr": lambda library, name=name: made(name, lr=library.ones(2))(library)
    for name in [*OPTIMIZERS, "LBFGS", "SparseAdam"]
}
REFUSALS |= {f"{name} sparse": stepped(name, sparse=True) for name in [*OPTIMIZERS, "Adafactor"] if name not in ("SGD", "Adagrad")}
REFUSALS |= {
    f"{name} capturable {foreach}": stepped(name, capturable=True, foreach=foreach)
    for name in OPTIMIZERS
    if name not in ("SGD", "Adagrad")
    for foreach in (None, True)
}
REFUSALS |= {
    f"{name} differentiable foreach": stepped(name, differentiable=True, foreach=True) for name in OPTIMIZERS if name != "SGD"
}
REFUSALS |= {f"{name} fused complex": stepped(name, fused=True, dtype="complex64") for name in ("Adam", "SGD", "Adagrad", "AdamW")}
REFUSALS |= {
    "Adam foreach tensor lr": lambda library: made("Adam", lr=library.tensor(0.1), foreach=True)(library),
    "Adam tensor and number": lambda library: made("Adam", betas=(library.tensor(0.1), 0.1))(library),
    "Adam tensor of betas": lambda library: made("Adam", betas=(library.ones(2), library.ones(2)))(library),
    "Adagrad sparse weight decay": stepped("Adagrad", sparse=True, weight_decay=0.1),
    "Adagrad fused sparse": stepped("Adagrad", sparse=True, fused=True),
    "SGD fused sparse": stepped("SGD", sparse=True, fused=True),
    "SparseAdam dense": stepped("SparseAdam"),
    "SparseAdam complex": lambda library: library.optim.SparseAdam([library.ones(1), library.ones(1, dtype=library.complex64)]),
    "SparseAdam sparse": lambda library: library.optim.SparseAdam([library.ones(2).to_sparse()]),
    "Adafactor complex": stepped("Adafactor", dtype="complex64"),
    "Muon complex": stepped("Muon", dtype="complex64", shape=(2, 2)),
    "Muon steps": stepped("Muon", shape=(2, 2), ns_steps=100),
    "Muon coefficients": stepped("Muon", shape=(2, 2), ns_coefficients=(1, 2)),
    "LBFGS groups": lambda library: library.optim.LBFGS([{"params": [library.ones(1)]}, {"params": [library.ones(1)]}]),
    "LBFGS search": lambda library: library.optim.LBFGS([p := library.ones(1, requires_grad=True)], line_search_fn="x").step(
        lambda: ((loss := (p * p).sum()).backward(), loss)[1]
    ),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_refusals(case):
    theirs, ours = (outcome(REFUSALS[case], library) for library in LIBRARIES)
    assert theirs is not None
    assert ours == theirs
