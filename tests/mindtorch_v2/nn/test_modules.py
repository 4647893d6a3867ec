"""The modules of `torch.nn`: containers, results, printing; and, against torch, weights drawn from the same seed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mindtorch_v2 as torch
from mindtorch_v2 import nn


class TestContainers:
    def test_sequential_is_a_list_of_modules(self) -> None:
        m = nn.Sequential(nn.ReLU(), nn.Tanh(), nn.ELU())
        del m[1]
        assert list(m._modules) == ["0", "1"]
        m.insert(0, nn.GELU())
        m.append(nn.SiLU()).extend([nn.Mish()])
        assert [type(x).__name__ for x in m] == ["GELU", "ReLU", "ELU", "SiLU", "Mish"]
        assert isinstance(m[1:3], nn.Sequential)
        assert type(m.pop(-1)) is nn.Mish
        assert len(m + m) == 8
        assert len(m * 2) == 8
        with pytest.raises(IndexError, match="out of range"):
            m[9]

    def test_module_list(self) -> None:
        m = nn.ModuleList([nn.ReLU()])
        m += [nn.Tanh()]
        m.insert(1, nn.ELU())
        assert [type(x).__name__ for x in m] == ["ReLU", "ELU", "Tanh"]
        assert type(m.pop(0)) is nn.ReLU
        with pytest.raises(NotImplementedError):
            m(1)

    def test_module_dict(self) -> None:
        m = nn.ModuleDict({"a": nn.Linear(1, 1)})
        m.update([("b", nn.ReLU())])
        assert list(m) == ["a", "b"]
        assert "a" in m
        assert [n for n, _ in m.named_parameters()] == ["a.weight", "a.bias"]

    def test_parameter_containers(self) -> None:
        listed = nn.ParameterList([torch.zeros(2)])
        listed.append(nn.Parameter(torch.ones(1)))
        assert [n for n, _ in listed.named_parameters()] == ["0", "1"]
        named = nn.ParameterDict({"b": torch.zeros(1), "a": torch.zeros(2)})
        assert list(named) == ["a", "b"]
        assert named.pop("a").shape == (2,)
        assert "(0): Parameter containing: [torch.float32 of size 2]" in repr(listed)


@pytest.mark.parametrize(
    ("made", "text"),
    [
        (
            lambda: nn.Conv2d(2, 4, 3, padding=1, groups=2, bias=False),
            "Conv2d(2, 4, kernel_size=(3, 3), stride=(1, 1), padding=(1, 1), groups=2, bias=False)",
        ),
        (lambda: nn.BatchNorm2d(3), "BatchNorm2d(3, eps=1e-05, momentum=0.1, affine=True, bias=True, track_running_stats=True)"),
        (lambda: nn.MaxPool2d(2), "MaxPool2d(kernel_size=2, stride=2, padding=0, dilation=1, ceil_mode=False)"),
        (lambda: nn.Embedding(3, 4, padding_idx=-1), "Embedding(3, 4, padding_idx=2)"),
        (lambda: nn.ReLU(inplace=True), "ReLU(inplace=True)"),
        (lambda: nn.Upsample(scale_factor=2), "Upsample(scale_factor=2.0, mode='nearest')"),
        (lambda: nn.Dropout(0.1), "Dropout(p=0.1, inplace=False)"),
    ],
)
def test_printing(made: Any, text: str) -> None:
    assert repr(made()) == text


def test_linear_is_a_matrix_product() -> None:
    m = nn.Linear(3, 2)
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    want = x @ m.weight.detach().numpy().T + m.bias.detach().numpy()
    np.testing.assert_allclose(m(torch.from_numpy(x)).detach().numpy(), want, rtol=1e-6)


def test_batch_norm_tracks_statistics() -> None:
    m = nn.BatchNorm1d(2, momentum=0.5)
    x = torch.tensor([[0.0, 2.0], [2.0, 6.0]])
    np.testing.assert_allclose(m(x).detach().numpy(), [[-1, -1], [1, 1]], atol=1e-4)
    assert m.running_mean.tolist() == [0.5, 2]
    assert m.running_var.tolist() == [1.5, 4.5]
    assert int(m.num_batches_tracked) == 1
    m.eval()
    m(x)
    assert int(m.num_batches_tracked) == 1
    cumulative = nn.BatchNorm1d(2, momentum=None)
    cumulative(x)
    cumulative(x + 1)
    assert cumulative.running_mean.tolist() == [1.5, 4.5]


def test_dropout_only_in_training() -> None:
    m = nn.Dropout(0.5)
    x = torch.ones(1000)
    assert set(m(x).tolist()) == {0.0, 2.0}
    assert m.eval()(x).tolist() == x.tolist()
    with pytest.raises(ValueError, match="between 0 and 1"):
        nn.Dropout(2)


def test_embedding_padding_row_is_zero_and_gets_no_gradient() -> None:
    m = nn.Embedding(3, 2, padding_idx=1)
    m(torch.tensor([0, 1])).sum().backward()
    assert m.weight[1].tolist() == [0, 0]
    assert m.weight.grad.tolist() == [[1, 1], [0, 0], [0, 0]]
    assert not nn.Embedding.from_pretrained(torch.ones(2, 2)).weight.requires_grad


def test_transposed_convolution_to_a_wanted_size() -> None:
    m = nn.ConvTranspose2d(1, 1, 3, stride=2)
    assert m(torch.zeros(1, 1, 3, 3), output_size=[8, 8]).shape == (1, 1, 8, 8)
    with pytest.raises(ValueError, match="requested an output size of"):
        m(torch.zeros(1, 1, 3, 3), output_size=[20, 20])


def test_convolution_with_another_border() -> None:
    m = nn.Conv1d(1, 1, 3, padding=1, padding_mode="circular", bias=False)
    with torch.no_grad():
        m.weight.fill_(1)
    assert m(torch.tensor([[[1.0, 2.0, 3.0]]])).tolist() == [[[6, 6, 6]]]


@pytest.mark.parametrize(
    "made", [lambda: nn.Conv2d(3, 4, 1, groups=2), lambda: nn.GroupNorm(2, 3), lambda: nn.FractionalMaxPool2d(2)]
)
def test_arguments_that_do_not_fit(made: Any) -> None:
    with pytest.raises(ValueError, match=r"divisible|requires"):
        made()


def test_a_deprecated_pair_of_flags() -> None:
    with pytest.warns(UserWarning, match="please use reduction='sum'"):
        assert nn.MSELoss(size_average=False).reduction == "sum"


MODELS = [
    lambda nn: nn.Sequential(nn.Linear(3, 4), nn.Bilinear(2, 3, 4)),
    lambda nn: nn.Sequential(nn.Conv2d(3, 8, 3), nn.ConvTranspose1d(4, 4, 3), nn.Conv3d(2, 2, 2)),
    lambda nn: nn.Sequential(nn.Embedding(7, 5, padding_idx=2), nn.EmbeddingBag(3, 2), nn.PReLU()),
    lambda nn: nn.Sequential(nn.BatchNorm1d(3), nn.LayerNorm(3), nn.GroupNorm(1, 2), nn.RMSNorm(2), nn.Linear(5, 5)),
]


@pytest.mark.parity
@pytest.mark.parametrize("model", MODELS)
def test_weights_of_a_seed_are_torchs(model: Any) -> None:
    import torch as oracle

    torch.manual_seed(0)
    oracle.manual_seed(0)
    ours, theirs = model(nn), model(oracle.nn)
    assert repr(ours) == repr(theirs)
    assert list(ours.state_dict()) == list(theirs.state_dict())
    for name, value in theirs.state_dict().items():
        np.testing.assert_allclose(ours.state_dict()[name].numpy(), value.numpy(), atol=1e-6, err_msg=name)
