"""Checkpoints in every format, from either library to the other."""

from __future__ import annotations

import io
import pickle
import struct
import tarfile
import zipfile
from collections import OrderedDict

import pytest
import torch as theirs

import mindtorch_v2 as ours

pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore:TypedStorage is deprecated")]

DTYPES = [
    "bool", "uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64", "float16", "bfloat16", "float32", "float64",
    "complex64", "complex128",
]  # fmt: skip


def saved(library, obj, **options):
    buffer = io.BytesIO()
    library.save(obj, buffer, **options)
    buffer.seek(0)
    return buffer


def payload(library, dtypes=DTYPES):
    base = library.arange(12.0).reshape(3, 4)
    return OrderedDict(
        **{name: library.tensor([0, 1, 1]).to(getattr(library, name)) for name in dtypes},
        base=base,
        row=base[1],
        transposed=base.t(),
        empty=library.zeros(0, 3),
        leaf=library.ones(2, requires_grad=True),
        parameter=library.nn.Parameter(library.ones(2)),
        sparse=library.eye(3).to_sparse(),
        meta=library.ones(2, 3, device="meta"),
        plain=[1, 2.5, "x", None, (1, 2), {"k": b"x"}, 1 + 2j, {3}, library.float16, library.Size([1, 2])],
    )


