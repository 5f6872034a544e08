"""`unmask grade`: any order, any subset, one sentence for every mistake."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from unmask.errors import UnmaskError
from unmask.tasks import data as data_files
from unmask.tasks import grading, task
from unmask.tasks.generated.countdown import Countdown
from unmask.tasks.published.benchmark import load_wording
from unmask.tasks.task import Problem


def lines(problems, key: str = "id") -> list[str]:
    return [json.dumps({key: getattr(problem, key), "output": problem.gold}) for problem in problems]


@pytest.mark.parametrize("key", ["id", "question"])
def test_order_and_subset_are_free(data: Path, key: str):
    graded_task = task.make("gsm8k")
    some = list(graded_task.problems())[::-100]
    scores = grading.grade(graded_task, lines(some, key))
    assert [problem.id for problem in scores.problems] == [problem.id for problem in some]
    assert scores.accuracy == 100


def test_generated_families_are_graded_too():
    graded_task = task.make("countdown")
    stream = iter(graded_task.problems())
    some = [next(stream) for _ in range(20)]
    assert grading.grade(graded_task, lines(some)[::-1]).right == 20


def test_an_unknown_problem_of_an_endless_family_is_refused_before_all_are_searched(monkeypatch: pytest.MonkeyPatch):
    drawn: list[str] = []

    def problems(self: Countdown) -> Iterator[Problem]:
        for place in range(20_000):
            drawn.append(f"countdown-{place}")
            yield Problem(drawn[-1], str(place), "", {})

    monkeypatch.setattr(Countdown, "problems", problems)
    countdown = task.make("countdown")
    with pytest.raises(
        UnmaskError, match=r"no problem 'x': .*'countdown-0'; the settings of the task choose its problems"
    ):
        grading.match(countdown, grading.read(['{"id": "x", "output": ""}']))
    assert len(drawn) < 2_010
    far_apart = [f'{{"id": "countdown-{place}", "output": ""}}' for place in (1_900, 3_000, 19_999)]
    assert [problem.question for problem in grading.match(countdown, grading.read(far_apart))][-1] == "19999"


GOOD = '{"id": "countdown-d1/0", "output": ""}'


@pytest.mark.parametrize(
    ("file", "sentence"),
    [
        ([], "nothing to grade"),
        ([GOOD, "{"], "line 2 is not JSON"),
        (["[1]"], "line 1 has no text under"),
        (['{"id": "countdown-d1/0"}'], "line 1 has no text under"),
        (['{"output": "x"}'], "line 1 names no problem"),
        (["", '{"id": "countdown-d1/900", "output": ""}'], "line 2: this task has no problem 'countdown-d1/900'"),
        (['{"question": "What", "output": ""}'], "this task has no problem that asks 'What'"),
        ([GOOD, "", GOOD], "line 3 answers countdown-d1/0 again, after line 1"),
    ],
)
def test_a_mistake_in_the_file_is_named_with_its_line(data: Path, file: list[str], sentence: str):
    with pytest.raises(UnmaskError, match=sentence):
        grading.grade(task.make("countdown-d1"), file)


def test_a_question_that_two_problems_ask_needs_an_id(data: Path):
    graded_task = task.make("mbpp", allow_code=True, sandbox="rlimits")
    question = "Write a python function to count the number of squares in a rectangle."
    with pytest.raises(UnmaskError, match="use the id instead"):
        grading.grade(graded_task, [json.dumps({"question": question, "output": ""})])


def test_the_command_ends_with_the_accuracy(data: Path, tmp_path: Path, command, monkeypatch):
    some = list(task.make("sudoku-d1").problems())[:4]
    file = tmp_path / "outputs.jsonl"
    file.write_text("\n".join([*lines(some[:3]), json.dumps({"id": some[3].id, "output": ""})]))
    status, out, _ = command("grade", "--task", "sudoku-d1", "--metric", "d1", str(file))
    assert status == 0
    assert out.splitlines()[-1] == "accuracy 75.00 (n=4)"
    monkeypatch.delenv(data_files.VARIABLE)
    monkeypatch.setattr(sys, "stdin", file.open())
    _, out, _ = command("grade", "--task", "sudoku-d1", "--data", str(data), "--json", "-")
    scores = json.loads(out)
    assert scores["accuracy"] == 75
    assert [result["id"] for result in scores["results"]] == [problem.id for problem in some]
    assert scores["results"][3] == {"id": some[3].id, "right": False, "score": 0.0, "answer": None, "note": "no answer"}


def test_programs_are_refused_before_any_is_run(tmp_path: Path, command):
    file = tmp_path / "outputs.jsonl"
    file.write_text('{"id": "HumanEval/0", "output": "x"}\n')
    status, _, err = command("grade", "--task", "humaneval", str(file))
    assert status == 2
    assert "--allow-code" in err


def test_missing_files_say_where_to_put_them(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv(data_files.VARIABLE, str(tmp_path))
    with pytest.raises(UnmaskError, match=r"no gsm8k/test.jsonl .* --data DIR or UNMASK_DATA"):
        task.make("gsm8k").problems()
    monkeypatch.delenv(data_files.VARIABLE)
    with pytest.raises(UnmaskError, match=r"not on the hub: .* --data DIR or UNMASK_DATA"):
        task.make("countdown-d1").problems()


def test_the_hub_is_used_if_there_is_no_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.delenv(data_files.VARIABLE, raising=False)
    file = tmp_path / "test.jsonl"
    row = {"problem": "1+1?", "answer": "2", "subject": "Sums", "level": 1, "unique_id": "a"}
    file.write_text(json.dumps(row))
    requests = []

    def download(repo: str, name: str, repo_type: str) -> str:
        requests.append((repo, name, repo_type))
        return str(file)

    monkeypatch.setattr("huggingface_hub.hf_hub_download", download)
    assert [problem.id for problem in task.make("math500").problems()] == ["math500/a"]
    assert requests == [("HuggingFaceH4/MATH-500", "test.jsonl", "dataset")]

    def fail(*args: object, **kwargs: object) -> str:
        raise ConnectionError

    monkeypatch.setattr("huggingface_hub.hf_hub_download", fail)
    with pytest.raises(UnmaskError, match=r"could not be fetched .* --data DIR or UNMASK_DATA"):
        task.make("math500").problems()


def test_a_prompts_file_swaps_the_wording(tmp_path: Path):
    problem = next(iter(task.make("countdown").problems()))
    default = task.make("countdown-d1").messages(problem)
    assert [message["role"] for message in default] == ["user", "assistant"]
    assert default[0]["content"].endswith(problem.question)
    assert default[1]["content"] == "<reasoning>"
    file = tmp_path / "prompts.json"
    file.write_text(json.dumps({"system": "S", "question": "{target} from {numbers} in \\boxed{}", "prefill": ""}))
    replaced = task.make("countdown-d1", prompts=str(file)).messages(problem)
    content = f"S\n\n{problem.data['target']} from {problem.data['numbers']} in \\boxed{{}}"
    assert replaced == [{"role": "user", "content": content}]


def test_one_prompts_file_holds_the_wording_of_every_task(tmp_path: Path):
    file = tmp_path / "prompts.json"
    wordings = {name: {"system": f"S {name}", "prefill": ""} for name in ("gsm8k", "countdown-d1")}
    file.write_text(json.dumps(wordings))
    problem = next(iter(task.make("countdown").problems()))
    for name in wordings:
        (message,) = task.make(name, prompts=str(file)).messages(problem)
        assert message["content"] == f"S {name}\n\n{problem.question}"
    with pytest.raises(UnmaskError, match="no wording of 'math500': it has gsm8k, countdown-d1"):
        task.make("math500", prompts=str(file)).messages(problem)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("{", "not JSON"),
        ("[]", "not an object"),
        ('{"sytem": "x"}', "did you mean 'system'"),
        ('{"question": "x"}', "must contain"),
    ],
)
def test_a_bad_prompts_file_is_refused(tmp_path: Path, text: str, sentence: str):
    file = tmp_path / "prompts.json"
    file.write_text(text)
    with pytest.raises(UnmaskError, match=sentence):
        load_wording(str(file))
    with pytest.raises(UnmaskError, match="cannot be read"):
        load_wording(str(tmp_path / "nowhere.json"))
