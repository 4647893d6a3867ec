"""An MLP learns to tell three spiral arms apart."""

import argparse
import math
import time

import mindtorch_v2 as torch
from mindtorch_v2 import nn


def spirals(per_arm: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Points on three noisy spiral arms, and the arm each lies on."""
    radius = torch.linspace(0.05, 1.0, per_arm)
    points, arms = [], []
    for arm in range(3):
        angle = 4.0 * radius + arm * (2 * math.pi / 3) + 0.15 * torch.randn(per_arm)
        points.append(torch.stack([radius * torch.sin(angle), radius * torch.cos(angle)], dim=1))
        arms.append(torch.full((per_arm,), arm, dtype=torch.int64))
    return torch.cat(points), torch.cat(arms)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()

    torch.manual_seed(options.seed)
    points, arms = spirals(per_arm=100)
    model = nn.Sequential(nn.Linear(2, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    criterion = nn.CrossEntropyLoss()

    began = time.perf_counter()
    for step in range(options.steps):
        optimizer.zero_grad()
        loss = criterion(model(points), arms)
        loss.backward()
        optimizer.step()
        if step % 20 == 0 or step == options.steps - 1:
            print(f"step {step:3d}  loss {loss.item():.6f}")
    took = time.perf_counter() - began

    with torch.no_grad():
        accuracy = (model(points).argmax(dim=1) == arms).float().mean().item()
    print(f"accuracy {accuracy:.3f}")
    print(f"{took / options.steps * 1e3:.3f} ms per step")


if __name__ == "__main__":
    main()
