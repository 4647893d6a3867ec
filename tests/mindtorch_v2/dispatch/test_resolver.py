"""Which overload a call means is decided once for arguments of the same types, and anew where that depends on more than types."""

import pytest

import mindtorch_v2 as torch
from mindtorch_v2._dispatch import resolver


@pytest.fixture
def choices(monkeypatch):
    made, choose = [], resolver._choose

    def counted(name, *rest):
        made.append(name)
        return choose(name, *rest)

    monkeypatch.setattr(resolver, "_choose", counted)
    return made


def test_lists_of_numbers_are_remembered_by_what_is_in_them(choices):
    x = torch.ones(2, 3)
    for _ in range(3):
        assert torch.std_mean(x, [0, 1], keepdim=False)[1] == 1
    assert len(choices) <= 1


def test_a_list_of_another_kind_is_another_choice():
    x = torch.ones(2, 3, 4)
    for _ in range(2):
        assert [tuple(p.shape) for p in torch.split(x, [1, 1])] == [(1, 3, 4)] * 2
        with pytest.raises((TypeError, RuntimeError)):
            torch.split(x, ["1", "1"])


def test_tensors_in_a_list_of_integers_are_looked_at_each_time():
    x = torch.ones(2, 3)
    for _ in range(2):
        assert x.std([torch.tensor(0), torch.tensor(1)]).shape == ()
        with pytest.raises(TypeError):
            x.std([torch.tensor(0.5), torch.tensor(1)])
