"""`torch.nn.utils` against torch's: normalisations, parametrizations, pruning, fusing, calls with other parameters."""

import numpy as np
import pytest

import mindtorch_v2 as mt
import mindtorch_v2.nn.utils.prune

pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore")]

X = (4, 6)


@pytest.fixture(autouse=True)
def pruning_is_imported():
    import torch.nn.utils.prune  # noqa: F401 - which nothing else does


def linear(lib):
    return lib.nn.Linear(6, 4)


HOOKS = {
    "weight norm": (lambda lib: lib.nn.utils.weight_norm(linear(lib)), X),
    "weight norm of all": (lambda lib: lib.nn.utils.weight_norm(linear(lib), dim=None), X),
    "weight norm of a convolution": (lambda lib: lib.nn.utils.weight_norm(lib.nn.Conv1d(2, 3, 2), dim=1), (2, 2, 5)),
    "weight norm of an LSTM": (lambda lib: lib.nn.utils.weight_norm(lib.nn.LSTM(6, 4), "weight_hh_l0"), X),
    "weight norm of a bias": (lambda lib: lib.nn.utils.weight_norm(linear(lib), "bias"), X),
    "spectral norm": (lambda lib: lib.nn.utils.spectral_norm(linear(lib), n_power_iterations=3), X),
    "spectral norm of a convolution": (lambda lib: lib.nn.utils.spectral_norm(lib.nn.ConvTranspose1d(2, 3, 2)), (2, 2, 5)),
    "both removed": (
        lambda lib: lib.nn.utils.remove_weight_norm(
            lib.nn.utils.weight_norm(lib.nn.utils.remove_spectral_norm(lib.nn.utils.spectral_norm(linear(lib))))
        ),
        X,
    ),
}


@pytest.mark.parametrize("eval_mode", [False, True])
@pytest.mark.parametrize(("make", "shape"), HOOKS.values(), ids=HOOKS)
def test_hooks(make, shape, eval_mode):
    from module_comparison import compare_without_copies

    compare_without_copies(make, [shape], eval_mode=eval_mode)


def register(lib, *steps, unsafe=False, module=None):
    module = linear(lib) if module is None else module
    for step in steps:
        lib.nn.utils.parametrize.register_parametrization(module, "weight", step(lib), unsafe=unsafe)
    return module


def doubled(lib):
    class Doubled(lib.nn.Module):
        def forward(self, x):
            return x * 2

        def right_inverse(self, x):
            return x / 2

    return Doubled()


def summed(lib):
    class Summed(lib.nn.Module):
        def forward(self, a, b):
            return a + b

        def right_inverse(self, x):
            return x - 1, lib.ones_like(x)

    return Summed()


def symmetric(lib):
    class Symmetric(lib.nn.Module):
        def forward(self, x):
            return x.triu() + x.triu(1).T

    return Symmetric()


def of(name, *args, module=linear, **options):
    return lambda lib: getattr(lib.nn.utils.parametrizations, name)(module(lib), *args, **options)


def square(lib):
    return lib.nn.Linear(6, 6)


