"""The frontier: its cells can be run, its page says what the records say, and many comparisons are corrected."""

from __future__ import annotations

from pathlib import Path

import pytest

import unmask
from tools.pictures import QUESTION, SCORERS, TEXTS
from unmask.core import decoder
from unmask.experiments.archive import read_packed
from unmask.experiments.frontier import ABLATION, EXPERIMENT, SEARCH
from unmask.experiments.results import Evidence
from unmask.experiments.setup import PUBLISHED, TINY, Setup
from unmask.report.statistics import holm

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("setup", [TINY, PUBLISHED], ids=["tiny", "llada"])
def test_every_cell_fits_its_length_and_budgets_are_shares_of_the_papers_search(setup: Setup):
    for part in EXPERIMENT.parts(setup):
        (length,) = part.lengths
        resolved = {method.name: decoder.make(method.spec).resolved(length) for method in part.methods}
        assert (len(part.seeds) == 3) == part.name.endswith("-drawn")
        if SEARCH in resolved:
            paper = decoder.make("ots(beams=4)").max_forward_passes(length)
            assert resolved[SEARCH].max_forward_passes(length) == paper
            assert [resolved[f"search-{share}"].max_forward_passes(length) for share in (10, 320)] == [
                paper // 10,
                paper * 16 // 5,
            ]
            assert resolved.keys() >= ABLATION.keys()


@pytest.fixture(scope="module")
def evidence() -> Evidence:
    return read_packed(DOCS / "data" / "results" / "frontier.jsonl.gz")


@pytest.mark.slow
def test_no_decoder_is_better_than_the_search_beyond_chance_on_any_family(evidence: Evidence):
    rivals = [name for method in evidence.methods if (name := method.name) not in ABLATION and "search-" not in name]
    for benchmark in evidence.benchmarks:
        differences = [evidence.difference(rival, SEARCH, [benchmark]) for rival in rivals]
        corrected = holm([each.p for each in differences if each])
        better = [each for each, p in zip(differences, corrected, strict=True) if each and each.value > 0 and p <= 0.05]
        assert len(differences) == len(corrected) == 18
        assert not better


@pytest.mark.slow
def test_the_search_keeps_its_budget_on_every_problem(evidence: Evidence):
    records = [
        record for run in evidence.runs.values() for record in run.records if record.decoder.startswith("search")
    ]
    assert len(records) == 5 * 1000 * 20  # 11 budgets and 9 ablations
    assert all(record.cost.forward_passes <= decoder.make(record.decoder).max_forward_passes(64) for record in records)


def test_a_score_of_neighbours_sees_what_the_block_score_does_not():
    """What the page's picture shows."""
    model, prompt = unmask.load("tiny"), [{"role": "user", "content": QUESTION}]
    scores = {
        way: {name: unmask.score(model, prompt, text, scorer=way, length=64).logp for name, text in TEXTS.items()}
        for way in SCORERS.values()
    }
    assert scores["block"]["right"] < scores["block"]["wrong"]
    assert scores["interleaved(combs=2)"]["right"] > scores["interleaved(combs=2)"]["wrong"] + 20


def test_holm_multiplies_by_what_is_left_and_never_falls():
    assert holm([0.01, 0.04, 0.03, 0.5]) == pytest.approx([0.04, 0.09, 0.09, 0.5])
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    assert holm([]) == []
