"""The same training as it was yesterday, and as it is today: somebody made one layer twice as wide.

mindtorch profile -o yesterday examples/tutorials/yesterday_and_today.py --hidden 256
mindtorch profile -o today examples/tutorials/yesterday_and_today.py --hidden 512
mindtorch diff yesterday today
"""

import argparse

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.encoder = nn.Linear(128, 256)
        self.middle = nn.Sequential(nn.Linear(256, hidden), nn.ReLU(), nn.Linear(hidden, 256))
        self.head = nn.Linear(256, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.middle(torch.relu(self.encoder(x))))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--hidden", type=int, default=256)
    options = parser.parse_args()

    torch.manual_seed(0)
    model = Model(options.hidden)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(options.steps):
        inputs = torch.randn(128, 128)
        loss = (model(inputs).squeeze(1) - inputs.mean(dim=1)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
