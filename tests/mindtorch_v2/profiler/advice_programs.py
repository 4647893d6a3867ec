"""Programs that a rule of advice is about, each beside the same program as the advice has it.

Each is a function that makes what the program needs, and returns one step of it. `benchmarks/advice.py` times them.
"""

import time

import mindtorch_v2 as torch
from mindtorch_v2 import nn
from mindtorch_v2.profiler import record_function

LOADER = "enumerate(DataLoader)#_{}DataLoaderIter.__next__"  # torch's name of the scope around the next batch


def item_in_loop():
    x = torch.randn(200)
    return lambda: sum(x[i].item() for i in range(200))


def item_at_once():
    x = torch.randn(200)
    return lambda: sum(x.tolist())


def deciding_by_element():
    x = torch.randn(200)
    return lambda: [i for i in range(200) if x[i] > 0]


def deciding_at_once():
    x = torch.randn(200)
    return lambda: [i for i, positive in enumerate((x > 0).tolist()) if positive]


def masked_by_index():
    x = torch.randn(100_000)
    mask = x > 0
    return lambda: x[mask].sum()


def masked_by_product():
    x = torch.randn(100_000)
    mask = x > 0
    return lambda: (x * mask).sum()


def _training(*, to_none):
    model = nn.Sequential(*[nn.Linear(128, 128) for _ in range(12)])
    x = torch.randn(8, 128)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)

    def step():
        model(x).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=to_none)

    return step


def gradients_set_to_zero():
    return _training(to_none=False)


def gradients_set_to_none():
    return _training(to_none=True)


def gradients_zeroed_by_hand():
    weights = [torch.randn(64, 64, requires_grad=True) for _ in range(10)]

    def step():
        sum((w * w).sum() for w in weights).backward()
        for w in weights:
            w.grad.zero_()

    return step


def gradients_dropped_by_hand():
    weights = [torch.randn(64, 64, requires_grad=True) for _ in range(10)]

    def step():
        sum((w * w).sum() for w in weights).backward()
        for w in weights:
            w.grad = None

    return step


def _mixing(weights, use):
    """A step whose weights are used as `use` makes them."""

    def step():
        for w in weights:
            w.grad = None
        sum((use(w) * 2).sum() for w in weights).backward()

    return step


def gradients_that_come_transposed():
    return _mixing([torch.randn(200, 300, requires_grad=True) for _ in range(6)], lambda w: w.permute(1, 0))


def gradients_that_come_as_they_are():
    return _mixing([torch.randn(300, 200, requires_grad=True) for _ in range(6)], lambda w: w)


def _steps_of_adam(**options):
    params = [torch.randn(16, 16, requires_grad=True) for _ in range(100)]
    for p in params:
        p.grad = torch.randn(16, 16)
    return torch.optim.Adam(params, **options).step


def adam_by_parameter():
    return _steps_of_adam()


def adam_by_lists():
    return _steps_of_adam(foreach=True)


def adam_fused():
    return _steps_of_adam(fused=True)


def _loading(kind, wait):
    def step():
        with record_function(LOADER.format(kind)):
            if wait:
                time.sleep(wait)
        torch.ones(3).sin()
        time.sleep(0.02)  # computing

    return step


def loading_in_process():
    return _loading("SingleProcess", 0.02)


def loading_beside():
    return _loading("MultiProcessing", 0)


def slow_workers():
    return _loading("MultiProcessing", 0.02)


def casting_again():
    weight, batches = torch.randn(256, 256), [torch.randn(4, 256, dtype=torch.float64) for _ in range(8)]
    return lambda: [x @ weight.double() for x in batches]


def casting_once():
    weight, batches = torch.randn(256, 256), [torch.randn(4, 256, dtype=torch.float64) for _ in range(8)]

    def step():
        double = weight.double()
        return [x @ double for x in batches]

    return step


def reordering_again():
    weight, batches = torch.randn(256, 256).t(), [torch.randn(256) for _ in range(8)]
    return lambda: [weight.contiguous() * x for x in batches]


def reordering_once():
    weight, batches = torch.randn(256, 256).t(), [torch.randn(256) for _ in range(8)]

    def step():
        ordered = weight.contiguous()
        return [ordered * x for x in batches]

    return step


def reshaping_again():
    weight = torch.randn(64, 8, 32).transpose(0, 1)
    return lambda: [weight.reshape(-1).sum() for _ in range(8)]


def reshaping_in_order():
    weight = torch.randn(64, 8, 32).transpose(0, 1).contiguous()
    return lambda: [weight.reshape(-1).sum() for _ in range(8)]


def _convolution(*, bias):
    net = nn.Sequential(nn.Conv2d(4, 32, 3, padding=1, bias=bias), nn.BatchNorm2d(32))
    images = torch.randn(8, 4, 32, 32)
    return lambda: net(images).square().mean().backward()


def bias_before_norm():
    return _convolution(bias=True)


def no_bias_before_norm():
    return _convolution(bias=False)


def rows_one_by_one():
    x, w = torch.randn(100, 32), torch.randn(32, requires_grad=True)
    return lambda: torch.stack([(x[i] * w).sum() for i in range(100)]).sum().backward()


def rows_at_once():
    x, w = torch.randn(100, 32), torch.randn(32, requires_grad=True)
    return lambda: (x * w).sum(1).sum().backward()


def filling_by_row():
    x = torch.zeros(100, 32)

    def step():
        for i in range(100):
            x[i] = i

    return step


def filling_at_once():
    x = torch.zeros(100, 32)
    return lambda: x.copy_(torch.arange(100).unsqueeze(1))


def many_small_tensors():
    tensors = [torch.randn(16) for _ in range(100)]
    return lambda: [t.exp().mul(2).sum() for t in tensors]


def one_stacked_tensor():
    stacked = torch.randn(100, 16)
    return lambda: stacked.exp().mul(2).sum(1)


# rule → (a program that it is about, the same as advised)
PROGRAMS = {
    "item() in a loop": [(item_in_loop, item_at_once), (deciding_by_element, deciding_at_once)],
    "result sized by values": [(masked_by_index, masked_by_product)],
    "zero_grad without set_to_none": [
        (gradients_set_to_zero, gradients_set_to_none),
        (gradients_zeroed_by_hand, gradients_dropped_by_hand),
    ],
    "gradients copied": [(gradients_that_come_transposed, gradients_that_come_as_they_are)],
    "optimizer step not fused": [(adam_by_parameter, adam_fused), (adam_by_lists, adam_fused)],
    "DataLoader without workers": [(loading_in_process, loading_beside)],
    "DataLoader too slow": [(slow_workers, loading_beside)],
    "repeated casts": [(casting_again, casting_once)],
    "repeated copies of non-contiguous tensors": [(reordering_again, reordering_once), (reshaping_again, reshaping_in_order)],
    "bias before batch norm": [(bias_before_norm, no_bias_before_norm)],
    "indexing in a loop": [(rows_one_by_one, rows_at_once), (filling_by_row, filling_at_once)],
    "tiny operators": [(many_small_tensors, one_stacked_tensor)],
}


def recorded(step, count=4, **options):
    """A profile of so many steps, after one that warms up."""
    step()
    with torch.profiler.profile(record_shapes=True, **options) as prof:
        for i in range(count):
            step()
            if i < count - 1:
                prof.step()
    return prof
