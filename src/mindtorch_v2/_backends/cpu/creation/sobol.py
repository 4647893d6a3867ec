"""Sobol' sequences by Gray code, with the direction numbers of Joe and Kuo, which SciPy carries."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from ...._scipy import folder

Array = np.ndarray[Any, Any]

BITS = 30


@functools.cache  # 6 MB are read and unpacked
def _direction_numbers() -> tuple[Array, Array]:
    """For each dimension a primitive polynomial, whose bits are its coefficients, and as many odd numbers as its degree says."""
    with np.load(folder() / "stats" / "_sobol_direction_numbers.npz") as tables:
        return tables["poly"], tables["vinit"]


def initial_state(dimension: int) -> Array:
    """The direction numbers of the first dimensions, one row each, as integers of 30 bits."""
    polynomials, first_numbers = (table[:dimension] for table in _direction_numbers())
    state = np.ones((dimension, BITS), np.int64)
    degrees = np.array([int(p).bit_length() - 1 for p in polynomials])
    degrees[0] = 0  # the first dimension is van der Corput's sequence
    for degree in np.unique(degrees[degrees > 0]).tolist():
        rows = np.flatnonzero(degrees == degree)
        state[rows] = _continued(first_numbers[rows, :degree], polynomials[rows], degree)
    return state << np.arange(BITS - 1, -1, -1)


def _continued(first: Array, polynomials: Array, degree: int) -> Array:
    """Rows that begin with these numbers, continued by the recurrence of the polynomials (Bratley and Fox 1988, section 2)."""
    rows = np.empty((len(first), BITS), np.int64)
    rows[:, :degree] = first
    present = [(polynomials >> (degree - back)) & 1 for back in range(degree + 1)]
    for j in range(degree, BITS):
        rows[:, j] = rows[:, j - degree]
        for back in range(1, degree + 1):
            rows[:, j] ^= present[back] * (rows[:, j - back] << back)
    return rows


def _steps(state: Array, n: int, generated: int) -> Array:
    """What the next n points differ from their predecessors by: the column of the lowest zero bit of their number."""
    numbers = np.arange(generated, generated + n)
    lowest_zero = np.bitwise_and(~numbers, numbers + 1)
    return np.asarray(state[:, np.log2(lowest_zero).astype(np.int64)])


def points(last: Array, n: int, state: Array, generated: int) -> tuple[Array, Array]:
    """The next n points as integers, one column each, and the last of them."""
    columns = np.concatenate((last.reshape(-1, 1), _steps(state, n, generated)), axis=1)
    drawn = np.bitwise_xor.accumulate(columns, axis=1)
    return drawn[:, 1:], drawn[:, -1].copy()


def advance(last: Array, n: int, state: Array, generated: int) -> None:
    """Skip n points, in place."""
    last ^= np.bitwise_xor.reduce(_steps(state, n, generated), axis=1)


def scramble(state: Array, matrices: Array) -> None:
    """Multiply the direction numbers, as vectors of bits, by lower triangular matrices of bits, one for each dimension, in place."""
    lower = matrices.copy()
    diagonal = np.arange(BITS)
    lower[:, diagonal, diagonal] = 1
    rows = (lower << np.arange(BITS - 1, -1, -1)).sum(-1)  # each row as one integer
    common = state[:, :, None] & rows[:, None, :]
    parity = np.bitwise_count(common.astype(np.uint64)).astype(np.int64) & 1
    state[...] = (parity << np.arange(BITS - 1, -1, -1)).sum(-1)