def described(value):
    """A value in terms that both libraries have."""
    if isinstance(value, ours.Tensor | theirs.Tensor):
        facts = (str(value.dtype), tuple(value.shape), value.requires_grad, type(value).__name__, str(value.device))
        if value.is_sparse:
            return (*facts, value.to_dense().tolist())
        return (*facts, value.stride(), None if value.is_meta else value.tolist())
    if isinstance(value, dict):
        return {key: described(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [described(item) for item in value]
    return str(value)


FORMATS = [{}, {"_use_new_zipfile_serialization": False}, {"pickle_protocol": 4}, {"_disable_byteorder_record": True}]


@pytest.mark.filterwarnings("ignore:Detected pickle protocol")
@pytest.mark.parametrize("weights_only", [True, False])
@pytest.mark.parametrize("options", FORMATS, ids=str)
@pytest.mark.parametrize(
    ("writer", "reader"), [(ours, theirs), (theirs, ours), (ours, ours)], ids=["to torch", "from torch", "here"]
)
def test_every_format_and_dtype(writer, reader, options, weights_only):
    if reader is theirs and "pickle_protocol" in options:
        weights_only = False  # in which torch reads other protocols
    # torch cannot read its own files of these in the older format
    dtypes = [d for d in DTYPES if "_use_new_zipfile_serialization" not in options or d not in ("uint16", "uint32", "uint64")]
    loaded = reader.load(saved(writer, payload(writer, dtypes), **options), weights_only=weights_only)
    assert described(loaded) == described(payload(reader, dtypes))
    loaded["base"][1, 0] = 100
    assert loaded["row"][0].item() == loaded["transposed"][0, 1].item() == 100


@pytest.mark.parametrize("name", ["model.pt", "modell ä.bin", "noextension"])
def test_files_by_name(tmp_path, name):
    for writer, reader in ((ours, theirs), (theirs, ours)):
        writer.save(payload(writer), tmp_path / name)
        for options in ({}, {"mmap": True}, {"map_location": "cpu"}):
            assert described(reader.load(tmp_path / name, **options)) == described(payload(reader))
        with zipfile.ZipFile(tmp_path / name) as archive:
            assert archive.testzip() is None
            names = archive.namelist()
        assert names[0] == f"{(name.rpartition('.')[0] or name) if name.isascii() else 'archive'}/data.pkl"


def test_archives_have_the_same_records():
    listings = []
    for library in (ours, theirs):
        with zipfile.ZipFile(saved(library, {"x": library.arange(100.0), "y": library.ones(3)})) as archive:
            listings.append(
                [
                    (i.filename, i.file_size, i.CRC, i.header_offset, i.flag_bits)
                    for i in archive.infolist()
                    if "_id" not in i.filename
                ]
            )
    assert listings[0] == listings[1]


def test_offsets_are_calculated_as_torch_calculates_them(tmp_path, monkeypatch):
    """torch finds mapped storages without reading their headers, if it is asked to."""
    from torch.utils.serialization import config

    ours.save([ours.ones(n) for n in range(1, 30)], tmp_path / "a.pt")
    monkeypatch.setenv("TORCH_SERIALIZATION_DEBUG", "1")
    config.load.calculate_storage_offsets = True
    try:
        loaded = theirs.load(tmp_path / "a.pt", mmap=True)
    finally:
        config.load.calculate_storage_offsets = False
    assert [t.sum().item() for t in loaded] == list(range(1, 30))


@pytest.mark.parametrize("legacy", [False, True])
def test_whole_modules_and_optimizers(legacy):
    options = {"_use_new_zipfile_serialization": not legacy}
    for writer, reader in ((ours, theirs), (theirs, ours)):
        model = writer.nn.Sequential(writer.nn.Linear(3, 4), writer.nn.ReLU(), writer.nn.BatchNorm1d(4))
        optimizer = writer.optim.Adam(model.parameters(), lr=0.01)
        model(writer.ones(2, 3)).sum().backward()
        optimizer.step()
        state = reader.load(saved(writer, {"model": model.state_dict(), "optimizer": optimizer.state_dict()}, **options))
        other = reader.nn.Sequential(reader.nn.Linear(3, 4), reader.nn.ReLU(), reader.nn.BatchNorm1d(4))
        other.load_state_dict(state["model"])
        reader.optim.Adam(other.parameters()).load_state_dict(state["optimizer"])
        assert [p.tolist() for p in other.parameters()] == [p.tolist() for p in model.parameters()]
        whole = reader.load(saved(writer, model, **options), weights_only=False)
        assert isinstance(whole, reader.nn.Sequential)
        assert repr(whole) == repr(model)
        assert [p.tolist() for p in whole.parameters()] == [p.tolist() for p in model.parameters()]


def test_storages():
    for writer, reader in ((ours, theirs), (theirs, ours)):
        for legacy in (True, False):
            x = writer.arange(3.0)
            file = saved(writer, [x, x.storage(), x.storage()], _use_new_zipfile_serialization=not legacy)
            loaded, typed, again = reader.load(file, weights_only=False)
            assert isinstance(typed, reader.FloatStorage)
            assert typed.tolist() == [0, 1, 2]
            typed[0] = 7
            assert loaded[0].item() == again[0] == 7
        with pytest.raises(RuntimeError, match="view the same data as different types"):
            saved(writer, [writer.arange(3.0).view(writer.int32), writer.ones(3)] + [x, x.view(writer.int32)])


@pytest.mark.parametrize("how", ["string", "device", "dict", "function", "none"])
def test_map_location(how):
    for writer, reader in ((ours, theirs), (theirs, ours)):
        seen = []

        def mapped(storage, location, seen=seen):
            seen.append((type(storage).__name__, location, storage.nbytes()))
            return storage

        location = {
            "string": "cpu", "device": reader.device("cpu"), "dict": {"cpu": "cpu"}, "function": mapped, "none": lambda s, w: None,
        }[how]  # fmt: skip
        for options in FORMATS[:2]:
            loaded = reader.load(saved(writer, [writer.ones(3)], **options), map_location=location)
            assert loaded[0].tolist() == [1, 1, 1]
        assert seen == ([("UntypedStorage", "cpu", 12)] * 2 if how == "function" else [])
        assert reader.load(saved(writer, writer.ones(3)), map_location="meta").is_meta


def test_locations_that_are_not_here():
    content = saved(ours, ours.ones(3)).getvalue()
    for kind in (b"gpu", b"mps"):
        changed = content.replace(b"X\x03\x00\x00\x00cpu", b"X\x03\x00\x00\x00" + kind)
        messages = []
        for library in (ours, theirs):
            file = io.BytesIO(repacked(changed))
            with pytest.raises(RuntimeError) as raised:
                library.load(file)
            messages.append(str(raised.value).rpartition("): ")[2] if library is ours else str(raised.value))
        if kind == b"gpu":
            assert messages[0].rstrip(")") in messages[1]


def repacked(content: bytes) -> bytes:
    """The same records in an archive with the right checksums."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as source:
        records = {}
        for info in source.infolist():
            start = info.header_offset + 30 + struct.unpack_from("<HH", content, info.header_offset + 26)[0]
            start += struct.unpack_from("<HH", content, info.header_offset + 26)[1]
            records[info.filename] = content[start : start + info.file_size]
    with zipfile.ZipFile(buffer, "w") as target:
        for name, record in records.items():
            target.writestr(name, record)
    return buffer.getvalue()


def tar_checkpoint() -> io.BytesIO:
    """A file as PyTorch 0.1 wrote it: two tensors on one storage, one of them on a view of it."""
    storages = b"".join(
        [
            pickle.dumps(1, 2),
            b"\x80\x02(K\x01X\x03\x00\x00\x00cpuctorch\nFloatStorage\nt.",
            struct.pack("<q4f", 4, 1, 2, 3, 4),
            pickle.dumps([(2, 1, 1, 2)], 2),
        ]
    )
    tensors = pickle.dumps(2, 2)
    for key, storage, size, offset in ((10, 1, (2, 2), 0), (11, 2, (2,), 0)):
        tensors += b"\x80\x02(K" + bytes([key]) + b"K" + bytes([storage]) + b"ctorch\nFloatTensor\nt."
        tensors += struct.pack("<i4x", len(size)) + struct.pack(f"<{len(size)}q", *size)
        tensors += struct.pack(f"<{len(size)}q", *((2, 1) if len(size) == 2 else (1,))) + struct.pack("<q", offset)
    pickled = b"\x80\x02]q\x00(X\x02\x00\x00\x0010QX\x02\x00\x00\x0011Qe."
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:", format=tarfile.PAX_FORMAT) as tar:
        for name, content in (("storages", storages), ("tensors", tensors), ("pickle", pickled)):
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    buffer.seek(0)
    return buffer


def test_tar_files(tmp_path):
    (tmp_path / "old.tar").write_bytes(tar_checkpoint().getvalue())
    for library in (theirs, ours):
        whole, part = library.load(tmp_path / "old.tar", weights_only=False)
        assert (whole.tolist(), part.tolist()) == ([[1, 2], [3, 4]], [2, 3])
        whole[0, 1] = 9
        assert part[0].item() == 9
        with pytest.raises(RuntimeError, match=r"legacy \.tar format"):
            library.load(tmp_path / "old.tar")


def test_lazily_conjugated_and_negated_tensors():
    """They are saved as views to be conjugated, and come back as such."""
    for writer, reader in ((ours, theirs), (theirs, ours), (ours, ours)):
        x = writer.tensor([1 + 2j, 3 - 4j])
        for legacy in (True, False):
            options = {"_use_new_zipfile_serialization": not legacy}
            conjugated, plain = reader.load(saved(writer, [x.conj(), x], **options))
            assert (conjugated.tolist(), plain.tolist()) == ([1 - 2j, 3 + 4j], [1 + 2j, 3 - 4j])
            assert conjugated.is_conj()
            assert conjugated.data_ptr() == plain.data_ptr()
            negated = reader.load(saved(writer, x.conj().imag, **options))
            assert negated.tolist() == [-2, 4]
            assert negated.is_neg()


def test_unsafe_globals():
    class Local:
        pass

    globals()["Local"] = Local
    Local.__qualname__ = "Local"
    try:
        obj = lambda library: {"a": Local(), "b": library.ones(2), "c": library.nn.Linear(2, 2)}
        pairs = ((ours, theirs), (theirs, ours), (ours, ours))
        found = [sorted(r.serialization.get_unsafe_globals_in_checkpoint(saved(w, obj(w)))) for w, r in pairs]
        assert found[0] == found[1] == found[2]
        assert any(name.endswith("Local") for name in found[0])
    finally:
        del globals()["Local"]


@pytest.mark.parametrize("dtype", ["defaultdict", "frozenset"])
def test_what_is_not_allowed_by_default(dtype):
    from collections import defaultdict

    obj = {"defaultdict": defaultdict(list), "frozenset": frozenset({1})}[dtype]
    for library in (ours, theirs):
        with pytest.raises(pickle.UnpicklingError, match=f"{dtype} was not an allowed global by default"):
            library.load(saved(library, obj))


def test_skipped_data(tmp_path):
    for writer, reader in ((ours, theirs), (theirs, ours)):
        with writer.serialization.skip_data():
            writer.save({"x": writer.arange(5.0)}, tmp_path / "empty.pt")
        assert reader.load(tmp_path / "empty.pt")["x"].tolist() == [0] * 5
        full = saved(writer, {"x": writer.arange(5.0)})
        with reader.serialization.skip_data():
            assert reader.load(full)["x"].shape == (5,)
    ours.save({"x": ours.arange(5.0)}, tmp_path / "full.pt")
    offsets = [
        lib.load(tmp_path / "full.pt", map_location="meta")["x"].untyped_storage()._checkpoint_offset for lib in (ours, theirs)
    ]
    assert offsets[0] == offsets[1]
    assert (tmp_path / "full.pt").read_bytes()[offsets[0] : offsets[0] + 20] == struct.pack("<5f", *range(5))


def test_checkpoints_without_checksums():
    for writer, reader in ((ours, theirs), (theirs, ours)):
        writer.serialization.set_crc32_options(False)
        try:
            file = saved(writer, writer.arange(5.0))
        finally:
            writer.serialization.set_crc32_options(True)
        assert reader.load(file).tolist() == list(range(5))


NARROW = [
    "complex32", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu", "float4_e2m1fn_x2", "bits8", "bits16",
    "bits1x8", "bits2x4", "bits4x2",
]  # fmt: skip


@pytest.mark.filterwarnings("ignore:ComplexHalf support", "ignore:Casting complex values")
@pytest.mark.parametrize("name", NARROW)
def test_narrow_types(name):
    """Bits cross unchanged, and conversions give the same bits."""
    for writer, reader in ((ours, theirs), (theirs, ours)):
        x = writer.arange(8, dtype=writer.uint8).view(getattr(writer, name))
        for weights_only in (True, False):
            loaded = reader.load(saved(writer, x), weights_only=weights_only)
            assert (str(loaded.dtype), loaded.view(reader.uint8).tolist()) == (f"torch.{name}", list(range(8)))
    assert getattr(ours, name).itemsize == getattr(theirs, name).itemsize
    if not name.startswith(("float8", "complex")):
        return
    values = [0.0, -0.0, 1.0, 1.06, -2.5, 3.3, 0.001, 1e-9, 240.0, 447.0, 57000.0, 1e9, float("inf"), float("nan")]
    made = [lib.tensor(values).to(getattr(lib, name)) for lib in (ours, theirs)]
    assert made[0].view(ours.uint8).tolist() == made[1].view(theirs.uint8).tolist()
    assert str(made[0].to(ours.float32)) == str(made[1].to(theirs.float32))
    assert str(made[0][2:6]) == str(made[1][2:6])
    if name != "complex32":
        bits = [lib.arange(256).to(lib.uint8).view(getattr(lib, name)).float().tolist() for lib in (ours, theirs)]
        assert str(bits[0]) == str(bits[1])
        limits = [lib.finfo(getattr(lib, name)) for lib in (ours, theirs)]
        assert repr(limits[0]) == repr(limits[1])
