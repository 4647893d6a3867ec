"""Training that is interrupted and goes on from a checkpoint, as if nothing had happened; batches come from worker processes."""

import argparse
import tempfile
from pathlib import Path

import mindtorch_v2 as torch
import mindtorch_v2.nn.functional as F
from mindtorch_v2 import nn
from mindtorch_v2.utils.data import DataLoader, Dataset, random_split

BATCH, BATCHES = 32, 5  # an epoch is five batches


class Letters(Dataset):
    """Noisy drawings of four letters on 5×5 dots. Each has a seed, so that it does not matter which process draws it."""

    SHAPES = ("#...##...##...##...######", "#...#.#.#...#...#.#.#...#", "#####..#....#....#....#..", "#####....#...#...#...####")

    def __len__(self) -> int:
        return BATCH * BATCHES + 40

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        generator = torch.Generator().manual_seed(index)
        dots = torch.tensor([float(dot == "#") for dot in self.SHAPES[index % 4]])
        return dots + 0.5 * torch.randn(25, generator=generator), index % 4


class Training:
    """All that changes while training, so that it can be saved and restored."""

    def __init__(self, checkpoint: Path) -> None:
        self.checkpoint = checkpoint
        self.model = nn.Sequential(nn.Linear(25, 64), nn.ReLU(), nn.Dropout(0.2), nn.Linear(64, 4))
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=2e-3)
        self.schedule = torch.optim.lr_scheduler.ExponentialLR(self.optimizer, gamma=0.9)
        self.epoch = 0

    def save(self) -> None:
        state = {
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "schedule": self.schedule.state_dict(),
            "epoch": self.epoch,
            "random": torch.get_rng_state(),
        }
        torch.save(state, self.checkpoint)

    def restore(self) -> None:
        state = torch.load(self.checkpoint)
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.schedule.load_state_dict(state["schedule"])
        self.epoch = state["epoch"]
        torch.set_rng_state(state["random"])

    def run(self, loader: DataLoader, epochs: int) -> None:
        while self.epoch < epochs:
            for letters, names in loader:
                self.optimizer.zero_grad()
                loss = F.cross_entropy(self.model(letters), names)
                loss.backward()
                self.optimizer.step()
            self.schedule.step()
            self.epoch += 1
            print(f"epoch {self.epoch}  loss {loss.item():.6f}")
            self.save()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    epochs = max(2, options.steps // BATCHES)

    torch.manual_seed(0)
    letters, held_out = random_split(Letters(), [BATCH * BATCHES, 40])
    loader = DataLoader(letters, BATCH, shuffle=True, num_workers=options.workers, persistent_workers=options.workers > 0)

    with tempfile.TemporaryDirectory() as folder:
        checkpoint = Path(folder) / "training.pt"
        Training(checkpoint).run(loader, epochs // 2)
        print("interrupted; a new process would go on here")
        torch.manual_seed(1)  # whatever happened meanwhile
        training = Training(checkpoint)
        training.restore()
        training.run(loader, epochs)

    training.model.eval()
    with torch.no_grad():
        letters, names = next(iter(DataLoader(held_out, len(held_out))))
        accuracy = (training.model(letters).argmax(dim=1) == names).float().mean().item()
    print(f"accuracy {accuracy:.3f} on letters not seen before")


if __name__ == "__main__":
    main()
