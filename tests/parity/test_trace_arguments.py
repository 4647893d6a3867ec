"""The arguments of operators in trace files: what torch writes for the same calls."""

import json
from collections import Counter

import pytest

import mindtorch_v2

pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore")]

LISTS = ("Concrete Inputs", "Input type", "Input Dims", "Input Strides")


def calls(torch):
    """Calls whose arguments are of many sorts. Of each, the operator that is called itself is compared."""
    f = torch.nn.functional
    x = torch.arange(12.0).reshape(3, 4)
    w, image, kernel = torch.ones(5, 4), torch.ones(1, 1, 4, 4), torch.ones(1, 1, 2, 2)
    many = [torch.ones(1)] * 31
    index = torch.tensor([0, 1])
    return {
        "aten::linear": lambda: f.linear(x, w),
        "aten::add": lambda: torch.add(x, x.t().t(), alpha=3),
        "aten::mul": lambda: torch.mul(x.t(), x.t()),
        "aten::sum": lambda: x.sum(dim=[0, 1], keepdim=True),
        "aten::mean": lambda: x.mean(),
        "aten::clamp": lambda: torch.clamp(x, 0.1, None),
        "aten::cat": lambda: torch.cat([x, x.t().reshape(3, 4)], 1),
        "aten::stack": lambda: torch.stack([x, x], dim=-1),
        "aten::where": lambda: torch.where(x > 0, x, x),
        "aten::einsum": lambda: torch.einsum("ij,kj->ik", x, w),
        "aten::unsqueeze": lambda: x.unsqueeze(1),
        "aten::permute": lambda: image.permute(3, 2, 1, 0),
        "aten::expand": lambda: torch.ones(1).expand([1] * 31),
        "aten::reshape": lambda: x.reshape(-1, 2),
        "aten::arange": lambda: torch.arange(0, 10, 0.3),
        "aten::full": lambda: torch.full((2, 3), 1e-5, dtype=torch.float64),
        "aten::zeros": lambda: torch.zeros(3, 4, dtype=torch.int8),
        "aten::conv2d": lambda: f.conv2d(image, kernel, padding=1, stride=(2, 1)),
        "aten::max_pool2d": lambda: f.max_pool2d(image, 2),
        "aten::layer_norm": lambda: f.layer_norm(x, [4]),
        "aten::embedding": lambda: f.embedding(index, w),
        "aten::gather": lambda: x.gather(1, torch.zeros(3, 1, dtype=torch.int64)),
        "aten::softmax": lambda: torch.softmax(x, dim=-1),
        "aten::_foreach_add": lambda: torch._foreach_add([x, w], 1.5),
        "aten::_foreach_mul": lambda: torch._foreach_mul([x, w], [1.0, 2.5]),
        "aten::_foreach_neg": lambda: torch._foreach_neg(many),
        "aten::div": lambda: torch.div(x, x + 1, rounding_mode="floor"),
        "aten::index_select": lambda: x.index_select(0, index),
        "aten::index": lambda: x[:, index],
        "aten::masked_fill": lambda: x.masked_fill(x > 3, float("-inf")),
        "aten::split_with_sizes": lambda: torch.split(x, [1, 2]),
        "aten::dropout": lambda: f.dropout(x, 0.5, training=True),
        "aten::cross_entropy_loss": lambda: f.cross_entropy(x, torch.tensor([0, 1, 2])),
        "aten::to": lambda: x.to(torch.bfloat16),
        "aten::pow": lambda: torch.pow(x, 2),
        "aten::lerp": lambda: torch.lerp(x, x, 0.25),
        "aten::fill_": lambda: x.clone().fill_(float("nan")),
        "aten::topk": lambda: torch.topk(x, 2),
        "aten::addcmul": lambda: torch.addcmul(x, x, x, value=0.5),
        "aten::tril": lambda: torch.tril(x, 1),
        "aten::roll": lambda: torch.roll(x, (1, 2), (0, 1)),
        "aten::clone": lambda: x.to(torch.complex64).clone(),
        "aten::randn": lambda: torch.randn(2, 3),
        "aten::group_norm": lambda: f.group_norm(image, 1),
        "aten::batch_norm": lambda: f.batch_norm(image, torch.zeros(1), torch.ones(1)),
    }


def rows(torch, call, path) -> list[dict]:
    with torch.profiler.profile(record_shapes=True) as prof:
        call()
    prof.export_chrome_trace(str(path))
    return [e for e in json.loads(path.read_text())["traceEvents"] if e.get("cat") == "cpu_op"]


@pytest.mark.parametrize("name", calls(mindtorch_v2))
def test_a_call(name, tmp_path):
    import torch

    shown = []
    for library in (mindtorch_v2, torch):
        first = next(row for row in rows(library, calls(library)[name], tmp_path / "trace.json") if row["name"] == name)
        shown.append({key: first["args"][key] for key in LISTS})
    assert shown[0] == shown[1]


def test_what_runs_inside_a_backward_pass(tmp_path):
    import torch

    def train(library):
        model = library.nn.Linear(4, 2)
        x = library.ones(3, 4)
        return lambda: model(x).relu().sum().backward()

    shown = []
    for library in (mindtorch_v2, torch):
        found = rows(library, train(library), tmp_path / "trace.json")
        wanted = [r for r in found if r["name"].endswith("Backward0") and "evaluate_function" not in r["name"]]
        shown.append(Counter((r["name"], json.dumps([r["args"].get(key) for key in LISTS])) for r in wanted))
    assert shown[0] == shown[1]
