"""What is in the page of a memory timeline. How it looks and acts is tested in a browser (tests/browser)."""

import json
import re

import numpy as np
import pytest

import mindtorch_v2 as torch
from mindtorch_v2.profiler import profile
from mindtorch_v2.profiler.model.memory_timeline import sums_by_category, timeline_of
from mindtorch_v2.profiler.output import memory_page

ALL = {"record_shapes": True, "profile_memory": True, "with_stack": True}


@pytest.fixture(scope="module")
def prof():
    net = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(inplace=True), torch.nn.Linear(32, 4))
    optimizer = torch.optim.Adam(net.parameters())
    with profile(**ALL, schedule=torch.profiler.schedule(wait=0, warmup=1, active=2)) as prof:
        for _ in range(3):
            optimizer.zero_grad()
            net(torch.ones(8, 16)).sum().backward()
            optimizer.step()
            prof.step()
    return prof


def bytes_at(pieces, time_ns):
    """Bytes of each category at a time."""
    start, end, size, category = (np.array(pieces[name]) for name in ("start", "end", "size", "category"))
    live = (start <= time_ns) & (time_ns < end)
    return np.bincount(category[live], weights=size[live], minlength=8).astype(int).tolist()


def test_pieces_add_up_to_the_timeline(prof):
    timeline = timeline_of(prof.session)
    data = memory_page.page_data(timeline)
    _, sizes = sums_by_category(timeline)
    order = [data["categories"].index(name) for name in ("parameter", "optimizer state", "input", "temporary", "activation", "gradient", "autograd detail", "unknown")]  # fmt: skip
    at_end = bytes_at(data["pieces"], data["end"])
    assert [at_end[i] for i in order] == sizes[-1][1:]


def test_the_peak_is_that_of_the_memory_in_use(prof):
    data = memory_page.page_data(timeline_of(prof.session))
    memory = prof.session.memory
    assert data["peak"]["bytes"] == memory.total_bytes.max()
    assert sum(bytes_at(data["pieces"], data["peak"]["time"])) == data["peak"]["bytes"]
    assert data["peak"]["time"] + prof.session.info.started_ns in memory.time_ns[memory.total_bytes == memory.total_bytes.max()]


def test_who_made_it_and_from_where(prof):
    data = memory_page.page_data(timeline_of(prof.session))
    makers = {data["names"][i] for i in data["pieces"]["maker"]}
    assert {"before the recording", "aten::linear › aten::addmm", "AddmmBackward0 › aten::mm"} <= makers
    (shown, stack) = data["places"][
        data["pieces"]["place"][data["pieces"]["maker"].index(data["names"].index("aten::linear › aten::addmm"))]
    ]
    assert re.fullmatch(r".*test_memory_page\.py\(\d+\): prof", shown)
    assert shown in stack.splitlines()
    assert "linear.py" in stack.splitlines()[0]


def test_bands_are_steps_backward_passes_and_optimizers(prof):
    bands = memory_page.page_data(timeline_of(prof.session))["bands"]
    assert [(kind, name) for kind, name, *_ in bands] == [
        ("step", "ProfilerStep#1"),
        ("backward", "backward"),
        ("optimizer", "Optimizer.step#Adam.step"),
        ("step", "ProfilerStep#2"),
        ("backward", "backward"),
        ("optimizer", "Optimizer.step#Adam.step"),
    ]
    assert all(start < end for *_, start, end in bands)


def test_of_very_many_the_small_ones_are_drawn_together(prof, monkeypatch):
    timeline = timeline_of(prof.session)
    whole = memory_page.page_data(timeline)
    monkeypatch.setattr(memory_page, "SHOWN", 20)
    monkeypatch.setattr(memory_page, "BINS", 50)
    data = memory_page.page_data(timeline)
    assert data["summed"]["count"] == len(whole["pieces"]["size"]) - 20
    assert data["peak"] == whole["peak"]
    assert len(data["pieces"]["size"]) <= 20 + 50 * 8
    # in each interval the most of each category: never less than there was, and no more than the greatest
    for time_ns in np.linspace(0, whole["end"], 200).astype(int):
        for drawn, true in zip(bytes_at(data["pieces"], time_ns), bytes_at(whole["pieces"], time_ns), strict=True):
            assert drawn >= true
    most = np.max([bytes_at(whole["pieces"], t) for t in whole["pieces"]["start"]], axis=0)
    small = data["summed"]["below"] - 1
    assert small <= sorted(whole["pieces"]["size"])[-20]
    assert np.all(np.max([bytes_at(data["pieces"], t) for t in data["pieces"]["start"]], axis=0) <= 2 * most)


def test_the_file_is_one_page_with_the_data_in_it(prof, tmp_path):
    path = tmp_path / "timeline.html"
    prof.export_memory_timeline(path)
    text = path.read_text()
    assert "{{" not in text.replace("${{", "")
    (content,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', text, re.S)
    assert json.loads(content)["peak"] == memory_page.page_data(timeline_of(prof.session))["peak"]
    assert not re.search(r"""(src|href)=|url\(|@import|https?://(?!www\.w3\.org)""", text)


def test_memory_without_any_event_has_a_page():
    with profile(**ALL) as prof:
        kept = torch.from_numpy(np.ones(10))
    session = prof.session.head(0)
    assert len(session.memory.time_ns)
    timeline = timeline_of(session).of_device("cpu")
    assert memory_page.page_columns(timeline)
    assert kept.tolist() == [1] * 10
