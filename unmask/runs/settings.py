"""Two settings values, how prompts are decoded and where models run, which the API, grids, jobs and records hold whole.

Work that would cost too much is refused before it starts.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, is_dataclass, replace
from numbers import Integral
from pathlib import Path
from typing import Any, Literal, TypedDict, get_args

import torch

import unmask.decoders  # noqa: F401  registers the decoders
from unmask.core import Adapter, Canvas, Decoder, Denoiser, decoder
from unmask.core.decoder import resolve
from unmask.errors import UnmaskError, check_at_least, check_known
from unmask.models import Model, load
from unmask.models.devices import choose_device, choose_dtype, format_bytes, named_device, stored_dtype
from unmask.models.load import registered
from unmask.models.network.kv_cache import cached, make_cache, usual_cache
from unmask.models.wrappers import EarlyEnd, Guided, Suppressed, after_stop
from unmask.runs.checking import Check, name_of, read_checks

DECODER = "search"  # the default; docs/search.md says why


class DecodingOptions(TypedDict, total=False):
    """The fields of `Decoding` as keyword arguments."""

    decoder: str | Decoder
    length: int | None
    seed: int
    guidance: float
    suppress: bool
    early_end: bool
    cache: str | None
    stop: str | Sequence[str]
    check: Check | Sequence[Check]


def _default_decoder() -> Decoder:
    return decoder.make(DECODER)


# The comments beside the fields are also the help of the command line's options.
@dataclass(frozen=True)
class Decoding:
    """How a prompt is decoded."""

    decoder: Decoder = field(default_factory=_default_decoder)  # a decoder and its settings, such as ots(beams=4)
    length: int = 0  # masks after the prompt
    seed: int = 0  # the same seed gives the same answer
    guidance: float = 0.0  # scale of classifier-free guidance; above 0 it doubles the forward passes
    suppress: bool = False  # never write end-of-text
    early_end: bool = False  # compute nothing after an answer's end-of-text; approximate (docs/speed.md)
    cache: str | None = None  # KV cache: none, exact, or approximate: prefix, dual, dual(refresh=4) (docs/speed.md)
    stop: tuple[str, ...] = ()  # cut the text before the first of these strings; a single path then computes no more
    check: tuple[Check, ...] = ()  # search until this passes: json(schema=FILE), regex(pattern=…), … (docs/checks.md)

    def __post_init__(self) -> None:
        if not isinstance(self.decoder, Decoder):
            raise UnmaskError(_not_a_decoder(self.decoder))
        check_integer(length=self.length, seed=self.seed)
        for name in ("length", "seed"):
            object.__setattr__(self, name, int(getattr(self, name)))  # integers of numpy are not JSON
        if isinstance(self.guidance, bool) or not isinstance(self.guidance, int | float):
            raise UnmaskError(f"guidance must be a number, got {self.guidance!r}")
        if not 0 <= self.guidance < math.inf:
            raise UnmaskError(f"guidance must be at least 0 and finite, got {self.guidance}")
        if self.suppress and self.early_end:
            raise UnmaskError("early_end waits for the end-of-text that suppress forbids: choose one of them")
        if not all(isinstance(text, str) and text for text in self.stop):
            raise UnmaskError(f"stop strings must be text of at least one character, got {list(self.stop)!r}")
        if self.cache is not None:
            object.__setattr__(self, "cache", make_cache(self.cache))  # one spelling in every record

    def denoiser(self, model: Model) -> Denoiser:
        """Return the model's denoiser with its cache. The meter is put over it."""
        return cached(model.denoiser, self.cache, model.name)

    def adapter(self, model: Model) -> Adapter:
        """Return what is put over the meter: guidance, whose forward passes are counted, suppression and early end."""

        def adapt(denoiser: Denoiser, canvas: Canvas) -> Denoiser:
            denoiser = guided(denoiser, canvas, self.guidance, model.eos if self.suppress else ())
            if self.early_end:
                denoiser = EarlyEnd(denoiser, model.eos)
            path = self.decoder.single_path and self.decoder.commits_only
            if self.stop and path and model.eos:  # what follows a stop string on a single path changes no answer
                denoiser = EarlyEnd(denoiser, model.eos, after_stop(model, self.stop))
            return denoiser

        return adapt

    def to_dict(self) -> dict[str, Any]:
        """Return plain values: the decoder as its spec."""
        checks = [name_of(check) for check in self.check]
        return {**vars(self), "decoder": spec(self.decoder), "stop": list(self.stop), "check": checks}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Decoding:
        """Read what `to_dict` returned or a user wrote: a decoder's spec, one stop string or a list of them."""
        stop = values.get("stop")
        stop = () if stop is None else stop
        if not isinstance(stop, Iterable):
            raise UnmaskError(f"stop must be a text or a list of texts, got {stop!r}")
        parts: dict[str, Any] = {"decoder": decoder.make(values.get("decoder", DECODER))}
        parts |= {"stop": (stop,) if isinstance(stop, str) else tuple(stop), "check": read_checks(values.get("check"))}
        return cls(**{**values, **parts})

    def record(self, masks: int, model: Model) -> dict[str, Any]:
        """Return plain values with every default written out for this model and number of masks."""
        chosen = resolve(self.decoder, model.denoiser.block_size, masks)
        return replace(self, decoder=chosen, cache=self.cache or usual_cache(model.denoiser)).to_dict()


def guided(denoiser: Denoiser, canvas: Canvas, scale: float, never: Collection[int] = ()) -> Denoiser:
    """Wrap a denoiser in classifier-free guidance above a scale of 0, and suppress the tokens `never`."""
    if scale > 0:
        denoiser = Guided(denoiser, canvas.real & ~canvas.masked, scale)
    return Suppressed(denoiser, never) if never else denoiser


