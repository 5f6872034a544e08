"""A model of inspect_ai: samples that are generated at the same time are decoded together. inspect_ai: `unmask/NAME` among its models, by an entry point.

    inspect eval countdown.py --model unmask/tiny -M decoder=search -M length=64

Inspect imports this file whenever it looks for models: what needs torch is imported when one is made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from inspect_ai._util.error import PrerequisiteError
from inspect_ai.model import (
    ChatCompletionChoice,
    ChatMessage,
    ChatMessageAssistant,
    GenerateConfig,
    ModelAPI,
    ModelOutput,
    ModelUsage,
)
from inspect_ai.solver._task_state import sample_state
from inspect_ai.tool import ToolChoice, ToolInfo

from unmask.core import reseed
from unmask.errors import UnmaskError
from unmask.integrations.arguments import HarnessSettings, read_settings, read_wanted
from unmask.runs.settings import heated
from unmask.serve.engine import AsyncEngine
from unmask.serve.request import Completed, RequestLimits

# Settings that say what text is wanted. All others are about connections, tools and logs, and are inspect's own.
SHAPING = ("top_p", "top_k", "frequency_penalty", "presence_penalty", "logit_bias", "num_choices", "best_of")
SHAPING += ("logprobs", "top_logprobs", "prompt_logprobs", "response_schema", "modalities", "extra_body")
MANY = 2**31  # of what a server limits, and an evaluation does not


class UnmaskAPI(ModelAPI):
    """Arguments are named as in `unmask eval`: decoder, length, seed, cache, dtype, … Epoch i has sample i's seed."""

    def __init__(
        self,
        model_name: str,
        base_url: str | None = None,
        api_key: str | None = None,
        config: GenerateConfig = GenerateConfig(),  # noqa: B008  as inspect's own models have it
        **arguments: Any,
    ) -> None:
        super().__init__(model_name, base_url, api_key, [], config)
        try:
            self.settings = _settings(model_name, arguments)
            self.model = self.settings.load()
        except UnmaskError as error:
            raise PrerequisiteError(f"unmask: {error}") from None  # which inspect shows without a traceback
        self.engine: AsyncEngine | None = None

    def max_connections(self) -> int:
        return self.settings.batch

    async def generate(
        self, input: list[ChatMessage], tools: list[ToolInfo], tool_choice: ToolChoice, config: GenerateConfig
    ) -> ModelOutput:
        del tool_choice
        if tools:
            raise UnmaskError(f"a diffusion model calls no tools: leave out {tools[0].name!r}")
        messages, options = [_plain(message) for message in input], self._options(config)
        engine = self._engine()
        completed = await engine.submit(engine.request(messages, **options)).answer()
        return self._output(completed)

    async def aclose(self) -> None:
        if self.engine is not None:
            await self.engine.close()
            self.engine = None

    def _engine(self) -> AsyncEngine:
        if self.engine is None:
            size = self.settings.batch
            limits = RequestLimits(MANY, size, max(size, 64), MANY, MANY, max_seconds=float(MANY))
            self.engine = AsyncEngine(self.model, limits)
        return self.engine

    def _options(self, config: GenerateConfig) -> dict[str, Any]:
        """The decoding of a request, as keyword arguments."""
        asked = {name: value for name in SHAPING if (value := getattr(config, name, None)) is not None}
        asked |= {"max_tokens": config.max_tokens, "until": config.stop_seqs}
        wanted = read_wanted(asked, self.settings.length, self.model.default_length)
        decoding, state = self.settings.decoding, sample_state()
        chosen = decoding.decoder if config.temperature is None else heated(decoding.decoder, config.temperature)
        seed = decoding.seed if config.seed is None else config.seed
        changes = {"decoder": chosen, "length": wanted.length, "stop": [*decoding.stop, *wanted.stop]}
        return vars(decoding) | changes | {"seed": reseed(seed, state.epoch - 1 if state else 0)}

    def _output(self, completed: Completed) -> ModelOutput:
        output = completed.output
        message = ChatMessageAssistant(content=completed.text, model=self.model_name, source="generate")
        used = ModelUsage(
            input_tokens=completed.prompt_tokens,
            output_tokens=len(completed.ids),
            total_tokens=completed.prompt_tokens + len(completed.ids),
        )
        cost = {
            name: value
            for name, value in asdict(output.cost).items()
            if name in ("forward_passes", "computed", "positions")
        }
        stop = "stop" if completed.finish == "stop" else "max_tokens"
        return ModelOutput(
            model=self.model_name,
            choices=[ChatCompletionChoice(message=message, stop_reason=stop)],
            usage=used,
            metadata={**output.settings, "score": output.score, **cost},
        )


def _settings(name: str, arguments: Mapping[str, Any]) -> HarnessSettings:
    for unused in ("scorer", "block"):
        if unused in arguments:
            raise UnmaskError(f"{unused} is for scoring texts, which inspect_ai does not ask for: leave it out")
    return read_settings(name, {key: _whole(value) for key, value in arguments.items()})


def _whole(value: Any) -> Any:
    """Inspect's command line splits a value at its commas."""
    return ",".join(value) if isinstance(value, list) and all(isinstance(part, str) for part in value) else value


def _plain(message: ChatMessage) -> dict[str, str]:
    if message.role == "tool":
        raise UnmaskError("a diffusion model reads no tool messages: leave out the tools")
    parts: Sequence[Any] = [] if isinstance(message.content, str) else message.content
    for part in parts:
        if part.type != "text":
            raise UnmaskError(f"a prompt is text: this model reads no {part.type}")
    return {"role": message.role, "content": message.text}


try:
    from inspect_ai.model import modelapi
except ModuleNotFoundError as error:
    raise UnmaskError(f"inspect_ai needs {error.name}: pip install 'unmask[inspect]'") from None


@modelapi("unmask")
def provider() -> Any:

    return UnmaskAPI
