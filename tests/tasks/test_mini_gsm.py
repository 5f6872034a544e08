"""Word problems: every line of the worked solution is true arithmetic on known numbers."""

import re
from itertools import islice

import pytest

from unmask.tasks import MiniGsm, Problem
from unmask.tasks.generated.countdown import evaluate
from unmask.tasks.generated.mini_gsm import sentences

PROBLEM = Problem("mini-gsm-0", "", "", {"result": 1200})


@pytest.mark.parametrize("level", MiniGsm.levels)
def test_lines_are_true_and_use_what_is_known(level):
    for problem in islice(MiniGsm(level=level).problems(), 100):
        *lines, last = problem.gold.split("\n")
        assert len(lines) == level
        answer = int(last.removeprefix("<answer>").removesuffix("</answer>"))
        words = {"half": 2, "third": 3, "quarter": 4, "fifth": 5}
        known = {int(number) for number in re.findall(r"\d+", problem.question)}
        known |= {number for word, number in words.items() if word in problem.question}
        backward = "at first?" in problem.question
        known |= {answer} if backward else set()
        for line in lines:
            left, right = line.split("=")
            value, used = evaluate(left)
            assert value == int(right) > 0
            assert set(used) <= known
            known.add(int(right))
        end = int(lines[-1].split("=")[1])
        assert f"{end}" in problem.question if backward else answer == end


def test_half_of_the_stories_ask_how_it_began():
    questions = [problem.question for problem in islice(MiniGsm(split="train").problems(), 400)]
    assert 130 < sum("at first?" in question for question in questions) < 270


def test_there_are_many_sentences_and_all_are_told():
    count = sum(len(s.openings) + len(s.turns) + len(s.ends) for s in sentences()[1])
    assert count > 80
    starts = {" ".join(p.question.split()[1:3]) for p in islice(MiniGsm(split="train").problems(), 2000)}
    assert len(starts) > 25


def test_no_placeholder_is_left():
    for problem in islice(MiniGsm(level=6, split="train").problems(), 500):
        assert not set("{}") & set(problem.question)
        assert "  " not in problem.question


@pytest.mark.parametrize("answer", ["1200", "1,200", "$1200", " 1200 "])
def test_numbers_are_read_as_people_write_them(answer):
    assert MiniGsm().grade(PROBLEM, f"<answer>{answer}</answer>").right


@pytest.mark.parametrize("answer", ["-1200", "12,00", "1200.5", "1 200", "12e2", "1200 or 1300", "١٢٠٠"])
def test_other_answers_are_wrong(answer):
    assert not MiniGsm().grade(PROBLEM, f"<answer>{answer}</answer>").right
