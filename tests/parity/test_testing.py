"""torch.testing: the same is close, and the same is said about what is not."""

import pytest
import torch

import mindtorch_v2 as mt

pytestmark = pytest.mark.parity

CASES = """
1, 1
1, 2
1, 1.0
1.0, 1.0 + 1e-8
1j, 1j + 1e-3
True, 1
None, None
None, 0
nan, nan
inf, -inf
'a', 'a'
t([1., 2.]), t([1., 2.00001])
t([1., 2.]), t([1., 3.])
t([1., nan]), t([1., nan])
t([1., inf]), t([1., -inf])
t([1, 2]), t([1, 3])
t([True, False]), t([True, True])
t(1.), t(2.)
t(1.), 1.0
t([]), t([])
t([1.]), t([[1.]])
t([1.]), t([1.]).double()
t([1j, 2.]), t([1j, 3.])
[1, 2], [1]
[1, (2, 3)], [1, [2, 4]]
{'a': 1, 'b': 2}, {'a': 1, 'c': 2}
{'a': t([1.]), 'b': t([3.])}, {'a': t([1.]), 'b': t([4.])}
[t([1.])], (t([2.]),)
torch.eye(2).to_sparse(), torch.eye(2).to_sparse() * 2
torch.eye(2).to_sparse(), torch.eye(2)
torch.eye(2).to_sparse(), torch.ones(2, 2).to_sparse()
torch.ones(2).bfloat16(), torch.ones(2).bfloat16() * 1.01
torch.ones(2).half(), torch.ones(2).half() * 1.01
torch.zeros(2, device='meta'), torch.zeros(2, device='meta')
torch.zeros(2, device='meta'), torch.zeros(2)
torch.ones(2, 3), torch.ones(3, 2).t()
""".strip().splitlines()
OPTIONS = [
    "",
    "rtol=0, atol=0",
    "rtol=0.6, atol=1",
    "check_dtype=False, equal_nan=True",
    "check_layout=False, check_stride=True",
    "atol=1",
]


def outcome(lib, case, options):
    names = {"torch": lib, "t": lib.tensor, "nan": float("nan"), "inf": float("inf")}
    try:
        eval(f"torch.testing.assert_close({case}, {options})", names)
    except Exception as error:
        text = str(error).partition("exception above.")[0]  # behind it torch asks its users to report the error
        return type(error).__name__, text.replace("mindtorch_v2._tensor.", "torch.")
    return None


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("case", CASES)
def test_assert_close(case, options):
    assert outcome(mt, case, options) == outcome(torch, case, options)
