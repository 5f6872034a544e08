"""What is measured: one network's weights, and the prompts that every contender decodes."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice

import torch
from torch import Tensor

from unmask.bench.cases import Sizes
from unmask.bench.measurement import Tokens
from unmask.core import Canvas, Denoiser
from unmask.errors import UnmaskError
from unmask.models import Model
from unmask.models.checkpoints.random_weights import random_denoiser
from unmask.models.load import compile_layers
from unmask.models.network.network import Network, make_network
from unmask.runs.text import read_prompt
from unmask.tasks import Countdown, Task


@dataclass(frozen=True)
class Subject:
    name: str  # of the model or the shape
    denoiser: Denoiser = field(repr=False)
    model: Model | None = field(default=None, repr=False)  # None for random weights, which cannot read text
    steps_per_block: float | None = None  # for threshold writing with random weights (see replay.py)

    @classmethod
    def of_shape(cls, name: str, device: str, dtype: str | None) -> Subject:
        return cls(name, random_denoiser(name, device, dtype))

    @classmethod
    def of_model(cls, model: Model) -> Subject:
        return cls(model.name, model.denoiser, model)

    def __post_init__(self) -> None:
        _ = self.network  # raises if there is none

    @property
    def network(self) -> Network:
        if not isinstance(self.denoiser, Network):
            raise UnmaskError(f"{self.name} is not a transformer: choose tiny, a folder or a --shape")
        return self.denoiser

    @cached_property
    def compiled(self) -> Denoiser:
        """The same weights in a second module, whose layers are compiled."""
        module = self.network.module
        shared = copy.deepcopy(module, {id(weight): weight for weight in module.parameters()})
        network = make_network(shared, self.network.mask_id, self.network.shifted)
        compile_layers(network, self.name)
        return network

    @property
    def device(self) -> torch.device:
        return self.denoiser.device

    @property
    def weight_dtype(self) -> torch.dtype:
        return self.network.module.embed.weight.dtype

    def prompts(self, sizes: Sizes) -> Tokens:
        if sizes.prompt is not None:
            return self.random_ids(sizes.problems, sizes.prompt, seed=0)
        return self.task_prompts(Countdown(split="validation"), sizes.problems)

    def task_prompts(self, task: Task, problems: int) -> Tokens:
        if self.model is None:
            raise UnmaskError("random weights cannot read text: give the number of prompt tokens")
        return [list(read_prompt(self.model, task.messages(item)).ids) for item in islice(task.problems(), problems)]

    def random_ids(self, rows: int, count: int, seed: int) -> Tokens:
        """Any tokens but the mask."""
        generator = torch.Generator().manual_seed(seed)
        ids = torch.randint(self.network.module.shape.vocab - 1, (rows, count), generator=generator)
        return (ids + (ids >= self.denoiser.mask_id)).tolist()

    def canvas(self, prompts: Tokens, length: int) -> Canvas:
        denoiser = self.denoiser
        return Canvas.blank(prompts, length, denoiser.mask_id, device=self.device, dtype=denoiser.dtype)

    def forward(self, tokens: Tensor) -> Tensor:
        """Logits at every position, as the published loops call their model."""
        module = self.network.module
        hidden = module(tokens)
        logits = module.logits(hidden.flatten(0, 1)).unflatten(0, tokens.shape)
        return torch.cat([logits[:, :1], logits[:, :-1]], dim=1) if self.network.shifted else logits
