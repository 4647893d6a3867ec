"""`mindtorch run`: a program that says `import torch` runs on this package, as Python runs it."""

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent.parent.parent / "src"
RUN = ("-m", "mindtorch_v2", "run")
posix = pytest.mark.skipif(os.name != "posix", reason="signals and fork are POSIX's")


@pytest.fixture
def python(tmp_path):
    """Runs Python in a directory of the test's own, where a package `torch` stands for PyTorch."""
    fake = tmp_path / "torch" / "__init__.py"
    fake.parent.mkdir()
    fake.write_text("raise ImportError('this is not the torch that was meant')\n")

    def run(*command, **options):
        environment = {**os.environ, "PYTHONPATH": str(SOURCE), "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        environment.update(options.pop("environment", {}))
        return subprocess.run(
            [sys.executable, *map(str, command)],
            capture_output=True,
            text=True,
            cwd=options.pop("cwd", tmp_path),
            env=environment,
            timeout=300,
            **options,
        )

    return run


@pytest.fixture
def script(tmp_path):
    def write(text, name="script.py"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(textwrap.dedent(text))
        return name

    return write


def check(done, out=None, status=0):
    assert (done.returncode, done.stderr) == (status, "")
    if out is not None:
        assert done.stdout == out


FACTS = """
import json, os, pickle, sys
class Thing: pass
names = {k: str(v).partition(" at 0x")[0] for k, v in globals().items() if k.startswith("__")}
print(json.dumps([sys.argv, sys.path, names, sys.modules["__main__"].__dict__ is globals()], sort_keys=True))
print(type(pickle.loads(pickle.dumps(Thing()))) is Thing)
print("to stderr", file=sys.stderr)
sys.exit(3)
"""


@pytest.mark.parametrize("form", ["script", "directory", "package", "module", "joined", "code", "stdin"])
def test_a_program_finds_what_it_finds_without(python, script, form):
    script(FACTS, "inner/script.py")
    script("", "inner/__init__.py")
    script(FACTS, "inner/__main__.py")
    program = {
        "script": ["inner/script.py"],
        "directory": ["inner"],
        "package": ["-m", "inner"],
        "module": ["-m", "inner.script"],
        "joined": ["-minner.script"],
        "code": ["-c", FACTS],
        "stdin": ["-"],
    }[form]
    options = {"input": FACTS} if form == "stdin" else {}
    alone = python(*program, "--", "-x", "", "run", **options)
    ours = python(*RUN, *program, "--", "-x", "", "run", **options)
    assert (ours.returncode, ours.stderr, ours.stdout) == (3, "to stderr\n", alone.stdout)


FAILING = {
    "in a function": "def f():\n    1 / 0\nf()\n",
    "at the top": "raise ValueError('x') from KeyError('y')\n",
    "while handling another": "try:\n    {}['a']\nexcept KeyError:\n    raise RuntimeError('b')\n",
    "its syntax": "def f(:\n    pass\n",
    "an import": "import nowhere_to_be_found\n",
    "a group": "raise ExceptionGroup('g', [ValueError(1)])\n",
    "an exit with a text": "import sys; sys.exit('a reason')\n",
    "an exit with True": "raise SystemExit(True)\n",
}


@pytest.mark.parametrize("case", FAILING)
def test_errors_are_shown_as_without(python, script, case):
    script(FAILING[case])
    alone, ours = python("script.py"), python(*RUN, "script.py")
    assert alone.returncode == 1
    assert (ours.returncode, ours.stdout, ours.stderr) == (1, alone.stdout, alone.stderr)


def test_errors_of_code_and_of_modules(python, script):
    for program in (["-c", "def f():\n    1 / 0\nf()"], ["-c", "1 +"]):
        alone, ours = python(*program), python(*RUN, *program)
        assert (ours.returncode, ours.stderr) == (1, alone.stderr)
    script("1 / 0\n", "pkg/__init__.py")
    script("", "pkg/part.py")
    done = python(*RUN, "-m", "pkg.part")
    assert done.returncode == 1
    assert "_launch" not in done.stderr
    assert done.stderr.splitlines()[1].endswith('__init__.py", line 1, in <module>')


@pytest.mark.parametrize(
    ("program", "reason", "status"),
    [
        (["none.py"], "can't open file", 2),
        (["-m", "none"], "No module named none", 1),
        ([], "a program is missing", 2),
        (["-m"], "a program is missing", 2),
        (["--strange"], "unknown option '--strange'", 2),
    ],
)
def test_what_cannot_be_run(python, program, reason, status):
    done = python(*RUN, *program)
    assert (done.returncode, done.stdout) == (status, "")
    assert reason in done.stderr
    assert "Traceback" not in done.stderr


@posix
@pytest.mark.parametrize(("name", "status"), [("SIGINT", -signal.SIGINT), ("SIGTERM", -signal.SIGTERM)])
def test_signals_end_it_as_without(python, script, name, status):
    heard = "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # ignored in what a shell runs in the background
    script(f"import os, signal, torch\n{heard}os.kill(os.getpid(), signal.{name})\n")
    done = python(*RUN, "script.py")
    assert done.returncode == status
    assert "_launch" not in done.stderr


def test_a_console_script_starts_the_same(python, script, tmp_path):
    """What pip makes of the entry point in pyproject.toml: another folder is first on sys.path, and one frame more."""
    script("import sys\nfrom mindtorch_front import main\nsys.exit(main())\n", "bin/mindtorch")
    script(FACTS)
    script("1 / 0\n", "failing.py")
    for program in (["script.py"], ["-m", "script"], ["-c", FACTS]):
        assert python("bin/mindtorch", "run", *program).stdout == python(*program).stdout
    assert python("bin/mindtorch", "run", "failing.py").stderr == python("failing.py").stderr
    assert "2.13.0" in python("bin/mindtorch", "--version").stdout


TORCH = """
import importlib.metadata, importlib.util, inspect, pickle, sys
assert importlib.util.find_spec("torch").origin.endswith("__init__.py")  # before it is imported
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import optim
from torch.nn.modules.linear import Linear
from torch.utils.hooks import RemovableHandle
import mindtorch_v2, mindtorch_v2.nn.functional

assert torch is mindtorch_v2 and nn is mindtorch_v2.nn and F is mindtorch_v2.nn.functional and F is nn.functional
assert Linear is torch.nn.Linear and torch.optim is optim
for name, module in list(sys.modules.items()):
    if name.partition(".")[0] == "torch":
        assert module is sys.modules["mindtorch_v2" + name[5:]], name
for name in ("torch", "torch.nn", "torch.nn.functional", "torch.nn.modules.linear", "torch.optim.sgd", "torch.autograd"):
    assert sys.modules[name].__spec__.name == "mindtorch_v2" + name[5:], name
assert torch.__name__ == "torch" and torch.torch is torch  # Pyro and kornia ask
assert importlib.util.find_spec("torch") is not None and importlib.util.find_spec("torch.nn.functional") is not None
assert importlib.util.find_spec("torch.nowhere") is None
assert importlib.metadata.version("torch") == str(torch.__version__) == "2.13.0"
assert importlib.metadata.distribution("Torch").metadata["Name"] == "torch"
assert "torch" in {d.metadata["Name"] for d in importlib.metadata.distributions()}
assert inspect.getmodule(Linear).Linear is Linear and "class Linear" in inspect.getsource(Linear)
assert pickle.loads(b"ctorch.nn.modules.linear\\nLinear\\n.") is Linear
assert isinstance(torch.ones(2), torch.Tensor) and importlib.import_module("torch.nn.init") is nn.init
print(F.relu(torch.tensor([-1.0, 2.0])).tolist())
"""


@pytest.mark.parametrize("how", ["run", "as_torch", "notebook"])
def test_torch_is_this_package(python, script, how):
    script(TORCH)
    if how == "run":
        done = python(*RUN, "script.py")
    else:
        done = python(
            "-c",
            f"import mindtorch_v2.as_torch\nexec(compile({TORCH!r}, 'cell', 'exec'))"
            + "\nimport mindtorch_v2.as_torch" * (how == "notebook"),
        )
    check(done, "[0.0, 2.0]\n")


def test_another_torch_that_is_imported_already(python, script):
    script("value = 1", "torch/__init__.py")
    done = python("-c", "import torch\nimport mindtorch_v2.as_torch")
    assert done.returncode == 1
    assert "ImportError: mindtorch_v2 cannot stand for torch: another torch is imported already" in done.stderr
    assert str(Path("torch", "__init__.py")) in done.stderr


def test_an_unknown_part_of_torch(python, script):
    script("""
        import torch
        for name in ("torch.nowhere", "torch.nn.nowhere", "torch.nested"):
            try:
                __import__(name)
            except ModuleNotFoundError as error:
                print(error.name, "|", error)
    """)
    done = python(*RUN, "script.py")
    check(done)
    first, second, third = done.stdout.splitlines()
    assert first.startswith("torch.nowhere | No module named 'torch.nowhere'")
    assert second.startswith("torch.nn.nowhere | No module named 'torch.nn.nowhere'")
    assert "docs/compatibility.md" in third


CHILDREN = """
import multiprocessing, os, subprocess, sys

def work(n):
    import torch
    return torch.ones(n).sum().item(), torch.__package__

if __name__ == "__main__":
    methods = ["spawn"] + ["fork", "forkserver"] * hasattr(os, "fork")
    for method in methods:
        with multiprocessing.get_context(method).Pool(1) as pool:
            print(method, pool.apply(work, (3,)))
    child = "import torch, torch.nn.functional, sys, os, importlib.metadata as m; print(torch.__package__, m.version('torch'), {!r} in sys.path)"
    grandchild = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'import torch; print(torch.__package__)'])"
    startup = os.environ["PYTHONPATH"].split(os.pathsep)[0]
    for code in (child.format(startup), grandchild):
        print(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout, end="")
    print(subprocess.run([sys.executable, "plain.py"], capture_output=True, text=True).stdout, end="")
"""
CHILDRENS_OUTPUT = "mindtorch_v2 2.13.0 False\nmindtorch_v2\nplain mindtorch_v2\n"


@posix
def test_processes_that_it_starts(python, script, tmp_path):
    script(CHILDREN)
    script("import torch\nprint('plain', torch.__package__)\n", "plain.py")
    done = python(*RUN, "script.py")
    workers = "".join(f"{method} (3.0, 'mindtorch_v2')\n" for method in ("spawn", "fork", "forkserver"))
    check(done, workers + CHILDRENS_OUTPUT)


def test_processes_where_the_package_is_found_by_the_directory_alone(python, script, tmp_path):
    """`python -m mindtorch_v2 run` in the folder of the sources: nothing else leads a child to the package."""
    script(
        "import subprocess, sys\nprint(subprocess.run([sys.executable, '-c', 'import torch; print(torch.ones(2).sum())'], capture_output=True, text=True))"
    )
    done = python(*RUN, tmp_path / "script.py", cwd=SOURCE, environment={"PYTHONPATH": ""})
    check(done)
    assert "tensor(2.)" in done.stdout


def test_an_environment_of_another_python_keeps_its_torch(python, script):
    script("print('theirs')", "torch/__init__.py")
    script("""
        import os, subprocess, sys
        os.environ["MINDTORCH_AS_TORCH"] = "/another/environment"
        print(subprocess.run([sys.executable, "-c", "import torch"], capture_output=True, text=True).stdout, end="")
    """)
    check(python(*RUN, "script.py"), "theirs\n")


def test_a_sitecustomize_of_the_environment_runs_as_well(python, script, tmp_path):
    script("import sys\nsys.customized = getattr(sys, 'customized', 0) + 1\n", "site/sitecustomize.py")
    script("""
        import subprocess, sys
        code = "import sys, sitecustomize, torch; print(sys.customized, sitecustomize.__file__ == {!r}, torch.__package__)"
        subprocess.run([sys.executable, "-c", code.format(sys.argv[1])], check=True)
    """)
    custom = tmp_path / "site" / "sitecustomize.py"
    path = os.pathsep.join([str(custom.parent), str(SOURCE)])
    check(python(*RUN, "script.py", custom, environment={"PYTHONPATH": path}), "1 True mindtorch_v2\n")


def test_the_profiler_runs_programs_the_same_way(python, script, tmp_path):
    script("import torch\ntorch.ones(2) + torch.ones(2)\n")
    for program, text in (
        (["script.py"], None),
        (["-c", "import torch; torch.ones(2) + 1"], None),
        (["-"], "import torch; torch.ones(2) + 1"),
    ):
        done = python("-W", "error", "-m", "mindtorch_v2.profiler", "--no-trace", *program, **({"input": text} if text else {}))
        assert (done.returncode, done.stderr) == (0, "")
        assert "aten::add" in done.stdout
