"""What records say and how surely: every error is over problems, since draws of one problem are not independent."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from unmask.policies.choice import by_majority

RESAMPLES = 2000
LEVEL = 0.95  # of the bootstrap's interval
GRAIN = 100_000  # shares of draws have smaller denominators
WORK = 20_000_000  # cosines: a fifth of a second
CHUNK = 100  # resamples held at once: a megabyte for a thousand problems


@dataclass(frozen=True)
class Estimate:
    value: float | None  # None where there is nothing to average
    error: float | None  # its standard error over problems; None for fewer than two
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
    found = list(values.values()) if isinstance(values, Mapping) else list(values)
    n = len(found)
    if not n:
        return Estimate(None, None, 0)
    mean = math.fsum(found) / n
    if n == 1:
        return Estimate(mean, None, 1)
    variance = math.fsum((value - mean) ** 2 for value in found) / (n - 1)
    return Estimate(mean, math.sqrt(variance / n), n)


def across(parts: Sequence[Mapping[str, float]]) -> Estimate:
    """The mean of several means over the same problems, such as one for each length; a problem is one cluster.

    Where the parts cover different problems, each part still counts alike and each problem by its share of them.
    """
    if not parts or not all(parts):
        return Estimate(None, None, 0)
    means = [math.fsum(part.values()) / len(part) for part in parts]
    mean = math.fsum(means) / len(parts)
    pull: dict[str, list[float]] = {}  # how far each problem pulls the mean away from where it is
    for part, center in zip(parts, means, strict=True):
        for problem, value in part.items():
            pull.setdefault(problem, []).append((value - center) / (len(part) * len(parts)))
    n = len(pull)
    if n == 1:
        return Estimate(mean, None, 1)
    spread = math.fsum(math.fsum(pulls) ** 2 for pulls in pull.values())
    return Estimate(mean, math.sqrt(spread * n / (n - 1)), n)


def together(parts: Sequence[Estimate]) -> Estimate:
    """The plain mean of independent estimates, such as one for each task."""
    values = [part.value for part in parts if part.value is not None]
    if not parts or len(values) < len(parts):
        return Estimate(None, None, 0)
    errors = [part.error for part in parts if part.error is not None]
    error = math.sqrt(math.fsum(one * one for one in errors)) / len(parts) if len(errors) == len(parts) else None
    return Estimate(math.fsum(values) / len(values), error, sum(part.n for part in parts))


def pass_at_k(n: int, right: int, k: int) -> float:
    """1 − C(n−c, k) / C(n, k): the chance that k of n draws, c of them right, hold a right one (arXiv 2107.03374).

    As −expm1 of a sum of logarithms nothing overflows and small chances keep all their digits.
    """
    if not 0 <= right <= n or not 1 <= k <= n:
        raise ValueError(f"pass@k of n={n}, c={right}, k={k} is not defined")
    if n - right < k:
        return 1.0
    few, many = sorted((right, k))  # the ratio is the same with c and k exchanged
    return -math.expm1(math.fsum(math.log1p(-many / i) for i in range(n - few + 1, n + 1)))


def majority(keys: Sequence[str]) -> int:
    """Which of the samples wins the vote: the first of the commonest key, as the `vote` decoder has it."""
    return by_majority([0.0] * len(keys), keys)


def mcnemar(better: int, worse: int) -> float:
    """Exact two-sided p of b against c discordant pairs under a fair coin, in whole numbers until the last division."""
    n = better + worse
    term = total = 1
    for i in range(min(better, worse)):
        term = term * (n - i) // (i + 1)
        total += term
    return min(1.0, 2 * total / 2**n)


def sign_flip(differences: Sequence[float]) -> float:
    """Two-sided p of the mean when each problem's difference could as well have had the other sign.

    With one draw a problem this is McNemar's test. With several the differences are shares with a common denominator,
    and the sum's distribution comes from its characteristic function, ∏ cos(t·dᵢ); past a size where that is slow the
    normal law it tends to is as good.
    """
    shares = [Fraction(one).limit_denominator(GRAIN) for one in differences]
    shares = [abs(share) for share in shares if share]
    observed = abs(sum(Fraction(one).limit_denominator(GRAIN) for one in differences))
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
    """Percentile interval of the mean when whole problems are drawn again; same seed, same interval."""
    if not differences:
        raise ValueError("there is nothing to draw from")
    values = np.asarray(differences, dtype=np.float64)
    drawn = _draws(len(values), resamples, seed)
    means = np.concatenate([chunk.astype(np.float64) @ values for chunk in drawn]) / len(values)
    low, high = np.quantile(means, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(low), float(high)


@lru_cache(maxsize=4)
def _draws(n: int, resamples: int, seed: int) -> list[NDArray[np.uint16]]:
    """How often each of n problems is drawn: chunks of (resample, problem).

    The generator's raw words are the same in every version of numpy, which is not promised of its other methods.
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
    """Paired by problem; None where no problem is in both."""
    common = sorted(baseline.keys() & other.keys())
    if not common:
        return None
    change = [other[problem] - baseline[problem] for problem in common]
    better, worse = sum(one > 1e-12 for one in change), sum(one < -1e-12 for one in change)
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
class Joint:
    """The mean of paired differences over several sets of problems, such as one for each task."""

    difference: float
    error: float | None
    p: float  # of one set its own exact test; of several two-sided by the normal law


def joint(parts: Sequence[Comparison]) -> Joint | None:
    """Each set counts alike; None where there is none. Where no problem differs there is no error to state."""
    if not parts:
        return None
    difference = math.fsum(part.difference for part in parts) / len(parts)
    errors = [part.error for part in parts if part.error is not None]
    error = math.sqrt(math.fsum(one * one for one in errors)) / len(parts) if len(errors) == len(parts) else None
    if len(parts) == 1:
        return Joint(difference, error or None, parts[0].p)
    return Joint(difference, error or None, math.erfc(abs(difference) / error / math.sqrt(2)) if error else 1.0)
