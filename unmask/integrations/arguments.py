"""What a harness's flat arguments say of a model: which one, how it decodes and scores, and where it runs. Arguments as harnesses give them: `key=value,…` texts, and settings of generation, honoured or refused."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import torch

from unmask.errors import UnmaskError, nearest
from unmask.models import Model
from unmask.models.checkpoints.fingerprint import local_fingerprint
from unmask.policies.scoring import Scorer
from unmask.runs.scoring import SCORER, make_scorer, scorer_spec
from unmask.runs.settings import Decoding, Placement
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
    scorer: Scorer
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
        scoring = {"scorer": scorer_spec(self.scorer), "block": self.block}
        where = {key: value for key, value in vars(self.placement).items() if key in PLACEMENT - {"batch"}}
        known = {"unmask": __version__, "torch": torch.__version__, "model": self.name}
        return known | {"checkpoint": local_fingerprint(self.name)} | decoding | scoring | where


def read_settings(name: Any, values: Mapping[str, Any]) -> HarnessSettings:
    """From a model's name and arguments by the names of `Decoding` and `Placement`, with `scorer` and `block`."""
    if not isinstance(name, str) or not name:
        raise UnmaskError("the model is missing: give its name, folder or hub id")
    known = DECODING | PLACEMENT | {"scorer", "block"}
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
        make_scorer(given.get("scorer", SCORER)),
        given.get("block"),
    )


LENGTHS = ("max_gen_toks", "max_new_tokens", "max_tokens", "max_completion_tokens")
# Settings that decoders here do not have, with the values that mean nothing.
NEUTRAL: dict[str, tuple[Any, ...]] = {
    "top_p": (1,),
    "top_k": (0, None),
    "num_beams": (1,),
    "num_return_sequences": (1,),
    "num_choices": (1,),
    "best_of": (1,),
    "frequency_penalty": (0,),
    "presence_penalty": (0,),
    "logit_bias": ({},),
    "logprobs": (False,),
    "top_logprobs": (0,),
}


class Wanted(NamedTuple):
    """How a request is to be answered."""

    length: int
    stop: tuple[str, ...]
    temperature: float | None  # None: the decoder's own
    sample: int = 0


def read_arguments(text: str) -> dict[str, Any]:
    """A JSON object, or `key=value` separated by commas; those inside brackets separate nothing."""
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
    """At commas outside brackets."""
    parts, depth = [""], 0
    for letter in text:
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and depth <= 0:
            parts.append("")
        else:
            parts[-1] += letter
    return parts


def _plain(value: str) -> Any:
    """A number or a truth value, else the text itself."""
    try:
        return json.loads(value.lower() if value in ("True", "False", "None") else value)
    except ValueError:
        return value


def check_whole(values: Mapping[str, Any]) -> None:
    """A spec that was cut at a comma or a blank has a bracket too many."""
    for key, value in values.items():
        if isinstance(value, str) and value.count("(") != value.count(")"):
            raise UnmaskError(f"{key}={value} was cut at a comma or blank: quote it, or give the arguments as JSON")


def read_wanted(values: Mapping[str, Any], length: int | None, usual: int) -> Wanted:
    """From a request's generation arguments. `length` is what the model was told to write, `usual` its default."""
    left = dict(values)
    most = [int(value) for name in LENGTHS if (value := left.pop(name, None)) is not None]
    if most and length is not None and length > most[0]:
        raise UnmaskError(f"length={length} is more than the task's max_gen_toks={most[0]}: choose at most that")
    until = left.pop("until", None) or []
    sampling, temperature = left.pop("do_sample", None), left.pop("temperature", None)
    for name, value in left.items():
        if name not in NEUTRAL:
            known = [*LENGTHS, "until", "do_sample", "temperature"]
            raise UnmaskError(f"{name}={value!r} is not something a decoder has: {nearest(name, known)}")
        if value not in NEUTRAL[name]:
            raise UnmaskError(f"{name}={value!r} is not something a decoder has: leave it out")
    stop = tuple(text for text in ([until] if isinstance(until, str) else until) if text)
    return Wanted(length or (most or [usual])[0], stop, _temperature(sampling, temperature))


def _temperature(sampling: Any, temperature: Any) -> float | None:
    """Without sampling, the decoder's own: it gives the same answer for the same seed."""
    if sampling is False or (sampling is None and not temperature):
        return None
    if not temperature:
        raise UnmaskError("do_sample=true needs a temperature above 0, as in temperature=0.8")
    return float(temperature)
