"""What programs ask and set before they compute: devices, backends, threads, determinism, compilers, other processes."""

import os
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
from threadpoolctl import threadpool_info

import mindtorch_v2 as torch
from mindtorch_v2 import _refusals

SOURCE = Path(__file__).parent.parent.parent / "src"


@pytest.fixture(autouse=True)
def fresh_warnings(monkeypatch):
    """Each test sees the first warning."""
    monkeypatch.setattr(_refusals, "_warned", set())


class TestThreads:
    def test_they_are_shown(self):
        assert f"get_num_threads() : {torch.get_num_threads()}" in torch.__config__.parallel_info()
        assert "NumPy" in torch.__config__.show()


class TestSwitches:
    def test_cudnn_keeps_what_it_is_set_to(self):
        cudnn = torch.backends.cudnn
        with cudnn.flags(enabled=False, benchmark=True):
            assert (cudnn.enabled, cudnn.benchmark, cudnn.deterministic) == (False, True, False)
        assert (cudnn.enabled, cudnn.benchmark) == (True, False)
        cudnn.benchmark = True
        assert cudnn.benchmark
        assert cudnn.set_flags(_benchmark=False)[1] is True
        assert not cudnn.benchmark

    def test_attention(self):
        cuda = torch.backends.cuda
        assert (cuda.math_sdp_enabled(), cuda.flash_sdp_enabled()) == (True, False)
        with cuda.sdp_kernel(enable_flash=True, enable_math=False, enable_mem_efficient=False):
            assert (cuda.math_sdp_enabled(), cuda.flash_sdp_enabled()) == (False, True)
        assert (cuda.math_sdp_enabled(), cuda.flash_sdp_enabled()) == (True, False)

    def test_libraries_that_are_not_there(self):
        backends = torch.backends
        for name in ("cudnn", "mkldnn", "mps", "nnpack", "opt_einsum"):
            assert getattr(backends, name).is_available() is False
        loaded = {library["internal_api"] for library in threadpool_info()}
        assert backends.mkl.is_available() is ("mkl" in loaded)
        assert backends.quantized.supported_engines == ["none"]
        with pytest.raises(ValueError, match="not available"):
            backends.opt_einsum.set_flags(_enabled=True)


