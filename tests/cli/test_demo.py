"""`unmask demo` prints answers beside their signs at every width, and figures that come from the results."""

from __future__ import annotations

import io
from itertools import islice

import pytest
from rich.console import Console

from unmask.cli.demo import DECODERS, show
from unmask.tasks import Countdown

PROBLEMS = list(islice(Countdown().problems(), 2))
COSTS = dict(zip(DECODERS.values(), ((32, 32), (160, 76), (106, 106)), strict=True))
RIGHT = dict(zip(DECODERS.values(), ((True, False), (False, False), (True, True)), strict=True))
RESULTS = [
    {
        "problem": problem.id,
        "decoder": spec,
        "answer": "39-(80-(77-31))",
        "right": RIGHT[spec][place],
        "forward_passes": COSTS[spec][0],
        "computed": COSTS[spec][1],
    }
    for spec in DECODERS.values()
    for place, problem in enumerate(PROBLEMS)
]


def screen(columns: int) -> str:
    text = io.StringIO()
    show(PROBLEMS, RESULTS, DECODERS, Console(file=text, width=columns, highlight=False))
    return text.getvalue()


@pytest.mark.parametrize("columns", [40, 80])
def test_a_sign_stands_beside_its_answer_and_no_name_is_broken(columns: int):
    text = screen(columns)
    assert max(map(len, text.splitlines())) <= columns
    assert text.count("✓ 39-(80-(77-31))") == 3
    assert text.count("✗ 39-(80-(77-31))") == 3
    assert all(name in text for name in DECODERS)


def test_a_sentence_says_who_solved_how_many_at_which_cost():
    words = " ".join(screen(80).split())
    assert (
        "search solved 2 of 2 with 106 forward passes per problem; low-confidence 1 with 32; "
        "Order-Token Search 0 with 160 (76 computed)." in words
    )
    assert "Order-Token Search is order-token-search(beams=4, temperature=1.0)" in words
    assert "2 problems are too few" in words
