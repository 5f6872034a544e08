"""Training batches, padded with end tokens to one of a few widths, and LLaDA's objective (arXiv 2502.09992, Eq. 3)."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from random import Random

import torch
import torch.nn.functional as F
from tokenizers import Tokenizer
from torch import Tensor
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

from unmask.models.checkpoints.weights import token_id
from unmask.models.network.transformer import Transformer
from unmask.training.recipe import END, Recipe

DRAWN = 512  # problems tokenised together
Batch = tuple[Tensor, Tensor]  # tokens (row, width), and where each row's answer starts


class BatchStream(IterableDataset[Batch]):
    """Endless batches of one width each, drawn by weight. Each worker of each stream draws its own problems."""

    def __init__(self, recipe: Recipe, tokenizer: Tokenizer, stream: int):
        self.recipe, self.tokenizer, self.stream = recipe, tokenizer, stream

    def __iter__(self) -> Iterator[Batch]:
        worker = get_worker_info()
        rng = Random(f"{self.recipe.name} {self.recipe.seed} {self.stream} {worker.id if worker else 0}")
        families = [share.task("train") for share in self.recipe.mix]
        weights = [share.weight for share in self.recipe.mix]
        waiting: dict[int, list[tuple[list[int], int]]] = {width: [] for width in self.recipe.widths}
        end = token_id(self.tokenizer, END)
        while True:
            drawn = [family.draw(rng) for family in rng.choices(families, weights, k=DRAWN)]
            prompts = self.tokenizer.encode_batch([f"{problem.question}\n" for problem in drawn])
            golds = self.tokenizer.encode_batch([problem.gold for problem in drawn])
            for prompt, gold in zip(prompts, golds, strict=True):
                row = prompt.ids + gold.ids
                fits = [width for width in self.recipe.widths if width >= len(row)]
                if not fits:
                    continue
                # Half the rows are as narrow as possible; the rest teach longer tails of end tokens.
                width = fits[0] if rng.random() < 0.5 else rng.choice(fits)
                waiting[width].append((row + [end] * (width - len(row)), len(prompt.ids)))
                if len(waiting[width]) == self.recipe.tokens // width:
                    rows, starts = zip(*waiting[width], strict=True)
                    waiting[width] = []
                    yield torch.tensor(rows, dtype=torch.int16), torch.tensor(starts, dtype=torch.int16)


def batches(recipe: Recipe, tokenizer: Tokenizer, stream: int, workers: int) -> Iterator[Batch]:
    """Yield batches from workers in a fixed order, so that a seed gives the same batches."""
    dataset = BatchStream(recipe, tokenizer, stream)
    spawn = "spawn" if workers else None
    yield from DataLoader(
        dataset, batch_size=None, num_workers=workers, multiprocessing_context=spawn, worker_init_fn=_ignore_interrupt
    )


def _ignore_interrupt(worker: int) -> None:
    """Ignore Ctrl-C, which reaches every process of a terminal: the training process handles it."""
    del worker
    signal.signal(signal.SIGINT, signal.SIG_IGN)


LEAST = 0.02  # smallest t: below it a row rarely has a mask, and 1/t adds only variance


def corrupt(tokens: Tensor, starts: Tensor, mask_id: int, generator: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
    """Mask each answer token with its row's probability t; return corrupted tokens, mask and weights 1/t."""
    rows, width = tokens.shape
    device = tokens.device
    # Stratified: one t in each of n equal parts of [0, 1), which has less variance than independent draws.
    spread = torch.arange(rows, device=device) + torch.rand(1, device=device, generator=generator)
    t = LEAST + (1 - LEAST) * (spread[torch.randperm(rows, device=device, generator=generator)] / rows % 1)
    answer = torch.arange(width, device=device) >= starts[:, None]
    masked = answer & (torch.rand(rows, width, device=device, generator=generator) < t[:, None])
    return tokens.masked_fill(masked, mask_id), masked, (1 / t)[:, None].expand(rows, width)


def loss(module: Transformer, tokens: Tensor, starts: Tensor, mask_id: int, generator: torch.Generator) -> Tensor:
    """Return a bound on the negative log-likelihood per answer token, in nats: masked tokens weighted by 1/t."""
    noisy, masked, weight = corrupt(tokens, starts, mask_id, generator)
    hidden = module(noisy)[masked]
    each = F.cross_entropy(module.head(hidden).float(), tokens[masked], reduction="none")
    answers = (tokens.shape[1] - starts).sum()
    return (each * weight[masked]).sum() / answers
