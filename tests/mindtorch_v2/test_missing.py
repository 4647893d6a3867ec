"""What the package does not have says so, with a reason, and `hasattr`, `dir` and imports work as for any module."""

import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

import mindtorch_v2 as torch
from mindtorch_v2 import _missing

SOURCE = Path(__file__).parent.parent.parent / "src"


@pytest.mark.parametrize(
    ("where", "name", "says"),
    [
        ("", "quantize_per_tensor", "quantized tensors are not part of the runtime"),
        ("", "bit", "NumPy has no such type"),
        ("", "lobpcg", "torch.linalg.eigh gives eigenvalues"),
        ("nn", "quantized", "quantized tensors are not part of the runtime"),
        ("sparse", "SparseSemiStructuredTensor", "sparse tensors have"),
    ],
)
def test_the_reason_is_given(where, name, says):
    module = importlib.import_module(f"mindtorch_v2.{where}" if where else "mindtorch_v2")
    assert not hasattr(module, name)
    assert name not in dir(module)
    with pytest.raises(AttributeError) as caught:
        getattr(module, name)
    text = str(caught.value)
    assert text.startswith(f"module '{'torch.' + where if where else 'torch'}' has no attribute '{name}': ")
    assert says in text
    assert text.endswith("See docs/compatibility.md")


@pytest.mark.parametrize(
    ("where", "name", "near"),
    [("", "zers", "'zeros'"), ("nn", "Liner", "'Linear'"), ("optim", "Adma", "'Adam'"), ("nn.functional", "rellu", "'relu'")],
)
def test_a_name_that_torch_does_not_have_either(where, name, near):
    module = importlib.import_module(f"mindtorch_v2.{where}" if where else "mindtorch_v2")
    with pytest.raises(AttributeError, match="Did you mean") as caught:
        getattr(module, name)
    assert near in str(caught.value)
    assert "compatibility" not in str(caught.value)
    with pytest.raises(AttributeError) as caught:
        torch.nothing_of_the_kind  # noqa: B018
    assert str(caught.value) == "module 'torch' has no attribute 'nothing_of_the_kind'"


def test_a_name_that_is_imported_from_a_module():
    with pytest.raises(ImportError, match="cannot import name 'quantize_per_tensor' from 'torch': quantized tensors") as caught:
        from mindtorch_v2 import quantize_per_tensor  # noqa: F401
    assert not isinstance(caught.value, ModuleNotFoundError)
    with pytest.raises(ImportError, match=r"cannot import name 'rellu' from 'torch.nn.functional'. Did you mean 'relu'"):
        from mindtorch_v2.nn.functional import rellu  # noqa: F401


def test_special_names_are_left_to_python():
    for name in ("__wrapped__", "__test__", "__all_of_it__"):
        with pytest.raises(AttributeError) as caught:
            getattr(torch, name)
        assert str(caught.value) == f"module 'mindtorch_v2' has no attribute '{name}'"


def test_submodules_are_there_when_asked_for():
    names = [name for name in _missing.SUBMODULES[""] if importlib.util.find_spec(f"mindtorch_v2.{name}")]
    assert {"cuda", "backends", "jit", "fx", "distributed", "testing", "hub", "version", "amp"} <= set(names)
    program = f"""
import sys
import mindtorch_v2 as torch
import mindtorch_v2.as_torch
import torch as alias
assert "mindtorch_v2.cuda" not in sys.modules
assert set({names!r}) <= set(dir(torch))
for name in {names!r}:
    module = getattr(torch, name)
    assert module is sys.modules["mindtorch_v2." + name], name
    assert sys.modules.get("torch." + name, module) is module, name
assert sys.modules["torch.cuda"] is torch.cuda
"""
    subprocess.run([sys.executable, "-W", "error", "-c", program], check=True, env={**os.environ, "PYTHONPATH": str(SOURCE)})


def test_what_is_broken_inside_a_submodule_is_not_hidden(monkeypatch):
    def failing(name):
        raise ModuleNotFoundError("No module named 'threadpoolctl'", name="threadpoolctl")

    monkeypatch.setattr(_missing.importlib, "import_module", failing)
    monkeypatch.delitem(vars(torch), "hub", raising=False)
    with pytest.raises(ModuleNotFoundError, match="threadpoolctl"):
        torch.hub  # noqa: B018


def test_what_may_come_says_so():
    assert _missing.reason_for("a_name_without_a_reason") == "PyTorch has it, and this package does not yet"


def test_every_reason_is_a_sentence():
    for pattern, reason in _missing.REASONS.items():
        assert reason[0] == reason[0].lower() or reason.split()[0] in ("TorchScript", "NumPy"), pattern
        assert not reason.endswith("."), pattern


def test_the_profiler_is_imported_when_it_is_asked_for():
    """With it come asyncio, sqlite3 and 170 modules of its own: a quarter of the time of an import."""
    program = """
import sys
import mindtorch_v2 as torch
assert not [name for name in sys.modules if name.startswith("mindtorch_v2.profiler")]
assert not {"asyncio", "email", "sqlite3"} & sys.modules.keys()
assert "profiler" in dir(torch) and "memory" in dir(torch.cpu) and "profiler" in dir(torch.autograd)
assert torch.autograd.profiler.record_function is torch.profiler.record_function
torch.cpu.memory._record_memory_history
torch.profiler.tensorboard_trace_handler
from mindtorch_v2 import profiler
assert profiler is torch.profiler is sys.modules["mindtorch_v2.profiler"]
"""
    subprocess.run([sys.executable, "-c", program], check=True)
