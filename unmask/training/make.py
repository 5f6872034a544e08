"""From a recipe to a folder with a model in it: tokenizer, slices of training, log, curves, weights."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import torch
from tokenizers import Tokenizer

from unmask.decoders import BestOf, LowConfidence
from unmask.errors import UnmaskError
from unmask.models import Model
from unmask.models.checkpoint import save_folder, write_json
from unmask.models.network import Network
from unmask.models.text import Subwords
from unmask.tasks import Problem, Task
from unmask.training.evaluate import tally
from unmask.training.plot import draw_curves
from unmask.training.recipe import Recipe
from unmask.training.tokenizer import END, MASK, learn, special
from unmask.training.train import Run, resume, save, train
from unmask.version import __version__

MODEL = "model"  # the folder of the finished model
SHARD = 15 * 2**20  # the most bytes of a file of weights
TEMPLATE = "{% for message in messages %}{{ message['content'] + '\n' }}{% endfor %}"  # plain text, a line each
COVER = 8  # samples of the coverage that is watched

Report = Callable[[dict[str, Any]], None]


def make(
    recipe: Recipe,
    out: Path,
    device: torch.device,
    *,
    workers: int = 0,
    steps: int | None = None,
    report: Report = lambda entry: None,
) -> Path | None:
    """Train for `steps` more (all that are left by default); the model's folder, once the recipe has run to its end."""
    out.mkdir(parents=True, exist_ok=True)
    tokenizer = _tokenizer(recipe, out)
    run = resume(recipe, device, out)
    often = max(1, recipe.steps // 100)
    watched = drawn(recipe)

    def watch(run: Run) -> None:
        entry = run.history[-1]
        if run.step * recipe.looks // recipe.steps > (run.step - often) * recipe.looks // recipe.steps:
            entry |= measure(model_of(run, tokenizer), watched)
            save(run, out)
        report(entry)
        _write_log(run, out)

    train(run, tokenizer, recipe.steps if steps is None else steps, workers, watch, every=often)
    save(run, out)
    _write_log(run, out)
    if run.step < recipe.steps:
        return None
    draw_curves(run.history, out / "curves.svg")
    return _finish(run, tokenizer, out / MODEL)


def _finish(run: Run, tokenizer: Tokenizer, folder: Path) -> Path:
    """The averaged weights in LLaDA's format, with what made them beside."""
    length = run.recipe.length
    save_folder(run.average, tokenizer, folder, mask=MASK, eos=END, template=TEMPLATE, shard=SHARD, length=length)
    device = run.average.embed.weight.device
    made = {
        "unmask": __version__,
        "torch": torch.__version__,
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else device.type,
        "seconds": round(run.seconds, 1),
        "recipe": asdict(run.recipe),
    }
    write_json(folder / "training.json", made)
    return folder


def model_of(run: Run, tokenizer: Tokenizer) -> Model:
    """The averaged weights as a model, in float32."""
    network = Network(run.average, special(tokenizer, MASK))
    return Model(run.recipe.name, network, Subwords(tokenizer, TEMPLATE), frozenset({special(tokenizer, END)}))


class Watched(NamedTuple):
    """Validation problems of one share, drawn once."""

    name: str
    task: Task
    problems: list[Problem]
    length: int


def drawn(recipe: Recipe) -> list[Watched]:
    every = []
    for share in recipe.watch:
        task = share.task("validation")
        problems = list(islice(task.problems(), recipe.problems))
        every.append(Watched(f"{share.family}({share.level})", task, problems, share.length or recipe.length))
    return every


def measure(model: Model, every: list[Watched]) -> dict[str, Any]:
    """Accuracy by low-confidence, and the headroom a search has: pass@1 and pass@8 of tempered samples.

    A look while training, not a result: on a GPU its products are TF32.
    """
    precision = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")
    accuracy, headroom = {}, {}
    for name, task, problems, length in every:
        accuracy[name] = tally(model, task, problems, LowConfidence(), length).accuracy
        sampled = tally(model, task, problems, BestOf(COVER, LowConfidence(temperature=0.8)), length).every
        once = sum(map(sum, sampled)) / (COVER * len(problems))
        headroom[name] = {"pass@1": once, f"pass@{COVER}": sum(map(any, sampled)) / len(problems)}
    torch.set_float32_matmul_precision(precision)
    return {"accuracy": accuracy, "headroom": headroom}


def _tokenizer(recipe: Recipe, out: Path) -> Tokenizer:
    path = out / "tokenizer.json"
    if path.exists():
        return Tokenizer.from_file(str(path))
    tokenizer = learn([share.task("train") for share in recipe.mix], vocab=recipe.vocab, seed=recipe.seed)
    if tokenizer.get_vocab_size() > recipe.shape.vocab:
        raise UnmaskError(f"{tokenizer.get_vocab_size()} tokens do not fit the shape's vocab={recipe.shape.vocab}")
    tokenizer.save(str(path))
    return tokenizer


def _write_log(run: Run, out: Path) -> None:
    (out / "log.jsonl").write_text("".join(json.dumps(entry) + "\n" for entry in run.history))
