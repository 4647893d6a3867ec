"""The number of threads, and kernels that are split over them."""

import os
import subprocess
import sys
import threading

import numpy as np
import pytest
from threadpoolctl import threadpool_info

import mindtorch_v2 as torch
from mindtorch_v2 import _refusals, _thread_pool, _threads
from mindtorch_v2._backends.cpu.machinery import blas, parallel
from mindtorch_v2._dispatch import keys, registry
from mindtorch_v2.profiler import profile

N = 80_000  # elements of a tensor that counts as large


@pytest.fixture
def threads():
    """Sets the number of threads, and back at the end."""
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


@pytest.fixture
def eager(monkeypatch, threads):
    """Kernels are split over three threads however little they have to do. The list has the number of parts of each."""
    splits = []

    def run(work, parts, number):
        splits.append(len(parts))
        _thread_pool.run(work, parts, number)

    monkeypatch.setattr(parallel, "WORTH_NS", 0)
    monkeypatch.setattr(parallel, "_PART_NS", 1)
    monkeypatch.setattr(parallel, "run", run)
    threads(3)
    return splits


def on_one_thread(function):
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return function()
    finally:
        torch.set_num_threads(before)


def assert_same(ours, theirs):
    """The same bits in the same layout."""
    a, b = ours.detach()._array, theirs.detach()._array
    assert (a.dtype, a.shape, a.strides) == (b.dtype, b.shape, b.strides)
    assert np.ascontiguousarray(a).tobytes() == np.ascontiguousarray(b).tobytes()


class TestNumber:
    def test_it_is_what_it_is_set_to(self, threads):
        for number in (1, 2, 5):
            threads(number)
            assert torch.get_num_threads() == number
        threads(np.int64(3))
        assert torch.get_num_threads() == 3

    @pytest.mark.parametrize(
        ("variables", "number"),
        [
            ({"OMP_NUM_THREADS": "1"}, 1),
            ({"OMP_NUM_THREADS": "2"}, 2),
            ({"OMP_NUM_THREADS": " 3 , 2"}, 3),
            ({"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "2"}, 2),
            ({"OMP_NUM_THREADS": "2", "MKL_NUM_THREADS": "0"}, 2),
            ({"OMP_NUM_THREADS": "-2"}, 4),
            ({"OMP_NUM_THREADS": "many"}, 4),
            ({"OMP_NUM_THREADS": "+3"}, 3),
            ({"OMP_NUM_THREADS": "3,x"}, 4),
            ({"OMP_NUM_THREADS": "3,"}, 4),
            ({"MKL_NUM_THREADS": " 2"}, 1),
            ({"MKL_NUM_THREADS": "2x"}, 1),
            ({"MKL_NUM_THREADS": "many", "OMP_NUM_THREADS": "3"}, 1),
            ({"MKL_NUM_THREADS": "", "OMP_NUM_THREADS": "3"}, 3),
            ({"OMP_NUM_THREADS": "9"}, 4),
            ({}, 4),
        ],
    )
    def test_the_environment_says_it_up_to_the_cores(self, monkeypatch, variables, number):
        monkeypatch.setattr(_threads, "_cores", lambda: {frozenset((i, i + 8)) for i in range(8)})
        monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1, 2, 3, 8, 9}, raising=False)
        for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS"):
            monkeypatch.delenv(name, raising=False)
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        assert _threads._from_environment() == number

    def test_cores_of_this_machine(self):
        assert 1 <= len(_threads._cores()) <= os.cpu_count()

    def test_interop_threads_are_set_once(self, monkeypatch):
        monkeypatch.setattr(_threads, "_interop", 0)
        monkeypatch.setattr(_refusals, "_warned", set())
        assert torch.get_num_interop_threads() == len(_threads._cores())
        with pytest.warns(UserWarning, match="operators run on the thread that calls them"):
            torch.set_num_interop_threads(3)
        assert torch.get_num_interop_threads() == 3
        with pytest.raises(RuntimeError, match="cannot set number of interop threads after"):
            torch.set_num_interop_threads(3)

    def test_importing_starts_no_threads(self):
        program = (
            "import mindtorch_v2 as torch; torch.ones(4, 4) @ torch.ones(4, 4); import sys; print('threadpoolctl' in sys.modules)"
        )
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=True)
        assert done.stdout == "False\n"


