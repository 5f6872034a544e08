"""Traces: JSON lines of what changed at every step while one problem was decoded, enough to rebuild every canvas.

    {"format": "unmask-trace", "version": 1, "model": …, "decoder": …, "prompt": …, "ids": […], "mask": …, …}
    {"step": 1, "source": [0], "writes": [[row, position, token, log p], …], "score": […], "forward_passes": 1,
     "drafts": […], "entropy": […]}
    {"step": 2, …, "branch": {"parent": […], "draw": […], "score": […], "blocks": […], "kept": […], …}}
    {"end": {"chosen": 0, "texts": […], "words": {"7": "h"}, "cost": {…}, "measured": {"seconds": …, …}}}

Positions count from the prompt's first token, whatever padding the batch added. A row is its `source` row of the step
before with `writes` put in. A write that a different step made carries that step as a fifth entry; a position that is
masked again is a write of the mask token with step 0. `forward_passes` is the number asked of the network so far.
`drafts` are [row, position, token]: masked positions whose likeliest token is not the one it was for the `source`.
`entropy` is that of the model's beliefs about each of the writes, in nats, when it was written. Only `measured` differs
between runs with the same results.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from unmask.core import Branch, Canvas, Frame
from unmask.core.denoiser import Exchange
from unmask.errors import UnmaskError
from unmask.runs.files import read_json_lines, write_output

FORMAT, VERSION = "unmask-trace", 1
NONE = -1  # no likeliest token: nothing was asked, or something is written
DIGITS = 6  # decimal places of entropies
_DTYPES = {"float32": torch.float32, "float64": torch.float64}


@dataclass(frozen=True)
class Trace:
    """The steps of one problem, as its file holds them."""

    header: dict[str, Any]
    steps: list[dict[str, Any]]
    end: dict[str, Any]

    def lines(self) -> Iterator[str]:
        """Yield the lines of the file."""
        for line in (self.header, *self.steps, {"end": self.end}):
            yield json.dumps(line, ensure_ascii=False) + "\n"

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a file that appears whole or not at all."""
        write_output(path, "".join(self.lines()), "trace")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Trace:
        """Read a file that `save` wrote."""
        header, *steps = read_json_lines(path, FORMAT, VERSION)
        if not steps or not isinstance(steps[-1], dict) or "end" not in steps[-1]:
            raise UnmaskError(f"{str(path)!r} is cut off: its last line is missing; make it again")
        return cls(header, steps[:-1], steps[-1]["end"])

    def replay(self) -> Iterator[Frame]:
        """Yield every frame again, with its canvas as it was."""
        try:
            yield from self._frames()
        except (KeyError, IndexError, TypeError, ValueError, RuntimeError) as error:
            raise UnmaskError(f"the trace does not hold together: {type(error).__name__} {error}") from None

    def _frames(self) -> Iterator[Frame]:
        dtype, slots = _DTYPES[self.header["dtype"]], torch.tensor(self.slots, dtype=torch.long)
        ids, length, mask = self.header["ids"], self.header["length"], self.header["mask"]
        now = Canvas.blank([ids], length, mask, infill=True, dtype=dtype)
        for line in self.steps:
            source, step = torch.tensor(line["source"], dtype=torch.long), line["step"]
            branch = _read_branch(line["branch"], now, slots, step) if "branch" in line else None
            now = _written(now.rows(source), line["writes"], step)
            yield Frame(now, torch.tensor(line["score"], dtype=dtype), step, branch, parent=source)

    @property
    def step_map(self) -> list[int]:
        """The step that wrote each mask of the chosen row, left to right."""
        *_, last = self.replay()
        return [int(last.canvas.order[self.end["chosen"], place]) for place in self.slots]

    @property
    def entropies(self) -> list[float | None]:
        """The entropy of the model's beliefs, in nats, when it wrote each mask of the chosen row; None: not known."""
        rows: list[dict[int, float | None]] = [{}]
        for line in self.steps:
            rows = [dict(rows[source]) for source in line["source"]]
            for (row, place, *_), entropy in zip(line["writes"], line["entropy"], strict=True):
                rows[row][place] = entropy
        return [rows[self.end["chosen"]].get(place) for place in self.slots]

    @property
    def slots(self) -> list[int]:
        """The positions that were masks at first."""
        ids, mask = self.header["ids"], self.header["mask"]
        return [place for place, token in enumerate(ids) if token == mask] + [
            *range(len(ids), len(ids) + self.header["length"])
        ]

    def writes(self) -> list[list[int]]:
        """Return how many positions each row wrote at each step; 0 if it waited for others."""
        counts = [[0] * len(line["source"]) for line in self.steps]
        for count, line in zip(counts, self.steps, strict=True):
            for row, _, token, *_ in line["writes"]:
                count[row] += token != self.header["mask"]
        return counts


