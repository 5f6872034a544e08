"""What is compared: the published loops written plainly, and this package's decoders with different savings. How many steps a block takes with threshold writing, measured on the embedded model.

Random weights are never confident. Threshold writing on a shape therefore takes as many steps per block as the embedded
model takes for blocks that hold text. Blocks of end-of-text alone would take fewer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any, Literal

import torch

from unmask.bench import reference_loops as plain
from unmask.bench.cases import Sizes
from unmask.bench.instruments import counted_forward, measured_decode
from unmask.bench.measurement import Measurement, Tokens
from unmask.bench.subject import Subject
from unmask.core import Canvas, Decoder, Frame, decode
from unmask.decoders import LowConfidence, OrderTokenSearch
from unmask.errors import UnmaskError, nearest
from unmask.models import load
from unmask.models.network.kv_cache import EXACT, cached
from unmask.tasks import Countdown, MiniGsm, MiniMath, Task, task

SURE = 0.9  # probability from which threshold writing writes
EVERY = 4  # steps between two refreshes of a refreshed cache

Kind = Literal["plain", "exact", "approximate", "without"]


def path(subject: Subject, sizes: Sizes) -> Decoder:
    del subject
    return LowConfidence(block=sizes.block, steps=sizes.steps)


def search(subject: Subject, sizes: Sizes) -> Decoder:
    del subject
    return OrderTokenSearch(sizes.beams, sizes.block, sizes.steps, sizes.temperature)


def threshold(subject: Subject, sizes: Sizes) -> Decoder:
    """With random weights nothing reaches the threshold: the number of steps is set instead."""
    steps, blocks, sure = sizes.steps, len(sizes.schedule.quotas), SURE
    if subject.steps_per_block is not None:
        steps = min(sizes.schedule.steps, max(blocks, round(subject.steps_per_block * blocks)))
        sure = 1.0
    return OrderTokenSearch(sizes.beams, sizes.block, steps, sizes.temperature, sure=sure)


@dataclass(frozen=True)
class Contender:
    about: str
    kind: Kind
    decoder: Callable[[Subject, Sizes], Decoder]
    cache: str = "none"
    compiled: bool = False
    batched: bool = True  # all problems together
    merged: bool = True  # identical rows computed once
    whole_head: bool = False

    @property
    def caches(self) -> bool:
        return self.cache != "none"

    def run(self, subject: Subject, prompts: Tokens, sizes: Sizes, seed: int, measurement: Measurement) -> Tokens:
        """The tokens of each problem's best row."""
        if self.kind == "plain":
            return self._run_plain(subject, prompts, sizes, seed, measurement)
        denoiser = cached(subject.compiled if self.compiled else subject.denoiser, self.cache, subject.name)
        decoder = self.decoder(subject, sizes)
        tokens: Tokens = []
        for batch in [prompts] if self.batched else [[prompt] for prompt in prompts]:
            canvas = subject.canvas(batch, sizes.length)
            tokens += measured_decode(decoder, denoiser, canvas, seed, measurement, self.merged, self.whole_head)
        return tokens

    def _run_plain(
        self, subject: Subject, prompts: Tokens, sizes: Sizes, seed: int, measurement: Measurement
    ) -> Tokens:
        forward, mask_id = counted_forward(subject.forward, measurement), subject.denoiser.mask_id
        settings: dict = {"block": sizes.block, "steps": sizes.steps, "seed": seed, "device": subject.device}
        loop = plain.one_path
        if self.decoder is search:
            loop = plain.order_token_search
            settings |= {"beams": sizes.beams, "temperature": sizes.temperature, "rows_at_once": sizes.beams}
        return [loop(forward, prompt, sizes.length, mask_id, **settings).tokens for prompt in prompts]


def _compiled(contenders: dict[str, Contender]) -> dict[str, Contender]:
    return {
        f"{name}-compiled": replace(contender, about=f"{name} with compiled layers", compiled=True)
        for name, contender in contenders.items()
    }


