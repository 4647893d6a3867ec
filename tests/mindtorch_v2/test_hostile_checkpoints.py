"""Checkpoints that are damaged or hostile: they are refused with one clear error, and change nothing."""

from __future__ import annotations

import enum
import io
import pickle
import random
import struct
import tracemalloc
import zipfile
from collections import Counter, OrderedDict

import pytest

import mindtorch_v2 as torch

from .hostile_checkpoints import archive, global_, integer, library_state, tensor_pickle

ERRORS = (RuntimeError, pickle.UnpicklingError, EOFError)
MEMO_OF_2_27 = b"r" + (1 << 27).to_bytes(4, "little")


def state_of(**attributes: bytes) -> bytes:
    """A dict of attributes, as opcodes."""
    items = b"".join(b"X" + len(name).to_bytes(4, "little") + name.encode() + value for name, value in attributes.items())
    return b"}(" + items + b"u"


@pytest.mark.parametrize(
    "pickled",
    [
        global_("torch.Tensor") + b"N" + state_of(backward=global_("builtins.set")) + b"\x86b.",
        global_("torch.Tensor") + state_of(backward=global_("builtins.set")) + b"b.",
        global_("torch.float32") + b"N" + state_of(itemsize=b"K\x01") + b"\x86b.",
        global_("torch.FloatStorage") + state_of(dtype=global_("torch.int32")) + b"b.",
        global_("torch.storage.UntypedStorage") + state_of(dtype=global_("torch.int32")) + b"b.",
        global_("torch._utils._rebuild_tensor_v2") + state_of(x=b"N") + b"b.",
        global_("torch.Size") + state_of(numel=b"N") + b"b.",
        global_("torch.device") + b"N" + state_of(x=b"N") + b"\x86b.",
        global_("torch.device") + b"X\x03\x00\x00\x00cpu\x85RN" + state_of(type=b"K\x01") + b"\x86b.",
        global_("collections.OrderedDict") + state_of(x=b"N") + b"b.",
        global_("torch.nn.parameter.Parameter") + state_of(grad=b"N") + b"b.",
    ],
)
def test_names_are_not_changed(pickled):
    before = library_state()
    with pytest.raises(pickle.UnpicklingError, match=r"Can only build .*add_safe_globals"):
        torch.load(archive(b"\x80\x02" + pickled))
    assert library_state() == before


@pytest.mark.parametrize(
    "pickled",
    [
        global_("torch.Tensor") + b"K\x01K\x02s.",
        global_("collections.OrderedDict") + b"(K\x01K\x02u.",
        global_("builtins.set") + b"(K\x01\x90.",
        global_("collections.Counter") + b"K\x01a.",
        global_("builtins.bytearray") + b")RK\x01a.",
        tensor_pickle()[2:-1] + b"K\x00K\x01s.",
        b")K\x01a.",
        b"]K\x01K\x02s.",
    ],
)
def test_items_are_set_in_containers_of_the_file_only(pickled):
    before = library_state()
    with pytest.raises(pickle.UnpicklingError, match=r"Can only (APPENDS?|SETITEMS?|ADDITEMS) for"):
        torch.load(archive(b"\x80\x02" + pickled, {"data/0": bytes(16)}))
    assert library_state() == before


@pytest.mark.parametrize(
    "function",
    ["torch.Tensor", "torch.float32", "torch.FloatStorage", "torch.storage.UntypedStorage"],
)
def test_only_functions_that_make_data_are_called(function):
    with pytest.raises(pickle.UnpicklingError, match="which makes no data"):
        torch.load(archive(b"\x80\x02" + global_(function) + b"K\x05\x85R."))


@pytest.mark.parametrize("name", ["os.system", "sys.exit", "posix.system", "builtins.eval", "torch.load", "torch._C.Generator"])
def test_other_names_are_refused(name):
    with pytest.raises(pickle.UnpicklingError, match=r"(is blocked|add_safe_globals)"):
        torch.load(archive(b"\x80\x02" + global_(name) + b"."))