class TestAutocast:
    def test_as_a_decorator(self):
        @torch.autocast("cuda", enabled=False)
        def double(x):
            """Twice."""
            return 2 * x

        assert (double(2), double.__doc__) == (4, "Twice.")

    def test_custom_functions(self):
        class Twice(torch.autograd.Function):
            @staticmethod
            @torch.amp.custom_fwd(device_type="cuda")
            def forward(ctx, x):
                return 2 * x

            @staticmethod
            @torch.amp.custom_bwd(device_type="cuda")
            def backward(ctx, gradient):
                return 2 * gradient

        x = torch.ones(2, requires_grad=True)
        Twice.apply(x).sum().backward()
        assert x.grad.tolist() == [2, 2]

    def test_a_scaler_for_cuda_changes_nothing(self):
        scaler = torch.amp.GradScaler("cuda", enabled=False)
        loss = torch.ones(())
        assert scaler.scale(loss) is loss
        assert (scaler.is_enabled(), scaler.get_scale(), scaler.state_dict()) == (False, 1.0, {})

    def test_a_scaler_is_used_in_order(self):
        model = torch.nn.Linear(1, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        scaler = torch.amp.GradScaler("cpu")
        with pytest.raises(AssertionError, match="No inf checks"):
            scaler.update()
        scaler.scale(model(torch.ones(1)).sum()).backward()
        scaler.unscale_(optimizer)
        with pytest.raises(RuntimeError, match="already been called on this optimizer"):
            scaler.unscale_(optimizer)
        scaler.step(optimizer)
        with pytest.raises(RuntimeError, match="already been called since"):
            scaler.step(optimizer)
        other = torch.amp.GradScaler("cpu", init_scale=2.0)
        other.load_state_dict(scaler.state_dict())
        assert other.get_scale() == scaler.get_scale() == 65536.0


COMPILERS = {
    "torch.compile": lambda f: torch.compile(f),
    "torch.jit.script": lambda f: torch.jit.script(f),
    "torch.jit.trace": lambda f: torch.jit.trace(f, (torch.ones(2),)),
    "torch.jit.freeze": lambda f: torch.jit.freeze(f),
}


class TestCompilers:
    @pytest.mark.parametrize("name", COMPILERS)
    def test_they_give_back_what_they_are_given_and_warn_once(self, name):
        model = torch.nn.Linear(2, 2)
        with pytest.warns(UserWarning, match=f"{name} returns what it was given") as caught:
            assert COMPILERS[name](model) is model
        assert caught[0].filename == __file__
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert COMPILERS[name](model) is model

    def test_warnings_each_time(self):
        torch.set_warn_always(True)
        try:
            assert torch.is_warn_always_enabled()
            for _ in range(2):
                with pytest.warns(UserWarning, match=r"torch\.compile"):
                    torch.compile(len)
        finally:
            torch.set_warn_always(False)

    def test_a_backend_that_torch_does_not_know(self):
        for call in (lambda: torch.compile(len, backend="inductr"), lambda: torch.compile(backend="inductr")):
            with pytest.raises(RuntimeError, match=r"Invalid backend: 'inductr'.* inductor"):
                call()
        with pytest.warns(UserWarning, match=r"torch\.compile"):
            assert torch.compile(len, backend="eager") is len

    def test_decorators(self, monkeypatch):
        def f(x):
            return x + 1

        with pytest.warns(UserWarning, match=r"torch\.compile"):
            assert torch.compile(mode="max-autotune")(f) is f
        assert torch.compile(f, disable=True) is f
        for decorator in (
            torch.jit.ignore,
            torch.jit.ignore(drop=True),
            torch.jit.unused,
            torch.jit.export,
            torch.jit.script_method,
            torch.jit.script_if_tracing,
            torch.compiler.disable,
            torch.compiler.disable(recursive=False),
            torch.compiler.allow_in_graph,
            torch._dynamo.disable,
        ):
            assert decorator(f) is f
        assert not torch._dynamo.config.suppress_errors
        monkeypatch.setattr(torch._dynamo.config, "suppress_errors", True)
        torch._dynamo.reset()
        config = torch._dynamo.config
        with config.patch(verbose=True), config.patch("unheard_of", 3):
            assert (config.verbose, config.unheard_of) == (True, 3)
        assert not config.verbose
        assert not hasattr(config, "unheard_of")
        assert config.patch({"verbose": True})(lambda: config.verbose)()
        with torch.compiler.set_stance("force_eager"):
            pass
        model = torch.nn.Linear(2, 2)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert model.compile() is None

    def test_a_script_module_is_a_module(self):
        class Net(torch.jit.ScriptModule):
            def forward(self, x):
                return x + 1

        assert Net()(torch.ones(1)).item() == 2
        assert not isinstance(torch.nn.Linear(2, 2), torch.jit.ScriptModule)


@pytest.mark.parametrize(
    "call",
    [
        "torch.jit.save(None, 'f')",
        "torch.jit.load('f')",
        "torch.export.export(None, ())",
        "torch.export.Dim('batch')",
        "torch.onnx.export(None, (), 'f')",
        "torch._dynamo.explain(len)",
        "torch.distributed.tensor.DTensor()",
        "torch.distributed.fsdp.fully_shard(torch.nn.Linear(2, 2))",
        "torch.nn.parallel.replicate(torch.nn.Linear(2, 2), [0])",
        "torch.hub.load('pytorch/vision', 'resnet18')",
        "torch.hub.load_state_dict_from_url('https://example.org/a.pth', '.')",
    ],
)
def test_what_cannot_work_refuses_when_used(call):
    with pytest.raises(NotImplementedError, match=r"is not part of mindtorch_v2: .*\. See docs/compatibility\.md"):
        eval(call)


def test_what_refuses_can_be_named():
    assert torch.onnx.export.__name__ == "export"
    assert torch.distributed.is_available() is True
    assert torch.distributed.ReduceOp.SUM != torch.distributed.ReduceOp.MAX
    assert torch.onnx.TrainingMode.EVAL == 0


def test_hub_loads_from_a_folder(tmp_path):
    (tmp_path / "parts.py").write_text("width = 3\n")
    (tmp_path / "hubconf.py").write_text(
        "dependencies = ['json']\nimport parts\ndef model(height, *, bias=True):\n    'A model.'\n    return parts.width, height, bias\n"
    )
    assert torch.hub.load(str(tmp_path), "model", 4, source="local", bias=False) == (3, 4, False)
    assert torch.hub.list(str(tmp_path)) == ["model"]
    assert torch.hub.help(str(tmp_path), "model") == "A model."
    assert str(tmp_path) not in sys.path
    with pytest.raises(RuntimeError, match="Cannot find callable nothing in hubconf"):
        torch.hub.load(str(tmp_path), "nothing", source="local")
    (tmp_path / "hubconf.py").write_text("dependencies = ['no_such_package']\n")
    with pytest.raises(RuntimeError, match="Missing dependencies: no_such_package"):
        torch.hub.list(str(tmp_path))
    sys.modules.pop("parts", None)


def test_a_checkpoint_that_was_downloaded_before(tmp_path):
    torch.save({"w": torch.ones(2)}, tmp_path / "m.pth")
    found = torch.hub.load_state_dict_from_url("https://example.org/x/m.pth?raw=1", model_dir=str(tmp_path))
    assert found["w"].tolist() == [1, 1]


SPAWNING = """
import sys
import torch
import torch.multiprocessing as mp

def work(index, factor, queue):
    queue.put((index, (torch.ones(2) * factor).tolist()))

def fail(index):
    if index == 1:
        raise ValueError("the reason")

def leave(index):
    sys.exit(3)

if __name__ == "__main__":
    queue = mp.get_context("spawn").SimpleQueue()
    mp.spawn(work, args=(3.0, queue), nprocs=2)
    print(sorted((queue.get(), queue.get())))
    try:
        mp.spawn(fail, nprocs=2)
    except mp.ProcessRaisedException as error:
        print(error.error_index, "the reason" in str(error), "-- Process 1 terminated with the following error" in str(error))
    try:
        mp.start_processes(leave, start_method="spawn")
    except mp.ProcessExitedException as error:
        print(error.exit_code, error)
    print(mp.cpu_count() > 0, mp.Queue is not None)
"""


def test_processes(tmp_path):
    (tmp_path / "script.py").write_text(SPAWNING)
    environment = {**os.environ, "PYTHONPATH": str(SOURCE), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "mindtorch_v2", "run", "script.py"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        "[(0, [3.0, 3.0]), (1, [3.0, 3.0])]",
        "1 True True",
        "3 process 0 terminated with exit code 3",
        "True True",
    ]


class TestVersion:
    def test_it_compares_as_a_version(self):
        version = torch.__version__
        assert version == "2.13.0" == str(version) == torch.version.__version__
        assert version > "2.9"
        assert version >= (2, 13)
        assert version < (2, 14)
        assert version > "2.13.0rc1" > "2.12"
        assert version != "2.13.1"
        assert version < "2.13.0+cpu"
        assert hash(version) == hash("2.13.0")
        assert sorted([torch.torch_version.TorchVersion(v) for v in ("2.10.0", "2.9.1", "2.10.0.dev3")]) == [
            "2.9.1",
            "2.10.0.dev3",
            "2.10.0",
        ]

    def test_it_compares_as_a_text_with_what_is_no_version(self):
        assert torch.__version__ != "parrot"
        assert torch.__version__ < "parrot"


class TestMakeTensor:
    def test_ranges(self):
        torch.manual_seed(0)
        make = torch.testing.make_tensor
        assert make(100, dtype=torch.uint8, device="cpu").max() < 10
        assert make((100,), dtype=torch.float32, device="cpu", low=2, high=3).min() >= 2
        assert make(100, dtype=torch.int64, device="cpu", low=0, high=2, exclude_zero=True).min() == 1
        assert not make(3, 4, dtype=torch.float32, device="cpu", noncontiguous=True).is_contiguous()
        assert make(2, dtype=torch.float32, device="cpu", requires_grad=True).requires_grad
        with pytest.raises(ValueError, match="must be less than"):
            make(2, dtype=torch.int64, device="cpu", low=3, high=2)

    def test_assert_close(self):
        a = torch.tensor([1.0, 2.0])
        torch.testing.assert_close(a, a + 1e-7)
        torch.testing.assert_close({"x": [a, 1]}, {"x": [a, 1]})
        with pytest.raises(AssertionError, match="Mismatched elements: 1 / 2"):
            torch.testing.assert_close(a, torch.tensor([1.0, 3.0]))
        with pytest.raises(AssertionError, match=r"item \['x'\]\[1\]"):
            torch.testing.assert_close({"x": [a, 1]}, {"x": [a, 2]})
