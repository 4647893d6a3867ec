"""Storages: bytes, elements of one dtype, the legacy classes, files."""

from __future__ import annotations

import copy
import os
import pickle
import sys

import numpy as np
import pytest

import mindtorch_v2 as torch
from mindtorch_v2 import storage as storages

pytestmark = pytest.mark.filterwarnings("ignore:TypedStorage is deprecated")


class TestBytes:
    def test_made_of_a_size_or_of_numbers(self):
        assert torch.UntypedStorage(3).nbytes() == 3
        assert torch.UntypedStorage().tolist() == []
        made = torch.UntypedStorage([1, 2, 300])
        assert made.tolist() == [1, 2, 44]
        assert isinstance(made, torch.UntypedStorage)
        assert type(made) == torch.UntypedStorage  # noqa: E721 - what programs write
        assert isinstance(torch.ones(2).untyped_storage(), torch.UntypedStorage)
        assert not isinstance(torch.ones(2), torch.UntypedStorage)
        assert str(torch.UntypedStorage(3, device="meta")) == "...\n[torch.storage.UntypedStorage(device=meta) of size 3]"
        with pytest.raises(RuntimeError, match="of type str instead of int"):
            torch.UntypedStorage("ab")
        with pytest.raises(RuntimeError, match="Expected a sequence"):
            torch.UntypedStorage(1.5)
        with pytest.raises(TypeError, match="invalid combination"):
            torch.UntypedStorage(1, 2)

    def test_reading_and_writing(self):
        s = torch.UntypedStorage([1, 2, 3, 4, 5])
        assert (s[0], s[-1], list(s), len(s)) == (1, 5, [1, 2, 3, 4, 5], 5)
        part = s[1:3]
        part[0] = 77
        assert s.tolist() == [1, 77, 3, 4, 5]
        assert part.data_ptr() == s.data_ptr() + 1
        s[:2] = 9
        assert s.tolist() == [9, 9, 3, 4, 5]
        with pytest.raises(RuntimeError, match="step of 2"):
            s[::2]
        with pytest.raises(IndexError, match="index 7 out of range for storage of size 5"):
            s[7]
        with pytest.raises(TypeError, match="with str"):
            s["a"]
        with pytest.raises(RuntimeError, match="can only set storage content"):
            s[0] = 1.5

    def test_a_tensor_sees_what_is_written(self):
        x = torch.zeros(2)
        version = x._version
        x.untyped_storage()[3] = 0x3F
        x.untyped_storage()[2] = 0x80
        assert x.tolist() == [1, 0]
        assert x._version > version

    def test_copies(self):
        s = torch.UntypedStorage([1, 2])
        for made in (s.clone(), copy.copy(s), copy.deepcopy(s), pickle.loads(pickle.dumps(s)), torch.UntypedStorage(2).copy_(s)):
            assert made.tolist() == [1, 2]
            assert made.data_ptr() != s.data_ptr()
        with pytest.raises(RuntimeError, match="self was 3 bytes but src was 2 bytes"):
            torch.UntypedStorage(3).copy_(s)
        a, b = copy.deepcopy([torch.ones(2).untyped_storage()] * 2)
        assert a is b

    def test_swapped_bytes(self):
        s = torch.UntypedStorage([1, 2, 3, 4])
        s.byteswap(torch.int16)
        assert s.tolist() == [2, 1, 4, 3]
        with pytest.raises(RuntimeError, match="not a multiple of 8"):
            s.byteswap(torch.int64)

    def test_resizing_keeps_tensors_on_it(self):
        x = torch.arange(3.0)
        x.untyped_storage().resize_(40)
        assert x.untyped_storage().nbytes() == 40
        x.untyped_storage()[0:12] = 0
        assert x.tolist() == [0, 0, 0]
        assert x.untyped_storage().resize_(4).nbytes() == 4

    def test_memory_of_others_is_not_resized(self):
        array = np.ones(3, np.float32)
        for x in (torch.from_numpy(array), torch.frombuffer(bytearray(12), dtype=torch.float32)):
            assert not x.untyped_storage().resizable()
            with pytest.raises(RuntimeError, match="not resizable"):
                x.resize_(10)
            with pytest.raises(RuntimeError, match="not resizable"):
                x.untyped_storage().resize_(0)
            assert x.resize_(2).shape == (2,)
        assert torch.ones(3).untyped_storage().resizable()

    def test_buffers(self):
        s = torch.UntypedStorage.from_buffer(b"\1\2\3\4", dtype=torch.int16, byte_order="big")
        assert s.tolist() == ([2, 1, 4, 3] if sys.byteorder == "little" else [1, 2, 3, 4])
        assert torch.BoolStorage.from_buffer(bytearray(b"\2\0\1")).tolist() == [True, False, True]
        assert torch.ShortStorage.from_buffer(bytes(8), "native", 2, 2).size() == 2
        with pytest.raises(ValueError, match="multiple of element size"):
            torch.UntypedStorage.from_buffer(b"\1\2\3", dtype=torch.int16, byte_order="native")
        with pytest.raises(ValueError, match="invalid byte_order 'x'"):
            torch.UntypedStorage.from_buffer(b"\1\2", dtype=torch.int16, byte_order="x")
        with pytest.raises(ValueError, match="only 4 elements"):
            torch.ByteStorage.from_buffer(bytes(4), "native", 7)


