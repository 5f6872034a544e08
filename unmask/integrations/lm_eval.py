"""lm-evaluation-harness: `unmask` among its models, and its command line with that model in it.

    python -m unmask.integrations.lm_eval run --model unmask --model_args '{"pretrained": "tiny"}' --tasks …

From Python, importing this module registers the model: `lm_eval.simple_evaluate("unmask", …)`.
"""

from __future__ import annotations

import sys
import traceback
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeVar

import torch

from unmask.errors import UnmaskError
from unmask.integrations.arguments import check_whole, read_arguments, read_request, read_settings
from unmask.policies.scoring import Duel
from unmask.runs.generation import Generation
from unmask.runs.record import COUNTS
from unmask.runs.scoring import Pair, Scored, Scoring
from unmask.runs.settings import Decoding, check_integer
from unmask.runs.text import EncodedPrompt

try:
    import lm_eval.models  # noqa: F401  before anything is registered: its own names would be missing
    from lm_eval.__main__ import cli_evaluate
    from lm_eval.api.instance import Instance
    from lm_eval.api.model import LM, CacheHook
    from lm_eval.api.registry import register_model
    from tqdm import tqdm
except ModuleNotFoundError as error:
    MISSING = f"lm-evaluation-harness needs {error.name}: pip install 'unmask[lm-eval]'"
    if __name__ == "__main__":
        print(f"unmask: {MISSING}", file=sys.stderr)
        sys.exit(2)
    raise UnmaskError(MISSING) from None

STAMP = "unmask"  # the key of a response cache under which the settings of its model are stored
# Modules in which the harness checks its input.
REFUSES = ("lm_eval.api.registry", "lm_eval.config.evaluate_config", "lm_eval.evaluator")
Item = TypeVar("Item")


