"""How runs were decoded and graded beyond what a record's cell says: figures compare only where it is the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

from unmask.errors import UnmaskError
from unmask.runs.store import Run

USUAL: dict[str, Any] = {
    "metric": "ours",
    "guidance": 0.0,
    "suppress": False,
    "early_end": False,
    "cache": "none",
    "stop": [],
    "precision": "highest",
}
APPROXIMATE = {"early_end": "Early end", "cache": "A cache"}


def shared_settings(runs: Sequence[Run]) -> dict[str, Any]:
    """Those that are not the usual ones; runs that do not share them are refused."""
    for one, other in combinations(runs, 2):
        models = set(one.spec.get("models", ())) & set(other.spec.get("models", ()))
        for key in (*USUAL, *(["dtype"] if models else [])):
            here, there = one.spec.get(key, USUAL.get(key)), other.spec.get(key, USUAL.get(key))
            if here != there:
                raise UnmaskError(
                    f"{str(one.folder)!r} and {str(other.folder)!r} differ in {key} ({here} and {there}): "
                    "their figures do not compare, report them apart"
                )
    return {key: runs[0].spec[key] for key, usual in USUAL.items() if runs[0].spec.get(key, usual) != usual}


def said(settings: Mapping[str, Any]) -> str:
    """In a sentence; empty where all is as usual."""
    if not settings:
        return ""
    words = [key if value is True else f"{key}={value}" for key, value in settings.items()]
    rough = [f" {name} is approximate." for key, name in APPROXIMATE.items() if key in settings]
    return f"Run with {', '.join(words)}." + "".join(rough)
