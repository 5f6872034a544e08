"""lm-evaluation-harness on offline tasks: its figures are those of `unmask eval` and `unmask.score`."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

import unmask
import unmask.tasks
from unmask.errors import UnmaskError
from unmask.runs.store import read_run
from unmask.tasks import task

pytestmark = pytest.mark.slow


COUNTDOWN = "countdown(level=3, split=validation)"
DECODER = "low-confidence(block=32, steps=8, temperature=0.0)"
LIMIT = 6
CHOICES = [("abc", ["de", "fgfg", "a"]), ("gg", ["bb", "cc", "dd"]), ("a", ["a", "bcd", "ef"])]
TEXTS = ["abcdefgabc", "ggfe", "cab" * 20]

TASK = """
task: NAME
dataset_path: json
dataset_kwargs: {data_files: {test: DATA}}
test_split: test
"""
TASKS = {
    "local_countdown": """
output_type: generate_until
doc_to_text: "{{question}}"
doc_to_target: "{{gold}}"
generation_kwargs: {until: ["Numbers:"], do_sample: false, max_gen_toks: 64}
process_results: !function grade.process_results
metric_list: [{metric: acc, aggregation: mean, higher_is_better: true}]
""",
    "local_choice": """
output_type: multiple_choice
doc_to_text: "{{prompt}}"
doc_to_choice: "{{choices}}"
doc_to_target: "{{label}}"
target_delimiter: ""
metric_list: [{metric: acc, aggregation: mean, higher_is_better: true}]
""",
    "local_text": """
output_type: loglikelihood_rolling
doc_to_text: ""
doc_to_target: "{{text}}"
metric_list: [{metric: byte_perplexity}]
""",
}
GRADE = f"""
from unmask.tasks import Problem, task

SOURCE = task.make({COUNTDOWN!r})


def process_results(doc, results):
    problem = Problem(doc["id"], doc["question"], doc["gold"], {{"numbers": doc["numbers"], "target": doc["target"]}})
    return {{"acc": float(SOURCE.grade(problem, results[0]).right)}}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tasks")
    source = task.make(COUNTDOWN)
    problems = list(islice(source.problems(), LIMIT))
    rows = {
        "local_countdown": [
            {"id": each.id, "question": source.messages(each)[0]["content"], "gold": each.gold, **each.data}
            for each in problems
        ],
        "local_choice": [{"prompt": prompt, "choices": choices, "label": 1} for prompt, choices in CHOICES],
        "local_text": [{"text": text} for text in TEXTS],
    }
    for name, lines in rows.items():
        data = folder / f"{name}.jsonl"
        data.write_text("".join(json.dumps(line) + "\n" for line in lines))
        (folder / f"{name}.yaml").write_text(TASK.replace("NAME", name).replace("DATA", str(data)) + TASKS[name])
    (folder / "grade.py").write_text(GRADE)
    return folder


