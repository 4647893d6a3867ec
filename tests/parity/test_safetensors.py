"""The safetensors package on this torch: the same files, and each reads the other's."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch as theirs

import mindtorch_v2 as ours

safetensors = pytest.importorskip("safetensors", reason="it is among what `pip install .[parity]` brings")
pytestmark = pytest.mark.parity

DTYPES = "bool uint8 int8 int16 int32 int64 uint16 uint32 uint64 float16 bfloat16 float32 float64 complex64".split()
PROGRAM = """
import sys
from pathlib import Path
if sys.argv[1] == "ours":
    import mindtorch_v2.as_torch
import torch
from safetensors import safe_open
from safetensors.torch import load_file, load_model, save_file, save_model

folder, other = Path(sys.argv[2]), Path(sys.argv[3])
tensors = {d: torch.tensor([0, 1, 1]).to(getattr(torch, d)) for d in "DTYPES".split()}
tensors |= {"matrix": torch.arange(6.0).reshape(2, 3), "view": torch.arange(6.0)[2:4], "empty": torch.zeros(0, 3), "number": torch.tensor(3.0)}
save_file(tensors, folder / "tensors.safetensors", metadata={"made": "here"})
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3))
save_model(model, str(folder / "model.safetensors"))
for place in (folder, other):
    if not (place / "tensors.safetensors").exists():
        continue
    for name, loaded in load_file(place / "tensors.safetensors").items():
        assert loaded.dtype == tensors[name].dtype and loaded.tolist() == tensors[name].tolist(), name
    with safe_open(place / "tensors.safetensors", framework="pt") as file:
        assert file.metadata() == {"made": "here"}
        assert file.get_slice("matrix")[:, 1:].tolist() == [[1, 2], [4, 5]]
        assert file.get_tensor("view").tolist() == [2, 3]
    twin = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3))
    assert load_model(twin, str(place / "model.safetensors")) == (set(), [])
    assert torch.equal(twin[0].weight, model[0].weight)
shared = torch.nn.ModuleDict({"a": torch.nn.Linear(2, 2), "b": torch.nn.Linear(2, 2)})
shared["b"].weight = shared["a"].weight
try:
    save_file(shared.state_dict(), folder / "shared.safetensors")
except RuntimeError as error:
    assert "share memory" in str(error)
else:
    raise AssertionError("shared tensors were saved")
save_model(shared, str(folder / "shared.safetensors"))
load_model(shared, str(folder / "shared.safetensors"))
""".replace("DTYPES", " ".join(DTYPES))


def run(library: str, folder: Path, other: Path) -> None:
    source = str(Path(ours.__file__).parents[1])
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([source, *sys.path])}
    subprocess.run([sys.executable, "-c", PROGRAM, library, folder, other], env=environment, check=True)


def test_the_package_works_and_writes_the_same_files(tmp_path):
    folders = {library: tmp_path / library for library in ("theirs", "ours")}
    for folder in folders.values():
        folder.mkdir()
    run("theirs", folders["theirs"], folders["ours"])
    run("ours", folders["ours"], folders["theirs"])
    for name in ("tensors", "model"):
        contents = [(folder / f"{name}.safetensors").read_bytes() for folder in folders.values()]
        assert contents[0] == contents[1]
    loaded = [lib.load(folders["theirs"] / "tensors.safetensors", map_location="cpu") for lib in (ours, theirs)]
    assert {k: (str(v.dtype), v.tolist()) for k, v in loaded[0].items()} == {
        k: (str(v.dtype), v.tolist()) for k, v in loaded[1].items()
    }
