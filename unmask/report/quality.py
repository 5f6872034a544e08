"""How well a likelihood tells right from wrong: the chance that it ranks a right candidate above a wrong one.

Candidates are compared with those of the same problem at the same search alone, as pruning compares them; equal scores
count half. A problem's figure is the share of its pairs that are ranked rightly, the estimate is the mean over problems
that have candidates of both kinds, and its error is over problems.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any, Literal

import numpy as np

from unmask.errors import UnmaskError
from unmask.report.figures import COLOURS, MARKS, keep, kind_of, render
from unmask.report.statistics import Estimate, estimate
from unmask.report.tables import Entry, Table
from unmask.runs.candidates import SCORES, Candidate

Label = Literal["right", "finished"]
BASELINE = "block"  # the paper's own: what the others are compared with


@dataclass(frozen=True)
class Quality:
    score: str  # which likelihood
    block: int | None  # None: all of them
    auc: Estimate  # over the problems that have candidates of both kinds
    lead: Estimate  # over the baseline's, paired by problem
    problems: int  # in all, whether or not there is anything to compare
    pairs: int
    right: Estimate  # the share of candidates that are, over all problems


@dataclass(frozen=True)
class Pairs:
    """Of one problem at one search, or several added up."""

    won: float
    pairs: int

    def __add__(self, other: Pairs) -> Pairs:
        return Pairs(self.won + other.won, self.pairs + other.pairs)


def qualities(candidates: Iterable[Candidate], label: Label = "right") -> list[Quality]:
    """Of every likelihood, for all blocks together and for each.

    The label is whether a candidate's completion is right, or with `finished` what low-confidence makes of it.
    """
    searches: dict[tuple[str, int, int], list[Candidate]] = {}
    for one in candidates:
        if getattr(one, label) is None:
            raise UnmaskError(f"problem {one.problem!r} was recorded without {label!r}: record it with finish=True")
        searches.setdefault((one.problem, one.block, one.step), []).append(one)
    if not searches:
        raise UnmaskError("there are no candidates to compare")
    blocks = sorted({block for _, block, _ in searches})
    return [found for block in (None, *blocks) for found in _of_block(searches, block, label)]


def _of_block(
    searches: Mapping[tuple[str, int, int], list[Candidate]], block: int | None, label: Label
) -> Iterable[Quality]:
    mine = {name: some for name, some in searches.items() if block is None or name[1] == block}
    right: dict[str, list[bool]] = {}
    for (problem, _, _), some in mine.items():
        right.setdefault(problem, []).extend(bool(getattr(one, label)) for one in some)
    base = estimate({problem: sum(some) / len(some) for problem, some in right.items()})
    counted = {score: _by_problem(mine, score, label) for score in SCORES}
    shares = {score: {name: one.won / one.pairs for name, one in found.items()} for score, found in counted.items()}
    for score in SCORES:
        lead = estimate([share - shares[BASELINE][problem] for problem, share in shares[score].items()])
        pairs = sum(one.pairs for one in counted[score].values())
        yield Quality(score, block, estimate(shares[score]), lead, len(right), pairs, base)


def _by_problem(searches: Mapping[tuple[str, int, int], list[Candidate]], score: str, label: Label) -> dict[str, Pairs]:
    """The pairs of each problem that has any."""
    found: dict[str, Pairs] = {}
    for (problem, _, _), some in searches.items():
        scores = [_value(one.scores[score]) for one in some]
        pairs = rank([bool(getattr(one, label)) for one in some], scores)
        if pairs.pairs:
            found[problem] = found.get(problem, Pairs(0.0, 0)) + pairs
    return found


def rank(right: Sequence[bool], scores: Sequence[float]) -> Pairs:
    """How many of the pairs of a right and a wrong one have the right one above, ties half."""
    values, good = np.asarray(scores, dtype=np.float64), np.asarray(right, dtype=bool)
    above, below = values[good][:, None], values[~good][None]
    return Pairs(float((above > below).sum() + 0.5 * (above == below).sum()), int(good.sum() * (~good).sum()))


def _value(score: float | None) -> float:
    return -np.inf if score is None else score


def quality_table(found: Sequence[Quality], title: str = "right above wrong") -> Table:
    """The AUC of each likelihood for each block, and how far it leads the paper's own."""
    blocks = _blocks(found)
    head = ("likelihood", *map(_name, blocks), f"all − {BASELINE}")
    by_place = {(one.score, one.block): one for one in found}
    scores = list(dict.fromkeys(one.score for one in found))
    body = []
    for score in scores:
        figures = [_figure(by_place[score, block].auc) for block in blocks]
        body.append((Entry(score), *figures, _figure(by_place[score, None].lead, signed=True)))
    return Table("quality", title, head, tuple(body), tuple(_notes(found)))


