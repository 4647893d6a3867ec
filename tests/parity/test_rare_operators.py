"""Operators that few programs call: values, dtypes, layouts, gradients and kinds of errors, as under torch."""

import warnings

import pytest
import torch

import mindtorch_v2 as mt

pytestmark = pytest.mark.parity

SPARSE = """
lib.crow_indices_copy(r)
lib.col_indices_copy(r)
lib.ccol_indices_copy(r.to_sparse_csc())
lib.row_indices_copy(r.to_sparse_csc())
lib.values_copy(r)
lib.indices_copy(d)
lib.values_copy(d)
lib.ccol_indices_copy(r)
lib.col_indices_copy(d)
lib.smm(c, m)
c.smm(m)
lib.smm(d, m)
lib.smm(c, c)
lib.smm(c, m[:2])
lib.smm(c.double(), m)
lib.smm(c.int(), m.int())
lib.sspaddmm(s, c, m)
lib.sspaddmm(s, c, m, beta=2, alpha=3)
lib.sspaddmm(s, c, m, beta=0)
s.sspaddmm(c, m)
lib.saddmm(s, c, m)
lib.sspaddmm(s, d, m)
lib.sspaddmm(d @ m, c, m)
lib.sspaddmm(c, c, m)
lib.sspaddmm(s, c, m, out=lib.zeros(2, 2).to_sparse())
lib.sspaddmm(s.int(), c.int(), m.int())
lib.hspmm(c, m)
lib.hsmm(c, m)
lib.hspmm(d, m)
lib.hspmm(c, m[:2])
lib.hspmm(c, m.double())
lib.hspmm(c.int(), m.int())
lib.dsmm(c, m)
lib.dsmm(d, m)
lib.resize_as_sparse_(lib.zeros(3, 4).to_sparse(), c)
lib.resize_as_sparse_(lib.ones(3, 4).to_sparse(), c)
lib.resize_as_sparse_(lib.zeros(3, 4), c)
lib.resize_as_sparse_(lib.ones(2, 3).to_sparse(), c)
lib.resize_as_sparse_(c.clone(), lib.zeros(2))
lib.resize_as_sparse_(lib.zeros(2, 2).to_sparse_csr(), r).crow_indices()
""".strip().splitlines()

SIZES = """
lib.slice_inverse(lib.arange(10.0)[2:5], lib.arange(10.0), 0, 2, 5)
lib.slice_inverse(lib.arange(10.0)[2:8:2], lib.arange(10.0), 0, 2, 8, 2)
lib.arange(12.0).view(3, 4)[1:].slice_inverse(lib.arange(12.0).view(3, 4), 0, 1)
lib.sym_constrain_range(5)
lib.sym_constrain_range(5.5, min=5, max=5)
lib.sym_constrain_range(5, min=7)
lib.sym_constrain_range(5, max=3)
lib.sym_constrain_range(5, min=9, max=3)
lib.sym_constrain_range_for_size(5, min=1, max=1)
lib.sym_constrain_range_for_size(0, min=2, max=8)
lib.sym_constrain_range_for_size(5, min=8, max=20)
lib.sym_constrain_range_for_size(5, min=1, max=20)
lib.sym_constrain_range_for_size(-1)
""".strip().splitlines()

ROUNDED = """
lib.fake_quantize_per_tensor_affine(x, 0.1, 0, -128, 127)
lib.fake_quantize_per_tensor_affine(x.double(), 0.1, 0, -128, 127)
lib.fake_quantize_per_tensor_affine(x.half(), 0.1, 0, -128, 127)
lib.fake_quantize_per_tensor_affine(x.bfloat16(), 0.1, 3, 0, 255)
lib.fake_quantize_per_tensor_affine(x.int(), 0.1, 0, -128, 127)
lib.fake_quantize_per_tensor_affine(x, 0.1, 200, -128, 127)
lib.fake_quantize_per_tensor_affine(x, 0.1, 0, 5, 3)
lib.fake_quantize_per_tensor_affine(x, 0.1, 0, -1, 1)
lib.fake_quantize_per_tensor_affine(x, 0.0, 0, -128, 127)
lib.fake_quantize_per_tensor_affine(x, -0.1, 0, -128, 127)
lib.fake_quantize_per_tensor_affine(x, lib.tensor([0.1]), lib.tensor([0]), 0, 255)
lib.fake_quantize_per_tensor_affine(x, lib.tensor(0.1), lib.tensor(3, dtype=lib.int32), 0, 255)
lib.fake_quantize_per_tensor_affine(x, lib.tensor([0.1, 2]), lib.tensor([0], dtype=lib.int32), 0, 255)
lib.fake_quantize_per_channel_affine(y, scale, zero, 0, 0, 255)
lib.fake_quantize_per_channel_affine(y.t(), scale, zero, 1, 0, 255)
lib.fake_quantize_per_channel_affine(y, scale, zero.float() + 0.5, 0, 0, 255)
lib.fake_quantize_per_channel_affine(y, scale.double(), zero, 0, 0, 255)
lib.fake_quantize_per_channel_affine(y, scale, zero.long(), 0, 0, 255)
lib.fake_quantize_per_channel_affine(y, scale, zero + 300, 0, 0, 255)
lib.fake_quantize_per_channel_affine(y, scale, zero, 1, 0, 255)
lib.fake_quantize_per_channel_affine(y, scale, zero, 2, 0, 255)
lib.fake_quantize_per_channel_affine(y, scale, zero[:1], 0, 0, 255)
lib.fake_quantize_per_channel_affine(y, scale[:, None], zero, 0, 0, 255)
lib.fake_quantize_per_channel_affine(y, scale, zero, 0, 255, 0)
lib.fake_quantize_per_channel_affine(y.half(), scale, zero, 0, 0, 255)
lib.fake_quantize_per_channel_affine(y.double(), scale, zero, 0, 0, 255)
lib.dequantize(y)
y.double().dequantize()
lib.ones(2, dtype=lib.int64).dequantize()
""".strip().splitlines()


