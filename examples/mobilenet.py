"""A CNN of depthwise separable convolutions, as in MobileNet, tells textures apart with few weights."""

import argparse
import math

import mindtorch_v2 as torch
import mindtorch_v2.nn.functional as F
from mindtorch_v2 import nn

SIZE = 20
TEXTURES = ["stripes", "checks", "rings", "noise"]


def textures(count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Coloured images of stripes, checks, rings or noise, and which of these it is."""
    kinds = torch.randint(0, len(TEXTURES), (count,))
    place = torch.linspace(-math.pi, math.pi, SIZE)
    shift = 2 * torch.rand(count, 2, 1, 1)
    rows, columns = place.view(1, SIZE, 1) + shift[:, 0], place.view(1, 1, SIZE) + shift[:, 1]
    wave, other = torch.sin(3 * rows), torch.sin(3 * columns)
    drawn = torch.stack(
        [wave.expand_as(wave * other), wave * other, torch.sin(3 * torch.hypot(rows, columns)), torch.randn(count, SIZE, SIZE)]
    )
    colour = torch.rand(count, 3, 1, 1) + 0.5
    images = colour * drawn[kinds, torch.arange(count)].unsqueeze(1)
    return images + 0.1 * torch.randn(count, 3, SIZE, SIZE), kinds


class Separable(nn.Module):
    """A convolution in two: each channel by itself, then all channels at each place."""

    def __init__(self, inputs: int, outputs: int, stride: int = 1) -> None:
        super().__init__()
        self.depthwise = nn.Conv2d(inputs, inputs, 3, stride, padding=1, groups=inputs, bias=False)
        self.norm1 = nn.BatchNorm2d(inputs)
        self.pointwise = nn.Conv2d(inputs, outputs, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(outputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = F.hardswish(self.norm1(self.depthwise(x)))
        return F.hardswish(self.norm2(self.pointwise(x)))


def mobilenet() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1, bias=False),
        nn.BatchNorm2d(16),
        nn.Hardswish(),
        Separable(16, 32, stride=2),
        Separable(32, 32),
        Separable(32, 64, stride=2),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Dropout(0.1),
        nn.Linear(64, len(TEXTURES)),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()

    torch.manual_seed(options.seed)
    model = mobilenet()
    optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3, momentum=0.5)

    for step in range(options.steps):
        images, kinds = textures(32)
        optimizer.zero_grad()
        loss = F.cross_entropy(model(images), kinds, label_smoothing=0.1)
        loss.backward()
        optimizer.step()
        if step % 4 == 0 or step == options.steps - 1:
            print(f"step {step:3d}  loss {loss.item():.6f}")

    model.eval()
    with torch.no_grad():
        images, kinds = textures(256)
        right = model(images).argmax(dim=1) == kinds
    for kind, name in enumerate(TEXTURES):
        print(f"{name:8} {right[kinds == kind].float().mean().item():.2f} right")


if __name__ == "__main__":
    main()
