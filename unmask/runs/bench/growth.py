"""Figures of repeated measurements: medians with spread, ratios by turns, powers fitted to sweeps."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import Any


def spread(values: Sequence[float]) -> dict[str, Any]:
    """The median, the lowest and the highest of all of them."""
    return {"median": statistics.median(values), "low": min(values), "high": max(values), "n": len(values)}


def ratio(above: Sequence[float], below: Sequence[float]) -> dict[str, Any]:
    """By turns: what ran in one round is divided, so that a drifting clock is shared."""
    if len(above) == len(below):
        return spread([one / other for one, other in zip(above, below, strict=True)])
    value = statistics.median(above) / statistics.median(below)
    return {
        "median": value,
        "low": min(above) / max(below),
        "high": max(above) / min(below),
        "n": min(len(above), len(below)),
    }


def power(points: Sequence[tuple[int | float, float]]) -> dict[str, Any] | None:
    """The exponent b of y = a·x^b by least squares on logarithms, with its standard error; None for under two x."""
    xs, ys = ([math.log(value) for value in column] for column in zip(*points, strict=True)) if points else ([], [])
    if len(set(xs)) < 2:
        return None
    fit = statistics.linear_regression(xs, ys)
    free = len(xs) - 2
    error = None
    if free > 0:
        left = sum((y - fit.slope * x - fit.intercept) ** 2 for x, y in zip(xs, ys, strict=True))
        middle = statistics.fmean(xs)
        error = math.sqrt(left / free / sum((x - middle) ** 2 for x in xs))
    return {"exponent": fit.slope, "error": error, "n": len(xs)}
