"""How often a likelihood ranks a right candidate above a wrong one, and at which search right candidates are lost.

As in pruning, candidates are compared only with those of the same problem and search; equal scores count half. The
figure of a problem is the share of its pairs that are ranked correctly. The estimate is the mean over problems that
have candidates of both kinds, with its error over problems.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from os import PathLike
from statistics import fmean
from typing import Literal

import numpy as np

from unmask.errors import UnmaskError
from unmask.report.gather import grouped
from unmask.report.plots import Plot, Point, draw, keep, kind_of
from unmask.report.statistics import Estimate, estimate
from unmask.report.tables import MISSING, Table
from unmask.runs.candidates import SCORES, Candidate

Label = Literal["right", "finished"]
BASELINE = "block"  # the paper's own likelihood


@dataclass(frozen=True)
class Quality:
    """The area under the ROC curve of one likelihood, at one block or over all blocks."""

    score: str  # name of the likelihood
    block: int | None  # None: all blocks
    auc: Estimate  # over the problems that have candidates of both kinds
    lead: Estimate  # over the baseline, paired by problem
    problems: int  # number of problems, including those with nothing to compare
    pairs: int  # number of pairs of a right and a wrong candidate
    right: Estimate  # share of candidates that are right, over all problems


def qualities(candidates: Iterable[Candidate], label: Label = "right") -> list[Quality]:
    """Measure every likelihood, for all blocks together and for each block.

    A candidate counts as right if its completion is right, or with the label `finished` if low-confidence completes it
    to a right answer.
    """
    every = list(candidates)
    for candidate in every:
        if getattr(candidate, label) is None:
            raise UnmaskError(f"problem {candidate.problem!r} has no {label!r} label: record it with finish=True")
    if not every:
        raise UnmaskError("a comparison needs at least 1 candidate, got no candidates")
    blocks = {None: every, **dict(sorted(grouped(every, attrgetter("block")).items()))}
    return [quality for block, drawn in blocks.items() for quality in _of_block(drawn, block, label)]


def _of_block(candidates: Iterable[Candidate], block: int | None, label: Label) -> Iterable[Quality]:
    problems = grouped(candidates, attrgetter("problem"))
    right = estimate([fmean(map(attrgetter(label), drawn)) for drawn in problems.values()])
    counts = {score: {name: _pairs(drawn, score, label) for name, drawn in problems.items()} for score in SCORES}
    shares = {score: {name: won / n for name, (won, n) in each.items() if n} for score, each in counts.items()}
    for score in SCORES:
        lead = estimate([share - shares[BASELINE][problem] for problem, share in shares[score].items()])
        pairs = sum(n for _, n in counts[score].values())
        yield Quality(score, block, estimate(shares[score]), lead, len(problems), pairs, right)


def _pairs(candidates: Iterable[Candidate], score: str, label: Label) -> tuple[float, int]:
    """Return the sums of `rank` over the searches of one problem."""
    won, pairs = 0.0, 0
    for drawn in grouped(candidates, attrgetter("block", "step")).values():
        scores = [-np.inf if (value := each.scores[score]) is None else value for each in drawn]
        counts = rank([bool(getattr(each, label)) for each in drawn], scores)
        won, pairs = won + counts[0], pairs + counts[1]
    return won, pairs


def rank(right: Sequence[bool], scores: Sequence[float]) -> tuple[float, int]:
    """Return the number of pairs in which the right candidate scores higher, ties counting half, and of all pairs."""
    values, good = np.asarray(scores, dtype=np.float64), np.asarray(right, dtype=bool)
    above, below = values[good][:, None], values[~good][None]
    return float((above > below).sum() + 0.5 * (above == below).sum()), int(good.sum() * (~good).sum())


def quality_table(measured: Sequence[Quality], title: str = "right above wrong") -> Table:
    """Return a table of the AUC of each likelihood for each block, and of its lead over the paper's own."""
    blocks = _blocks(measured)
    by_place = {(each.score, each.block): each for each in measured}
    body = []
    for score in dict.fromkeys(each.score for each in measured):
        figures = [_figure(by_place[score, block].auc) for block in blocks]
        body.append((score, *figures, _figure(by_place[score, None].lead, signed=True)))
    head = ("likelihood", *map(_name, blocks), f"all blocks, minus {BASELINE}")
    return Table.of("quality", title, head, body, _notes(measured))


