"""Edges of single operators, with values known by hand."""

import copy
import math
import warnings

import pytest

import mindtorch_v2 as torch

F = torch.nn.functional


class TestWriting:
    def test_a_fraction_is_true(self):
        x = torch.zeros(3, dtype=torch.bool)
        x[0] = 0.5
        x[torch.tensor([False, False, True])] = 0.25
        assert x.tolist() == [True, False, True]

    def test_a_mask_on_a_diagonal(self):
        a = torch.zeros(3, 3)
        a.diagonal()[torch.tensor([True, False, True])] = 5
        assert a.tolist() == [[5, 0, 0], [0, 0, 0], [0, 0, 5]]

    def test_a_mask_on_an_expanded_tensor_warns(self):
        a = torch.zeros(1, 3).expand(2, 3)
        with pytest.warns(UserWarning, match="on expanded tensors is deprecated"):
            a[torch.ones(2, 3, dtype=torch.bool)] = 1
        assert a.tolist() == [[1, 1, 1]] * 2
        with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
            a.add_(1)

    @pytest.mark.parametrize("write", [lambda x: x[1:].copy_(x[:-1]), lambda x: x[1:].add_(x[:-1])])
    def test_part_of_what_is_read(self, write):
        with pytest.raises(RuntimeError, match="some elements of the input tensor and the written-to tensor"):
            write(torch.arange(6.0))

    def test_all_of_what_is_read(self):
        x = torch.arange(3.0)
        x.copy_(x).add_(x).add_(x.view(3))
        assert x.tolist() == [0, 4, 8]
        x = torch.arange(6.0)
        x[::2].add_(x[1::2])  # nothing is written that is read
        assert x.tolist() == [1, 1, 5, 3, 9, 5]

    def test_part_of_the_results_of_one_operator(self):
        x = torch.ones(4, requires_grad=True).clone()
        for view in (x.chunk(2)[0].view(-1), x.split(2)[0][:1], x.unbind(0)[0].view(-1)):
            with pytest.raises(RuntimeError, match="a function that returns multiple views"):
                view.mul_(2)


class TestRanges:
    def test_exponents_of_integers_are_no_integers(self):
        assert torch.logspace(0, 2, 6, dtype=torch.int64).tolist() == [1, 2, 6, 15, 39, 100]

    def test_out_keeps_its_shape_and_strides(self):
        memory = torch.zeros(10)
        torch.linspace(0, 4, 5, out=memory[::2])
        assert memory.tolist() == [0, 0, 1, 0, 2, 0, 3, 0, 4, 0]
        out = torch.zeros(2, 3).t()
        assert torch.arange(6, out=out) is out
        assert out.tolist() == [[0, 1], [2, 3], [4, 5]]
        assert out.stride() == (1, 3)

    def test_uniform_refuses_what_overflows(self):
        with pytest.raises(RuntimeError, match="exceed the limit"):
            torch.empty(3).uniform_(-3e38, 3e38)
        with pytest.raises(RuntimeError, match="to is out of bounds for c10::Half"):
            torch.empty(3, dtype=torch.float16).uniform_(0, 1e6)
        drawn = torch.empty(100, dtype=torch.float64).uniform_(-1e300, 1e300)
        assert drawn.abs().max().item() <= 1e300


class TestArguments:
    def test_python_types_are_dtypes(self):
        x = torch.ones(1)
        assert [x.to(t).dtype for t in (bool, int, float, complex)] == [torch.bool, torch.int64, torch.float64, torch.complex128]
        assert x.type(torch.DoubleTensor).dtype is torch.float64
        with pytest.raises(ValueError, match="invalid type: 'float'"):
            x.type(float)

    def test_numbers_before_tensors(self):
        x = torch.ones(2)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert torch.add(x, 2, x).tolist() == [3, 3]
            assert torch.addcdiv(x, 3, x, x).tolist() == [4, 4]
            assert torch.addmm(2, torch.ones(1, 1), 3, torch.ones(1, 1), torch.ones(1, 1)).item() == 5
        with pytest.raises(TypeError, match="invalid combination of arguments"):
            torch.add(x, x, x)

    def test_sizes_that_are_required(self):
        for call in (torch.arange(4).flip, torch.ones(2, 1).expand, torch.ones(2).repeat):
            with pytest.raises(TypeError, match="missing 1 required positional arguments"):
                call()

    def test_roll_of_all_elements(self):
        assert torch.roll(torch.arange(6).view(2, 3), 1, None).tolist() == [[5, 0, 1], [2, 3, 4]]

    def test_more_dimensions_than_arrays_have(self):
        for call in (lambda: torch.empty([1] * 65), lambda: torch.ones(1).view([1] * 65)):
            with pytest.raises(RuntimeError, match="at most 64 dimensions"):
                call()

    def test_operators_are_not_copied(self):
        assert copy.deepcopy(torch.ops.aten.add) is torch.ops.aten.add
        assert copy.deepcopy(torch.ops.aten.add.Tensor) is torch.ops.aten.add.Tensor


