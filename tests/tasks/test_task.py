"""Options become settings of the tasks that have them."""

import pytest

from unmask.errors import UnmaskError
from unmask.tasks import MBPP, Countdown, CountdownD1, configure


def test_an_option_is_set_on_the_tasks_that_have_it():
    tasks = configure(["countdown(level=3)", "mbpp"], allow_code=True, sandbox="rlimits")
    assert tasks == [Countdown(level=3), MBPP(allow_code=True, sandbox="rlimits")]


def test_none_means_not_given():
    assert configure(["mbpp(allow-code=true)"], allow_code=None, prompts=None) == [MBPP(allow_code=True)]
    assert configure([]) == []


def test_prompts_are_set_on_every_task():
    assert configure(["countdown-d1", "mbpp"], prompts="p.json") == [CountdownD1(prompts="p.json"), MBPP("p.json")]


@pytest.mark.parametrize(
    ("specs", "options", "fragment"),
    [
        (["gsm8k", "countdown"], {"allow_code": True}, "'gsm8k' has no setting for --allow-code"),
        (["gsm8k", "sudoku"], {"prompts": "p.json"}, "'sudoku' has no setting for --prompts"),
    ],
)
def test_an_option_without_a_task_for_it_is_refused(specs: list[str], options: dict, fragment: str):
    with pytest.raises(UnmaskError, match=fragment):
        configure(specs, **options)
