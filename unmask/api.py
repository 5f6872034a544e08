"""Everything `import unmask` offers: load a model, answer prompts, watch the steps, fill gaps, score texts."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias, TypedDict, Unpack, overload

import torch

import unmask.tasks  # noqa: F401  registers the tasks
from unmask.core import Frame
from unmask.errors import UnmaskError, keywords_checked, nearest
from unmask.models import Messages, Model
from unmask.policies.scoring import Scorer
from unmask.runs.files import check_writable
from unmask.runs.generation import BATCH, BatchOptions, Generation, Key, Output, in_batches
from unmask.runs.progress import Progress
from unmask.runs.scoring import SCORER, OneText, Scored, Scoring, make_scorer, read_pair
from unmask.runs.settings import Decoding, DecodingOptions, Placement, check_max_forward_passes, decoder_with
from unmask.runs.text import EncodedPrompt, OnePrompt, is_one, plain_prompt

BATCHING = BatchOptions.__annotations__
LENGTHS = ("max_new_tokens", "max_tokens", "gen_length")  # names of `length` in other libraries
Ids: TypeAlias = torch.Tensor | Mapping[str, Any]  # tensors, and what a tokenizer of `transformers` returns
ManyPrompts: TypeAlias = list[str] | list[Messages] | list[list[dict[str, str]]] | list[list[int]]
TraceOption: TypeAlias = bool | str | os.PathLike[str]


class AnswerOptions(DecodingOptions, BatchOptions, total=False):
    """The keyword arguments of `generate` and `fill`."""

    key: Key
    trace: TraceOption
    max_forward_passes: int | None


class ScoreOptions(TypedDict, total=False):
    """The keyword arguments of `score`."""

    scorer: str | Scorer
    length: int | None
    block: int | None
    seed: int
    batch: int
    progress: Progress


@keywords_checked
def load(
    name: str | Path,
    device: str | torch.device | None = None,
    dtype: str | torch.dtype | None = None,
    *,
    revision: str | None = None,
    compiled: bool = False,
) -> Model:
    """Load a model by name (`toy-chain(seed=3)`), folder or hub id; by default on a GPU if there is one.

    `compiled` fuses the small operations of each layer, on a GPU; the first forward passes then wait for the compiler.
    """
    dtype = None if dtype is None else str(dtype).removeprefix("torch.")
    return Placement(None if device is None else str(device), dtype, compiled=compiled).load(name, revision)


@overload
def generate(model: Model | str, prompt: OnePrompt, **options: Unpack[AnswerOptions]) -> Output: ...
@overload
def generate(model: Model | str, prompt: ManyPrompts | Ids, **options: Unpack[AnswerOptions]) -> list[Output]: ...
def generate(model: Model | str, prompt: Any, **options: Unpack[AnswerOptions]) -> Any:
    """Answer a prompt, or each of a list of them: text, chat messages or token ids.

    Ids may be a list, a tensor, an array or what a tokenizer of `transformers` returns. Every field of
    `unmask.Decoding` is a keyword argument; `length` is by default the model's own. `key` maps a text to what votes
    compare. `trace=True` keeps a trace in `.trace`; a path also writes it there. `batch` prompts are decoded together,
    16 by default; no result depends on it. `watch(numbers, frame)` is called after every step with the indices of the
    prompts that took it, and the state of their rows. A prompt that may need more than `max_forward_passes` is refused,
    a million by default. With `errors="return"` the `UnmaskError` of a prompt that cannot be answered takes the place
    of its output. `progress=True` shows a bar on standard error; `progress(done, total)` is called after every batch.
    """
    return _answer(model, prompt, **options)


@overload
def fill(model: Model | str, prompt: str | Messages, **options: Unpack[AnswerOptions]) -> Output: ...
@overload
def fill(model: Model | str, prompt: list[str] | list[Messages], **options: Unpack[AnswerOptions]) -> list[Output]: ...
def fill(model: Model | str, prompt: Any, **options: Unpack[AnswerOptions]) -> Any:
    """Fill the gaps of a text, each written `<mask:n>` for n tokens; `length` masks may follow the text as well.

    All masks form one list from left to right, which the decoder takes in blocks. `.text` is the whole text, filled.
    The keyword arguments are those of `generate`, without `early_end`.
    """
    return _answer(model, prompt, infill=True, **options)


@overload
def score(model: Model | str, prompt: OnePrompt, text: str, **options: Unpack[ScoreOptions]) -> Scored: ...
@overload
def score(
    model: Model | str,
    prompt: OnePrompt | ManyPrompts,
    text: list[str] | list[list[int]],
    **options: Unpack[ScoreOptions],
) -> list[Scored]: ...
@overload
def score(model: Model | str, prompt: OnePrompt, text: list[int], **options: Unpack[ScoreOptions]) -> Scored: ...
@keywords_checked
def score(
    model: Model | str,
    prompt: OnePrompt | ManyPrompts,
    text: OneText | list[str] | list[list[int]],
    *,
    scorer: str | Scorer = SCORER,
    length: int | None = None,
    block: int | None = None,
    seed: int = 0,
    batch: int = BATCH,
    progress: Progress = False,
) -> Scored | list[Scored]:
    """Return the log-likelihood of a text after a prompt, or of each of a list of texts: after one prompt, or its own.

    `scorer` is `duel`, `elbo(n=128)`, `path` or a likelihood such as `interleaved(combs=2)` (docs/scoring.md). `length`
    pads texts with end-of-text to so many tokens, as answers of `generate` are. Texts are scored in blocks of `block`
    tokens: by default a block-causal model's own, else the whole text is one. `seed` is the seed of the random masks
    of `elbo`. `batch` texts are scored together; no result depends on it. `progress` is as in `generate`.
    """
    chosen = make_scorer(scorer)
    model = _loaded(model)
    single = not isinstance(text, Sequence) or is_one(text)
    texts: list[Any] = [text] if single else list(text)
    prompts: list[Any] = [prompt] * len(texts) if not isinstance(prompt, Sequence) or is_one(prompt) else list(prompt)
    if len(prompts) != len(texts):
        raise UnmaskError(f"{len(texts)} texts need 1 or {len(texts)} prompts, got {len(prompts)}")
    pairs = [read_pair(model, before, after, length) for before, after in zip(prompts, texts, strict=True)]
    scores = Scoring(model, chosen, block, seed).scores(pairs, batch, progress)
    return scores[0] if single else scores


@dataclass(frozen=True)
class Moment:
    """The state of a decoding run after a step."""

    frame: Frame  # every row: its canvas, its score, and at a search the candidates
    texts: tuple[str, ...]  # for each prompt, the leading row's answer so far; ░ stands for a mask

    @property
    def text(self) -> str:
        """The text of the first prompt's leading row."""
        return self.texts[0]

    @property
    def step(self) -> int:
        """The number of the step, from 1."""
        return self.frame.step


