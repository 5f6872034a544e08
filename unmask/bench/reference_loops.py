"""Plain loops: LLaDA's published one (arXiv 2502.09992) and Algorithm 1 of Order-Token Search (arXiv 2601.20339).

They decode one problem at a time, with logits and a draw at every masked position and a Python loop over beams. They
share only the addressed noise with the rest of the package: they are the oracle of the tests and the baseline of the
benchmark.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from unmask.core.noise import Noise, Purpose, key
from unmask.errors import UnmaskError

Device = torch.device | str
Forward = Callable[[Tensor], Tensor]  # tokens (row, pos) -> logits (row, pos, vocab)
Order = Literal["low-confidence", "random", "left-to-right", "margin", "entropy"]
Rule = Literal["confidence", "factor", "entropy"]
Partition = tuple[Literal["interleaved", "leave-out"], int]  # with the number of combs, or the size of a group
Likelihood = Literal["block", "all-blocks", "future-masked"] | Partition


@dataclass(frozen=True)
class Path:
    tokens: list[int]  # prompt and answer
    score: float  # sum of log p of each token when it was written
    steps: int


@dataclass(frozen=True)
class Beam:
    """A beam of the search, or a candidate to become one."""

    x: Tensor  # (pos,)
    noise: Noise  # random numbers of this beam alone
    s: tuple[float, ...]  # score of each block; 0 before the block is reached
    score: float = 0.0
    full: tuple[int, ...] = ()  # completion in which it was scored
    parent: int = 0
    draw: int = 0


@dataclass(frozen=True)
class Search:
    tokens: list[int]  # prompt and answer
    score: float
    beams: list[Beam]  # final beams, best first
    branches: list[list[Beam]]  # candidates of every search step, by parent, then draw


def one_path(
    forward: Forward,
    prompt: Sequence[int],
    length: int,
    mask_id: int,
    *,
    order: Order = "low-confidence",
    block: int | None = None,
    steps: int | None = None,
    temperature: float = 0.0,
    seed: int = 0,
    device: Device = "cpu",
) -> Path:
    """Run the published loop: at each step draw every token and write the quota that the order ranks first."""
    x, noise, score, number = *start(prompt, length, mask_id, seed, device), 0.0, 0
    for number, _, here, quota, _ in plan(x, mask_id, block, steps):
        l = logits(forward, x[None], mask_id)[0]
        x0 = complete(x, l, mask_id, noise, "token", number, 0, temperature)
        logp = chosen(l, x0)
        written = best(rank(order, l, logp, noise, number), here[x[here] == mask_id], quota)
        x[written] = x0[written]
        score += float(logp[written].sum())
    return Path(x.tolist(), score, number)


def adaptive(
    forward: Forward,
    prompt: Sequence[int],
    length: int,
    mask_id: int,
    *,
    sure: float = 0.98,
    rule: Rule = "confidence",
    factor: float = 1.0,
    budget: float = 0.1,
    temperature: float = 0.0,
    block: int | None = None,
    seed: int = 0,
    device: Device = "cpu",
) -> Path:
    """Write what the rule allows at each step, at least the surest position (Fast-dLLM, arXiv 2505.22618)."""
    x, noise, score, number = *start(prompt, length, mask_id, seed, device), 0.0, 0
    for here in blocks(x, mask_id, block):
        while len(masked := here[x[here] == mask_id]):
            number += 1
            l = logits(forward, x[None], mask_id)[0]
            x0 = complete(x, l, mask_id, noise, "token", number, 0, temperature)
            logp = chosen(l, x0)
            ranks = rank("entropy" if rule == "entropy" else "low-confidence", l, logp, noise, number)
            ranked = best(ranks, masked, len(masked))
            written = ranked[: max(1, allowed(rule, ranks[ranked], sure, factor, budget))]
            x[written] = x0[written]
            score += float(logp[written].sum())
    return Path(x.tolist(), score, number)


def allowed(rule: Rule, ranks: Tensor, sure: float, factor: float, budget: float) -> int:
    """Return how many positions a rule writes; `ranks` are sorted, the surest first."""
    if rule == "confidence":
        return int((ranks.exp() >= sure).sum())
    if rule == "factor":
        p = ranks.exp().tolist()
        return max((n for n in range(1, len(p) + 1) if (n + 1) * (1 - p[n - 1]) < factor), default=0)
    return int((ranks.neg().cumsum(0) <= budget).sum())


def order_token_search(
    forward: Forward,
    prompt: Sequence[int],
    length: int,
    mask_id: int,
    *,
    beams: int = 4,
    block: int | None = None,
    steps: int | None = None,
    temperature: float = 0.4,
    interval: int | None = None,
    likelihood: Likelihood = "block",
    samples: int = 1,
    rows_at_once: int = 1,
    seed: int = 0,
    device: Device = "cpu",
) -> Search:
    """Run Algorithm 1; comments give the line numbers of the paper."""
    x, noise = start(prompt, length, mask_id, seed, device)
    spans = blocks(x, mask_id, block)
    branches: list[list[Beam]] = []
    rows = [Beam(x, child(noise, i, 0), (0.0,) * len(spans)) for i in range(beams)]  # 2: K identical beams
    timetable = list(plan(x, mask_id, block, steps))
    for number, b, here, quota, last in timetable:  # 3
        states = torch.stack([row.x for row in rows])
        ls = torch.cat([logits(forward, part, mask_id) for part in states.split(rows_at_once)])  # 4
        sparse = interval is not None and interval > sum(step[1] == b for step in timetable)
        end = last and (not sparse or number == len(timetable))
        search = end or (interval is not None and number % interval == 0)  # 5
        candidates: list[Beam] = []  # 6
        for parent, (row, l) in enumerate(zip(rows, ls, strict=True)):  # 7, 23
            draws = range(beams if search else 1)  # 9; 24 and 25 are 10 and 11 once
            x0s = [complete(row.x, l, mask_id, row.noise, "token", number, i, temperature) for i in draws]  # 10, 11
            afters = [transfer(row.x, x0, l, here, quota, mask_id) for x0 in x0s]  # 12, 26
            if not search:
                candidates.append(Beam(afters[0], row.noise, row.s, row.score))
                continue
            streams = [child(row.noise, i, number) for i in draws]
            fulls = [  # 13: every candidate's own draw, then M-1 that refill what it leaves masked
                [x0] + [complete(after, l, mask_id, mine, "sample", number, m, temperature) for m in range(1, samples)]
                for x0, after, mine in zip(x0s, afters, streams, strict=True)
            ]
            flat = [full for candidate in fulls for full in candidate]
            scores = block_scores(forward, flat, spans, b, likelihood, mask_id, rows_at_once)  # 14, 15
            for i, mean in zip(draws, scores.unflatten(0, (-1, samples)).mean(1).tolist(), strict=True):
                s = tuple(mean) if likelihood == "all-blocks" else (*row.s[:b], mean[b], *row.s[b + 1 :])  # 16
                candidates.append(Beam(afters[i], streams[i], s, sum(s), tuple(x0s[i].tolist()), parent, i))  # 17, 18
        rows = candidates
        if search:
            branches.append(candidates)
            rows = sorted(candidates, key=lambda candidate: -candidate.score)[:beams]  # 21; a sort keeps ties in order
    return Search(rows[0].x.tolist(), rows[0].score, rows, branches)  # 30


def block_scores(
    forward: Forward,
    fulls: Sequence[Tensor],
    spans: Sequence[Tensor],
    b: int,
    likelihood: Likelihood,
    mask_id: int,
    rows_at_once: int = 1,
) -> Tensor:
    """Sum log p over parts that are hidden and predicted in one pass each (Eq. 2, S4, S5): (completion, block)."""
    scored = range(b + 1) if likelihood == "all-blocks" else [b]
    full = torch.stack(list(fulls))
    logp = torch.zeros_like(full, dtype=torch.float64)
    for hidden in hidden_together(spans, b, likelihood):
        blank = full.index_fill(1, hidden, mask_id)
        parts = zip(blank.split(rows_at_once), full.split(rows_at_once), strict=True)
        again = torch.cat([chosen(logits(forward, part, mask_id), tokens) for part, tokens in parts])
        logp = logp.to(again.dtype).index_copy(1, hidden, again[:, hidden])
    zero = torch.zeros_like(logp[:, 0])
    return torch.stack([logp[:, span].sum(1) if i in scored else zero for i, span in enumerate(spans)], dim=1)


def hidden_together(spans: Sequence[Tensor], b: int, likelihood: Likelihood) -> Sequence[Tensor]:
    """Return the positions that are masked in each pass."""
    if isinstance(likelihood, str):
        hidden = {"block": spans[b : b + 1], "all-blocks": spans[: b + 1], "future-masked": spans[b:]}[likelihood]
        return [torch.cat(list(hidden))]
    kind, size = likelihood
    combs = [spans[b][first::size] for first in range(min(size, len(spans[b])))]
    return spans[b].split(size) if kind == "leave-out" else combs


def start(prompt: Sequence[int], length: int, mask_id: int, seed: int, device: Device) -> tuple[Tensor, Noise]:
    """Return [prompt; MASK^L] and the root of its noise. Masks inside the prompt are filled like the others."""
    x = torch.tensor([*prompt, *[mask_id] * length], device=device)
    problem = torch.tensor([key(prompt)], device=device)
    return x, Noise.root(problem, seed)


def child(noise: Noise, draw: int, step: int) -> Noise:
    zero = torch.zeros_like(noise.problem)
    return noise.children(zero, zero + draw, step)


def blocks(x: Tensor, mask_id: int, block: int | None) -> list[Tensor]:
    """Return the masked positions, left to right, `block` at a time."""
    slots = (x == mask_id).nonzero()[:, 0]
    block = min(32, len(slots)) if block is None else block
    if not 1 <= block <= len(slots):
        raise UnmaskError(f"block={block} does not fit {len(slots)} masks")
    return list(slots.split(block))


def plan(x: Tensor, mask_id: int, block: int | None, steps: int | None) -> Iterator[tuple[int, int, Tensor, int, bool]]:
    """Yield step (from 1), block, its positions, number of writes, and True at the last step of a block."""
    spans = blocks(x, mask_id, block)
    sizes = [len(span) for span in spans]
    if steps is None:
        steps = sum(sizes) if sizes[0] == 1 else max(len(sizes), sum(sizes) // 2)
    if not len(sizes) <= steps <= sum(sizes):
        raise UnmaskError(f"steps={steps} does not fit {len(sizes)} blocks over {sum(sizes)} masks")
    number = 0
    for b, share in enumerate(deal(steps, sizes)):
        quotas = deal(sizes[b], [sizes[b]] * share)
        for i, quota in enumerate(quotas):
            number += 1
            yield number, b, spans[b], quota, i == share - 1


def deal(count: int, room: Sequence[int]) -> list[int]:
    """Distribute `count` in rounds of one each, the earliest first, to those that have room."""
    hands = [0] * len(room)
    while count:
        for i, most in enumerate(room):
            if count and hands[i] < most:
                hands[i] += 1
                count -= 1
    return hands


def logits(forward: Forward, x: Tensor, mask_id: int) -> Tensor:
    """Return logits (row, pos, vocab) in float32 or better, in which MASK is never a candidate."""
    l = forward(x)
    l = l.clone() if l.dtype == torch.float64 else l.float().clone()
    l[..., mask_id] = -torch.inf
    return l


def complete(
    x: Tensor, l: Tensor, mask_id: int, noise: Noise, purpose: Purpose, step: int, index: int, temperature: float
) -> Tensor:
    """Replace every mask by a draw of softmax(l / temperature): the first id whose cumulative mass exceeds u·total."""
    at = (x == mask_id).nonzero()[:, 0]
    if temperature == 0:
        return x.index_put((at,), l[at].argmax(-1))
    u = noise.uniform(purpose, step, at[None], draws=index + 1)[0, :, index]
    mass = (l[at].double() / temperature).softmax(-1).cumsum(-1)
    goal = u * mass[:, -1]
    return x.index_put((at,), torch.searchsorted(mass, goal[:, None], right=True)[:, 0])


def transfer(x: Tensor, x0: Tensor, l: Tensor, here: Tensor, quota: int, mask_id: int) -> Tensor:
    """Write the surest `quota` draws of the block and discard the others: low-confidence remasking."""
    written = best(chosen(l, x0), here[x[here] == mask_id], quota)
    return x.index_put((written,), x0[written])


def chosen(l: Tensor, tokens: Tensor) -> Tensor:
    """Return the log p of the tokens, at temperature 1."""
    return l.log_softmax(-1).gather(-1, tokens[..., None])[..., 0]


def rank(order: Order, l: Tensor, logp: Tensor, noise: Noise, step: int) -> Tensor:
    """Return the rank of every position; the highest is written first."""
    places = torch.arange(len(l), device=l.device)
    ranks: dict[Order, Callable[[], Tensor]] = {
        "low-confidence": lambda: logp,
        "random": lambda: noise.uniform("order", step, places[None])[0, :, 0],
        "left-to-right": lambda: -places,
        "margin": lambda: l.softmax(-1).sort(descending=True).values[:, :2] @ l.new_tensor([1.0, -1.0]),
        "entropy": lambda: torch.special.entr(l.softmax(-1)).sum(-1).neg(),
    }
    return ranks[order]()


def best(ranks: Tensor, among: Tensor, count: int) -> Tensor:
    """Return the positions of the highest ranks; ties go to the lowest position."""
    return among[ranks[among].sort(descending=True, stable=True).indices[:count]]
