"""A vision transformer cuts images into patches and finds the direction of the stripes in them."""

import argparse
import math

import mindtorch_v2 as torch
import mindtorch_v2.nn.functional as F
from mindtorch_v2 import nn

SIZE, PATCH, DIRECTIONS = 24, 6, 6


def stripes(count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Noisy colour images of stripes, and in which of six directions they run."""
    direction = torch.randint(0, DIRECTIONS, (count,))
    angle = (direction * (math.pi / DIRECTIONS)).view(-1, 1, 1)
    place = torch.arange(SIZE) - SIZE / 2
    along = place.view(1, SIZE, 1) * torch.cos(angle) + place.view(1, 1, SIZE) * torch.sin(angle)
    wave = torch.sin(along + 2 * math.pi * torch.rand(count, 1, 1))
    colour = torch.rand(count, 3, 1, 1) + 0.5
    return colour * wave.unsqueeze(1) + 0.5 * torch.randn(count, 3, SIZE, SIZE), direction


class VisionTransformer(nn.Module):
    def __init__(self, width: int = 48, depth: int = 2) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, width, kernel_size=PATCH, stride=PATCH)
        self.summary = nn.Parameter(torch.zeros(1, 1, width))
        self.places = nn.Parameter(0.02 * torch.randn(1, 1 + (SIZE // PATCH) ** 2, width))
        layer = nn.TransformerEncoderLayer(
            width, nhead=4, dim_feedforward=2 * width, dropout=0.1, activation="gelu", batch_first=True, norm_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, depth, norm=nn.LayerNorm(width), enable_nested_tensor=False)
        self.head = nn.Linear(width, DIRECTIONS)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        patches = self.patches(x).flatten(2).transpose(1, 2)
        tokens = torch.cat([self.summary.expand(len(x), -1, -1), patches], dim=1) + self.places
        return self.head(self.encoder(tokens)[:, 0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()

    torch.manual_seed(options.seed)
    model = VisionTransformer()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.05)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=options.steps)

    for step in range(options.steps):
        images, directions = stripes(32)
        optimizer.zero_grad()
        loss = F.cross_entropy(model(images), directions)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        if step % 4 == 0 or step == options.steps - 1:
            print(f"step {step:3d}  loss {loss.item():.6f}")

    model.eval()
    with torch.inference_mode():
        images, directions = stripes(256)
        accuracy = (model(images).argmax(dim=1) == directions).float().mean().item()
    print(f"accuracy {accuracy:.3f}")


if __name__ == "__main__":
    main()
