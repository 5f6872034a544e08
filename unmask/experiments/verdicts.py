"""What the records say of a claim: it holds, it does not, or they cannot tell."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from unmask.experiments.experiment import Outcome, Verdict
from unmask.experiments.found import Found
from unmask.report.statistics import Joint, joint
from unmask.report.tables import signed

ALPHA = 0.05  # two-sided


def outcome(found: Joint | None, alpha: float = ALPHA) -> Outcome:
    """Of the claim that a difference is above 0."""
    if found is None:
        return "not asked"
    if found.p > alpha or found.difference == 0:
        return "not decided"
    return "holds" if found.difference > 0 else "does not hold"


def above(
    found: Found, claim: str, source: str, after: str, before: str, benchmarks: Sequence[str], counted: str = "right"
) -> Verdict:
    """That one method is better than another, on the mean over benchmarks, problem by problem."""
    pairs = [found.compare(benchmark, before, after, counted) for benchmark in benchmarks]
    result = joint([pair for pair in pairs if pair is not None])
    if result is None or None in pairs:
        return Verdict(claim, source, "not asked", "no records of both")
    names = f"{found.label(after)} less {found.label(before)}"
    return Verdict(claim, source, outcome(result), f"{names}: {figure(result)}")


def all_of(claim: str, source: str, verdicts: Iterable[Verdict]) -> Verdict:
    """Holds where every one does; one that does not is enough to say so."""
    some = list(verdicts)
    known = [one for one in some if one.outcome != "not asked"]
    said = "; ".join(": ".join(filter(None, (one.claim, one.said))) for one in known)
    if not known:
        return Verdict(claim, source, "not asked", "no records")
    for word in ("does not hold", "not decided"):
        if any(one.outcome == word for one in known):
            return Verdict(claim, source, word, said)
    return Verdict(claim, source, "holds", said)


def figure(found: Joint) -> str:
    error = "" if found.error is None else f" ± {100 * found.error:.1f}"
    return f"{signed(found.difference)}{error} ({chance(found.p)})"


def chance(p: float) -> str:
    """Below a millionth neither the normal law nor a sum of floats has digits worth showing."""
    if p < 1e-6:
        return "p < 1e-06"
    return f"p = {p:.3f}" if p >= 0.001 else f"p = {p:.0e}"
