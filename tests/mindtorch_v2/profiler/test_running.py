"""Whether a process runs."""

import os
import subprocess
import sys

import pytest

from mindtorch_v2.profiler.running import is_running

pytestmark = pytest.mark.skipif(os.name != "posix", reason="processes that nobody waited for are POSIX's")


def test_processes_that_run_have_ended_and_never_were():
    assert is_running(os.getpid())
    assert is_running(os.getppid())
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    assert is_running(process.pid)
    process.stdin.close()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # it has ended, and is not waited for
    assert not is_running(process.pid)
    process.wait()
    assert not is_running(process.pid)
    assert not is_running(1 << 80)
    assert not is_running(0)