@dataclass
class Recorder:
    """Turns the frames of one problem into the lines of a trace."""

    before: Canvas  # the problem's row before anything was written
    steps: list[dict[str, Any]] = field(default_factory=list)
    words: set[int] = field(default_factory=set)  # tokens whose texts the trace needs
    rows: Tensor | None = None  # the problem's rows of the batch in the last frame; None before the first

    def __post_init__(self) -> None:
        pad = int(self.before.pad[0])
        self.before = _alone(self.before, torch.zeros(1, dtype=torch.long, device=self.before.tokens.device), pad)
        self.words.update(self.before.tokens[0].tolist())
        self.now = self.before
        # The likeliest token of every mask that was asked about.
        self.drafts = torch.full_like(self.before.tokens, NONE)
        # The entropy when a position was written or a mask was asked about, else NaN; and by position, token, log p and
        # step, because a text may return.
        self.entropy = torch.full(self.before.tokens.shape, math.nan, dtype=torch.float64)
        self.known: dict[tuple[Any, ...], float] = {}

    def see(self, frame: Frame, problem: int, pad: int) -> None:
        """Add the line of a frame; the problem's row has `pad` positions of padding on its left."""
        rows = (frame.canvas.problem == problem).nonzero()[:, 0]
        source = self._local((rows if frame.parent is None else frame.parent[rows]).cpu())
        canvas, old = _alone(frame.canvas, rows, pad), self.now.rows(source)
        line: dict[str, Any] = {"step": frame.step, "source": source.tolist()}
        line["writes"] = _changes(old, canvas, frame.step)
        line["score"] = frame.score[rows].tolist()
        if frame.forward_passes is not None:
            line["forward_passes"] = int(frame.forward_passes[problem])
        predictions = Predictions(frame, problem, pad)
        self.drafts, self.entropy = self.drafts[source], self.entropy[source]
        line["drafts"] = self._drafts(canvas, old, predictions)
        line["entropy"] = self._entropies(canvas, line["writes"], frame.step, predictions)
        if frame.branch is not None:
            line["branch"] = self._branch(frame.branch, problem, pad, frame.step)
        self.words.update(canvas.tokens.flatten().tolist())
        self.steps.append(line)
        self.now, self.rows = canvas, rows.cpu()

    def _local(self, rows: Tensor) -> Tensor:
        """Return rows of the batch as rows of this problem, which has one before the first frame."""
        if self.rows is None:
            return torch.zeros_like(rows)
        return torch.searchsorted(self.rows, rows).clamp(max=len(self.rows) - 1)

    def _drafts(self, canvas: Canvas, old: Canvas, predictions: Predictions) -> list[list[int]]:
        """Update the likeliest tokens of the masks and return [row, position, token] of those that changed."""
        before = self.drafts.masked_fill(~canvas.masked, NONE)
        self.drafts = before.clone()
        for row, place, token, _ in predictions.of_masks(canvas, old):
            self.drafts[row, place] = token
        row, place = (self.drafts != before).nonzero().unbind(1)
        changed = torch.stack([row, place, self.drafts[row, place]], 1).tolist()
        self.words.update(token for _, _, token in changed)
        return changed

    def _entropies(
        self, canvas: Canvas, writes: list[list[Any]], step: int, predictions: Predictions
    ) -> list[float | None]:
        """Return the entropy of each write; earlier frames know what was not asked about since the last."""
        written: list[float | None] = []
        for row, place, token, logp, *when in writes:
            name = place, token, logp, when[0] if when else step
            asked = canvas.tokens[row].masked_fill(canvas.order[row] >= name[-1], canvas.mask_id)
            before = self.known.get(name, float(self.entropy[row, place]))
            _, entropy = predictions.of(asked).get(place, (NONE, before))
            self.entropy[row, place] = self.known[name] = entropy
            written.append(None if math.isnan(entropy) or token == canvas.mask_id else round(entropy, DIGITS))
        self.entropy[canvas.masked] = math.nan
        for row, place, _, entropy in predictions.of_masks(canvas, canvas):  # some decoders ask before the frame
            self.entropy[row, place] = entropy
        return written

    def _branch(self, branch: Branch, problem: int, pad: int, step: int) -> dict[str, Any]:
        rows = (branch.canvas.problem == problem).nonzero()[:, 0]
        parent = self._local(branch.parent[rows].cpu())
        canvas = _alone(branch.canvas, rows, pad)
        slots = self.before.masked[0].nonzero()[:, 0]
        completion = branch.completion[rows][:, pad:].cpu()[:, slots]
        self.words.update(completion.flatten().tolist())
        return {
            "parent": parent.tolist(),
            **{name: getattr(branch, name)[rows].tolist() for name in ("draw", "score", "blocks", "kept")},
            "writes": _changes(self.now.rows(parent), canvas, step),
            "completion": completion.tolist(),
        }


