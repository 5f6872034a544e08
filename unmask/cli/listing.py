"""The entries of `unmask list`, from the code itself."""

from typing import Any

import unmask.decoders
import unmask.models
import unmask.tasks  # noqa: F401  imported to register their classes
from unmask.core import decoder
from unmask.entries import describe_entry
from unmask.experiments import EXPERIMENTS
from unmask.models import model
from unmask.models.family import family
from unmask.policies.likelihood import likelihood
from unmask.registry import Registry
from unmask.runs.scoring import way
from unmask.tasks import task

REGISTRIES: dict[str, Registry[Any]] = {
    "decoders": decoder,
    "likelihoods": likelihood,
    "models": model,
    "tasks": task,
    "ways": way,
}


def entries(what: str) -> list[dict[str, Any]]:
    if what == "experiments":
        return [_plain(each.name, f"{each.question.strip()} ({each.source})") for each in EXPERIMENTS.values()]
    listed = [describe_entry(REGISTRIES[what], name) for name in REGISTRIES[what]]
    return listed + families() if what == "models" else listed


def families() -> list[dict[str, Any]]:
    """Checkpoints are named by hub id or folder: each family with an id that works."""
    return [
        _plain(name, f"a family of checkpoints, each named by its folder or hub id, such as {cls.example}")
        | {"example": cls.example}
        for name in family
        for cls in [family.find(name)]
    ]


def _plain(name: str, summary: str) -> dict[str, Any]:
    return {"name": name, "aliases": [], "summary": summary, "settings": []}