@pytest.fixture
def offline(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    for name, value in {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "HF_HOME": str(tmp_path / "hf")}.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def evaluate(folder: Path, offline: None):
    """`simple_evaluate` on one task; its result."""
    import lm_eval
    from lm_eval.tasks import TaskManager

    import unmask.integrations.lm_eval  # noqa: F401  registers the model

    def evaluate(task: str, arguments: dict[str, Any] | str, **options: Any) -> Any:
        manager = TaskManager(include_path=str(folder), include_defaults=False)
        run: Any = lm_eval.simple_evaluate
        return run("unmask", arguments, [task], task_manager=manager, bootstrap_iters=0, **options)

    return evaluate


@pytest.fixture(scope="module")
def accuracy(tmp_path_factory: pytest.TempPathFactory) -> tuple[float, int]:
    """Of `unmask eval` on the same problems, with its rows."""
    out = tmp_path_factory.mktemp("run")
    words = ["-m", "tiny", "-t", COUNTDOWN, "-d", DECODER, "-l", "64", "--limit", str(LIMIT), "--out", str(out / "r")]
    subprocess.run([sys.executable, "-m", "unmask", "eval", *words], check=True, capture_output=True)
    records = read_run(out / "r").records
    return sum(record.score or 0.0 for record in records) / LIMIT, sum(each.cost.forward_passes for each in records)


def test_generation_has_the_accuracy_and_rows_of_unmask_eval(evaluate, accuracy: tuple[float, int]):
    result = evaluate("local_countdown", f"pretrained=tiny,decoder={DECODER},length=64", apply_chat_template=True)
    assert 0 < accuracy[0] < 1
    assert result["results"]["local_countdown"]["acc,none"] == accuracy[0]
    told = result["config"]["unmask"]
    assert (told["decoder"], told["length"], told["seed"], told["unmask"]) == (DECODER, 64, 0, unmask.__version__)
    assert (told["cost"]["requests"], told["cost"]["forward_passes"]) == (LIMIT, accuracy[1])
    assert told["cost"]["positions"] > 0


def test_the_harnesss_own_command_line_says_the_same(
    folder: Path, offline: None, accuracy: tuple[float, int], tmp_path
):
    arguments = json.dumps({"pretrained": "tiny", "decoder": DECODER, "length": 64, "batch": 4})
    words = ["run", "--model", "unmask", "--model_args", arguments, "--include_path", str(folder)]
    words += ["--tasks", "local_countdown", "--apply_chat_template", "--output_path", str(tmp_path / "out")]
    command = [sys.executable, "-m", "unmask.integrations.lm_eval", *words]
    ran = subprocess.run(command, capture_output=True, text=True, env=dict(os.environ))
    assert ran.returncode == 0, ran.stderr
    [file] = (tmp_path / "out").rglob("results_*.json")
    result = json.loads(file.read_text())
    assert result["results"]["local_countdown"]["acc,none"] == accuracy[0]
    assert result["config"]["unmask"]["decoder"] == DECODER


@pytest.mark.parametrize("scorer", ["duel", "elbo(n=8)", "interleaved(combs=2)"])
def test_multiple_choice_ranks_by_the_named_way(evaluate, scorer: str):
    result = evaluate("local_choice", {"pretrained": "toy-chain", "scorer": scorer})
    wanted = [unmask.score("toy-chain", prompt, choices, scorer=scorer) for prompt, choices in CHOICES]
    told = [[value for [[value, _]] in sample["resps"]] for sample in result["samples"]["local_choice"]]
    assert told == [[each.logp for each in scores] for scores in wanted]
    best = [max(range(3), key=lambda n: scores[n].logp) for scores in wanted]
    assert result["results"]["local_choice"]["acc,none"] == sum(number == 1 for number in best) / len(best)
    greedy = [[flag for [[_, flag]] in sample["resps"]] for sample in result["samples"]["local_choice"]]
    exact = [unmask.score("toy-chain", prompt, choices) for prompt, choices in CHOICES]
    assert greedy == [[each.greedy for each in scores] for scores in exact]


def test_perplexity_is_that_of_the_score_and_long_texts_are_read_in_windows(evaluate):
    result = evaluate("local_text", {"pretrained": "toy-chain", "scorer": "duel(order=left-to-right)"})
    total = math.fsum(unmask.score("toy-chain", "", text, scorer="duel(order=left-to-right)").logp for text in TEXTS)
    wanted = math.exp(-total / sum(map(len, TEXTS)))
    assert result["results"]["local_text"]["byte_perplexity,none"] == pytest.approx(wanted, rel=1e-12)
    short = evaluate("local_text", {"pretrained": "toy-chain", "scorer": "duel(order=left-to-right)", "max_length": 8})
    told = [sample["resps"][0][0] for sample in short["samples"]["local_text"]]
    text, parts = TEXTS[2], [("", TEXTS[2][:8])]
    parts += [(text[start - 4 : start], text[start : start + 4]) for start in range(8, len(text), 4)]
    scores = [unmask.score("toy-chain", *part, scorer="duel(order=left-to-right)").logp for part in parts]
    assert told[2] == pytest.approx(sum(scores), abs=1e-9)


def test_a_response_cache_resumes_and_refuses_a_different_decoder(evaluate, tmp_path: Path):
    arguments = {"pretrained": "tiny", "decoder": DECODER, "length": 64, "batch": 2}
    cache = str(tmp_path / "responses")
    first = evaluate("local_countdown", arguments, use_cache=cache, limit=2)
    assert first["config"]["unmask"]["cost"]["requests"] == 2
    second = evaluate("local_countdown", arguments, use_cache=cache, limit=3)
    assert second["config"]["unmask"]["cost"]["requests"] == 1
    with pytest.raises(UnmaskError, match="the response cache has answers for a different decoder"):
        evaluate("local_countdown", arguments | {"decoder": "margin"}, use_cache=cache)


def test_requests_are_cut_at_until_repeated_under_their_own_seeds_and_refused_in_a_sentence(evaluate):
    from lm_eval.api.instance import Instance

    from unmask.integrations.lm_eval import UnmaskLM

    model = UnmaskLM("toy-chain", decoder="random", length=8, device="cuda:0", batch_size="auto")

    def ask(context: str, **kwargs: Any) -> Instance:
        return Instance("generate_until", {}, (context, kwargs), 0, ("t", 0, 2))

    warm = ask("abc", do_sample=True, temperature=1.0)
    texts = model.generate_until([warm, warm, ask("abc", until=["a"])], disable_tqdm=True)
    wanted = {"decoder": "random(temperature=1.0)", "length": 8}
    assert texts[:2] == [unmask.generate("toy-chain", "abc", seed=unmask.reseed(0, i), **wanted).text for i in range(2)]
    assert texts[0] != texts[1]
    assert "a" not in texts[2]
    for arguments, sentence in (
        ({"decoder": "ots(beams=2"}, "decoder=ots(beams=2 was cut at a comma or blank"),
        ({"pretrained": "toy-chian"}, "toy-chian"),
        ({"trust_remote_code": True}, "unknown argument 'trust_remote_code'"),
    ):
        with pytest.raises(UnmaskError) as refusal:
            evaluate("local_choice", {"pretrained": "toy-chain", **arguments})
        assert sentence in str(refusal.value)
