"""Programs whose profiles are compared with torch's. Each makes, from a library, one step to be called again and again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["PROGRAMS"]

Step = Callable[[], Any]

PROGRAMS: dict[str, Callable[[Any], Step]] = {}


def program(make: Callable[[Any], Step]) -> Callable[[Any], Step]:
    PROGRAMS[make.__name__.replace("_", " ")] = make
    return make


def training(lib: Any, optimizer: Any, loss_of: Callable[[], Any]) -> Step:
    """A step as most programs have it."""

    def step() -> None:
        optimizer.zero_grad()
        loss_of().backward()
        optimizer.step()

    return step


@program
def autoencoder(lib: Any) -> Step:
    nn = lib.nn
    net = nn.Sequential(
        nn.Conv2d(1, 4, 3, stride=2, padding=1),
        nn.LeakyReLU(0.1),
        nn.Conv2d(4, 8, 3, stride=2, padding=1),
        nn.Tanh(),
        nn.ConvTranspose2d(8, 4, 4, stride=2, padding=1),
        nn.SiLU(),
        nn.ConvTranspose2d(4, 1, 4, stride=2, padding=1),
        nn.Sigmoid(),
    )
    images = lib.rand(3, 1, 16, 16)
    optimizer = lib.optim.Adam(net.parameters(), lr=1e-3)
    return training(lib, optimizer, lambda: lib.nn.functional.mse_loss(net(images), images))


@program
def transformer_block_by_hand(lib: Any) -> Step:
    nn, F, width, heads = lib.nn, lib.nn.functional, 16, 4

    class Block(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.q, self.k, self.v, self.out = (nn.Linear(width, width) for _ in range(4))
            self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
            self.register_buffer("mask", lib.ones(6, 6).tril() == 0)

        def split(self, x: Any) -> Any:
            return x.view(x.shape[0], x.shape[1], heads, width // heads).transpose(1, 2)

        def attend(self, x: Any) -> Any:
            q, k, v = self.split(self.q(x)), self.split(self.k(x)), self.split(self.v(x))
            scores = q @ k.transpose(-2, -1) / (width // heads) ** 0.5
            weights = F.softmax(scores.masked_fill(self.mask, float("-inf")), dim=-1)
            y = (weights @ v).transpose(1, 2).reshape(x.shape)
            return self.out(y)

        def forward(self, x: Any) -> Any:
            x = x + F.dropout(self.attend(self.norm1(x)), 0.1, self.training)
            return x + self.down(F.gelu(self.up(self.norm2(x))))

    net = Block()
    x, y = lib.randn(2, 6, width), lib.randn(2, 6, width)
    return training(lib, lib.optim.SGD(net.parameters(), lr=0.1), lambda: F.mse_loss(net(x), y))


@program
def lstm_cell_by_hand(lib: Any) -> Step:
    nn, hidden = lib.nn, 5

    class Cell(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.inputs, self.state = nn.Linear(3, 4 * hidden), nn.Linear(hidden, 4 * hidden, bias=False)

        def forward(self, x: Any, h: Any, c: Any) -> Any:
            i, f, g, o = (self.inputs(x) + self.state(h)).chunk(4, dim=1)
            c = lib.sigmoid(f) * c + lib.sigmoid(i) * lib.tanh(g)
            return lib.sigmoid(o) * lib.tanh(c), c

    cell, head = Cell(), nn.Linear(hidden, 2)
    sequence, labels = lib.randn(4, 2, 3), lib.tensor([0, 1])
    optimizer = lib.optim.SGD([*cell.parameters(), *head.parameters()], lr=1e-2)

    def loss() -> Any:
        h, c = lib.zeros(2, hidden), lib.zeros(2, hidden)
        for x in sequence:
            h, c = cell(x, h, c)
        return lib.nn.functional.cross_entropy(head(h), labels)

    return training(lib, optimizer, loss)


def _optimized(name: str, **options: Any) -> Callable[[Any], Step]:
    def make(lib: Any) -> Step:
        net = lib.nn.Sequential(lib.nn.Linear(4, 8), lib.nn.ReLU(), lib.nn.Linear(8, 2))
        x, y = lib.randn(3, 4), lib.randn(3, 2)
        optimizer = getattr(lib.optim, name)(net.parameters(), **options)
        return training(lib, optimizer, lambda: lib.nn.functional.mse_loss(net(x), y))

    return make


for _title, _name, _options in [
    ("Adam", "Adam", {}),
    ("Adam foreach", "Adam", {"foreach": True, "weight_decay": 0.1}),
    ("Adam amsgrad", "Adam", {"foreach": False, "amsgrad": True, "weight_decay": 0.1}),
    ("AdamW", "AdamW", {"foreach": False}),
    ("AdamW foreach", "AdamW", {"foreach": True}),
    ("SGD foreach", "SGD", {"lr": 0.1, "momentum": 0.9, "foreach": True}),
    ("SGD Nesterov", "SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.1}),
]:
    PROGRAMS[_title] = _optimized(_name, **_options)


@program
def clipped_gradients(lib: Any) -> Step:
    net = lib.nn.Sequential(lib.nn.Linear(4, 8), lib.nn.Softplus(), lib.nn.Linear(8, 2))
    x, y = lib.randn(3, 4), lib.randn(3, 2)
    optimizer = lib.optim.SGD(net.parameters(), lr=0.1)

    def step() -> None:
        optimizer.zero_grad()
        lib.nn.functional.smooth_l1_loss(net(x), y).backward()
        lib.nn.utils.clip_grad_norm_(net.parameters(), 0.5)
        lib.nn.utils.clip_grad_norm_(net.parameters(), 0.5, foreach=False)
        lib.nn.utils.clip_grad_value_(net.parameters(), 0.1)
        optimizer.step()

    return step


@program
def embedding_with_ignored_targets(lib: Any) -> Step:
    table, head = lib.nn.Embedding(10, 6, padding_idx=0), lib.nn.Linear(6, 10)
    tokens = lib.tensor([[1, 2, 3, 0], [4, 5, 0, 0]])
    targets = lib.tensor([[2, 3, -100, -100], [5, 6, -100, -100]])
    optimizer = lib.optim.SGD([*table.parameters(), *head.parameters()], lr=0.1)

    def loss() -> Any:
        logits = head(table(tokens))
        plain = lib.nn.functional.cross_entropy(logits.view(-1, 10), targets.view(-1), ignore_index=-100)
        return plain + lib.nn.functional.cross_entropy(logits.transpose(1, 2), targets, label_smoothing=0.1)

    return training(lib, optimizer, loss)


@program
def batch_norm_evaluation(lib: Any) -> Step:
    net = lib.nn.Sequential(lib.nn.Conv2d(2, 4, 3), lib.nn.BatchNorm2d(4), lib.nn.ReLU(inplace=True), lib.nn.AdaptiveAvgPool2d(1))
    net.eval()
    x = lib.randn(2, 2, 8, 8)
    return lambda: net(x).flatten(1).sum().backward()


@program
def inference(lib: Any) -> Step:
    nn = lib.nn
    net = nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Dropout(), nn.Linear(8, 3)).eval()
    x = lib.randn(5, 4)

    def step() -> Any:
        with lib.no_grad():
            probabilities = net(x).softmax(-1)
            values, indices = probabilities.topk(2, dim=-1)
            return values.cumsum(-1), probabilities.argmax(-1) == indices[:, 0]

    return step


@program
def custom_function(lib: Any) -> Step:
    class Cube(lib.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            (x,) = ctx.saved_tensors
            return grad * 3 * x**2

    layer, x = lib.nn.Linear(3, 3), lib.randn(2, 3)

    def step() -> None:
        with lib.profiler.record_function("cubes"):
            y = Cube.apply(layer(x))
        y.mean().backward()

    return step


@program
def recomputed(lib: Any) -> Step:
    """A layer that is run again in the backward pass instead of keeping its activations."""

    class Recompute(lib.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, layer: Any, x: Any) -> Any:
            ctx.layer = layer
            ctx.save_for_backward(x)
            with lib.no_grad():
                return layer(x)

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            (x,) = ctx.saved_tensors
            x = x.detach().requires_grad_()
            with lib.enable_grad():
                y = ctx.layer(x)
            lib.autograd.backward(y, grad)
            return None, x.grad

    first, second = lib.nn.Linear(4, 4), lib.nn.Sequential(lib.nn.Linear(4, 4), lib.nn.Tanh())
    x = lib.randn(3, 4)
    return lambda: Recompute.apply(second, first(x)).pow(2).sum().backward()


@program
def double_backward(lib: Any) -> Step:
    """A penalty on the gradient's norm."""
    net = lib.nn.Sequential(lib.nn.Linear(3, 8), lib.nn.Tanh(), lib.nn.Linear(8, 1))
    x = lib.randn(4, 3, requires_grad=True)

    def step() -> None:
        y = net(x)
        (grad,) = lib.autograd.grad(y.sum(), x, create_graph=True)
        penalty = ((grad.norm(2, dim=1) - 1) ** 2).mean()
        (y.mean() + 10 * penalty).backward()

    return step


