"""torch.cpu: what programs for any device ask of one."""

import inspect

import pytest

import mindtorch_v2 as torch


def test_there_is_one_cpu_and_nothing_to_wait_for():
    assert torch.cpu.is_available()
    assert torch.cpu.is_initialized()
    assert torch.cpu.device_count() == 1
    assert torch.cpu.current_device() == "cpu"
    assert torch.cpu.set_device("cpu") is None
    assert torch.cpu.synchronize() is None
    assert torch.cpu.Event().query()


def test_a_stream_is_in_use_inside_of_its_context():
    usual, mine = torch.cpu.current_stream(), torch.cpu.Stream()
    with torch.cpu.stream(mine):
        assert torch.cpu.current_stream() is mine
        with torch.cpu.stream(None):
            assert torch.cpu.current_stream() is mine
    assert torch.cpu.current_stream() is usual


@pytest.mark.parity
@pytest.mark.parametrize("name", sorted(set(torch.cpu.__all__) - {"memory"}))
def test_the_names_are_torchs(name):
    import torch as reference

    ours, theirs = getattr(torch.cpu, name), getattr(reference.cpu, name)
    assert name in reference.cpu.__all__
    assert list(inspect.signature(ours).parameters) == list(inspect.signature(theirs).parameters)
    if inspect.isclass(ours):
        assert {n for n in vars(theirs) if not n.startswith("_")} - {"cur_stream"} <= {
            n for n in vars(ours) if not n.startswith("_")
        }
