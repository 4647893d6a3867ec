"""Training steps of well-known models against torch as it is installed, oneDNN included.

    python -m benchmarks.models [model …] [--batch N] [--growth | --two-threads]

One thread each, by time on the processor, steps of both in turn, the shortest of each; two threads by the clock, which needs an idle machine. Memory is what making the model and two steps take at
most, in a process for each library. Losses are those of the first ten steps, the largest relative difference. Where it is more than rounding,
that of torch from itself without oneDNN stands beside it, and ours where both compute in double precision: some networks amplify what rounding
does, batch norms over a few values for one.
"""

from __future__ import annotations

import argparse
import gc
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import log
from pathlib import Path
from typing import Any

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

import importlib
import time

from .image_models import (
    convnext,
    densenet,
    discriminator,
    efficientnet,
    generator,
    mobilenet,
    resnet,
    resnext,
    unet,
    vae,
    vgg,
    vit,
)
from .sequence_models import LETTERS, PLACES, TABLES, WORDS, bert, dlrm, gcn, gpt, recurrent
from .timing import Comparison, print_table

__all__ = ["MODELS", "growth", "on_two_threads", "steps"]

Step = Callable[[], Any]
Prepare = Callable[[Any, int, float], Step]  # library, batch, width: a step that gives its loss
BATCHES, WIDTHS = (4, 32), (0.5, 1.0, 2.0)
GROWING = ("ResNet-18", "MobileNetV2", "GPT", "LSTM")


def _trained(lib: Any, model: Any, loss: Callable[[], Any]) -> Step:
    optimizer = lib.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)

    def step() -> Any:
        optimizer.zero_grad()
        value = loss()
        value.backward()
        optimizer.step()
        return value

    return step


def _classifier(make: Callable[[Any, float], Any], size: int) -> Prepare:
    def prepare(lib: Any, batch: int, width: float) -> Step:
        lib.manual_seed(0)
        model = make(lib, width)
        images, kinds = lib.randn(batch, 3, size, size), lib.arange(batch) % 10
        return _trained(lib, model, lambda: lib.nn.functional.cross_entropy(model(images), kinds))

    return prepare


def _segmenter(lib: Any, batch: int, width: float) -> Step:
    lib.manual_seed(0)
    model = unet(lib, width)
    images, kinds = lib.randn(batch, 3, 64, 64), lib.randint(0, 2, (batch, 64, 64))
    return _trained(lib, model, lambda: lib.nn.functional.cross_entropy(model(images), kinds))


def _language_model(make: Callable[[Any, float], Any], words: int, length: int) -> Prepare:
    def prepare(lib: Any, batch: int, width: float) -> Step:
        lib.manual_seed(0)
        model = make(lib, width)
        text = lib.randint(0, words, (batch, length + 1))
        given, wanted = text[:, :-1].contiguous(), text[:, 1:].reshape(-1)
        optimizer = lib.optim.AdamW(model.parameters(), lr=1e-4)

        def step() -> Any:
            optimizer.zero_grad()
            loss = lib.nn.functional.cross_entropy(model(given).reshape(-1, words), wanted)
            loss.backward()
            optimizer.step()
            return loss

        return step

    return prepare


def _recommender(lib: Any, batch: int, width: float) -> Step:
    lib.manual_seed(0)
    model, batch = dlrm(lib, width), 16 * batch
    numbers, clicks = lib.randn(batch, 13), (lib.arange(batch) % 3 == 0).to(lib.get_default_dtype())
    kinds = lib.stack([lib.randint(0, rows, (batch, 4)) for rows in TABLES], 1)
    return _trained(lib, model, lambda: lib.nn.functional.binary_cross_entropy_with_logits(model(numbers, kinds), clicks))


def _autoencoder(lib: Any, batch: int, width: float) -> Step:
    lib.manual_seed(0)
    model, digits = vae(lib, width), lib.rand(4 * batch, 784)
    optimizer = lib.optim.Adam(model.parameters(), lr=1e-4)

    def step() -> Any:
        optimizer.zero_grad()
        loss = model(digits)
        loss.backward()
        optimizer.step()
        return loss

    return step


