"""Factories and conversions of Python data."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import mindtorch_v2 as torch


@pytest.mark.parametrize(("make", "expected"), [(torch.zeros, 0.0), (torch.ones, 1.0)])
@pytest.mark.parametrize("size", [(), (0,), (3,), (2, 3), (2, 0, 3)])
def test_constant_tensors_take_sizes_written_out_or_as_sequence(make, expected, size):
    for t in (make(size), make(list(size)), make(torch.Size(size)), make(*size) if size else make(())):
        assert t.shape == size
        assert t.dtype is torch.float32
        np.testing.assert_array_equal(t.numpy(), np.full(size, expected, np.float32))


def test_dtype_argument_takes_python_types():
    assert torch.zeros(2, dtype=float).dtype is torch.float64
    assert torch.ones(2, dtype=int).dtype is torch.int64
    assert torch.zeros(2, dtype=bool).dtype is torch.bool


def test_default_dtype_decides_for_new_floating_tensors():
    torch.set_default_dtype(torch.float64)
    try:
        assert torch.zeros(1).dtype is torch.float64
        assert torch.tensor([1.5]).dtype is torch.float64
        assert torch.tensor([1]).dtype is torch.int64
        assert torch.full((1,), 1j).dtype is torch.complex128
    finally:
        torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: torch.zeros(-1), RuntimeError, r"negative dimension -1: \[-1\]"),
        (lambda: torch.zeros("a"), TypeError, r"zeros\(\): argument 'size' \(position 1\) must be tuple of ints, not str"),
        (lambda: torch.ones(2.5), TypeError, r"ones\(\): argument 'size' \(position 1\) must be tuple of ints, not float"),
        (lambda: torch.zeros([2, 2.5]), TypeError, "failed to unpack the object at pos 2"),
        (lambda: torch.zeros(), TypeError, r'zeros\(\) missing 1 required positional arguments: "size"'),
        (lambda: torch.zeros(2, dtype="a"), TypeError, r"zeros\(\): argument 'dtype' must be torch.dtype, not str"),
        (lambda: torch.full((2,), "a"), TypeError, "argument 'fill_value'"),
        (lambda: torch.ones(2, dtype=torch.int64, requires_grad=True), RuntimeError, "Only Tensors of floating point and complex"),
        (lambda: torch.zeros(2, pin_memory=True), RuntimeError, "pin_memory=True requires"),
        (lambda: torch.ones(2, layout=torch.sparse_coo), NotImplementedError, "torch.strided tensors only"),
        (lambda: torch.zeros(2, device="npu"), RuntimeError, "no Ascend NPU runtime"),
        (lambda: torch.zeros_like([1]), TypeError, "argument 'input' .* must be Tensor, not list"),
        (lambda: torch.arange(0, 1, 0), RuntimeError, "step must be nonzero"),
        (lambda: torch.arange(5, 1), RuntimeError, "inconsistent with step sign"),
        (lambda: torch.arange(0, float("inf")), RuntimeError, "unsupported range: 0 -> inf"),
        (lambda: torch.arange(0, 64, 0.5, dtype=torch.int64), ValueError, "step must be nonzero"),
        (lambda: torch.linspace(0, 1, -1), RuntimeError, "number of steps must be non-negative"),
        (lambda: torch.eye(-1), RuntimeError, "n must be greater or equal to 0"),
        (lambda: torch.empty_strided((2, 3), (1,)), RuntimeError, "must match dimensionality of strides"),
    ],
)
def test_factories_refuse(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_out_is_written_in_its_own_dtype():
    out = torch.ones(2, 2, dtype=torch.int64)
    assert torch.zeros(2, 2, out=out) is out
    assert out.tolist() == [[0, 0], [0, 0]]
    assert torch.arange(4, out=torch.empty(0)).dtype is torch.float32
    with pytest.raises(RuntimeError, match="dtype Long does not match dtype of out parameter"):
        torch.ones(2, dtype=torch.int64, out=torch.empty(2))


def test_requires_grad_makes_a_leaf():
    x = torch.full((2,), 2.0, requires_grad=True)
    assert x.requires_grad
    assert x.is_leaf


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ((3,), [0, 1, 2]),
        ((1, 3), [1, 2]),
        ((5, 0, -2), [5, 3, 1]),
        ((0, 1, 0.25), [0.0, 0.25, 0.5, 0.75]),
        ((3.0,), [0.0, 1.0, 2.0]),
        ((0,), []),
    ],
)
def test_arange(arguments, expected):
    t = torch.arange(*arguments)
    assert t.tolist() == expected
    assert t.dtype is (torch.float32 if any(isinstance(a, float) for a in arguments) else torch.int64)


def test_arange_takes_names():
    assert torch.arange(end=3).tolist() == [0, 1, 2]
    assert torch.arange(start=1, end=3).tolist() == [1, 2]
    assert torch.arange(1, end=3).tolist() == [1, 2]
    assert torch.arange(0, 6, step=3).tolist() == [0, 3]


def test_spaced_values_reach_both_ends():
    t = torch.linspace(-1, 2, 7, dtype=torch.float64)
    np.testing.assert_allclose(t.numpy(), np.linspace(-1, 2, 7))
    assert t[0].item() == -1
    assert t[-1].item() == 2
    assert torch.linspace(0, 10, 7, dtype=torch.int64).tolist() == [0, 1, 3, 5, 6, 8, 10]
    np.testing.assert_allclose(torch.logspace(0, 3, 4, base=2).numpy(), [1, 2, 4, 8])
    assert torch.linspace(3, 4, 1).tolist() == [3.0]
    assert torch.linspace(3, 4, 0).tolist() == []


def test_eye_and_triangles():
    np.testing.assert_array_equal(torch.eye(2, 3).numpy(), np.eye(2, 3))
    np.testing.assert_array_equal(torch.tril_indices(3, 4, 1).numpy(), np.stack(np.tril_indices(3, 1, 4)))
    np.testing.assert_array_equal(torch.triu_indices(3, 3).numpy(), np.stack(np.triu_indices(3)))


def test_like_keeps_the_order_of_dimensions():
    x = torch.empty(2, 3, 4).permute(2, 0, 1)
    assert torch.zeros_like(x).stride() == x.stride()
    assert torch.zeros_like(x, memory_format=torch.contiguous_format).stride() == (6, 3, 1)
    sliced = torch.empty(4, 6)[::2, ::3].t()
    assert torch.ones_like(sliced).stride() == (1, 2)
    assert torch.empty_like(torch.empty(1, 4).expand(3, 4)).stride() == (4, 1)
    assert torch.full_like(x, 7, dtype=torch.int8).dtype is torch.int8
    assert torch.empty(2, 3, 4, 5, memory_format=torch.channels_last).stride() == (60, 1, 15, 3)
    assert torch.empty_permuted((2, 3), (1, 0)).stride() == (1, 2)


def test_new_tensors_take_after_self():
    x = torch.ones(2, dtype=torch.float64)
    assert x.new_zeros(3).dtype is torch.float64
    assert x.new_ones((2, 2), dtype=torch.int32).dtype is torch.int32
    assert x.new_full((2,), 1.5).tolist() == [1.5, 1.5]
    assert x.new_tensor([1, 2]).dtype is torch.float64
    assert x.new_empty(2, device="meta").is_meta
    assert torch.zeros_like(x, device="meta").is_meta


@pytest.mark.parametrize(
    ("data", "dtype", "shape"),
    [
        (1, torch.int64, ()),
        (1.5, torch.float32, ()),
        (True, torch.bool, ()),
        (1j, torch.complex64, ()),
        ([], torch.float32, (0,)),
        ([[], []], torch.float32, (2, 0)),
        ([1, 2.5], torch.float32, (2,)),
        ([True, 2], torch.int64, (2,)),
        ([1, 2j], torch.complex64, (2,)),
        (((1, 2), (3, 4)), torch.int64, (2, 2)),
        (range(3), torch.int64, (3,)),
        (np.float64(1), torch.float64, ()),
        ([np.float32(1), 2], torch.float32, (2,)),
        (np.arange(3, dtype=np.int16), torch.int16, (3,)),
        ([np.arange(3), np.arange(3)], torch.int64, (2, 3)),
    ],
)
@pytest.mark.filterwarnings("ignore:Creating a tensor from a list of numpy.ndarrays:UserWarning")
def test_tensor_infers_dtype_and_shape(data, dtype, shape):
    t = torch.tensor(data)
    assert (t.dtype, t.shape) == (dtype, shape)


def test_tensor_of_tensors():
    assert torch.tensor([torch.tensor(1.5), torch.tensor(2)]).tolist() == [1.5, 2.0]
    assert torch.tensor([[torch.ones(1)], [torch.full((1, 1), 2)]]).tolist() == [[1.0], [2.0]]
    assert torch.tensor([torch.tensor([True])]).dtype is torch.bool
    with pytest.raises(ValueError, match="only one element tensors"):
        torch.tensor([torch.ones(2), torch.ones(2)])
    with pytest.raises(TypeError, match="must be real number, not list"):
        torch.tensor([torch.ones(1), [1.0]])
    with pytest.warns(UserWarning, match="To copy construct from a tensor"):
        copied = torch.tensor(torch.ones(2))
    assert copied.tolist() == [1.0, 1.0]


def test_tensor_of_tensors_whose_elements_are_not_in_their_array():
    z = torch.tensor([1 + 2j])
    assert torch.tensor([z.conj(), torch.eye(1).to_sparse()]).tolist() == [1 - 2j, 1]
    with pytest.raises(RuntimeError, match="without overflow"):
        torch.tensor([z], dtype=torch.float64)
    with pytest.raises(RuntimeError, match="meta tensors"):
        torch.tensor([torch.ones(1, device="meta")])


@pytest.mark.parametrize(
    ("data", "dtype", "error", "text"),
    [
        ([[1, 2], [3]], None, ValueError, "expected sequence of length 2 at dim 1"),
        ([[1], 2], None, TypeError, "not a sequence"),
        ([1, [2]], None, TypeError, "'list' object cannot be interpreted as an integer"),
        ("a", None, TypeError, "new\\(\\): invalid data type 'str'"),
        (["a"], None, ValueError, "too many dimensions 'str'"),
        (None, None, RuntimeError, "Could not infer dtype of NoneType"),
        ({}, None, RuntimeError, "Could not infer dtype of dict"),
        (2**63, None, ValueError, "Overflow when unpacking long long"),
        ([300], "uint8", RuntimeError, "value cannot be converted to type uint8 without overflow"),
        ([1e10], "int32", RuntimeError, "value cannot be converted to type int32 without overflow"),
        ([float("nan")], "int32", RuntimeError, "value cannot be converted to type int32 without overflow"),
        ([1j], "float32", TypeError, "must be real number, not complex"),
    ],
)
def test_tensor_refuses(data, dtype, error, text):
    with pytest.raises(error, match=text):
        torch.tensor(data, dtype=None if dtype is None else getattr(torch, dtype))


def test_negative_numbers_wrap_into_unsigned():
    assert torch.tensor([-1], dtype=torch.uint8).tolist() == [255]


def test_tensor_copies_and_as_tensor_shares():
    a = np.zeros(2, np.float32)
    copied, shared = torch.tensor(a), torch.as_tensor(a)
    a[0] = 5
    assert copied.tolist() == [0.0, 0.0]
    assert shared.tolist() == [5.0, 0.0]
    assert torch.as_tensor(shared) is shared
    assert torch.as_tensor(a, dtype=torch.float64).dtype is torch.float64
    assert torch.asarray(a).data_ptr() == a.ctypes.data
    assert torch.asarray(a, copy=True).data_ptr() != a.ctypes.data
    with pytest.raises(ValueError, match="can't alias arbitrary sequence"):
        torch.asarray([1, 2], copy=False)


def test_asarray_keeps_requiring_grad_with_a_warning():
    x = torch.ones(2, requires_grad=True)
    with pytest.warns(UserWarning, match="unspecified requires_grad"):
        assert torch.asarray(x).requires_grad
    assert not torch.asarray(x, requires_grad=False).requires_grad


def test_tensors_made_in_inference_mode_know_it():
    with torch.inference_mode():
        made = [torch.zeros(2), torch.tensor([1.0]), torch.rand(2), torch.from_numpy(np.ones(2)), torch.arange(3), torch.empty(2)]
    assert all(t.is_inference() for t in made)
    assert not torch.zeros(2).is_inference()


def test_modes_see_factories_whole_and_the_parts_of_item():
    from mindtorch_v2.utils._python_dispatch import TorchDispatchMode

    seen = []

    class Watch(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append(str(func))
            return func(*args, **(kwargs or {}))

    with Watch():
        torch.ones_like(torch.zeros(())).item()
    assert seen == ["aten.zeros.default", "aten.ones_like.default", "aten._local_scalar_dense.default"]


def test_legacy_constructors():
    assert torch.Tensor(2, 3).shape == (2, 3)
    assert torch.Tensor([1, 2]).dtype is torch.float32
    assert torch.Tensor().shape == (0,)
    assert torch.LongTensor([1.9, 2]).tolist() == [1, 2]
    assert isinstance(torch.ones(2), torch.FloatTensor)
    assert not isinstance(torch.ones(2), torch.LongTensor)
    with pytest.raises(TypeError, match="data must be a sequence"):
        torch.Tensor(2.5)


def test_no_warnings_from_conversions():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        torch.tensor([1e300], dtype=torch.float32)
        torch.logspace(0, 400, 3)


def _ranges(library, dtype, start, end, step, n):
    d = getattr(library, dtype)
    return [library.arange(start, end, step, dtype=d).double().tolist(), library.linspace(start, end, n, dtype=d).double().tolist()]


@pytest.mark.parity
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
def test_ranges_have_the_bits_of_torch(dtype):
    import torch as theirs

    rng = np.random.default_rng(0)
    for _ in range(50):
        start, end = sorted(np.round(rng.uniform(0, 50, 2), 2).tolist())
        arguments = (dtype, start, end, round(rng.uniform(0.3, 5), 3), int(rng.integers(0, 200)))
        assert _ranges(torch, *arguments) == _ranges(theirs, *arguments)
