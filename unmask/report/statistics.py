"""Estimates and paired tests. Every error is over problems, since draws of one problem are not independent."""

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
LEVEL = 0.95  # of the bootstrap's interval
GRAIN = 100_000  # shares of draws have smaller denominators
WORK = 20_000_000  # cosines: a fifth of a second
CHUNK = 100  # resamples held at once: a megabyte for a thousand problems


@dataclass(frozen=True)
class Estimate:
    value: float | None  # None if there is nothing to average
    error: float | None  # the standard error over problems; None for fewer than two
    n: int  # problems


@dataclass(frozen=True)
class Comparison:
    """One decoder against another on the problems that both answered."""

    n: int  # problems in common
    before: float  # the baseline's mean over them
    after: float
    difference: float
    error: float | None  # standard error of the difference, paired by problem
    low: float  # the bootstrap's interval
    high: float
    better: int  # problems on which it is right more often than the baseline
    worse: int
    p: float  # exact McNemar, or the sign-flip test it is a case of; two-sided


def estimate(values: Mapping[str, float] | Sequence[float]) -> Estimate:
    """Mean and standard error; each value is one problem's, averaged over its seeds and samples."""
    numbers = list(values.values()) if isinstance(values, Mapping) else list(values)
    n = len(numbers)
    if not n:
        return Estimate(None, None, 0)
    mean = math.fsum(numbers) / n
    if n == 1:
        return Estimate(mean, None, 1)
    variance = math.fsum((value - mean) ** 2 for value in numbers) / (n - 1)
    return Estimate(mean, math.sqrt(variance / n), n)


def across(parts: Sequence[Mapping[str, float]]) -> Estimate:
    """The mean of several means over the same problems, such as one per length; a problem is one cluster.

    Parts have equal weight even if they cover different problems.
    """
    if not parts or not all(parts):
        return Estimate(None, None, 0)
    means = [math.fsum(part.values()) / len(part) for part in parts]
    mean = math.fsum(means) / len(parts)
    pull: dict[str, list[float]] = {}  # how far each problem moves the mean
    for part, center in zip(parts, means, strict=True):
        for problem, value in part.items():
            pull.setdefault(problem, []).append((value - center) / (len(part) * len(parts)))
    n = len(pull)
    if n == 1:
        return Estimate(mean, None, 1)
    spread = math.fsum(math.fsum(pulls) ** 2 for pulls in pull.values())
    return Estimate(mean, math.sqrt(spread * n / (n - 1)), n)


def together(parts: Sequence[Estimate]) -> Estimate:
    """The plain mean of independent estimates, such as one per task."""
    values = [part.value for part in parts if part.value is not None]
    if not parts or len(values) < len(parts):
        return Estimate(None, None, 0)
    return Estimate(math.fsum(values) / len(values), _joint_error(parts), sum(part.n for part in parts))


def _joint_error(parts: Sequence[Estimate] | Sequence[Comparison]) -> float | None:
    """Of the mean of independent parts; None if a part has no error."""
    errors = [part.error for part in parts if part.error is not None]
    return math.sqrt(math.fsum(error * error for error in errors)) / len(parts) if len(errors) == len(parts) else None


def pass_at_k(n: int, right: int, k: int) -> float:
    """1 − C(n−c, k) / C(n, k): the chance that k of n draws include one of the c right ones (arXiv 2107.03374).

    Computed as −expm1 of a sum of logarithms, so that nothing overflows and small chances keep their digits.
    """
    if not 0 <= right <= n or not 1 <= k <= n:
        raise ValueError(f"pass@k of n={n}, c={right}, k={k} is not defined")
    if n - right < k:
        return 1.0
    few, many = sorted((right, k))  # the ratio is the same with c and k exchanged
    return -math.expm1(math.fsum(math.log1p(-many / i) for i in range(n - few + 1, n + 1)))


def mcnemar(better: int, worse: int) -> float:
    """Exact two-sided p of b against c discordant pairs under a fair coin, in integers until the last division."""
    n = better + worse
    term = total = 1
    for i in range(min(better, worse)):
        term = term * (n - i) // (i + 1)
        total += term
    return min(1.0, 2 * total / 2**n)


def holm(chances: Sequence[float]) -> list[float]:
    """Each p corrected for the number of comparisons, so that all claims hold together (Holm, 1979)."""
    corrected, least = [0.0] * len(chances), 0.0
    for rank, place in enumerate(sorted(range(len(chances)), key=chances.__getitem__)):
        least = max(least, min(1.0, chances[place] * (len(chances) - rank)))
        corrected[place] = least
    return corrected


