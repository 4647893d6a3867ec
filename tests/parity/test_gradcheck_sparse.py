"""`gradcheck` of functions of sparse tensors: what `masked` leaves out, and what is refused, as under torch."""

import pytest
import torch

import mindtorch_v2 as mt

pytestmark = pytest.mark.parity

FUNCTIONS = {
    "to_dense masked": lambda lib, a: a.to_dense(masked_grad=True),
    "to_dense unmasked": lambda lib, a: a.to_dense(masked_grad=False),
    "times two": lambda lib, a: a * 2,
    "to_sparse_csr": lambda lib, a: a.to_sparse_csr(),
    "mm": lambda lib, a: lib.sparse.mm(a, lib.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=lib.float64)),
}


def _outcome(lib, check, function, layout, **options):
    x = lib.tensor([[0.0, 1.0], [2.0, 3.0]], dtype=lib.float64).to_sparse(layout=getattr(lib, layout)).requires_grad_()
    try:
        return check(lib)(lambda a: FUNCTIONS[function](lib, a), (x,), **options)
    except Exception as error:
        return type(error).__name__, str(error)[:40]


@pytest.mark.filterwarnings("ignore:Sparse:UserWarning")
@pytest.mark.parametrize("layout", ["sparse_coo", "sparse_csr"])
@pytest.mark.parametrize("masked", [True, False, None])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_gradcheck(function, masked, layout):
    outcomes = [_outcome(lib, lambda lib: lib.autograd.gradcheck, function, layout, masked=masked) for lib in (torch, mt)]
    assert outcomes[1] == outcomes[0]


@pytest.mark.filterwarnings("ignore:Sparse:UserWarning")
@pytest.mark.parametrize("layout", ["sparse_coo", "sparse_csr", "sparse_csc"])
@pytest.mark.parametrize("masked", [True, False])
@pytest.mark.parametrize("function", ["to_dense masked", "to_dense unmasked", "times two", "to_sparse_csr"])
def test_as_sparse_gradcheck(function, masked, layout):
    outcomes = [
        _outcome(lib, lambda lib: lib.sparse.as_sparse_gradcheck(lib.autograd.gradcheck), function, layout, masked=masked)
        for lib in (torch, mt)
    ]
    assert outcomes[1] == outcomes[0]


def test_blocks():
    for lib in (torch, mt):
        x = lib.ones(4, 4, dtype=lib.float64).tril(-1).to_sparse_bsr((2, 2)).requires_grad_()
        for masked in (True, False):
            assert lib.autograd.gradcheck(lambda a, m=masked: a.to_dense(masked_grad=m), x, masked=masked)