class TestElements:
    def test_legacy_classes(self):
        s = torch.FloatStorage([1, 2.5])
        assert type(s) is torch.TypedStorage
        assert isinstance(s, torch.FloatStorage)
        assert not isinstance(s, torch.DoubleStorage)
        assert (s.type(), s.tolist(), s[-1], len(s), s.nbytes(), s.element_size()) == ("torch.FloatStorage", [1, 2.5], 2.5, 2, 8, 4)
        s[0] = 4
        assert list(s) == [4, 2.5]
        assert list(s.fill_(3)) == [3, 3]
        assert s.double().dtype is torch.float64
        assert s.float().data_ptr() != s.data_ptr()
        assert torch.IntStorage(2).size() == 2
        assert torch.FloatStorage(wrap_storage=torch.UntypedStorage(8)).size() == 2
        assert torch.ones(1).storage_type() is torch.FloatStorage

    def test_refusals(self):
        for arguments, message in (
            ({"device": "cpu"}, "'device' cannot be specified"),
            ({"dtype": torch.int8}, "'dtype' cannot be specified"),
        ):
            with pytest.raises(RuntimeError, match=message):
                torch.FloatStorage(3, **arguments)
        with pytest.raises(RuntimeError, match="'dtype' must be specified"):
            torch.TypedStorage(wrap_storage=torch.UntypedStorage(4))
        with pytest.raises(RuntimeError, match="slices are only supported in UntypedStorage"):
            torch.FloatStorage(3)[0:1]
        with pytest.raises(IndexError, match="index 3 out of range"):
            torch.FloatStorage(3)[3]
        with pytest.raises(RuntimeError, match="child classes"):
            storages._LegacyStorage()
        with pytest.raises(NotImplementedError, match="meta"):
            torch.TypedStorage(3, device="meta")[0]
        with pytest.raises(KeyError, match="not recognized"):
            torch.TypedStorage([1], dtype=torch.uint16).pickle_storage_type()

    def test_copies_keep_the_type(self):
        s = torch.HalfStorage([1, 2])
        for made in (s.clone(), copy.copy(s), copy.deepcopy(s), pickle.loads(pickle.dumps(s))):
            assert (made.dtype, made.tolist()) == (torch.float16, [1, 2])

    def test_the_warning_comes_once(self):
        storages._reset_warn_typed_storage_removal()
        with pytest.warns(UserWarning, match="TypedStorage is deprecated"):
            torch.ones(2).storage()
        torch.ones(2).storage().size()  # an error if it warned
        storages._set_always_warn_typed_storage_removal(True)
        try:
            with pytest.warns(UserWarning, match="TypedStorage is deprecated"):
                torch.ones(2).storage()
        finally:
            storages._set_always_warn_typed_storage_removal(False)


class TestFiles:
    def test_writes_go_to_a_shared_file(self, tmp_path):
        path = tmp_path / "numbers"
        x = torch.from_file(str(path), shared=True, size=3)
        assert os.path.getsize(path) == 12
        x += 1
        assert np.fromfile(path, np.float32).tolist() == [1, 1, 1]
        assert x.untyped_storage().filename == str(path)
        assert not x.untyped_storage().resizable()
        assert torch.FloatStorage.from_file(str(path), True, 3).tolist() == [1, 1, 1]

    def test_a_private_file_is_left_alone(self, tmp_path):
        path = tmp_path / "numbers"
        np.arange(3, dtype=np.int16).tofile(path)
        x = torch.from_file(str(path), size=3, dtype=torch.int16)
        x += 1
        assert x.tolist() == [1, 2, 3]
        assert np.fromfile(path, np.int16).tolist() == [0, 1, 2]
        assert torch.UntypedStorage.from_file(str(path), False, 4).filename is None

    def test_files_that_do_not_fit(self, tmp_path):
        (tmp_path / "a").write_bytes(bytes(8))
        with pytest.raises(RuntimeError, match="size <8> is smaller than the required mapping size <80>"):
            torch.UntypedStorage.from_file(str(tmp_path / "a"), False, 80)
        with pytest.raises(RuntimeError, match=r"unable to open file .* in read-only mode"):
            torch.UntypedStorage.from_file(str(tmp_path / "b"), False, 8)
        with pytest.raises(RuntimeError, match="derived classes"):
            torch.TypedStorage.from_file(str(tmp_path / "a"), False, 2)


class TestSet:
    def test_another_kind_of_storage_is_refused(self):
        x = torch.ones(3)
        with pytest.raises(RuntimeError, match="Expected a Storage of type float or an UntypedStorage, but got type Double"):
            x.set_(torch.DoubleStorage(3))
        with pytest.raises(RuntimeError, match="Could not set tensor of type double to a tensor of type float"):
            x.set_(torch.ones(2, dtype=torch.float64))
        with pytest.raises(RuntimeError, match="the devices must match"):
            x.set_(torch.UntypedStorage(8, device="meta"))
        with pytest.raises(RuntimeError, match="invalid storage offset -1"):
            x.set_(torch.UntypedStorage(8), -1, (1,))
        assert x.tolist() == [1, 1, 1]

    def test_storages(self):
        s = torch.FloatStorage([1, 2, 3])
        assert torch.empty(0).set_(s).tolist() == [1, 2, 3]
        assert torch.empty(0).set_(s, 1, (2,)).tolist() == [2, 3]
        assert torch.FloatTensor(s).tolist() == [1, 2, 3]
        assert torch.empty(0).set_(torch.UntypedStorage(7)).shape == (1,)
        grown = torch.empty(0).set_(torch.UntypedStorage(8), 0, (5,))
        assert grown.untyped_storage().nbytes() == 20
