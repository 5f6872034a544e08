"""A tree says what its trace says: every candidate counted once, the path to the answer marked, the same bytes."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from tests.view import traces
from unmask.errors import UnmaskError
from unmask.report.plots import keep, kind_of
from unmask.report.search_tree import describe, read_tree
from unmask.report.tree_drawing import tree_image
from unmask.runs.trace import Trace

SEARCHES = ("ots(beams=3, block=3, temperature=1)", "ots(beams=2, block=3, interval=1, temperature=1)")
traced = partial(traces.traced, length=6)


@pytest.mark.parametrize("spec", [*SEARCHES, "order-search(beams=2)", "token-search(beams=2)"])
def test_every_candidate_is_in_one_node_and_every_kept_one_in_one_that_lived_on(spec: str):
    trace = traced(spec)
    branches = [line["branch"] for line in trace.steps if "branch" in line]
    searches = read_tree(trace).searches
    assert [search.candidates for search in searches] == [len(branch["draw"]) for branch in branches]
    assert [search.kept for search in searches] == [sum(branch["kept"]) for branch in branches]
    for search, branch in zip(searches, branches, strict=True):
        assert max(node.score for node in search.nodes) == max(branch["score"])


@pytest.mark.parametrize("spec", SEARCHES)
def test_the_marked_path_leads_from_the_prompt_to_the_chosen_row(spec: str):
    trace = traced(spec)
    tree = read_tree(trace)
    above = None
    for search in tree.searches:
        assert sum(node.chosen for node in search.nodes) == 1
        assert search.path.kept > 0
        assert search.path.parent == above
        above = search.nodes.index(search.path)
    last = list(trace.replay())[-1].canvas.tokens[trace.end["chosen"]].tolist()
    assert list(tree.searches[-1].path.tokens) == last


def test_blocks_of_the_path_join_to_the_answer():
    trace = traced(SEARCHES[0])
    tree = read_tree(trace)
    assert "".join(search.path.text for search in tree.searches).split("∎")[0] == tree.answer
    gains = [search.path.gain for search in tree.searches]
    assert sum(gains) == pytest.approx(tree.searches[-1].path.score, abs=1e-5)


def test_nodes_of_one_parent_are_distinct_and_children_stand_in_their_parents_order():
    for search in read_tree(traced(SEARCHES[0])).searches:
        keys = [(node.parent, node.tokens) for node in search.nodes]
        assert len(keys) == len(set(keys))
        places = [-1 if node.parent is None else node.parent for node in search.nodes]
        assert places == sorted(places)


def test_another_decoder_stands_beside_with_its_own_words():
    trace, other = traced(SEARCHES[0]), traced("low-confidence")
    beside = read_tree(trace, other).beside
    assert beside is not None
    texts, logp, met = zip(*beside.parts, strict=True)
    assert "".join(texts).split("∎")[0] == other.end["texts"][0]
    assert sum(logp) == pytest.approx(other.steps[-1]["score"][0], abs=1e-5)
    assert set(met) <= {"kept", "pruned", "never drawn"}
    same = read_tree(trace, trace).beside
    assert same is not None
    assert [met for *_, met in same.parts] == ["kept", "kept"]


def test_pictures_are_the_same_bytes_in_both_forms():
    for kind, head in (("svg", b"<?xml"), ("png", b"\x89PNG")):
        first, second = (tree_image(read_tree(traced(SEARCHES[0]), traced("low-confidence")), kind) for _ in range(2))
        assert first == second
        assert first.startswith(head)
        assert b"<dc:date>" not in first


def test_the_text_form_has_a_line_for_every_node():
    trace = traced(SEARCHES[0])
    text = describe(read_tree(trace, traced("low-confidence")))
    nodes = sum(len(search.nodes) for search in read_tree(trace).searches)
    assert sum(line.lstrip("│ ")[:2] in ("├●", "└●", "├○", "└○", "├·", "└·") for line in text.splitlines()) == nodes
    assert sum("●" in line for line in text.splitlines()) == 2
    assert max(map(len, describe(read_tree(trace), width=30).splitlines())) <= 30


def test_a_text_in_a_trace_cannot_steer_a_terminal():
    trace = traced(SEARCHES[0])
    words = dict.fromkeys(trace.end["words"], "\x1b[2J")
    hostile = Trace({**trace.header, "prompt": "\x1b]0;x"}, trace.steps, {**trace.end, "words": words})
    assert "\x1b" not in describe(read_tree(hostile))


@pytest.mark.parametrize(
    ("act", "sentence"),
    [
        (
            lambda path: read_tree(traced("low-confidence")),
            "low-confidence has no tree: .* `unmask view` plays this trace",
        ),
        (lambda path: read_tree(traced("search")), "search has no tree: "),
        (lambda path: kind_of(path / "a.pgn"), "did you mean '.png'"),
        (lambda path: keep(b"", path / "no" / "a.svg"), "cannot be written"),
        (lambda path: read_tree(traced(SEARCHES[0]), traced("low-confidence", prompt="ab")), "different prompts"),
        (lambda path: read_tree(Trace({}, [], {})), "incomplete or damaged"),
        (lambda path: tree_image(read_tree(traced("order-search", length=14)), "svg"), "at most 12 searches, got 14"),
    ],
)
def test_what_cannot_be_drawn_is_refused_in_a_sentence(act: Callable[[Path], object], sentence: str, tmp_path: Path):
    with pytest.raises(UnmaskError, match=sentence):
        act(tmp_path)