@program
def indexing(lib: Any) -> Step:
    x = lib.randn(6, 5, requires_grad=True)
    rows = lib.tensor([0, 2, 2, 5])

    def step() -> None:
        picked = x[rows] + x[1:5] + x[:, 0].sum() + x[rows, lib.tensor([0, 1, 2, 3])].unsqueeze(1)
        masked = x[x > 0].sum() + lib.where(x > 0, x, -x).mean() + x.masked_fill(x < 0, 0.0).sum()
        gathered = x.gather(1, x.detach().argsort(1)).cumsum(0) + x.index_select(0, lib.arange(6))
        out = lib.zeros(6, 5)
        out[1:3] = x[:2]
        out[rows] = 1.0
        out = out.index_add(0, rows, x[:4]).scatter_add(1, lib.zeros(6, 2, dtype=lib.long), x[:, :2])
        (picked.sum() + masked + gathered.sum() + out.sum() + x[..., None].expand(6, 5, 3).sum()).backward()

    return step


@program
def losses(lib: Any) -> Step:
    F = lib.nn.functional
    x, y = lib.randn(4, 5, requires_grad=True), lib.rand(4, 5)
    labels, signs = lib.tensor([0, 1, 4, 2]), lib.tensor([1.0, -1.0, 1.0, -1.0])

    def step() -> None:
        total = F.mse_loss(x, y) + F.l1_loss(x, y) + F.smooth_l1_loss(x, y) + F.huber_loss(x, y)
        total = total + F.binary_cross_entropy(x.sigmoid(), y) + F.binary_cross_entropy_with_logits(x, y)
        total = total + F.cross_entropy(x, labels) + F.cross_entropy(x, y) + F.nll_loss(x.log_softmax(1), labels)
        total = total + F.kl_div(x.log_softmax(1), y, reduction="batchmean") + F.poisson_nll_loss(x, y)
        total = total + F.cosine_embedding_loss(x, y, signs) + F.margin_ranking_loss(x[:, 0], y[:, 0], signs)
        total = total + F.hinge_embedding_loss(x[:, 0], signs) + F.triplet_margin_loss(x, y, y.flip(0))
        total = total + F.soft_margin_loss(x[:, 0], signs) + F.multi_margin_loss(x, labels) + F.gaussian_nll_loss(x, y, y + 1)
        total = total + F.multilabel_soft_margin_loss(x, y.round())
        total.backward()

    return step


