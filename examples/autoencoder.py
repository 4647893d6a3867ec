"""A convolutional autoencoder takes the noise out of images: it packs them with strides and unpacks them with transposed convolutions."""

import argparse

import mindtorch_v2 as torch
import mindtorch_v2.nn.functional as F
from mindtorch_v2 import nn

SIZE = 24


def rectangles(count: int) -> torch.Tensor:
    """Images of two overlapping rectangles, one grey and one white."""
    place = torch.arange(SIZE)
    images = torch.zeros(count, SIZE, SIZE)
    for shade in (0.5, 1.0):
        low = torch.randint(0, SIZE - 8, (count, 2, 1))
        high = low + torch.randint(4, 12, (count, 2, 1))
        inside = (low <= place) & (place < high)
        images[inside[:, 0].unsqueeze(2) & inside[:, 1].unsqueeze(1)] = shade
    return images.unsqueeze(1)


class Autoencoder(nn.Module):
    def __init__(self, width: int = 12) -> None:
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv2d(1, width, 3, stride=2, padding=1),
            nn.GELU(),
            nn.Conv2d(width, 2 * width, 3, stride=2, padding=1),
            nn.GELU(),
            nn.Conv2d(2 * width, 4 * width, 3, stride=2, padding=1),
        )
        self.decoder = nn.Sequential(
            nn.ConvTranspose2d(4 * width, 2 * width, 3, stride=2, padding=1, output_padding=1),
            nn.GELU(),
            nn.ConvTranspose2d(2 * width, width, 3, stride=2, padding=1, output_padding=1),
            nn.GELU(),
            nn.ConvTranspose2d(width, 1, 3, stride=2, padding=1, output_padding=1),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.decoder(self.encoder(x))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()

    torch.manual_seed(options.seed)
    model = Autoencoder()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=1e-2, total_steps=options.steps)

    for step in range(options.steps):
        clean = rectangles(32)
        noisy = clean + 0.3 * torch.randn_like(clean)
        optimizer.zero_grad()
        loss = F.mse_loss(model(noisy), clean)
        loss.backward()
        optimizer.step()
        schedule.step()
        if step % 5 == 0 or step == options.steps - 1:
            print(f"step {step:3d}  loss {loss.item():.6f}")

    with torch.no_grad():
        clean = rectangles(64)
        noisy = clean + 0.3 * torch.randn_like(clean)
        print(f"error {F.l1_loss(noisy, clean):.3f} before, {F.l1_loss(model(noisy), clean):.3f} after")


if __name__ == "__main__":
    main()
