"""The contenders: the published loops written plainly, and this package's decoders with different caches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import torch
from torch import Tensor

from unmask.bench import reference_loops
from unmask.bench.subject import Measurement, Sizes, Subject, Tokens
from unmask.core import Decoder, Denoiser, Noise, decode
from unmask.decoders import LowConfidence, OrderTokenSearch
from unmask.errors import check_known
from unmask.models.network.kv_cache import EXACT, cached
from unmask.models.network.network import take

SURE = 0.9  # probability from which threshold writing writes
EVERY = 4  # steps between two refreshes of a refreshed cache
Kind = Literal["plain", "exact", "approximate"]


def path(sizes: Sizes) -> Decoder:
    return LowConfidence(block=sizes.block, steps=sizes.steps)


def search(sizes: Sizes) -> Decoder:
    return OrderTokenSearch(sizes.beams, sizes.block, sizes.steps, sizes.temperature)


def threshold(sizes: Sizes) -> Decoder:
    return OrderTokenSearch(sizes.beams, sizes.block, sizes.steps, sizes.temperature, sure=SURE)


@dataclass(frozen=True)
class Contender:
    about: str
    kind: Kind
    decoder: Callable[[Sizes], Decoder]
    cache: str = "none"
    compiled: bool = False

    @property
    def caches(self) -> bool:
        return self.cache != "none"

    def fits(self, subject: Subject) -> bool:
        """Return True if the model has the cache; random weights are never sure enough for threshold writing."""
        if self.decoder is threshold and subject.model is None:
            return False
        return not self.caches or (self.cache == EXACT) == (subject.network.block_size is not None)

    def run(self, subject: Subject, prompts: Tokens, sizes: Sizes, seed: int) -> Measurement:
        """Decode all problems together, or one by one in the published loops."""
        if self.kind == "plain":
            return self._run_plain(subject, prompts, sizes, seed)
        denoiser = cached(subject.compiled if self.compiled else subject.network, self.cache, subject.name)
        results = decode(self.decoder(sizes), denoiser, subject.canvas(prompts, sizes.length), seed)
        tokens = [result.canvas.tokens[0, int(result.canvas.pad[0]) :].tolist() for result in results]
        costs = [result.cost for result in results]
        computed, positions = sum(cost.computed for cost in costs), sum(cost.positions for cost in costs)
        return Measurement(tokens, costs[0].calls, computed, positions)

    def _run_plain(self, subject: Subject, prompts: Tokens, sizes: Sizes, seed: int) -> Measurement:
        calls: list[torch.Size] = []

        def forward(tokens: Tensor) -> Tensor:
            calls.append(tokens.shape)
            return subject.forward(tokens)

        settings: dict = {"block": sizes.block, "steps": sizes.steps, "seed": seed, "device": subject.network.device}
        loop = reference_loops.one_path
        if self.decoder is search:
            loop = reference_loops.order_token_search
            settings |= {"beams": sizes.beams, "temperature": sizes.temperature, "rows_at_once": sizes.beams}
        mask_id = subject.network.mask_id
        tokens = [loop(forward, prompt, sizes.length, mask_id, **settings).tokens for prompt in prompts]
        return Measurement(tokens, len(calls), sum(rows for rows, _ in calls), sum(shape.numel() for shape in calls))


CONTENDERS: dict[str, Contender] = {
    "plain-path": Contender("the published low-confidence loop: one row per call, all logits", "plain", path),
    "plain-ots": Contender("Algorithm 1 written plainly: K rows per call, all logits", "plain", search),
    "path": Contender("low-confidence remasking", "exact", path),
    "ots": Contender("Order-Token Search with every exact saving", "exact", search),
    "path-exact": Contender("path with the exact cache of a block-causal model", "exact", path, EXACT),
    "ots-exact": Contender("ots with the exact cache of a block-causal model", "exact", search, EXACT),
    "path-cached": Contender("path with a KV cache outside the block", "approximate", path, "dual"),
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
CONTENDERS |= {
    f"{name}-compiled": replace(contender, about=f"{name} with compiled layers", compiled=True)
    for name, contender in CONTENDERS.items()
    if name == "path-exact" or name.startswith("ots")
}


def choose(names: Sequence[str], device: torch.device) -> tuple[str, ...]:
    """Return these contenders, or all: on a CPU all but those with compiled layers."""
    for name in names:
        check_known(CONTENDERS, contender=name)
    usual = [name for name, entry in CONTENDERS.items() if device.type != "cpu" or not entry.compiled]
    return tuple(name for name in CONTENDERS if name in (names or usual))


@torch.inference_mode()
def agreement(subject: Subject, denoiser: Denoiser, sizes: Sizes, seed: int = 0) -> dict[str, Any]:
    """Compare with the plain loop at the start of each block, after random tokens: log p of all tokens, and draws."""
    difference, equal, draws = 0.0, 0, 0
    for done in range(0, sizes.length, sizes.block):
        before = subject.random_ids(sizes.beams, (sizes.prompt or sizes.block) + done, seed=done)
        canvas = subject.canvas(before, sizes.length - done)
        at, noise, mask_id = canvas.slots[:, : sizes.block], Noise.of(canvas, seed), canvas.mask_id
        expected, beliefs = reference_loops.logits(subject.forward, canvas.tokens, mask_id), denoiser(canvas, at)
        token, _ = beliefs.draw(noise.uniform("token", 1, canvas.places(at), 1), sizes.temperature)
        logits = beliefs.logits(torch.arange(at.numel(), device=at.device))
        apart = (logits.log_softmax(1) - take(expected, at).flatten(0, 1).log_softmax(1)).abs()
        apart[:, mask_id] = 0.0
        difference = max(difference, float(apart.max()))
        for row, x in enumerate(canvas.tokens):
            uniform = noise.rows(at.new_tensor([row]))
            full = reference_loops.complete(x, expected[row], mask_id, uniform, "token", 1, 0, sizes.temperature)
            equal += int((full[at[row]] == token[row, :, 0]).sum())
        draws += at.numel()
    return {"largest_log_p_difference": difference, "equal_draws": equal, "draws": draws, "share": equal / draws}