def _adversaries(lib: Any, batch: int, width: float) -> Step:
    lib.manual_seed(0)
    makes, judges, images = generator(lib, width), discriminator(lib, width), lib.randn(batch, 3, 32, 32)
    optimizers = [lib.optim.Adam(m.parameters(), lr=2e-5, betas=(0.5, 0.999)) for m in (makes, judges)]
    criterion, real, fake = lib.nn.functional.binary_cross_entropy_with_logits, lib.ones(batch), lib.zeros(batch)

    def step() -> Any:
        made = makes(lib.randn(batch, 100, 1, 1))
        optimizers[1].zero_grad()
        loss = criterion(judges(images), real) + criterion(judges(made.detach()), fake)
        loss.backward()
        optimizers[1].step()
        optimizers[0].zero_grad()
        criterion(judges(made), real).backward()
        optimizers[0].step()
        return loss

    return step


def _citations(lib: Any, batch: int, width: float) -> Step:
    """A graph of 80 papers times the batch, five neighbours each."""
    lib.manual_seed(0)
    model, papers = gcn(lib, width), 80 * batch
    words, kinds = (lib.rand(papers, 1433) < 0.01).to(lib.get_default_dtype()), lib.arange(papers) % 7
    places = lib.stack([lib.arange(papers).repeat(5), lib.randint(0, papers, (5 * papers,))])
    neighbours = lib.sparse_coo_tensor(places, lib.full((5 * papers,), 0.2), (papers, papers), check_invariants=False).coalesce()
    return _trained(lib, model, lambda: lib.nn.functional.cross_entropy(model(words, neighbours), kinds))


MODELS: dict[str, tuple[Prepare, float]] = {  # with the ratio to torch that is the aim
    "VGG-11": (_classifier(vgg, 32), 1.3),
    "ResNet-18": (_classifier(resnet, 64), 1.3),
    "ResNeXt": (_classifier(resnext, 64), 1.3),
    "DenseNet": (_classifier(densenet, 32), 1.3),
    "MobileNetV2": (_classifier(mobilenet, 64), 2.5),
    "EfficientNet": (_classifier(efficientnet, 64), 2.5),
    "ConvNeXt": (_classifier(convnext, 64), 2.5),
    "U-Net": (_segmenter, 1.3),
    "ViT": (_classifier(vit, 32), 1.3),
    "GPT": (_language_model(gpt, LETTERS, PLACES), 1.3),
    "BERT": (_language_model(bert, WORDS, PLACES), 1.3),
    "LSTM": (_language_model(recurrent("LSTM"), WORDS, 35), 1.3),
    "GRU": (_language_model(recurrent("GRU"), WORDS, 35), 1.3),
    "DLRM": (_recommender, 1.3),
    "VAE": (_autoencoder, 1.3),
    "DCGAN": (_adversaries, 1.3),
    "GCN": (_citations, 1.3),
}
MEMORY_AIM, LOSS_AIM = 1.5, 1e-5
LOSSES = 10  # steps that are compared


def _bold(text: str, missed: bool) -> str:
    return f"**{text}**" if missed else text


@dataclass(frozen=True)
class ModelRow:
    """A model with a batch: time, memory and losses of both."""

    step: Comparison
    batch: int
    memory: Comparison
    losses_differ: float
    theirs_differ: float | None  # torch's with oneDNN from those without; asked where ours differ by more than the aim
    doubles_differ: float | None  # ours from torch's in double precision, asked there as well

    def cells(self) -> dict[str, str]:
        memory = f"{self.memory.ours:.0f} / {self.memory.theirs:.0f}"
        ours, theirs = self.losses_differ, self.theirs_differ
        return {
            "": self.step.name,
            "batch": str(self.batch),
            "ours, ms": f"{self.step.ours / 1e3:.1f}",
            "torch, ms": f"{self.step.theirs / 1e3:.1f}",
            "ratio": _bold(f"{self.step.ratio:.2f}", self.step.ratio > (self.step.aim or 0)),
            "aim": str(self.step.aim),
            "memory, MB": memory,
            f"ratio (aim {MEMORY_AIM})": _bold(f"{self.memory.ratio:.2f}", self.memory.ratio > MEMORY_AIM),
            "losses differ by": _bold(f"{ours:.0e}", ours > max(LOSS_AIM, 3 * (theirs or 0))),
            "torch's own": "" if theirs is None else f"{theirs:.0e}",
            "in double": "" if self.doubles_differ is None else f"{self.doubles_differ:.0e}",
        }