def _names(lib):
    d = lib.tensor([[0.0, 1.0, 0.0], [2.0, 3.0, 0.0]])
    return {
        "lib": lib, "d": d, "c": d.to_sparse(), "r": d.to_sparse_csr(), "m": lib.arange(6.0).view(3, 2), "s": lib.ones(2, 2).to_sparse(),
        "x": lib.tensor([-3.0, -0.26, -0.25, 0.05, 0.15, 0.3, 100.0, float("nan"), float("inf")]),
        "y": lib.tensor([[-1.3, 0.249, 7.0], [0.31, -0.2, 60.0]]), "scale": lib.tensor([0.1, 0.2]),
        "zero": lib.tensor([0, 3], dtype=lib.int32),
    }  # fmt: skip


def _facts(lib, value):
    if not isinstance(value, lib.Tensor):
        return value
    if value.layout is lib.sparse_coo:
        parts = value._indices().tolist(), value._values().tolist()
        return str(value.dtype), tuple(value.shape), value.is_coalesced(), parts
    return str(value.dtype), str(value.layout), tuple(value.shape), value.stride(), repr(value.tolist())


def _outcome(lib, call):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return _facts(lib, eval(call, _names(lib)))
        except Exception as error:
            return type(error).__name__


@pytest.mark.parametrize("call", [*SPARSE, *SIZES, *ROUNDED])
def test_outcome(call):
    assert _outcome(mt, call) == _outcome(torch, call)


@pytest.mark.parametrize("call", ["indices_copy", "values_copy"])
def test_coordinates_are_copied_too(call):
    """torch: these have no kernel for tensors in coordinate form."""
    names = _names(mt)
    made = getattr(mt, call)(names["c"])
    view = getattr(names["c"], call.removesuffix("_copy"))()
    assert made.tolist() == view.tolist()
    assert made.data_ptr() != view.data_ptr()


@pytest.mark.parametrize(
    "call", ["lib.smm(g, m)", "lib.smm(c, g)", "lib.hspmm(g, m)", "lib.sspaddmm(s, g, m)", "lib.dequantize(g)"]
)
def test_no_derivative(call):
    for lib in (mt, torch):
        names = _names(lib)
        g = names["m"].requires_grad_() if "c, g" in call else names["c"].requires_grad_()
        made = eval(call, names | {"g": g if "dequantize" not in call else names["d"].double().requires_grad_()})
        assert made.requires_grad
        with pytest.raises((RuntimeError, NotImplementedError), match="derivative for"):
            (made.to_dense() if made.layout is lib.sparse_coo else made).sum().backward()


@pytest.mark.parametrize(
    ("call", "leaf"),
    [
        ("lib.fake_quantize_per_tensor_affine(g, 0.1, 3, 0, 255)", "x"),
        ("lib.fake_quantize_per_tensor_affine(g, lib.tensor([0.1]), lib.tensor([0]), 0, 255)", "x"),
        ("lib.fake_quantize_per_channel_affine(g, scale, zero, 0, 0, 255)", "y"),
        ("lib.slice_inverse(g[1:3], g, 0, 1, 3)", "scale"),
        ("lib.values_copy(g)", "r"),
    ],
)
def test_gradients(call, leaf):
    found = []
    for lib in (mt, torch):
        names = _names(lib)
        g = (lib.arange(4.0) if "slice" in call else names[leaf]).requires_grad_()
        made = eval(call, names | {"g": g})
        made.backward(lib.ones_like(made) * 2)
        grad = g.grad.to_dense() if g.grad.layout is not lib.strided else g.grad
        found.append((type(made.grad_fn).__name__, grad.tolist()))
    assert found[0] == found[1]
