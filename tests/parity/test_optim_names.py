"""The names of torch.optim and its modules next to PyTorch's."""

import pytest
import torch as reference

import mindtorch_v2 as torch

pytestmark = pytest.mark.parity


def test_public_names():
    assert sorted(torch.optim.__all__) == sorted(reference.optim.__all__)
    assert sorted(torch.optim.lr_scheduler.__all__) == sorted(reference.optim.lr_scheduler.__all__)
    assert sorted(torch.optim.swa_utils.__all__) == sorted(reference.optim.swa_utils.__all__)
    public = {n for n in dir(reference.optim.Optimizer) if not n.startswith("_")}
    assert public - set(dir(torch.optim.Optimizer)) == set()
    from torch.optim import optimizer as theirs

    from mindtorch_v2.optim import optimizer as ours

    for name in (*theirs.__all__, "ParamsT", "required", "_use_grad_for_differentiable"):
        assert hasattr(ours, name)