@pytest.mark.parametrize(
    "opcode",
    [
        pytest.param(b"(ctorch\nTensor\no", id="OBJ"),
        pytest.param(b"(itorch\nTensor\n", id="INST"),
        pytest.param(b"\x82\x01", id="EXT1"),
        pytest.param(b"\x83\x01\x00", id="EXT2"),
        pytest.param(b"\x84\x01\x00\x00\x00", id="EXT4"),
        pytest.param(b"Pstorage\n", id="PERSID"),
        pytest.param(b"\x97", id="NEXT_BUFFER"),
        pytest.param(b"N\x98", id="READONLY_BUFFER"),
        pytest.param(b"\xff", id="none"),
    ],
)
def test_opcodes_that_no_checkpoint_has(opcode):
    with pytest.raises(pickle.UnpicklingError, match="Unsupported operand"):
        torch.load(archive(b"\x80\x02" + opcode + b"."))


class Point:
    def __init__(self, x=0):
        self.x = x


class Slotted:
    __slots__ = ("x",)


class Colour(enum.Enum):
    RED = 1


class Meta(type):
    pass


class OfMeta(metaclass=Meta):
    pass


class Broken:
    def __setstate__(self, state):
        raise KeyError("of the user")


REGISTRY: dict[str, int] = {}


def registry():
    return REGISTRY


def saved(obj):
    buffer = io.BytesIO()
    torch.save(obj, buffer)
    buffer.seek(0)
    return buffer


class TestAllowedClasses:
    def test_instances_get_their_state(self):
        slotted = Slotted()
        slotted.x = torch.ones(2)
        with torch.serialization.safe_globals([Point, Slotted]):
            point, other = torch.load(saved([Point(3), slotted]))
        assert (type(point), point.x, type(other)) == (Point, 3, Slotted)
        assert other.x.tolist() == [1, 1]

    def test_an_enum_keeps_its_members(self):
        name = f"{__name__}.Colour"
        member = b"\x80\x02" + global_(name) + b"K\x01\x85R"
        with torch.serialization.safe_globals([Colour]):
            assert torch.load(archive(member + b".")) is Colour.RED
            with pytest.raises(pickle.UnpicklingError, match="Can only build"):
                torch.load(archive(member + state_of(x=b"N") + b"b."))
        assert not hasattr(Colour.RED, "x")

    def test_a_class_is_not_changed_through_its_metaclass(self):
        with (
            torch.serialization.safe_globals([Meta, OfMeta]),
            pytest.raises(pickle.UnpicklingError, match="Can only build"),
        ):
            torch.load(archive(b"\x80\x02" + global_(f"{__name__}.OfMeta") + state_of(x=b"N") + b"b."))
        assert not hasattr(OfMeta, "x")

    def test_what_a_function_returns_is_not_the_files(self):
        pickled = b"\x80\x02" + global_(f"{__name__}.registry") + b")RK\x01K\x02s."
        with (
            torch.serialization.safe_globals([registry]),
            pytest.raises(pickle.UnpicklingError, match=r"Can only (APPENDS?|SETITEMS?|ADDITEMS) for"),
        ):
            torch.load(archive(pickled))
        assert REGISTRY == {}

    def test_their_exceptions_come_through(self):
        buffer = saved([1])
        made = b"\x80\x02" + global_(f"{__name__}.Broken") + b")\x81}b."
        with torch.serialization.safe_globals([Broken]), pytest.raises(KeyError, match="of the user"):
            torch.load(archive(made))
        with pytest.raises(ZeroDivisionError):
            torch.load(saved(torch.ones(1)), map_location=lambda storage, where: 1 / 0)
        assert torch.load(buffer) == [1]

    def test_pairs_name_what_they_allow(self):
        with torch.serialization.safe_globals([(Point, "elsewhere.Point")]):
            assert torch.serialization.get_safe_globals() == [(Point, "elsewhere.Point")]
            assert type(torch.load(archive(b"\x80\x02celsewhere\nPoint\n)\x81."))) is Point
        with pytest.raises(ValueError, match="tuple of length 2"):
            torch.serialization.add_safe_globals([(Point,)])
        with pytest.raises(TypeError, match="second item"):
            torch.serialization.add_safe_globals([(Point, 3)])

    def test_a_slot_is_no_way_to_another_class(self):
        pickled = b"\x80\x02" + global_(f"{__name__}.Point") + b")\x81N" + state_of(__class__=global_("torch.Tensor")) + b"\x86b."
        with torch.serialization.safe_globals([Point]), pytest.raises(pickle.UnpicklingError, match="underscores"):
            torch.load(archive(pickled))


