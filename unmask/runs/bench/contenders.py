"""Who runs against whom: the published loops written plainly, and ours with each kind of saving."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

import torch

from unmask import plain
from unmask.core import Canvas, Decoded, Decoder, Denoiser, decode
from unmask.decoders import LowConfidence, OrderTokenSearch
from unmask.models.cache import cached
from unmask.runs.bench.bed import Bed
from unmask.runs.bench.clock import Stopwatch, Timed
from unmask.runs.bench.plan import Sizes
from unmask.runs.bench.savings import WholeHead
from unmask.runs.bench.work import Tally, Work, tallied

SURE = 0.9  # probability at which threshold writing writes
EVERY = 4  # steps after which a refreshed cache is filled anew
REFRESHED = f"dual(refresh={EVERY})"


@dataclass(frozen=True)
class Ran:
    """What came of one run; its seconds are taken by whoever started it."""

    tokens: list[list[int]]  # of each problem's best row, prompt and answer
    work: Work
    steps: int = 0  # of all batches together; 0 where it was not seen
    spans: dict[str, float] | None = None  # seconds of denoising and scoring


Run = Callable[[Bed, list[list[int]], Sizes, int], Ran]  # prompts, seed
Kind = Literal["plain", "exact", "approximate", "without"]


@dataclass(frozen=True)
class Contender:
    about: str
    kind: Kind
    run: Run
    prepares: bool = False  # compiles or captures by shape, so that even a sweep runs it once before it is timed
    keeps: bool = False  # holds on to memory between runs


def plain_path(bed: Bed, prompts: list[list[int]], sizes: Sizes, seed: int) -> Ran:
    work = Work()
    forward, mask, settings = tallied(bed.forward, work), bed.denoiser.mask_id, _settings(bed, sizes, seed)
    paths = [plain.one_path(forward, prompt, sizes.length, mask, **settings) for prompt in prompts]
    return Ran([path.tokens for path in paths], work)


def plain_search(bed: Bed, prompts: list[list[int]], sizes: Sizes, seed: int) -> Ran:
    work = Work()
    forward, mask, settings = tallied(bed.forward, work), bed.denoiser.mask_id, _settings(bed, sizes, seed)
    settings |= {"beams": sizes.beams, "temperature": sizes.temperature, "rows_at_once": sizes.beams}
    made = [plain.order_token_search(forward, prompt, sizes.length, mask, **settings) for prompt in prompts]
    return Ran([search.tokens for search in made], work)


def _settings(bed: Bed, sizes: Sizes, seed: int) -> dict:
    return {"block": sizes.block, "steps": sizes.steps, "seed": seed, "device": bed.device}


@dataclass(frozen=True)
class Ours:
    """The package's own decoding; what can be switched off is on."""

    decoder: Callable[[Bed, Sizes], Decoder]
    compiled: bool = False
    cache: str = "none"
    batched: bool = True  # problems together
    merged: bool = True  # identical rows once
    whole_head: bool = False

    def __call__(self, bed: Bed, prompts: list[list[int]], sizes: Sizes, seed: int) -> Ran:
        tally = Tally(cached(bed.compiled if self.compiled else bed.denoiser, self.cache, bed.name))
        watch = Stopwatch(bed.device)

        def adapt(meter: Denoiser, canvas: Canvas) -> Denoiser:
            del canvas
            inner = meter if self.merged else tally
            return Timed(WholeHead(inner) if self.whole_head else inner, watch)

        results: list[Decoded] = []
        for some in [prompts] if self.batched else [[prompt] for prompt in prompts]:
            canvas = bed.canvas(some, sizes.length)
            results += decode(self.decoder(bed, sizes), tally, canvas, seed, adapt=adapt, watch=watch.frame)
        tokens = [result.canvas.tokens[0, int(result.canvas.pad[0]) :].tolist() for result in results]
        return Ran(tokens, tally.work, watch.steps, watch.clock.spans())


def _path(bed: Bed, sizes: Sizes) -> Decoder:
    del bed
    return LowConfidence(block=sizes.block, steps=sizes.steps)


def _search(bed: Bed, sizes: Sizes) -> Decoder:
    del bed
    return OrderTokenSearch(sizes.beams, sizes.block, sizes.steps, sizes.temperature)


def _threshold(bed: Bed, sizes: Sizes) -> Decoder:
    """Random weights are never sure: they take as many steps as a trained model did, and look for a certainty."""
    steps, blocks = sizes.steps, len(sizes.schedule.quotas)
    if bed.replay is not None:
        steps = min(sizes.schedule.steps, max(blocks, round(bed.replay * blocks)))
    sure = SURE if bed.replay is None else 1.0
    return OrderTokenSearch(sizes.beams, sizes.block, steps, sizes.temperature, sure=sure)


def _cached(
    about: str, decoder: Callable[[Bed, Sizes], Decoder], compiled: bool = False, cache: str = "dual"
) -> Contender:
    return Contender(about, "approximate", Ours(decoder, compiled, cache), prepares=True, keeps=True)


_OURS = Ours(_search)
CONTENDERS: dict[str, Contender] = {
    "plain-path": Contender(
        "the published low-confidence loop: one row, logits at every position", "plain", plain_path
    ),
    "plain-ots": Contender("Algorithm 1 plainly, K rows a call, logits at every position", "plain", plain_search),
    "path": Contender("low-confidence", "exact", Ours(_path)),
    "ots": Contender("Order-Token Search, every exact saving on", "exact", _OURS),
    "ots-compiled": Contender("the same, its layers compiled", "exact", replace(_OURS, compiled=True), prepares=True),
    "path-cached": _cached("low-confidence, keys and values held outside the block", _path),
    "ots-cached": _cached("Order-Token Search, the same held; while candidates are scored only what precedes", _search),
    "ots-cached-threshold": _cached(f"and every draw of at least {SURE:g} probability written at once", _threshold),
    "ots-cached-refreshed": _cached(f"ots-cached, all computed anew every {EVERY} steps", _search, cache=REFRESHED),
    "ots-cached-compiled": _cached("ots-cached, its layers compiled", _search, compiled=True),
    "ots-cached-threshold-compiled": _cached("ots-cached-threshold, its layers compiled", _threshold, compiled=True),
    "ots-cached-refreshed-compiled": _cached(
        "ots-cached-refreshed, its layers compiled", _search, compiled=True, cache=REFRESHED
    ),
    "ots-alone": Contender("one problem at a time", "without", replace(_OURS, batched=False)),
    "ots-unmerged": Contender(
        "and identical rows computed again", "without", replace(_OURS, batched=False, merged=False)
    ),
    "ots-whole-head": Contender(
        "and logits at every position", "without", replace(_OURS, batched=False, merged=False, whole_head=True)
    ),
}
LADDER = ("ots", "ots-alone", "ots-unmerged", "ots-whole-head", "plain-ots")  # each without one saving more


def usual(device: torch.device) -> tuple[str, ...]:
    """The contenders nobody has to name: a CPU tells each saving apart, a GPU has layers worth compiling."""
    without = {name for name, one in CONTENDERS.items() if one.kind == "without"}
    compiled = {name for name in CONTENDERS if name.endswith("-compiled")}
    spared = compiled if device.type == "cpu" else without
    return tuple(name for name in CONTENDERS if name not in spared)
