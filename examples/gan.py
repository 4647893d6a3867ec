"""A generator and a discriminator compete until the generator's points lie on a ring, as the real ones do."""

import argparse
import math

import mindtorch_v2 as torch
import mindtorch_v2.nn.functional as F
from mindtorch_v2 import nn

NOISE, BATCH = 4, 128


def ring(count: int) -> torch.Tensor:
    """Points near the circle of radius 1."""
    angle = 2 * math.pi * torch.rand(count)
    radius = 1 + 0.05 * torch.randn(count)
    return torch.stack([radius * torch.cos(angle), radius * torch.sin(angle)], dim=1)


def generator() -> nn.Module:
    return nn.Sequential(
        nn.Linear(NOISE, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 2)
    )


def discriminator() -> nn.Module:
    return nn.Sequential(nn.Linear(2, 64), nn.LeakyReLU(0.2), nn.Linear(64, 64), nn.LeakyReLU(0.2), nn.Linear(64, 1))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=70)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()

    torch.manual_seed(options.seed)
    artist, critic = generator(), discriminator()
    critic_optimizer = torch.optim.Adam(critic.parameters(), lr=2e-3, betas=(0.5, 0.999))
    artist_optimizer = torch.optim.Adam(artist.parameters(), lr=1e-3, betas=(0.5, 0.999))
    real, fake = torch.ones(BATCH, 1), torch.zeros(BATCH, 1)

    for step in range(options.steps):
        painted = artist(torch.randn(BATCH, NOISE))

        # the critic learns to tell real points from painted ones …
        critic_optimizer.zero_grad()
        critic_loss = F.binary_cross_entropy_with_logits(critic(ring(BATCH)), real)
        critic_loss = critic_loss + F.binary_cross_entropy_with_logits(critic(painted.detach()), fake)
        critic_loss.backward()
        critic_optimizer.step()

        # … and the artist to paint what the critic takes for real
        artist_optimizer.zero_grad()
        artist_loss = F.binary_cross_entropy_with_logits(critic(painted), real)
        artist_loss.backward()
        artist_optimizer.step()

        if step % 10 == 0 or step == options.steps - 1:
            from_ring = (painted.detach().norm(dim=1) - 1).abs().mean().item()
            losses = f"critic's loss {critic_loss.item():.6f}  artist's loss {artist_loss.item():.6f}"
            print(f"step {step:3d}  {losses}  distance from the ring {from_ring:.4f}")


if __name__ == "__main__":
    main()
