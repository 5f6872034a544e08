"""The paper's claims, each judged by the records."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from unmask.experiments.evidence import Evidence
from unmask.report.statistics import Difference
from unmask.report.tables import signed

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
    return Claim(text, _outcome(difference), ": ".join(filter(None, (names, describe(difference)))))


def _outcome(difference: Difference) -> Outcome:
    if difference.p > ALPHA or difference.value == 0:
        return "not decided"
    return "holds" if difference.value > 0 else "does not hold"


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