def _notes(measured: Sequence[Quality]) -> Iterable[str]:
    yield (
        "The chance that a right candidate has a higher score than a wrong one of the same problem and search, ± "
        "standard error over problems; 0.5 is a coin flip. Copies of a candidate count as often as they were drawn."
    )
    for each in measured:
        if each.score == BASELINE:
            share = 100 * (each.right.value or 0.0)
            yield (
                f"{_name(each.block)}: {each.auc.n} of {each.problems} problems have candidates of both kinds "
                f"({each.pairs} pairs); {share:.1f} % of candidates are right."
            )


def _blocks(measured: Sequence[Quality]) -> list[int | None]:
    """Return all blocks in their order; that of all blocks together is the last."""
    return sorted({each.block for each in measured}, key=lambda block: np.inf if block is None else block)


def _name(block: int | None) -> str:
    return "all blocks" if block is None else f"block {block + 1}"


def _figure(auc: Estimate, signed: bool = False) -> str:
    if auc.value is None:
        return MISSING
    error = "" if auc.error is None else f" ± {auc.error:.3f}"
    value = round(auc.value, 3) + 0.0  # without the sign of a zero
    text = f"{value:+.3f}" if signed else f"{value:.3f}"
    return text.replace("-", "−") + error


def draw_quality(measured: Sequence[Quality], path: str | PathLike[str]) -> None:
    """Write the plot as SVG, PNG or PDF, by the suffix of the path."""
    keep(draw(quality_plot(measured, "quality", ""), kind_of(path)), path)


def quality_plot(measured: Sequence[Quality], name: str, title: str) -> Plot:
    blocks = _blocks(measured)
    lines: dict[str, list[Point]] = {}
    for each in measured:
        points = lines.setdefault(each.score, [])
        if each.auc.value is not None:
            points.append(Point(float(blocks.index(each.block)), each.auc))
    counts = {each.block: each.auc.n for each in measured if each.score == BASELINE}
    ticks = tuple(f"{_name(block)}\nn={counts[block]}" for block in blocks)
    curves = tuple((score, tuple(points)) for score, points in lines.items())
    axis = "AUC, right above wrong  (± standard error)"
    return Plot(name, title, "", curves, axis, level=("chance", 0.5), shares=False, ticks=ticks)


def survival_table(candidates: Iterable[Candidate], title: str) -> Table:
    """Return by block the share of problems with a right candidate, with a right one kept, and that lose the last one.

    A candidate is right if its completion is. The candidates that the last search keeps are the final beams.
    """
    body = []
    for block, drawn in sorted(grouped(candidates, attrgetter("block")).items()):
        problems = [_of_problem(each) for each in grouped(drawn, attrgetter("problem")).values()]
        shares = [estimate(list(map(float, flags))) for flags in zip(*problems, strict=True)]
        body.append((str(block + 1), *shares, str(len(problems))))
    head = ("block", "among the candidates", "among the kept", "lost here", "the best is right", "n")
    return Table.of("accuracy", title, head, body, rank=False)


def _of_problem(candidates: list[Candidate]) -> tuple[bool, bool, bool, bool]:
    """Return whether a right one was drawn, kept, lost and ranked best in the last search of a block."""
    last = max(candidate.step for candidate in candidates)
    final = [candidate for candidate in candidates if candidate.step == last]  # of several searches in a block
    kept = [candidate for candidate in final if candidate.kept]
    drew, held = any(each.right for each in final), any(each.right for each in kept)
    best = max(kept, key=lambda each: each.scores["block"] if each.scores["block"] is not None else float("-inf"))
    return drew, held, drew and not held, best.right