def spec(value: Decoder) -> str:
    """Return the decoder's text form, or the repr of a decoder that is not registered."""
    try:
        return decoder.spec(value)
    except UnmaskError:
        return repr(value)


def decoder_with(setting: str) -> str | None:
    """Return the name of a decoder that has this setting, a simple one first."""
    names = ("low-confidence", "order-token-search", *decoder)
    return next((name for name in names if setting in {each.name for each in fields(decoder.find(name))}), None)  # type: ignore[arg-type]


def with_temperature(chosen: Decoder, temperature: float) -> Decoder:
    """Return the decoder with this temperature, set in itself or in the decoder that it wraps.

    A decoder without a temperature takes the likeliest tokens, so 0 leaves it as it is.
    """
    names = {field.name for field in fields(chosen)} if is_dataclass(chosen) else set()  # type: ignore[arg-type]
    if "temperature" in names:
        return replace(chosen, temperature=float(temperature))  # type: ignore[type-var]
    if "inner" in names:
        return replace(chosen, inner=with_temperature(chosen.inner, temperature))  # type: ignore[type-var, attr-defined]
    if temperature:
        raise UnmaskError(
            f"decoder {decoder.name(chosen)!r} has no temperature: leave it out, or choose a decoder that has one"
        )
    return chosen


def _not_a_decoder(value: object) -> str:
    if callable(value) and not isinstance(value, type):
        return f"{type(value).__name__} is not a decoder: derive it from unmask.core.Decoder"
    return f"a decoder must be a spec such as 'ots(beams=4)' or a Decoder, got {type(value).__name__}"


Precision = Literal["highest", "high"]


# The comments beside the fields are also the help of the command line's options.
@dataclass(frozen=True)
class Placement:
    """Where a model runs."""

    device: str | None = None  # device of the model: cpu or cuda; by default a GPU if there is one
    dtype: str | None = None  # number type of the weights: float32, bfloat16, …; by default the model's own
    precision: str = "highest"  # precision of float32 products: highest, or high for TF32 on a GPU
    compiled: bool = False  # fuse the operations of each layer; needs a GPU, and time to compile
    batch: int | None = None  # batch size; by default it grows while larger batches are faster
    memory: float | None = None  # gigabytes that may be in use; by default most of the free memory

    def __post_init__(self) -> None:
        if self.device is not None:
            named_device(self.device)
        check_known(get_args(Precision), precision=str(self.precision))
        check_at_least(1, batch=self.batch)
        if self.memory is not None and not 0 < self.memory < math.inf:
            raise UnmaskError(f"memory must be gigabytes greater than 0, got {self.memory}")

    @property
    def chosen_device(self) -> str:
        """The named device, by default a GPU if there is one."""
        if self.device is not None:
            return self.device
        return "cuda" if torch.cuda.is_available() else "cpu"

    @property
    def budget(self) -> int | None:
        """The bytes that may be in use, or None for most of the free memory."""
        return None if self.memory is None else int(self.memory * 10**9)

    def load(self, name: str | Path, revision: str | None = None) -> Model:
        """Load a model by name, folder or hub id onto this device."""
        if not isinstance(name, str | Path):
            raise UnmaskError(f"a model must be a name, a folder or a hub id, got {type(name).__name__}")
        if not str(name):
            raise UnmaskError("the model's name is empty: `unmask list models` shows the known ones")
        return load(name, self.chosen_device, self.dtype, revision=revision, compiled=self.compiled)

    def resolved(self, models: Iterable[str], here: bool = True) -> Placement:
        """Return it with device and dtype written out; `here` is False if the models run on other machines."""
        device = choose_device(self.chosen_device) if here else torch.device(self.chosen_device)
        dtype = self.dtype or ("float32" if all(map(registered, models)) else None)
        number = choose_dtype(dtype, device) if here or dtype is None else stored_dtype(dtype)
        return replace(self, device=device.type, dtype=str(number).removeprefix("torch."))

    def spec(self) -> dict[str, Any]:
        """Return what belongs to a run; batch and memory do not change its results."""
        return {name: value for name, value in asdict(self).items() if name not in ("batch", "memory")}


MAX_FORWARD_PASSES = 1_000_000  # per problem, unless the user allows more
POSITION_BYTES = 64  # per position of a row: its tokens, scores and noise, in the copies that a step makes


def check_integer(least: int | None = None, **values: object) -> None:
    """Refuse values that are not integers, or below `least`."""
    for name, value in values.items():
        if isinstance(value, bool) or not isinstance(value, Integral):
            raise UnmaskError(f"{name} must be an integer, got {value!r}")
        if least is not None:
            check_at_least(least, **{name: int(value)})


def check_max_forward_passes(most: int | None) -> int:
    """Return the limit on the forward passes of a prompt, by default a million."""
    if most is None:
        return MAX_FORWARD_PASSES
    check_integer(1, max_forward_passes=most)
    return most


def check_cost(decoder: Decoder, masks: int, most: int, times: int = 1, positions: int = 0, advice: str = "") -> None:
    """Refuse a decoder that may need more than `most` forward passes, each counted `times` times.

    `positions` is the width of prompt and answer, for an estimate of the memory.
    """
    passes = decoder.max_forward_passes(masks) * times
    if passes <= most:
        return
    memory = passes // max(masks, 1) * max(masks, positions) * POSITION_BYTES
    advice = advice or f"choose less, or allow it with max_forward_passes (--max-forward-passes {passes})"
    raise UnmaskError(f"{spec(decoder)} needs about {passes:,} forward passes, {format_bytes(memory)}: {advice}")
