"""A benchmark's subject: the weights of one network, the prompts of every contender, and the cost of one run."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice

import torch
from torch import Tensor

from unmask.core import Canvas, Schedule
from unmask.errors import UnmaskError, check_between
from unmask.models import Model
from unmask.models.checkpoints.random_weights import random_denoiser
from unmask.models.load import compile_layers
from unmask.models.network.network import Network
from unmask.runs.text import read_prompt
from unmask.tasks import Countdown

Tokens = list[list[int]]  # prompt and answer of each problem
LARGEST = 1_000_000  # positions, beams or problems


# The comments beside the fields are also the help of the command line's options.
@dataclass(frozen=True)
class Sizes:
    problems: int = 1  # number of problems; the published loops decode them one by one, other contenders together
    prompt: int | None = None  # tokens of random prompts; default: 160 for a shape, else Countdown problems
    length: int = 256  # masks after the prompt; default: 256 for a shape, else 64
    block: int = 32  # masks per block
    steps: int | None = None  # total number of steps; default: half the masks
    beams: int = 4  # beams of the search
    temperature: float = 0.4  # temperature of the search's draws; a single path takes the likeliest token

    def __post_init__(self) -> None:
        for name in ("problems", "beams", "prompt", "length", "block"):
            check_between(1, LARGEST, **{name: getattr(self, name)})
        _ = self.schedule  # raises if the sizes do not fit together

    @property
    def schedule(self) -> Schedule:
        return Schedule.plan(self.length, self.block, self.steps)

    def along(self, axis: str, value: int) -> Sizes:
        """Return these sizes with a different value on one axis and the same number of steps per mask."""
        if axis == "length":
            steps = None if self.steps is None else max(1, round(self.steps * value / self.length))
            return replace(self, length=value, block=min(self.block, value), steps=steps)
        return replace(self, **{axis: value})

    def warm_up(self) -> Sizes:
        """Return the same shapes with two steps per block."""
        return replace(self, steps=min(self.length, 2 * len(self.schedule.quotas)))


@dataclass(frozen=True)
class Subject:
    """A network and its prompts."""

    name: str  # name of the model or the shape
    network: Network = field(repr=False)
    model: Model | None = field(default=None, repr=False)  # None for random weights, which cannot read text

    @classmethod
    def of_shape(cls, name: str, device: str, dtype: str | None) -> Subject:
        return cls(name, random_denoiser(name, device, dtype))

    @classmethod
    def of_model(cls, model: Model) -> Subject:
        if not isinstance(model.denoiser, Network):
            raise UnmaskError(f"{model.name} is not a transformer: choose tiny, a folder or a --shape")
        return cls(model.name, model.denoiser, model)

    @cached_property
    def compiled(self) -> Network:
        """Return the same weights in a second module, whose layers are compiled."""
        module = self.network.module
        shared = copy.deepcopy(module, {id(weight): weight for weight in module.parameters()})
        network = Network(shared, self.network.mask_id, self.network.shifted)
        compile_layers(network, self.name)
        return network

    def prompts(self, sizes: Sizes) -> Tokens:
        """Return random tokens, or Countdown problems if no prompt length is given."""
        if sizes.prompt is not None:
            return self.random_ids(sizes.problems, sizes.prompt, seed=0)
        if self.model is None:
            raise UnmaskError("random weights cannot read text: give the number of prompt tokens")
        task = Countdown(split="validation")
        problems = islice(task.problems(), sizes.problems)
        return [list(read_prompt(self.model, task.messages(problem)).ids) for problem in problems]

    def random_ids(self, rows: int, count: int, seed: int) -> Tokens:
        """Return random tokens other than the mask."""
        generator = torch.Generator().manual_seed(seed)
        ids = torch.randint(self.network.module.shape.vocab - 1, (rows, count), generator=generator)
        return (ids + (ids >= self.network.mask_id)).tolist()

    def canvas(self, prompts: Tokens, length: int) -> Canvas:
        network = self.network
        return Canvas.blank(prompts, length, network.mask_id, device=network.device, dtype=network.dtype)

    def forward(self, tokens: Tensor) -> Tensor:
        """Return the logits at every position, as the published loops call their model."""
        module = self.network.module
        hidden = module(tokens)
        logits = module.logits(hidden.flatten(0, 1)).unflatten(0, tokens.shape)
        return torch.cat([logits[:, :1], logits[:, :-1]], dim=1) if self.network.shifted else logits


@dataclass(frozen=True)
class Measurement:
    """The cost of one run; identical rows of a problem count once."""

    tokens: Tokens  # prompt and best answer of each problem
    calls: int
    forward_passes: int
    positions: int  # without padding
    seconds: float = 0.0
    memory: int = 0  # peak bytes above the baseline; 0 on a CPU


@torch.inference_mode()
def measure(run: Callable[[], Measurement], device: torch.device, baseline: int | None = None) -> Measurement:
    """Run once. `baseline` is the memory in bytes to subtract; by default, what is allocated before the run."""
    gpu = device.type == "cuda"
    if gpu:
        torch.cuda.synchronize(device)
        torch.cuda.reset_peak_memory_stats(device)
    before = allocated(device) if baseline is None else baseline
    began = now(device)
    measurement = run()
    if gpu:
        torch.cuda.synchronize(device)
    memory = torch.cuda.max_memory_allocated(device) - before if gpu else 0
    return replace(measurement, seconds=now(device) - began, memory=memory)


def now(device: torch.device) -> float:
    """Return seconds; on a CPU those of this process, over all its threads, which other processes do not affect."""
    return time.process_time() if device.type == "cpu" else time.perf_counter()


def allocated(device: torch.device) -> int:
    """Return the bytes allocated on the device; 0 on a CPU."""
    return torch.cuda.memory_allocated(device) if device.type == "cuda" else 0
