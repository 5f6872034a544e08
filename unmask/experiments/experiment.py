"""An experiment: a question, the cells that answer it, and the claims and tables that follow from their records. Whether a claim that holds over problems also points the same way under every seed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import Any, Literal

from unmask.experiments.methods import Part
from unmask.experiments.results import Evidence
from unmask.experiments.runner import Runner
from unmask.experiments.setup import Setup
from unmask.report.gather import mean_by_problem, result_of
from unmask.report.plots import Plot, draw, one_scale
from unmask.report.statistics import Difference, exceeds, mcnemar
from unmask.report.tables import Table, signed

Outcome = Literal["holds", "does not hold", "not decided", "not asked"]
SIGNS: dict[Outcome, str] = {"holds": "✓", "does not hold": "✗", "not decided": "?", "not asked": "–"}
ALPHA = 0.05  # two-sided


@dataclass(frozen=True)
class Claim:
    text: str
    outcome: Outcome
    figures: str  # that the outcome rests on

    def json(self, source: str) -> dict[str, Any]:
        return {"claim": self.text, "source": source, "outcome": self.outcome, "said": self.figures}

    def __str__(self) -> str:
        return f"{SIGNS[self.outcome]} {self.outcome}: {self.text} — {self.figures}"


def judge(text: str, names: str, difference: Difference | None, missing: str = "no records of both") -> Claim:
    """The claim that a difference is above 0."""
    if difference is None:
        return Claim(text, "not asked", missing)
    decided = difference.p <= ALPHA and difference.value != 0
    outcome = "not decided" if not decided else "holds" if difference.value > 0 else "does not hold"
    return Claim(text, outcome, ": ".join(filter(None, (names, describe(difference)))))


def at_most_below(text: str, names: str, difference: Difference, margin: float) -> Claim:
    """The claim that a difference is above minus the margin: an equivalence, which needs a test of its own.

    It holds if the difference is significantly above that bound, fails if it is significantly below it.
    """
    higher, lower = exceeds(difference, -margin), exceeds(_reversed(difference), margin)
    outcome = "holds" if higher <= ALPHA else "does not hold" if lower <= ALPHA else "not decided"
    return Claim(text, outcome, f"{names}: {points(difference)} ({chance(min(higher, lower))}, one-sided)")


def _reversed(difference: Difference) -> Difference:
    return replace(difference, value=-difference.value)


def by_sign(text: str, within: int, beyond: int, figures: str) -> Claim:
    """The claim that most problems are within a bound, by the exact sign test."""
    p = mcnemar(within, beyond)
    outcome = "not decided" if p > ALPHA else "holds" if within > beyond else "does not hold"
    return Claim(text, outcome, f"{figures}; {within} of {within + beyond} problems within it ({chance(p)})")


def above(evidence: Evidence, text: str, after: str, before: str, benchmarks: Sequence[str] | None = None) -> Claim:
    """The claim that one method is better than another on the mean over benchmarks."""
    names = f"{evidence.label(after)} minus {evidence.label(before)}"
    return judge(text, names, evidence.difference(after, before, benchmarks))


def all_hold(text: str, claims: Iterable[Claim]) -> Claim:
    """The claim that all of these hold, leaving out those without records."""
    known = [claim for claim in claims if claim.outcome != "not asked"]
    if not known:
        return Claim(text, "not asked", "no records")
    outcomes = {claim.outcome for claim in known}
    order: tuple[Outcome, ...] = ("does not hold", "not decided", "holds")
    figures = "; ".join(": ".join(filter(None, (claim.text, claim.figures))) for claim in known)
    return Claim(text, next(outcome for outcome in order if outcome in outcomes), figures)


def describe(difference: Difference) -> str:
    return f"{points(difference)} ({chance(difference.p)})"


def points(difference: Difference) -> str:
    return signed(difference.value) + ("" if difference.error is None else f" ± {100 * difference.error:.1f}")


def chance(p: float) -> str:
    """Digits below a millionth would be noise."""
    if p < 1e-6:
        return "p < 1e-06"
    return f"p = {p:.3f}" if p >= 0.001 else f"p = {p:.0e}"


@dataclass(frozen=True)
class Findings:
    tables: list[Table]
    claims: list[Claim] = field(default_factory=list)
    plots: list[Plot] = field(default_factory=list)
    pictures: Mapping[str, Callable[[str], bytes]] = field(default_factory=dict)  # by name; drawn as `svg` or `png`
    text: str = ""  # shown as it is

    def images(self, *kinds: str) -> dict[str, bytes]:
        """By file name."""
        plots = [plot for plot in self.plots if plot.lines]
        drawn = {f"{plot.name}.{kind}": draw(plot, kind) for plot in one_scale(plots) for kind in kinds}
        return drawn | {f"{name}.{kind}": picture(kind) for name, picture in self.pictures.items() for kind in kinds}


@dataclass(frozen=True)
class Experiment:
    name: str
    source: str  # the paper's table or figure
    doc: str | None  # the question, and notes after it
    parts: Callable[[Setup], list[Part]]
    findings: Callable[[Evidence], Findings]
    measure: Callable[[Runner, Setup], Any] | None = None  # work other than an evaluation; its result is kept as JSON
    records: bool = True  # whether its parts are evaluated

    @property
    def question(self) -> str:
        return (self.doc or "").split("\n")[0]


def above_by_seed(
    evidence: Evidence, text: str, after: str, before: str, benchmarks: Sequence[str] | None = None
) -> Claim:
    """As `above`, but it holds only if no seed says otherwise; the difference under each seed stands in its figures."""
    claim = above(evidence, text, after, before, benchmarks)
    chosen = evidence.benchmarks if benchmarks is None else benchmarks
    values = [
        value for seed in seeds(evidence, after) if (value := _lead(evidence, after, before, chosen, seed)) is not None
    ]
    if len(values) < 2 or claim.outcome == "not asked":
        return claim
    outcome = "not decided" if claim.outcome == "holds" and min(values) <= 0 else claim.outcome
    return replace(claim, outcome=outcome, figures=f"{claim.figures}; by seed {', '.join(map(signed, values))}")


def seeds(evidence: Evidence, method: str) -> list[int]:
    series = (evidence.series(benchmark, method) for benchmark in evidence.benchmarks)
    return sorted({record.seed for each in series if each for drawn in each.records.values() for record in drawn})


def _lead(evidence: Evidence, after: str, before: str, benchmarks: Sequence[str], seed: int) -> float | None:
    """The mean over benchmarks of the difference on the problems that both have; None if a benchmark has none."""
    leads = []
    for benchmark in benchmarks:
        ours, theirs = (_right(evidence, benchmark, method, seed) for method in (after, before))
        common = ours.keys() & theirs.keys()
        if not common:
            return None
        leads.append(fmean(ours[problem] - theirs[problem] for problem in common))
    return fmean(leads) if leads else None


def _right(evidence: Evidence, benchmark: str, method: str, seed: int) -> dict[str, float]:
    """By problem, over all lengths, under a seed; a method that was not run under it has all its seeds together."""
    series, parts = evidence.series(benchmark, method), []
    for records in series.records.values() if series else ():
        chosen = [record for record in records if record.seed == seed]
        parts.append(result_of(chosen or records).right)
    return mean_by_problem(parts)
