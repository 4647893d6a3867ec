"""A classifier whose steps are slow for a reason that no operator shows: its batches are made of lists of numbers.

mindtorch profile --with-stack examples/tutorials/slow_training.py
"""

import argparse

import torch
from torch import nn

WIDTH, CLASSES, BATCH = 512, 10, 64


class Samples:
    """Samples as a program gets them that parses text: a list of numbers each."""

    def __init__(self, count: int) -> None:
        generator = torch.Generator().manual_seed(1)
        self.inputs = torch.randn(count, WIDTH, generator=generator).tolist()
        self.labels = [int(abs(row[0]) * CLASSES) % CLASSES for row in self.inputs]

    def batch(self, step: int) -> tuple[torch.Tensor, torch.Tensor]:
        rows = [(step * BATCH + i) % len(self.inputs) for i in range(BATCH)]
        return torch.tensor([self.inputs[i] for i in rows]), torch.tensor([self.labels[i] for i in rows])


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=40)
    steps = parser.parse_args().steps

    torch.manual_seed(0)
    samples = Samples(256)
    model = nn.Sequential(nn.Linear(WIDTH, 64), nn.ReLU(), nn.Linear(64, CLASSES))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(steps):
        inputs, labels = samples.batch(step)
        loss = nn.functional.cross_entropy(model(inputs), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
