"""torchmetrics: classification, regression, aggregation, collections, and state that is saved."""

import warnings

import torch
import torchmetrics
from report import show

warnings.simplefilter("ignore")  # of buffers that grow
torch.manual_seed(0)
probabilities, target = torch.randn(20, 5).softmax(-1), torch.randint(5, (20,))
for kind in (
    torchmetrics.Accuracy,
    torchmetrics.F1Score,
    torchmetrics.AUROC,
    torchmetrics.ConfusionMatrix,
    torchmetrics.CalibrationError,
):
    metric = kind(task="multiclass", num_classes=5)
    for half in (slice(10), slice(10, None)):
        metric.update(probabilities[half], target[half])
    show(**{kind.__name__: metric.compute()})

a, b = torch.randn(50), torch.randn(50)
for metric in (
    torchmetrics.MeanSquaredError(), torchmetrics.R2Score(), torchmetrics.PearsonCorrCoef(), torchmetrics.SpearmanCorrCoef(),
    torchmetrics.KendallRankCorrCoef(), torchmetrics.ExplainedVariance(), torchmetrics.CosineSimilarity(),
):  # fmt: skip
    inputs = (a[None], b[None]) if isinstance(metric, torchmetrics.CosineSimilarity) else (a, b)
    show(**{type(metric).__name__: metric(*inputs)})

collection = torchmetrics.MetricCollection([torchmetrics.MeanSquaredError(), torchmetrics.MeanAbsoluteError()])
show(**collection(a, b))
mean = torchmetrics.MeanMetric()
mean.persistent(True)
mean(a)
again = torchmetrics.MeanMetric()
again.persistent(True)
again.load_state_dict(mean.state_dict())
show(keys=[0.0] * len(mean.state_dict()), loaded=again.mean_value)
