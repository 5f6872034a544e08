"""Which of the final rows is the answer."""

import pytest

from unmask.errors import UnmaskError
from unmask.policies.choice import choose


def test_the_highest_score_wins_and_ties_go_to_the_first_row():
    assert choose("score", [-2.0, -1.0, -1.0], ["a", "b", "c"]) == 1


def test_the_commonest_key_wins_and_ties_go_to_the_key_seen_first():
    assert choose("majority", [0.0, 0.0, 0.0], ["a", "b", "b"]) == 1
    assert choose("majority", [-9.0, 0.0, 0.0, -9.0], ["a", "b", "b", "a"]) == 0


def test_weights_are_probabilities():
    assert choose("weighted", [-1.0, -1.5, -1.6], ["a", "b", "b"]) == 1  # e^-1.5 + e^-1.6 > e^-1
    assert choose("weighted", [-1.0, -3.0, -3.0], ["a", "b", "b"]) == 0
    assert choose("weighted", [-1000.0, -1000.5, -1000.6], ["a", "b", "b"]) == 1  # far below the smallest float
    assert choose("weighted", [float("-inf")] * 2, ["a", "b"]) == 0


def test_an_unknown_choice_is_refused():
    with pytest.raises(UnmaskError, match=r"unknown choice 'majorty': did you mean 'majority'\?"):
        choose("majorty", [0.0], ["a"])
