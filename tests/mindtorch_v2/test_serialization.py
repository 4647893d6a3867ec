"""Checkpoints: `save`, `load`, and what `weights_only` keeps out."""

from __future__ import annotations

import io
import os
import pickle
import zipfile
from collections import OrderedDict

import numpy as np
import pytest

import mindtorch_v2 as torch
from mindtorch_v2._checkpoints import pickler


def payload(library):
    base = library.arange(12.0).reshape(3, 4)
    return OrderedDict(
        base=base,
        row=base[1],
        transposed=base.t(),
        ints=library.tensor([1, 2]),
        narrow=library.ones(2, dtype=library.bfloat16),
        flags=library.tensor([True, False]),
        numbers=library.tensor([1 + 2j]),
        empty=library.zeros(0, 3),
        scalar=library.tensor(3.5),
        expanded=library.ones(1, 3).expand(2, 3),
        leaf=library.ones(2, requires_grad=True),
        size=base.shape,
        dtype=library.float16,
        device=library.device("cpu"),
        plain=[1, 2.5, "x", None, True, (1, 2), {"k": b"x"}, 1 + 2j, {3}],
    )


def check(loaded, expected, library):
    assert list(loaded) == list(expected)
    for name, want in expected.items():
        got = loaded[name]
        if isinstance(want, library.Tensor):
            assert (got.dtype, got.shape, got.stride(), got.requires_grad) == (
                want.dtype,
                want.shape,
                want.stride(),
                want.requires_grad,
            )
            assert got.tolist() == want.tolist()
        else:
            assert got == want
    loaded["base"][1, 0] = 100
    assert loaded["row"][0].item() == 100
    assert loaded["transposed"][0, 1].item() == 100


@pytest.mark.parametrize("options", [{}, {"weights_only": False}, {"mmap": True}, {"map_location": "cpu"}])
def test_round_trip(tmp_path, options):
    torch.save(payload(torch), tmp_path / "model.pt")
    check(torch.load(tmp_path / "model.pt", **options), payload(torch), torch)


def test_file_objects():
    buffer = io.BytesIO()
    torch.save({"x": torch.ones(2)}, buffer)
    buffer.seek(0)
    assert torch.load(buffer)["x"].tolist() == [1, 1]
    with pytest.raises(ValueError, match="must be a file path"):
        torch.load(buffer, mmap=True)


def test_archive_has_torchs_layout(tmp_path):
    path = tmp_path / "model.pt"
    x = torch.arange(100.0)
    torch.save([x, x[:3]], path)
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
        assert names[0] == "model/data.pkl"
        assert "model/version" in names
        assert [n for n in names if n.startswith("model/data/")] == ["model/data/0"]
        assert archive.read("model/byteorder") in (b"little", b"big")
        assert len(archive.read("model/data/0")) == 400


def test_data_of_a_parameter_is_saved_once():
    x = torch.ones(1000)
    buffer = io.BytesIO()
    torch.save([x, x.data], buffer)
    assert len(buffer.getvalue()) < 8000


def test_map_location():
    buffer = io.BytesIO()
    torch.save(torch.ones(2, 3), buffer)
    for location in ("meta", torch.device("meta"), {"cpu": "meta"}, lambda storage, where: "meta"):
        buffer.seek(0)
        loaded = torch.load(buffer, map_location=location)
        assert loaded.is_meta
        assert loaded.shape == (2, 3)
    buffer.seek(0)
    with pytest.raises(RuntimeError, match="no Ascend NPU"):
        torch.load(buffer, map_location="npu")
    buffer.seek(0)
    with pytest.raises(TypeError, match="map_location"):
        torch.load(buffer, map_location=3.5)