def stream(
    model: Model | str, prompt: OnePrompt | ManyPrompts, **decoding: Unpack[DecodingOptions]
) -> Iterator[Moment]:
    """Yield one moment per step of a decoding run; the last one's frame has all final rows.

    The keyword arguments are the fields of `unmask.Decoding`, without `stop`.
    """
    model = _loaded(model)
    generation = Generation(model, _decoding(decoding, model.default_length, refused="stop"))
    prompt = plain_prompt(prompt)
    most = check_max_forward_passes(None)
    prompts = [generation.read(each, most) for each in ([prompt] if is_one(prompt) else prompt)]
    return (_moment(generation, prompts, frame) for frame in generation.session(prompts))


def _loaded(model: Any) -> Model:
    if isinstance(model, str | Path):
        return load(model)
    if isinstance(model, Model):
        return model
    kind = type(model).__name__
    raise UnmaskError(f"a model must be a name, a folder or what unmask.load and unmask.wrap return, got {kind}")


def _remedy(name: str, known: Iterable[str]) -> str:
    """Return what to write instead of an unknown argument."""
    if name in LENGTHS:
        return "did you mean 'length'?"
    if decoder := decoder_with(name):
        return f"it is a setting of decoders, such as decoder='{decoder}({name}=…)'"
    return nearest(name, known)


def _decoding(options: Mapping[str, Any], length: int, refused: str = "") -> Decoding:
    """Read the fields of `Decoding`, with a default length; unknown names and the one that is `refused` are errors."""
    known = AnswerOptions.__annotations__.keys() - {refused}
    for name in options:
        if name not in known:
            raise UnmaskError(f"unknown argument {name!r}: {_remedy(name, known)}")
    chosen = length if options.get("length") is None else options["length"]
    return Decoding.from_dict({**options, "length": chosen})


def _answer(
    model: Model | str,
    prompt: Any,
    infill: bool = False,
    *,
    key: Key = str,
    trace: TraceOption = False,
    max_forward_passes: int | None = None,
    **options: Any,
) -> Any:
    batching: BatchOptions = {name: options.pop(name) for name in BATCHING if name in options}  # type: ignore[assignment]
    model, most = _loaded(model), check_max_forward_passes(max_forward_passes)
    chosen = _decoding(options, 0, "early_end") if infill else _decoding(options, model.default_length)
    generation = Generation(model, chosen, infill, key)
    prompt = plain_prompt(prompt)
    single = is_one(prompt)
    prompts = [generation.try_read(each, most) for each in ([prompt] if single else prompt)]
    path = None if isinstance(trace, bool) else Path(trace)
    if path is not None:
        if not single:
            raise UnmaskError("a trace file holds one prompt: use trace=True and save each output's trace")
        check_writable(path)
    outputs = in_batches(generation, prompts, traced=trace is not False, **batching)
    first = outputs[0]
    if path is not None and isinstance(first, Output) and first.trace:
        first.trace.save(path)
    return first if single else outputs


def _moment(generation: Generation, prompts: list[EncodedPrompt], frame: Frame) -> Moment:
    """Return a frame with the text of each prompt's leading row."""
    texts = []
    problems, scores = frame.canvas.problem.tolist(), frame.score.tolist()
    for number, prompt in enumerate(prompts):
        leader = max((row for row, problem in enumerate(problems) if problem == number), key=scores.__getitem__)
        ids = frame.canvas.tokens[leader, int(frame.canvas.pad[leader]) :].tolist()
        texts.append(generation.partial(prompt, ids))
    return Moment(frame, tuple(texts))
