"""Loss functions: values from their definitions, reductions, ignored and weighted targets, gradients, errors."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import mindtorch_v2 as torch
import mindtorch_v2.nn.functional as F

RNG = np.random.default_rng(0)


def _t(*shape: int, grad: bool = False) -> torch.Tensor:
    return torch.tensor(RNG.standard_normal(shape), dtype=torch.float64, requires_grad=grad)


PAIRWISE = {
    "mse_loss": lambda d: d * d,
    "l1_loss": np.abs,
    "smooth_l1_loss": lambda d: np.where(np.abs(d) < 1, d * d / 2, np.abs(d) - 0.5),
    "huber_loss": lambda d: np.where(np.abs(d) < 1, d * d / 2, np.abs(d) - 0.5),
}


@pytest.mark.parametrize("name", PAIRWISE)
def test_differences(name: str) -> None:
    x, y = _t(50, grad=True), _t(50, grad=True)
    want = PAIRWISE[name](x.detach()._array - y.detach()._array)
    loss = getattr(F, name)
    np.testing.assert_allclose(loss(x, y, reduction="none").detach()._array, want)
    np.testing.assert_allclose(loss(x, y).item(), want.mean())
    np.testing.assert_allclose(loss(x, y, reduction="sum").item(), want.sum())
    assert torch.autograd.gradcheck(lambda a, b: loss(a, b), (x, y))
    assert torch.autograd.gradgradcheck(lambda a, b: loss(a, b), (x, y))


def test_other_thresholds() -> None:
    x, y = torch.tensor([0.0, 0.0]), torch.tensor([0.25, 3.0])
    np.testing.assert_allclose(F.smooth_l1_loss(x, y, reduction="none", beta=0.5).tolist(), [0.0625, 2.75])
    np.testing.assert_allclose(F.huber_loss(x, y, reduction="none", delta=0.5).tolist(), [0.03125, 1.375])
    assert F.smooth_l1_loss(x, y, reduction="none", beta=0.0).tolist() == [0.25, 3.0]
    with pytest.raises(RuntimeError, match="huber_loss does not support non-positive values for delta"):
        F.huber_loss(x, y, delta=0.0)


def test_sizes_that_differ_warn_and_broadcast() -> None:
    with pytest.warns(UserWarning, match=r"Using a target size \(torch.Size\(\[1\]\)\) that is different to the input size"):
        assert F.mse_loss(torch.tensor([1.0, 3.0]), torch.tensor([1.0])).item() == 2


def test_weights_of_elements() -> None:
    x, w = torch.tensor([1.0, 2.0]), torch.tensor([1.0, 3.0])
    zero = torch.zeros(2)
    assert F.mse_loss(x, zero, weight=w).item() == 13 / 4
    assert F.l1_loss(x, zero, weight=w, reduction="sum").item() == 7
    assert F.huber_loss(x, zero, weight=w).item() == (0.5 + 3 * 1.5) / 2
    with pytest.raises(ValueError, match="Weights and input must have the same size"):
        F.mse_loss(x, zero, weight=torch.ones(1))


def test_legacy_flags_choose_the_reduction() -> None:
    x, y = torch.tensor([1.0, 3.0]), torch.zeros(2)
    with pytest.warns(UserWarning, match="please use reduction='sum' instead"):
        assert F.mse_loss(x, y, size_average=False).item() == 10
    with pytest.warns(UserWarning, match="please use reduction='none' instead"):
        assert F.mse_loss(x, y, reduce=False).tolist() == [1, 9]
    with pytest.raises(ValueError, match="other is not a valid value for reduction"):
        F.mse_loss(x, y, reduction="other")


def _log_softmax(x: np.ndarray, axis: int) -> np.ndarray:
    shifted = x - x.max(axis, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis, keepdims=True))


def test_cross_entropy_with_weights_and_ignored_targets() -> None:
    x = _t(6, 4, grad=True)
    target = torch.tensor([0, 3, -100, 1, 2, -100])
    weight = torch.tensor([1.0, 2.0, 0.5, 4.0], dtype=torch.float64)
    logs = _log_softmax(x.detach()._array, 1)
    kept = [0, 1, 3, 4]
    t = target._array[kept]
    losses = -logs[kept, t] * weight._array[t]
    np.testing.assert_allclose(F.cross_entropy(x, target, weight).item(), losses.sum() / weight._array[t].sum())
    np.testing.assert_allclose(F.cross_entropy(x, target).item(), -logs[kept, t].mean())
    each = F.cross_entropy(x, target, weight, reduction="none").detach()._array
    assert each[2] == each[5] == 0
    np.testing.assert_allclose(each[kept], losses)
    assert torch.autograd.gradcheck(lambda a: F.cross_entropy(a, target, weight), (x,))
    assert torch.autograd.gradgradcheck(lambda a: F.cross_entropy(a, target, weight), (x,))


def test_every_target_ignored_is_nan() -> None:
    assert math.isnan(F.cross_entropy(torch.zeros(2, 3), torch.tensor([-100, -100])).item())
    assert F.cross_entropy(torch.zeros(2, 3), torch.tensor([-100, -100]), reduction="sum").item() == 0


def test_an_ignored_class_may_be_a_class() -> None:
    x = torch.zeros(3, 4)
    assert F.cross_entropy(x, torch.tensor([0, 1, 1]), ignore_index=1, reduction="none").tolist() == pytest.approx(
        [math.log(4), 0, 0]
    )


def test_label_smoothing_equals_smoothed_probabilities() -> None:
    x, target = _t(5, 3), torch.tensor([0, 2, 1, 1, 0])
    smooth = np.full((5, 3), 0.3 / 3)
    smooth[np.arange(5), target._array] += 0.7
    probabilities = torch.tensor(smooth, dtype=torch.float64)
    got = F.cross_entropy(x, target, label_smoothing=0.3).item()
    np.testing.assert_allclose(got, F.cross_entropy(x, probabilities).item())
    np.testing.assert_allclose(got, F.cross_entropy(x, F.one_hot(target, 3).to(torch.float64), label_smoothing=0.3).item())


def test_dimensions_after_the_classes() -> None:
    x = _t(2, 3, 4, 5)
    target = torch.tensor(RNG.integers(0, 3, (2, 4, 5)))
    want = -np.take_along_axis(_log_softmax(x._array, 1), target._array[:, None], 1)[:, 0]
    np.testing.assert_allclose(F.cross_entropy(x, target, reduction="none")._array, want)
    flat = F.cross_entropy(x.reshape(2, 3, 20), target.reshape(2, 20), reduction="none")
    np.testing.assert_allclose(flat._array, want.reshape(2, 20))


def test_targets_out_of_range() -> None:
    with pytest.raises(IndexError, match="Target 3 is out of bounds"):
        F.nll_loss(torch.zeros(2, 3), torch.tensor([0, 3]))
    with pytest.raises(IndexError, match="Target -1 is out of bounds"):
        F.nll_loss(torch.zeros(2, 3), torch.tensor([0, -1]))


def test_shapes_and_dtypes_of_targets() -> None:
    with pytest.raises(ValueError, match=r"Expected input batch_size \(2\) to match target batch_size \(3\)"):
        F.nll_loss(torch.zeros(2, 3), torch.tensor([0, 1, 2]))
    with pytest.raises(RuntimeError, match="expected target dtype to be Long or Byte, but got Int"):
        F.nll_loss(torch.zeros(2, 3), torch.tensor([0, 1], dtype=torch.int32))
    with pytest.raises(RuntimeError, match="Expected floating point type for target with class probabilities"):
        F.cross_entropy(torch.zeros(2, 3), torch.zeros(2, 3, dtype=torch.int64))
    with pytest.raises(RuntimeError, match="weight tensor should be defined either for all 3 classes or no classes"):
        F.cross_entropy(torch.zeros(2, 3), torch.tensor([0, 1]), torch.ones(2))


def test_structure_of_cross_entropy() -> None:
    x = torch.zeros(2, 3, requires_grad=True)
    loss = F.cross_entropy(x, torch.tensor([0, 1]))
    assert loss.grad_fn.name() == "NllLossBackward0"
    assert loss.grad_fn.next_functions[0][0].name() == "LogSoftmaxBackward0"


def test_binary_cross_entropy() -> None:
    p = torch.tensor([0.1, 0.5, 0.99], dtype=torch.float64, requires_grad=True)
    t = torch.tensor([0.0, 0.3, 1.0], dtype=torch.float64, requires_grad=True)
    a, b = p.detach()._array, t.detach()._array
    want = -(b * np.log(a) + (1 - b) * np.log(1 - a))
    np.testing.assert_allclose(F.binary_cross_entropy(p, t, reduction="none").detach()._array, want)
    assert torch.autograd.gradcheck(F.binary_cross_entropy, (p, t.detach()))
    assert torch.autograd.gradgradcheck(F.binary_cross_entropy, (p, t.detach()))
    logits = torch.tensor(np.log(a / (1 - a)), dtype=torch.float64, requires_grad=True)
    np.testing.assert_allclose(F.binary_cross_entropy_with_logits(logits, t, reduction="none").detach()._array, want)
    weights = (torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64), torch.tensor([2.0, 0.5, 1.5], dtype=torch.float64))
    assert torch.autograd.gradcheck(
        lambda x, y: F.binary_cross_entropy_with_logits(x, y, weight=weights[0], pos_weight=weights[1]), (logits, t)
    )


def test_a_certain_mistake_costs_a_hundred() -> None:
    assert F.binary_cross_entropy(torch.tensor([0.0]), torch.tensor([1.0])).item() == 100
    with pytest.raises(RuntimeError, match="all elements of input should be between 0 and 1"):
        F.binary_cross_entropy(torch.tensor([2.0]), torch.tensor([1.0]))


def test_kl_div() -> None:
    p, q = np.array([0.2, 0.8]), np.array([0.5, 0.5])
    want = (q * np.log(q / p)).sum()
    logs = torch.tensor(np.log(p)).reshape(1, 2)
    np.testing.assert_allclose(F.kl_div(logs, torch.tensor(q).reshape(1, 2), reduction="batchmean").item(), want)
    got = F.kl_div(logs, torch.tensor(np.log(q)).reshape(1, 2), reduction="sum", log_target=True)
    np.testing.assert_allclose(got.item(), want)
    with pytest.warns(UserWarning, match="batchmean"):
        F.kl_div(logs, torch.tensor(q).reshape(1, 2))


def test_margins() -> None:
    scores = torch.tensor([[0.1, 0.2, 0.4, 0.8]], dtype=torch.float64, requires_grad=True)
    np.testing.assert_allclose(F.multi_margin_loss(scores, torch.tensor([3])).item(), (0.3 + 0.4 + 0.6) / 4)
    labels = torch.tensor([[3, 0, -1, 1]])
    want = 0.25 * ((1 - (0.1 - 0.2)) + (1 - (0.1 - 0.4)) + (1 - (0.8 - 0.2)) + (1 - (0.8 - 0.4)))
    np.testing.assert_allclose(F.multilabel_margin_loss(scores, labels).item(), want)
    assert torch.autograd.gradcheck(lambda x: F.multilabel_margin_loss(x, labels), (scores,))
    assert torch.autograd.gradcheck(lambda x: F.multi_margin_loss(x, torch.tensor([3]), p=2), (scores,))


def _ctc_by_enumeration(log_probs: np.ndarray, labels: list[int]) -> float:
    """The likelihood summed over every path that collapses to the labels."""
    time, classes = log_probs.shape
    total = 0.0
    for path in itertools.product(range(classes), repeat=time):
        collapsed = [k for i, k in enumerate(path) if k and (i == 0 or path[i - 1] != k)]
        if collapsed == labels:
            total += math.exp(sum(log_probs[t, k] for t, k in enumerate(path)))
    return -math.log(total) if total else math.inf


def test_ctc_is_the_sum_over_all_paths() -> None:
    x = _t(5, 3, 3, grad=True)
    logs = x.log_softmax(2)
    targets, lengths = torch.tensor([[1, 2], [1, 1], [2, 0]]), [2, 2, 1]
    inputs = [5, 4, 3]
    got = F.ctc_loss(logs, targets, inputs, lengths, reduction="none").detach()._array
    array = logs.detach()._array
    want = [_ctc_by_enumeration(array[: inputs[n], n], targets[n, : lengths[n]].tolist()) for n in range(3)]
    np.testing.assert_allclose(got, want)
    joined = F.ctc_loss(logs, torch.tensor([1, 2, 1, 1, 2]), torch.tensor(inputs), torch.tensor(lengths), reduction="none")
    np.testing.assert_allclose(joined.detach()._array, want)
    np.testing.assert_allclose(F.ctc_loss(logs, targets, inputs, lengths).item(), np.mean(np.array(want) / lengths))
    assert torch.autograd.gradcheck(lambda a: F.ctc_loss(a.log_softmax(2), targets, inputs, lengths), (x,))


def test_ctc_of_an_impossible_target() -> None:
    logs = torch.zeros(1, 1, 3).log_softmax(2).requires_grad_()
    target = torch.tensor([[1, 2]])
    assert F.ctc_loss(logs, target, [1], [2], reduction="sum").item() == math.inf
    loss = F.ctc_loss(logs, target, [1], [2], reduction="sum", zero_infinity=True)
    assert loss.item() == 0
    (g,) = torch.autograd.grad(loss, logs)
    assert not g._array.any()


def test_linear_cross_entropy_is_both_in_one() -> None:
    x, w, t = _t(4, 3), _t(5, 3), torch.tensor([0, 4, 2, 1])
    np.testing.assert_allclose(F.linear_cross_entropy(x, w, t).item(), F.cross_entropy(F.linear(x, w), t).item())


def test_distances() -> None:
    a, b, c = (torch.tensor(v) for v in ([[0.0, 0.0]], [[3.0, 4.0]], [[0.0, 1.0]]))
    np.testing.assert_allclose(F.pairwise_distance(a, b).item(), 5, rtol=1e-5)
    np.testing.assert_allclose(F.triplet_margin_loss(a, c, b).item(), 0, atol=1e-5)
    np.testing.assert_allclose(F.triplet_margin_loss(a, b, c).item(), 5, rtol=1e-5)
    np.testing.assert_allclose(F.cosine_similarity(b, c).item(), 0.8, rtol=1e-6)
    assert F.cosine_similarity(a, b).item() == 0
    with pytest.raises(ValueError, match="margin must be greater than 0, got 0"):
        F.triplet_margin_loss(a, b, c, margin=0)


@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_totals_of_many_elements_agree_with_the_elements(reduction: str) -> None:
    x, y = (torch.from_numpy(np.random.default_rng(i).standard_normal((150, 133)).astype(np.float32) * 2) for i in range(2))
    for loss in (F.mse_loss, F.huber_loss, F.smooth_l1_loss, F.l1_loss):
        each = loss(x, y, reduction="none").numpy().astype(np.float64)
        np.testing.assert_allclose(loss(x, y, reduction=reduction).item(), getattr(each, reduction)(), rtol=1e-6)