def test_parameters_modules_and_optimizers(tmp_path):
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2))
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.ones(1, 3)).sum().backward()
    optimizer.step()
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "weight": model[0].weight}, tmp_path / "c.pt")
    loaded = torch.load(tmp_path / "c.pt")
    assert type(loaded["weight"]) is torch.nn.Parameter
    assert loaded["weight"].data_ptr() == loaded["model"]["0.weight"].data_ptr()
    other = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2))
    other.load_state_dict(loaded["model"])
    torch.optim.Adam(other.parameters()).load_state_dict(loaded["optimizer"])
    assert torch.equal(other(torch.ones(1, 3)), model(torch.ones(1, 3)))
    torch.save(model, tmp_path / "whole.pt")
    with pytest.raises(pickle.UnpicklingError, match=r"torch\.nn\.modules"):
        torch.load(tmp_path / "whole.pt")
    assert torch.equal(torch.load(tmp_path / "whole.pt", weights_only=False)(torch.ones(1, 3)), model(torch.ones(1, 3)))


class Evil:
    def __reduce__(self):
        return (os.getenv, ("HOME",))


class Custom:
    def __init__(self):
        self.value = 3


def _archive(obj):
    buffer = io.BytesIO()
    torch.save(obj, buffer)
    buffer.seek(0)
    return buffer


def test_only_data_is_loaded_by_default():
    for obj in (Evil(), Custom()):
        with pytest.raises(pickle.UnpicklingError, match="Weights only load failed"):
            torch.load(_archive(obj))
    assert torch.load(_archive(Custom()), weights_only=False).value == 3


def test_layout_names_reach_nothing_else():
    class Sneaky:
        def __reduce__(self):
            return (pickler._TorchName("torch.serialization", "_get_layout"), ("load",))

    with pytest.raises(pickle.UnpicklingError, match="none of torch's"):
        torch.load(_archive(Sneaky()))


def test_allowed_classes():
    with torch.serialization.safe_globals([Custom]):
        assert torch.load(_archive(Custom())).value == 3
        assert torch.serialization.get_safe_globals() == [Custom]
    assert torch.serialization.get_safe_globals() == []
    with pytest.raises(pickle.UnpicklingError):
        torch.load(_archive(Custom()))


def test_other_files_are_refused(tmp_path):
    (tmp_path / "old").write_bytes(pickle.dumps([1]))
    with pytest.raises(RuntimeError, match=r"old: Invalid magic number.*not a checkpoint"):
        torch.load(tmp_path / "old")
    with zipfile.ZipFile(tmp_path / "zip", "w") as archive:
        archive.writestr("a", "b")
    with pytest.raises(RuntimeError, match=r"failed locating file data.pkl"):
        torch.load(tmp_path / "zip")


def test_options_that_cannot_have_an_effect_are_refused():
    with pytest.raises(RuntimeError, match="explicit pickle_module"):
        torch.load(_archive(1), pickle_module=pickle, weights_only=True)
    with (
        pytest.warns(UserWarning, match="pickle_load_args"),
        pytest.raises(TypeError, match="unexpected keyword argument 'nonsense'"),
    ):
        torch.load(_archive(1), nonsense=1)


@pytest.mark.parity
@pytest.mark.parametrize("options", [{}, {"weights_only": False}, {"mmap": True}])
def test_checkpoints_are_read_by_either_side(tmp_path, options):
    import torch as theirs

    path = tmp_path / "model.pt"
    torch.save(payload(torch), path)
    check(theirs.load(path, **options), payload(theirs), theirs)
    theirs.save(payload(theirs), path)
    check(torch.load(path, **options), payload(torch), torch)


def _model(library):
    library.manual_seed(0)
    return library.nn.Sequential(library.nn.Linear(3, 4), library.nn.ReLU(), library.nn.Linear(4, 2))


@pytest.mark.parity
def test_modules_are_read_by_either_side(tmp_path):
    import torch as theirs

    path = tmp_path / "model.pt"
    for source, target in ((torch, theirs), (theirs, torch)):
        source.save(_model(source), path)
        expected = _model(source)(source.ones(1, 3)).tolist()[0]
        assert target.load(path, weights_only=False)(target.ones(1, 3)).tolist()[0] == pytest.approx(expected, rel=1e-5)
        source.save(_model(source).state_dict(), path)
        target.nn.Sequential(*_model(target)).load_state_dict(target.load(path))


