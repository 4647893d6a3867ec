"""Tracebacks of crashes: the program's own use of `faulthandler` and of its files comes first."""

import os

import pytest

pytestmark = pytest.mark.skipif(os.name != "posix", reason="fork is POSIX's")


def test_it_goes_to_the_file_that_was_named_last(run_python, tmp_path):
    done = run_python("""
        import faulthandler, os
        from mindtorch_v2.profiler.whole_program import crash_text

        for name in "abc":
            crash_text.write_behind(name)
            assert not os.get_inheritable(crash_text._file.fileno())
        faulthandler._sigsegv()
    """)
    assert done.returncode < 0
    assert [b"Segmentation fault" in (tmp_path / name).read_bytes() for name in "abc"] == [False, False, True]


def test_a_file_of_the_program_in_the_same_place_is_left_alone(run_python, tmp_path):
    done = run_python("""
        import os
        from mindtorch_v2.profiler.whole_program import crash_text

        crash_text.write_behind("spool")
        number = crash_text._file.fileno()
        os.close(number)
        assert os.open("mine", os.O_WRONLY | os.O_CREAT) == number
        crash_text.write_behind("other")
        pid = os.fork()
        if not pid:
            os.write(number, b"of the child")
            os._exit(0)
        os.waitpid(pid, 0)
        os.write(number, b", of the parent")
        os._exit(0)
    """)
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "mine").read_bytes() == b"of the child, of the parent"
