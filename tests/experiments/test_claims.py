"""Claims are judged by the records, and can go either way."""

from dataclasses import replace
from typing import Any

import pytest

from tests.experiments.made_up import results, small
from unmask.experiments import case_study, find
from unmask.experiments.setup import TEN
from unmask.report.statistics import Comparison, mean_difference


def outcomes(name: str, skill: dict[str, float], **changes: Any) -> dict[str, str]:
    claims = find(name).findings(results(name, skill, small(**changes))).claims
    return {claim.text: claim.outcome for claim in claims}


def test_table_1_holds_where_the_search_is_best_and_not_where_it_is_worst():
    others = dict.fromkeys(TEN, 0.4)
    good = outcomes("table-1", others | {"ots": 0.8, "random-vote": 0.1})
    assert set(good.values()) == {"holds"}
    bad = outcomes("table-1", others | {"ots": 0.1, "random-vote": 0.7})
    assert set(bad.values()) == {"does not hold"}
    assert len(good) == 2 + 1 + 4 + 1 + 1 + 2 + 1
    assert "not decided" in outcomes("table-1", dict.fromkeys(TEN, 0.5)).values()  # a difference within noise


@pytest.mark.parametrize(("rights", "outcome"), [(2, "not decided"), (32, "holds")])
def test_two_seeds_do_not_decide_the_case_study(rights: int, outcome: str):
    measured = {"low-confidence": {"right": False, "answer": None}, "ots": {"rights": [True] * rights}}
    assert case_study.judge_seeds(measured, "float32").outcome == outcome


LENGTHS = "OTS is above Low-confidence at every length"
PASS_1, PASS_K = "countdown: low-confidence has the best pass@1", "countdown: it is overtaken as k grows"
FLAT = "Blocks between 2 and half the answer stay within ± 1.5 points"
ENDS = "A block of 1 and one block for the whole answer are below the blocks between"
CHANCE = "No decoder fills cells better than chance (25 %)"
BLIND = dict.fromkeys(TEN, 0.05)
YES, NO, OPEN = "holds", "does not hold", "not decided"
VERDICTS: list[tuple[str, dict[str, float], dict[str, str]]] = [
    ("figure-1d", {"ots": 0.9, "low-confidence": 0.3, "random": 0.3}, {LENGTHS: YES}),
    ("figure-1d", {"ots": 0.2, "low-confidence": 0.8, "random": 0.3}, {LENGTHS: NO}),
    ("pass-at-k", {"low-confidence": 0.6, "random": 0.1, "ar": 0.1}, {PASS_1: YES, PASS_K: NO}),
    ("pass-at-k", {"low-confidence": 0.05, "random": 0.3, "ar": 0.3}, {PASS_1: NO, PASS_K: YES}),
    (
        "nfe-scaling",  # beams that gain only at first do not improve steadily
        {f"ots-{k}": min(0.2 + 0.25 * k, 0.9) for k in range(1, 7)},
        {"OTS improves steadily over all K": OPEN},
    ),
    (
        "search-settings",
        {"ots": 0.7, "interval-32": 0.2, "best-of": 0.3, "distinct": 0.1},
        {
            "Once per block is above every 32 steps": YES,
            "The search is above its score without search, best of n by Eq. 2 at equal cost": YES,
            "Distinct survivors are above copies": NO,
        },
    ),
    (
        "block-size",
        {f"block-{2**power}": 0.1 + 0.15 * power for power in range(6)} | {"block-1": 0.05, "block-64": 0.05},
        {FLAT: NO, ENDS: YES},
    ),
    ("block-size", {"block-1": 0.95, "block-64": 0.95}, {ENDS: NO}),
    ("sudoku", BLIND, {CHANCE: YES}),
    ("sudoku", BLIND | {"ots": 0.9}, {CHANCE: NO}),
    ("sudoku", dict.fromkeys(TEN, 0.25), {CHANCE: OPEN}),
]


@pytest.mark.parametrize(("name", "skill", "expected"), VERDICTS)
def test_a_claim_is_judged_by_the_skill_of_its_methods(name: str, skill: dict[str, float], expected: dict[str, str]):
    claims = outcomes(name, skill)
    assert {text: claims[text] for text in expected} == expected


def test_methods_that_were_not_asked_are_not_judged():
    claims = outcomes("table-1", {"ots": 0.9, "low-confidence": 0.1}, methods=("ots", "low-confidence"))
    assert claims["OTS is above low-confidence on mini-gsm (paper, GSM8K: +3.1)"] == "holds"
    assert claims["OTS is above AR with beam search"] == "not asked"