_PAGED = {
    "path-exact": Contender("path with the exact cache of a block-causal model", "exact", path, EXACT),
    "ots-exact": Contender("ots with the exact cache of a block-causal model", "exact", search, EXACT),
}
_SEARCH = Contender("Order-Token Search with every exact saving", "exact", search)
_WITHOUT = replace(_SEARCH, kind="without", batched=False)
_CACHED = {
    "ots-cached": Contender(
        "ots with a KV cache outside the block, and of the prefix while scoring", "approximate", search, "dual"
    ),
    "ots-cached-threshold": Contender(
        f"ots-cached, writing every draw of probability {SURE:g} or more at once", "approximate", threshold, "dual"
    ),
    "ots-cached-refreshed": Contender(
        f"ots-cached with the cache refreshed every {EVERY} steps", "approximate", search, f"dual(refresh={EVERY})"
    ),
}
CONTENDERS: dict[str, Contender] = {
    "plain-path": Contender("the published low-confidence loop: one row per call, all logits", "plain", path),
    "plain-ots": Contender("Algorithm 1 written plainly: K rows per call, all logits", "plain", search),
    "path": Contender("low-confidence remasking", "exact", path),
    "ots": _SEARCH,
    **_compiled({"ots": _SEARCH}),
    **_PAGED,
    **_compiled(_PAGED),
    "path-cached": Contender("path with a KV cache outside the block", "approximate", path, "dual"),
    **_CACHED,
    **_compiled(_CACHED),
    "ots-alone": replace(_WITHOUT, about="ots, one problem at a time"),
    "ots-unmerged": replace(_WITHOUT, about="ots-alone, computing identical rows separately", merged=False),
    "ots-whole-head": replace(_WITHOUT, about="ots-unmerged, computing all logits", merged=False, whole_head=True),
}


def fitting(names: Sequence[str], block_causal: bool) -> tuple[str, ...]:
    """Those of the contenders whose cache the model has."""
    caches = {name: CONTENDERS[name].cache for name in names}
    return tuple(name for name in names if caches[name] == "none" or (caches[name] == EXACT) == block_causal)


def choose(names: Sequence[str], device: torch.device) -> tuple[str, ...]:
    """These contenders, or the default ones: on a CPU each saving by itself, on a GPU compiled layers."""
    for name in names:
        if name not in CONTENDERS:
            raise UnmaskError(f"unknown contender {name!r}: {nearest(name, CONTENDERS)}")
    cpu = device.type == "cpu"
    usual = [name for name, entry in CONTENDERS.items() if not (entry.compiled if cpu else entry.kind == "without")]
    return tuple(name for name in CONTENDERS if name in (names or usual))


LENGTH = 64
TASKS: tuple[Task, ...] = (
    Countdown(level=4, split="validation"),
    MiniGsm(split="validation"),
    MiniMath(split="validation"),
)


def observe(decoder: Decoder, device: torch.device, problems: int, seed: int = 0) -> dict[str, Any]:
    """Counts of steps per block and of positions written per step, over `problems` of each task."""
    model = load("tiny", device, torch.float32)
    subject = Subject.of_model(model)
    steps: Counter[int] = Counter()
    ended: Counter[int] = Counter()  # for blocks of end-of-text alone
    writes: Counter[int] = Counter()  # of the best row
    for prompt in [prompt for family in TASKS for prompt in subject.task_prompts(family, problems)]:
        canvas = subject.canvas([prompt], LENGTH)
        shown: list[Frame] = []
        decode(decoder, model.denoiser, canvas, seed, watch=lambda _, frame, shown=shown: shown.append(frame))
        for count, tokens in _blocks(shown, canvas):
            (ended if tokens <= model.eos else steps)[count] += 1
        order = shown[-1].canvas.order[0]
        writes.update(Counter(order[order > 0].tolist()).values())
    return {
        "model": model.name,
        "tasks": [task.spec(family) for family in TASKS],
        "problems": problems * len(TASKS),
        "length": LENGTH,
        "seed": seed,
        "steps_a_block": dict(sorted(steps.items())),
        "steps_an_ended_block": dict(sorted(ended.items())),
        "writes_a_step": dict(sorted(writes.items())),
        "mean_steps": fmean(steps.elements()),
    }


def _blocks(shown: list[Frame], canvas: Canvas) -> list[tuple[int, set[int]]]:
    """The number of steps and the tokens of each block. A block ends with its search."""
    ends = [number for number, frame in enumerate(shown, 1) if frame.branch is not None]
    slots, text = canvas.slots[0], shown[-1].canvas.tokens[0]
    tokens = [set(text[part].tolist()) for part in slots.split(-(-len(slots) // len(ends)))]
    return [(end - begin, part) for begin, end, part in zip([0, *ends], ends, tokens, strict=False)]
