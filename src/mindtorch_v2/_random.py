"""Random numbers: MT19937 as torch's CPU generator draws from it.

The same seed gives torch's numbers. A generator's state has torch's own layout, so that one can continue the other.
"""

from __future__ import annotations

import math
import secrets
import struct
from collections.abc import Callable
from typing import Any

import numpy as np

from . import _device
from ._backends.backend import unavailable
from ._forking import new_lock, renew_in_child
from ._tensor import Tensor, wrap
from ._types import OptionalDevice

__all__ = ["Generator", "default_generator", "get_rng_state", "initial_seed", "manual_seed", "seed", "set_rng_state"]

DEFAULT_SEED = 67280421310721
_STATE = struct.Struct("<QiiQ624Q")  # seed, left, seeded, next, the twister's words
_TAIL = struct.Struct("<dddi4xf?3x")  # normal x, y, rho, whether y waits; the same for float samples
STATE_BYTES = _STATE.size + _TAIL.size
_FULL = 1 << 32
_FULL_64 = (1 << 64) - 1
_BLOCK = 624
_CHUNK = 24 * _BLOCK
# as arrays, with which small operations take two thirds of the time that they take with scalars
_MASK_24, _SCALE_24 = np.array((1 << 24) - 1, np.uint32), np.array(2.0**-24, np.float32)
_MASK_53, _SCALE_53 = np.array((1 << 53) - 1, np.uint64), np.array(2.0**-53)
_NOTHING_LEFT = np.zeros(_BLOCK, np.uint32)


