"""Checkpoints written by hand: archives with any pickle and any records."""

from __future__ import annotations

import io
import zipfile

import mindtorch_v2 as torch


def archive(pickled: bytes, records: dict[str, bytes] | None = None, compression: int = zipfile.ZIP_STORED) -> io.BytesIO:
    """A checkpoint with this pickle and these storages."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as file:
        for name, content in ({"data.pkl": pickled, "byteorder": b"little", "version": b"3\n"} | (records or {})).items():
            file.writestr(f"archive/{name}", content)
    buffer.seek(0)
    return buffer


def global_(name: str) -> bytes:
    module, _, name = name.rpartition(".")
    return f"c{module}\n{name}\n".encode()


def integer(number: int) -> bytes:
    content = number.to_bytes(9, "little", signed=True)
    return b"\x8a\x09" + content


def tensor_pickle(
    *, kind: str = "torch.FloatStorage", key: bytes = b"0", location: bytes = b"cpu", count=4, offset=0, size=(4,), stride=(1,)
) -> bytes:
    """The pickle of one tensor."""

    def text(content: bytes) -> bytes:
        return b"X" + len(content).to_bytes(4, "little") + content

    def numbers(values) -> bytes:
        return b"(" + b"".join(map(integer, values)) + b"t"

    reference = b"(" + text(b"storage") + global_(kind) + text(key) + text(location) + integer(count) + b"tQ"
    arguments = reference + integer(offset) + numbers(size) + numbers(stride) + b"\x89" + global_("collections.OrderedDict") + b")R"
    return b"\x80\x02" + global_("torch._utils._rebuild_tensor_v2") + b"(" + arguments + b"tR."


def library_state() -> dict[str, object]:
    """Attributes of the classes, dtypes and tables that a checkpoint can name."""
    from mindtorch_v2 import _device, _dtype, _storage, serialization
    from mindtorch_v2._checkpoints import names, rebuild

    classes = (torch.Tensor, torch.nn.Parameter, torch.Size, torch.device, _dtype.dtype, _storage.UntypedStorage)
    state: dict[str, object] = {cls.__name__: dict(vars(cls)) for cls in classes}
    for d in _dtype.ALL:
        state[d.name] = {slot: getattr(d, slot) for slot in type(d).__slots__}
    for kind in (*names.STORAGE_TYPES.values(), names.UNTYPED):
        state[kind.name] = (kind.name, kind.dtype)
    state["names"], state["calls"] = dict(rebuild.NAMES), dict(rebuild.CALLS)
    state["modules"] = {module.__name__: dict(vars(module)) for module in (torch, serialization, rebuild)}
    state["safe"] = serialization.get_safe_globals()
    state["default"] = torch.get_default_dtype()
    state["cpu"] = (_device.cpu.type, _device.cpu.index, _device.cpu.key)
    state["random"] = torch.get_rng_state().tolist()
    return state
