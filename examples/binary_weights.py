"""A network whose weights are +1 or -1: a function of its own rounds them, and lets gradients pass as if it had not."""

import argparse
from typing import Any

import mindtorch_v2 as torch
import mindtorch_v2.nn.functional as F
from mindtorch_v2 import nn


class Sign(torch.autograd.Function):
    """The sign, with the gradient of the identity between -1 and 1 ("straight through"); that of the sign is zero everywhere."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x)
        return torch.where(x >= 0, 1.0, -1.0)

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
        (x,) = ctx.saved_tensors
        return grad * (x.abs() <= 1)


class BinaryLinear(nn.Linear):
    """A linear layer that multiplies by the signs of its weights, and by one scale for each output."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        scale = self.weight.abs().mean(dim=1)
        return F.linear(x, Sign.apply(self.weight)) * scale + self.bias


def codes(count: int, bits: int = 16) -> tuple[torch.Tensor, torch.Tensor]:
    """Words of bits, each sent as -1 or 1 over a noisy line, and which of eight code words was meant."""
    generator = torch.Generator().manual_seed(1)
    book = torch.randint(0, 2, (8, bits), generator=generator) * 2.0 - 1.0
    words = torch.randint(0, 8, (count,))
    return book[words] + 0.8 * torch.randn(count, bits), words


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()

    torch.manual_seed(options.seed)
    model = nn.Sequential(BinaryLinear(16, 64), nn.BatchNorm1d(64), nn.Hardtanh(), BinaryLinear(64, 8))
    optimizer = torch.optim.NAdam(model.parameters(), lr=5e-3)

    for step in range(options.steps):
        received, words = codes(64)
        optimizer.zero_grad()
        loss = F.cross_entropy(model(received), words)
        loss.backward()
        optimizer.step()
        if step % 10 == 0 or step == options.steps - 1:
            print(f"step {step:3d}  loss {loss.item():.6f}")

    model.eval()
    with torch.no_grad():
        received, words = codes(1000)
        accuracy = (model(received).argmax(dim=1) == words).float().mean().item()
    print(f"accuracy {accuracy:.3f}")


if __name__ == "__main__":
    main()
