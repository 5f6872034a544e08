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
from unmask.runs.files import finite_values
from unmask.runs.progress import Progress, reporting
from unmask.runs.settings import check_integer
from unmask.runs.text import EncodedPrompt, OnePrompt, check_context, check_ids, read_prompt

SCORER = "duel"  # the default
OneText: TypeAlias = str | Sequence[int]
Pair: TypeAlias = tuple[EncodedPrompt, EncodedPrompt]  # a prompt, and the text after it


@dataclass(frozen=True)
class Scored:
    """The log-likelihood of a text."""

    prompt: str
    text: str
    logp: float  # the sum over its tokens
    logps: tuple[float, ...]  # the log p of each token
    error: float | None  # the standard error of logp, if it is an estimate
    greedy: bool | None  # each token was the likeliest when it was revealed; None if nothing is revealed
    forward_passes: int  # forward passes that the scorer asked for
    computed: int  # forward passes that were computed: identical rows of a text are computed once
    positions: int  # positions of the computed rows
    scorer: str  # the scorer's spec, every setting written out
    block: int  # tokens per block
    seed: int
    model: str

    @property
    def tokens(self) -> int:
        """The number of tokens of the text."""
        return len(self.logps)

    @property
    def per_token(self) -> float:
        """The mean of log p, by which texts of different lengths can be compared."""
        return self.logp / self.tokens

    @property
    def perplexity(self) -> float:
        """The exponential of minus the mean of log p."""
        return exp(-self.per_token)

    def json(self) -> dict[str, Any]:
        """Return plain values, null for a number that is not finite."""
        return finite_values(asdict(self) | {"per_token": self.per_token, "tokens": self.tokens})


@dataclass(frozen=True)
class Scoring:
    """How a model scores texts."""

    model: Model
    scorer: Scorer
    block: int | None = None  # tokens per block; by default a block-causal model's own, else the whole text
    seed: int = 0  # seed of the random masks of `elbo`

    def __post_init__(self) -> None:
        check_integer(seed=self.seed)
        if self.block is not None:
            check_integer(1, block=self.block)

    def scores(self, pairs: Sequence[Pair], batch: int, progress: Progress = False) -> list[Scored]:
        """Score `batch` texts at a time; results do not depend on it."""
        check_integer(1, batch=batch)
        passages = [self._passage(*pair) for pair in pairs]
        denoiser = cached(self.model.denoiser, None, self.model.name)
        scores: list[TextScore] = []
        with reporting(progress, len(passages)) as report:
            for start in range(0, len(passages), batch):
                scores += self.scorer(passages[start : start + batch], denoiser, self.seed)
                report(len(scores))
        return [self._scored(*parts) for parts in zip(pairs, passages, scores, strict=True)]

    def greedy(self, pairs: Sequence[Pair]) -> tuple[list[bool], int]:
        """Tell for each text if low-confidence remasking at temperature 0 writes it; and count the forward passes."""
        passages = [self._passage(*pair) for pair in pairs]
        return written_greedily(passages, cached(self.model.denoiser, None, self.model.name))

    def _passage(self, prompt: EncodedPrompt, text: EncodedPrompt) -> GivenText:
        if (mask := self.model.denoiser.mask_id) in prompt.ids + text.ids:
            raise UnmaskError(f"a text to score must not contain the mask token (id {mask})")
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
    """Encode a prompt, which may be empty, and the text after it, each by itself.

    With `length` the text is padded with end-of-text to that many tokens, as a decoded answer is.
    """
    before = read_prompt(model, prompt)
    ids = tuple(model.text.encode(text)) if isinstance(text, str) else read_prompt(model, text).ids
    if length is not None:
        ids += _ends(model, length - len(ids))
    if not ids:
        raise UnmaskError("the text is empty: give at least one token to score")
    check_ids(model, ids)
    check_context(len(before.ids) + len(ids), model.denoiser.context)
    shown = text if isinstance(text, str) else model.text.decode(ids)
    return before, EncodedPrompt(shown, ids, (shown,))


def _ends(model: Model, count: int) -> tuple[int, ...]:
    """Return so many end-of-text tokens."""
    if count < 0:
        raise UnmaskError(f"the text is {-count} tokens longer than the length: give a larger length, or none")
    if not model.eos:
        raise UnmaskError(f"{model.name} has no end-of-text to pad texts with: leave out the length")
    return (min(model.eos),) * count


def make_scorer(spec: str | Scorer | Likelihood) -> Scorer:
    """Return the scorer that a spec such as `duel(order=margin)` names; a likelihood is named as in a search."""
    if isinstance(spec, Scorer):
        return spec
    if isinstance(spec, str):
        name, scorers, likelihoods = parse(spec).name, list(scorer), list(likelihood)
        if name in scorers:
            return scorer.make(spec)
        if name not in likelihoods:
            raise UnmaskError(f"unknown scorer {name!r}: {nearest(name, {*scorers, *likelihoods})}")
    return Partition(likelihood.make(spec))


def scorer_spec(chosen: Scorer) -> str:
    """Return a scorer's spec."""
    return likelihood.spec(chosen.likelihood) if isinstance(chosen, Partition) else scorer.spec(chosen)