def _notes(found: Sequence[Quality]) -> Iterable[str]:
    yield (
        "The chance that a right candidate stands above a wrong one of the same problem and search, ± standard error "
        "over problems; 0.5 is a coin. Copies of one candidate count as often as they were drawn."
    )
    for one in found:
        if one.score == BASELINE:
            share = 100 * (one.right.value or 0.0)
            yield (
                f"{_name(one.block)}: {one.auc.n} of {one.problems} problems have candidates of both kinds "
                f"({one.pairs} pairs); {share:.1f} % of candidates are right."
            )


def _blocks(found: Sequence[Quality]) -> list[int | None]:
    known = {one.block for one in found}
    return [*sorted(block for block in known if block is not None), *([None] if None in known else [])]


def _name(block: int | None) -> str:
    return "all blocks" if block is None else f"block {block + 1}"


def _figure(found: Estimate, signed: bool = False) -> Entry:
    if found.value is None:
        return Entry("–")
    error = "" if found.error is None else f" ± {found.error:.3f}"
    text = f"{found.value:+.3f}" if signed else f"{found.value:.3f}"
    return Entry(text.replace("-", "−") + error, value=found.value)


def draw_quality(found: Sequence[Quality], path: str | PathLike[str], title: str = "") -> None:
    """Write the plot as SVG or PNG, by the path's suffix."""
    keep(quality_image(found, kind_of(path), title), path)


def quality_image(found: Sequence[Quality], kind: str, title: str = "") -> bytes:
    return render(lambda figure: _paint(figure, found, title), (6.4, 3.8), kind, layout="constrained")


def _paint(figure: Any, found: Sequence[Quality], title: str) -> None:
    axes = figure.subplots()
    blocks = _blocks(found)
    axes.axhline(0.5, color="#808080", linewidth=1, linestyle="--")
    axes.annotate("a coin", (1, 0.5), xycoords=("axes fraction", "data"), ha="right", va="bottom", color="#606060")
    scores = list(dict.fromkeys(one.score for one in found))
    for place, score in enumerate(scores):
        mine = {one.block: one.auc for one in found if one.score == score and one.auc.value is not None}
        apart = 0.14 * (place - (len(scores) - 1) / 2)
        axes.errorbar(
            [blocks.index(block) + apart for block in mine],
            [auc.value for auc in mine.values()],
            yerr=[auc.error or 0.0 for auc in mine.values()],
            label=score,
            color=COLOURS[place],
            marker=MARKS[place],
            linestyle="none",
            markersize=5,
            capsize=2,
            elinewidth=0.9,
        )
    counts = {one.block: one.auc.n for one in found if one.score == BASELINE}
    axes.set_xticks(range(len(blocks)), [f"{_name(block)}\nn={counts[block]}" for block in blocks])
    axes.set_xlim(-0.6, len(blocks) - 0.4)
    axes.set(ylabel="AUC, right above wrong  (± standard error)")
    axes.grid(axis="x", visible=False)
    axes.set_title(title, fontsize=10, loc="left")
    low, high = axes.get_ylim()
    axes.set_ylim(min(low, 0.4), max(min(high, 1.05), 0.6))
    figure.legend(loc="outside lower left", ncols=len(scores))
