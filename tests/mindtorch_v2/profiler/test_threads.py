"""Recording while threads start, run, stop and share scopes."""

import _thread
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

import mindtorch_v2 as torch
from mindtorch_v2.profiler import _ExperimentalConfig, profile, record_function, schedule, validate
from mindtorch_v2.profiler.capture.stacks import python_tracer


def run_in_threads(*functions, name="worker-{}"):
    threads = [threading.Thread(target=f, name=name.format(i)) for i, f in enumerate(functions)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return threads


def tracks(prof):
    """Thread id → name of the thread, of all threads with events."""
    session = prof.session
    return {session.tracks[i].thread_id: session.tracks[i].name for i in set(session.track.tolist())}


def assert_nested(prof):
    """On each thread, events are inside each other or apart."""
    by_track = {}
    for e in prof.events():
        by_track.setdefault(e.thread, []).append((e["start_ns"], e["end_ns"]))
    for spans in by_track.values():
        open_until = []
        for start, end in spans:
            while open_until and open_until[-1] <= start:
                open_until.pop()
            assert start <= end
            assert not open_until or end <= open_until[-1]
            open_until.append(end)


class TestLivesOfThreads:
    def test_each_event_has_the_id_and_the_trace_the_name_of_its_thread(self, tmp_path):
        x = torch.ones(2)
        ids = {}

        def work(name, op):
            ids[name] = threading.get_native_id()
            op()

        with profile() as prof:
            run_in_threads(lambda: work("a", lambda: x + x), lambda: work("b", lambda: x * x))
        found = {e["name"]: e["thread_id"] for e in prof.events()}
        assert found == {"aten::add": ids["a"], "aten::mul": ids["b"]}
        assert tracks(prof) == {ids["a"]: "worker-0", ids["b"]: "worker-1"}
        prof.export_chrome_trace(str(tmp_path / "trace.json"))
        assert validate(tmp_path / "trace.json") == []
        assert "worker-1" in (tmp_path / "trace.json").read_text()

    def test_threads_that_follow_each_other_keep_their_events_though_identifiers_are_used_again(self):
        x = torch.ones(2)
        idents, ids = [], []

        def work():
            idents.append(threading.get_ident())
            ids.append(threading.get_native_id())
            x + x

        with profile() as prof:
            for i in range(20):
                thread = threading.Thread(target=work, name=f"short-{i}")
                thread.start()
                thread.join()
        assert len(set(idents)) < 20, "the system gave no identifier twice: the test shows nothing"
        assert [e["thread_id"] for e in prof.events()] == ids
        assert list(tracks(prof).values()).count("short-7") == 1
        assert len(tracks(prof)) == len(set(ids))

    def test_a_thread_that_was_there_before_and_one_that_outlives_the_recording(self):
        x = torch.ones(2)
        begin, done, leave = threading.Event(), threading.Event(), threading.Event()

        def work():
            x - x
            begin.wait()
            x + x
            done.set()
            leave.wait()
            x * x

        thread = threading.Thread(target=work, name="long")
        thread.start()
        with profile() as prof:
            begin.set()
            done.wait()
        leave.set()
        thread.join()
        assert [e["name"] for e in prof.events()] == ["aten::add"]
        assert list(tracks(prof).values()) == ["long"]

    def test_a_thread_may_be_renamed(self):
        x = torch.ones(2)
        kept = []

        def work():
            threading.current_thread().name = "renamed"
            kept.append(threading.current_thread())
            x + x

        with profile() as prof:
            run_in_threads(work)
        assert list(tracks(prof).values()) == ["renamed"]

    def test_a_thread_unknown_to_threading_is_recorded(self):
        x = torch.ones(2)
        done = threading.Event()

        def work():
            x + x
            done.set()

        with profile() as prof:
            _thread.start_new_thread(work, ())
            done.wait()
        assert [e["name"] for e in prof.events()] == ["aten::add"]

    def test_a_pool_of_threads(self):
        x = torch.ones(2)
        with profile() as prof, ThreadPoolExecutor(3, thread_name_prefix="pool") as pool:
            list(pool.map(lambda i: x + i, range(100)))
        assert [e["name"] for e in prof.events()] == ["aten::add"] * 100
        assert all(name.startswith("pool_") for name in tracks(prof).values())

    def test_thread_objects_are_not_kept_alive(self):
        import weakref

        class Worker(threading.Thread):
            def run(self):
                self.tensor = torch.ones(3) + 1

        with profile(with_stack=True):
            worker = Worker()
            worker.start()
            worker.join()
            watched = weakref.ref(worker), weakref.ref(worker.tensor)
            del worker
            assert [w() for w in watched] == [None, None]

    def test_one_thread_alone_when_asked(self):
        x = torch.ones(2)
        config = _ExperimentalConfig(profile_all_threads=False)
        with profile(experimental_config=config, schedule=schedule(wait=0, warmup=1, active=1)) as prof:
            prof.step()

            def work():
                with record_function("theirs"):
                    x * x

            run_in_threads(work, work)
            with record_function("mine"):
                x + x
        assert [e["name"] for e in prof.events()] == ["ProfilerStep#1", "mine", "aten::add"]
        assert {e["thread_id"] for e in prof.events()} == {threading.get_native_id()}


class TestWhileOthersRun:
    @pytest.fixture(autouse=True)
    def switch_often(self):
        before = sys.getswitchinterval()
        sys.setswitchinterval(1e-5)
        yield
        sys.setswitchinterval(before)

    @pytest.mark.parametrize("options", [{}, {"record_shapes": True, "with_stack": True}])
    def test_starting_and_stopping_while_threads_compute(self, options):
        stop = threading.Event()
        problems = []

        def work(size):
            w = torch.ones(size, size, requires_grad=True)
            try:
                while not stop.is_set():
                    with record_function(f"scope {size}"):
                        torch.nn.functional.linear(w, w).sum().backward()
                    w.grad = None
            except BaseException as error:
                problems.append(error)
                raise

        threads = [threading.Thread(target=work, args=(size,), name=f"w{size}") for size in (2, 3, 4)]
        for t in threads:
            t.start()
        try:
            for _ in range(12):
                with profile(**options) as prof:
                    time.sleep(0.01)
                assert_nested(prof)
                for e in prof.events():
                    if e["name"] == "aten::addmm" or e["name"] == "aten::linear":
                        size = (
                            int(e.cpu_parent.name.split()[-1]) if e.cpu_parent and e.cpu_parent.name.startswith("scope") else None
                        )
                        if options and size is not None:
                            assert e["input_shapes"][0] == [size, size]
                        if options:
                            assert "work" in [entry.rpartition(":")[2] for entry in e["stack"]]
                    if e["kind"] == "op" and e.name.startswith("aten::"):
                        assert e.cpu_time_total >= e.self_cpu_time_total >= 0
        finally:
            stop.set()
            for t in threads:
                t.join()
        assert problems == []

    @pytest.mark.parametrize("options", [{}, {"record_shapes": True}, {"with_stack": True}])
    def test_every_operator_that_ran_wholly_inside_is_recorded_once(self, options):
        x = torch.ones(3)
        counts = [700, 400, 550]

        def work(count):
            for _ in range(count):
                with record_function("round"):
                    x * x + x

        with profile(**options) as prof:
            run_in_threads(*[lambda c=c: work(c) for c in counts])
        of_thread = {}
        for e in prof.events():
            if e["kind"] != "python_function":
                of_thread.setdefault(e["thread_id"], []).append(e["name"])
        assert sorted(len(found) for found in of_thread.values()) == sorted(3 * c for c in counts)
        for found in of_thread.values():
            assert found == ["round", "aten::mul", "aten::add"] * (len(found) // 3)
        assert_nested(prof)

    def test_stacks_and_shapes_are_the_callers_own_on_every_thread(self):
        def make(i):
            namespace = {"torch": torch}
            exec(compile(f"def f{i}(x):\n    return x + x", f"file{i}.py", "exec"), namespace)
            return namespace[f"f{i}"]

        functions = [make(i) for i in range(40)]
        barrier = threading.Barrier(4)

        def work():
            barrier.wait()
            for i, f in enumerate(functions):
                f(torch.ones(i + 1))

        with profile(record_shapes=True, with_stack=True) as prof:
            run_in_threads(work, work, work, work)
        adds = [e for e in prof.events() if e["name"] == "aten::add"]
        assert len(adds) == 160
        for e in adds:
            i = e["input_shapes"][0][0] - 1
            assert e["stack"][0] == f"file{i}.py:2:f{i}"
            assert "work" in e["stack"][1]

    def test_backward_from_several_threads(self):
        def work():
            w = torch.ones(3, requires_grad=True)
            for _ in range(50):
                (w * w).sum().backward()

        with profile() as prof:
            run_in_threads(work, work)
        names = [e["name"] for e in prof.events()]
        assert names.count("MulBackward0") == names.count("aten::sum") == 100
        for e in prof.events():
            if e["name"] == "MulBackward0":
                assert e.cpu_parent.name == "autograd::engine::evaluate_function: MulBackward0"
        assert_nested(prof)

    def test_stopping_while_a_backward_runs_elsewhere_leaves_it_alone(self):
        inside, go_on = threading.Event(), threading.Event()
        w = torch.ones(3, requires_grad=True)
        middle = w * 2

        def hook(grad):
            inside.set()
            go_on.wait()
            return grad

        middle.register_hook(hook)
        problems = []

        def work():
            try:
                (middle * 3).sum().backward()
            except BaseException as error:
                problems.append(error)

        thread = threading.Thread(target=work)
        with profile() as prof:
            thread.start()
            inside.wait()
        go_on.set()
        thread.join()
        assert problems == []
        assert w.grad.tolist() == [6.0, 6.0, 6.0]
        assert "MulBackward0" in [e["name"] for e in prof.events()]
        with profile() as after:
            pass
        assert list(after.events()) == []


class TestScopes:
    def test_a_scope_entered_in_one_thread_and_left_in_another(self):
        x = torch.ones(2)
        scope = record_function("shared")
        with profile() as prof:
            scope.__enter__()
            x + x
            run_in_threads(lambda: (x * x, scope.__exit__(None, None, None)))
            x - x
        shared, add, mul, sub = prof.events()
        assert [e["name"] for e in (shared, add, mul, sub)] == ["shared", "aten::add", "aten::mul", "aten::sub"]
        assert shared["thread_id"] == threading.get_native_id()
        assert add.cpu_parent is shared
        assert mul.cpu_parent is None
        assert sub.cpu_parent is None
        assert shared["end_ns"] <= sub["start_ns"]

    def test_an_operator_in_which_a_scope_is_left_elsewhere_keeps_its_time(self):
        scope = record_function("shared")

        class Slow(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                run_in_threads(lambda: scope.__exit__(None, None, None))
                return x * 2

            @staticmethod
            def backward(ctx, grad):
                run_in_threads(lambda: inner.__exit__(None, None, None))
                return grad * 2

        x = torch.ones(2, requires_grad=True)
        inner = record_function("during backward")
        with profile() as prof:
            scope.__enter__()
            y = Slow.apply(x)
            inner.__enter__()
            y.sum().backward()
        assert_nested(prof)
        found = {e["name"]: e for e in prof.events()}
        node = found["SlowBackward"]
        (mul,) = [c for c in node.cpu_children if c.name == "aten::mul"]
        assert node["start_ns"] <= mul["start_ns"] <= mul["end_ns"] <= node["end_ns"]
        assert found["during backward"]["end_ns"] <= node["start_ns"]

    def test_a_scope_never_left_ends_with_its_parent(self):
        x = torch.ones(2)
        with profile() as prof:
            with record_function("parent"):
                record_function("forgotten").__enter__()
                x + x
            x * x
        parent, forgotten, add, mul = prof.events()
        assert (forgotten.cpu_parent, add.cpu_parent, mul.cpu_parent) == (parent, forgotten, None)
        assert forgotten["end_ns"] == parent["end_ns"]

    def test_a_scope_never_left_ends_at_the_stop(self):
        x = torch.ones(2)
        with profile() as prof:
            record_function("forgotten").__enter__()
            x + x
        forgotten, add = prof.events()
        assert add.cpu_parent is forgotten
        with profile() as after:
            x * x
        assert [e["name"] for e in after.events()] == ["aten::mul"]

    def test_leaving_out_of_order(self):
        x = torch.ones(2)
        a, b = record_function("a"), record_function("b")
        with profile() as prof:
            a.__enter__()
            b.__enter__()
            a.__exit__(None, None, None)
            x + x
            b.__exit__(None, None, None)
            x * x
        assert_nested(prof)
        assert [e["name"] for e in prof.events()] == ["a", "b", "aten::add", "aten::mul"]
        assert [e.cpu_parent and e.cpu_parent.name for e in prof.events()] == [None, "a", None, None]

    def test_leaving_twice_is_harmless(self):
        scope = record_function("once")
        with profile() as prof:
            scope.__enter__()
            scope.__exit__(None, None, None)
            scope.__exit__(None, None, None)
        assert [e["name"] for e in prof.events()] == ["once"]

    def test_a_scope_left_after_the_recording_disturbs_nothing(self):
        scope = record_function("long")
        with profile() as first:
            scope.__enter__()
        with profile() as second:
            scope.__exit__(None, None, None)
        assert [e["name"] for e in first.events()] == ["long"]
        assert list(second.events()) == []

    def test_generators_that_interleave_scopes(self):
        x = torch.ones(2)

        def stage(name):
            with record_function(name):
                x + x
                yield
                x * x
                yield

        with profile() as prof:
            a, b = stage("a"), stage("b")
            for _ in range(2):
                next(a)
                next(b)
            assert list(a) == list(b) == []
        assert_nested(prof)
        names = [e["name"] for e in prof.events()]
        assert sorted(names) == ["a", "aten::add", "aten::add", "aten::mul", "aten::mul", "b"]

    def test_recursion(self):
        x = torch.ones(2)

        @record_function("level")
        def descend(depth):
            x + x
            return None if depth == 0 else descend(depth - 1)

        with profile() as prof:
            descend(50)
        assert [e["name"] for e in prof.events()] == ["level", "aten::add"] * 51
        innermost = prof.events()[-1]
        for _ in range(51):
            innermost = innermost.cpu_parent
        assert innermost.cpu_parent is None


@pytest.mark.skipif(sys.version_info < (3, 12), reason="sys.setprofile is set by the thread itself, at its first operator")
class TestFunctionsOfThreadsThatRanBefore:
    def test_they_begin_with_the_recording(self):
        begun, go_on, returned, stop = (threading.Event() for _ in range(4))

        def outer():
            inner()
            returned.set()
            stop.wait(60)

        def inner():
            begun.set()
            go_on.wait(60)

        thread = threading.Thread(target=outer)
        thread.start()
        begun.wait(60)
        with profile(with_stack=True) as prof:
            torch.ones(2)
            go_on.set()
            returned.wait(60)
        stop.set()
        thread.join()
        rows = [e for e in prof.events() if e["kind"] == "python_function" and e["thread_id"] == thread.native_id]
        found = {e["name"].rpartition(": ")[2]: e for e in rows}
        info = prof.session.info
        assert found["outer"]["start_ns"] <= found["inner"]["start_ns"] < found["inner"]["end_ns"] < found["outer"]["end_ns"]
        (ones,) = [e for e in prof.events() if e["name"] == "aten::ones"]
        assert info.started_ns <= found["inner"]["start_ns"] < ones["start_ns"]
        assert found["outer"]["end_ns"] <= info.stopped_ns
        assert names_outwards(found["inner"]) == ["inner", "outer"]

    def test_that_wait_all_the_time(self):
        begun, stop = threading.Event(), threading.Event()
        outer_module, inner_module = torch.nn.Sequential(), Waiting(begun, stop)
        outer_module.append(inner_module)
        thread = threading.Thread(target=lambda: outer_module(torch.ones(1)))
        thread.start()
        begun.wait(60)
        with profile(with_stack=True) as prof:
            torch.ones(2)
        stop.set()
        thread.join()
        rows = [e for e in prof.events() if e["thread_id"] == thread.native_id]
        assert [e["name"].rpartition(": ")[2] for e in rows] == [
            "<lambda>", "Sequential_0", "forward", "Waiting_0", "forward", "wait", "wait"
        ]  # fmt: skip
        info = prof.session.info
        assert {(e["start_ns"], e["end_ns"]) for e in rows} == {(info.started_ns, info.stopped_ns)}
        assert [len(names_outwards(e)) for e in rows] == [1, 2, 3, 4, 5, 6, 7]

    def test_whose_first_report_is_a_return(self):
        begun, go_on, returned, stop = (threading.Lock() for _ in range(4))  # not of Python functions
        for lock in (begun, go_on, returned, stop):
            lock.acquire()

        def outer():
            inner()
            returned.release()
            stop.acquire()

        def inner():
            begun.release()
            go_on.acquire()

        thread = threading.Thread(target=outer)
        thread.start()
        begun.acquire()
        with profile(with_stack=True) as prof:
            go_on.release()
            returned.acquire()
            torch.ones(2)
        stop.release()
        thread.join()
        rows = [e for e in prof.events() if e["thread_id"] == thread.native_id and not e["name"].startswith("<built-in")]
        inner_row, outer_row = sorted(rows, key=lambda e: e["end_ns"])
        assert names_outwards(inner_row) == ["inner", "outer"]
        assert inner_row["start_ns"] == outer_row["start_ns"] == prof.session.info.started_ns
        assert inner_row["end_ns"] < outer_row["end_ns"] == prof.session.info.stopped_ns

    def test_that_are_in_a_function_shown_for_its_cost(self):
        """The return of `torch.tensor`, whose call was not reported, does not switch off the reports of later returns."""
        begun, go_on = threading.Event(), threading.Event()

        class Slow:
            def __float__(self):
                begun.set()
                go_on.wait(60)
                return 1.0

        thread = threading.Thread(target=lambda: torch.tensor([Slow()], dtype=torch.float32))
        thread.start()
        begun.wait(60)
        with profile(with_stack=True) as prof:
            go_on.set()
            thread.join()
            torch.tensor([1.0])
            torch.tensor([1.0])
        mine = [e for e in prof.events() if e["name"].endswith(": tensor") and e["thread_id"] == prof.session.info.thread_id]
        assert len(mine) == 2
        assert mine[0]["end_ns"] <= mine[1]["start_ns"]

    @pytest.mark.parametrize("interval", [1e-6, 1e-5, 1e-4, 5e-3])
    def test_while_they_call_and_return(self, interval, tmp_path):
        done = threading.Event()

        def leaf(n):
            return n if n == 0 else leaf(n - 1)

        def busy():
            while not done.is_set():
                leaf(5)

        threads = [threading.Thread(target=busy) for _ in range(2)]
        usual = sys.getswitchinterval()
        sys.setswitchinterval(interval)
        for thread in threads:
            thread.start()
        try:
            for _ in range(15):
                with profile(with_stack=True) as prof:
                    for _ in range(3):
                        torch.ones(2) + 1
                prof.export_chrome_trace(str(tmp_path / "trace.json"))
                assert validate(tmp_path / "trace.json") == []
                for thread in threads:
                    rows = [e for e in prof.events() if e["kind"] == "python_function" and e["thread_id"] == thread.native_id]
                    leaves = [names_outwards(e) for e in rows if e["name"].endswith(": leaf")]
                    assert {names[-1] for names in leaves} <= {"busy"}
                    assert all(names.count("leaf") <= 6 and names.count("busy") == 1 for names in leaves)
        finally:
            done.set()
            sys.setswitchinterval(usual)
            for thread in threads:
                thread.join()

    def test_one_that_is_slow_to_see_the_end_of_a_recording(self, monkeypatch):
        """Labels have other numbers in the next recording, of which it must not keep those it was about to note."""
        begun, go_on, numbered, called, stop = (threading.Event() for _ in range(5))
        label_number = python_tracer.label_number

        def slow_label_number(label):
            number = label_number(label)
            if label.name.endswith(": outer"):
                monkeypatch.undo()
                numbered.set()
                second.wait(60)
            return number

        def inner():
            pass

        def outer():
            begun.set()
            go_on.wait(60)
            inner()
            called.set()
            while not stop.is_set():
                inner()

        second = threading.Event()
        thread = threading.Thread(target=outer)
        with profile(with_stack=True):
            monkeypatch.setattr(python_tracer, "label_number", slow_label_number)
            thread.start()
            numbered.wait(60)
        with profile(with_stack=True) as prof:
            second.set()
            begun.wait(60)
            go_on.set()
            called.wait(60)
        stop.set()
        thread.join()
        rows = [e for e in prof.events() if e["thread_id"] == thread.native_id and e["name"].endswith(": inner")]
        assert rows != []
        assert {tuple(names_outwards(e)) for e in rows} == {("inner", "outer")}


class Waiting(torch.nn.Module):
    def __init__(self, begun, stop):
        super().__init__()
        self.begun, self.stop = begun, stop

    def forward(self, x):
        self.begun.set()
        self.stop.wait(60)
        return x


def names_outwards(event):
    """Its name and those of the functions around it."""
    names = []
    while event is not None:
        names.append(event["name"].rpartition(": ")[2])
        event = event.cpu_parent
    return names
