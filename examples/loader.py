"""Training from a DataLoader whose worker makes the next batches meanwhile; the profiler says how long training waits for them."""

import argparse

import mindtorch_v2 as torch
from mindtorch_v2 import nn
from mindtorch_v2.profiler import profile
from mindtorch_v2.utils.data import DataLoader, Dataset


class Waves(Dataset):
    """Noisy waves of four frequencies. Each sample has a seed, so that it does not matter which process makes it."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.time = torch.linspace(0, 6.2832, 64)

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        generator = torch.Generator().manual_seed(index)
        phase = 6.2832 * torch.rand(1, generator=generator)
        wave = torch.sin((index % 4 + 1) * self.time + phase)
        return (wave + 0.5 * torch.randn(64, generator=generator)).unsqueeze(0), index % 4


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--workers", type=int, default=1)
    options = parser.parse_args()

    torch.manual_seed(0)
    loader = DataLoader(Waves(64 * options.steps), batch_size=64, shuffle=True, num_workers=options.workers)
    model = nn.Sequential(
        nn.Conv1d(1, 16, 9, stride=2), nn.ReLU(), nn.Conv1d(16, 32, 9, stride=2), nn.ReLU(), nn.Flatten(), nn.Linear(320, 4)
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    criterion = nn.CrossEntropyLoss()

    with profile() as prof:
        for step, (waves, frequency) in enumerate(loader):
            optimizer.zero_grad()
            loss = criterion(model(waves), frequency)
            loss.backward()
            optimizer.step()
            if step % 5 == 0 or step == options.steps - 1:
                print(f"step {step:3d}  loss {loss.item():.6f}")
    for row in prof.key_averages():
        if row.key.startswith("enumerate(DataLoader)"):
            print(f"{row.key}: {row.cpu_time_total / options.steps / 1e3:.3f} ms per step")


if __name__ == "__main__":
    main()
