"""A variational autoencoder learns to draw rings, from two numbers each."""

import argparse

import mindtorch_v2 as torch
import mindtorch_v2.nn.functional as F
from mindtorch_v2 import nn

SIZE = 16


def rings(count: int) -> torch.Tensor:
    """Images of a soft ring, of some radius and somewhere near the middle."""
    axis = torch.linspace(-1, 1, SIZE)
    rows, columns = torch.meshgrid(axis, axis, indexing="ij")
    centre = 0.4 * torch.rand(count, 2, 1, 1) - 0.2
    radius = 0.3 + 0.4 * torch.rand(count, 1, 1)
    distance = torch.hypot(rows - centre[:, 0], columns - centre[:, 1])
    return torch.exp(-80 * (distance - radius) ** 2).unsqueeze(1)


class VAE(nn.Module):
    def __init__(self, hidden: int = 128, latent: int = 2) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Flatten(), nn.Linear(SIZE * SIZE, hidden), nn.SiLU())
        self.mean = nn.Linear(hidden, latent)
        self.log_variance = nn.Linear(hidden, latent)
        self.decoder = nn.Sequential(
            nn.Linear(latent, hidden), nn.SiLU(), nn.Linear(hidden, SIZE * SIZE), nn.Unflatten(1, (1, SIZE, SIZE))
        )

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        h = self.encoder(x)
        mean, log_variance = self.mean(h), self.log_variance(h)
        z = mean + torch.exp(0.5 * log_variance) * torch.randn_like(mean)
        return self.decoder(z), mean, log_variance


def negative_elbo(logits: torch.Tensor, images: torch.Tensor, mean: torch.Tensor, log_variance: torch.Tensor) -> torch.Tensor:
    """What the evidence lower bound is short of zero, per image: reconstruction and divergence from a normal distribution."""
    reconstruction = F.binary_cross_entropy_with_logits(logits, images, reduction="sum")
    divergence = -0.5 * torch.sum(1 + log_variance - mean.pow(2) - log_variance.exp())
    return (reconstruction + divergence) / len(images)


def as_text(image: torch.Tensor) -> str:
    shades = " .:*#"
    return "\n".join("".join(shades[int(4.99 * pixel)] * 2 for pixel in row) for row in image.tolist())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=150)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()

    torch.manual_seed(options.seed)
    model = VAE()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)

    for step in range(options.steps):
        images = rings(64)
        optimizer.zero_grad()
        logits, mean, log_variance = model(images)
        loss = negative_elbo(logits, images, mean, log_variance)
        loss.backward()
        optimizer.step()
        if step % 10 == 0 or step == options.steps - 1:
            print(f"step {step:3d}  loss {loss.item():.6f}")

    with torch.no_grad():
        drawn = model.decoder(torch.randn(1, 2)).sigmoid()
    print(as_text(drawn[0, 0]))


if __name__ == "__main__":
    main()
