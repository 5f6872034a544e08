"""`unmask demo` prints answers beside their signs at every width, and figures that come from the results."""

from itertools import islice

import pytest

from unmask.cli.demo import DECODERS, answer_table
from unmask.report import formats
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


@pytest.mark.parametrize("columns", [40, 80])
def test_a_sign_is_printed_beside_its_answer_at_every_width(columns: int, terminal):
    shown = terminal("stdout", columns)
    formats.terminal([answer_table(PROBLEMS, RESULTS)])
    text = "\n".join(shown.lines())
    assert max(map(len, shown.lines())) <= columns
    assert text.count("✓ 39-(80-(77-31))") == 3
    assert text.count("✗ 39-(80-(77-31))") == 3
    assert all(name in text for name in DECODERS)


def test_a_sentence_compares_the_decoders_at_their_cost():
    notes = " ".join(answer_table(PROBLEMS, RESULTS).notes)
    assert "search solved 2 of 2 with 106 forward passes per problem" in notes
    assert "Order-Token Search solved 0 with 160 (76 computed)" in notes
    assert "Order-Token Search is order-token-search(beams=4, temperature=1.0)" in notes
    assert "2 problems are too few" in notes
