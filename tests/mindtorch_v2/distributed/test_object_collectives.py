"""Lists of objects between processes."""

import pytest

import mindtorch_v2 as torch
import mindtorch_v2.distributed as dist
from mindtorch_v2.distributed import object_collectives


@pytest.fixture
def alone(tmp_path):
    dist.init_process_group("gloo", init_method=f"file://{tmp_path / 'meeting'}", rank=0, world_size=1)
    yield
    dist.destroy_process_group()


@pytest.mark.usefixtures("alone")
def test_objects_travel_through_the_cpu_only():
    given = [1, {"a": 2}]
    dist.broadcast_object_list(given, 0, device="cpu")
    assert given == [1, {"a": 2}]
    for call in (dist.broadcast_object_list, dist.send_object_list, dist.recv_object_list):
        for where in ("cuda", torch.device("meta")):
            with pytest.raises(RuntimeError, match=f"{call.__name__}: objects are sent through the memory of the CPU"):
                call(given, 0, device=where)


@pytest.mark.usefixtures("alone")
@pytest.mark.parametrize("use_batch", [True, False])
def test_objects_are_sent_in_a_batch_if_that_is_asked_for(monkeypatch, use_batch):
    batches = []

    class Done:
        wait = staticmethod(lambda: None)

    monkeypatch.setattr(object_collectives, "batch_isend_irecv", lambda given: [batches.append(given), Done()][1:])
    monkeypatch.setattr(object_collectives, "P2POp", lambda op, tensor, peer, group, group_peer: op.__name__)
    monkeypatch.setattr(object_collectives, "send", lambda *args, **kwargs: None)
    dist.send_object_list([1, 2], 0, use_batch=use_batch)
    assert batches == [["isend"], ["isend"]] * use_batch
