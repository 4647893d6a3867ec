"""An LSTM language model learns to count in words, one character at a time, and counts on by itself."""

import argparse

import mindtorch_v2 as torch
import mindtorch_v2.nn.functional as F
from mindtorch_v2 import nn

NUMBERS = "zero one two three four five six seven eight nine ten eleven twelve".split()
ALPHABET = sorted({*", ", *"".join(NUMBERS)})
BATCH, LENGTH = 16, 24


def counting(start: int, letters: int) -> torch.Tensor:
    """The beginning of "seven, eight, nine, …" as indices into the alphabet; zero comes after twelve."""
    text = ", ".join(NUMBERS[(start + i) % len(NUMBERS)] for i in range(letters))
    return torch.tensor([ALPHABET.index(letter) for letter in text[:letters]])


class LanguageModel(nn.Module):
    def __init__(self, width: int = 32, hidden: int = 64) -> None:
        super().__init__()
        self.letters = nn.Embedding(len(ALPHABET), width)
        self.lstm = nn.LSTM(width, hidden, num_layers=2, dropout=0.1, batch_first=True)
        self.head = nn.Linear(hidden, len(ALPHABET))

    def forward(self, x: torch.Tensor, state: tuple[torch.Tensor, torch.Tensor] | None = None):
        y, state = self.lstm(self.letters(x), state)
        return self.head(y), state

    @torch.no_grad()
    def continue_text(self, text: str, letters: int) -> str:
        """The likeliest next letters, each fed back as the next input."""
        logits, state = self(torch.tensor([[ALPHABET.index(letter) for letter in text]]))
        for _ in range(letters):
            likeliest = logits[:, -1].argmax(-1)
            text += ALPHABET[likeliest.item()]
            logits, state = self(likeliest.unsqueeze(1), state)
        return text


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()

    torch.manual_seed(options.seed)
    starts = torch.randint(0, len(NUMBERS), (BATCH,)).tolist()
    text = torch.stack([counting(start, options.steps * LENGTH + 1) for start in starts])
    model = LanguageModel()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)

    state = None
    for step in range(options.steps):
        here = slice(step * LENGTH, (step + 1) * LENGTH)
        inputs, targets = text[:, :-1][:, here], text[:, 1:][:, here]
        optimizer.zero_grad()
        logits, state = model(inputs, state)
        state = tuple(part.detach() for part in state)  # what was read before is remembered, and not differentiated
        loss = F.cross_entropy(logits.flatten(0, 1), targets.flatten())
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if step % 6 == 0 or step == options.steps - 1:
            print(f"step {step:3d}  loss {loss.item():.6f}")

    model.eval()
    print(model.continue_text("seven, eight, ", 50))


if __name__ == "__main__":
    main()
