"""Small operators, where dispatch is the cost, and large ones, where the kernel is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .timing import Comparison, compare

__all__ = ["large", "small"]

Case = Callable[[Any], Callable[[], object]]  # library → statement


def _pair(lib: Any, *shape: int, grad: bool = False) -> tuple[Any, Any]:
    lib.manual_seed(0)
    x, y = lib.randn(*shape), lib.randn(*shape)
    x.requires_grad_(grad)
    return x, y


def _add(lib: Any) -> Callable[[], object]:
    x, y = _pair(lib, 8, 8)
    return lambda: x + y


def _add_grad(lib: Any) -> Callable[[], object]:
    x, y = _pair(lib, 8, 8, grad=True)
    return lambda: x + y


def _mul_number(lib: Any) -> Callable[[], object]:
    x, _ = _pair(lib, 8, 8)
    return lambda: x * 2.0


def _sum(lib: Any) -> Callable[[], object]:
    x, _ = _pair(lib, 8, 8)
    return lambda: x.sum()


def _sum_dim(lib: Any) -> Callable[[], object]:
    x, _ = _pair(lib, 8, 8)
    return lambda: x.sum(dim=1)


def _matmul(lib: Any) -> Callable[[], object]:
    x, y = _pair(lib, 64, 64)
    return lambda: x @ y


def _views(lib: Any) -> Callable[[], object]:
    x, _ = _pair(lib, 8, 8)
    return lambda: x.view(4, 16).transpose(0, 1).unsqueeze(0)


def _linear(lib: Any) -> Callable[[], object]:
    lib.manual_seed(0)
    layer, x = lib.nn.Linear(64, 64), lib.randn(64, 64)

    def forward() -> object:
        with lib.no_grad():
            return layer(x)

    return forward


def _linear_backward(lib: Any) -> Callable[[], object]:
    lib.manual_seed(0)
    layer, x = lib.nn.Linear(64, 64), lib.randn(64, 64)
    ones = lib.ones(64, 64)

    def both() -> None:
        layer(x).backward(ones)
        layer.weight.grad = layer.bias.grad = None

    return both


def _add_inplace(lib: Any) -> Callable[[], object]:
    x, y = _pair(lib, 8, 8)
    return lambda: x.add_(y)


def _zeros(lib: Any) -> Callable[[], object]:
    return lambda: lib.zeros(8, 8)


def _index_int(lib: Any) -> Callable[[], object]:
    x, _ = _pair(lib, 8, 8)
    return lambda: x[0]


def _index_mix(lib: Any) -> Callable[[], object]:
    x, _ = _pair(lib, 8, 8)
    return lambda: x[1:5, 0]


def _index_tensor(lib: Any) -> Callable[[], object]:
    x, _ = _pair(lib, 8, 8)
    index = lib.tensor([0, 3, 5])
    return lambda: x[index]


def _relu(lib: Any) -> Callable[[], object]:
    x, _ = _pair(lib, 8, 8)
    return lambda: lib.nn.functional.relu(x)


def _softmax(lib: Any) -> Callable[[], object]:
    x, _ = _pair(lib, 8, 8)
    return lambda: x.softmax(-1)


def _item(lib: Any) -> Callable[[], object]:
    x = lib.tensor(1.5)
    return lambda: x.item()


SMALL: list[tuple[str, Case, float]] = [
    ("x + y, 8×8", _add, 0.8),
    ("x + y, 8×8, with grad", _add_grad, 1.0),
    ("x * 2.0, 8×8", _mul_number, 0.8),
    ("x.sum(), 8×8", _sum, 0.8),
    ("x.sum(dim=1), 8×8", _sum_dim, 0.8),
    ("x @ y, 64×64", _matmul, 0.8),
    ("view, transpose, unsqueeze, 8×8", _views, 0.8),
    ("Linear(64, 64) forward, batch 64", _linear, 1.0),
    ("Linear(64, 64) forward + backward", _linear_backward, 1.3),
    ("x.add_(y), 8×8", _add_inplace, 0.8),
    ("zeros(8, 8)", _zeros, 0.8),
    ("x[0], 8×8", _index_int, 0.8),
    ("x[1:5, 0], 8×8", _index_mix, 0.8),
    ("x[index tensor], 8×8", _index_tensor, 0.8),
    ("relu, 8×8", _relu, 0.8),
    ("softmax, 8×8", _softmax, 0.8),
    ("item()", _item, 0.8),
]


def _big_matmul(lib: Any) -> Callable[[], object]:
    x, y = _pair(lib, 1024, 1024)
    return lambda: x @ y


def _chain(lib: Any) -> Callable[[], object]:
    x, y = _pair(lib, 1_000_000)
    return lambda: ((x * y + 0.5) / 2.0 - y).tanh()


def _big_exp(lib: Any) -> Callable[[], object]:
    x, _ = _pair(lib, 1_000_000)
    return lambda: x.exp()


def _big_gelu(lib: Any) -> Callable[[], object]:
    x, _ = _pair(lib, 1_000_000)
    return lambda: lib.nn.functional.gelu(x)


def _big_sum(lib: Any) -> Callable[[], object]:
    x, _ = _pair(lib, 1_000_000)
    return lambda: x.sum()


def _conv2d(lib: Any) -> Callable[[], object]:
    lib.manual_seed(0)
    x, weight = lib.randn(32, 64, 56, 56), lib.randn(64, 64, 3, 3)
    return lambda: lib.nn.functional.conv2d(x, weight, padding=1)


def _conv2d_backward(lib: Any) -> Callable[[], object]:
    lib.manual_seed(0)
    x, weight = lib.randn(8, 64, 56, 56, requires_grad=True), lib.randn(64, 64, 3, 3, requires_grad=True)

    def both() -> None:
        y = lib.nn.functional.conv2d(x, weight, padding=1)
        y.backward(y.detach())
        x.grad = weight.grad = None

    return both


def _max_pool(lib: Any) -> Callable[[], object]:
    x = lib.randn(32, 64, 56, 56)
    return lambda: lib.nn.functional.max_pool2d(x, 2)


def _big_softmax(lib: Any) -> Callable[[], object]:
    x, _ = _pair(lib, 256, 32_000)
    return lambda: x.softmax(-1)


def _layer_norm(lib: Any) -> Callable[[], object]:
    x, _ = _pair(lib, 4096, 1024)
    weight, bias = lib.ones(1024), lib.zeros(1024)
    return lambda: lib.nn.functional.layer_norm(x, (1024,), weight, bias)


def _batch_norm(lib: Any) -> Callable[[], object]:
    x = lib.randn(32, 64, 56, 56)
    layer = lib.nn.BatchNorm2d(64)
    return lambda: layer(x)


def _cross_entropy(lib: Any) -> Callable[[], object]:
    lib.manual_seed(0)
    x, target = lib.randn(1024, 4096), lib.randint(0, 4096, (1024,))
    return lambda: lib.nn.functional.cross_entropy(x, target)


def _embedding(lib: Any) -> Callable[[], object]:
    lib.manual_seed(0)
    table, index = lib.randn(10_000, 256, requires_grad=True), lib.randint(0, 10_000, (64, 128))

    def both() -> None:
        y = lib.nn.functional.embedding(index, table)
        y.backward(y.detach())
        table.grad = None

    return both


def _big_silu(lib: Any) -> Callable[[], object]:
    x, _ = _pair(lib, 1_000_000)
    return lambda: lib.nn.functional.silu(x)


def _big_dropout(lib: Any) -> Callable[[], object]:
    x, _ = _pair(lib, 1_000_000)
    return lambda: lib.nn.functional.dropout(x, 0.1)


def _gelu_backward(lib: Any) -> Callable[[], object]:
    lib.manual_seed(0)
    x = lib.randn(1_000_000, requires_grad=True)

    def both() -> None:
        y = lib.nn.functional.gelu(x)
        y.backward(y.detach())
        x.grad = None

    return both


def _layer_norm_backward(lib: Any) -> Callable[[], object]:
    lib.manual_seed(0)
    x, weight, bias = lib.randn(4096, 1024), lib.ones(1024), lib.zeros(1024)
    leaves = [t.requires_grad_() for t in (x, weight, bias)]

    def both() -> None:
        y = lib.nn.functional.layer_norm(x, (1024,), weight, bias)
        y.backward(y.detach())
        for leaf in leaves:
            leaf.grad = None

    return both


def _cross_entropy_backward(lib: Any) -> Callable[[], object]:
    lib.manual_seed(0)
    x, target = lib.randn(1024, 4096, requires_grad=True), lib.randint(0, 4096, (1024,))

    def both() -> None:
        lib.nn.functional.cross_entropy(x, target).backward()
        x.grad = None

    return both


LARGE: list[tuple[str, Case, float]] = [
    ("matmul 1024²", _big_matmul, 1.3),
    ("pointwise chain of 5, 1M", _chain, 1.3),
    ("exp, 1M", _big_exp, 1.3),
    ("gelu, 1M", _big_gelu, 1.3),
    ("gelu forward + backward, 1M", _gelu_backward, 1.3),
    ("silu, 1M", _big_silu, 1.3),
    ("dropout, 1M", _big_dropout, 1.3),
    ("sum, 1M", _big_sum, 1.3),
    ("conv2d 32×64×56×56, 3×3", _conv2d, 1.3),
    ("conv2d 8×64×56×56 forward + backward", _conv2d_backward, 1.3),
    ("max_pool2d 32×64×56×56", _max_pool, 1.3),
    ("softmax 256×32k", _big_softmax, 1.3),
    ("layer norm 4096×1024", _layer_norm, 1.3),
    ("layer norm forward + backward", _layer_norm_backward, 1.3),
    ("batch norm 32×64×56×56", _batch_norm, 1.3),
    ("cross entropy 1024×4096", _cross_entropy, 1.3),
    ("cross entropy forward + backward", _cross_entropy_backward, 1.3),
    ("embedding forward + backward", _embedding, 1.3),
]


def small(ours: Any, torch: Any) -> list[Comparison]:
    return [compare(name, case(ours), case(torch), aim=aim) for name, case, aim in SMALL]


def large(ours: Any, torch: Any) -> list[Comparison]:
    return [compare(name, case(ours), case(torch), aim=aim, chunks=5, chunk_seconds=0.05) for name, case, aim in LARGE]