@program
def activations(lib: Any) -> Step:
    F = lib.nn.functional
    x = lib.randn(4, 6, requires_grad=True)

    def step() -> None:
        y = F.relu(x) + F.leaky_relu(x) + F.elu(x) + F.selu(x) + F.celu(x) + F.gelu(x, approximate="tanh") + F.silu(x) + F.mish(x)
        y = y + F.softplus(x) + F.hardswish(x) + F.hardsigmoid(x) + F.hardtanh(x) + F.relu6(x) + F.softsign(x) + F.logsigmoid(x)
        y = y + F.glu(lib.cat([x, x], 1)) + x.clamp(-1, 1) + F.threshold(x, 0.1, 0.0)
        (F.log_softmax(y, 1) + F.softmax(y, 0)).prod(1).sum().backward()

    return step


@program
def pooling_and_norms(lib: Any) -> Step:
    nn = lib.nn
    net = nn.Sequential(
        nn.Conv2d(2, 4, 3, padding=1, groups=2),
        nn.GroupNorm(2, 4),
        nn.AvgPool2d(2),
        nn.InstanceNorm2d(4, affine=True),
        nn.Upsample(scale_factor=2),
        nn.MaxPool2d(3, stride=2, padding=1),
        nn.Dropout2d(0.2),
        nn.AdaptiveMaxPool2d(2),
        nn.Flatten(),
        nn.BatchNorm1d(16),
        nn.Linear(16, 2),
    )
    x = lib.randn(3, 2, 8, 8)
    return lambda: net(x).square().mean().backward()


