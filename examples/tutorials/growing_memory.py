"""A regression that takes more memory with every step: it keeps its predictions, and these keep all that backward would need.

mindtorch profile --profile-memory --with-stack --record-shapes examples/tutorials/growing_memory.py
"""

import argparse

import torch
from torch import nn


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=30)
    steps = parser.parse_args().steps

    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 256), nn.Tanh(), nn.Linear(256, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    predictions = []  # on data that it is not trained on, for a curve to be drawn at the end
    unseen = torch.randn(128, 64)
    for _ in range(steps):
        inputs = torch.randn(128, 64)
        loss = (model(inputs).squeeze(1) - inputs.sum(dim=1)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        predictions.append(model(unseen))
    print(f"loss {loss.item():.4f}, {len(predictions)} predictions")


if __name__ == "__main__":
    main()
