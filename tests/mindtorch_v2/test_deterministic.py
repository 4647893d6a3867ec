"""`torch.use_deterministic_algorithms`: new memory that shows, and operators that are refused."""

import math

import pytest

import mindtorch_v2 as torch


@pytest.fixture
def deterministic():
    torch.use_deterministic_algorithms(True)
    yield
    torch.use_deterministic_algorithms(False)


@pytest.mark.usefixtures("deterministic")
class TestFilling:
    def test_new_memory(self):
        for made in (torch.empty(2), torch.empty_like(torch.ones(2)), torch.ones(2).new_empty(2), torch.empty_strided((2,), (2,))):
            assert all(map(math.isnan, made.tolist()))
        assert torch.empty(1, dtype=torch.int16).tolist() == [32767]
        assert torch.empty(1, dtype=torch.bool).tolist() == [True]
        assert torch.zeros(2).tolist() == [0, 0]

    def test_what_a_resized_tensor_gets(self):
        assert torch.ones(2, dtype=torch.int8).resize_(3).tolist() == [1, 1, 127]

    def test_switched_off(self):
        torch.utils.deterministic.fill_uninitialized_memory = False
        try:
            assert not torch.utils.deterministic.fill_uninitialized_memory
            torch.full((1000,), 7.0)
            assert not torch.empty(1000).isnan().all()
        finally:
            torch.utils.deterministic.fill_uninitialized_memory = True
        assert torch.empty(3).isnan().all()

    def test_only_a_bool(self):
        with pytest.raises(RuntimeError, match="expected a bool, but got int"):
            torch.utils.deterministic.fill_uninitialized_memory = 1


def test_put_is_refused(deterministic):
    where, what = torch.tensor([0]), torch.tensor([4.0])
    with pytest.raises(RuntimeError, match="put_ does not have a deterministic implementation"):
        torch.ones(2).put_(where, what)
    assert torch.ones(2).put_(where, what, accumulate=True).tolist() == [5, 1]
    torch.use_deterministic_algorithms(True, warn_only=True)
    with pytest.warns(UserWarning, match="put_ does not have a deterministic implementation"):
        assert torch.ones(2).put_(where, what).tolist() == [4, 1]


def test_nothing_is_filled_otherwise():
    assert "fill" not in torch.ops.aten.empty.memory_format.op.table[1].__code__.co_names
