"""A line search for the strong Wolfe conditions: far enough down, and flat enough there."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from .._tensor import Tensor

__all__ = ["strong_wolfe"]

DECREASE, CURVATURE = 1e-4, 0.9  # what torch's search asks for
CHANGE = 1e-9


class Point(NamedTuple):
    """A place along the direction: how far out, the loss and the gradient there, and the slope along the direction."""

    at: Any
    loss: float
    grad: Any
    slope: Any


def strong_wolfe(
    evaluate: Callable[[Any], tuple[float, Any]],
    at: float | Tensor,
    size: Tensor,
    start: tuple[float, Any, Any],
    direction: Tensor,
    *,
    max_ls: int,
) -> tuple[float, Any, Any, int]:
    """Loss, gradient, length of the move that was found, and how often `evaluate(length)` was called.

    `start` has loss, gradient and slope at length zero; `size` is the direction's largest element.
    """
    origin = Point(0, *start)

    def point(length: float | Tensor) -> Point:
        loss, grad = evaluate(length)
        return Point(length, loss, grad, grad.dot(direction))

    bracket, tries = _bracket(point, origin, point(at), max_ls)
    best = bracket[0] if bracket[0].loss <= bracket[-1].loss else bracket[-1]
    if len(bracket) == 2 and tries < max_ls:
        best, more = _zoom(point, origin, bracket, size, max_ls - tries)
        tries += more
    return best.loss, best.grad, best.at, 1 + tries


def _high(new: Point, origin: Point) -> bool:
    """Whether the loss fell less than the slope promised."""
    return bool(new.loss > (origin.loss + DECREASE * new.at * origin.slope))


def _flat(new: Point, origin: Point) -> bool:
    return bool(abs(new.slope) <= -CURVATURE * origin.slope)


def _bracket(point: Callable[[Any], Point], origin: Point, new: Point, max_ls: int) -> tuple[list[Point], int]:
    """Two points with a good one between them, or one point that is good; and the number of points tried."""
    previous = origin
    for tries in range(max_ls):
        if _high(new, origin) or (tries > 1 and new.loss >= previous.loss):
            return [previous, new], tries
        if _flat(new, origin):
            return [new], tries
        if new.slope >= 0:
            return [previous, new], tries
        bounds = (new.at + 0.01 * (new.at - previous.at), new.at * 10)
        previous, new = new, point(_cubic_minimum(previous, new, bounds))
    return [origin, new], max_ls


def _zoom(point: Callable[[Any], Point], origin: Point, bracket: list[Point], size: Tensor, max_ls: int) -> tuple[Point, int]:
    """Narrow a bracket, in place, until one of its ends is good; the better end, and the number of points tried."""
    stuck = False
    low, high = (0, 1) if bracket[0].loss <= bracket[1].loss else (1, 0)
    tries = 0
    while tries < max_ls and not abs(bracket[1].at - bracket[0].at) * size < CHANGE:
        ends = [p.at for p in bracket]
        at, stuck = _away_from_ends(_cubic_minimum(bracket[0], bracket[1]), min(ends), max(ends), stuck)
        new = point(at)
        tries += 1
        if _high(new, origin) or new.loss >= bracket[low].loss:
            bracket[high] = new
            low, high = (0, 1) if bracket[0].loss <= bracket[1].loss else (1, 0)
            continue
        done = _flat(new, origin)
        if not done and new.slope * (bracket[high].at - bracket[low].at) >= 0:
            bracket[high] = bracket[low]
        bracket[low] = new
        if done:
            break
    return bracket[low], tries


def _away_from_ends(at: Any, least: Any, most: Any, stuck: bool) -> tuple[Any, bool]:
    """Keep the second of two points that are near an end a tenth of the bracket away from it."""
    margin = 0.1 * (most - least)
    if not min(most - at, at - least) < margin:
        return at, False
    if stuck or at >= most or at <= least:
        return (most - margin if abs(at - most) < abs(at - least) else least + margin), False
    return at, True


def _cubic_minimum(a: Point, b: Point, bounds: tuple[Any, Any] | None = None) -> float | Tensor:
    """Where the cubic through two points with their slopes is lowest, within the bounds."""
    least, most = bounds or ((a.at, b.at) if a.at <= b.at else (b.at, a.at))
    mean = a.slope + b.slope - 3 * (a.loss - b.loss) / (a.at - b.at)
    square = mean**2 - a.slope * b.slope
    if not square >= 0:
        return (least + most) / 2.0
    root = square.sqrt()
    if a.at <= b.at:
        at = b.at - (b.at - a.at) * ((b.slope + root - mean) / (b.slope - a.slope + 2 * root))
    else:
        at = a.at - (a.at - b.at) * ((a.slope + root - mean) / (a.slope - b.slope + 2 * root))
    return min(max(at, least), most)
