"""Arguments as harnesses give them: `key=value,…` texts that name a model and its settings, and those of a request.

Every argument is honoured or refused.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import torch

from unmask.core import reseed
from unmask.errors import UnmaskError, check_known, nearest
from unmask.models import Model
from unmask.models.checkpoints.fingerprint import local_fingerprint
from unmask.policies.scoring import Scorer
from unmask.runs.scoring import SCORER, make_scorer, scorer_spec
from unmask.runs.settings import Decoding, Placement, check_integer, with_temperature
from unmask.serve.request import NEUTRAL, check_neutral
from unmask.version import __version__

DECODING = {field.name for field in fields(Decoding)}
PLACEMENT = {field.name for field in fields(Placement)} - {"memory"}  # which only sizes the batches of a run
BATCH = 16  # requests decoded together by default


@dataclass(frozen=True)
class HarnessSettings:
    """A model of a harness: which one, how it decodes and scores, and where it runs."""

    name: str  # name of the model
    decoding: Decoding
    length: int | None  # masks after a prompt; None: as the request says, or the model's own
    placement: Placement
    scorer: Scorer
    block: int | None  # tokens per block when texts are scored

    def load(self) -> Model:
        """Load the model."""
        torch.set_float32_matmul_precision(self.placement.precision)
        return self.placement.load(self.name)

    def request(
        self, length: int, stop: Sequence[str], temperature: float | None, seed: int | None = None, sample: int = 0
    ) -> Decoding:
        """Return how a request is decoded; `sample` is its number among equal ones, which are independent.

        A temperature or seed of None is the model's own.
        """
        own = self.decoding
        chosen = own.decoder if temperature is None else with_temperature(own.decoder, temperature)
        seed = reseed(own.seed if seed is None else seed, sample)
        return replace(own, decoder=chosen, length=length, seed=seed, stop=(*own.stop, *stop))

    @property
    def batch(self) -> int:
        """The number of requests decoded together."""
        return self.placement.batch or BATCH

    def record(self) -> dict[str, Any]:
        """Return all that results depend on, as plain values."""
        decoding = self.decoding.to_dict() | {"length": self.length}
        scoring = {"scorer": scorer_spec(self.scorer), "block": self.block}
        where = {key: value for key, value in vars(self.placement).items() if key in PLACEMENT - {"batch"}}
        known = {"unmask": __version__, "torch": torch.__version__, "model": self.name}
        return known | {"checkpoint": local_fingerprint(self.name)} | decoding | scoring | where


def read_settings(name: Any, values: Mapping[str, Any]) -> HarnessSettings:
    """Read a model's name and its arguments: the fields of `Decoding` and `Placement`, `scorer` and `block`."""
    if not isinstance(name, str) or not name:
        raise UnmaskError("the model is missing: give its name, folder or hub id")
    known = DECODING | PLACEMENT | {"scorer", "block"}
    for key in values:
        check_known(known, argument=key)
    given = {key: value for key, value in values.items() if value is not None}
    check_integer(1, batch=given.get("batch", 1))
    return HarnessSettings(
        name,
        Decoding.from_dict({key: given[key] for key in DECODING & given.keys()}),
        given.get("length"),
        Placement(**{key: given[key] for key in PLACEMENT & given.keys()}),
        make_scorer(given.get("scorer", SCORER)),
        given.get("block"),
    )


LENGTHS = ("max_gen_toks", "max_new_tokens", "max_tokens", "max_completion_tokens")


def read_arguments(text: str) -> dict[str, Any]:
    """Read a JSON object, or `key=value` separated by commas outside brackets."""
    if text.lstrip().startswith("{"):
        try:
            return json.loads(text)
        except ValueError as error:
            raise UnmaskError(f"the model's arguments are not JSON: {error}") from None
    values: dict[str, Any] = {}
    for part in filter(None, map(str.strip, _split(text))):
        key, equals, value = part.partition("=")
        if not equals:
            raise UnmaskError(f"{part!r} is not key=value: give the model's arguments as key=value,key=value or JSON")
        values[key.strip()] = _plain(value.strip())
    return values


def _split(text: str) -> list[str]:
    """Split a text at commas outside brackets."""
    parts, depth = [""], 0
    for letter in text:
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and depth <= 0:
            parts.append("")
        else:
            parts[-1] += letter
    return parts


def _plain(value: str) -> Any:
    """Return a number or a truth value, else the text itself."""
    try:
        return json.loads(value.lower() if value in ("True", "False", "None") else value)
    except ValueError:
        return value


def check_whole(values: Mapping[str, Any]) -> None:
    """Refuse a spec that was cut at a comma or a blank, which has a bracket too many."""
    for key, value in values.items():
        if isinstance(value, str) and value.count("(") != value.count(")"):
            raise UnmaskError(f"{key}={value} was cut at a comma or blank: quote it, or give the arguments as JSON")


def read_request(values: Mapping[str, Any], length: int | None, usual: int) -> dict[str, Any]:
    """Read a request's generation arguments as those of `HarnessSettings.request`.

    `length` is set for the model if not None, `usual` is its default.
    """
    left = dict(values)
    most = [int(value) for name in LENGTHS if (value := left.pop(name, None)) is not None]
    if most and length is not None and length > most[0]:
        raise UnmaskError(f"length must be at most the task's max_gen_toks={most[0]}, got {length}")
    until = left.pop("until", None) or []
    sampling, temperature = left.pop("do_sample", None), left.pop("temperature", None)
    for name, value in left.items():
        if name not in NEUTRAL:
            known = [*LENGTHS, "until", "do_sample", "temperature"]
            raise UnmaskError(f"{name}={value!r} is not supported: {nearest(name, known)}")
        check_neutral(name, value)
    stop = tuple(text for text in ([until] if isinstance(until, str) else until) if text)
    heat = _temperature(sampling, temperature)
    return {"length": length or (most or [usual])[0], "stop": stop, "temperature": heat}


def _temperature(sampling: Any, temperature: Any) -> float | None:
    """Return the temperature of sampling, or None for the decoder's own if nothing is sampled."""
    if sampling is False or (sampling is None and not temperature):
        return None
    if not temperature:
        raise UnmaskError("do_sample=true needs a temperature greater than 0, such as temperature=0.8")
    return float(temperature)
