"""Everything `import unmask` offers, in one place: load a model, have prompts answered, watch, fill gaps."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias, overload

import torch

import unmask.decoders
import unmask.tasks  # noqa: F401  registers the tasks
from unmask import models
from unmask.core import Decoder, Frame, Watch, decoder
from unmask.errors import UnmaskError
from unmask.models import Messages, Model
from unmask.runs.generation import Generation, in_batches
from unmask.runs.output import Output
from unmask.runs.prompt import OnePrompt, Prompt, is_one, read_prompt
from unmask.runs.settings import Settings

DECODER = "order-token-search"
BATCH = 16  # prompts decoded together

ManyPrompts: TypeAlias = list[str] | list[Messages] | list[list[dict[str, str]]] | list[list[int]]
TraceWish: TypeAlias = bool | str | os.PathLike[str]


def load(
    name: str | Path,
    device: str | torch.device | None = None,
    dtype: str | torch.dtype | None = None,
    *,
    revision: str | None = None,
    compiled: bool = False,
) -> Model:
    """A model by name (`toy-chain(seed=3)`), folder or hub id; on a GPU where there is one, unless told otherwise.

    `compiled` fuses the layers' small operations, on a GPU; the first forwards then wait for the compiler.
    """
    if not str(name):
        raise UnmaskError("the model's name is empty: `unmask list models` shows those there are")
    if device is None:
        device = "cuda" if torch.cuda.is_available() else "cpu"
    return models.load(name, device, dtype, revision=revision, compiled=compiled)


@overload
def generate(
    model: Model | str,
    prompt: str | Messages | Sequence[int],
    *,
    decoder: str | Decoder = ...,
    length: int | None = ...,
    seed: int = ...,
    guidance: float = ...,
    suppress: bool = ...,
    early_end: bool = ...,
    cache: str = ...,
    stop: str | Sequence[str] = ...,
    key: Callable[[str], str] = ...,
    trace: TraceWish = ...,
    batch: int = ...,
    watch: Watch | None = ...,
) -> Output: ...
@overload
def generate(
    model: Model | str,
    prompt: ManyPrompts,
    *,
    decoder: str | Decoder = ...,
    length: int | None = ...,
    seed: int = ...,
    guidance: float = ...,
    suppress: bool = ...,
    early_end: bool = ...,
    cache: str = ...,
    stop: str | Sequence[str] = ...,
    key: Callable[[str], str] = ...,
    trace: TraceWish = ...,
    batch: int = ...,
    watch: Watch | None = ...,
) -> list[Output]: ...
def generate(
    model: Model | str,
    prompt: OnePrompt | ManyPrompts,
    *,
    decoder: str | Decoder = DECODER,
    length: int | None = None,
    seed: int = 0,
    guidance: float = 0.0,
    suppress: bool = False,
    early_end: bool = False,
    cache: str = "none",
    stop: str | Sequence[str] = (),
    key: Callable[[str], str] = str,
    trace: TraceWish = False,
    batch: int = BATCH,
    watch: Watch | None = None,
) -> Output | list[Output]:
    """Answer a prompt, or each of a list of them: text, chat messages or token ids.

    `length` masks follow the prompt (the model's own default without it). `guidance` is the scale of classifier-free
    guidance, `suppress` forbids end-of-text, `early_end` computes nothing after it (approximate), `stop` cuts the text.
    `cache` keeps keys and values through a block: of the `prefix`, or with `dual` of all but the block (approximate);
    `dual(refresh=4)` computes all of them anew every 4 steps.
    `key` maps a text to what votes compare. `trace=True` keeps a trace in `.trace`; a path also writes it there.
    """
    model = _model(model)
    settings = _settings(model, decoder, length, seed, guidance, suppress, early_end, stop, cache)
    return _answer(Generation(model, settings, key=key), prompt, trace, batch, watch)


@overload
def fill(
    model: Model | str,
    prompt: str | Messages,
    *,
    decoder: str | Decoder = ...,
    length: int = ...,
    seed: int = ...,
    guidance: float = ...,
    suppress: bool = ...,
    cache: str = ...,
    stop: str | Sequence[str] = ...,
    key: Callable[[str], str] = ...,
    trace: TraceWish = ...,
    batch: int = ...,
    watch: Watch | None = ...,
) -> Output: ...
@overload
def fill(
    model: Model | str,
    prompt: list[str] | list[Messages],
    *,
    decoder: str | Decoder = ...,
    length: int = ...,
    seed: int = ...,
    guidance: float = ...,
    suppress: bool = ...,
    cache: str = ...,
    stop: str | Sequence[str] = ...,
    key: Callable[[str], str] = ...,
    trace: TraceWish = ...,
    batch: int = ...,
    watch: Watch | None = ...,
) -> list[Output]: ...
def fill(
    model: Model | str,
    prompt: str | Messages | list[str] | list[Messages],
    *,
    decoder: str | Decoder = DECODER,
    length: int = 0,
    seed: int = 0,
    guidance: float = 0.0,
    suppress: bool = False,
    cache: str = "none",
    stop: str | Sequence[str] = (),
    key: Callable[[str], str] = str,
    trace: TraceWish = False,
    batch: int = BATCH,
    watch: Watch | None = None,
) -> Output | list[Output]:
    """Fill the gaps of a text, each written `<mask:n>` for n tokens; `length` masks may follow the text as well.

    All masks form one list from left to right, which the decoder takes in blocks. `.text` is the whole text, filled.
    """
    model = _model(model)
    settings = _settings(model, decoder, length, seed, guidance, suppress, False, stop, cache)
    return _answer(Generation(model, settings, infill=True, key=key), prompt, trace, batch, watch)


@dataclass(frozen=True)
class Moment:
    """Where a decoding stands after a step."""

    frame: Frame  # every row: its canvas, its score, and at a search the candidates
    texts: tuple[str, ...]  # for each prompt, the leading row's answer so far; ░ stands for a mask

    @property
    def text(self) -> str:
        """Of the first prompt."""
        return self.texts[0]

    @property
    def step(self) -> int:
        """Counts from 1."""
        return self.frame.step


def stream(
    model: Model | str,
    prompt: OnePrompt | ManyPrompts,
    *,
    decoder: str | Decoder = DECODER,
    length: int | None = None,
    seed: int = 0,
    guidance: float = 0.0,
    suppress: bool = False,
    early_end: bool = False,
    cache: str = "none",
) -> Iterator[Moment]:
    """Watch a decoding: one moment a step, the last one's frame with all final rows."""
    model = _model(model)
    settings = _settings(model, decoder, length, seed, guidance, suppress, early_end, (), cache)
    generation = Generation(model, settings)
    prompts, _ = _prompts(generation, prompt)
    return (_moment(generation, prompts, frame) for frame in generation.frames(prompts))


def _answer(
    generation: Generation,
    prompt: OnePrompt | ManyPrompts | list[Messages],
    trace: TraceWish,
    batch: int,
    watch: Watch | None,
) -> Output | list[Output]:
    prompts, one = _prompts(generation, prompt)
    path = None if isinstance(trace, bool) else Path(trace)
    if path is not None:
        if not one:
            raise UnmaskError("a trace file holds one prompt: use trace=True and save each output's trace")
        check_writable(path)
    outputs = in_batches(generation, prompts, batch, traced=trace is not False, watch=watch)
    if path is not None and (kept := outputs[0].trace):
        kept.save(path)
    return outputs[0] if one else outputs


def check_writable(path: Path) -> None:
    """Before the work, not after it."""
    if path.is_dir():
        raise UnmaskError(f"{str(path)!r} is a folder: name a file in it")
    if not path.parent.is_dir():
        raise UnmaskError(f"there is no folder {str(path.parent)!r} to write {path.name!r} into: make it first")
    if not os.access(path.parent, os.W_OK):
        raise UnmaskError(f"nothing can be written into {str(path.parent)!r}: choose another folder")


def _prompts(generation: Generation, prompt: OnePrompt | ManyPrompts | list[Messages]) -> tuple[list[Prompt], bool]:
    if not isinstance(prompt, Sequence):
        raise UnmaskError(f"a prompt is text, chat messages or token ids, not {type(prompt).__name__}")
    one = is_one(prompt)
    each = [prompt] if one else prompt
    return [read_prompt(generation.model, item, generation.infill) for item in each], one  # type: ignore[arg-type]


def _moment(generation: Generation, prompts: list[Prompt], frame: Frame) -> Moment:
    texts = []
    problem, score = frame.canvas.problem.tolist(), frame.score.tolist()
    for number, prompt in enumerate(prompts):
        leader = max((row for row, mine in enumerate(problem) if mine == number), key=score.__getitem__)
        ids = frame.canvas.tokens[leader, int(frame.canvas.pad[leader]) :].tolist()
        texts.append(generation.partial(prompt, ids))
    return Moment(frame, tuple(texts))


def _model(model: Model | str) -> Model:
    return load(model) if isinstance(model, str) else model


def _settings(
    model: Model,
    wanted: str | Decoder,
    length: int | None,
    seed: int,
    guidance: float,
    suppress: bool,
    early_end: bool,
    stop: str | Sequence[str],
    cache: str,
) -> Settings:
    words = (stop,) if isinstance(stop, str) else tuple(stop)
    length = model.default_length if length is None else length
    return Settings(decoder.make(wanted), length, seed, guidance, suppress, early_end, words, cache)