def gapped():
    """Arrays whose memory is larger than their elements, alone and two of one address and size."""
    base = np.arange(12.0)
    return {
        "every other": torch.from_numpy(base[::2]),
        "columns": torch.from_numpy(base.reshape(4, 3)[:, :2]),
        "broadcast": torch.from_numpy(np.broadcast_to(base[:3], (4, 3)).copy()[:, ::2]),
        "same address": [torch.from_numpy(base[:6]), torch.from_numpy(base[::2])],
    }


@pytest.mark.parametrize("name", list(gapped()))
def test_tensors_over_arrays_with_gaps(name, tmp_path):
    saved = gapped()[name]
    torch.save(saved, tmp_path / "gaps.pt")
    loaded = torch.load(tmp_path / "gaps.pt")
    pairs = zip(saved, loaded, strict=True) if isinstance(saved, list) else [(saved, loaded)]
    for before, after in pairs:
        assert (after.tolist(), after.stride()) == (before.tolist(), before.stride())


@pytest.mark.parity
@pytest.mark.parametrize("name", list(gapped()))
def test_tensors_over_arrays_with_gaps_are_read_by_torch(name, tmp_path):
    import torch as oracle

    saved = gapped()[name]
    torch.save(saved, tmp_path / "gaps.pt")
    loaded = oracle.load(tmp_path / "gaps.pt")
    pairs = zip(saved, loaded, strict=True) if isinstance(saved, list) else [(saved, loaded)]
    assert all(after.tolist() == before.tolist() for before, after in pairs)


def tensor_file(header: bytes, content: bytes = b"") -> bytes:
    return len(header).to_bytes(8, "little") + header + content


class TestTensorFiles:
    def test_tensors_by_name(self, tmp_path):
        header = (
            b'{"__metadata__":{"a":"b"},"x":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},'
            b'"y":{"dtype":"I16","shape":[],"data_offsets":[8,10]}}'
        )
        path = tmp_path / "model.safetensors"
        path.write_bytes(tensor_file(header, np.array([1, 2], np.float32).tobytes() + np.int16(7).tobytes()))
        loaded = torch.load(path)
        assert {name: (t.dtype, t.tolist()) for name, t in loaded.items()} == {
            "x": (torch.float32, [1, 2]),
            "y": (torch.int16, 7),
        }
        assert torch.load(path, map_location="meta")["x"].is_meta
        with pytest.raises(RuntimeError, match="dict map_location"):
            torch.load(path, map_location={"cpu": "meta"})

    @pytest.mark.parametrize(
        ("content", "message"),
        [
            (b"", "does not fit a file of 0"),
            (b"\xff" * 8, "does not fit"),
            (tensor_file(b"[1]"), "names no tensors"),
            (tensor_file(b"{"), "no JSON"),
            (tensor_file(b"[" * 100_000), "no JSON"),
            (tensor_file(b'{"x":3}'), "entry of x is damaged"),
            (tensor_file(b'{"x":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}', bytes(7)), "does not fit its bytes"),
            (tensor_file(b'{"x":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}}', bytes(8)), "does not fit its bytes"),
            (tensor_file(b'{"x":{"dtype":"F32","shape":[-2,-1],"data_offsets":[0,8]}}', bytes(8)), "does not fit its bytes"),
            (
                tensor_file(
                    b'{"x":{"dtype":"U8","shape":[8],"data_offsets":[0,8]},"y":{"dtype":"U8","shape":[8],"data_offsets":[0,8]}}',
                    bytes(8),
                ),
                "overlaps",
            ),
        ],
    )
    def test_damaged_files(self, tmp_path, content, message):
        (tmp_path / "bad.safetensors").write_bytes(content)
        with pytest.raises(RuntimeError, match=rf"bad\.safetensors: .*{message}"):
            torch.load(tmp_path / "bad.safetensors")
