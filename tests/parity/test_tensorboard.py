"""torch.utils.tensorboard: event files that TensorBoard's own reader takes, with the events that PyTorch writes."""

import os

import numpy as np
import pytest
import torch
import torch.utils.tensorboard
from tensorboard.backend.event_processing.event_file_loader import LegacyEventFileLoader
from tensorboard.backend.event_processing.event_multiplexer import EventMultiplexer

import mindtorch_v2 as mt
import mindtorch_v2.utils.tensorboard

pytestmark = pytest.mark.parity

WRITES = {
    "scalar": lambda w, lib: w.add_scalar("a/b", 0.5, 3),
    "scalar of a tensor": lambda w, lib: w.add_scalar("a", lib.tensor([0.25]), global_step=lib.tensor(4)),
    "scalar, new": lambda w, lib: w.add_scalar("a", 0.1, 1, new_style=True),
    "scalar, double": lambda w, lib: w.add_scalar("a", 0.1, 1, new_style=True, double_precision=True),
    "scalar of two": lambda w, lib: w.add_scalar("a", lib.ones(2)),
    "scalars": lambda w, lib: w.add_scalars("x/y", {"one": 1, "two": lib.tensor(2.0)}, 5),
    "tensor": lambda w, lib: w.add_tensor("t", lib.arange(6.0).reshape(2, 3), 1),
    "tensor of integers": lambda w, lib: w.add_tensor("t", lib.arange(6), 1),
    "tensor of numbers with parts": lambda w, lib: w.add_tensor("t", lib.tensor([1 + 2j]), 1),
    "tensor of half precision": lambda w, lib: w.add_tensor("t", lib.tensor([1.5]).half(), 1),
    "histogram": lambda w, lib: w.add_histogram("h", lib.linspace(-3, 5, 100), 2),
    "histogram of bfloat16": lambda w, lib: w.add_histogram("h", lib.arange(4).bfloat16(), 2),
    "histogram by NumPy": lambda w, lib: w.add_histogram("h", np.arange(50.0) ** 2, 2, bins="auto"),
    "histogram with few bins": lambda w, lib: w.add_histogram("h", lib.linspace(0, 1, 100), 2, bins=50, max_bins=7),
    "histogram of nothing": lambda w, lib: w.add_histogram("h", lib.ones(0)),
    "counts": lambda w, lib: w.add_histogram_raw("h", 0, 3, 4, 6, 14, [1, 2, 3], [1, 1, 2], 1),
    "counts that do not fit": lambda w, lib: w.add_histogram_raw("h", 0, 3, 4, 6, 14, [1, 2], [1, 1, 2], 1),
    "image": lambda w, lib: w.add_image("i", lib.linspace(0, 1, 60).reshape(3, 4, 5), 1),
    "image of bytes": lambda w, lib: w.add_image("i", lib.arange(60).reshape(4, 5, 3).to(lib.uint8), 1, dataformats="HWC"),
    "image without channels": lambda w, lib: w.add_image("i", lib.linspace(0, 1, 20).reshape(4, 5), 1, dataformats="HW"),
    "image of one channel": lambda w, lib: w.add_image("i", lib.linspace(0, 1, 20).reshape(1, 4, 5), 1),
    "image that does not fit": lambda w, lib: w.add_image("i", lib.ones(4, 5)),
    "images": lambda w, lib: w.add_images("i", lib.linspace(0, 1, 10 * 3 * 4 * 5).reshape(10, 3, 4, 5), 1),
    "images, channels last": lambda w, lib: w.add_images("i", lib.linspace(0, 1, 60).reshape(3, 4, 5, 1), 1, dataformats="NHWC"),
    "boxes": lambda w, lib: w.add_image_with_boxes("i", lib.zeros(3, 32, 32), lib.tensor([[2, 2, 20, 25]]), 1, labels="box"),
    "audio": lambda w, lib: w.add_audio("s", lib.linspace(-1, 1, 100).reshape(1, 100), 1, sample_rate=8000),
    "text": lambda w, lib: w.add_text("t", "**bold** ä", 1),
    "curve": lambda w, lib: w.add_pr_curve("p", lib.tensor([0, 1, 1, 0, 1]), lib.tensor([0.1, 0.9, 0.4, 0.6, 0.7]), 1),
    "curve, weighted": lambda w, lib: w.add_pr_curve("p", np.array([0, 1]), np.array([0.1, 0.9]), 1, 20, np.array([1.0, 2.0])),
    "curve that is known": lambda w, lib: w.add_pr_curve_raw("p", *[np.arange(3)] * 6, 1, num_thresholds=3),
    "lines": lambda w, lib: w.add_custom_scalars_multilinechart(["a", "b"], "c", "t"),
    "margin": lambda w, lib: w.add_custom_scalars_marginchart(["a", "b", "c"]),
    "margin of two": lambda w, lib: w.add_custom_scalars_marginchart(["a", "b"]),
    "charts": lambda w, lib: w.add_custom_scalars({"A": {"one": ["Multiline", ["a"]], "two": ["Margin", ["a", "b", "c"]]}}),
    "mesh": lambda w, lib: w.add_mesh(
        "m", lib.linspace(0, 1, 12).reshape(1, 4, 3), lib.ones(1, 4, 3), lib.tensor([[[0, 1, 2]]]), {"material": {"k": 1}}, 2
    ),
    "hyperparameters": lambda w, lib: w.add_hparams({"lr": 0.1, "name": "x", "on": True}, {"loss": 0.3}, {"lr": [0.1, 0.2]}, "run", 1),
    "hyperparameters of another type": lambda w, lib: w.add_hparams({"lr": [1]}, {"loss": 0.3}),
    "hyperparameters that do not fit": lambda w, lib: w.add_hparams({"lr": 1}, {}, {"lr": ["a"]}),
    "embedding": lambda w, lib: w.add_embedding(
        lib.linspace(0, 1, 12).reshape(4, 3), list("abcd"), lib.linspace(0, 1, 4 * 3 * 2 * 2).reshape(4, 3, 2, 2), 7, "t/x"
    ),
    "embedding with columns": lambda w, lib: w.add_embedding(np.eye(2), [["a", 1], ["b", 2]], metadata_header=["n", "v"]),
    "embedding that does not fit": lambda w, lib: w.add_embedding(np.eye(2), ["a"]),
}  # fmt: skip


