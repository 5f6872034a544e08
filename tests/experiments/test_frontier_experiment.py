"""The frontier: its cells can be run, its page says what the records say, and many comparisons are corrected."""

from __future__ import annotations

import pytest

from tests.experiments.test_docs import DOCS
from unmask.core import decoder
from unmask.experiments.archive import read_packed
from unmask.experiments.frontier import ABLATION, EXPERIMENT, SEARCH
from unmask.experiments.setup import PUBLISHED, TINY, Setup
from unmask.report.statistics import holm


@pytest.mark.parametrize("setup", [TINY, PUBLISHED], ids=["tiny", "llada"])
def test_every_cell_fits_its_length_and_budgets_are_shares_of_the_papers_search(setup: Setup):
    for part in EXPERIMENT.parts(setup):
        (length,) = part.lengths
        resolved = {method.name: decoder.make(method.spec).resolved(length) for method in part.methods}
        assert (len(part.seeds) == 3) == part.name.endswith("-drawn")
        if SEARCH in resolved:
            paper = decoder.make("ots(beams=4)").rows(length)
            assert resolved[SEARCH].rows(length) == paper
            assert [resolved[f"search-{share}"].rows(length) for share in (10, 320)] == [paper // 10, paper * 16 // 5]
            assert resolved.keys() >= ABLATION.keys()


@pytest.mark.slow  # 178,000 records
def test_what_the_page_says_of_test_problems_is_in_the_records():
    evidence = read_packed(DOCS / "data" / "search" / "frontier.jsonl.gz")
    page = " ".join((DOCS / "search.md").read_text("utf-8").split())
    sentences = {
        "adaptive-995": "an adaptive path has {} %",
        "ots": "`ots(beams=4)` {} %",
        "ots-combs": "`ots` with the interleaved score {} %",
    }
    for method, sentence in sentences.items():
        average = evidence.average(method)
        assert average.value is not None
        assert average.n == 5000
        assert sentence.format(f"{100 * average.value:.1f}") in page


def test_holm_multiplies_by_what_is_left_and_never_falls():
    assert holm([0.01, 0.04, 0.03, 0.5]) == pytest.approx([0.04, 0.09, 0.09, 0.5])
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    assert holm([]) == []
