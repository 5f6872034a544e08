"""The paper's own figures (arXiv 2601.20339), each with its table or section."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any

MODELS = ("LLaDA-8B-Instruct", "LLaDA-1.5")


@cache
def paper(name: str) -> dict[str, Any]:
    return json.loads(files(__name__).joinpath(f"{name}.json").read_text("utf-8"))


def model_of(name: str) -> str | None:
    """The paper's name of a model; None if it is not one of the paper's."""
    return next((model for model in MODELS if name.rstrip("/").endswith(model)), None)


def published_columns(name: str, model: str, benchmark: str) -> dict[str, dict[str, float]]:
    """By column and method, the figures at each length and their average; other models get the paper's first one's."""
    table = paper(name)
    rows = table["models"][model_of(model) or MODELS[0]]
    figures = {method: [*row["benchmarks"][benchmark], row["averages"][benchmark]] for method, row in rows.items()}
    columns = [*table["lengths"], "average"]
    return {f"paper: {at}": {method: row[i] for method, row in figures.items()} for i, at in enumerate(columns)}
