"""A new user's first steps: the package installed from its wheel, each tutorial's commands, and the report in a browser.

What is named first, by every command and on the page, is the cause that was planted.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest
from selenium.webdriver.support.ui import WebDriverWait

pytestmark = pytest.mark.browser

ROOT = Path(__file__).parents[2]
PROGRAMS = ROOT / "examples" / "tutorials"


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The folder with the programs of an environment in which the package is installed, and its dependencies are in sight."""
    folder = tmp_path_factory.mktemp("installed")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True, timeout=120)
    (wheel,) = folder.glob("*.whl")
    environment = folder / "environment"
    venv.create(environment)
    programs = environment / ("Scripts" if os.name == "nt" else "bin")
    (site,) = environment.glob("lib/python*/site-packages")
    (site / "dependencies.pth").write_text(
        "\n".join([sysconfig.get_path("purelib"), *(p for p in sys.path if "site-packages" in p)])
    )
    install = [sys.executable, "-m", "pip", "--python", str(programs / "python"), "install", "--no-deps", "--no-index", str(wheel)]
    subprocess.run(install, check=True, capture_output=True, timeout=120)
    return programs


@pytest.fixture
def mindtorch(installed, tmp_path):
    """Runs a command in a folder of the test's own; returns what it prints."""

    def run(*arguments, program="mindtorch"):
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        environment |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        command = [str(installed / program), *map(str, arguments)]
        done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment, timeout=120)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout) if "--json" in arguments else done.stdout

    return run


@pytest.fixture
def shown(browser, tmp_path):
    """The text of a section of a page, once it is there; the page has complained of nothing and asked for nothing."""

    def shown(page, section):
        address = (tmp_path / page).as_uri()
        browser.open(f"{address}#{section}")
        ready = "document.querySelector('main')?.dataset.ready"
        WebDriverWait(browser.driver, 30).until(lambda _: browser.run(ready) == section)
        assert browser.errors() == []
        assert {request.partition("#")[0] for request in browser.requests()} == {address}
        return browser.one("main").text

    return shown


def first_of(answer, besides):
    return next(row["name"] for row in answer["rows"] if row["name"] != besides)


def test_it_is_the_installed_package_that_runs(mindtorch, installed):
    path = Path(mindtorch("-c", "import mindtorch_v2; print(mindtorch_v2.__file__)", program="python").strip())
    assert installed.parent in path.parents


def test_my_training_is_slow(mindtorch, shown):
    text = mindtorch("profile", "--with-stack", "-o", "slow", PROGRAMS / "slow_training.py")
    assert "First advice: The program made tensors of Python data (torch.tensor)" in text
    assert "made tensors of Python data (torch.tensor)" in shown("slow/report.html", "overview").partition("The first advice")[2]
    compiled = "mindtorch_v2::compile"  # of the first step alone, and as long as the machine makes it
    assert "_creation.py" in first_of(mindtorch("top", "--json", "slow"), compiled)
    first = mindtorch("advise", "--json", "slow")["findings"][0]
    assert first["rule"] == "tensors made of Python lists"
    assert "slow_training.py" in first["evidence"][0]["place"]
    question = "select name, sum(self_ns) from events group by name order by 2 desc"
    assert "_creation.py" in first_of(mindtorch("query", "--json", "slow", question), compiled)


def test_i_run_out_of_memory(mindtorch, shown):
    options = ("--profile-memory", "--with-stack", "--record-shapes")
    text = mindtorch("profile", *options, "-o", "grow", PROGRAMS / "growing_memory.py")
    assert "First advice: Memory grows by 128.50 KB a step" in text
    assert "Memory grows by 128.50 KB a step" in shown("grow/report.html", "overview").partition("The first advice")[2]
    first = mindtorch("advise", "--json", "grow")["findings"][0]
    assert first["rule"] == "memory grows with each step"
    assert "growing_memory.py" in first["evidence"][0]["place"]
    assert mindtorch("memory", "--json", "grow")["peak_bytes"] > 27 * 128 * 1024
    assert shown("grow/report.html", "memory")


def test_it_got_slower_since_yesterday(mindtorch, browser, tmp_path):
    for folder, hidden in (("yesterday", 256), ("today", 512)):
        program = (PROGRAMS / "yesterday_and_today.py", "--hidden", hidden, "--steps", 60)
        mindtorch("profile", "--quiet", "--with-modules", "-o", folder, *program)
    found = mindtorch("diff", "--json", "-o", "diff.html", "yesterday", "today")
    assert found["changes"][0]["module"] in ("Model.middle.0", "Model.middle.2")
    browser.open((tmp_path / "diff.html").as_uri())
    assert browser.errors() == []
    assert browser.one("td:nth-child(2)").text.partition("\n")[0].endswith(f"in {found['changes'][0]['module']}")


def test_i_have_a_trace_from_a_gpu_machine(mindtorch, shown):
    mindtorch(PROGRAMS / "gpu_trace.py", "gpu.json.gz", program="python")
    assert "idle: synchronization 44.3%" in mindtorch("device", "gpu.json.gz").splitlines()[0]
    assert mindtorch("advise", "--json", "gpu.json.gz")["findings"][0]["rule"] == "waiting for the device"
    mindtorch("report", "gpu.json.gz", "-o", "gpu.html")
    assert "The host waited for the device 20 times" in shown("gpu.html", "overview").partition("The first advice")[2]
    lines = shown("gpu.html", "device").splitlines()
    idle = lines[lines.index("Why it was idle") + 1]
    assert idle.startswith("synchronization 99")
    assert any(line.startswith("Critical path of ProfilerStep#0") for line in lines)