def outcome(lib, write, folder):
    """The files that were written, and the events in them; or the kind of error."""
    writer = lib.utils.tensorboard.SummaryWriter(folder, purge_step=2)
    try:
        write(writer, lib)
    except Exception as error:
        return type(error).__name__
    finally:
        writer.close()
    found = {}
    for place, _, names in os.walk(folder):
        for name in names:
            path, where = os.path.join(place, name), os.path.relpath(place, folder)
            if "tfevents" in name:
                found[where] = [cleaned(event) for event in LegacyEventFileLoader(path).Load()]
            else:
                found[where, name] = open(path, "rb").read()  # noqa: SIM115
    return found


def cleaned(event):
    """An event without its time and who wrote it."""
    event.wall_time = 0
    event.ClearField("source_metadata")
    return str(event)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", WRITES)
def test_events(name, tmp_path):
    ours = outcome(mt, WRITES[name], str(tmp_path / "ours"))
    assert ours == outcome(torch, WRITES[name], str(tmp_path / "theirs"))


@pytest.mark.filterwarnings("ignore")
def test_tensorboard_shows_them(tmp_path):
    with mt.utils.tensorboard.SummaryWriter(str(tmp_path)) as writer:
        for step in range(3):
            writer.add_scalar("loss", 1 / (step + 1), step)
        writer.add_histogram("weights", mt.arange(10.0), 0)
    shown = EventMultiplexer().AddRunsFromDirectory(str(tmp_path)).Reload()
    assert [round(e.value, 3) for e in shown.Scalars(".", "loss")] == [1.0, 0.5, 0.333]
    assert shown.Runs()["."]["histograms"] == ["weights"]


def test_a_film(tmp_path):
    frames = mt.linspace(0, 1, 3 * 5 * 3 * 4 * 6).reshape(3, 5, 3, 4, 6)
    found = outcome(mt, lambda w, lib: w.add_video("v", frames, 1, fps=5), str(tmp_path))
    assert any("GIF89a" in event and "width: 24" in event and "height: 4" in event for event in found["."])


@pytest.mark.parametrize("method", ["add_graph", "add_onnx_graph"])
def test_graphs_are_refused(method, tmp_path):
    with mt.utils.tensorboard.SummaryWriter(str(tmp_path)) as writer, pytest.raises(NotImplementedError, match=method):
        getattr(writer, method)(None)