def peak_memory(library: str, model: str, batch: int) -> float:
    """Megabytes of its own that a process takes at most while it makes a model and two steps, above what it took before."""
    command = [sys.executable, "-m", "benchmarks.models", model, "--run", library, str(batch)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdout.readline()  # the library is imported
        before = highest = _anonymous_megabytes(process.pid)
        process.stdin.write("go\n")
        process.stdin.flush()
        while process.poll() is None:
            highest = max(highest, _anonymous_megabytes(process.pid))
            time.sleep(0.001)
    return highest - before


def _anonymous_megabytes(pid: int) -> float:
    """Resident memory without that of files: the code of the libraries, which is loaded as it is needed, does not count."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("RssAnon")), 0.0)


def _run(library: str, model: str, batch: int) -> None:
    lib = importlib.import_module(library)
    lib.set_num_threads(1)
    layer = lib.nn.Linear(1, 1)
    _trained(lib, layer, lambda: layer(lib.ones(1, 1)).sum())()  # loads what the first step of any model does
    print("ready", flush=True)
    sys.stdin.readline()
    step = MODELS[model][0](lib, batch, 1.0)
    for _ in range(2):  # the second has the optimizer's state from its beginning
        step()


def _in_turn(
    name: str, steps: Sequence[Step], count: int, clock: Callable[[], float] = time.process_time
) -> tuple[Comparison, list[list[float]]]:
    """Steps of both in turn: the shortest of each by this clock, the first left out, and all losses."""
    best, losses = [float("inf")] * 2, [[0.0] * count, [0.0] * count]
    gc.collect()
    gc.disable()
    try:
        for i in range(count):
            for side, step in enumerate(steps):
                began = clock()
                loss = step()
                if i:
                    best[side] = min(best[side], clock() - began)
                losses[side][i] = loss.item()
    finally:
        gc.enable()
    return Comparison(name, best[0] * 1e6, best[1] * 1e6, MODELS[name][1]), losses


def _prepared(name: str, ours: Any, torch: Any, batch: int, width: float) -> list[Step]:
    return [MODELS[name][0](lib, batch, width) for lib in (ours, torch)]


def _difference(found: Sequence[float], expected: Sequence[float]) -> float:
    return max(abs(a - b) / abs(b) for a, b in zip(found, expected, strict=True))


def _without_onednn(name: str, torch: Any, batch: int) -> list[float]:
    torch.backends.mkldnn.enabled = False
    try:
        return _losses(name, torch, batch)
    finally:
        torch.backends.mkldnn.enabled = True


def _in_double(name: str, lib: Any, batch: int) -> list[float]:
    lib.set_default_dtype(lib.float64)
    try:
        return _losses(name, lib, batch)
    finally:
        lib.set_default_dtype(lib.float32)


def _losses(name: str, lib: Any, batch: int) -> list[float]:
    step = MODELS[name][0](lib, batch, 1.0)
    return [step().item() for _ in range(LOSSES)]


def steps(ours: Any, torch: Any, names: Sequence[str] = tuple(MODELS), batches: Sequence[int] = BATCHES) -> list[ModelRow]:
    rows = []
    for batch in batches:
        for name in names:
            step, losses = _in_turn(name, _prepared(name, ours, torch, batch, 1.0), LOSSES if batch > 8 else 2 * LOSSES)
            first = [side[:LOSSES] for side in losses]
            differ = _difference(*first)
            own = doubles = None
            if differ > LOSS_AIM:
                own = _difference(_without_onednn(name, torch, batch), first[1])
                doubles = _difference(_in_double(name, ours, batch), _in_double(name, torch, batch))
            peaks = [peak_memory(library, name, batch) for library in ("mindtorch_v2", "torch")]
            rows.append(ModelRow(step, batch, Comparison(name, *peaks, MEMORY_AIM, "MB"), differ, own, doubles))
            print(*rows[-1].cells().values(), flush=True)
    return rows


@dataclass(frozen=True)
class ThreadsRow:
    """A step on two threads, with the load of the machine before it."""

    step: Comparison
    batch: int
    load: float

    def cells(self) -> dict[str, str]:
        return {
            "": self.step.name,
            "batch": str(self.batch),
            "ours, ms": f"{self.step.ours / 1e3:.1f}",
            "torch, ms": f"{self.step.theirs / 1e3:.1f}",
            "ratio": _bold(f"{self.step.ratio:.2f}", self.step.ratio > (self.step.aim or 0)),
            "aim": str(self.step.aim),
            "load": f"{self.load:.1f}",
        }


def on_two_threads(
    ours: Any, torch: Any, names: Sequence[str] = tuple(MODELS), batches: Sequence[int] = BATCHES
) -> list[ThreadsRow]:
    """Steps of both with two threads, by the clock."""
    before, rows = [lib.get_num_threads() for lib in (ours, torch)], []
    for lib in (ours, torch):
        lib.set_num_threads(2)
    try:
        for batch in batches:
            for name in names:
                load = os.getloadavg()[0]
                prepared = _prepared(name, ours, torch, batch, 1.0)
                step, _ = _in_turn(name, prepared, LOSSES if batch > 8 else 2 * LOSSES, time.perf_counter)
                rows.append(ThreadsRow(step, batch, load))
                print(*rows[-1].cells().values(), flush=True)
    finally:
        for lib, threads in zip((ours, torch), before, strict=True):
            lib.set_num_threads(threads)
    return rows


@dataclass(frozen=True)
class GrowthRow:
    """Step times at three sizes, and the exponents that they grow with."""

    name: str
    sizes: tuple[float, ...]
    steps: tuple[Comparison, ...]

    def _exponent(self, side: str) -> float:
        first, last = getattr(self.steps[0], side), getattr(self.steps[-1], side)
        return log(last / first) / log(self.sizes[-1] / self.sizes[0])

    def cells(self) -> dict[str, str]:
        times = {
            f"{at}": " / ".join(f"{getattr(step, side) / 1e3:.1f}" for step in self.steps)
            for at, side in (("ours, ms", "ours"), ("torch, ms", "theirs"))
        }
        exponents = {"exponent": f"{self._exponent('ours'):.2f}", "torch's": f"{self._exponent('theirs'):.2f}"}
        ratios = " / ".join(f"{step.ratio:.2f}" for step in self.steps)
        return {"": self.name, "at": " / ".join(f"{size:g}" for size in self.sizes), **times, "ratios": ratios, **exponents}


def growth(ours: Any, torch: Any, names: Sequence[str] = GROWING) -> list[GrowthRow]:
    """Step time against the batch at full width, and against the width with a batch of 8."""
    rows = []
    for name in names:
        by_batch = tuple(_in_turn(name, _prepared(name, ours, torch, batch, 1.0), 5)[0] for batch in (4, 16, 64))
        by_width = tuple(_in_turn(name, _prepared(name, ours, torch, 8, width), 5)[0] for width in WIDTHS)
        rows += [GrowthRow(f"{name}, batch", (4, 16, 64), by_batch), GrowthRow(f"{name}, width", WIDTHS, by_width)]
    return rows


def main() -> None:
    parser = argparse.ArgumentParser("python -m benchmarks.models", description=__doc__)
    parser.add_argument("models", nargs="*", help=f"some of {', '.join(MODELS)}; all by default")
    parser.add_argument("--batch", type=int, action="append", help="a batch; 4 and 32 by default")
    parser.add_argument("--growth", action="store_true", help="step time against batch and width instead")
    parser.add_argument("--two-threads", action="store_true", help="steps on two threads instead, by the clock")
    parser.add_argument("--run", nargs=2, metavar=("LIBRARY", "BATCH"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    unknown = [model for model in options.models if model not in MODELS]
    if unknown:
        parser.error(f"unknown: {', '.join(unknown)}; choose from {', '.join(MODELS)}")
    if options.run:
        _run(options.run[0], options.models[0], int(options.run[1]))
        return
    ours, torch = (importlib.import_module(library) for library in ("mindtorch_v2", "torch"))
    for lib in (ours, torch):
        lib.set_num_threads(1)
    if options.growth:
        print_table("Growth of a step", growth(ours, torch, options.models or GROWING))
        return
    title, measure = ("on two threads", on_two_threads) if options.two_threads else ("of well-known models", steps)
    print_table(f"A step {title}", measure(ours, torch, options.models or tuple(MODELS), options.batch or BATCHES))


if __name__ == "__main__":
    main()
