"""A small convolutional network with batch norm tells drawn squares, crosses and discs apart."""

import argparse
import time

import mindtorch_v2 as torch
import mindtorch_v2.nn.functional as F
from mindtorch_v2 import nn

SIZE = 16


def drawings(count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Noisy images of a shape somewhere on a 16×16 canvas, and which shape it is."""
    kinds = torch.randint(0, 3, (count,))
    centres = torch.randint(5, SIZE - 5, (count, 2))
    rows = torch.arange(SIZE).view(1, SIZE, 1) - centres[:, 0].view(-1, 1, 1)
    columns = torch.arange(SIZE).view(1, 1, SIZE) - centres[:, 1].view(-1, 1, 1)
    square = (rows.abs() <= 3) & (columns.abs() <= 3)
    cross = ((rows.abs() <= 1) | (columns.abs() <= 1)) & (rows.abs() <= 4) & (columns.abs() <= 4)
    disc = rows**2 + columns**2 <= 12
    shapes = torch.stack([square, cross, disc], dim=1).float()
    images = shapes[torch.arange(count), kinds].unsqueeze(1)
    return images + 0.3 * torch.randn(count, 1, SIZE, SIZE), kinds


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, kernel_size=3, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(16)
        self.conv2 = nn.Conv2d(16, 32, kernel_size=3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(32)
        self.pool = nn.MaxPool2d(2)
        self.dropout = nn.Dropout(0.1)
        self.head = nn.Linear(32 * 4 * 4, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.pool(F.relu(self.norm1(self.conv1(x))))
        x = self.pool(F.relu(self.norm2(self.conv2(x))))
        return self.head(self.dropout(torch.flatten(x, 1)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()

    torch.manual_seed(options.seed)
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-4)

    began = time.perf_counter()
    for step in range(options.steps):
        images, kinds = drawings(64)
        optimizer.zero_grad()
        loss = F.cross_entropy(model(images), kinds)
        loss.backward()
        optimizer.step()
        if step % 5 == 0 or step == options.steps - 1:
            print(f"step {step:3d}  loss {loss.item():.6f}")
    took = time.perf_counter() - began

    model.eval()
    with torch.no_grad():
        images, kinds = drawings(512)
        accuracy = (model(images).argmax(dim=1) == kinds).float().mean().item()
    print(f"accuracy {accuracy:.3f}")
    print(f"{took / options.steps * 1e3:.3f} ms per step")


if __name__ == "__main__":
    main()