class TestLarge:
    """Which tensors have the key."""

    @pytest.mark.parametrize(
        "make",
        [
            lambda: torch.zeros(N),
            lambda: torch.ones(200, 400),
            lambda: torch.empty(N),
            lambda: torch.full((N,), 2.0),
            lambda: torch.rand(N),
            lambda: torch.randn(N),
            lambda: torch.arange(N),
            lambda: torch.tensor(np.ones(N)),
            lambda: torch.from_numpy(np.ones(N)),
            lambda: torch.zeros(N).to(torch.float64),
            lambda: torch.nn.Linear(200, 200).weight,
            lambda: torch.zeros(N).view(200, 400)[:1],
            lambda: torch.ones(N).exp() + 1,
            lambda: torch.cat([torch.ones(N // 2)] * 2),
        ],
    )
    def test_large_ones_and_their_views(self, make, threads):
        threads(2)
        assert make()._keys & keys.LARGE

    @pytest.mark.parametrize(
        "make",
        [lambda: torch.zeros(3), lambda: torch.ones(N).sum(), lambda: torch.ones(N)[:5] + 1, lambda: torch.ones(N)[:5].clone()],
    )
    def test_small_ones(self, make, threads):
        threads(2)
        assert not make()._keys & keys.LARGE

    def test_one_thread_runs_the_functions_that_small_tensors_run(self, threads):
        threads(1)
        x = torch.ones(N)
        mul = registry.find("aten::mul", "Tensor")
        x * x
        torch.ones(2) * torch.ones(2)
        assert mul.table[keys.CPU | keys.LARGE] is mul.table[keys.CPU]
        threads(2)
        x * x
        assert mul.table[keys.CPU | keys.LARGE] is not mul.table[keys.CPU]


X = torch.linspace(-3, 3, N)
LAYOUTS = {  # made where they are used: a tensor that is computed on one thread does not have the key
    "rows": lambda: X.view(4, 100, 200),
    "transposed": lambda: X.view(4, 100, 200).transpose(0, 2),
    "channels last": lambda: X.view(4, 10, 10, 200).contiguous(memory_format=torch.channels_last),
    "strided": lambda: X.view(4, 100, 200)[:, ::2, 1:],
    "expanded": lambda: X[:400].view(1, 400, 1).expand(3, 400, 100),
}


class TestPointwise:
    @pytest.mark.parametrize("layout", LAYOUTS)
    @pytest.mark.parametrize("name", ["exp", "neg", "sqrt", "sin", "sigmoid", "floor", "log1p", "erf"])
    def test_one_operand(self, eager, layout, name):
        x = LAYOUTS[layout]()
        ours = getattr(torch, name)(x)
        assert eager or not x.is_contiguous()
        assert_same(ours, on_one_thread(lambda: getattr(torch, name)(x)))

    @pytest.mark.parametrize("layout", LAYOUTS)
    @pytest.mark.parametrize("name", ["add", "div", "atan2", "lt", "maximum", "fmod", "pow"])
    def test_two_operands(self, eager, layout, name):
        x = LAYOUTS[layout]()
        function = getattr(torch, name)
        for y in (
            x,
            x * 2,
            x[:1],
            x.flatten()[:1].view(1, 1),
            x.select(0, 0),
            x.contiguous(),
            torch.tensor(2.0),
            x.to(torch.float64),
        ):
            assert_same(function(x, y), on_one_thread(lambda: function(x, y)))  # noqa: B023

    @pytest.mark.parametrize(
        "dtype", [torch.float16, torch.bfloat16, torch.float64, torch.int64, torch.uint8, torch.bool, torch.complex64]
    )
    def test_dtypes(self, eager, dtype):
        x, y = X.to(dtype), X.flip(0).to(dtype)
        assert_same(x + y, on_one_thread(lambda: x + y))
        assert_same(x == y, on_one_thread(lambda: x == y))
        assert_same(x.exp(), on_one_thread(x.exp))
        assert eager

    @pytest.mark.parametrize("layout", ["rows", "transposed", "channels last", "strided"])
    def test_in_place(self, eager, layout):
        def results():
            x = LAYOUTS[layout]().clone()
            x.mul_(x).add_(2).sub_(x[:1].clone()).exp_().sigmoid_().clamp_(0.1, 0.6)
            y = x.to(torch.float64)
            x += y
            return x

        assert_same(results(), on_one_thread(results))
        assert eager

    def test_shapes_that_do_not_fit(self, eager):
        with pytest.raises(RuntimeError, match="must match the size"):
            torch.ones(N) + torch.ones(N - 1)
        with pytest.raises(RuntimeError, match="doesn't match the broadcast shape"):
            torch.ones(N).add_(torch.ones(2, N))
        x = torch.ones(N + 1)
        with pytest.raises(RuntimeError, match="single memory location"):
            x[1:].add_(x[:-1])

    def test_errors_of_kernels(self, eager):
        whole = torch.ones(N, dtype=torch.int64)
        divisor = whole.clone()
        divisor[-1] = 0
        for function in (torch.remainder, torch.floor_divide):
            with pytest.raises(RuntimeError, match="ZeroDivisionError"):
                function(whole, divisor)
        with pytest.raises(RuntimeError, match="with two bool tensors"):
            whole.bool() - whole.bool()

    def test_no_warnings_of_numpy(self, eager):
        x = torch.zeros(N)
        assert (x / x).isnan().all()
        assert (x.log() == -torch.inf).all()
        assert torch.full((N,), 1e38).mul_(1e38).isinf().all()

    def test_the_number_may_change_while_kernels_run(self, eager, threads):
        wanted, wrong, done = on_one_thread(X.exp), [], threading.Event()

        def compute():
            while not done.is_set():
                if not torch.equal(X.exp(), wanted):
                    wrong.append(1)

        callers = [threading.Thread(target=compute) for _ in range(3)]
        for caller in callers:
            caller.start()
        for i in range(60):
            threads(1 + i % 4)
            X.exp()
        done.set()
        for caller in callers:
            caller.join()
        assert not wrong

    def test_gradients(self, eager):
        def gradient():
            x = X.clone().requires_grad_()
            (torch.nn.functional.gelu(x) * x.tanh() + x.sigmoid()).sum().backward()
            return x.grad

        assert_same(gradient(), on_one_thread(gradient))


A = torch.from_numpy(np.sin(np.linspace(-3, 3, N, dtype=np.float32))).view(40, 20, 100)
IMAGES = A.view(10, 4, 40, 50)
REDUCTIONS = {
    "sum": lambda: A.abs().sum(),
    "sum of integers": lambda: (A * 100).to(torch.int32).sum(),
    "mean": lambda: A.mean(),
    "mean of float64": lambda: A.double().mean(),
    "max": lambda: A.max(),
    "min": lambda: A.min(),
    "any": lambda: (A > 0).any(),
    "all": lambda: (A > 0).all(),
    **{
        f"{name} along {dim}": lambda name=name, dim=dim: getattr(torch, name)(A, dim)
        for name in ("sum", "mean", "amax", "argmin", "max", "var", "std_mean", "cumsum", "sort", "softmax", "log_softmax", "all")
        for dim in (-1, 0, 1)
    },
    "sum along two": lambda: A.sum((1, 2), keepdim=True),
    "sum along the first, kept": lambda: A.sum(0, keepdim=True),
    "sum along all": lambda: A.abs().sum((0, 1, 2)),
    "norm": lambda: torch.linalg.vector_norm(A, dim=2),
    "topk": lambda: torch.topk(A, 3, dim=2),
    "max_pool2d": lambda: torch.nn.functional.max_pool2d(IMAGES, 3, 2, 1, return_indices=True),
    "avg_pool2d": lambda: torch.nn.functional.avg_pool2d(IMAGES, 2),
    "layer_norm": lambda: torch.nn.functional.layer_norm(A, (20, 100), A[0], A[1]),
    "bmm": lambda: torch.bmm(A, A.mT),
}


def tensors_of(result):
    return [result] if isinstance(result, torch.Tensor) else list(result)


class TestReductions:
    @pytest.mark.parametrize("name", REDUCTIONS)
    def test_it_is_close_to_one_thread(self, eager, name):
        ours = tensors_of(REDUCTIONS[name]())
        assert eager or name.endswith(" along 0")
        for x, y in zip(ours, on_one_thread(lambda: tensors_of(REDUCTIONS[name]())), strict=True):
            assert (x.dtype, x.shape, x.stride()) == (y.dtype, y.shape, y.stride())
            torch.testing.assert_close(x, y, rtol=2e-6, atol=2e-5)

    @pytest.mark.parametrize("name", ["sum", "mean", "var along 0", "layer_norm"])
    def test_it_is_the_same_each_time(self, eager, name):
        """Parts depend on the size and the number of threads, so deterministic algorithms have nothing to fix."""
        first = tensors_of(REDUCTIONS[name]())
        for _ in range(20):
            for x, y in zip(first, tensors_of(REDUCTIONS[name]()), strict=True):
                assert_same(x, y)

    def test_gradients(self, eager):
        def gradients():
            x, weight, bias = (t.clone().requires_grad_() for t in (A, A[0], A[1]))
            y = torch.nn.functional.layer_norm(x, (20, 100), weight, bias).softmax(1).log_softmax(2).view(10, 4, 40, 50)
            y = torch.nn.functional.avg_pool2d(torch.nn.functional.max_pool2d(y, 2), 2)
            (y * y).sum().backward()
            return x.grad, weight.grad, bias.grad

        for x, y in zip(gradients(), on_one_thread(gradients), strict=True):
            torch.testing.assert_close(x, y, rtol=2e-5, atol=2e-5)
        assert len(eager) > 10

    def test_errors_are_the_same(self, eager):
        for call in (
            lambda: A.sum(3),
            lambda: A.softmax(-4),
            lambda: torch.topk(A, 3, dim=True),
            lambda: torch.nn.functional.layer_norm(A, (3,)),
            lambda: torch.bmm(A, A),
            lambda: torch.nn.functional.max_pool2d(IMAGES, 2, padding=2),
            lambda: torch.nn.functional.avg_pool2d(IMAGES[None], 2),
        ):
            with pytest.raises((RuntimeError, IndexError, TypeError)) as ours:
                call()
            with pytest.raises((RuntimeError, IndexError, TypeError)) as theirs:
                on_one_thread(call)
            assert (ours.type, str(ours.value)) == (theirs.type, str(theirs.value))


class TestCopies:
    @pytest.mark.parametrize("layout", LAYOUTS)
    def test_copies_and_casts(self, eager, layout):
        def results():
            x = LAYOUTS[layout]()
            y = torch.empty_like(x)
            filled = torch.empty(x.shape).fill_(2).zero_().copy_(x)
            return x.clone(), x.contiguous(), x.to(torch.float64), x.to(torch.int32), x.to(torch.float16), y.copy_(x), filled

        for x, y in zip(results(), on_one_thread(results), strict=True):
            assert_same(x, y)
        assert eager

    def test_overlapping_memory(self, eager):
        def shifted():
            x = torch.arange(N + 1)
            x[1:].copy_(x[:-1].clone())
            return x

        assert_same(shifted(), on_one_thread(shifted))

    @pytest.mark.parametrize(
        "function",
        [
            lambda x: torch.where(x > 0, x, x * 2),
            lambda x: x.masked_fill(x > 0, 3),
            lambda x: x.clone().masked_fill_(x > 0, 3),
            lambda x: x.clamp(-1, 1),
            lambda x: x.clone().clamp_(min=x * 2),
            lambda x: x.relu(),
            lambda x: torch.lerp(x, x * 2, 0.3),
            lambda x: x.clone().lerp_(x * 2, 0.3).addcmul_(x, x, value=2).addcdiv_(x, x.exp()),
        ],
    )
    def test_other_elementwise_operators(self, eager, function):
        assert_same(function(X), on_one_thread(lambda: function(X)))
        assert len(eager) > 0


def positions(*shape, below):
    return torch.from_numpy(np.random.default_rng(0).integers(0, below, shape))


class TestGathers:
    """Elements are moved, and the bits are the same for any number of threads."""

    @pytest.mark.parametrize(
        "function",
        [
            lambda x: torch.cat([x, x * 2]),
            lambda x: torch.cat([x, x[:, :30].contiguous(), x], 1),
            lambda x: torch.cat([x[None], x[None]], -2),
            lambda x: torch.stack([x, x + 1], 1),
            lambda x: x.index_select(0, positions(300, below=200)),
            lambda x: x.index_select(-1, positions(300, below=400)),
            lambda x: x.view(20, 10, 400).index_select(1, positions(30, below=10).int()),
            lambda x: x[positions(30, 9, below=200)],
            lambda x: x[positions(300, below=200) - 200],
            lambda x: x[:, positions(300, below=400)],
            lambda x: x[positions(30, 9, below=200), positions(30, 9, below=400)],
            lambda x: x[positions(300, below=200) - 200, positions(300, below=400).int() - 100],
            lambda x: x.view(20, 10, 400)[positions(300, below=20), positions(300, below=20) - 10],
            lambda x: x.view(20, 10, 400)[positions(300, below=20), positions(300, below=10), positions(300, below=400)],
            lambda x: x.gather(0, positions(300, 390, below=200)),
            lambda x: x.gather(1, positions(190, 500, below=400)),
            lambda x: x.view(20, 10, 400).gather(-2, positions(19, 30, 400, below=10)),
            lambda x: torch.nn.functional.embedding(positions(40, 11, below=200), x),
        ],
    )
    def test_they_are_the_same_elements(self, eager, function):
        x = X.view(200, 400)
        ours = function(x)
        assert eager
        assert_same(ours, on_one_thread(lambda: function(x)))

    @pytest.mark.parametrize(
        "function",
        [
            lambda x: torch.cat([x, x.to(torch.float64)]),
            lambda x: torch.cat([x.t(), x.t()]),
            lambda x: torch.cat([x, torch.empty(0)]),
            lambda x: x[x > 1],
            lambda x: x[positions(30, below=200), positions(3, 30, below=400)],
            lambda x: x.view(20, 10, 400)[:, positions(300, below=10), positions(300, below=400)],
            lambda x: x.t()[positions(300, below=400)],
        ],
    )
    def test_what_is_left_to_one_thread(self, eager, function):
        x = X.view(200, 400)
        assert_same(function(x), on_one_thread(lambda: function(x)))

    def test_errors_are_the_same(self, eager):
        x = X.view(200, 400)
        for call in (
            lambda: x[positions(30, below=9) + 195],
            lambda: x[positions(30, below=200) - 205],
            lambda: x.index_select(0, positions(30, below=200) - 5),
            lambda: x.index_select(2, positions(30, below=200)),
            lambda: x.gather(1, positions(200, 300, below=500)),
            lambda: x.gather(1, positions(300, 300, below=400)),
            lambda: torch.cat([x, x[:, :3].contiguous()]),
            lambda: torch.cat([x, x], 2),
        ):
            with pytest.raises((RuntimeError, IndexError)) as ours:
                call()
            with pytest.raises((RuntimeError, IndexError)) as theirs:
                on_one_thread(call)
            assert (ours.type, str(ours.value)) == (theirs.type, str(theirs.value))


@pytest.mark.parametrize("pool", ["max_pool3d", "avg_pool3d"])
def test_pooling_of_volumes(eager, pool):
    values = np.random.default_rng(0).standard_normal((4, 10, 10, 12, 20)).astype(np.float32)

    def pooled():
        x = torch.from_numpy(values).requires_grad_()
        y = getattr(torch.nn.functional, pool)(x, 3, stride=2, padding=1)
        forward = len(eager)
        y.backward(torch.full(y.shape, 0.5))
        return forward, y, x.grad

    forward, *ours = pooled()
    assert len(eager) > forward > 0
    for x, y in zip(ours, on_one_thread(pooled)[1:], strict=True):
        assert_same(x, y)


class TestGroupNorm:
    @pytest.mark.parametrize("affine", [True, False])
    @pytest.mark.parametrize("shape", [(8, 12, 30, 50), (600, 12, 20)])
    def test_results_and_gradients_are_those_of_one_thread(self, eager, affine, shape):
        values = np.random.default_rng(0).standard_normal(shape).astype(np.float32)

        def found():
            x, norm = torch.from_numpy(values).requires_grad_(), torch.nn.GroupNorm(4, 12, affine=affine)
            y = norm(x)
            forward = len(eager)
            y.backward(torch.from_numpy(values[::-1].copy()))
            return forward, len(eager) - forward, [y, x.grad, *(p.grad for p in norm.parameters())]

        forward, backward, ours = found()
        assert min(forward, backward) > 0
        for x, y in zip(ours, on_one_thread(found)[2], strict=True):
            assert x.stride() == y.stride()
            torch.testing.assert_close(x, y, rtol=1e-5, atol=1e-5 * y.abs().max().item())

    def test_a_kernel_that_refuses_says_so_of_the_whole(self, eager):
        x = torch.ones(8, 12, 30, 50)
        with pytest.raises(
            RuntimeError, match="Expected 144000 elements in 4 groups of channels, but got N = 8, C = 12 and HxW = 7"
        ):
            torch.native_group_norm(x, None, None, 8, 12, 7, 4, 1e-5)


@pytest.mark.parametrize("number", [2, 3])
def test_numbers_of_threads(number, threads):
    """Moved and pointwise results have the same bits for any number; sums are close, and the same each time."""
    values = np.random.default_rng(0).standard_normal((64, 96, 20, 20)).astype(np.float32)

    def found():
        x = torch.from_numpy(values)
        moved = [torch.cat([x, x], 1), x.index_select(0, positions(99, below=64)), x.exp(), x * 2 + x, x.to(torch.float64)]
        return moved, [torch.nn.functional.group_norm(x, 8), x.sum((0, 2, 3)), x.softmax(1), x.mean()]

    moved, summed = on_one_thread(found)
    threads(number)
    same, close = found()
    again = found()
    for x, y in zip(same, moved, strict=True):
        assert_same(x, y)
    for x, y in zip(close, summed, strict=True):
        torch.testing.assert_close(x, y, rtol=1e-5, atol=1e-5)
    for x, y in zip([*same, *close], [*again[0], *again[1]], strict=True):
        assert_same(x, y)


@pytest.mark.parametrize("fused", [False, True])
@pytest.mark.parametrize("kind", ["SGD", "Adam", "AdamW", "Adagrad"])
def test_optimizer_steps(eager, kind, fused):
    def trained():
        p = X.clone().view(200, 400).requires_grad_()
        optimizer = getattr(torch.optim, kind)([p], lr=0.1, fused=fused)
        for _ in range(3):
            optimizer.zero_grad()
            (p * p).sum().backward()
            optimizer.step()
        return p

    ours = trained()
    assert eager
    eager.clear()
    p = X.clone().requires_grad_()
    p.grad = X.clone()
    optimizer = getattr(torch.optim, kind)([p], lr=0.1, fused=fused)
    eager.clear()
    optimizer.step()
    assert eager  # the step by itself
    torch.testing.assert_close(ours, on_one_thread(trained), rtol=1e-6, atol=1e-6)


def blas_threads():
    return {x["num_threads"] for x in threadpool_info() if x["user_api"] == "blas"}


class TestBatchNorm:
    @pytest.mark.parametrize("training", [True, False])
    @pytest.mark.parametrize("affine", [True, False])
    def test_results_gradients_and_statistics_are_those_of_one_thread(self, eager, training, affine):
        values = np.random.default_rng(0).standard_normal((4, 10, 40, 50)).astype(np.float32)

        def found():
            x, norm = torch.from_numpy(values).requires_grad_(), torch.nn.BatchNorm2d(10, affine=affine).train(training)
            y = norm(x)
            forward = len(eager)
            (y * y * x).sum().backward()
            return forward, [y, x.grad, *norm.buffers(), *(p.grad for p in norm.parameters())]

        forward, ours = found()
        assert forward
        for x, y in zip(ours, on_one_thread(found)[1], strict=True):
            assert x.stride() == y.stride()
            torch.testing.assert_close(x, y)

    def test_a_kernel_that_refuses_says_so_of_the_whole(self, eager):
        with pytest.raises(RuntimeError, match="running_mean should contain 10 elements not 3"):
            torch.nn.functional.batch_norm(torch.ones(4, 10, 40, 50), torch.ones(3), torch.ones(10))


# images, weight, stride, padding, dilation, groups
CONVOLUTIONS = {
    "by columns": ((3, 4, 30, 30), (6, 4, 3, 3), 1, 1, 1, 1),
    "many results by columns": ((3, 4, 30, 30), (130, 4, 3, 3), 1, 1, 1, 1),
    "small images": ((300, 20, 5, 5), (70, 20, 3, 3), 1, 0, 1, 1),
    "by bands": ((3, 16, 30, 30), (16, 16, 3, 3), 1, 1, 1, 1),
    "by tiles": ((6, 64, 8, 8), (64, 64, 3, 3), 1, 1, 1, 1),
    "gradients by tiles": ((6, 128, 8, 8), (128, 128, 3, 3), 1, 1, 1, 1),
    "by strided tiles": ((32, 32, 8, 8), (128, 32, 4, 4), 2, 1, 1, 1),
    "1×1": ((3, 5, 30, 30), (6, 5, 1, 1), 1, 0, 1, 1),
    "strided": ((20, 16, 30, 30), (8, 16, 3, 3), 2, 1, 1, 1),
    "dilated": ((3, 16, 30, 30), (8, 16, 3, 3), 1, 1, 2, 1),
    "groups": ((3, 20, 30, 30), (10, 10, 3, 3), 1, 1, 1, 2),
}


class TestConvolutions:
    @pytest.mark.parametrize("name", CONVOLUTIONS)
    def test_results_and_gradients_are_those_of_one_thread(self, eager, name):
        shape, weight_shape, *options = CONVOLUTIONS[name]
        rng = np.random.default_rng(0)
        image, weights = (rng.standard_normal(s).astype(np.float32) for s in (shape, weight_shape))

        def found():
            x, w = torch.from_numpy(image).requires_grad_(), torch.from_numpy(weights).requires_grad_()
            y = torch.nn.functional.conv2d(x, w, None, *options)
            forward = len(eager)
            (y * y).sum().backward()
            return forward, y, x.grad, w.grad

        forward, *ours = found()
        assert forward
        assert len(eager) > forward
        eager.clear()
        none, *theirs = on_one_thread(found)
        assert none == len(eager) == 0
        for x, y in zip(ours, theirs, strict=True):
            assert x.stride() == y.stride()
            torch.testing.assert_close(x, y, rtol=1e-5, atol=1e-5 * y.abs().max().item())


class TestProducts:
    @pytest.fixture
    def numbers(self, monkeypatch, threads):
        """The numbers that BLAS is set to."""
        threads(2)
        torch.ones(2) + 1  # BLAS is kept to one thread from the first operator on
        torch.addr(torch.ones(2, 2), torch.ones(2), torch.ones(2))  # SciPy's, as soon as it is loaded
        numbers, set_number = [], blas._set
        monkeypatch.setattr(blas, "_set", lambda number: (numbers.append(number), set_number(number)))
        return numbers

    def test_small_ones_have_one_thread(self, numbers):
        torch.ones(256, 256) @ torch.ones(256, 256)
        torch.ones(4, N) @ torch.ones(N, 2)
        torch.ones(4, N) @ torch.ones(N)
        assert numbers == []
        assert blas_threads() == {1}

    @pytest.mark.parametrize(
        "product",
        [
            lambda x: x @ x,
            lambda x: torch.addmm(x[0], x, x),
            lambda x: torch.bmm(x.expand(2, 300, 300), x.expand(2, 300, 300)),
            lambda x: torch.linalg.qr(x),
            lambda x: torch.nn.functional.conv2d(x.view(1, 300, 20, 15), torch.ones(300, 300, 1, 1)),  # a product is all of it
        ],
    )
    def test_large_ones_have_as_many_as_they_may(self, numbers, product, threads):
        x = torch.randn(300, 300)
        product(x)
        assert numbers == [2, 1]
        assert blas_threads() == {1}
        threads(1)
        numbers.clear()
        product(x)
        assert 2 not in numbers

    def test_an_error_sets_it_back(self, numbers):
        with pytest.raises(RuntimeError, match="cannot be multiplied"):
            torch.ones(300, 300) @ torch.ones(301, 300)
        assert numbers == [2, 1]

    def test_of_callers_at_once_the_last_sets_it_back(self, numbers):
        first, second = threading.Event(), threading.Event()

        def hold(a, b):
            first.set()
            second.wait(30)

        slow = blas.threaded(hold, lambda a, b: blas.LARGE_PRODUCT)
        thread = threading.Thread(target=slow, args=(1, 2))
        thread.start()
        first.wait(30)
        x = torch.randn(300, 300)
        assert_same(x @ x, x @ x)
        assert numbers == [2]
        second.set()
        thread.join()
        assert numbers == [2, 1]


class TestRecording:
    def test_a_recording_says_how_many_there_are(self, threads):
        for number in (1, 2):
            threads(number)
            with profile() as prof:
                torch.ones(2)
            assert prof.session.info.environment["threads"] == number

    def test_a_split_kernel_is_one_row_on_one_thread(self, eager):
        with profile(with_stack=True, profile_memory=True) as prof:
            X.exp()
        (event,) = [e for e in prof.events() if e.name == "aten::exp"]
        assert eager
        assert {e["thread_id"] for e in prof.events()} == {event["thread_id"]}

    def test_the_same_kernels_run(self, eager):
        X.exp() + X
        before = list(eager)
        eager.clear()
        with profile():
            X.exp() + X
        assert eager == before[-len(eager) :]
