"""Choosing the answer among the final rows: by score, by majority or by a weighted vote."""

from __future__ import annotations

import math
from collections.abc import Sequence

from unmask.errors import check_known


def by_score(scores: Sequence[float], keys: Sequence[str]) -> int:
    """Return the row of highest score; ties go to the first."""
    return max(range(len(keys)), key=scores.__getitem__)


def by_majority(scores: Sequence[float], keys: Sequence[str]) -> int:
    """Return the first row of the commonest key; ties go to the key seen first."""
    del scores
    return keys.index(max(dict.fromkeys(keys), key=keys.count))


def by_weight(scores: Sequence[float], keys: Sequence[str]) -> int:
    """Return the best row of the key whose rows have the largest sum of exp(score)."""
    most = max(scores)
    weight = dict.fromkeys(keys, 0.0)
    for score, key in zip(scores, keys, strict=True):
        weight[key] += math.exp(score - most) if most > -math.inf else 1.0
    winner = max(weight, key=weight.__getitem__)
    return max((row for row, key in enumerate(keys) if key == winner), key=scores.__getitem__)


_CHOICES = {"score": by_score, "majority": by_majority, "weighted": by_weight}


def choose(choice: str, scores: Sequence[float], keys: Sequence[str]) -> int:
    check_known(_CHOICES, choice=choice)
    return _CHOICES[choice](scores, keys)
