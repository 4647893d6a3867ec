"""Tasks of asyncio take turns on one thread: each that opens scopes has a track of its own, on which they nest."""

import asyncio
import json
import threading

import pytest

import mindtorch_v2 as torch
from mindtorch_v2.profiler import profile, record_function, validate

x = torch.ones(2)


def parents(prof):
    return [(e["name"], e.cpu_parent and e.cpu_parent.name) for e in prof.events()]


def operators_in(scope):
    """Operators of a scope, with those of the Python functions in it."""
    return [n for c in scope.cpu_children for n in ([c["name"]] if c["kind"] == "op" else operators_in(c))]


def test_scopes_of_tasks_that_interleave_keep_their_own_operators(tmp_path):
    async def work(name, op):
        with record_function(name):
            for _ in range(3):
                op(x, x)
                await asyncio.sleep(0)

    async def main():
        await asyncio.gather(work("a", torch.add), work("b", torch.mul))

    with profile() as prof:
        asyncio.run(main())
    found = parents(prof)
    assert found.count(("aten::add", "a")) == found.count(("aten::mul", "b")) == 3
    assert len(found) == 8
    a, b = [e for e in prof.events() if e["kind"] == "scope"]
    assert b["start_ns"] < a["end_ns"] < b["end_ns"]  # they do overlap
    assert a.thread != b.thread
    assert {e["thread_id"] for e in prof.events()} == {threading.get_native_id()}
    prof.export_chrome_trace(str(tmp_path / "trace.json"))
    assert validate(tmp_path / "trace.json") == []
    rows = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    tid = {r["name"]: r["tid"] for r in rows if r.get("cat") in ("cpu_op", "user_annotation")}
    assert tid["a"] == tid["aten::add"] != tid["b"] == tid["aten::mul"]


def test_the_track_bears_the_name_of_the_task():
    async def work():
        with record_function("scope"):
            x + x

    async def main():
        await asyncio.create_task(work(), name="loader")

    with profile() as prof:
        asyncio.run(main())
    assert [prof.session.tracks[i].name for i in set(prof.session.track.tolist())] == ["loader"]


def test_decorated_coroutines_last_from_call_to_result():
    @record_function("fetch")
    async def fetch(n):
        await asyncio.sleep(0)
        return x + n

    async def main():
        return await asyncio.gather(fetch(1), fetch(2))

    with profile() as prof:
        assert [t.tolist() for t in asyncio.run(main())] == [[2.0, 2.0], [3.0, 3.0]]
    assert sorted(parents(prof), key=str) == [("aten::add", "fetch")] * 2 + [("fetch", None)] * 2


def test_decorated_async_generators_are_scopes_while_they_run():
    @record_function("batch")
    async def batches():
        for n in range(2):
            await asyncio.sleep(0)
            yield x + n

    async def main():
        return [(t * 2).tolist() async for t in batches()]

    with profile() as prof:
        assert asyncio.run(main()) == [[2.0, 2.0], [4.0, 4.0]]
    found = parents(prof)
    assert found.count(("aten::add", "batch")) == 2
    assert found.count(("aten::mul", None)) == 2


def test_decorated_generators_are_scopes_while_they_run():
    @record_function("batch")
    def batches():
        got = yield x + 1
        assert got == "sent"
        try:
            yield x + 2
        except KeyError:
            yield x + 3
        return "result"

    with profile() as prof:
        g = batches()
        next(g)
        x * x
        g.send("sent")
        x * x
        g.throw(KeyError())
        with pytest.raises(StopIteration, match="result"):
            next(g)
    found = parents(prof)
    assert found.count(("aten::add", "batch")) == 3
    assert found.count(("aten::mul", None)) == 2
    assert found.count(("batch", None)) == 4


def test_work_handed_to_a_thread_is_of_that_thread():
    async def main():
        with record_function("outer"):
            await asyncio.to_thread(lambda: x * x)
            x + x

    with profile() as prof:
        asyncio.run(main())
    found = {e["name"]: e for e in prof.events()}
    assert found["aten::mul"].cpu_parent is None
    assert found["aten::mul"]["thread_id"] != threading.get_native_id()
    assert found["aten::add"].cpu_parent.name == "outer"


def test_a_group_with_an_exception_and_cancelled_tasks():
    async def fail():
        with record_function("fails"):
            await asyncio.sleep(0)
            raise KeyError

    async def wait():
        with record_function("is cancelled"):
            x + x
            await asyncio.Event().wait()

    async def main():
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(wait())
                group.create_task(fail())
        except* KeyError:
            x * x
        with record_function("after"):
            x - x

    with profile() as prof:
        asyncio.run(main())
    assert sorted(parents(prof), key=str) == [
        ("after", None),
        ("aten::add", "is cancelled"),
        ("aten::mul", None),
        ("aten::sub", "after"),
        ("fails", None),
        ("is cancelled", None),
    ]


@pytest.mark.parametrize("options", [{}, {"with_stack": True, "record_shapes": True}])
def test_loops_on_several_threads(options, tmp_path):
    async def work(name):
        for _ in range(5):
            with record_function(name):
                x + x
                await asyncio.sleep(0)
                x * x

    async def main(prefix):
        await asyncio.gather(*[work(f"{prefix}{i}") for i in range(4)])

    with profile(**options) as prof:
        threads = [threading.Thread(target=lambda p=p: asyncio.run(main(p))) for p in "abc"]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    scopes = [e for e in prof.events() if e["kind"] == "scope"]
    assert len(scopes) == 60
    for e in scopes:
        assert operators_in(e) == ["aten::add", "aten::mul"]
    prof.export_chrome_trace(str(tmp_path / "trace.json"))
    assert validate(tmp_path / "trace.json") == []


def test_a_recording_that_starts_and_stops_inside_a_task():
    async def other(stop):
        while not stop.is_set():
            with record_function("other"):
                x * x
                await asyncio.sleep(0)

    async def main():
        stop = asyncio.Event()
        task = asyncio.create_task(other(stop))
        await asyncio.sleep(0)
        for _ in range(3):
            with profile() as prof, record_function("mine"):
                await asyncio.sleep(0)
                x + x
                await asyncio.sleep(0)
            found = parents(prof)
            assert ("aten::add", "mine") in found
            assert ("aten::mul", "other") in found
        stop.set()
        await task

    asyncio.run(main())