class TestSizes:
    """What a file claims is compared with what it has."""

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"count": 5}, "does not match expected size"),
            ({"count": 3}, "does not match expected size"),
            ({"count": 1 << 40}, "does not match expected size"),
            ({"kind": "torch.DoubleStorage"}, "does not match expected size"),
            ({"key": b"1"}, "failed locating file data/1"),
            ({"size": (5,)}, "out of bounds"),
            ({"offset": 1}, "out of bounds"),
            ({"offset": -1}, "invalid storage offset -1"),
            ({"offset": 1 << 62}, "out of bounds"),
            ({"stride": (2,)}, "out of bounds"),
            ({"stride": (-1,)}, "-1 is none"),
            ({"size": (-4,)}, "-4 is none"),
            ({"size": (2, 2)}, "for each of its dimensions"),
            ({"location": b"nowhere"}, "nowhere"),
        ],
    )
    @pytest.mark.parametrize("options", [{}, {"map_location": "cpu"}, {"weights_only": False}, {"mmap": True}])
    def test_tensors_stay_in_their_storage(self, tmp_path, change, message, options):
        if "location" in change and "map_location" in options:
            return  # the file's location has no say
        path = tmp_path / "bad.pt"
        path.write_bytes(archive(tensor_pickle(**change), {"data/0": bytes(16)}).getvalue())
        with pytest.raises(RuntimeError, match=message) as caught:
            torch.load(path, **options)
        if options.get("weights_only", True):
            assert str(path) in str(caught.value)

    def test_a_good_one(self):
        assert torch.load(archive(tensor_pickle(), {"data/0": struct.pack("<4f", 1, 2, 3, 4)})).tolist() == [1, 2, 3, 4]

    def test_a_number_of_the_memo_takes_no_memory(self):
        tracemalloc.start()
        try:
            assert torch.load(archive(b"\x80\x02N" + MEMO_OF_2_27 + b".")) is None
            assert tracemalloc.get_traced_memory()[1] < 10_000_000
        finally:
            tracemalloc.stop()

    @pytest.mark.parametrize(
        "pickled",
        [
            pytest.param(global_("builtins.bytearray") + integer(1 << 33) + b"\x85R.", id="bytearray of a size"),
            pytest.param(b"B\xff\xff\xff\x7f.", id="BINBYTES"),
            pytest.param(b"\x8e" + (1 << 40).to_bytes(8, "little") + b".", id="BINBYTES8"),
            pytest.param(b"\x96" + (1 << 40).to_bytes(8, "little") + b".", id="BYTEARRAY8"),
            pytest.param(b"\x95" + (1 << 40).to_bytes(8, "little") + b".", id="FRAME"),
            pytest.param(b"(" + b"N" * 100_000 + b"lq\x00" + (global_("builtins.set") + b"h\x00\x85R") * 500 + b".", id="copies of a list"),
            pytest.param(
                global_("builtins.bytearray") + b"B\x00\x00\x10\x00" + bytes(1 << 20) + b"q\x00\x85R0"
                + (global_("builtins.bytearray") + b"h\x00\x85R") * 3000 + b".",
                id="copies of bytes",
            ),
        ],
    )  # fmt: skip
    def test_small_files_take_little_memory(self, pickled):
        tracemalloc.start()
        try:
            with pytest.raises(ERRORS):
                torch.load(archive(b"\x80\x02" + pickled))
            assert tracemalloc.get_traced_memory()[1] < 400_000_000
        finally:
            tracemalloc.stop()

    def test_compressed_bombs(self):
        huge = 80 << 20
        for bomb in (
            archive(tensor_pickle(count=huge // 4, size=(huge // 4,)), {"data/0": bytes(huge)}, zipfile.ZIP_DEFLATED),
            archive(b"\x80\x02" + b"N0" * (4 << 20) + b"N.", compression=zipfile.ZIP_DEFLATED),
        ):
            tracemalloc.start()
            try:
                with pytest.raises(RuntimeError, match=r"Save it again with torch\.save"):
                    torch.load(bomb)
                assert tracemalloc.get_traced_memory()[1] < 100_000_000
            finally:
                tracemalloc.stop()

    def test_records_do_not_overlap(self):
        """Two hundred entries of the directory that all are the same megabyte."""
        buffer = io.BytesIO()
        pickled = b"\x80\x02(" + b"".join(tensor_pickle(key=str(i).encode(), count=1 << 18)[2:-1] for i in range(200)) + b"l."
        with zipfile.ZipFile(buffer, "w") as file:
            file.writestr("archive/data.pkl", pickled)
            file.writestr("archive/data/0", bytes(1 << 20))
            first = file.infolist()[-1]
            for number in range(1, 200):
                info = zipfile.ZipInfo(f"archive/data/{number}")
                info.header_offset, info.CRC, info.compress_size, info.file_size = first.header_offset, first.CRC, 1 << 20, 1 << 20
                file.filelist.append(info)
                file.NameToInfo[info.filename] = info
        buffer.seek(0)
        with pytest.raises(RuntimeError, match="records overlap"):
            torch.load(buffer)

    def test_compressed_checkpoints_are_read(self):
        source = saved({"x": torch.arange(1000.0)})
        with zipfile.ZipFile(source) as file:
            records = {name: file.read(name) for name in file.namelist()}
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as file:
            for name, content in records.items():
                file.writestr(name, content)
        buffer.seek(0)
        assert torch.load(buffer)["x"].tolist() == list(range(1000))

    def test_keys_that_never_finish_hashing_or_comparing(self):
        nested = b"N" + b"2\x86" * 40  # each tuple has the one before twice
        deep = b"N" + b"\x85" * 100_000
        frozen = b"N"
        for _ in range(40):
            frozen = b"(" + frozen + b"2\x86\x91"  # the same in frozensets, which take as long to compare
        for key in (nested, deep, frozen):
            for pickled in (b"}" + key + b"Ns.", b"\x8f(" + key + b"\x90.", global_("builtins.set") + b"](" + key + b"e\x85R."):
                with pytest.raises(pickle.UnpicklingError, match="more than 1000 parts"):
                    torch.load(archive(b"\x80\x04" + pickled))


class TestDamage:
    def cut(self, path, share):
        content = path.read_bytes()
        path.write_bytes(content[: int(len(content) * share)])

    @pytest.mark.parametrize(
        ("content", "error", "message"),
        [
            (b"", EOFError, "is empty"),
            (b"hello", pickle.UnpicklingError, "not a checkpoint"),
            (b"PK\x03\x04", RuntimeError, "damaged or cut off"),
            (b"PK\x03\x04" + bytes(100), RuntimeError, "damaged or cut off"),
        ],
    )
    def test_other_files(self, tmp_path, content, error, message):
        (tmp_path / "bad.pt").write_bytes(content)
        with pytest.raises(error, match=rf"bad\.pt.*{message}"):
            torch.load(tmp_path / "bad.pt")

    def test_a_part_of_a_file(self, tmp_path):
        path = tmp_path / "bad.pt"
        torch.save({"x": torch.ones(100)}, path)
        self.cut(path, 0.5)
        with pytest.raises(RuntimeError, match=r"bad\.pt: PytorchStreamReader failed reading zip archive"):
            torch.load(path)

    @pytest.mark.parametrize(
        ("pickled", "error"),
        [
            (b"", EOFError),
            (b"\x80\x02", EOFError),
            (b"\x80\x02X\x05\x00\x00\x00ab", EOFError),
            (b"\x80\x02ctorch", EOFError),
            (b"\x80\x02J\x00\x00", EOFError),
            (b"\x80\x09N.", pickle.UnpicklingError),
            (b"\x80\x02.N", pickle.UnpicklingError),
            (b"\x80\x02RN.", pickle.UnpicklingError),
            (b"\x80\x02h\x07.", pickle.UnpicklingError),
            (b"\x80\x02tN.", pickle.UnpicklingError),
            (b"\x80\x02}]Ns.", pickle.UnpicklingError),
            (b"\x80\x02}(Nu.", pickle.UnpicklingError),
            (b"\x80\x02X\x01\x00\x00\x00\xff.", pickle.UnpicklingError),
            (b"\x80\x02K\x01Q.", pickle.UnpicklingError),
            (b"\x80\x02(Q.", pickle.UnpicklingError),
            (b"\x80\x02)Q.", pickle.UnpicklingError),
            (b"\x80\x02" + global_("builtins.complex") + b"NN\x86R.", pickle.UnpicklingError),
            (b"\x80\x02" + global_("builtins.set") + b"K\x01\x85R.", pickle.UnpicklingError),
            (b"\x80\x02" + global_("_codecs.encode") + b"X\x01\x00\x00\x00aX\x04\x00\x00\x00idna\x86R.", pickle.UnpicklingError),
            (b"\x80\x02" + global_("collections.defaultdict") + global_("torch.Tensor") + b"\x85R.", pickle.UnpicklingError),
            (b"\x80\x02" + global_("torch._utils._rebuild_tensor_v2") + b")R.", pickle.UnpicklingError),
            (b"\x80\x02" + global_("torch._utils._rebuild_parameter") + b"N\x88N\x87R.", pickle.UnpicklingError),
        ],
    )
    def test_pickles(self, tmp_path, pickled, error):
        path = tmp_path / "bad.pt"
        path.write_bytes(archive(pickled).getvalue())
        with pytest.raises(error, match=r"bad\.pt"):
            torch.load(path)

    def test_a_changed_byte_of_a_storage(self, tmp_path):
        path = tmp_path / "bad.pt"
        torch.save(torch.full((100,), 1.25), path)
        content = path.read_bytes()
        path.write_bytes(content.replace(struct.pack("<4f", *[1.25] * 4), struct.pack("<4f", 1.25, 1.25, 1.25, 7), 1))
        with pytest.raises(RuntimeError, match=r"bad\.pt.*bad checksum"):
            torch.load(path)

    @staticmethod
    def with_entry(**changes):
        """A checkpoint whose directory says something else about its tensor's record."""
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w") as file:
            file.writestr("archive/data.pkl", tensor_pickle())
            file.writestr("archive/data/0", bytes(16))
            for name, value in changes.items():
                setattr(file.infolist()[-1], name, value)
        buffer.seek(0)
        return buffer

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"header_offset": 1 << 40}, "begins past the end of the file"),
            ({"header_offset": 7}, "no record begins where"),
            ({"compress_type": zipfile.ZIP_BZIP2}, "compressed in a way that checkpoints never are"),
            (
                {"compress_type": zipfile.ZIP_DEFLATED, "flag_bits": 1},
                "compressed in a way that checkpoints never are, or encrypted",
            ),
        ],
    )
    def test_entries_of_the_directory(self, changes, message):
        assert torch.load(self.with_entry()).tolist() == [0, 0, 0, 0]
        with pytest.raises(RuntimeError, match=message):
            torch.load(self.with_entry(**changes))

    @pytest.mark.parametrize("compression", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
    def test_a_record_before_the_start_of_the_file(self, compression, tmp_path):
        content, path = archive(tensor_pickle(), {"data/0": bytes(16)}, compression).getvalue(), tmp_path / "bad.pt"
        path.write_bytes(content[:4] + content[40:])  # places of records count from the directory, which is 36 bytes earlier
        with pytest.raises(RuntimeError, match=r"bad\.pt.*before its start"):
            torch.load(path)

    def test_another_order_of_bytes(self):
        records = {"data/0": struct.pack(">4f", 1, 2, 3, 4), "byteorder": b"big"}
        assert torch.load(archive(tensor_pickle(), records)).tolist() == [1, 2, 3, 4]
        with pytest.raises(RuntimeError, match="Unknown endianness"):
            torch.load(archive(tensor_pickle(), records | {"byteorder": b"middle"}))

    def test_an_index_of_a_device_is_a_number(self):
        pickled = b"\x80\x02" + global_("torch.device") + b"X\x03\x00\x00\x00npu\x88\x86R."
        with pytest.raises(pickle.UnpicklingError):
            torch.load(archive(pickled))
        assert torch.device("npu", 1).index is not True


def payload():
    """One of each kind of value."""
    base = torch.arange(12.0).reshape(3, 4)
    state = OrderedDict(weight=torch.nn.Parameter(base), half=torch.ones(3, dtype=torch.bfloat16))
    state._metadata = OrderedDict({"": {"version": 1}})
    attributed = torch.ones(2)
    attributed.note = "text"
    return {
        "state": state,
        "views": [base[1], base.t(), base.expand(2, 3, 4)],
        "attributed": attributed,
        "sparse": torch.eye(3).to_sparse(),
        "flags": torch.tensor([True, False]),
        "complex": torch.tensor([1 + 2j]),
        "plain": [1, 2**40, -3, 2.5, "text", b"bytes", bytearray(b"x"), None, True, (1, 2), {1, 2}, 1 + 2j],
        "dicts": [Counter("aab"), {(1, "a"): 2}],
        "names": [torch.float16, torch.Size([1, 2]), torch.device("cpu"), torch.sparse_coo],
    }


@pytest.mark.parametrize("protocol", [1, 2, 3, 4, 5])
def test_each_protocol_is_read(protocol):
    buffer = io.BytesIO()
    torch.save(payload(), buffer, pickle_protocol=protocol)
    buffer.seek(0)
    loaded, expected = torch.load(buffer), payload()
    assert repr(loaded) == repr(expected)
    assert loaded["state"]._metadata == expected["state"]._metadata
    assert loaded["attributed"].note == "text"


def test_storages_come_back_as_typed_ones():
    loaded = torch.load(saved([torch.arange(3.0).untyped_storage()]))[0]
    assert (type(loaded), loaded.dtype, loaded._nbytes()) == (torch.storage.TypedStorage, torch.uint8, 12)


def test_mapped_checkpoints_open_one_file(tmp_path):
    """More tensors than a process may open files."""
    torch.save([torch.ones(2) for _ in range(3000)], tmp_path / "many.pt")
    loaded = torch.load(tmp_path / "many.pt", mmap=True)
    assert sum(t.sum().item() for t in loaded) == 6000


class Fuzz:
    """Mutations of a good checkpoint."""

    OPCODES = b"()]}Nabcdeghijlopqrstu012.\x80\x81\x85\x86\x87\x88\x89\x8a\x8f\x90\x91\x92\x93\x94\x95\x96QRBCJKMXU"

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.whole = saved(payload()).getvalue()
        with zipfile.ZipFile(io.BytesIO(self.whole)) as file:
            self.records = {name.partition("/")[2]: file.read(name) for name in file.namelist()}
        self.pickled = self.records.pop("data.pkl")

    def __iter__(self):
        kinds = (self.flipped, self.cut, self.pickle_bytes, self.pickle_opcodes, self.pickle_spliced, self.swapped_records)
        for number in range(1_800):
            yield kinds[number % len(kinds)]()

    def at(self, content):
        return self.random.randrange(len(content))

    def flipped(self):
        content = bytearray(self.whole)
        for _ in range(self.random.choice((1, 1, 2, 8))):
            content[self.at(content)] ^= 1 << self.random.randrange(8)
        return io.BytesIO(bytes(content))

    def cut(self):
        first, last = sorted((self.at(self.whole), self.at(self.whole)))
        return io.BytesIO(self.whole[:first] + (self.whole[last:] if self.random.random() < 0.5 else b""))

    def pickle_bytes(self):
        content = bytearray(self.pickled)
        for _ in range(self.random.choice((1, 2, 4))):
            content[self.at(content)] = self.random.randrange(256)
        return archive(bytes(content), self.records)

    def pickle_opcodes(self):
        content = bytearray(self.pickled)
        for _ in range(self.random.choice((1, 2, 4))):
            at = self.at(content)
            code = bytes([self.random.choice(self.OPCODES)])
            content[at : at + self.random.randrange(2)] = code
        return archive(bytes(content), self.records)

    def pickle_spliced(self):
        a, b, c = (self.at(self.pickled) for _ in range(3))
        return archive(self.pickled[:a] + self.pickled[b : b + self.random.randrange(60)] + self.pickled[c:], self.records)

    def swapped_records(self):
        names = [name for name in self.records if name.startswith("data/")]
        one, other = self.random.sample(names, 2)
        changed = self.records | {one: self.records[other], other: self.records[one]}
        if self.random.random() < 0.5:
            changed[one] = changed[one][: self.at(changed[one]) if changed[one] else 0]
        return archive(self.pickled, changed)


def test_mutated_checkpoints_load_or_are_refused():
    before = library_state()
    refused = []
    for buffer in Fuzz(seed=20):
        try:
            torch.load(buffer)
        except ERRORS as error:
            refused.append(str(error))
    assert library_state() == before
    assert all("the checkpoint (BytesIO)" in text for text in refused)
    assert 900 < len(refused) < 1_700  # of 1800: it reaches both sides
    check = torch.load(io.BytesIO(Fuzz(seed=20).whole))
    assert repr(check) == repr(payload())


def _payload_of(library):
    base = library.arange(12.0).reshape(3, 4)
    tensors = {str(d): library.ones(3, dtype=getattr(library, d)) for d in DTYPES}
    model = library.nn.Sequential(library.nn.Linear(3, 4), library.nn.BatchNorm1d(4))
    optimizer = library.optim.Adam(model.parameters())
    model(library.ones(2, 3)).sum().backward()
    optimizer.step()
    attributed = library.nn.Parameter(library.ones(2))
    attributed.note = "text"
    return {
        **tensors, "views": [base[1], base.t()], "sparse": library.eye(3).to_sparse(), "model": model.state_dict(),
        "optimizer": optimizer.state_dict(), "attributed": attributed, "meta": library.empty(2, 3, device="meta"),
        "counter": Counter("aab"), "layout": library.sparse_coo,
    }  # fmt: skip


DTYPES = "bool uint8 int8 int16 int32 int64 uint16 uint32 uint64 float16 bfloat16 float32 float64 complex64 complex128".split()


def _shown(value):
    """A value of either library."""
    if hasattr(value, "is_meta") and (value.is_meta or value.is_sparse):
        return [str(value.dtype), tuple(value.shape), None if value.is_meta else value.to_dense().tolist()]
    if hasattr(value, "tolist"):
        return [str(value.dtype), tuple(value.shape), value.stride(), value.requires_grad, type(value).__name__, value.tolist()]
    if isinstance(value, dict):
        return {key: _shown(v) for key, v in value.items()}
    return [_shown(v) for v in value] if isinstance(value, list | tuple) else repr(value)


@pytest.mark.parity
@pytest.mark.parametrize("options", [{}, {"mmap": True}, {"weights_only": False}])
def test_all_kinds_of_values_cross_between_the_libraries(tmp_path, options):
    import torch as theirs

    for source, target in ((theirs, torch), (torch, theirs)):
        expected = _payload_of(source)
        source.save(expected, tmp_path / "all.pt")
        loaded = target.load(tmp_path / "all.pt", **options)
        assert _shown(loaded) == _shown(expected)
        assert loaded["attributed"].note == "text"
        assert loaded["model"]._metadata == expected["model"]._metadata


@pytest.mark.parity
def test_damaged_files_have_torchs_errors():
    import torch as theirs

    good = archive(tensor_pickle(), {"data/0": bytes(16)}).getvalue()
    cases = [
        b"",
        good[: len(good) // 2],
        archive(tensor_pickle(count=5), {"data/0": bytes(16)}).getvalue(),
        archive(tensor_pickle(key=b"7"), {"data/0": bytes(16)}).getvalue(),
        archive(tensor_pickle(offset=-1), {"data/0": bytes(16)}).getvalue(),
        archive(tensor_pickle(stride=(-1,)), {"data/0": bytes(16)}).getvalue(),
        archive(tensor_pickle(size=(9,)), {"data/0": bytes(16)}).getvalue(),
        archive(tensor_pickle()[:-1], {"data/0": bytes(16)}).getvalue(),
        archive(b"\x80\x02cos\nsystem\n.").getvalue(),
        archive(b"\x80\x02ctorch\nTensor\n}b.").getvalue(),
        archive(b"\x80\x02\xff.").getvalue(),
        archive(b"\x80\x02]NNs.").getvalue(),
    ]
    for content in cases:
        with pytest.raises(ERRORS) as ours:
            torch.load(io.BytesIO(content))
        with pytest.raises(ERRORS) as their:
            theirs.load(io.BytesIO(content))
        assert isinstance(ours.value, their.type)
