"""Embeddings, as files that TensorBoard's projector reads."""

from __future__ import annotations

import io
import math
from pathlib import Path
from typing import Any

import numpy as np
from google.protobuf import text_format
from numpy.typing import NDArray
from tensorboard.plugins.projector.projector_config_pb2 import EmbeddingInfo, ProjectorConfig

from ._arrays import as_array, grid, optional

__all__ = ["Projector"]


class Projector:
    """The embeddings of a folder of logs."""

    def __init__(self, folder: str) -> None:
        self.folder = Path(folder)
        self.config = ProjectorConfig()

    def add(self, mat: NDArray[Any], metadata: Any, label_img: Any, step: int, tag: str, header: Any) -> None:
        """Write the points, what they are called, and their pictures."""
        _check(mat, metadata, label_img)
        subdir = f"{str(step).zfill(5)}/{_encoded(tag)}"
        target = self.folder / subdir
        if target.exists() and not target.is_dir():
            raise NotADirectoryError(f"Path: `{target}` exists, but is a file. Cannot proceed.")
        if target.exists():
            print("warning: Embedding dir exists, did you set global_step for add_embedding()?")
        target.mkdir(parents=True, exist_ok=True)
        info = EmbeddingInfo(tensor_name=f"{tag}:{str(step).zfill(5)}", tensor_path=f"{subdir}/tensors.tsv")
        if metadata is not None:
            (target / "metadata.tsv").write_text(_table(metadata, header))
            info.metadata_path = f"{subdir}/metadata.tsv"
        if label_img is not None:
            (target / "sprite.png").write_bytes(_sprite(as_array(label_img)))
            info.sprite.image_path = f"{subdir}/sprite.png"
            info.sprite.single_image_dim.extend([label_img.shape[3], label_img.shape[2]])
        (target / "tensors.tsv").write_text("".join("\t".join(str(x.item()) for x in row) + "\n" for row in mat))
        self.config.embeddings.append(info)
        (self.folder / "projector_config.pbtxt").write_text(text_format.MessageToString(self.config))


def _check(mat: NDArray[Any], metadata: Any, label_img: Any) -> None:
    if mat.ndim != 2:
        raise AssertionError("mat should be 2D, where mat.size(0) is the number of data points")
    if metadata is not None and len(metadata) != len(mat):
        raise AssertionError("#labels should equal with #data points")
    if label_img is not None and label_img.shape[0] != len(mat):
        raise AssertionError("#images should equal with #data points")


def _encoded(tag: str) -> str:
    for character in "%/\\":
        tag = tag.replace(character, f"%{ord(character):02x}" if character != "\\" else f"%%{ord(character):02x}")
    return tag


def _table(metadata: Any, header: Any) -> str:
    if not header:
        return "\n".join(map(str, metadata)) + "\n"
    if len(header) != len(metadata[0]):
        raise AssertionError("len of header must be equal to the number of columns in metadata")
    return "\n".join("\t".join(map(str, row)) for row in [header, *metadata]) + "\n"


def _sprite(images: NDArray[Any]) -> bytes:
    """All pictures in one, a square."""
    arranged = grid(images, ncols=math.ceil(len(images) ** 0.5)).transpose(1, 2, 0)
    side = arranged.shape[1]
    square = np.zeros((side, side, 3))
    square[: arranged.shape[0]] = arranged
    buffer = io.BytesIO()
    pillow = optional("pillow", "PIL.Image", "add_embedding(label_img=…)")
    pillow.fromarray((square * 255).clip(0, 255).astype(np.uint8)).save(buffer, format="PNG")
    return buffer.getvalue()
