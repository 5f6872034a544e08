"""The area under the curve, by hand, by brute force and by what must not change it."""

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unmask.errors import UnmaskError
from unmask.report.quality import Quality, draw_quality, qualities, quality_table, rank
from unmask.runs.candidates import SCORES, Candidate


def candidate(problem: str, score: float | None, right: bool, block: int = 0, **scores: float) -> Candidate:
    totals: dict[str, float | None] = dict.fromkeys(SCORES, score)
    return Candidate(problem, block + 1, block, 0, 0, True, totals | scores, "", right, None)


def find(measured: list[Quality], score: str = "block", block: int | None = None) -> Quality:
    return next(one for one in measured if (one.score, one.block) == (score, block))


@given(st.lists(st.tuples(st.booleans(), st.integers(-3, 3)), max_size=12))
def test_pairs_are_counted_as_one_by_one(some: list[tuple[bool, int]]):
    right = [float(score) for good, score in some if good]
    wrong = [float(score) for good, score in some if not good]
    won = sum(1.0 if a > b else 0.5 if a == b else 0.0 for a in right for b in wrong)
    counted = rank([good for good, _ in some], [float(score) for _, score in some])
    assert counted == (won, len(right) * len(wrong))


def test_problems_count_alike_however_many_pairs_they_have():
    few = [candidate("a", 1.0, True), candidate("a", 0.0, False)]
    many = [candidate("b", 0.0, True), *(candidate("b", 1.0, False) for _ in range(9))]
    one = find(qualities([*few, *many]))
    assert one.auc.value == 0.5
    assert one.auc.error == pytest.approx(0.5)
    assert (one.auc.n, one.problems, one.pairs) == (2, 2, 10)


def test_pairs_are_never_made_across_problems_or_searches():
    apart = [candidate("a", 9.0, False), candidate("b", 0.0, True), candidate("c", 9.0, False, block=0)]
    apart.append(candidate("c", 0.0, True, block=1))
    one = find(qualities(apart))
    assert one.auc.value is None
    assert (one.auc.n, one.problems, one.pairs) == (0, 3, 0)


def test_a_score_is_compared_with_the_baseline_on_the_same_problems():
    some = [candidate("a", 0.0, True, path=1.0), candidate("a", 0.0, False, path=0.0)]
    some += [candidate("b", 0.0, True, path=1.0), candidate("b", 1.0, False, path=0.0)]
    measured = qualities(some)
    assert find(measured, "path").lead.value == 0.75
    assert find(measured, "block").lead.value == 0.0


def test_an_impossible_candidate_stands_below_all_others():
    assert find(qualities([candidate("a", None, False), candidate("a", -1e9, True)])).auc.value == 1.0


def test_noise_is_a_coin_and_a_rank_kept_by_any_rising_function():
    generator = np.random.default_rng(0)
    noise = [
        candidate(str(problem), float(generator.normal()), bool(generator.integers(2)))
        for problem in range(400)
        for _ in range(8)
    ]
    auc = find(qualities(noise)).auc
    assert auc.value is not None
    assert auc.error is not None
    assert abs(auc.value - 0.5) < 4 * auc.error
    raised = [candidate(one.problem, math.atan(one.scores["block"] or 0.0), one.right) for one in noise]
    assert find(qualities(raised)).auc == auc


def test_the_table_and_the_plot_show_every_block_and_the_same_bytes(tmp_path: Path):
    some = [candidate("a", float(i % 3), i % 2 == 0, block) for i in range(6) for block in range(2)]
    measured = qualities(some)
    table = quality_table(measured)
    assert table.head == ("likelihood", "block 1", "block 2", "all blocks", "all blocks, minus block")
    assert [row[0].text for row in table.rows] == list(SCORES)
    assert any("1 of 1 problems" in note for note in table.notes)
    for name, head in (("q.svg", b"<?xml"), ("q.png", b"\x89PNG")):
        draw_quality(measured, tmp_path / name)
        first = (tmp_path / name).read_bytes()
        draw_quality(measured, tmp_path / name)
        assert first == (tmp_path / name).read_bytes()
        assert first.startswith(head)


def test_nothing_and_missing_labels_are_refused():
    with pytest.raises(UnmaskError, match="no candidates"):
        qualities([])
    with pytest.raises(UnmaskError, match="finish=True"):
        qualities([candidate("a", 1.0, True)], label="finished")
