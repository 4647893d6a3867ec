"""Facts about the machine that a recording has."""

import importlib.metadata

import pytest

from mindtorch_v2.profiler.capture import surroundings


@pytest.mark.parametrize(
    "error", [importlib.metadata.PackageNotFoundError("mindtorch_v2"), ModuleNotFoundError("No module named 'email.parser'")]
)
def test_a_version_that_cannot_be_read_costs_no_recording(monkeypatch, error):
    """A program may have given up the right to read Python's own library since it started."""

    def version(name):
        raise error

    monkeypatch.setattr(importlib.metadata, "version", version)
    assert surroundings.environment.__wrapped__()["mindtorch_v2"] == "not installed"