@program
def recurrent_operators(lib: Any) -> Step:
    def weights(gates: int, inputs: int, hidden: int) -> list[Any]:
        shapes = ((gates * hidden, inputs), (gates * hidden, hidden), (gates * hidden,), (gates * hidden,))
        return [lib.randn(*shape, requires_grad=True) for shape in shapes]

    x, long, short, plain = lib.randn(5, 2, 3), weights(4, 3, 4), weights(3, 4, 3), weights(1, 3, 2)

    def step() -> None:
        y = lib.lstm(x, (lib.zeros(1, 2, 4), lib.zeros(1, 2, 4)), long, True, 1, 0.0, True, False, False)[0]
        z = lib.gru(y, lib.zeros(1, 2, 3), short, True, 1, 0.0, True, False, False)[0]
        lib.rnn_tanh(z, lib.zeros(1, 2, 2), plain, True, 1, 0.0, True, False, False)[0].sum().backward()

    return step


@program
def accumulated_gradients(lib: Any) -> Step:
    """Two batches to a step, a shared weight and a schedule of learning rates."""
    layer = lib.nn.Linear(4, 4)
    batches = lib.randn(2, 3, 4)
    optimizer = lib.optim.SGD(layer.parameters(), lr=0.1)
    scheduler = lib.optim.lr_scheduler.StepLR(optimizer, 10)

    def step() -> None:
        for batch in batches:
            (layer(layer(batch)).abs().mean() / 2).backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=False)
        scheduler.step()

    return step


@program
def linear_algebra(lib: Any) -> Step:
    a, b = lib.randn(4, 4, requires_grad=True), lib.randn(4, 2, requires_grad=True)

    def step() -> None:
        spd = a @ a.T + 4 * lib.eye(4)
        solved = lib.linalg.solve(spd, b)
        total = lib.linalg.cholesky(spd).sum() + lib.linalg.inv(spd).trace() + lib.linalg.norm(solved)
        total = total + lib.einsum("ij,kj->ik", a, a).mean() + lib.bmm(a[None], b[None]).sum() + lib.outer(a[0], b[:, 0]).sum()
        total.backward()

    return step


@program
def mixed_dtypes(lib: Any) -> Step:
    x = lib.randn(4, 4, requires_grad=True)

    def step() -> None:
        y = x.to(lib.float64) @ lib.ones(4, 2, dtype=lib.float64)
        z = (y.float() + x[:, :2].bfloat16().float()) * lib.arange(2)
        (z / 3 + 2 - lib.full((4, 2), 0.5) ** 2).std().backward()
        float(z.detach().max())

    return step
