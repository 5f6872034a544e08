"""What ran, read from the records themselves: beams, temperatures, samples, lengths and seeds."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

from unmask.core import Decoder, decoder
from unmask.experiments.evidence import Evidence


def settings_run(evidence: Evidence) -> str:
    """In words, such as: K = 4; τ = 1.0 (searches), 0 and 0.7 (paths); votes of 5; L = 64."""
    values: dict[str, set[Any]] = {}
    for spec, length in sorted(_cells(evidence)):
        values.setdefault("L", set()).add(length)
        for name, value in _settings(decoder.make(spec)):
            values.setdefault(name, set()).add(value)
    words = [f"K = {_list(values['K'])}"] if "K" in values else []
    drawn = [f"{_list(values[kind])} ({kind})" for kind in ("searches", "paths") if kind in values]
    words += [f"τ = {', '.join(drawn)}"] if drawn else []
    words += [f"votes of {_list(values['n'])}"] if "n" in values else []
    return "; ".join([*words, f"L = {_list(values['L'])}"]) if values else ""


def _cells(evidence: Evidence) -> set[tuple[str, int]]:
    """Decoders and lengths of the records, or of the parts where something else than answers was measured."""
    records = {(record.decoder, record.length) for run in evidence.runs.values() for record in run.records}
    planned = {
        (method.spec, length) for part in evidence.parts for method, length in product(part.methods, part.lengths)
    }
    return records or planned


def _settings(chosen: Decoder) -> Iterator[tuple[str, Any]]:
    if hasattr(chosen, "n"):
        yield "n", chosen.n  # type: ignore[attr-defined]
    inner: Any = getattr(chosen, "inner", chosen)
    if hasattr(inner, "beams"):
        yield "K", inner.beams
    if hasattr(inner, "temperature"):
        yield "searches" if hasattr(inner, "beams") else "paths", float(inner.temperature)


def _list(values: set[Any]) -> str:
    return ", ".join(f"{value:g}" for value in sorted(values))
