"""The training loop, which can be stopped and resumed: bfloat16 and compiled layers on a GPU, averaged weights."""

from __future__ import annotations

import contextlib
import copy
import math
import signal
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import torch
from tokenizers import Tokenizer
from torch import Tensor, nn

from unmask.errors import UnmaskError
from unmask.models.checkpoints.weights import token_id
from unmask.models.network.transformer import Transformer
from unmask.training.batches import batches, loss
from unmask.training.recipe import MASK, Recipe


@contextlib.contextmanager
def between_steps() -> Iterator[Callable[[], bool]]:
    """Yield a function that returns True after Ctrl-C; a second Ctrl-C ends the process at once."""
    event = threading.Event()
    if threading.current_thread() is not threading.main_thread():  # only the main thread receives signals
        yield event.is_set
        return

    def stop(number: int, frame: FrameType | None) -> None:
        del number, frame
        event.set()
        signal.signal(signal.SIGINT, before)

    before = signal.signal(signal.SIGINT, stop)
    try:
        yield event.is_set
    finally:
        signal.signal(signal.SIGINT, before)


STATE = "state.pt"  # file of the saved training state


@dataclass
class TrainingState:
    recipe: Recipe
    module: Transformer
    average: Transformer  # exponential moving average of the weights, which becomes the model
    optimizers: list[torch.optim.Optimizer]
    generator: torch.Generator
    step: int = 0
    seconds: float = 0.0
    history: list[dict[str, Any]] = field(default_factory=list)


def start(recipe: Recipe, device: torch.device) -> TrainingState:
    torch.manual_seed(recipe.seed)
    module = Transformer(recipe.shape)
    for name, weight in module.named_parameters():
        if weight.ndim == 2:
            deep = name.endswith(("out.weight", "down.weight"))
            nn.init.normal_(weight, std=0.02 / math.sqrt(2 * recipe.shape.layers) if deep else 0.02)
    module.to(device)
    average = copy.deepcopy(module).requires_grad_(False).eval()
    generator = torch.Generator(device).manual_seed(recipe.seed)
    return TrainingState(recipe, module, average, _optimizers(module, recipe), generator)


def _optimizers(module: Transformer, recipe: Recipe) -> list[torch.optim.Optimizer]:
    """Return Muon for the matrices inside layers and AdamW for the other weights."""
    matrices = [weight for weight in module.layers.parameters() if weight.ndim == 2]
    ids = {id(weight) for weight in matrices}
    rest = [weight for weight in module.parameters() if id(weight) not in ids]
    muon = torch.optim.Muon(matrices, lr=recipe.rate, weight_decay=recipe.decay, adjust_lr_fn="match_rms_adamw")
    adam = torch.optim.AdamW(rest, lr=recipe.rate, betas=(0.9, 0.95), weight_decay=0.0)
    return [muon, adam]


def train(
    state: TrainingState,
    tokenizer: Tokenizer,
    steps: int,
    workers: int,
    report: Callable[[], None],
    every: int,
    stopped: Callable[[], bool],
) -> None:
    """Train for `steps` more, at most to the end of the recipe, or until `stopped()` is true between two steps.

    `report` is called every `every` steps and at the end.
    """
    recipe, device = state.recipe, state.module.embed.weight.device
    mask_id = token_id(tokenizer, MASK)
    if device.type == "cuda":
        for layer in state.module.layers:
            layer.compile(dynamic=False)
    # Each call draws from its own stream, so that a resumed training sees new problems.
    stream = batches(recipe, tokenizer, stream=state.step, workers=workers)
    started, losses = time.perf_counter() - state.seconds, []
    for _ in range(min(steps, recipe.steps - state.step)):
        tokens, starts = (part.to(device, torch.long, non_blocking=True) for part in next(stream))
        state.step += 1
        losses.append(_update(state, tokens, starts, mask_id))
        if state.step % every == 0 or state.step == recipe.steps:
            mean = float(torch.stack(losses).mean())
            if not math.isfinite(mean):
                raise UnmaskError(f"the loss is {mean} at step {state.step}: lower the recipe's rate of {recipe.rate}")
            state.seconds, losses = time.perf_counter() - started, []
            state.history.append({"step": state.step, "loss": round(mean, 5), "seconds": round(state.seconds, 1)})
            report()
        if stopped():
            break
    state.seconds = time.perf_counter() - started


def _update(state: TrainingState, tokens: Tensor, starts: Tensor, mask_id: int) -> Tensor:
    for optimizer in state.optimizers:
        for group in optimizer.param_groups:
            group["lr"] = state.recipe.rate * _rate(state.step, state.recipe)
    with torch.autocast("cuda", torch.bfloat16, enabled=tokens.is_cuda):
        value = loss(state.module, tokens, starts, mask_id, state.generator)
    value.backward()
    nn.utils.clip_grad_norm_(state.module.parameters(), 1.0)
    for optimizer in state.optimizers:
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    decay = min(state.recipe.ema, (1 + state.step) / (10 + state.step))
    with torch.no_grad():
        for average, weight in zip(state.average.parameters(), state.module.parameters(), strict=True):
            average.lerp_(weight, 1 - decay)
    return value.detach()


def _rate(step: int, recipe: Recipe) -> float:
    """Return the fraction of the full rate: linear warm-up, then a cosine down to zero."""
    if step < recipe.warmup:
        return step / recipe.warmup
    return 0.5 * (1 + math.cos(math.pi * (step - recipe.warmup) / max(1, recipe.steps - recipe.warmup)))


def save(state: TrainingState, folder: Path) -> None:
    """Write everything that resuming needs to a new file, then move it into place."""
    saved = {
        "recipe": repr(state.recipe),
        "module": state.module.state_dict(),
        "average": state.average.state_dict(),
        "optimizers": [optimizer.state_dict() for optimizer in state.optimizers],
        "generator": state.generator.get_state(),
        "step": state.step,
        "seconds": state.seconds,
        "history": state.history,
    }
    torch.save(saved, folder / f"{STATE}.new")
    (folder / f"{STATE}.new").rename(folder / STATE)


def resume(recipe: Recipe, device: torch.device, folder: Path) -> TrainingState:
    """Return the saved state of this recipe, or a new one; a state of a different recipe is refused."""
    state = start(recipe, device)
    if not (folder / STATE).exists():
        return state
    try:
        saved = torch.load(folder / STATE, map_location=device, weights_only=True)
    except Exception as error:  # torch raises many types of errors
        what = f"{str(folder / STATE)!r} cannot be read ({type(error).__name__})"
        raise UnmaskError(f"{what}: remove or restore it") from None
    if saved["recipe"] != repr(recipe):
        raise UnmaskError(f"{folder} has a training of a different recipe: use a new folder, or remove {STATE}")
    state.module.load_state_dict(saved["module"])
    state.average.load_state_dict(saved["average"])
    for optimizer, values in zip(state.optimizers, saved["optimizers"], strict=True):
        optimizer.load_state_dict(values)
    state.generator.set_state(saved["generator"].cpu())
    state.step, state.seconds, state.history = saved["step"], saved["seconds"], saved["history"]
    return state
