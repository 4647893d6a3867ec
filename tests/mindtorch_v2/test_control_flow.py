"""Names that exported graphs need, done by Python: `cond`, `while_loop` and arithmetic of sizes."""

import pytest

import mindtorch_v2 as torch


class TestControlFlow:
    def test_conditions(self):
        x = torch.ones(2, requires_grad=True)
        assert torch.cond(True, lambda x: x + 1, lambda x: x - 1, (x,)).tolist() == [2, 2]
        torch.cond(x.sum() > 5, lambda x: x, lambda x: 3 * x, [x]).sum().backward()
        assert x.grad.tolist() == [3, 3]
        with pytest.raises(RuntimeError, match="single-element tensor"):
            torch.cond(x > 0, lambda x: x, lambda x: x, (x,))
        with pytest.raises(RuntimeError, match="to be callable"):
            torch.cond(True, 1, 2)

    def test_loops(self):
        count, x = torch.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x * 2), (torch.tensor(0), torch.ones(1)))
        assert (count.item(), x.item()) == (3, 8)
        with pytest.raises(RuntimeError, match="as many values as it is given: 1, got 2"):
            torch.while_loop(lambda i: i < 3, lambda i: (i + 1, i), (torch.tensor(0),))


class TestSizes:
    def test_arithmetic(self):
        assert (torch.sym_int(-3.7), torch.sym_float(3), torch.sym_sqrt(4), torch.sym_not(3)) == (-3, 3.0, 2.0, False)
        assert torch.sym_sum([1, 2, 3]) == torch.sym_sum(1, 2, 3) == 6
        assert torch.sym_ite(False, 1, 2) == 2
        with pytest.raises(AssertionError, match="type mismatch"):
            torch.sym_ite(True, 1, 2.0)

    def test_one_float_makes_a_float(self):
        assert [type(torch.sym_min(1, b)) for b in (2, 2.5)] == [int, float]
        assert torch.sym_max(1, 2.5) == 2.5
        with pytest.raises(AssertionError, match="got <class 'str'>"):
            torch.sym_max("a", 1)

    def test_no_number_is_a_symbol(self):
        assert not isinstance(3, torch.SymInt | torch.SymFloat | torch.SymBool)
        with pytest.raises(NotImplementedError, match="there are no symbolic ones"):
            torch.SymInt(3)
