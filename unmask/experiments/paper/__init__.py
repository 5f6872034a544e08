"""The paper's own figures (arXiv 2601.20339), each with the table or section it stands in."""

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
    """The paper's name of a model, where it is one of the paper's."""
    return next((model for model in MODELS if name.rstrip("/").endswith(model)), None)