def batched(lib):
    class Batched(lib.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = lib.nn.Parameter(lib.randn(2, 6, 3))

        def forward(self, x):
            return x @ self.weight

    return Batched()


PARAMETRIZATIONS = {
    "own": lambda lib: register(lib, doubled),
    "two": lambda lib: register(lib, doubled, doubled),
    "several tensors": lambda lib: register(lib, summed, doubled),
    "without inverse": lambda lib: register(lib, symmetric, module=square(lib)),
    "weight norm": of("weight_norm"),
    "weight norm of all": of("weight_norm", dim=None),
    "spectral norm": of("spectral_norm"),
    "spectral norm of a vector": of("spectral_norm", "bias"),
    "spectral norm by columns": of("spectral_norm", dim=1, n_power_iterations=2),
    "orthogonal": of("orthogonal"),
    "orthogonal square": of("orthogonal", module=square),
    "orthogonal tall": of("orthogonal", module=lambda lib: lib.nn.Linear(6, 9)),
    "orthogonal batch": of("orthogonal", module=batched),
    "cayley": of("orthogonal", orthogonal_map="cayley", module=square),
    "cayley wide": of("orthogonal", orthogonal_map="cayley"),
    "exponential wide": of("orthogonal", orthogonal_map="matrix_exp"),
    "householder without base": of("orthogonal", orthogonal_map="householder", use_trivialization=False),
    "exponential without base": of("orthogonal", use_trivialization=False, module=square),
}


@pytest.mark.parametrize("make", PARAMETRIZATIONS.values(), ids=PARAMETRIZATIONS)
@pytest.mark.parametrize("eval_mode", [False, True])
def test_parametrizations(make, eval_mode):
    from module_comparison import compare

    compare(make, [X], eval_mode=eval_mode, pickled=False, exact=False)


@pytest.mark.parametrize("name", ["own", "several tensors", "weight norm", "spectral norm", "orthogonal square", "orthogonal tall"])
def test_parametrizations_are_assigned_to_and_removed(name):
    import torch
    from module_comparison import same

    def found(lib):
        lib.manual_seed(0)
        module = PARAMETRIZATIONS[name](lib)
        P = lib.nn.utils.parametrize
        seen = [
            type(module).__name__,
            P.is_parametrized(module),
            P.is_parametrized(module, "bias"),
            P.type_before_parametrizations(module).__name__,
        ]
        parameters = len(list(module.parameters()))
        start = lib.arange(float(module.weight.numel())).reshape(module.weight.shape) + lib.eye(*module.weight.shape) * 20
        with lib.no_grad():
            module.weight = lib.linalg.qr(start)[0] if "orthogonal square" in name else start / 10
        seen += [parameters, module.weight.detach(), dict(module.state_dict())]
        with P.cached():
            seen.append(module.weight is module.weight)
        seen.append(module.weight is module.weight)
        P.remove_parametrizations(module, "weight")
        seen += [type(module).__name__, dict(module.state_dict()), isinstance(module.weight, lib.nn.Parameter), repr(module)]
        return seen

    same(found(mt), found(torch), rtol=1e-4)


def wrong(lib, forward, right_inverse=None):
    members = {"forward": lambda self, x: forward(lib, x)}
    if right_inverse is not None:
        members["right_inverse"] = lambda self, x: right_inverse(lib, x)
    return type("Wrong", (lib.nn.Module,), members)()


ERRORS = {
    "no such tensor": lambda lib: lib.nn.utils.parametrize.register_parametrization(linear(lib), "x", lib.nn.Identity()),
    "no tensor": lambda lib: register(lib, lambda lib: wrong(lib, lambda lib, x: 3)),
    "dtype": lambda lib: register(lib, lambda lib: wrong(lib, lambda lib, x: x.double())),
    "shape": lambda lib: register(lib, lambda lib: wrong(lib, lambda lib, x: x[0])),
    "dtype of inverse": lambda lib: register(lib, lambda lib: wrong(lib, lambda lib, x: x, lambda lib, x: x.double())),
    "type of inverse": lambda lib: register(lib, lambda lib: wrong(lib, lambda lib, x: x, lambda lib, x: 3)),
    "types of inverses": lambda lib: register(lib, lambda lib: wrong(lib, lambda lib, x: x, lambda lib, x: [3])),
    "second's dtype": lambda lib: register(lib, doubled, lambda lib: wrong(lib, lambda lib, x: x.double())),
    "second's shape": lambda lib: register(lib, doubled, lambda lib: wrong(lib, lambda lib, x: x[0])),
    "second's inverse": lambda lib: register(lib, doubled, lambda lib: wrong(lib, lambda lib, x: x, lambda lib, x: 3)),
    "shape of second's inverse": lambda lib: register(lib, doubled, lambda lib: wrong(lib, lambda lib, x: x, lambda lib, x: x[0])),
    "assigned without inverse": lambda lib: setattr(register(lib, symmetric, module=square(lib)), "weight", lib.zeros(6, 6)),
    "not parametrized": lambda lib: lib.nn.utils.parametrize.remove_parametrizations(linear(lib), "weight"),
    "several left": lambda lib: lib.nn.utils.parametrize.remove_parametrizations(
        register(lib, summed), "weight", leave_parametrized=False
    ),
    "pickled": lambda lib: __import__("pickle").dumps(register(lib, doubled)),
    "no list": lambda lib: lib.nn.utils.parametrize.ParametrizationList([], lib.zeros(1)),
    "orthogonal bias": of("orthogonal", "bias"),
    "orthogonal nothing": of("orthogonal", "x"),
    "orthogonal map": of("orthogonal", orthogonal_map="x"),
    "householder complex": lambda lib: lib.nn.utils.parametrizations.orthogonal(
        lib.nn.Linear(3, 3, dtype=lib.complex64), orthogonal_map="householder"
    ),
    "assigned to a wrong shape": lambda lib: setattr(of("orthogonal")(lib), "weight", lib.zeros(3, 3)),
    "assigned without base": lambda lib: setattr(
        of("orthogonal", use_trivialization=False, module=square)(lib), "weight", lib.zeros(6, 6)
    ),
    "spectral dim": of("spectral_norm", dim=3),
    "spectral steps": of("spectral_norm", n_power_iterations=0),
    "spectral nothing": of("spectral_norm", "x"),
    "weight norm twice": lambda lib: lib.nn.utils.weight_norm(lib.nn.utils.weight_norm(linear(lib))),
    "spectral norm twice": lambda lib: (m := lib.nn.utils.spectral_norm(linear(lib)), lib.nn.utils.spectral_norm(m)),
    "spectral norm of None": lambda lib: lib.nn.utils.spectral_norm(lib.nn.Linear(2, 2, bias=False), "bias"),
    "no weight norm": lambda lib: lib.nn.utils.remove_weight_norm(linear(lib)),
    "no spectral norm": lambda lib: lib.nn.utils.remove_spectral_norm(linear(lib)),
    "old steps": lambda lib: lib.nn.utils.spectral_norm(linear(lib), n_power_iterations=0),
    "amount": lambda lib: lib.nn.utils.prune.random_unstructured(linear(lib), "weight", 1.5),
    "amount's type": lambda lib: lib.nn.utils.prune.random_unstructured(linear(lib), "weight", "x"),
    "amount too large": lambda lib: lib.nn.utils.prune.l1_unstructured(linear(lib), "weight", 99),
    "channels of a vector": lambda lib: lib.nn.utils.prune.random_structured(linear(lib), "bias", 1, 0),
    "channels of no dimension": lambda lib: lib.nn.utils.prune.ln_structured(linear(lib), "weight", 1, 2, 3),
    "not pruned": lambda lib: lib.nn.utils.prune.remove(linear(lib), "weight"),
    "scores": lambda lib: lib.nn.utils.prune.l1_unstructured(linear(lib), "weight", 1, lib.zeros(2)),
    "mask": lambda lib: lib.nn.utils.prune.custom_from_mask(linear(lib), "weight", lib.zeros(2)),
    "global": lambda lib: lib.nn.utils.prune.global_unstructured(3, lib.nn.utils.prune.L1Unstructured),
    "fused in training": lambda lib: lib.nn.utils.fuse_conv_bn_eval(lib.nn.Conv2d(1, 1, 1), lib.nn.BatchNorm2d(1)),
    "fused widths": lambda lib: lib.nn.utils.fuse_linear_bn_eval(linear(lib).eval(), lib.nn.BatchNorm1d(3).eval()),
    "no module": lambda lib: lib.nn.utils.skip_init(lib.nn.ReLU),
    "call with unknown keys": lambda lib: lib.nn.utils.stateless.functional_call(
        linear(lib), {"x": lib.zeros(1)}, lib.zeros(X), strict=True
    ),
    "call below nothing": lambda lib: lib.nn.utils.stateless.functional_call(linear(lib), {"x.y": lib.zeros(1)}, lib.zeros(X)),
    "call with a number": lambda lib: lib.nn.utils.stateless.functional_call(linear(lib), {"weight": 3}, lib.zeros(X)),
    "no vector": lambda lib: lib.nn.utils.vector_to_parameters([1.0], linear(lib).parameters()),
}


@pytest.mark.parametrize("action", ERRORS.values(), ids=ERRORS)
def test_errors(action):
    from module_comparison import compare_errors

    compare_errors(action)


def test_the_old_weight_norm_warns():
    from module_comparison import compare_warnings

    compare_warnings(lambda lib: lib.nn.utils.weight_norm(linear(lib)))


def twice(lib, first, second):
    module = linear(lib)
    first(lib.nn.utils.prune, module)
    second(lib.nn.utils.prune, module)
    return module


PRUNED = {
    "nothing": lambda lib: lib.nn.utils.prune.identity(linear(lib), "weight"),
    "elements": lambda lib: lib.nn.utils.prune.random_unstructured(linear(lib), "weight", 5),
    "small elements": lambda lib: lib.nn.utils.prune.l1_unstructured(linear(lib), "weight", 0.3),
    "by scores": lambda lib: lib.nn.utils.prune.l1_unstructured(linear(lib), "weight", 7, lib.arange(24.0).reshape(4, 6)),
    "channels": lambda lib: lib.nn.utils.prune.random_structured(linear(lib), "weight", 2, 1),
    "small channels": lambda lib: lib.nn.utils.prune.ln_structured(linear(lib), "weight", 0.5, 2, 0),
    "largest norm": lambda lib: lib.nn.utils.prune.ln_structured(linear(lib), "weight", 2, float("inf"), -1),
    "mask": lambda lib: lib.nn.utils.prune.custom_from_mask(linear(lib), "weight", lib.arange(24.0).reshape(4, 6) % 2),
    "twice": lambda lib: twice(
        lib, lambda p, m: p.l1_unstructured(m, "weight", 4), lambda p, m: p.ln_structured(m, "weight", 1, 1, 1)
    ),
    "elements twice": lambda lib: twice(
        lib, lambda p, m: p.random_unstructured(m, "weight", 4), lambda p, m: p.l1_unstructured(m, "weight", 0.5)
    ),
    "removed": lambda lib: lib.nn.utils.prune.remove(lib.nn.utils.prune.l1_unstructured(linear(lib), "weight", 0.5), "weight"),
}


@pytest.mark.parametrize("make", PRUNED.values(), ids=PRUNED)
def test_pruning(make):
    from module_comparison import compare_without_copies

    compare_without_copies(make, [X])


def test_pruning_together():
    from module_comparison import compare_without_copies

    def make(lib):
        net = lib.nn.Sequential(lib.nn.Linear(6, 5), lib.nn.Linear(5, 2))
        pairs = [(net[0], "weight"), (net[1], "weight")]
        lib.nn.utils.prune.global_unstructured(pairs, lib.nn.utils.prune.L1Unstructured, amount=0.4)
        assert lib.nn.utils.prune.is_pruned(net)
        return net

    compare_without_copies(make, [X])


def trained(lib, norm):
    norm.running_mean.copy_(lib.arange(float(norm.num_features)))
    norm.running_var.copy_(lib.arange(float(norm.num_features)) + 0.5)
    return norm.eval()


FUSED = {
    "convolution": (
        lambda lib: lib.nn.utils.fuse_conv_bn_eval(lib.nn.Conv2d(2, 4, 3).eval(), trained(lib, lib.nn.BatchNorm2d(4))),
        (2, 2, 5, 5),
    ),
    "transposed": (
        lambda lib: lib.nn.utils.fuse_conv_bn_eval(
            lib.nn.ConvTranspose1d(2, 4, 3).eval(), trained(lib, lib.nn.BatchNorm1d(4)), True
        ),
        (2, 2, 5),
    ),
    "no affine, no bias": (
        lambda lib: lib.nn.utils.fuse_conv_bn_eval(
            lib.nn.Conv2d(2, 4, 3, bias=False).eval(), trained(lib, lib.nn.BatchNorm2d(4, affine=False))
        ),
        (2, 2, 5, 5),
    ),
    "linear": (lambda lib: lib.nn.utils.fuse_linear_bn_eval(linear(lib).eval(), trained(lib, lib.nn.BatchNorm1d(4))), X),
}


@pytest.mark.parametrize(("make", "shape"), FUSED.values(), ids=FUSED)
def test_fusing(make, shape):
    from module_comparison import compare

    compare(make, [shape], eval_mode=True)


def test_calls_with_other_parameters():
    from module_comparison import compare_without_copies

    def tied(lib):
        net = lib.nn.Sequential(lib.nn.Linear(6, 6), lib.nn.BatchNorm1d(6), lib.nn.Linear(6, 6))
        net[2].weight = net[0].weight
        return net

    def call(lib, module, x, weight):
        given = {"0.weight": weight, "1.running_mean": lib.zeros(6, dtype=x.dtype)}
        out = lib.nn.utils.stateless.functional_call(module, given, (x,))
        return [out, given["1.running_mean"], module(x)]

    compare_without_copies(tied, [X, (6, 6)], call)


def test_other_helpers():
    import torch
    from module_comparison import same

    def found(lib):
        lib.manual_seed(0)
        net = lib.nn.Sequential(lib.nn.Conv2d(2, 3, 2), lib.nn.Conv3d(2, 3, 2))
        lib.nn.utils.convert_conv2d_weight_memory_format(net, lib.channels_last)
        lib.nn.utils.convert_conv3d_weight_memory_format(net, lib.channels_last_3d)
        empty = lib.nn.utils.skip_init(lib.nn.Linear, 3, 4)
        empty.weight.data.fill_(1), empty.bias.data.fill_(2)
        vector = lib.nn.utils.parameters_to_vector(empty.parameters())
        lib.nn.utils.vector_to_parameters(vector * 2, empty.parameters())
        for p in net.parameters():
            p.grad = lib.ones_like(p)
        norm = lib.nn.utils.get_total_norm([p.grad for p in net.parameters()])
        lib.nn.utils.clip_grads_with_norm_(net.parameters(), 1.0, norm)
        return [
            net[0].weight.stride(), net[1].weight.stride(), str(empty.weight.device), tuple(empty.weight.shape), vector,
            [p.detach() for p in empty.parameters()], norm, [p.grad for p in net.parameters()],
        ]  # fmt: skip

    ours, theirs = found(mt), found(torch)
    same(ours, theirs, rtol=1e-6)


def test_old_checkpoints_are_read():
    """Of weight normalisation by hooks, and of spectral normalisation before its version 1."""
    import torch
    from module_comparison import same

    def found(lib):
        lib.manual_seed(0)
        old = lib.nn.utils.weight_norm(linear(lib)).state_dict()
        new = lib.nn.utils.parametrizations.weight_norm(linear(lib))
        new.load_state_dict(old)
        spectral = lib.nn.utils.spectral_norm(lib.nn.Linear(4, 6))
        spectral(lib.ones(2, 4))
        state = spectral.state_dict()
        version = dict(state._metadata[""])
        before = {k: v.clone() for k, v in state.items() if k != "weight_v"}
        before["weight"] = spectral.weight.detach().clone()
        spectral.load_state_dict(before)
        return [new.weight, version, dict(spectral.state_dict())]

    same(found(mt), found(torch), rtol=1e-4)


def test_parametrizations_are_transferred():
    import torch
    from module_comparison import same

    def found(lib):
        lib.manual_seed(0)
        source, target = register(lib, summed, doubled), linear(lib)
        lib.nn.utils.parametrize.transfer_parametrizations_and_params(source, target)
        return [
            np.array(target.weight.tolist()),
            repr(target),
            target.parametrizations.weight.original0 is source.parametrizations.weight.original0,
        ]

    (ours, *rest), (theirs, *expected) = found(mt), found(torch)
    np.testing.assert_allclose(ours, theirs, rtol=1e-6)
    same(rest, expected)
