"""Training: batches, objective, resuming; and that a small model learns."""

import dataclasses
import json
from pathlib import Path

import pytest
import torch

from unmask.decoders import LowConfidence
from unmask.errors import UnmaskError
from unmask.models import load, load_folder
from unmask.models.checkpoints.weights import token_id
from unmask.models.network.transformer import Shape
from unmask.training import make, recipe
from unmask.training.batches import LEAST, batches, corrupt
from unmask.training.make import grade_all
from unmask.training.recipe import END, MASK, RECIPES, TINY, Share, learn

SMALL = dataclasses.replace(
    recipe("nano"),
    shape=Shape(width=32, layers=1, heads=2, hidden=32, vocab=320, context=128, theta=10_000.0),
    steps=6,
    tokens=512,
    problems=2,
)
CPU = torch.device("cpu")


def test_every_digit_and_operator_is_one_token_and_text_comes_back_as_it_was() -> None:
    families = [share.task("train") for share in TINY.mix]
    tokenizer = learn(families, texts=2_000, vocab=TINY.vocab)
    assert tokenizer.get_vocab_size() <= 2048
    text = 'Numbers: [87, 28]\n12*-3=4%5 <answer>\\boxed{x^2}</answer>\n    return "ü"'
    assert tokenizer.decode(tokenizer.encode(text).ids, skip_special_tokens=False) == text
    digits = list(tokenizer.encode("1234567890").tokens)
    assert digits == list("1234567890")
    assert tokenizer.encode("<answer>").ids == [token_id(tokenizer, "<answer>")]


def test_rows_hold_a_prompt_and_its_answer_filled_with_end_tokens() -> None:
    tokenizer = learn([share.task("train") for share in SMALL.mix], texts=200, vocab=SMALL.vocab)
    tokens, starts = next(batches(SMALL, tokenizer, stream=0, workers=0))
    assert tokens.shape == (SMALL.tokens // SMALL.widths[0], SMALL.widths[0])
    end = token_id(tokenizer, END)
    for row, start in zip(tokens.tolist(), starts.tolist(), strict=True):
        prompt, answer = tokenizer.decode(row[:start]), [token for token in row[start:] if token != end]
        assert prompt.startswith("Solve the following Sudoku puzzle: ")
        assert prompt.endswith("\n")
        assert tokenizer.decode(answer).endswith("</answer>")
        assert row[start + len(answer) :] == [end] * (len(row) - start - len(answer))


def test_only_answers_are_masked_and_as_often_as_the_row_says() -> None:
    tokens = torch.full((512, 96), 7)
    starts = torch.full((512,), 32)
    noisy, masked, weight = corrupt(tokens, starts, mask_id=1, generator=torch.Generator().manual_seed(0))
    assert not masked[:, :32].any()
    assert torch.equal(noisy == 1, masked)
    share = masked[:, 32:].double().mean(1)
    assert (share - 1 / weight[:, 0]).abs().max() < 0.3  # 64 positions per row: four standard errors are 0.25
    assert pytest.approx(float(share.mean()), abs=0.02) == 0.5 * (1 + LEAST)


def test_a_stopped_training_resumes(tmp_path: Path) -> None:
    assert make(SMALL, tmp_path, CPU, steps=4) is None
    folder = make(SMALL, tmp_path, CPU)
    assert folder is not None
    log = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert [entry["step"] for entry in log] == [1, 2, 3, 4, 5, 6]
    assert log[-1].keys() >= {"loss", "seconds", "accuracy", "headroom"}
    assert (tmp_path / "curves.svg").read_text().startswith("<?xml")
    model = load_folder(folder)
    assert model.default_length == SMALL.length
    record = json.loads((folder / "training.json").read_text())
    assert record["recipe"]["steps"] == 6


def test_the_same_seed_gives_the_same_weights(tmp_path: Path) -> None:
    folders = [make(SMALL, tmp_path / name, CPU) for name in ("a", "b")]
    contents = [(folder / "model.safetensors").read_bytes() for folder in folders if folder]
    assert len(contents) == 2
    assert contents[0] == contents[1]


def test_a_folder_of_a_different_recipe_is_refused(tmp_path: Path) -> None:
    make(SMALL, tmp_path, CPU, steps=1)
    with pytest.raises(UnmaskError, match="different recipe"):
        make(dataclasses.replace(SMALL, rate=1e-4), tmp_path, CPU)


def test_an_unknown_recipe_is_answered_with_the_nearest() -> None:
    with pytest.raises(UnmaskError, match="did you mean 'tiny'"):
        recipe("tinny")


def test_recipes_fit_their_shapes() -> None:
    for record in RECIPES.values():
        assert max(record.widths) <= record.shape.context
        assert record.vocab <= record.shape.vocab
    assert TINY.shape.parameters <= 15_000_000


@pytest.mark.slow
def test_the_embedded_model_is_small_and_solves_countdown_it_never_saw() -> None:
    model = load("tiny")
    folder = Path(__file__).parents[2] / "unmask" / "models" / "tiny_weights"
    sizes = [path.stat().st_size for path in folder.iterdir()]
    assert max(sizes) <= 15 * 2**20
    assert sum(sizes) <= 30 * 2**20
    task = Share("countdown", 3).task("validation")
    assert grade_all(model, task, 8, LowConfidence(), 64).count([True]) >= 4


def test_the_embedded_model_records_its_recipe() -> None:
    folder = Path(__file__).parents[2] / "unmask" / "models" / "tiny_weights"
    record = json.loads((folder / "training.json").read_text())
    assert record["recipe"]["name"] == "tiny"
    config = json.loads((folder / "tokenizer_config.json").read_text())
    assert (config["mask_token"], config["eos_token"]) == (MASK, END)


@pytest.mark.slow
def test_a_nano_model_learns_its_task(tmp_path: Path) -> None:
    nano = recipe("nano")
    folder = make(nano, tmp_path, CPU)
    assert folder is not None
    task = nano.watch[0].task("validation")
    right = grade_all(load_folder(folder), task, nano.problems, LowConfidence(), nano.length).count([True])
    assert right > 0.25 * nano.problems  # four blanks filled by chance: 1 in 256
