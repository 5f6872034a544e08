"""What every contender runs on: one network's weights, and the same prompts."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice

import torch
from torch import Tensor

from unmask.core import Canvas, Denoiser
from unmask.errors import UnmaskError
from unmask.models import Model
from unmask.models.adapters import Shifted
from unmask.models.load import compile_layers
from unmask.models.network import Network
from unmask.models.random_weights import random_denoiser
from unmask.models.transformer import Transformer
from unmask.runs.bench.plan import Sizes
from unmask.runs.prompt import read_prompt
from unmask.tasks import Countdown


@dataclass(frozen=True)
class Bed:
    name: str  # of the shape or the model
    denoiser: Denoiser = field(repr=False)
    model: Model | None = field(default=None, repr=False)  # None: random weights, which read no text
    replay: float | None = None  # steps a block that threshold writing takes, where the weights cannot be sure

    @classmethod
    def of_shape(cls, name: str, device: str, dtype: str | None) -> Bed:
        return cls(name, random_denoiser(name, device, dtype))

    @classmethod
    def of_model(cls, model: Model) -> Bed:
        made = cls(model.name, model.denoiser, model)
        _ = made.network  # refuses what has none
        return made

    @property
    def network(self) -> Network:
        inner = self.denoiser.inner if isinstance(self.denoiser, Shifted) else self.denoiser
        if not isinstance(inner, Network):
            raise UnmaskError(f"{self.name} is no transformer that can be measured: choose tiny, a folder or a --shape")
        return inner

    @cached_property
    def compiled(self) -> Denoiser:
        """The same weights, in layers compiled for the shapes they meet."""
        network = Network(twin(self.network.module), self.network.mask_id)
        compile_layers(network, self.name)
        return Shifted(network) if isinstance(self.denoiser, Shifted) else network

    @property
    def device(self) -> torch.device:
        return self.denoiser.device

    @property
    def weight_dtype(self) -> torch.dtype:
        return self.network.module.embed.weight.dtype

    def prompts(self, sizes: Sizes) -> list[list[int]]:
        if sizes.prompt is not None:
            return self.random_ids(sizes.problems, sizes.prompt, seed=0)
        if self.model is None:
            raise UnmaskError("random weights read no text: say how many tokens a prompt has")
        task = Countdown(split="validation")
        problems = islice(task.problems(), sizes.problems)
        return [list(read_prompt(self.model, task.messages(problem)).ids) for problem in problems]

    def random_ids(self, rows: int, count: int, seed: int) -> list[list[int]]:
        """Any tokens but the mask."""
        generator = torch.Generator().manual_seed(seed)
        ids = torch.randint(self.network.module.shape.vocab - 1, (rows, count), generator=generator)
        return (ids + (ids >= self.denoiser.mask_id)).tolist()

    def canvas(self, prompts: list[list[int]], length: int) -> Canvas:
        denoiser = self.denoiser
        return Canvas.blank(prompts, length, denoiser.mask_id, device=self.device, dtype=denoiser.dtype)

    def forward(self, tokens: Tensor) -> Tensor:
        """As the published loops call their model: rows as they are, logits at every position."""
        module = self.network.module
        hidden = module(tokens)
        logits = module.logits(hidden.flatten(0, 1)).unflatten(0, tokens.shape)
        return torch.cat([logits[:, :1], logits[:, :-1]], dim=1) if isinstance(self.denoiser, Shifted) else logits


def twin(module: Transformer) -> Transformer:
    """Another module round the same weights."""
    with torch.device("meta"):
        made = Transformer(module.shape)
    for path, part in made.named_modules():
        for name, _ in list(part.named_parameters(recurse=False)):
            part.register_parameter(name, module.get_submodule(path).get_parameter(name))
    return made
