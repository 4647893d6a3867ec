"""The memory that limits of control groups leave, read from folders as the system has them."""

from __future__ import annotations

import pytest

from mindtorch_v2.profiler import bounds
from mindtorch_v2.profiler.container_memory import left_by_limits

NO_LIMIT = 9223372036854771712  # as the first version says it


def group(folder, limit, used, cached=0):
    """A group of the second version."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "memory.max").write_text(f"{limit}\n")
    (folder / "memory.current").write_text(f"{used}\n")
    (folder / "memory.stat").write_text(f"anon 7\nfile {cached}\nactive_file 3\ninactive_file {cached}\n")


def old_group(folder, limit, used, cached=0):
    """A group of the first version."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "memory.limit_in_bytes").write_text(f"{limit}\n")
    (folder / "memory.usage_in_bytes").write_text(f"{used}\n")
    (folder / "memory.stat").write_text(f"cache 9\ninactive_file 1\ntotal_cache 9\ntotal_inactive_file {cached}\n")


@pytest.fixture
def left(tmp_path):
    def of(*lines):
        (tmp_path / "groups").write_text("".join(f"{line}\n" for line in lines))
        return left_by_limits(str(tmp_path / "mounted"), str(tmp_path / "groups"))

    return of


@pytest.fixture
def mounted(tmp_path):
    (tmp_path / "mounted").mkdir()
    return tmp_path / "mounted"


def test_a_container_that_is_the_outermost_group(left, mounted):
    group(mounted, 1000, 300)
    assert left("0::/") == 700


def test_a_service_inside_of_a_slice(left, mounted):
    group(mounted / "system.slice" / "train.service", 1000, 300)
    group(mounted / "system.slice", "max", 900)
    assert left("0::/system.slice/train.service") == 700


def test_the_tightest_limit_of_those_around_it(left, mounted):
    group(mounted / "a" / "b", 1000, 300)
    group(mounted / "a", 2000, 1900)
    assert left("0::/a/b") == 100


def test_cached_files_are_given_up_before_memory_is_full(left, mounted):
    group(mounted, 1000, 950, cached=600)
    assert left("0::/") == 650


def test_a_job_of_the_first_version(left, mounted):
    old_group(mounted / "memory" / "slurm" / "job_7", 1000, 300, cached=50)
    old_group(mounted / "memory" / "slurm", NO_LIMIT, 300)
    old_group(mounted / "memory", NO_LIMIT, 300)
    assert left("9:cpu,cpuacct:/slurm/job_7", "4:memory:/slurm/job_7", "0::/") == 750


def test_a_container_that_is_told_the_path_it_has_outside(left, mounted):
    old_group(mounted / "memory", 1000, 400)
    assert left("4:memory:/docker/0123456789ab") == 600


def test_paths_do_not_lead_out(left, mounted):
    group(mounted.parent, 10, 9)
    assert left("0::/../..") is None


@pytest.mark.parametrize("line", ["", "0", "0:", "0::", "0::/a", "4:memory:/a", "nonsense"])
def test_no_limits(left, mounted, line):
    assert left(line) is None


def test_files_that_say_something_else(left, mounted):
    group(mounted, "much", "little")
    assert left("0::/") is None


def test_more_than_the_limit_is_used(left, mounted):
    group(mounted, 1000, 1300)
    assert left("0::/") == 0


def test_another_system(tmp_path):
    assert left_by_limits(str(tmp_path), str(tmp_path / "none")) is None


def test_the_memory_that_is_free_is_within_the_limit(monkeypatch):
    monkeypatch.setattr(bounds, "left_by_limits", lambda: 12345)
    assert bounds.free_bytes() == 12345