class Generator:
    """A stream of pseudorandom numbers."""

    # The twister is always asked for whole blocks of its 624 outputs: `_block` is the current one, `_at` the next to give out.
    __slots__ = ("__weakref__", "_ahead", "_at", "_bits", "_block", "_fresh", "_lock", "_numbers", "_seed", "next_normal")

    def __init__(self, device: OptionalDevice = "cpu") -> None:
        where = _device.device(device)
        if where.type not in ("cpu", "meta"):
            raise unavailable(where)
        self._lock = new_lock()
        self._ahead: tuple[Any, int, Any] = (None, 0, None)  # a block, where in it these begin, and numbers made of its outputs
        self._bits = np.random.MT19937()
        renew_in_child(self._bits.lock)  # which is held while NumPy draws, and other threads may run
        self._numbers = np.random.Generator(self._bits)
        self.manual_seed(DEFAULT_SEED)

    @property
    def device(self) -> _device.device:
        """The device that it draws on: the CPU."""
        return _device.cpu

    def manual_seed(self, seed: int) -> Generator:
        """Start the stream that belongs to this seed."""
        seed = _checked_seed(seed)
        self._seed = seed
        self._bits._legacy_seeding(seed & (_FULL - 1))
        self._block, self._at, self._fresh = _NOTHING_LEFT, _BLOCK, True
        self.next_normal: float | None = None
        return self

    def seed(self) -> int:
        """Start a stream that nobody can predict; returns its seed."""
        chosen = secrets.randbits(53)
        self.manual_seed(chosen)
        return chosen

    def initial_seed(self) -> int:
        """The seed that the stream began with."""
        return self._seed

    # --- drawing ----------------------------------------------------------------------------------------------------

    def words(self, n: int) -> np.ndarray[Any, Any]:
        """The next n outputs of 32 bits. Threads may draw from one generator at the same time."""
        with self._lock:
            return self._next_words(n)

    def _next_words(self, n: int) -> np.ndarray[Any, Any]:
        at, block = self._at, self._block
        end = at + n
        if end <= _BLOCK:
            self._at = end
            return block[at:end].copy()
        missing = end - _BLOCK
        blocks = -(-missing // _BLOCK)
        fresh = self._whole_blocks(blocks)
        out = np.empty(n, np.uint32)
        out[: n - missing] = block[at:]
        out[n - missing :] = fresh[:missing]
        # at last, and without a call in between: whatever cuts this short, an interrupt or a fork, leaves a block and a place in it
        self._block, self._at, self._fresh = fresh[-_BLOCK:].copy(), missing - (blocks - 1) * _BLOCK, False
        return out

    def normals(self, n: int, make: Callable[[Any], Any]) -> np.ndarray[Any, Any]:
        """The next n numbers that `make` gives of uniforms in groups of 16, for small multiples of 16.

        They are made for a whole block at once and kept: `make` takes 100 µs for 16 numbers, and 150 for 624.
        """
        with self._lock:
            at, block = self._at, self._block
            end = at + n
            if end > _BLOCK:
                words = np.concatenate((block[at:], self._whole_blocks(1)))
                self._block, self._at, self._fresh = words[_BLOCK - at :], end - _BLOCK, False
                self._ahead = (self._block, at - _BLOCK, make(_singles(words[: len(words) // 16 * 16].copy())))
                return self._ahead[2][:n].copy()
            made_of, start, values = self._ahead
            if made_of is not block or (at - start) % 16:
                start, values = at, make(_singles(block[at : at + (_BLOCK - at) // 16 * 16].copy()))
                self._ahead = (block, start, values)
            self._at = end
            return values[at - start : end - start].copy()

    def _whole_blocks(self, n: int) -> np.ndarray[Any, Any]:
        if n <= 4:  # a third of the time of `integers`, which is the faster one for many
            return self._bits.random_raw(n * _BLOCK).astype(np.uint32)
        return self._numbers.integers(0, _FULL, n * _BLOCK, np.uint32)

    def long_words(self, n: int) -> np.ndarray[Any, Any]:
        """The next n numbers of 64 bits, each of two outputs, the high word first."""
        with self._lock:
            if 2 * n > 8 * _BLOCK and self._at % 2 == 0:
                return self._many_long_words(n)
            pairs = self._next_words(2 * n)
        return _pairs_swapped(pairs).view(np.uint64)

    def _many_long_words(self, n: int) -> np.ndarray[Any, Any]:
        """The same drawn as such: half of the time of drawing words and joining them."""
        left = (_BLOCK - self._at) // 2
        blocks = -(-2 * (n - left) // _BLOCK)
        fresh = self._numbers.integers(0, _FULL_64, blocks * (_BLOCK // 2), np.uint64, endpoint=True)
        out = np.empty(n, np.uint64)
        out[:left] = _pairs_swapped(self._block[self._at :]).view(np.uint64)
        out[left:] = fresh[: n - left]
        self._block = _pairs_swapped(fresh[-(_BLOCK // 2) :].view(np.uint32))
        self._at = 2 * (n - left) - (blocks - 1) * _BLOCK
        self._fresh = False
        return out

    def uniform32(self, n: int, out: np.ndarray[Any, Any] | None = None) -> np.ndarray[Any, Any]:
        """n float32 numbers of [0, 1) with 24 bits each, in a new array or in `out`."""
        if n > _CHUNK:
            return self._in_chunks(self.uniform32, np.empty(n, np.float32) if out is None else out)
        return _singles(self.words(n), out)

    def _in_chunks(self, draw: Callable[..., Any], out: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Many numbers in pieces whose temporaries stay in the cache: half of the time."""
        for start in range(0, len(out), _CHUNK):
            piece = out[start : start + _CHUNK]
            draw(len(piece), piece)
        return out

    def bernoulli(self, n: int, p: float) -> np.ndarray[Any, Any]:
        """Whether each of the n float64 numbers that `uniform64` would give is below p."""
        words = self.long_words(n)
        np.bitwise_and(words, _MASK_53, out=words)
        return np.less(words, np.uint64(math.ceil(math.ldexp(p, 53))))

    def uniform64(self, n: int, out: np.ndarray[Any, Any] | None = None) -> np.ndarray[Any, Any]:
        """n float64 numbers of [0, 1) with 53 bits each, in a new array or in `out`."""
        if n > _CHUNK:
            return self._in_chunks(self.uniform64, np.empty(n) if out is None else out)
        words = self.long_words(n)
        np.bitwise_and(words, _MASK_53, out=words)
        values = words.view(np.int64).astype(np.float64)
        return np.multiply(values, _SCALE_53, out=values if out is None else out)

    # --- state ------------------------------------------------------------------------------------------------------

    def get_state(self) -> Tensor:
        """The state as a tensor of bytes, laid out as torch lays it out."""
        inner = self._bits.state["state"]
        position = self._at
        left, following = (1, 0) if self._fresh else (625 - position, position)
        head = _STATE.pack(self._seed, left, 1, following, *inner["key"].tolist())
        waiting = self.next_normal is not None
        tail = _TAIL.pack(0.0, self.next_normal or 0.0, 0.0, waiting, 0.0, False)
        return wrap(np.frombuffer(bytearray(head + tail), np.uint8))

    def set_state(self, new_state: Tensor) -> Generator:
        """Continue from a state of this or of torch's generator."""
        if not isinstance(new_state, Tensor):
            raise TypeError(f"set_state(): argument 'new_state' must be Tensor, not {type(new_state).__name__}")
        if new_state.dtype.name != "uint8" or new_state.device.type != "cpu":
            raise TypeError("RNG state must be a torch.ByteTensor")
        raw = new_state._array.tobytes()
        if len(raw) != STATE_BYTES:
            raise RuntimeError(
                f"Expected a CPUGeneratorImplState of size {STATE_BYTES} but found the input RNG state size to be {len(raw)}"
            )
        seed, left, _, following, *words = _STATE.unpack(raw[: _STATE.size])
        _, y, _, waiting, _, _ = _TAIL.unpack(raw[_STATE.size :])
        key = np.array(words, np.uint64).astype(np.uint32)
        self._seed, self._fresh = seed, left == 1 and following == 0
        at_end = left == 1
        self._bits.state = {"bit_generator": "MT19937", "state": {"key": key, "pos": _BLOCK if at_end else 0}}
        self._block = _NOTHING_LEFT if at_end else self._numbers.integers(0, _FULL, _BLOCK, np.uint32)
        self._at = _BLOCK if at_end else following
        self.next_normal = y if waiting else None
        return self

    def clone_state(self) -> Generator:
        """A generator of its own that continues from here."""
        return Generator().set_state(self.get_state())

    def graphsafe_get_state(self) -> Generator:
        return self

    def graphsafe_set_state(self, state: Generator) -> Generator:
        return self.set_state(state.get_state())

    def __reduce__(self) -> tuple[Any, ...]:
        return (_restored, (self.get_state()._array.tobytes(),))

    def __repr__(self) -> str:
        return f"<torch.Generator of seed {self._seed} on {self.device}>"


def _pairs_swapped(words: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Words in the order in which long words hold them in memory, low before high; or back."""
    return words.reshape(-1, 2)[:, ::-1].copy().reshape(-1)


def _singles(words: np.ndarray[Any, Any], out: np.ndarray[Any, Any] | None = None) -> np.ndarray[Any, Any]:
    """Outputs as float32 numbers of [0, 1); overwrites the outputs."""
    np.bitwise_and(words, _MASK_24, words)
    values = words.view(np.int32).astype(np.float32)  # signed integers convert three times as fast
    return np.multiply(values, _SCALE_24, values if out is None else out)


def _restored(raw: bytes) -> Generator:
    return Generator().set_state(wrap(np.frombuffer(bytearray(raw), np.uint8)))


def _checked_seed(seed: Any) -> int:
    if isinstance(seed, Tensor | np.generic):
        seed = seed.item()
    seed = int(seed)
    if not -(1 << 63) <= seed < 1 << 64:
        raise ValueError(f"Overflow when unpacking long long: seeds have 64 bits, not {seed}")
    return seed & ((1 << 64) - 1)


default_generator = Generator()


def manual_seed(seed: int) -> Generator:
    """Seed the default generator and return it."""
    return default_generator.manual_seed(seed)


def seed() -> int:
    """Seed the default generator unpredictably; returns the seed."""
    return default_generator.seed()


def initial_seed() -> int:
    """The seed of the default generator."""
    return default_generator.initial_seed()


def get_rng_state() -> Tensor:
    """The state of the default generator."""
    return default_generator.get_state()


def set_rng_state(new_state: Tensor) -> None:
    """Set the state of the default generator."""
    default_generator.set_state(new_state)
