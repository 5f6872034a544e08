"""What a harness's flat arguments say of a model: which one, how it decodes and scores, and where it runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import torch

from unmask.errors import UnmaskError, nearest
from unmask.models import Model
from unmask.models.digest import checkpoint
from unmask.policies.way import Way
from unmask.runs.decoding import Decoding
from unmask.runs.placement import Placement
from unmask.runs.scoring import WAY, make_way, way_spec
from unmask.version import __version__

DECODING = {field.name for field in fields(Decoding)}
PLACEMENT = {field.name for field in fields(Placement)} - {"memory"}  # which only sizes the batches of a run
BATCH = 16  # requests decoded together where nobody says how many


@dataclass(frozen=True)
class HarnessSettings:
    name: str  # of the model
    decoding: Decoding
    length: int | None  # masks after a prompt; None: the request says, or the model's own
    placement: Placement
    way: Way
    block: int | None  # tokens per block when texts are scored

    def load(self) -> Model:
        torch.set_float32_matmul_precision(self.placement.precision)
        return self.placement.load(self.name)

    @property
    def batch(self) -> int:
        return self.placement.batch or BATCH

    def record(self) -> dict[str, Any]:
        """Plain values: all that results depend on."""
        decoding = self.decoding.to_dict() | {"length": self.length}
        scoring = {"way": way_spec(self.way), "block": self.block}
        where = {key: value for key, value in vars(self.placement).items() if key in PLACEMENT - {"batch"}}
        known = {"unmask": __version__, "torch": torch.__version__, "model": self.name}
        return known | {"checkpoint": checkpoint(self.name)} | decoding | scoring | where


def read_settings(name: Any, values: Mapping[str, Any]) -> HarnessSettings:
    """From a model's name and arguments by the names of `Decoding` and `Placement`, with `way` and `block`."""
    if not isinstance(name, str) or not name:
        raise UnmaskError("the model is missing: give its name, folder or hub id")
    known = DECODING | PLACEMENT | {"way", "block"}
    for key in values:
        if key not in known:
            raise UnmaskError(f"unknown argument {key!r}: {nearest(key, known)}")
    given = {key: value for key, value in values.items() if value is not None}
    if not isinstance(given.get("batch", 1), int):
        raise UnmaskError(f"batch={given['batch']!r} does not work: give a whole number")
    return HarnessSettings(
        name,
        Decoding.from_dict({key: given[key] for key in DECODING & given.keys()}),
        given.get("length"),
        Placement(**{key: given[key] for key in PLACEMENT & given.keys()}),
        make_way(given.get("way", WAY)),
        given.get("block"),
    )
