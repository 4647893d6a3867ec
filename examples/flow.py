"""A normalising flow of affine couplings (RealNVP) learns the density of two moons, and draws from it."""

import argparse
import math

import mindtorch_v2 as torch
from mindtorch_v2 import nn


def moons(count: int) -> torch.Tensor:
    """Points on two interleaved half circles."""
    angle = math.pi * torch.rand(count)
    upper = torch.rand(count) < 0.5
    x = torch.where(upper, torch.cos(angle), 1 - torch.cos(angle))
    y = torch.where(upper, torch.sin(angle), 0.5 - torch.sin(angle))
    return torch.stack([x - 0.5, y - 0.25], dim=1) + 0.08 * torch.randn(count, 2)


class Coupling(nn.Module):
    """Shifts and scales the coordinates outside of the mask by what those inside say; so it can be undone."""

    def __init__(self, mask: list[float], hidden: int = 32) -> None:
        super().__init__()
        self.register_buffer("mask", torch.tensor(mask))
        self.net = nn.Sequential(nn.Linear(2, hidden), nn.Tanh(), nn.Linear(hidden, hidden), nn.Tanh(), nn.Linear(hidden, 4))

    def parts(self, kept: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        log_scale, shift = self.net(kept).chunk(2, dim=1)
        return torch.tanh(log_scale) * (1 - self.mask), shift * (1 - self.mask)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        log_scale, shift = self.parts(x * self.mask)
        return x * log_scale.exp() + shift, log_scale.sum(dim=1)

    def inverse(self, y: torch.Tensor) -> torch.Tensor:
        log_scale, shift = self.parts(y * self.mask)
        return (y - shift) * torch.exp(-log_scale)


class Flow(nn.Module):
    def __init__(self, depth: int = 6) -> None:
        super().__init__()
        self.couplings = nn.ModuleList(Coupling([1.0, 0.0] if i % 2 else [0.0, 1.0]) for i in range(depth))

    def log_prob(self, x: torch.Tensor) -> torch.Tensor:
        """The log density: that of a normal distribution where x is carried to, and how much space is stretched on the way."""
        log_determinant = torch.zeros(len(x))
        for coupling in self.couplings:
            x, stretched = coupling(x)
            log_determinant = log_determinant + stretched
        return log_determinant - 0.5 * (x**2).sum(dim=1) - math.log(2 * math.pi)

    @torch.no_grad()
    def sample(self, count: int) -> torch.Tensor:
        z = torch.randn(count, 2)
        for coupling in reversed(self.couplings):
            z = coupling.inverse(z)
        return z


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=80)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()

    torch.manual_seed(options.seed)
    model = Flow()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)

    for step in range(options.steps):
        points = moons(256)
        optimizer.zero_grad()
        loss = -model.log_prob(points).mean()
        loss.backward()
        optimizer.step()
        if step % 8 == 0 or step == options.steps - 1:
            print(f"step {step:3d}  loss {loss.item():.6f}")

    drawn = model.sample(1000)
    print(f"mean {drawn.mean().item():.2f} and deviation {drawn.std().item():.2f} of drawn points")
    print(f"mean {points.mean().item():.2f} and deviation {points.std().item():.2f} of the moons'")


if __name__ == "__main__":
    main()
