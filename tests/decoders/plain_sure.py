"""Order-Token Search whose rows run ahead where they are sure, plainly: one problem, a Python loop over beams."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from torch import Tensor

from unmask.bench import reference_loops as plain
from unmask.bench.reference_loops import Beam, Forward, Likelihood, Search


def search(
    forward: Forward,
    prompt: Sequence[int],
    length: int,
    mask_id: int,
    *,
    beams: int,
    block: int | None,
    steps: int | None,
    temperature: float,
    likelihood: Likelihood,
    samples: int,
    sure: float,
    seed: int,
    **more: Any,
) -> Search:
    """Between searches a row writes every draw it is sure of: at least the quota, and never what the search is to."""
    assert more.pop("interval", None) is None
    x, noise = plain.start(prompt, length, mask_id, seed, "cpu")
    spans = plain.blocks(x, mask_id, block)
    walk = list(plain.plan(x, mask_id, block, steps))
    kept_back = {b: quota for _, b, _, quota, last in walk if last}
    rows = [Beam(x, plain.child(noise, i, 0), (0.0,) * len(spans)) for i in range(beams)]
    branches: list[list[Beam]] = []
    for number, b, here, quota, last in walk:
        if not last:
            rows = [ahead(forward, row, here, quota, kept_back[b], sure, number, mask_id, temperature) for row in rows]
            continue
        candidates: list[Beam] = []
        for parent, row in enumerate(rows):
            l = plain.logits(forward, row.x[None], mask_id)[0]
            for i in range(beams):
                x0 = plain.complete(row.x, l, mask_id, row.noise, "token", number, i, temperature)
                after, mine = plain.transfer(row.x, x0, l, here, quota, mask_id), plain.child(row.noise, i, number)
                fulls = [x0]
                for m in range(1, samples):
                    fulls.append(plain.complete(after, l, mask_id, mine, "sample", number, m, temperature))
                mean = plain.block_scores(forward, fulls, spans, b, likelihood, mask_id).mean(0).tolist()
                s = tuple(mean) if likelihood == "all-blocks" else (*row.s[:b], mean[b], *row.s[b + 1 :])
                candidates.append(Beam(after, mine, s, sum(s), tuple(x0.tolist()), parent, i))
        branches.append(candidates)
        rows = sorted(candidates, key=lambda candidate: -candidate.score)[:beams]
    return Search(rows[0].x.tolist(), rows[0].score, rows, branches)


def ahead(
    forward: Forward,
    row: Beam,
    here: Tensor,
    quota: int,
    kept_back: int,
    sure: float,
    number: int,
    mask_id: int,
    temperature: float,
) -> Beam:
    masked = here[row.x[here] == mask_id]
    if len(masked) <= kept_back:  # it waits for the others
        return row
    l = plain.logits(forward, row.x[None], mask_id)[0]
    x0 = plain.complete(row.x, l, mask_id, row.noise, "token", number, 0, temperature)
    logp = plain.chosen(l, x0)
    count = max(quota, sum(float(logp[i].exp()) >= sure for i in masked.tolist()))
    written = plain.best(logp, masked, min(count, len(masked) - kept_back))
    return replace(row, x=row.x.index_put((written,), x0[written]))
