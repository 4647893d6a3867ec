"""A training step of each example, under both libraries."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from .networks import NETWORKS
from .timing import Comparison, compare

__all__ = ["cnn", "gpt", "mlp", "steps"]

EXAMPLES = Path(__file__).parent.parent / "examples"


def load_example(name: str, lib: ModuleType) -> Any:
    """An example's module, with `mindtorch_v2` meaning this library while it is imported."""
    saved = {n: m for n, m in sys.modules.items() if n.partition(".")[0] == "mindtorch_v2"}
    for n, m in list(sys.modules.items()):
        if n == lib.__name__ or n.startswith(lib.__name__ + "."):
            sys.modules["mindtorch_v2" + n[len(lib.__name__) :]] = m
    try:
        spec = importlib.util.spec_from_file_location(f"{name}_on_{lib.__name__}", EXAMPLES / f"{name}.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module
    finally:
        for n in [n for n in sys.modules if n.partition(".")[0] == "mindtorch_v2"]:
            del sys.modules[n]
        sys.modules.update(saved)


def mlp(lib: Any) -> Callable[[], object]:
    example = load_example("mlp", lib)
    lib.manual_seed(0)
    points, arms = example.spirals(100)
    nn = lib.nn
    model = nn.Sequential(nn.Linear(2, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 3))
    optimizer = lib.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    criterion = nn.CrossEntropyLoss()

    def step() -> None:
        optimizer.zero_grad()
        criterion(model(points), arms).backward()
        optimizer.step()

    return step


def cnn(lib: Any) -> Callable[[], object]:
    example = load_example("cnn", lib)
    lib.manual_seed(0)
    images, kinds = example.drawings(64)
    model = example.Net()
    optimizer = lib.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-4)

    def step() -> None:
        optimizer.zero_grad()
        lib.nn.functional.cross_entropy(model(images), kinds).backward()
        optimizer.step()

    return step


def gpt(lib: Any, count: int = 64) -> Callable[[], object]:
    example = load_example("gpt", lib)
    lib.manual_seed(0)
    lines = example.sums(count)
    model = example.GPT()
    optimizer = lib.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.1)

    def step() -> None:
        logits = model(lines[:, :-1])
        optimizer.zero_grad(set_to_none=True)
        lib.nn.functional.cross_entropy(logits.reshape(-1, len(example.ALPHABET)), lines[:, 1:].reshape(-1)).backward()
        lib.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()

    return step


def steps(ours: Any, torch: Any) -> list[Comparison]:
    cases = [("MLP classifier", mlp), ("CNN with batch norm", cnn), ("small GPT", gpt), *NETWORKS.items()]
    return [compare(name, case(ours), case(torch), chunks=15, chunk_seconds=0.05) for name, case in cases]