class TestOut:
    def test_the_sorted_tensor_itself(self):
        y, i = torch.tensor([3.0, 1, 2]), torch.empty(3, dtype=torch.int64)
        torch.sort(y, out=(y, i))
        assert (y.tolist(), i.tolist()) == ([1, 2, 3], [1, 2, 0])

    def test_another_dtype(self):
        double = torch.ones(2, 2, dtype=torch.float64)
        with pytest.raises(RuntimeError, match="Expected out tensor to have dtype float, but got double instead"):
            torch.mm(torch.eye(2), torch.eye(2), out=double)
        with pytest.raises(RuntimeError, match="Found dtype Double but expected Float"):
            torch.neg(torch.eye(2), out=double)
        with pytest.raises(TypeError, match="can't be cast to the desired output type Long"):
            torch.cat([torch.ones(2)], out=torch.ones(2, dtype=torch.int64))
        assert torch.exp(torch.zeros(2, 2), out=double).tolist() == [[1, 1], [1, 1]]

    def test_no_elements(self):
        assert torch.exp(torch.ones(1, 0, 3), out=torch.ones(1, 0, 3)).shape == (1, 0, 3)


def test_rows_with_nans_are_all_different():
    nan = math.nan
    values, inverse, counts = torch.unique(
        torch.tensor([[nan, 1], [nan, 1], [1, 2], [1, 2]]), dim=0, return_inverse=True, return_counts=True
    )
    assert inverse.tolist() == [0, 1, 2, 2]
    assert counts.tolist() == [1, 1, 2]
    assert values[2].tolist() == [1, 2]


def test_convolution_without_channels():
    x, w = torch.ones(2, 0, 4, 4, requires_grad=True), torch.ones(3, 0, 2, 2, requires_grad=True)
    out = F.conv2d(x, w)
    out.sum().backward()
    assert out.shape == (2, 0, 3, 3)
    assert x.grad.shape == x.shape
    assert w.grad.shape == w.shape


def test_output_size_of_a_transposed_convolution_without_a_batch():
    assert torch.nn.ConvTranspose2d(2, 3, 3, stride=2)(torch.ones(2, 4, 4), output_size=(3, 10, 10)).shape == (3, 10, 10)


def test_no_right_hand_sides():
    solution = torch.linalg.lstsq(torch.eye(3, 2), torch.ones(3, 0)).solution
    assert solution.shape == (2, 0)


def test_strides_of_empty_slices():
    x = torch.empty(5, 4, 3)
    assert x[:, 2:2].stride() == (12, 3, 1)
    assert x[:, 2:2, ::2].stride() == (12, 3, 2)


def test_results_follow_the_first_operand_s_format():
    x = torch.ones(2, 3, 4, 5).to(memory_format=torch.channels_last)
    y = torch.ones(2, 3, 4, 5)
    assert (x + y).stride() == x.stride()
    assert (y + x).stride() == y.stride()
    assert (y.mean((2, 3), keepdim=True) * x).stride() == x.stride()


def test_gradient_of_a_write_through_a_complex_view():
    a = torch.tensor([1.0, 2, 3, 4], requires_grad=True)
    b = torch.view_as_complex(a.clone().view(2, 2)).reshape(-1)
    b.mul_(2j)  # (p + iq) 2i = -2q + 2ip
    torch.view_as_real(b).sum().backward()
    assert a.grad.tolist() == [2, -2, 2, -2]


def test_callbacks_of_callbacks():
    queue = torch.autograd.Variable._execution_engine.queue_callback
    calls = []

    def first():
        calls.append(1)
        queue(lambda: calls.append(2))

    y = torch.ones(1, requires_grad=True) * 2
    y.register_hook(lambda grad: queue(first))
    y.backward()
    assert calls == [1, 2]
    with pytest.raises(RuntimeError, match="during backward pass"):
        queue(first)


def test_a_gradient_by_its_old_name():
    p = torch.ones(2, requires_grad=True)
    p._grad = torch.ones(2)
    assert p.grad is p._grad
    assert p.grad.tolist() == [1, 1]


class TestInfinities:
    def test_a_complex_sum_multiplies_by_alpha(self):
        found = (torch.tensor([1j]) + torch.tensor([complex(0, math.inf)])).item()
        assert math.isnan(found.real)
        assert found.imag == math.inf
        assert (torch.tensor([1 + 1j]) - torch.tensor([1j])).item() == 1

    def test_logarithms_of_sums(self):
        nan, inf = math.nan, math.inf
        x = torch.tensor([complex(-inf, 1), complex(0, 0), complex(0, 0), complex(1, nan), complex(0, 0)])
        found = torch.logcumsumexp(x, 0).tolist()
        assert found[0] == complex(-inf, 0)
        assert found[1] == 0
        assert abs(found[2] - math.log(2)) < 1e-6
        assert all(math.isnan(part) for z in found[3:] for part in (z.real, z.imag))


def test_group_norm_is_as_accurate_as_float32_allows():
    torch.manual_seed(0)
    x = torch.randn(2, 8, 32, 32) + 50
    exact = F.group_norm(x.double(), 2)
    assert (F.group_norm(x, 2) - exact).abs().max().item() < 8e-6


def test_a_tensor_is_no_list_of_tensors():
    for join in (torch.cat, torch.stack, torch.dstack):
        with pytest.raises(TypeError, match="must be tuple of Tensors, not Tensor"):
            join(torch.ones(2, 2))


def test_buffers():
    with pytest.raises(ValueError, match="does not implement Python buffer protocol"):
        torch.frombuffer([1, 2], dtype=torch.float32)
    assert torch.frombuffer(bytearray(b"ab"), dtype=torch.uint8).tolist() == [97, 98]
