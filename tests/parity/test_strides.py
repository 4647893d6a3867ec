"""Memory layouts that torch promises: of pointwise results, copies, views, reductions and products."""

import numpy as np
import pytest

import mindtorch_v2 as mt

pytestmark = pytest.mark.parity

LAYOUTS = {
    "contiguous": lambda t: t,
    "transposed": lambda t: t.transpose(1, 3),
    "permuted": lambda t: t.permute(2, 0, 3, 1),
    "channels last": lambda t: t.permute(0, 2, 3, 1).contiguous().permute(0, 3, 1, 2),
    "sliced": lambda t: t[:, ::2, 1:],
    "expanded": lambda t: t[:1].expand(3, -1, -1, -1),
}

CALLS = {
    "exp": lambda lib, x: x.exp(),
    "add itself": lambda lib, x: x + x,
    "add number": lambda lib, x: x + 1,
    "add contiguous": lambda lib, x: x + lib.ones(x.shape),
    "contiguous add": lambda lib, x: lib.ones(x.shape) + x,
    "add row": lambda lib, x: x + lib.ones(x.shape[-1:]),
    "comparison": lambda lib, x: x > 0,
    "where": lambda lib, x: lib.where(x > 0, x, -x),
    "clone": lambda lib, x: x.clone(),
    "contiguous": lambda lib, x: x.contiguous(),
    "to": lambda lib, x: x.to(lib.float64),
    "zeros_like": lambda lib, x: lib.zeros_like(x),
    "empty_like": lambda lib, x: lib.empty_like(x),
    "rand_like": lambda lib, x: lib.rand_like(x),
    "relu": lambda lib, x: lib.nn.functional.relu(x),
    "dropout": lambda lib, x: lib.nn.functional.dropout(x, 0.5),
    "sum": lambda lib, x: x.sum(1),
    "sum keepdim": lambda lib, x: x.sum(1, keepdim=True),
    "mean of two": lambda lib, x: x.mean((0, 2)),
    "max": lambda lib, x: x.max(2).values,
    "softmax": lambda lib, x: x.softmax(1),
    "cumsum": lambda lib, x: x.cumsum(1),
    "sort": lambda lib, x: x.sort(1).values,
    "reshape": lambda lib, x: x.reshape(-1),
    "flatten": lambda lib, x: x.flatten(1),
    "select": lambda lib, x: x[1],
    "slice": lambda lib, x: x[:, 1:],
    "index": lambda lib, x: x[lib.tensor([0, 1])],
    "unsqueeze": lambda lib, x: x.unsqueeze(2),
    "squeeze": lambda lib, x: x[:1].squeeze(),
    "expand": lambda lib, x: x.unsqueeze(0).expand(2, *x.shape),
    "cat": lambda lib, x: lib.cat([x, x], 1),
    "stack": lambda lib, x: lib.stack([x, x], 1),
    "matmul": lambda lib, x: x @ x.transpose(-1, -2),
    "flip": lambda lib, x: x.flip(1),
    "roll": lambda lib, x: x.roll(1, 2),
    "repeat": lambda lib, x: x.repeat(2, 1, 1, 1),
    "in place": lambda lib, x: x.clone().mul_(2),
}

# Where torch's layout follows from its kernels' inner workings rather than from a promise.
MIXED = "operands of two layouts: torch follows the first, NumPy falls back to rows"
GATHERED = "the rows that were picked are laid out anew"
NOT_PROMISED = {
    **{("add contiguous", layout): MIXED for layout in ("transposed", "permuted", "channels last")},
    **{("index", layout): GATHERED for layout in ("transposed", "permuted", "channels last")},
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("call", CALLS)
def test_strides(call, layout):
    import torch

    array = np.arange(3 * 4 * 5 * 6, dtype=np.float32).reshape(3, 4, 5, 6) - 50
    ours, theirs = (CALLS[call](lib, LAYOUTS[layout](lib.from_numpy(array.copy()))) for lib in (mt, torch))
    assert tuple(ours.shape) == tuple(theirs.shape)
    if (call, layout) not in NOT_PROMISED:
        assert ours.stride() == theirs.stride()
        assert ours.is_contiguous() == theirs.is_contiguous()
