"""From a recipe to a folder with a model: tokenizer, training, log, curves, weights; and accuracy along the way."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from statistics import fmean
from typing import Any

import torch
from tokenizers import Tokenizer

from unmask.core import Decoder
from unmask.decoders import BestOf, LowConfidence
from unmask.errors import UnmaskError
from unmask.models import Model
from unmask.models.checkpoints.tokenizer import Subwords
from unmask.models.checkpoints.weights import save_folder, token_id, write_json
from unmask.models.network.network import Network
from unmask.report.plots import render
from unmask.runs.files import locked, make_folder, refusing, write_whole
from unmask.runs.generation import Generation
from unmask.runs.settings import Decoding
from unmask.runs.text import read_prompt
from unmask.tasks import Task
from unmask.training.loop import STATE, TrainingState, between_steps, resume, save, train
from unmask.training.recipe import END, MASK, Recipe, learn
from unmask.version import __version__

BATCH = 256  # problems decoded together


def grade_all(model: Model, task: Task, count: int, decoder: Decoder, length: int) -> list[list[bool]]:
    """Decode the first problems of a task; return for each whether its final hypotheses are right."""
    problems = list(islice(task.problems(), count))
    generation = Generation(model, Decoding(decoder, length), key=task.key)
    prompts = [read_prompt(model, task.messages(problem), length) for problem in problems]
    parts = [prompts[start : start + BATCH] for start in range(0, len(prompts), BATCH)]
    outputs = [output for part in parts for output in generation.outputs(part)]
    return [
        [task.grade(problem, row.text).right for row in output.hypotheses]
        for problem, output in zip(problems, outputs, strict=True)
    ]


def draw_curves(history: list[dict[str, Any]]) -> bytes:
    """Plot loss and decoding accuracy against steps."""
    measured = [entry for entry in history if "accuracy" in entry]

    def paint(figure: Any) -> None:
        left, right = figure.subplots(1, 2)
        left.plot([entry["step"] for entry in history], [entry["loss"] for entry in history])
        left.set(xlabel="step", ylabel="loss, nats per answer token", yscale="log", title="training problems")
        for name in measured[0]["accuracy"] if measured else ():
            steps = [entry["step"] for entry in measured]
            right.plot(steps, [100 * entry["accuracy"][name] for entry in measured], marker=".", label=name)
        right.set(xlabel="step", ylabel="right, %", ylim=(0, 100), title="validation problems, low-confidence")
        if measured:
            right.legend()

    return render(paint, (10.0, 3.6), "svg", "constrained")


TOKENIZER = "tokenizer.json"
MODEL = "model"  # folder of the finished model
SHARD = 15 * 2**20  # largest file of weights, in bytes
TEMPLATE = "{% for message in messages %}{{ message['content'] + '\n' }}{% endfor %}"  # one line per message
COVER = 8  # samples per problem when measuring pass@k


def make(
    recipe: Recipe,
    out: Path,
    device: torch.device,
    *,
    workers: int = 0,
    steps: int | None = None,
    report: Callable[[dict[str, Any]], None] = lambda entry: None,
) -> Path | None:
    """Train for `steps` more (all that are left by default); return the model's folder once the recipe is complete.

    Ctrl-C ends it after the current step, when the state has been saved.
    """
    every = max(1, recipe.steps // 100)

    def log() -> None:
        entry = state.history[-1]
        if state.step * recipe.looks // recipe.steps > (state.step - every) * recipe.looks // recipe.steps:
            entry |= measure(model_of(state, tokenizer), recipe)
            save(state, out)
        report(entry)
        _write_log(state, out)

    with refusing(out, "training", "the last state is still there"):
        make_folder(out, (TOKENIZER, STATE), "training")
        with locked(out):
            state, tokenizer = resume(recipe, device, out), _tokenizer(recipe, out)
            with between_steps() as stopped:
                train(state, tokenizer, recipe.steps if steps is None else steps, workers, log, every, stopped)
                save(state, out)
                _write_log(state, out)
            if stopped():
                raise KeyboardInterrupt
            return None if state.step < recipe.steps else _finish(state, tokenizer, out)


def _finish(state: TrainingState, tokenizer: Tokenizer, out: Path) -> Path:
    """Plot the curves, and save the averaged weights in LLaDA's format, with a record of their training."""
    write_whole(out / "curves.svg", draw_curves(state.history))
    folder, length = out / MODEL, state.recipe.length
    save_folder(state.average, tokenizer, folder, mask=MASK, eos=END, template=TEMPLATE, shard=SHARD, length=length)
    device = state.average.embed.weight.device
    record = {
        "unmask": __version__,
        "torch": torch.__version__,
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else device.type,
        "seconds": round(state.seconds, 1),
        "recipe": asdict(state.recipe),
    }
    write_json(folder / "training.json", record)
    return folder


def model_of(state: TrainingState, tokenizer: Tokenizer) -> Model:
    """Return the averaged weights as a model, in float32."""
    network = Network(state.average, token_id(tokenizer, MASK))
    return Model(state.recipe.name, network, Subwords(tokenizer, TEMPLATE), frozenset({token_id(tokenizer, END)}))


def measure(model: Model, recipe: Recipe) -> dict[str, Any]:
    """Return the accuracy of low-confidence, and the headroom of a search: pass@1 and pass@8 of samples.

    These figures guide training and are not results: on a GPU they are computed in TF32.
    """
    precision = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")
    accuracy, headroom = {}, {}
    for share in recipe.watch:
        name, task, length = f"{share.family}({share.level})", share.task("validation"), share.length or recipe.length
        greedy = grade_all(model, task, recipe.problems, LowConfidence(), length)
        samples = grade_all(model, task, recipe.problems, BestOf(COVER, LowConfidence(temperature=0.8)), length)
        accuracy[name] = fmean(map(any, greedy))
        headroom[name] = {"pass@1": fmean(map(fmean, samples)), f"pass@{COVER}": fmean(map(any, samples))}
    torch.set_float32_matmul_precision(precision)
    return {"accuracy": accuracy, "headroom": headroom}


def _tokenizer(recipe: Recipe, out: Path) -> Tokenizer:
    path = out / TOKENIZER
    if path.exists():
        return Tokenizer.from_file(str(path))
    tokenizer = learn([share.task("train") for share in recipe.mix], vocab=recipe.vocab, seed=recipe.seed)
    if tokenizer.get_vocab_size() > recipe.shape.vocab:
        raise UnmaskError(f"{tokenizer.get_vocab_size()} tokens do not fit the shape's vocab={recipe.shape.vocab}")
    tokenizer.save(str(path))
    return tokenizer


def _write_log(state: TrainingState, out: Path) -> None:
    write_whole(out / "log.jsonl", "".join(json.dumps(entry) + "\n" for entry in state.history))
