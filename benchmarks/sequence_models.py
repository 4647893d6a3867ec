"""Models of text, tables and graphs from their papers, small, with their real layers; the same code runs with either library.

Each takes the library and a factor for its width.
"""

from __future__ import annotations

from typing import Any

__all__ = ["LETTERS", "PLACES", "TABLES", "WORDS", "bert", "dlrm", "gcn", "gpt", "recurrent"]

LETTERS, WORDS, PLACES = 512, 2000, 64
TABLES = (10_000, 5_000, 1_000, 1_000, 200, 50)  # rows of each of DLRM's embeddings


def gpt(lib: Any, width: float) -> Any:
    """GPT-2's blocks: norms first, one product for queries, keys and values, causal attention, gelu; six heads of 32, four layers."""
    nn, functional = lib.nn, lib.nn.functional
    heads = max(1, int(6 * width))
    channels = 32 * heads

    class Block(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.before, self.between = nn.LayerNorm(channels), nn.LayerNorm(channels)
            self.qkv, self.out = nn.Linear(channels, 3 * channels), nn.Linear(channels, channels)
            self.inner, self.outer = nn.Linear(channels, 4 * channels), nn.Linear(4 * channels, channels)

        def forward(self, x: Any) -> Any:
            batch, length, _ = x.shape
            q, k, v = (t.view(batch, length, heads, 32).transpose(1, 2) for t in self.qkv(self.before(x)).split(channels, dim=2))
            mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, channels))
            return x + self.outer(functional.gelu(self.inner(self.between(x)), approximate="tanh"))

    class GPT(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.letters, self.places = nn.Embedding(LETTERS, channels), nn.Embedding(PLACES, channels)
            self.blocks, self.last = nn.Sequential(*(Block() for _ in range(4))), nn.LayerNorm(channels)
            self.logits = nn.Linear(channels, LETTERS, bias=False)

        def forward(self, letters: Any) -> Any:
            x = self.letters(letters) + self.places(lib.arange(letters.shape[1]))
            return self.logits(self.last(self.blocks(x)))

    return GPT()


def bert(lib: Any, width: float) -> Any:
    """BERT's encoder: four layers of 256 with four heads, norms last, gelu, dropout."""
    nn, channels = lib.nn, max(1, int(4 * width)) * 64

    class Bert(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.words, self.places = nn.Embedding(WORDS, channels), nn.Embedding(PLACES, channels)
            self.norm = nn.LayerNorm(channels)
            layer = nn.TransformerEncoderLayer(channels, channels // 64, 4 * channels, activation="gelu", batch_first=True)
            self.layers = nn.TransformerEncoder(layer, 4, enable_nested_tensor=False)
            self.logits = nn.Linear(channels, WORDS)

        def forward(self, words: Any) -> Any:
            x = self.norm(self.words(words) + self.places(lib.arange(words.shape[1])))
            return self.logits(self.layers(x))

    return Bert()


def recurrent(kind: str) -> Any:
    """A language model of two recurrent layers of this kind, 200 wide, as in Zaremba, Sutskever and Vinyals (2014)."""

    def make(lib: Any, width: float) -> Any:
        nn, channels = lib.nn, int(200 * width)

        class Recurrent(nn.Module):  # type: ignore[misc, name-defined]
            def __init__(self) -> None:
                super().__init__()
                self.words = nn.Embedding(WORDS, channels)
                self.layers = getattr(nn, kind)(channels, channels, 2, batch_first=True)
                self.logits = nn.Linear(channels, WORDS)

            def forward(self, words: Any) -> Any:
                return self.logits(self.layers(self.words(words))[0])

        return Recurrent()

    return make


def dlrm(lib: Any, width: float) -> Any:
    """DLRM: embedding bags and a network of the numbers, their products in pairs, and a network of those."""
    nn, channels = lib.nn, int(32 * width)

    class DLRM(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.tables = nn.ModuleList(nn.EmbeddingBag(rows, channels, mode="sum") for rows in TABLES)
            self.numbers = nn.Sequential(
                *(nn.Linear(13, 256), nn.ReLU(), nn.Linear(256, 64), nn.ReLU(), nn.Linear(64, channels), nn.ReLU())
            )
            count = len(TABLES) + 1
            self.pairs = lib.tril_indices(count, count, offset=-1)
            self.last = nn.Sequential(
                *(nn.Linear(channels + count * (count - 1) // 2, 256), nn.ReLU(), nn.Linear(256, 64), nn.ReLU(), nn.Linear(64, 1))
            )

        def forward(self, numbers: Any, kinds: Any) -> Any:
            dense = self.numbers(numbers)
            found = lib.stack([dense, *(table(kinds[:, i]) for i, table in enumerate(self.tables))], 1)
            products = lib.bmm(found, found.transpose(1, 2))[:, self.pairs[0], self.pairs[1]]
            return self.last(lib.cat([dense, products], 1)).squeeze(1)

    return DLRM()


def gcn(lib: Any, width: float) -> Any:
    """Kipf and Welling's two layers: 1,433 words of a paper, 16 inner values, seven kinds; the neighbours by a sparse product."""
    nn, inner = lib.nn, int(16 * width)

    class GCN(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = nn.Linear(1433, inner), nn.Linear(inner, 7)

        def forward(self, words: Any, neighbours: Any) -> Any:
            hidden = lib.sparse.mm(neighbours, self.first(words)).relu()
            return lib.sparse.mm(neighbours, self.second(nn.functional.dropout(hidden)))

    return GCN()
