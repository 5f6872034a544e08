"""What the sweeps draw from: exact models, ragged prompts with or without masks inside, and sizes that fit them."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from hypothesis import strategies as st

import unmask.decoders  # noqa: F401  registers
from unmask.core import Canvas, Decoder, Denoiser, decoder
from unmask.models.load import load
from unmask.policies.likelihood import likelihood

MODELS = {
    "toy-joint(letters=3, sharpness=1.5)": None,
    "toy-chain(letters=5)": None,
    "toy-transformer(letters=9, width=16, layers=1, sharpness=3)": "float64",
}
SETTINGS = {name: {field.name for field in fields(decoder.find(name))} for name in decoder}  # type: ignore[arg-type]
LONGEST = 9  # positions: a joint table over more is slow


LOADED = {spec: load(spec, dtype=dtype).denoiser for spec, dtype in MODELS.items()}


@dataclass(frozen=True)
class Problems:
    """A batch, decoded by one decoder under one seed."""

    model: str
    prompts: tuple[tuple[int, ...], ...]
    length: int
    seed: int

    @property
    def denoiser(self) -> Denoiser:
        return LOADED[self.model]

    @property
    def masks(self) -> list[int]:
        """How many positions each problem has to write."""
        return [self.length + prompt.count(self.denoiser.mask_id) for prompt in self.prompts]

    def canvas(self) -> Canvas:
        return Canvas.blank(self.prompts, self.length, self.denoiser.mask_id, infill=True, dtype=self.denoiser.dtype)


@st.composite
def problems(draw: st.DrawFn, longest: int = LONGEST, most: int = 3, infill: bool = True) -> Problems:
    model = draw(st.sampled_from(sorted(MODELS)))
    letters = LOADED[model].mask_id
    length = draw(st.integers(1, longest - 3))
    token = st.integers(0, letters - 1)
    if infill and draw(st.booleans()):
        token = token | st.just(letters)
    prompt = st.lists(token, min_size=1, max_size=longest - length).map(tuple)
    # Where nothing is visible, a transformer believes the same everywhere, and rounding decides the order.
    prompt = prompt.filter(lambda ids: any(token != letters for token in ids))
    prompts = draw(st.lists(prompt, min_size=1, max_size=most))
    return Problems(model, tuple(prompts), length, draw(st.integers(0, 2**32)))


@st.composite
def sizes(draw: st.DrawFn, masks: list[int]) -> dict[str, Any]:
    """A block and a number of steps that fit every problem of a batch; often they do not divide."""
    block = draw(st.none() | st.integers(1, min(masks)))
    fewest = max(-(-count // (block or 32)) for count in masks)
    steps = draw(st.none() | st.integers(fewest, min(masks))) if fewest <= min(masks) else None
    return {"block": block, "steps": steps}


@dataclass(frozen=True)
class Case:
    """Problems and the decoder they are given to, made outside the strategies."""

    problems: Problems
    name: str
    settings: dict[str, Any]

    @property
    def decoder(self) -> Decoder:
        return decoder.make(self.name, **self.settings)


LIKELIHOODS = [
    "block",
    "all-blocks",
    "future-masked",
    "interleaved(combs=2)",
    "interleaved(combs=3)",
    "leave-out(group=1)",
    "leave-out(group=2)",
]
TEMPERATURES = st.sampled_from([0.0, 0.4, 1.0])


@st.composite
def searches(draw: st.DrawFn) -> Case:
    given = draw(problems())
    beams = draw(st.integers(1, 5))
    settings = {
        "beams": beams,
        "temperature": draw(TEMPERATURES),
        "interval": draw(st.none() | st.integers(1, 4)),
        "likelihood": likelihood.make(draw(st.sampled_from(LIKELIHOODS))),
        "samples": draw(st.integers(1, 3 if beams < 4 else 2)),
    }
    settings["sure"] = None if settings["interval"] else draw(st.none() | st.sampled_from([0.0, 0.3, 0.6, 0.9]))
    return Case(given, "order-token-search", settings | draw(sizes(given.masks)))


@st.composite
def paths(draw: st.DrawFn, name: str) -> Case:
    given = draw(problems())
    settings = draw(sizes(given.masks)) | {"temperature": draw(TEMPERATURES)}
    settings["sure"] = draw(st.sampled_from([0.0, 0.3, 0.6, 0.9, 1.0]))
    settings["rule"] = draw(st.sampled_from(["confidence", "factor", "entropy"]))
    settings["factor"] = draw(st.sampled_from([0.0, 0.5, 1.0, 2.5]))
    settings["budget"] = draw(st.sampled_from([0.0, 0.3, 1.0, 3.0]))
    return Case(given, name, {key: value for key, value in settings.items() if key in SETTINGS[name]})