def sign_flip(differences: Sequence[float]) -> float:
    """Two-sided p of the mean if each problem's difference were equally likely to have the other sign.

    With one draw per problem this is McNemar's test. With several, the differences are fractions with a common
    denominator, and the distribution of their sum comes from its characteristic function, ∏ cos(t·dᵢ); where that is
    slow, the normal distribution it tends to is close enough.
    """
    fractions = [Fraction(difference).limit_denominator(GRAIN) for difference in differences]
    observed = abs(sum(fractions))
    shares = [abs(fraction) for fraction in fractions if fraction]
    if all(share == 1 for share in shares):
        worse = (len(shares) - int(observed)) // 2
        return mcnemar(len(shares) - worse, worse)
    unit = math.lcm(*(share.denominator for share in shares))
    if unit > WORK:
        return math.erfc(float(observed) / math.sqrt(2 * math.fsum(float(share) ** 2 for share in shares)))
    sizes, counts = np.unique([int(share * unit) for share in shares], return_counts=True)
    total, reach = int(sizes @ counts), int(observed * unit)
    if (2 * total + 1) * len(sizes) > WORK:
        return math.erfc(reach / math.sqrt(2 * float(counts @ sizes.astype(np.float64) ** 2)))
    angle = 2 * np.pi * np.arange(2 * total + 1) / (2 * total + 1)
    wave = np.prod([np.cos(angle * size) ** count for size, count in zip(sizes, counts, strict=True)], axis=0)
    chance = np.fft.ifft(wave).real  # of each sum, negative ones at the end
    inside = chance[0] + 2 * chance[1:reach].sum() if reach else 0.0
    return float(min(1.0, max(0.0, 1.0 - inside)))


def bootstrap(differences: Sequence[float], resamples: int = RESAMPLES, seed: int = 0) -> tuple[float, float]:
    """Percentile interval of the mean over resampled problems; same seed, same interval."""
    if not differences:
        raise ValueError("there is nothing to resample")
    values = np.asarray(differences, dtype=np.float64)
    drawn = _draws(len(values), resamples, seed)
    means = np.concatenate([chunk.astype(np.float64) @ values for chunk in drawn]) / len(values)
    low, high = np.quantile(means, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(low), float(high)


@lru_cache(maxsize=4)
def _draws(n: int, resamples: int, seed: int) -> list[NDArray[np.uint16]]:
    """How often each of n problems is drawn: chunks of (resample, problem).

    Raw words of the generator are the same in every version of numpy; its other methods do not promise that.
    """
    generator = np.random.PCG64(seed)
    chunks = []
    for start in range(0, resamples, CHUNK):
        size = min(CHUNK, resamples - start)
        raw = np.asarray(generator.random_raw(size * n)).reshape(size, n)
        drawn = ((raw >> np.uint64(32)) * np.uint64(n) >> np.uint64(32)).astype(np.int64)
        flat = (drawn + np.arange(size)[:, None] * n).ravel()
        chunks.append(np.bincount(flat, minlength=size * n).reshape(size, n).astype(np.uint16))
    return chunks


def compare(baseline: Mapping[str, float], other: Mapping[str, float]) -> Comparison | None:
    """Paired by problem; None if no problem is in both."""
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
    p: float  # of a single set, its own exact test; of several, two-sided by the normal distribution


def exceeds(difference: Difference, bound: float) -> float:
    """One-sided p of a difference no larger than the bound, by the normal distribution.

    Where no problem differs: the chance of that if a share of them as large as the gap did.
    """
    if difference.error is None:
        gap = min(1.0, difference.value - bound)
        return (1 - gap) ** difference.n if gap > 0 else 1.0
    return 0.5 * math.erfc((difference.value - bound) / difference.error / math.sqrt(2))


def mean_difference(parts: Sequence[Comparison | None]) -> Difference | None:
    """Sets have equal weight; None if there are none or one is missing."""
    known = [part for part in parts if part is not None]
    if not parts or len(known) < len(parts):
        return None
    value = math.fsum(part.difference for part in known) / len(known)
    error = _joint_error(known) or None
    p = known[0].p if len(known) == 1 else _joint_chance(known, value, error)
    return Difference(sum(part.n for part in known), value, error, p)


def _joint_chance(parts: Sequence[Comparison], value: float, error: float | None) -> float:
    """By the normal distribution; of few problems no smaller than the exact test of all of them together."""
    normal = math.erfc(abs(value) / error / math.sqrt(2)) if error else 1.0
    if min(part.n for part in parts) >= FEWEST:
        return normal
    return max(normal, mcnemar(sum(part.better for part in parts), sum(part.worse for part in parts)))
