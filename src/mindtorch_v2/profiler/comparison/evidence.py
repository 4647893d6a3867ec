"""Whether a difference of times is more than noise.

Times of one place in a program are compared step by step: many values of one run against many of the other. Noise only adds to a time, so the quiet
steps tell most: of each place, the third of the steps in which it took least. These are compared by the test of Mann and Whitney, which assumes no
distribution; the probabilities are corrected for the number of places that are compared (Holm). The smallest times of both runs must differ, too.

A machine is rarely as fast in one run as in another. The factor between two runs is taken from the ratios of all places, weighted by their times: of
the middle half of them, the one nearest to 1. A change of the program leaves at least a quarter of it as it was, one of the machine does not. What is
slower by that factor alone is no change of the place.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.stats import mannwhitneyu

__all__ = ["corrected", "p_value", "quiet", "speed_factor"]

Column = np.ndarray[Any, np.dtype[Any]]

FEWEST = 8  # quiet steps, if there are as many: with fewer, a correction for many places leaves nothing


def quiet(values: Column) -> Column:
    """The values of the quiet steps, rising; the last axis is that of steps."""
    steps = values.shape[-1]
    return np.sort(values, axis=-1)[..., : min(steps, max(FEWEST, steps // 3))]


def p_value(first: Column, second: Column) -> float:
    """How probable such a difference is if there is none."""
    if len(first) < 2 or len(second) < 2:
        return 1.0
    return float(mannwhitneyu(first, second, alternative="two-sided").pvalue)


def corrected(p_values: Column) -> Column:
    """The probabilities by Holm: each is valid for all of the comparisons together."""
    order = np.argsort(p_values)
    scaled = p_values[order] * np.arange(len(p_values), 0, -1)
    found = np.empty(len(p_values))
    found[order] = np.minimum(np.maximum.accumulate(scaled), 1.0) if len(scaled) else scaled
    return found


def speed_factor(first: Column, second: Column) -> float:
    """How much slower the second run is at all places that both have; 1 if it is not so at all of them."""
    both = (first > 0) & (second > 0)
    if not both.any():
        return 1.0
    ratio = second[both] / first[both]
    weight = np.minimum(first[both], second[both])  # a place that grew a lot does not pull
    order = np.argsort(ratio)
    lower, upper = ratio[order][np.searchsorted(np.cumsum(weight[order]), weight.sum() * np.array([0.25, 0.75]))]
    return float(min(max(1.0, lower), upper))
