"""Python functions in profiles: the program's own, and what it calls."""

import ast
import contextlib
import json
import re
import sys
import threading
import weakref

import pytest

import mindtorch_v2 as torch
from mindtorch_v2.profiler import ProfilerAction, profile
from mindtorch_v2.profiler.capture.stacks import python_tracer

x = torch.ones(4, 3)


def functions(prof):
    """Names of the Python functions, without place."""
    return [e["name"].rpartition(": ")[2] for e in prof.events() if e["kind"] == "python_function"]


def files(prof):
    return {re.sub(r"\(\d+\): .*", "", e["name"]) for e in prof.events() if e["kind"] == "python_function"}


def test_what_the_program_calls_is_there():
    def mine():
        return json.dumps({"a": [1]})

    with profile(with_stack=True) as prof:
        mine()
    found = functions(prof)
    assert found.index("mine") < found.index("dumps") < found.index("encode")


@pytest.mark.parametrize("steps", [False, True])
def test_what_operators_and_the_profiler_call_is_not(steps, no_other_collection):
    def work():
        w = torch.ones(3, 3, requires_grad=True)
        h = torch.nn.functional.layer_norm((x @ w).tanh(), (3,))
        h = torch.sort(h, 0).values.cumsum(1).std().sum()
        h.backward()

    options = {"schedule": lambda step: ProfilerAction.RECORD} if steps else {}
    with profile(with_stack=True, **options) as prof:
        work()
        prof.step()
        work()
    libraries = {
        f for f in files(prof) if "numpy" in f or f.startswith(("functools", "enum", "_weakrefset", "contextlib", "weakref"))
    }
    assert libraries == set()
    assert functions(prof).count("work") == 2


def test_the_users_functions_are_there_though_the_engine_calls_them():
    def hook(grad):
        return scaled(grad)

    def scaled(grad):
        return json.loads("2.0") * grad

    w = torch.ones(3, requires_grad=True)
    w.register_hook(hook)
    y = w * 1
    with profile(with_stack=True) as prof:
        y.sum().backward()
    found = functions(prof)
    assert found.index("hook") < found.index("scaled") < found.index("loads")
    (mul,) = [e for e in prof.events() if e["name"] == "aten::mul" and "scaled" in e["stack"][0]]
    assert [entry.rpartition(":")[2] for entry in mul["stack"]][:2] == ["scaled", "hook"]


def test_functions_of_the_package_that_take_as_long_as_there_is_data():
    with profile(with_stack=True) as prof:
        made = torch.tensor([[1.0, 2.0]])
        str(torch.from_numpy(made.numpy()) + torch.as_tensor([1.0]))
    shown = [event.name for event in prof.events() if event.name.startswith("mindtorch_v2/")]
    assert [re.sub(r"\(\d+\)", "", name) for name in shown] == [
        "mindtorch_v2/_creation.py: tensor",
        "mindtorch_v2/_interop.py: numpy_of",
        "mindtorch_v2/_interop.py: from_numpy",
        "mindtorch_v2/_creation.py: as_tensor",
        "mindtorch_v2/_printing.py: tensor_text",
    ]
    (addition,) = [event for event in prof.events() if event.name == "aten::add"]
    assert addition["stack"][0].startswith(__file__)  # of stacks they are no part


def test_recursion_generators_and_exceptions_nest():
    def count(n):
        if n:
            yield from count(n - 1)
        yield n

    def fail(n):
        if n == 0:
            raise KeyError
        try:
            fail(n - 1)
        finally:
            x + x

    with profile(with_stack=True) as prof:
        assert list(count(3)) == [0, 1, 2, 3]
        with pytest.raises(KeyError):
            fail(3)
        x * x
    session = prof.session
    assert (session.depth >= 0).all()
    adds = [e for e in prof.events() if e["name"] == "aten::add"]
    assert [[s.rpartition(":")[2] for s in e["stack"]].count("fail") for e in adds] == [3, 2, 1]
    (mul,) = [e for e in prof.events() if e["name"] == "aten::mul"]
    assert not any("fail" in s for s in mul["stack"])


def test_deep_recursion():
    def descend(n):
        return x + x if n == 0 else descend(n - 1)

    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(5000)
    try:
        with profile(with_stack=True) as prof:
            descend(2000)
    finally:
        sys.setrecursionlimit(limit)
    (add,) = [e for e in prof.events() if e["name"] == "aten::add"]
    assert [s.rpartition(":")[2] for s in add["stack"]].count("descend") == 2001


def test_the_stack_of_a_thread_that_ran_before_is_whole():
    begin, done = threading.Event(), threading.Event()

    def outermost():
        begin.wait()
        middle()
        done.set()

    def middle():
        innermost()

    def innermost():
        x + x

    thread = threading.Thread(target=outermost)
    thread.start()
    with profile(with_stack=True) as prof:
        begin.set()
        done.wait()
    thread.join()
    (add,) = [e for e in prof.events() if e["name"] == "aten::add"]
    assert [s.rpartition(":")[2] for s in add["stack"]][:3] == ["innermost", "middle", "outermost"]


def test_functions_that_run_when_the_recording_starts_and_stops_are_cut_to_it():
    def starts(prof):
        prof.start()
        x + x

    def stops(prof):
        x * x
        prof.stop()

    prof = profile(with_stack=True)
    starts(prof)
    stops(prof)
    found = {e["name"].rpartition(": ")[2]: e for e in prof.events()}
    assert found["starts"]["end_ns"] <= found["stops"]["start_ns"]
    assert {"starts", "stops"} <= found.keys()
    info = prof.session.info
    assert all(info.started_ns <= e["start_ns"] <= e["end_ns"] <= info.stopped_ns for e in prof.events())


