"""The training loop: bf16 and compiled on a GPU, an average of the weights, slices that go on where the last ended."""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer
from torch import Tensor, nn

from unmask.errors import UnmaskError
from unmask.models.transformer import Transformer
from unmask.training.data import batches
from unmask.training.objective import loss
from unmask.training.recipe import Recipe
from unmask.training.tokenizer import MASK, special

STATE = "state.pt"


@dataclass
class Run:
    """A training under way."""

    recipe: Recipe
    module: Transformer
    average: Transformer  # exponential moving average of the weights: what is shipped
    optimizers: list[torch.optim.Optimizer]
    generator: torch.Generator
    step: int = 0
    seconds: float = 0.0
    history: list[dict[str, Any]] = field(default_factory=list)


def start(recipe: Recipe, device: torch.device) -> Run:
    torch.manual_seed(recipe.seed)
    module = Transformer(recipe.shape)
    for name, weight in module.named_parameters():
        if weight.ndim == 2:
            deep = name.endswith(("out.weight", "down.weight"))
            nn.init.normal_(weight, std=0.02 / math.sqrt(2 * recipe.shape.layers) if deep else 0.02)
    module.to(device)
    average = copy.deepcopy(module).requires_grad_(False).eval()
    generator = torch.Generator(device).manual_seed(recipe.seed)
    return Run(recipe, module, average, _optimizers(module, recipe), generator)


def _optimizers(module: Transformer, recipe: Recipe) -> list[torch.optim.Optimizer]:
    """Muon for the matrices inside layers, AdamW for the rest."""
    inside = [weight for weight in module.layers.parameters() if weight.ndim == 2]
    known = {id(weight) for weight in inside}
    rest = [weight for weight in module.parameters() if id(weight) not in known]
    muon = torch.optim.Muon(inside, lr=recipe.rate, weight_decay=recipe.decay, adjust_lr_fn="match_rms_adamw")
    adam = torch.optim.AdamW(rest, lr=recipe.rate, betas=(0.9, 0.95), weight_decay=0.0)
    return [muon, adam]


def train(run: Run, tokenizer: Tokenizer, steps: int, workers: int, watch: Callable[[Run], None], every: int) -> None:
    """Take the run `steps` further, or to the recipe's end; `watch` looks in every so often and at the end."""
    recipe, device = run.recipe, run.module.embed.weight.device
    mask_id = special(tokenizer, MASK)
    if device.type == "cuda":
        for layer in run.module.layers:
            layer.compile(dynamic=False)
    # A slice draws from its own stream, so that one that goes on sees new problems.
    stream = batches(recipe, tokenizer, stream=run.step, workers=workers)
    began, sums = time.perf_counter() - run.seconds, []
    for _ in range(min(steps, recipe.steps - run.step)):
        tokens, starts = (part.to(device, torch.long, non_blocking=True) for part in next(stream))
        run.step += 1
        sums.append(_update(run, tokens, starts, mask_id))
        if run.step % every == 0 or run.step == recipe.steps:
            mean = float(torch.stack(sums).mean())
            if not math.isfinite(mean):
                raise UnmaskError(f"the loss is {mean} at step {run.step}: lower the recipe's rate of {recipe.rate}")
            run.seconds, sums = time.perf_counter() - began, []
            run.history.append({"step": run.step, "loss": round(mean, 5), "seconds": round(run.seconds, 1)})
            watch(run)
    run.seconds = time.perf_counter() - began


def _update(run: Run, tokens: Tensor, starts: Tensor, mask_id: int) -> Tensor:
    for optimizer in run.optimizers:
        for group in optimizer.param_groups:
            group["lr"] = run.recipe.rate * _shape(run.step, run.recipe)
    with torch.autocast("cuda", torch.bfloat16, enabled=tokens.is_cuda):
        value = loss(run.module, tokens, starts, mask_id, run.generator)
    value.backward()
    nn.utils.clip_grad_norm_(run.module.parameters(), 1.0)
    for optimizer in run.optimizers:
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    keep = min(run.recipe.ema, (1 + run.step) / (10 + run.step))
    with torch.no_grad():
        for kept, weight in zip(run.average.parameters(), run.module.parameters(), strict=True):
            kept.lerp_(weight, 1 - keep)
    return value.detach()


def _shape(step: int, recipe: Recipe) -> float:
    """Linear warm-up, then a cosine down to nothing."""
    if step < recipe.warmup:
        return step / recipe.warmup
    return 0.5 * (1 + math.cos(math.pi * (step - recipe.warmup) / max(1, recipe.steps - recipe.warmup)))


def save(run: Run, folder: Path) -> None:
    """Everything a later slice needs, written beside and moved into place."""
    folder.mkdir(parents=True, exist_ok=True)
    state = {
        "recipe": repr(run.recipe),
        "module": run.module.state_dict(),
        "average": run.average.state_dict(),
        "optimizers": [optimizer.state_dict() for optimizer in run.optimizers],
        "generator": run.generator.get_state(),
        "step": run.step,
        "seconds": run.seconds,
        "history": run.history,
    }
    torch.save(state, folder / f"{STATE}.new")
    (folder / f"{STATE}.new").rename(folder / STATE)


def resume(recipe: Recipe, device: torch.device, folder: Path) -> Run:
    """Where the last slice ended; a state of another recipe is refused."""
    run = start(recipe, device)
    if not (folder / STATE).exists():
        return run
    state = torch.load(folder / STATE, map_location=device, weights_only=True)
    if state["recipe"] != repr(recipe):
        raise UnmaskError(f"{folder} holds a training of another recipe: choose another folder, or remove {STATE}")
    run.module.load_state_dict(state["module"])
    run.average.load_state_dict(state["average"])
    for optimizer, kept in zip(run.optimizers, state["optimizers"], strict=True):
        optimizer.load_state_dict(kept)
    run.generator.set_state(state["generator"].cpu())
    run.step, run.seconds, run.history = state["step"], state["seconds"], state["history"]
    return run
