"""The numbers of a report, against enumeration and against scipy."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from unmask.report import statistics
from unmask.report.statistics import (
    Estimate,
    across,
    bootstrap,
    compare,
    estimate,
    holm,
    mcnemar,
    pass_at_k,
    sign_flip,
    together,
)


@pytest.mark.parametrize("n", range(1, 9))
def test_pass_at_k_is_the_share_of_subsets_with_a_right_draw(n: int):
    for right, k in itertools.product(range(n + 1), range(1, n + 1)):
        subsets = list(itertools.combinations([True] * right + [False] * (n - right), k))
        assert pass_at_k(n, right, k) == pytest.approx(sum(map(any, subsets)) / len(subsets), abs=1e-14)


@pytest.mark.parametrize(
    ("n", "right", "k"), [(256, 3, 64), (5000, 7, 1), (5000, 1, 2500), (5000, 2500, 3), (1_000_000, 1, 1)]
)
def test_pass_at_k_keeps_its_digits_for_many_draws(n: int, right: int, k: int):
    exact = float(1 - Fraction(math.comb(n - right, k), math.comb(n, k)))
    assert pass_at_k(n, right, k) == pytest.approx(exact, rel=1e-12)


@pytest.mark.parametrize(("n", "right", "k"), [(3, 4, 1), (3, 1, 4), (3, 1, 0), (3, -1, 1)])
def test_pass_at_k_of_impossible_counts_is_refused(n: int, right: int, k: int):
    with pytest.raises(ValueError, match="not defined"):
        pass_at_k(n, right, k)


def test_with_one_draw_a_problem_flipping_signs_is_mcnemar():
    for better, worse in itertools.product(range(9), repeat=2):
        assert sign_flip([1.0] * better + [-1.0] * worse + [0.0] * 3) == pytest.approx(mcnemar(better, worse))


def test_with_several_draws_flipping_signs_is_scipys_permutation_test():
    for seed in range(8):
        change = np.random.default_rng(seed).integers(-4, 6, 9) / 4
        expected = stats.permutation_test(
            (change, np.zeros(9)), lambda a, b: np.mean(a - b), permutation_type="samples"
        )
        assert sign_flip(list(change)) == pytest.approx(expected.pvalue, abs=1e-9)
    assert sign_flip([1 / 3, -1 / 3]) == 1.0
    assert sign_flip([]) == 1.0


def test_past_a_size_the_normal_law_is_as_good(monkeypatch: pytest.MonkeyPatch):
    change = list(np.random.default_rng(3).integers(-60, 70, 300) / 64)
    exact = sign_flip(change)
    monkeypatch.setattr(statistics, "WORK", 0)
    assert sign_flip(change) == pytest.approx(exact, rel=0.01)


def test_a_standard_error_is_over_problems_not_over_draws():
    values = [0.0, 1.0, 1.0, 0.5, 0.25]
    mean = estimate(values)
    assert (mean.value, mean.n) == (pytest.approx(np.mean(values)), 5)
    assert mean.error == pytest.approx(stats.sem(values))
    assert estimate([1.0]) == Estimate(1.0, None, 1)
    assert estimate([]) == Estimate(None, None, 0)


def test_an_average_over_lengths_is_clustered_by_problem():
    short = {"a": 1.0, "b": 0.0, "c": 1.0, "d": 0.0}
    long = {"a": 1.0, "b": 1.0, "c": 1.0, "d": 0.0}
    mean = across([short, long])
    both = [(short[key] + long[key]) / 2 for key in short]
    assert mean.value == pytest.approx(np.mean(both))
    assert mean.error == pytest.approx(stats.sem(both))
    assert across([short]) == estimate(short)
    apart = across([{"a": 1.0, "b": 0.0}, {"c": 1.0, "d": 1.0, "e": 0.0}])
    assert apart.value == pytest.approx((1 / 2 + 2 / 3) / 2)
    assert across([short, {}]) == Estimate(None, None, 0)


def test_tasks_are_independent():
    mean = together([Estimate(0.4, 0.03, 10), Estimate(0.6, 0.04, 20)])
    assert (mean.value, mean.error, mean.n) == (pytest.approx(0.5), pytest.approx(0.025), 30)
    assert together([Estimate(0.4, 0.03, 10), Estimate(None, None, 0)]).value is None


def test_the_paired_bootstrap_agrees_with_scipys():
    generator = np.random.default_rng(7)
    before, after = generator.random(300) < 0.4, generator.random(300) < 0.5
    change = after.astype(float) - before
    low, high = bootstrap(list(change))
    expected = stats.bootstrap((change,), np.mean, n_resamples=9999, method="percentile", rng=1).confidence_interval
    assert (low, high) == (pytest.approx(expected.low, abs=0.01), pytest.approx(expected.high, abs=0.01))


def test_the_bootstrap_is_the_distribution_over_all_resamples():
    values = [-1.0, 0.0, 1.0, 1.0]
    every = [np.mean(drawn) for drawn in itertools.product(values, repeat=4)]
    assert bootstrap(values, resamples=50_000) == pytest.approx(np.quantile(every, [0.025, 0.975]))


def test_the_bootstrap_is_the_same_every_time_and_needs_something():
    assert bootstrap([0.0, 1.0, -1.0, 0.5]) == bootstrap([0.0, 1.0, -1.0, 0.5])
    assert bootstrap([0.3]) == (0.3, 0.3)
    with pytest.raises(ValueError, match="nothing"):
        bootstrap([])


def test_a_comparison_is_on_the_problems_of_both():
    result = compare({"a": 1.0, "b": 0.0, "c": 0.0, "only": 1.0}, {"a": 0.0, "b": 1.0, "c": 1.0, "other": 0.0})
    assert result is not None
    assert (result.n, result.better, result.worse) == (3, 2, 1)
    assert (result.before, result.after) == (pytest.approx(1 / 3), pytest.approx(2 / 3))
    assert result.difference == pytest.approx(1 / 3)
    assert result.p == pytest.approx(stats.binomtest(2, 3, 0.5).pvalue)
    assert result.low <= result.difference <= result.high
    assert compare({"a": 1.0}, {"b": 1.0}) is None


def test_holm_multiplies_by_the_number_of_larger_ones_and_never_falls():
    assert holm([0.01, 0.04, 0.03, 0.5]) == pytest.approx([0.04, 0.09, 0.09, 0.5])
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    assert holm([]) == []