def test_evaluated_code_and_lambdas():
    with profile(with_stack=True) as prof:
        (lambda: x + x)()
        exec(compile("def made(x):\n    return x * x\nmade(x)", "made.py", "exec"), {"x": x})
    stack = {e["name"]: e["stack"] for e in prof.events() if e["kind"] == "op"}
    assert stack["aten::add"][0].endswith(":<lambda>")
    assert stack["aten::mul"][:2] == ["made.py:2:made", "made.py:3:<module>"]


class Local:
    """What functions below have among their variables."""


def test_no_variable_outlives_its_function():
    left = []

    def made():
        local = Local()
        left.append(weakref.ref(local))
        return x + x

    def returns():
        made()

    def raises():
        local = Local()
        left.append(weakref.ref(local))
        made()
        raise ValueError

    def generates():
        local = Local()
        left.append(weakref.ref(local))
        yield made()
        yield made()

    with profile(with_stack=True) as prof:
        returns()
        with contextlib.suppress(ValueError):
            raises()
        for _ in generates():
            pass
        generator = generates()
        next(generator)
        generator.close()
        alive = [ref() for ref in left]
    assert alive == [None] * 8
    assert functions(prof).count("made") == 5
    assert all(e["stack"] for e in prof.events() if e["name"] == "aten::add")


@pytest.mark.parametrize("with_modules", [False, True])
def test_around_a_module_is_nothing_but_its_call(with_modules):
    linear = torch.nn.Linear(3, 2)
    with profile(with_stack=True, with_modules=with_modules) as prof:
        linear(x)
    names = [e["name"].rpartition(": ")[2] for e in prof.events() if e["kind"] != "scope"]
    called = names.index("Linear_0")
    assert names[called + 1] == "forward"
    assert names.count("Linear_0") == 1
    assert not [name for name in names if "observed" in name or "recorded" in name]
    (stack,) = [e["stack"] for e in prof.events() if e["name"] == "aten::linear"]
    assert [place.rpartition(":")[2] for place in stack[:3]] == [
        "forward",
        "__call__",
        "test_around_a_module_is_nothing_but_its_call",
    ]


def test_code_without_a_file_is_shown(run_python):
    """Of `python -c`, of `exec`, of the interactive prompt; imports are Python's own, and shown as torch shows them."""
    program = """
    import sys
    import mindtorch_v2 as torch
    from mindtorch_v2.profiler import profile

    def work(x):
        return made(x * x)

    x = torch.ones(3, requires_grad=True)
    x.register_hook(lambda grad: hooked(grad))
    scope = {"x": x, "torch": torch}
    exec("def made(x):\\n    return x + x\\ndef hooked(grad):\\n    return grad - 1", scope)
    made, hooked = scope["made"], scope["hooked"]
    with profile(with_stack=True) as prof:
        work(x).sum().backward()
        import colorsys
    print(next(e["stack"] for e in prof.events() if e["name"] == "aten::add"))
    print([e["name"] for e in prof.events() if e["kind"] == "python_function"])
    """
    main = "import textwrap; exec(compile(textwrap.dedent(open('program.txt').read()), sys.argv[1], 'exec'))"
    result = run_python(f"open('program.txt', 'w').write({program!r})")
    assert result.returncode == 0, result.stderr
    for name in ("<string>", "<stdin>", "<ipython-input-3-abc>"):
        result = run_python(f"import sys; {main}", name)
        assert result.returncode == 0, result.stderr
        stack, functions = map(ast.literal_eval, result.stdout.splitlines())
        assert stack[:3] == ["<string>:2:made", f"{name}:7:work", f"{name}:15:<module>"]
        assert [f"{name}(6): work", "<string>(1): made"] == [f for f in functions if "work" in f or "made" in f]
        assert [f"{name}(10): <lambda>", "<string>(3): hooked"] == [
            f for f in functions if f[0] == "<" and ("lambda" in f or "hooked" in f)
        ]
        assert any(f.startswith("<frozen importlib._bootstrap>") and f.endswith(": _find_and_load") for f in functions)


def test_code_that_is_generated_for_the_package_is_not_shown():
    """Of dataclasses and named tuples, which have no file either."""
    with profile(with_stack=True) as prof:
        with torch.profiler.record_function("scope"):
            torch.nn.functional.softmax(x, 0).max(0)
        torch.autograd.profiler.profile(enabled=False)
    names = [e["name"] for e in prof.events() if e["kind"] == "python_function"]
    assert [name for name in names if name.startswith("<string") and not name.endswith(": <module>")] == []


def test_a_deep_stack_that_is_met_while_another_thread_stops_is_walked_once(monkeypatch):
    """What the thread enters is taken back at once: it must not look for it again at each frame, twice as often as at the one around."""
    ended = python_tracer._Functions(None)
    met = []
    meet = python_tracer._Functions.meet
    monkeypatch.setattr(python_tracer._Functions, "meet", lambda self, frame: (met.append(frame), meet(self, frame))[1])
    namespace = {"_getframe": sys._getframe}
    exec("def deep(n):\n    return _getframe() if n == 0 else deep(n - 1)", namespace)
    frame = namespace["deep"](12)
    with profile(with_stack=True):
        now = python_tracer._functions
        monkeypatch.setattr(python_tracer, "_functions", None)
        before = len(met)
        python_tracer._call_of(ended, frame)
        found = len(met) - before
        monkeypatch.setattr(python_tracer, "_functions", now)
    assert found < 100