class UnmaskLM(LM):
    """A model of this package. Requests are answered in batches, and no answer depends on its batch."""

    def __init__(
        self,
        pretrained: str | None = None,
        *,
        max_length: int | None = None,
        device: str | None = None,
        batch_size: int | str | None = None,
        max_batch_size: int | None = None,
        **settings: Any,
    ):
        """Load `pretrained`, a name, folder or hub id; `max_length` is the longest window in positions.

        All else is named as in `unmask eval`: decoder, length, seed, cache, scorer, dtype, … A GPU that the harness
        asks for by default is used if there is one.
        """
        super().__init__()
        check_whole(settings)
        del max_batch_size  # for a search for the batch size, which is not needed here
        if device is not None:
            settings["device"] = device if torch.cuda.is_available() or not device.startswith("cuda") else "cpu"
        if str(batch_size).isdecimal() and int(batch_size or 1) > 1:  # 1 is the default of the harness
            settings.setdefault("batch", int(batch_size or 1))
        self.settings = read_settings(pretrained, settings)
        self.model = self.settings.load()
        self._device = self.model.denoiser.device
        if max_length is not None:
            check_integer(2, max_length=max_length)
        self.max_length = min(max_length or self.model.denoiser.context, self.model.denoiser.context)
        self.scoring = Scoring(self.model, self.settings.scorer, self.settings.block, self.settings.decoding.seed)
        self.cost: Counter[str] = Counter()

    @classmethod
    def create_from_arg_string(cls, arg_string: str, additional_config: dict[str, Any] | None = None) -> UnmaskLM:
        return cls.create_from_arg_obj(read_arguments(arg_string), additional_config)

    @classmethod
    def create_from_arg_obj(cls, arg_dict: dict[str, Any], additional_config: dict[str, Any] | None = None) -> UnmaskLM:
        """Make a model; arguments of the caller take precedence over those that the harness adds."""
        more = {key: value for key, value in (additional_config or {}).items() if value is not None}
        return cls(**{**more, **arg_dict})

    @property
    def tokenizer_name(self) -> str:
        return self.settings.name.replace("/", "__")

    def chat_template(self, chat_template: bool | str = False) -> str | None:
        if isinstance(chat_template, str):
            raise UnmaskError(f"{self.settings.name} has one chat template: leave out the name {chat_template!r}")
        return getattr(self.model.text, "template", None) or ""

    def apply_chat_template(self, chat_history: list[dict[str, str]], add_generation_prompt: bool = True) -> str:
        del add_generation_prompt  # a trailing assistant message is left open either way
        return self.model.text.chat(chat_history)

    def get_model_info(self) -> dict[str, Any]:
        """Return what a result says about its model, at the end of a run."""
        return {"unmask": self.settings.record() | {"cost": dict(self.cost)}}

    def set_cache_hook(self, cache_hook: CacheHook) -> None:
        """Refuse the response cache of a different model or decoder; its keys are the requests alone."""
        super().set_cache_hook(cache_hook)
        if cache_hook.dbdict is None:
            return
        record = self.settings.record()
        before = cache_hook.dbdict.get(STAMP, None if len(cache_hook.dbdict) else record)
        if before != record:
            other = [key for key, value in record.items() if not before or before.get(key) != value]
            raise UnmaskError(f"the response cache has answers for a different {other[0]}: give --use_cache a new path")
        cache_hook.dbdict[STAMP] = record

    def generate_until(self, requests: list[Instance], disable_tqdm: bool = False) -> list[str]:
        answers, seen = [""] * len(requests), Counter[int]()
        groups: dict[Decoding, list[int]] = defaultdict(list)
        for number, request in enumerate(requests):
            arguments: Any = request.args
            read = read_request(arguments[1], self.settings.length, self.model.default_length)
            groups[self.settings.request(**read, sample=seen[id(request)])].append(number)
            seen[id(request)] += 1  # a request that is repeated is answered by independent samples
        with tqdm(total=len(requests), desc="unmask: generate", disable=disable_tqdm) as bar:
            for decoding, numbers in groups.items():
                generation = Generation(self.model, decoding)
                for some in self._batches(numbers):
                    prompts = [self._prompt(requests[number].args[0], decoding.length) for number in some]
                    for number, output in zip(some, generation.outputs(prompts), strict=True):
                        answers[number] = output.text
                        self._count(output.cost)
                        self.cache_hook.add_partial("generate_until", requests[number].args, output.text)
                    bar.update(len(some))
        return answers

    def loglikelihood(self, requests: list[Instance], disable_tqdm: bool = False) -> list[tuple[float, bool]]:
        pairs = [self._pair(*request.args) for request in requests]
        answers = [(0.0, False)] * len(requests)
        for number, scored, greedy in self._scores(pairs, disable_tqdm, greedy=True):
            answers[number] = (scored.logp, greedy)
            self.cache_hook.add_partial("loglikelihood", requests[number].args, answers[number])
        return answers

    def loglikelihood_rolling(self, requests: list[Instance], disable_tqdm: bool = False) -> list[float]:
        pairs: list[Pair] = []
        owners: list[int] = []
        for number, request in enumerate(requests):
            windows = list(self._windows(tuple(self.model.text.encode(request.args[0]))))
            pairs += windows
            owners += [number] * len(windows)
        answers, left = [0.0] * len(requests), Counter(owners)
        for number, scored, _ in self._scores(pairs, disable_tqdm):
            owner = owners[number]
            answers[owner] += scored.logp
            left[owner] -= 1
            if not left[owner]:
                self.cache_hook.add_partial("loglikelihood_rolling", requests[owner].args, answers[owner])
        return answers

    def _scores(
        self, pairs: Sequence[Pair], disable_tqdm: bool, greedy: bool = False
    ) -> Iterator[tuple[int, Scored, bool]]:
        """Yield the number of each pair, its score, and if decoding writes it; in order of length, to pad little."""
        order = sorted(range(len(pairs)), key=lambda number: len(pairs[number][0].ids) + len(pairs[number][1].ids))
        with tqdm(total=len(pairs), desc="unmask: score", disable=disable_tqdm) as bar:
            for some in self._batches(order):
                part = [pairs[number] for number in some]
                scores = self.scoring.scores(part, len(part))
                for scored in scores:
                    self._count(scored)
                exact = [bool(scored.greedy) for scored in scores]
                if greedy and not isinstance(self.settings.scorer, Duel):
                    exact, passes = self.scoring.greedy(part)
                    self.cost["forward_passes"] += passes
                yield from zip(some, scores, exact, strict=True)
                bar.update(len(some))

    def _prompt(self, context: str, length: int) -> EncodedPrompt:
        ids = self._fitting(tuple(self.model.text.encode(context)), length)
        return EncodedPrompt(context, ids, (context,))

    def _pair(self, context: str, text: str) -> Pair:
        """Encode both together and cut where the context ends; blanks at its end belong to the text."""
        blanks = len(context) - len(context.rstrip())
        context, text = context[: len(context) - blanks], context[len(context) - blanks :] + text
        before, whole = self.model.text.encode(context), self.model.text.encode(context + text)
        together = whole[: len(before)] == before
        after = tuple(whole[len(before) :] if together else self.model.text.encode(text))
        if not after:
            raise UnmaskError(f"a text to score is empty, after {context[-40:]!r}: give at least one token")
        return EncodedPrompt(context, self._fitting(tuple(before), len(after)), ()), EncodedPrompt(text, after, ())

    def _windows(self, ids: tuple[int, ...]) -> Iterator[Pair]:
        """Yield every token once: the first window whole, later ones after as many tokens as they have."""
        half = max(1, self.max_length // 2)
        starts = [0, *range(self.max_length, len(ids), half)] if ids else []
        for start in starts:
            stop = start + (half if start else self.max_length)
            before, after = ids[max(0, start - half) : start], ids[start:stop]
            yield EncodedPrompt("", before, ()), EncodedPrompt("", after, ())

    def _fitting(self, ids: tuple[int, ...], length: int) -> tuple[int, ...]:
        """Return the end of a prompt that is too long, as other models of the harness do; the results count them."""
        room = self.max_length - length
        if room < 1:
            raise UnmaskError(f"length must be less than the {self.max_length} positions of the model, got {length}")
        if len(ids) <= room:
            return ids
        self.cost["cut_prompts"] += 1
        return ids[len(ids) - room :]

    def _batches(self, numbers: Sequence[Item]) -> Iterator[Sequence[Item]]:
        size = self.settings.batch
        return (numbers[start : start + size] for start in range(0, len(numbers), size))

    def _count(self, cost: Any) -> None:
        self.cost.update(requests=1, **{name: getattr(cost, name, 0) for name in COUNTS})


register_model("unmask")(UnmaskLM)


def main(arguments: Iterable[str]) -> None:
    """Run the harness's own command line."""
    sys.argv = ["lm-eval", *arguments]
    try:
        cli_evaluate()
    except ValueError as error:
        *_, (frame, _) = traceback.walk_tb(error.__traceback__)
        if frame.f_globals["__name__"] not in REFUSES:
            raise
        raise UnmaskError(f"lm-evaluation-harness: {error}") from None


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except UnmaskError as error:
        print(f"unmask: {error}", file=sys.stderr)
        sys.exit(2)
