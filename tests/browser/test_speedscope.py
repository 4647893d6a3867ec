"""speedscope opens what we export: a flame graph as deep as the calls were."""

import threading
from collections import Counter

import pytest
from tests.browser import speedscope
from tests.browser.serving import Server

import mindtorch_v2 as torch
from mindtorch_v2.profiler import profile, record_function

pytestmark = pytest.mark.browser


@pytest.fixture(scope="session")
def page(request):
    return speedscope.fetched(request.config.cache.mkdir(f"speedscope-{speedscope.VERSION}"))


def record():
    """Training steps on one thread, and an operator on another."""
    net = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

    def step():
        net(torch.ones(4, 8)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()

    with profile(record_shapes=True, profile_memory=True, with_stack=True) as prof:
        with record_function("first"):
            step()
        step()
        thread = threading.Thread(target=lambda: torch.ones(2).neg(), name="other")
        thread.start()
        thread.join()
    return prof


def opened(frames, events):
    """(name, how many are around it) of what begins, in order."""
    found, depth = [], 0
    for event in events:
        if event["type"] == "O":
            found.append((frames[event["frame"]]["name"].partition(" {")[0], depth))
        depth += 1 if event["type"] == "O" else -1
    assert depth == 0
    return found


def called_deep(depth):
    return record() if depth == 0 else called_deep(depth - 1)


@pytest.mark.parametrize("depth", [0, 100])  # a hundred frames are more than a row has
def test_a_trace(browser, page, tmp_path, depth):
    prof = called_deep(depth)
    prof.export_chrome_trace(str(tmp_path / "trace.json"))
    with Server(page, tmp_path) as server:
        found = speedscope.read(browser, server, "trace.json")
    assert not any("rror" in message for message in browser.errors())
    profiles = {p["name"]: p for p in found["profiles"]}
    session = prof.session
    for number, track in enumerate(session.tracks):
        # changes of memory outside of operators are moments, which a flame graph does not have
        rows = [i for i in range(len(session)) if session.track[i] == number and session.labels[session.label[i]].kind != "memory"]
        (name,) = [name for name in profiles if f"(tid {track.tid})" in name]
        assert opened(found["shared"]["frames"], profiles[name]["events"]) == [
            (session.labels[session.label[row]].name, session.depth[row]) for row in rows
        ]
    assert max(session.depth) > 4


def test_the_lines_of_stacks(browser, page, tmp_path):
    prof = record()
    prof.export_stacks(str(tmp_path / "stacks.txt"))
    lines = [line.rpartition(" ") for line in (tmp_path / "stacks.txt").read_text().splitlines()]
    expected = Counter()
    for stack, _, weight in lines:
        expected[tuple(stack.split(";"))] += int(weight)
    with Server(page, tmp_path) as server:
        found = speedscope.read(browser, server, "stacks.txt")
    (of_all,) = found["profiles"]
    assert self_weights(found["shared"]["frames"], of_all["events"]) == +expected
    assert sum(expected.values()) > 0


def self_weights(frames, events):
    """What each stack has that no longer one has."""
    weights, stack, before = Counter(), [], 0
    for event in events:
        weights[tuple(frames[i]["name"] for i in stack)] += event["at"] - before
        before = event["at"]
        stack = [*stack, event["frame"]] if event["type"] == "O" else stack[:-1]
    return +weights
