"""Estimates and paired tests. Every error is over problems, since draws of one problem are not independent.

Written by hand: Holm's correction and the exact sign-flip test of many problems, which scipy does not have, and the
bootstrap, whose draws all comparisons of the same number of problems share.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

RESAMPLES = 2000
FEWEST = 30  # problems for which a normal distribution is close enough
LEVEL = 0.95  # confidence level of the bootstrap interval
GRAIN = 100_000  # largest denominator of a share of draws
WORK = 20_000_000  # most additions for an exact test


@dataclass(frozen=True)
class Estimate:
    """A mean over problems."""

    value: float | None  # None if there is nothing to average
    error: float | None  # the standard error over problems; None for fewer than two
    n: int  # problems


@dataclass(frozen=True)
class Comparison:
    """A decoder compared with a baseline on the problems that both answered."""

    n: int  # problems in common
    before: float  # mean of the baseline
    after: float  # mean of the decoder
    difference: float
    error: float | None  # standard error of the difference, paired by problem
    low: float  # lower end of the bootstrap interval
    high: float  # upper end
    better: int  # problems on which the decoder is right more often than the baseline
    worse: int  # problems on which it is right less often
    p: float  # two-sided, by the exact McNemar test or its sign-flip form


def estimate(values: Mapping[str, float] | Sequence[float]) -> Estimate:
    """Return the mean and its standard error; each value is that of one problem, averaged over seeds and samples."""
    numbers = list(values.values()) if isinstance(values, Mapping) else list(values)
    n = len(numbers)
    if n < 2:
        return Estimate(numbers[0] if numbers else None, None, n)
    mean = math.fsum(numbers) / n
    variance = math.fsum((value - mean) ** 2 for value in numbers) / (n - 1)
    return Estimate(mean, math.sqrt(variance / n), n)


def wilson(share: float, n: int, z: float = 1.959964) -> tuple[float, float]:
    """Return the 95 % interval of a share of n problems (Wilson, 1927), which has a width even if all of them agree."""
    if n == 0:
        return 0.0, 1.0
    centre, spread = share + z * z / (2 * n), z * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    low, high = ((centre + sign * spread) / (1 + z * z / n) for sign in (-1, 1))
    return max(0.0, min(low, share)), min(1.0, max(high, share))


def across(parts: Sequence[Mapping[str, float]]) -> Estimate:
    """Return the mean of several means over the same problems, such as one per length; a problem is one cluster.

    Parts have equal weight even if they cover different problems.
    """
    if not parts or not all(parts):
        return Estimate(None, None, 0)
    means = [math.fsum(part.values()) / len(part) for part in parts]
    mean = math.fsum(means) / len(parts)
    pull: dict[str, list[float]] = {}  # by problem, its contributions to the deviation of the mean
    for part, center in zip(parts, means, strict=True):
        for problem, value in part.items():
            pull.setdefault(problem, []).append((value - center) / (len(part) * len(parts)))
    n = len(pull)
    if n == 1:
        return Estimate(mean, None, 1)
    spread = math.fsum(math.fsum(pulls) ** 2 for pulls in pull.values())
    return Estimate(mean, math.sqrt(spread * n / (n - 1)), n)


def together(parts: Sequence[Estimate]) -> Estimate:
    """Return the plain mean of independent estimates, such as one per task."""
    values = [part.value for part in parts if part.value is not None]
    if not parts or len(values) < len(parts):
        return Estimate(None, None, 0)
    return Estimate(math.fsum(values) / len(values), _joint_error(parts), sum(part.n for part in parts))


def _joint_error(parts: Sequence[Estimate] | Sequence[Comparison]) -> float | None:
    """Return the standard error of the mean of independent parts; None if a part has none."""
    errors = [part.error for part in parts if part.error is not None]
    return math.sqrt(math.fsum(error * error for error in errors)) / len(parts) if len(errors) == len(parts) else None


def pass_at_k(n: int, right: int, k: int) -> float:
    """Return 1 − C(n−c, k) / C(n, k), the probability that k of n draws include one of c right ones (arXiv 2107.03374).

    It is a ratio of whole numbers, so that nothing overflows and small values keep their digits.
    """
    if not 0 <= right <= n or not 1 <= k <= n:
        raise ValueError(f"pass@k of n={n}, c={right}, k={k} is not defined")
    subsets = math.comb(n, k)
    return (subsets - math.comb(n - right, k)) / subsets


def mcnemar(better: int, worse: int) -> float:
    """Return the exact two-sided p of the discordant pairs under a fair coin."""
    from scipy.stats import binomtest  # its import is slow

    return float(binomtest(better, better + worse).pvalue) if better + worse else 1.0


def normal_tail(deviations: float) -> float:
    """Return the probability that a standard normal variable is above this many standard deviations."""
    return 0.5 * math.erfc(deviations / math.sqrt(2))


def holm(chances: Sequence[float]) -> list[float]:
    """Return each p corrected for the number of comparisons (Holm, 1979)."""
    corrected, least = [0.0] * len(chances), 0.0
    for rank, place in enumerate(sorted(range(len(chances)), key=chances.__getitem__)):
        least = max(least, min(1.0, chances[place] * (len(chances) - rank)))
        corrected[place] = least
    return corrected


def sign_flip(differences: Sequence[float]) -> float:
    """Return the two-sided p of the mean if each problem's difference were equally likely to have the other sign.

    With one draw per problem this is McNemar's test. With several, the differences are whole multiples of a common
    fraction, and the distribution of their sum is computed problem by problem. Where that is slow, the normal
    distribution is used.
    """
    shares = [Fraction(difference).limit_denominator(GRAIN) for difference in differences if difference]
    unit = math.lcm(*(share.denominator for share in shares))
    steps = [abs(int(share * unit)) for share in shares]
    observed, total = abs(sum(shares)), sum(steps)
    if total * len(steps) > WORK:
        return 2 * normal_tail(float(observed) / math.hypot(*shares))
    chance = np.ones(1)  # probability of each sum of the positive steps
    for step in steps:
        chance = (np.pad(chance, (0, step)) + np.pad(chance, (step, 0))) / 2
    sums = 2 * np.arange(total + 1) - total
    return float(min(1.0, chance[abs(sums) >= int(observed * unit)].sum()))


def bootstrap(differences: Sequence[float], resamples: int = RESAMPLES, seed: int = 0) -> tuple[float, float]:
    """Return the percentile interval of the mean over resampled problems, which depends only on its arguments."""
    if not differences:
        raise ValueError("a bootstrap needs at least 1 value, got nothing")
    values = np.asarray(differences, dtype=np.float64)
    means = _draws(len(values), resamples, seed) @ values / len(values)
    low, high = np.quantile(means, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(low), float(high)


@lru_cache(maxsize=4)
def _draws(n: int, resamples: int, seed: int) -> NDArray[np.uint16]:
    """Return how often each of n problems is drawn (resample, problem).

    The stream of numpy's RandomState is the same in every version, which no other generator promises.
    """
    return np.random.RandomState(seed).multinomial(n, np.full(n, 1 / n), resamples).astype(np.uint16)


def compare(baseline: Mapping[str, float], other: Mapping[str, float]) -> Comparison | None:
    """Compare two decoders by problem; the result is None if no problem is in both."""
    common = sorted(baseline.keys() & other.keys())
    if not common:
        return None
    change = [other[problem] - baseline[problem] for problem in common]
    better, worse = sum(each > 1e-12 for each in change), sum(each < -1e-12 for each in change)
    difference = estimate(change)
    low, high = bootstrap(change)
    return Comparison(
        n=len(common),
        before=math.fsum(baseline[problem] for problem in common) / len(common),
        after=math.fsum(other[problem] for problem in common) / len(common),
        difference=difference.value or 0.0,
        error=difference.error,
        low=low,
        high=high,
        better=better,
        worse=worse,
        p=sign_flip(change),
    )


@dataclass(frozen=True)
class Difference:
    """The mean of paired differences over several sets of problems, such as one per task."""

    n: int  # problems
    value: float
    error: float | None  # None if no problem differs
    p: float  # two-sided, by the exact test of a single set or by the normal distribution for several


def exceeds(difference: Difference, bound: float) -> float:
    """Return the one-sided p of a difference no larger than the bound, by the normal distribution.

    If no problem differs, p is the probability of that if a share of problems as large as the gap differed.
    """
    if difference.error is None:
        gap = min(1.0, difference.value - bound)
        return (1 - gap) ** difference.n if gap > 0 else 1.0
    return normal_tail((difference.value - bound) / difference.error)


def mean_difference(parts: Sequence[Comparison | None]) -> Difference | None:
    """Return the mean over sets of problems, which have equal weight; None if there are none or one is missing."""
    known = [part for part in parts if part is not None]
    if not parts or len(known) < len(parts):
        return None
    value = math.fsum(part.difference for part in known) / len(known)
    error = _joint_error(known) or None
    p = known[0].p if len(known) == 1 else _joint_chance(known, value, error)
    return Difference(sum(part.n for part in known), value, error, p)


def _joint_chance(parts: Sequence[Comparison], value: float, error: float | None) -> float:
    """Return p by the normal distribution; with few problems, at least the exact p of all of them together."""
    normal = 2 * normal_tail(abs(value) / error) if error else 1.0
    if min(part.n for part in parts) >= FEWEST:
        return normal
    return max(normal, mcnemar(sum(part.better for part in parts), sum(part.worse for part in parts)))