@pytest.mark.parametrize(
    ("skill", "second", "lead", "lowest"),
    [
        ({"low-confidence": 0.6, "random": 0.1, "ar": 0.3}, "holds", "does not hold", "does not hold"),
        ({"low-confidence": 0.1, "random": 0.02, "ar": 0.4}, "holds", "holds", "does not hold"),
        ({"low-confidence": 0.1, "random": 0.4, "ar": 0.7}, "does not hold", "not decided", "does not hold"),
        ({"low-confidence": 0.6, "random": 0.4, "ar": 0.1}, "holds", "does not hold", "holds"),
        ({"low-confidence": 0.3, "random": 0.3, "ar": 0.3}, "not decided", "not decided", "not decided"),
    ],
)
def test_places_at_pass_1_are_tested_and_not_only_counted(skill: dict[str, float], second: str, lead: str, lowest: str):
    claims = outcomes("pass-at-k", skill, passes=("GSM8K", "MATH500", "HumanEval"))
    assert [outcome for text, outcome in claims.items() if "best or second" in text] == [second]
    assert [outcome for text, outcome in claims.items() if text.startswith("AR has the best")] == [lead]
    assert [outcome for text, outcome in claims.items() if "AR has the lowest" in text] == [lowest]


@pytest.mark.parametrize(
    ("first", "gain", "votes", "outcome"), [(0.2, 0.12, 0.3, "holds"), (0.5, -0.08, 0.9, "does not hold")]
)
def test_nfe_scaling_compares_at_matched_compute(first: float, gain: float, votes: float, outcome: str):
    skill = {f"ots-{k}": first + gain * k for k in range(1, 7)} | dict.fromkeys(
        ("ar", "random", "low-confidence"), votes
    )
    claims = outcomes("nfe-scaling", skill)
    assert [each for text, each in claims.items() if "OTS" in text] == [outcome] * 5


def test_llada_1_5_is_judged_by_its_own_gains():
    claims = outcomes("table-1", {}, model="GSAI-ML/LLaDA-1.5", benchmarks=("Countdown",))
    assert "OTS is above low-confidence on countdown (paper, Countdown: +8.2)" in claims
    assert "OTS is above low-confidence on average (paper: +5.9)" in claims


def test_pass_at_k_counts_the_paper_s_settings():
    claims = outcomes("pass-at-k", {"low-confidence": 0.6, "random": 0.1, "ar": 0.3}, benchmarks=("GSM8K", "MATH500"))
    best, mathematics, *_ = claims.items()
    assert "best in 4 and second in 3 of 8" in best[0]
    assert (best[1], mathematics[1]) == ("holds", "does not hold")


def test_the_temperature_s_share_is_told_from_the_search_s():
    claims = list(outcomes("temperature", {"greedy": 0.3, "sampled": 0.3, "ots": 0.8}).values())
    assert claims[:2] == ["holds", "holds"]
    claims = list(outcomes("temperature", {"greedy": 0.1, "sampled": 0.6, "ots": 0.6}).values())
    assert claims[1:] == ["holds", "holds"]


def test_table_2_counts_the_rows_that_were_asked():
    claims = outcomes("table-2", {"ots": 0.8, "order-search": 0.3, "token-search": 0.1})
    assert list(claims.values()) == ["holds"] * 3


def test_paired_differences_are_joined_with_their_errors():
    def part(difference: float, error: float) -> Comparison:
        return Comparison(100, 0.5, 0.5 + difference, difference, error, 0.0, 0.0, 10, 5, 0.25)

    assert mean_difference([]) is None
    one = mean_difference([part(0.1, 0.05)])
    assert one is not None
    assert (one.value, one.error, one.p) == (0.1, 0.05, 0.25)
    two = mean_difference([part(0.1, 0.03), part(0.3, 0.04)])
    assert two is not None
    assert two.value == pytest.approx(0.2)
    assert two.error == pytest.approx(0.025)
    assert two.p == pytest.approx(1.2441921148543e-15, rel=1e-6)


def test_the_grid_s_choice_is_made_on_other_problems_and_hindsight_is_called_so():
    setup = small(grid=True, benchmarks=("Countdown",))
    findings = find("table-1").findings(results("table-1", {"ots-5-0.8": 0.95}, setup))
    (row,) = findings.tables[-1].rows
    assert [entry.text for entry in row[:1] + row[2:3] + row[5:6]] == ["Countdown", "K=5, τ=0.8", "K=5, τ=0.8"]
    assert findings.tables[-1].head[-1] == "best on test"
    assert all("others" not in table.title for table in findings.tables)


def test_a_claim_that_a_seed_contradicts_is_not_decided():
    setup = small(benchmarks=("Countdown",), methods=("ots", "low-confidence"), search_seeds=(0, 1))
    whole = results("table-1", {"ots": 0.9, "low-confidence": 0.5}, setup)
    text = "OTS is above low-confidence on average (paper: +5.4)"
    claims = {claim.text: claim for claim in find("table-1").findings(whole).claims}
    assert claims[text].outcome == "holds"
    assert "; by seed +" in claims[text].figures
    run = whole.runs["countdown"]
    fails = replace(run, records=[replace(each, right=each.right and each.seed == 0) for each in run.records])
    contradicted = replace(whole, runs={**whole.runs, "countdown": fails})
    claims = {claim.text: claim for claim in find("table-1").findings(contradicted).claims}
    assert claims[text].outcome != "holds"
