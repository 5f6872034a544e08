"""The frontier: its cells can be run, and its stored records bear the claims of the pages."""

from pathlib import Path

import pytest

import unmask
from tools.pictures import QUESTION, SCORERS, TEXTS
from unmask.core import decoder
from unmask.experiments.frontier import ABLATION, EXPERIMENT, SEARCH
from unmask.experiments.results import Results, read_packed
from unmask.experiments.setup import PUBLISHED, TINY, Setup
from unmask.report.statistics import holm

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("setup", [TINY, PUBLISHED], ids=["tiny", "llada"])
def test_every_cell_fits_its_length_and_budgets_are_shares_of_the_papers_search(setup: Setup):
    for part in EXPERIMENT.parts(setup):
        (length,) = part.lengths
        resolved = {method.name: decoder.make(method.spec).resolved(length) for method in part.methods}
        assert (len(part.seeds) == 1) == part.name.endswith("-fixed")
        if SEARCH in resolved:
            paper = decoder.make("ots(beams=4)").max_forward_passes(length)
            assert resolved[SEARCH].max_forward_passes(length) == paper
            assert [resolved[f"search-{share}"].max_forward_passes(length) for share in (10, 320)] == [
                paper // 10,
                paper * 16 // 5,
            ]
            assert resolved.keys() >= ABLATION.keys()


@pytest.fixture(scope="module")
def stored() -> Results:
    return read_packed(DOCS / "data" / "results" / "frontier.jsonl.gz")


@pytest.mark.slow
def test_no_decoder_is_better_than_the_search_beyond_chance_on_any_family(stored: Results):
    rivals = [name for method in stored.methods if (name := method.name) not in ABLATION and "search-" not in name]
    for benchmark in stored.benchmarks:
        differences = [stored.difference(rival, SEARCH, [benchmark]) for rival in rivals]
        corrected = holm([each.p for each in differences if each])
        better = [each for each, p in zip(differences, corrected, strict=True) if each and each.value > 0 and p <= 0.05]
        assert len(differences) == len(corrected) == 18
        assert not better


@pytest.mark.slow
def test_the_search_keeps_its_budget_on_every_problem(stored: Results):
    records = [record for run in stored.runs.values() for record in run.records if record.decoder.startswith("search")]
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
