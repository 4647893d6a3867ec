"""What is recorded for memory timelines: the memory that operators read and write, and what the runtime knows of it."""

import gc
import weakref

import numpy as np
import pytest

import mindtorch_v2 as torch
from mindtorch_v2.profiler import Session, profile
from mindtorch_v2.profiler.model.session import GRADIENT, OPTIMIZER_STATE, PARAMETER

ALL = {"record_shapes": True, "profile_memory": True, "with_stack": True}


def address(tensor):
    return id(tensor._storage.array)


def operands(session, name):
    """The addresses of the operands of each call of an operator."""
    rows = [i for i in range(len(session)) if session.labels[session.label[i]].name == name]
    return [session.flow.operand_address[session.flow.operand_row == row].tolist() for row in rows]


def roles(session, role):
    return set(session.flow.role_address[session.flow.role == role].tolist())


@pytest.mark.parametrize("left_out", ALL)
def test_it_is_recorded_only_if_all_that_a_timeline_needs_is(left_out):
    with profile(**ALL | {left_out: False}) as prof:
        torch.ones(2).neg()
    assert prof.session.flow is None


def test_operands_are_storages_and_what_is_written_is_negative():
    x, y = torch.ones(2, 2), torch.ones(2, 2)
    with profile(**ALL) as prof:
        z = x + y
        x.t().mul_(z)
        joined = torch.cat([y, x, y])
        scaled = z * 2
    assert operands(prof.session, "aten::add") == [[address(x), address(y)]]
    assert operands(prof.session, "aten::mul_") == [[-address(x), address(z)]]
    assert operands(prof.session, "aten::cat") == [[address(y), address(x), address(y)]]
    assert operands(prof.session, "aten::mul") == [[address(z), 0]]
    assert joined.shape == (6, 2)
    assert scaled.shape == (2, 2)


def test_what_lived_before_is_listed_with_its_size():
    x = torch.ones(3, 5)
    with profile(**ALL) as prof:
        made = x.neg()
    flow = prof.session.flow
    held = dict(zip(flow.held_address.tolist(), flow.held_bytes.tolist(), strict=True))
    assert held[address(x)] == 60
    assert address(made) not in held
    log = prof.session.memory
    assert sum(held.values()) == log.total_bytes[0] - log.size_bytes[0]


def test_parameters_gradients_and_optimizer_state_are_known():
    model = torch.nn.Linear(3, 2)
    optimizer = torch.optim.Adam(model.parameters())
    with profile(**ALL) as prof:
        model(torch.ones(1, 3)).sum().backward()
        optimizer.step()
    parameters = set(map(address, model.parameters()))
    gradients = {address(p.grad) for p in model.parameters()}
    state = {address(value) for of_one in optimizer.state.values() for value in of_one.values()}
    assert parameters <= roles(prof.session, PARAMETER)
    assert gradients <= roles(prof.session, GRADIENT)
    assert state <= roles(prof.session, OPTIMIZER_STATE)
    assert not (parameters | gradients | state) & roles(prof.session, PARAMETER) - parameters


def test_parameters_and_gradients_that_die_in_the_recording_are_known():
    def infer():
        layer = torch.nn.Linear(2, 2)
        addresses.extend(map(address, layer.parameters()))
        layer(torch.ones(1, 2))

    addresses, gradients = [], []
    leaf = torch.ones(4, requires_grad=True)
    with profile(**ALL) as prof:
        infer()
        (leaf * 2).sum().backward()
        gradients.append(address(leaf.grad))
        leaf.grad = None
    assert set(addresses) <= roles(prof.session, PARAMETER)
    assert set(gradients) <= roles(prof.session, GRADIENT)
    assert address(leaf) not in roles(prof.session, PARAMETER)
    assert not hasattr(torch.nn.Parameter, "__del__")


def test_nothing_is_kept_alive():
    with profile(**ALL) as prof:
        x = torch.ones(2, requires_grad=True)
        (x * 2).sum().backward()
        seen = [weakref.ref(x), weakref.ref(x.grad._storage)]
        del x
        gc.collect()
        assert [s() for s in seen] == [None, None]
    assert prof.session.flow is not None


def test_a_session_file_keeps_it(tmp_path):
    with profile(**ALL) as prof:
        torch.ones(2).neg()
    prof.session.save(tmp_path / "session")
    loaded = Session.load(tmp_path / "session").flow
    assert all(np.array_equal(a, b) for a, b in zip(loaded, prof.session.flow, strict=True))


def test_cycles_that_are_kept_are_joined():
    schedule = torch.profiler.schedule(wait=0, warmup=1, active=1, repeat=2)
    x = torch.ones(2)
    with profile(**ALL, schedule=schedule, acc_events=True) as prof:
        for _ in range(4):
            x.neg()
            prof.step()
    assert len(prof.session.flow.began_ns) == 2
    assert operands(prof.session, "aten::neg") == [[address(x)]] * 2


def test_what_stays_is_noted_once():
    model = torch.nn.Linear(2, 2)
    optimizer = torch.optim.Adam(model.parameters())
    with profile(**ALL) as prof:
        for _ in range(10):
            model(torch.ones(1, 2)).sum().backward()
            optimizer.step()
    flow = prof.session.flow
    for weight in model.parameters():
        assert (flow.role_address == address(weight)).sum() == 1
        assert (flow.role_address == address(optimizer.state[weight]["exp_avg"])).sum() == 1
