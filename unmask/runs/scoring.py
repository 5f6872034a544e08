"""The log-likelihood of given texts: how a model scores them, and the result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from math import exp, fsum
from typing import Any, TypeAlias

from unmask.errors import UnmaskError, nearest
from unmask.models import Model
from unmask.models.network.kv_cache import cached
from unmask.policies.likelihood import Likelihood, likelihood
from unmask.policies.scoring import GivenText, Partition, Scorer, TextScore, scorer, written_greedily
from unmask.registry import parse
from unmask.runs.progress import Progress, telling
from unmask.runs.prompts import EncodedPrompt, OnePrompt, check_ids, check_room, read_prompt
from unmask.runs.record import finite

SCORER = "duel"  # where none is named
OneText: TypeAlias = str | Sequence[int]
Pair: TypeAlias = tuple[EncodedPrompt, EncodedPrompt]  # a prompt, and the text after it


@dataclass(frozen=True)
class Scored:
    """The log-likelihood of a text."""

    prompt: str
    text: str
    logp: float  # the sum over its tokens
    logps: tuple[float, ...]  # what each token adds
    error: float | None  # the standard error of logp, where it is an estimate
    greedy: bool | None  # whether each token was the likeliest when it was revealed; None where nothing is revealed
    forward_passes: int  # asked of the network
    computed: int  # computed: identical rows of a text are computed once
    positions: int  # computed
    scorer: str  # its text form, every setting written out
    block: int  # tokens per block
    seed: int
    model: str

    @property
    def tokens(self) -> int:
        """How many the text has."""
        return len(self.logps)

    @property
    def per_token(self) -> float:
        """The mean of log p, with which texts of different lengths compare."""
        return self.logp / self.tokens

    @property
    def perplexity(self) -> float:
        """exp of minus the mean."""
        return exp(-self.per_token)

    def json(self) -> dict[str, Any]:
        """Plain values; null where a number is not finite."""
        figures = {"logp": finite(self.logp), "per_token": finite(self.per_token), "tokens": self.tokens}
        error = None if self.error is None else finite(self.error)
        return asdict(self) | figures | {"logps": [finite(logp) for logp in self.logps], "error": error}


@dataclass(frozen=True)
class Scoring:
    """How a model scores texts."""

    model: Model
    scorer: Scorer
    block: int | None = None  # tokens per block; by default a block-causal model's own, else the whole text
    seed: int = 0  # of the random masks of `elbo`

    def __post_init__(self) -> None:
        if isinstance(self.seed, bool) or not isinstance(self.seed, int):
            raise UnmaskError(f"seed={self.seed!r} does not work: give a whole number")
        if self.block is not None and (not isinstance(self.block, int) or self.block < 1):
            raise UnmaskError(f"block={self.block!r} does not work: choose 1 or more")

    def scores(self, pairs: Sequence[Pair], batch: int, progress: Progress = False) -> list[Scored]:
        """`batch` texts at a time; results do not depend on it."""
        if isinstance(batch, bool) or not isinstance(batch, int) or batch < 1:
            raise UnmaskError(f"batch={batch!r} does not work: choose 1 or more")
        passages = [self._passage(*pair) for pair in pairs]
        denoiser = cached(self.model.denoiser, None, self.model.name)
        judgements: list[TextScore] = []
        with telling(progress, len(passages)) as tell:
            for start in range(0, len(passages), batch):
                judgements += self.scorer(passages[start : start + batch], denoiser, self.seed)
                tell(len(judgements))
        return [self._scored(*parts) for parts in zip(pairs, passages, judgements, strict=True)]

    def greedy(self, pairs: Sequence[Pair]) -> tuple[list[bool], int]:
        """Whether low-confidence remasking at temperature 0 writes each text; and the rows that it took to know."""
        return written_greedily(
            [self._passage(*pair) for pair in pairs], cached(self.model.denoiser, None, self.model.name)
        )

    def _passage(self, prompt: EncodedPrompt, text: EncodedPrompt) -> GivenText:
        if (mask := self.model.denoiser.mask_id) in prompt.ids + text.ids:
            raise UnmaskError(f"the mask token (id {mask}) is not part of a text: only whole ones are scored")
        own = self.model.denoiser.block_size
        block = self.block or own or len(text.ids)
        return GivenText(prompt.ids, text.ids, block, len(prompt.ids) % own % block if own else 0)

    def _scored(self, pair: Pair, passage: GivenText, judged: TextScore) -> Scored:
        prompt, text = pair
        values = vars(judged) | {"logps": tuple(judged.logps), "logp": fsum(judged.logps)}
        settings = {
            "scorer": scorer_spec(self.scorer),
            "block": passage.block,
            "seed": self.seed,
            "model": self.model.name,
        }
        return Scored(prompt=prompt.text, text=text.text, **values, **settings)


def read_pair(model: Model, prompt: OnePrompt, text: OneText, length: int | None = None) -> Pair:
    """A prompt, which may be empty, and the text after it, encoded each by itself.

    With `length` the text is filled up with end-of-text to that many tokens, as a decoded answer is.
    """
    before = read_prompt(model, prompt)
    ids = tuple(model.text.encode(text)) if isinstance(text, str) else read_prompt(model, text).ids
    if length is not None:
        ids += _ends(model, length - len(ids))
    if not ids:
        raise UnmaskError("the text is empty: give at least one token to score")
    check_ids(model, ids)
    check_room(model, len(before.ids) + len(ids))
    shown = text if isinstance(text, str) else model.text.decode(ids)
    return before, EncodedPrompt(shown, ids, (shown,))


def _ends(model: Model, count: int) -> tuple[int, ...]:
    if count < 0:
        raise UnmaskError(f"the text is {-count} tokens longer than the length: give a larger length, or none")
    if not model.eos:
        raise UnmaskError(f"{model.name} has no end-of-text to fill texts up with: leave out the length")
    return (min(model.eos),) * count


def make_scorer(spec: str | Scorer | Likelihood) -> Scorer:
    """What a spec such as `duel(order=margin)` names; a likelihood is named as in a search."""
    if isinstance(spec, Scorer):
        return spec
    if isinstance(spec, str):
        name, ways, likelihoods = parse(spec).name, list(scorer), list(likelihood)
        if name in ways:
            return scorer.make(spec)
        if name not in likelihoods:
            raise UnmaskError(f"unknown scorer {name!r}: {nearest(name, {*ways, *likelihoods})}")
    return Partition(likelihood.make(spec))


def scorer_spec(chosen: Scorer) -> str:
    return likelihood.spec(chosen.likelihood) if isinstance(chosen, Partition) else scorer.spec(chosen)
