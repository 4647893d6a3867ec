"""An encoder-decoder transformer translates Roman numerals: XLVIII becomes 48."""

import argparse

import mindtorch_v2 as torch
import mindtorch_v2.nn.functional as F
from mindtorch_v2 import nn

PAD, START, END = "_", "<", ">"
LETTERS = PAD + "IVXLC"
DIGITS = PAD + START + END + "0123456789"
VALUES = [(90, "XC"), (50, "L"), (40, "XL"), (10, "X"), (9, "IX"), (5, "V"), (4, "IV"), (1, "I")]


def roman(number: int) -> str:
    text = ""
    for value, letters in VALUES:
        text += number // value * letters
        number %= value
    return text


def padded(texts: list[str], alphabet: str) -> torch.Tensor:
    """The texts as indices into the alphabet, filled up to the longest."""
    longest = max(map(len, texts))
    return torch.tensor([[alphabet.index(letter) for letter in text.ljust(longest, PAD)] for text in texts])


def sentences(count: int) -> tuple[torch.Tensor, torch.Tensor]:
    numbers = torch.randint(1, 100, (count,)).tolist()
    return padded([roman(n) for n in numbers], LETTERS), padded([f"{START}{n}{END}" for n in numbers], DIGITS)


class Translator(nn.Module):
    def __init__(self, width: int = 48, longest: int = 10) -> None:
        super().__init__()
        self.letters = nn.Embedding(len(LETTERS), width)
        self.digits = nn.Embedding(len(DIGITS), width)
        self.places = nn.Parameter(0.1 * torch.randn(longest, width))
        self.transformer = nn.Transformer(
            width, nhead=4, num_encoder_layers=2, num_decoder_layers=2, dim_feedforward=96, dropout=0.0, batch_first=True
        )
        self.head = nn.Linear(width, len(DIGITS))

    def forward(self, letters: torch.Tensor, digits: torch.Tensor) -> torch.Tensor:
        padding = letters == LETTERS.index(PAD)
        unused = padding if padding.any() else None
        y = self.transformer(
            self.letters(letters) + self.places[: letters.shape[1]],
            self.digits(digits) + self.places[: digits.shape[1]],
            tgt_mask=nn.Transformer.generate_square_subsequent_mask(digits.shape[1]),
            src_key_padding_mask=unused,
            memory_key_padding_mask=unused,
            tgt_is_causal=True,
        )
        return self.head(y)

    @torch.no_grad()
    def translate(self, text: str) -> str:
        """Digit by digit the likeliest, up to the end mark."""
        letters, written = padded([text], LETTERS), START
        while written[-1] != END and len(written) < 8:
            logits = self(letters, padded([written], DIGITS))
            written += DIGITS[logits[0, -1].argmax().item()]
        return written.strip(START + END)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()

    torch.manual_seed(options.seed)
    model = Translator()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3, betas=(0.9, 0.98))
    warm_up = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / 10))

    for step in range(options.steps):
        letters, digits = sentences(32)
        optimizer.zero_grad()
        logits = model(letters, digits[:, :-1])
        loss = F.cross_entropy(logits.transpose(1, 2), digits[:, 1:], ignore_index=DIGITS.index(PAD), label_smoothing=0.05)
        loss.backward()
        optimizer.step()
        warm_up.step()
        if step % 10 == 0 or step == options.steps - 1:
            print(f"step {step:3d}  loss {loss.item():.6f}")

    model.eval()
    for number in (12, 48, 77):
        print(f"{roman(number)} is {number}, translated as {model.translate(roman(number))}")


if __name__ == "__main__":
    main()
