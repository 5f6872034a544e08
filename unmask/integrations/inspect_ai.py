"""inspect_ai: `unmask/NAME` among its models, by an entry point. Samples of the same time are decoded together.

    inspect eval countdown.py --model unmask/tiny -M decoder=search -M length=64

Inspect imports this file whenever it looks for models, so what needs torch is imported when a model is made.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from unmask.errors import UnmaskError

try:
    from inspect_ai._util.error import PrerequisiteError
    from inspect_ai.model import (
        ChatCompletionChoice,
        ChatMessage,
        ChatMessageAssistant,
        GenerateConfig,
        ModelAPI,
        ModelOutput,
        ModelUsage,
        modelapi,
    )
    from inspect_ai.solver._task_state import sample_state
    from inspect_ai.tool import ToolChoice, ToolInfo
except ModuleNotFoundError as error:
    raise UnmaskError(f"inspect_ai needs {error.name}: pip install 'unmask[inspect]'") from None

if TYPE_CHECKING:
    from unmask.integrations.arguments import HarnessSettings
    from unmask.serve.engine import AsyncEngine
    from unmask.serve.request import Completed

# Settings that decide which text is wanted. All others are about connections, tools and logs, and are inspect's own.
SHAPING = ("top_p", "top_k", "frequency_penalty", "presence_penalty", "logit_bias", "num_choices", "best_of")
SHAPING += ("logprobs", "top_logprobs", "prompt_logprobs", "response_schema", "modalities", "extra_body")
UNLIMITED = 2**31  # for what a server limits and an evaluation does not


class UnmaskAPI(ModelAPI):
    """A model whose arguments are named as in `unmask eval`: decoder, length, … Epoch i has the seed of sample i."""

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
            self.settings = _read_settings(model_name, arguments)
            self.model = self.settings.load()
        except UnmaskError as error:
            raise PrerequisiteError(f"unmask: {error}") from None  # inspect shows it without a traceback
        self.engine: AsyncEngine | None = None

    def max_connections(self) -> int:
        return self.settings.batch

    async def generate(
        self, input: list[ChatMessage], tools: list[ToolInfo], tool_choice: ToolChoice, config: GenerateConfig
    ) -> ModelOutput:
        del tool_choice
        if tools:
            raise UnmaskError(f"tools are not supported: leave out {tools[0].name!r}")
        messages, options = [_plain(message) for message in input], self._options(config)
        engine = self._engine()
        completed = await engine.submit(engine.request(messages, **options)).answer()
        return self._output(completed)

    async def aclose(self) -> None:
        if self.engine is not None:
            await self.engine.close()
            self.engine = None

    def _engine(self) -> AsyncEngine:
        from unmask.serve.engine import AsyncEngine
        from unmask.serve.limits import RequestLimits

        if self.engine is None:
            size = self.settings.batch
            limits = RequestLimits(UNLIMITED, size, max(size, 64), UNLIMITED, UNLIMITED, max_seconds=float(UNLIMITED))
            self.engine = AsyncEngine(self.model, limits)
        return self.engine

    def _options(self, config: GenerateConfig) -> dict[str, Any]:
        """Return the decoding of a request as keyword arguments."""
        from unmask.integrations.arguments import read_request

        asked = {name: value for name in SHAPING if (value := getattr(config, name, None)) is not None}
        asked |= {"max_tokens": config.max_tokens, "until": config.stop_seqs}
        read, state = read_request(asked, self.settings.length, self.model.default_length), sample_state()
        read |= {"temperature": config.temperature, "seed": config.seed, "sample": state.epoch - 1 if state else 0}
        return {**vars(self.settings.request(**read))}

    def _output(self, completed: Completed) -> ModelOutput:
        output = completed.output
        message = ChatMessageAssistant(content=completed.text, model=self.model_name, source="generate")
        used = ModelUsage(
            input_tokens=completed.prompt_tokens,
            output_tokens=len(completed.ids),
            total_tokens=completed.prompt_tokens + len(completed.ids),
        )
        cost = {name: getattr(output.cost, name) for name in ("forward_passes", "computed", "positions")}
        stop = "stop" if completed.finish == "stop" else "max_tokens"
        return ModelOutput(
            model=self.model_name,
            choices=[ChatCompletionChoice(message=message, stop_reason=stop)],
            usage=used,
            metadata={**output.settings, "score": output.score, **cost},
        )


def _read_settings(name: str, arguments: Mapping[str, Any]) -> HarnessSettings:
    """Read the model's arguments; those for scoring texts are refused, which inspect_ai does not ask for."""
    from unmask.integrations.arguments import read_settings

    values = dict(arguments)
    for key, value in arguments.items():
        if key in ("scorer", "block"):
            raise UnmaskError(f"{key} is for scoring texts, which inspect_ai does not ask for: leave it out")
        if isinstance(value, list) and all(isinstance(part, str) for part in value):
            values[key] = ",".join(value)  # inspect's command line has split it at its commas
    return read_settings(name, values)


def _plain(message: ChatMessage) -> dict[str, str]:
    """Return a message as a role and a text."""
    if message.role == "tool":
        raise UnmaskError("tool messages are not supported: leave out the tools")
    parts: Sequence[Any] = [] if isinstance(message.content, str) else message.content
    for part in parts:
        if part.type != "text":
            raise UnmaskError(f"a prompt must be text, got {part.type}")
    return {"role": message.role, "content": message.text}


@modelapi("unmask")
def provider() -> type[ModelAPI]:
    """Return the class of the models named `unmask/…`."""
    return UnmaskAPI