def _alone(canvas: Canvas, rows: Tensor, pad: int) -> Canvas:
    """Return one problem's rows without its batch: no padding, its own row numbers, on the CPU."""
    part = canvas.rows(rows)
    zeros = torch.zeros(len(rows), dtype=torch.long)
    grids = {name: getattr(part, name)[:, pad:].cpu() for name in ("tokens", "order", "logp")}
    return replace(part, **grids, pad=zeros, problem=zeros, start=canvas.start - pad, ragged=False)


def _changes(old: Canvas, new: Canvas, step: int) -> list[list[Any]]:
    """Return [row, position, token, log p] of every change, and the step that wrote it if that is a different one."""
    differs = (old.tokens != new.tokens) | (old.order != new.order) | (old.logp != new.logp)
    writes = []
    for row, place in differs.nonzero().tolist():
        order = int(new.order[row, place])
        write = [row, place, int(new.tokens[row, place]), float(new.logp[row, place])]
        writes.append(write if order == step else [*write, order])
    return writes


def _written(canvas: Canvas, writes: list[list[Any]], step: int) -> Canvas:
    tokens, order, logp = canvas.tokens.clone(), canvas.order.clone(), canvas.logp.clone()
    for row, place, token, chance, *when in writes:
        tokens[row, place], logp[row, place] = token, chance
        order[row, place] = when[0] if when else step
    return replace(canvas, tokens=tokens, order=order, logp=logp)


def _read_branch(line: dict[str, Any], parents: Canvas, slots: Tensor, step: int) -> Branch:
    parent = torch.tensor(line["parent"], dtype=torch.long)
    canvas = _written(parents.rows(parent), line["writes"], step)
    completion = canvas.tokens.clone()
    completion[:, slots] = torch.tensor(line["completion"], dtype=torch.long)
    score, blocks = (torch.tensor(line[name], dtype=parents.logp.dtype) for name in ("score", "blocks"))
    draw, kept = torch.tensor(line["draw"]), torch.tensor(line["kept"])
    return Branch(canvas, completion, parent, draw, score, blocks, kept)


class Predictions:
    """The model's predictions for one problem's texts since the last frame, by text."""

    def __init__(self, frame: Frame, problem: int, pad: int):
        self.pad = pad
        self._asked: dict[bytes, tuple[Exchange, int]] = {}  # the last time that each text was asked about
        for exchange in frame.exchanges:
            tokens = exchange.canvas.tokens[:, pad:].cpu()
            for row in (exchange.canvas.problem == problem).nonzero()[:, 0].tolist():
                self._asked[tokens[row].numpy().tobytes()] = exchange, row

    def of(self, text: Tensor) -> dict[int, tuple[int, float]]:
        """Return the likeliest token and the entropy of each position that was asked about in this text."""
        if (asked := self._asked.get(text.numpy().tobytes())) is None:
            return {}
        exchange, row = asked
        with torch.inference_mode():
            token, entropy = exchange.beliefs.best[0][row].tolist(), exchange.beliefs.entropy[row].tolist()
        places = (exchange.at[row] - self.pad).tolist()
        return dict(zip(places, zip(token, entropy, strict=True), strict=True))

    def of_masks(self, canvas: Canvas, old: Canvas) -> Iterator[tuple[int, int, int, float]]:
        """Yield row, position, likeliest token and entropy of masks, from the row's text or else from its `old` one."""
        for row in canvas.masked.any(1).nonzero()[:, 0].tolist():
            found = self.of(canvas.tokens[row]) or self.of(old.tokens[row])
            masked = canvas.masked[row].tolist()
            yield from ((row, place, *values) for place, values in found.items() if masked[place])
