"""Python's number types as `dtype=`: every function that takes a dtype takes them as torch does, or raises as torch does."""

import warnings

import numpy as np
import pytest
import torch

import mindtorch_v2 as mt

pytestmark = pytest.mark.parity

CALLS = """
x.sum(dtype=D)
x.sum(0, dtype=D)
lib.sum(x, 0, True, dtype=D)
lib.sum(x, 0, dtype=D, out=lib.empty(3, dtype=lib.float64))
x.mean(dtype=D)
lib.mean(x, 0, False, dtype=D)
x.nansum(dtype=D)
x.nanmean(dtype=D)
x.prod(dtype=D)
x.prod(0, dtype=D)
x.cumsum(0, dtype=D)
x.cumprod(0, dtype=D)
x.softmax(0, dtype=D)
x.log_softmax(0, D)
lib.nn.functional.softmin(x, 0, dtype=D)
lib.special.softmax(x, 0, dtype=D)
x.norm(dtype=D)
lib.norm(x, p=2, dim=0, dtype=D)
lib.linalg.norm(x, dtype=D)
lib.linalg.norm(x, 2, dim=0, dtype=D)
lib.linalg.vector_norm(x, dtype=D)
lib.linalg.matrix_norm(x, dtype=D)
x.to(D)
x.to(dtype=D)
x.to("cpu", D)
x.type(D)
x.view(D)
x.view(dtype=D)
x.to("meta").sum(dtype=D)
lib.func.vmap(lambda y: y.sum(dtype=D))(x)
lib.sparse.sum(x.to_sparse(), dtype=D)
lib.sparse.softmax(x.to_sparse(), 0, dtype=D)
lib.masked.sum(x, dtype=D)
lib.masked.cumsum(x, 0, dtype=D)
lib.zeros(2, dtype=D)
lib.full((2,), 1, dtype=D)
lib.arange(3, dtype=D)
lib.linspace(0, 1, 3, dtype=D)
lib.logspace(0, 1, 3, dtype=D)
lib.range(0, 3, dtype=D)
lib.eye(2, dtype=D)
lib.randperm(1, dtype=D)
lib.tril_indices(2, 2, dtype=D)
lib.triu_indices(2, 2, dtype=D)
lib.tensor([1], dtype=D)
lib.frombuffer(bytearray(8), dtype=D)
lib.zeros_like(x, dtype=D)
x.new_zeros(2, dtype=D)
lib.hann_window(3, dtype=D)
lib.kaiser_window(3, dtype=D)
lib.fft.fftfreq(3, dtype=D)
lib.fft.rfftfreq(3, dtype=D)
lib.finfo(D).dtype
lib.iinfo(D).dtype
lib.can_cast(D, lib.float64)
lib.can_cast(lib.float64, D)
lib.promote_types(D, lib.float32)
lib.nn.Linear(2, 2, dtype=D).weight.dtype
lib.nn.Linear(2, 2).to(D).weight.dtype
lib.TypedStorage(2, dtype=D)
lib.testing.make_tensor(2, dtype=D, device="cpu")
""".strip().splitlines()


def _outcome(lib, call, kind):
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = eval(call, {"lib": lib, "x": lib.ones(3, 3), "D": kind})
    except Exception as error:
        return type(error).__name__
    if isinstance(result, lib.Tensor):
        values = None if result.device.type == "meta" else np.asarray(result.to_dense()).tolist()
        return str(result.dtype), tuple(result.shape), values
    return str(result)


@pytest.mark.parametrize("kind", [float, int, bool, complex, np.float64, str, "float32"], ids=repr)
@pytest.mark.parametrize("call", CALLS)
def test_python_type_as_dtype(call, kind):
    expected = _outcome(torch, call, kind)
    found = _outcome(mt, call, kind)
    if not isinstance(expected, tuple) or expected[2] is None:
        assert found == expected
        return
    assert found[:2] == expected[:2]
    np.testing.assert_allclose(found[2], expected[2], rtol=1e-6)
