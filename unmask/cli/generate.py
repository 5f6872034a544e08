"""`unmask generate`: answer a prompt, or each prompt of a file."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from unmask import api
from unmask.cli import options
from unmask.cli.app import app
from unmask.cli.boundary import print_json
from unmask.cli.progress import counting, watching
from unmask.cli.prompt_files import read_prompts
from unmask.cli.watch import watched
from unmask.errors import UnmaskError
from unmask.runs.generation import Output
from unmask.runs.settings import Decoding, Placement


def add_command(answer: Callable[..., Any], text: str, *omit: str, **defaults: Any) -> None:
    """A command that prints the text alone, or everything as one JSON object; `text` is its help."""

    @app.command(answer.__name__, help=text)
    @options.expand("precision", "batch", "memory", *omit, **defaults)  # those are for many problems
    def command(
        prompt: options.PromptText = None,
        model: options.ModelName = options.MODEL,
        *,
        prompts: options.PromptFile = None,
        decoding: options.DecodingFields,
        max_forward_passes: options.MaxForwardPasses = None,
        chat: options.Chat = False,
        trace: options.TraceFile = None,
        watch: options.Watching = False,
        placement: options.PlacementFields,
        json: options.Json = False,
    ) -> None:
        given = _given(prompt, prompts, trace, chat)
        Decoding.from_dict(decoding)  # refused before the model is loaded
        if trace is not None:
            api.check_writable(trace)
        loaded = Placement(**placement).load(model)
        if prompts is not None:
            _answer_all(answer, loaded, given, json, max_forward_passes=max_forward_passes, **decoding)
            return
        with watched(loaded) if watch else watching("decoding") as see:
            output = answer(
                loaded, given, trace=trace or False, watch=see, max_forward_passes=max_forward_passes, **decoding
            )
        if json:
            print_json(output.json() | {"trace": trace and str(trace)})
        else:
            print(output.text)


def _given(prompt: str | None, prompts: Path | None, trace: Path | None, chat: bool) -> Any:
    if prompts is None:
        if prompt is None:
            raise UnmaskError("a prompt is missing: write one, - to read it from standard input, or --prompts FILE")
        return options.read_prompt(prompt, chat)
    if prompt is not None:
        raise UnmaskError("a prompt and --prompts are given: choose one of them")
    if trace is not None:
        raise UnmaskError("--trace is for one prompt: leave out --prompts")
    return read_prompts(prompts, chat)


def _answer_all(answer: Callable[..., Any], model: api.Model, prompts: list[Any], json: bool, **more: Any) -> None:
    """A JSON object per line, in the order of the prompts; a prompt that cannot be answered has its reason there."""
    with counting("prompts") as progress:
        outcomes = answer(model, prompts, errors="return", progress=progress, **more)
    for number, outcome in enumerate(outcomes):
        facts = outcome.json() if isinstance(outcome, Output) else {"error": str(outcome)}
        if not json and isinstance(outcome, Output):
            facts = {key: facts[key] for key in ("prompt", "text", "score", "finish_reason")}
        print_json({"index": number, **facts})
    failed = sum(not isinstance(outcome, Output) for outcome in outcomes)
    if failed:
        raise UnmaskError(f"{failed} of {len(outcomes)} prompts were not answered: their lines have an error")


HELP = """Answer a prompt, or each prompt of a file.

A line break is typed as it is, or as \\n in $'…', which most shells read.

\b
Examples:
  unmask generate --chat $'Numbers: [87, 28, 35]\\nTarget: 94' --length 64
  unmask generate --chat $'Numbers: [87, 28, 35]\\nTarget: 94' --decoder 'vote(n=5)' --json
  printf 'Numbers: [87, 28, 35]\\nTarget: 94' | unmask generate - --chat --decoder 'ots(beams=4)' --trace trace.jsonl
  unmask generate --prompts questions.txt --chat > answers.jsonl
  unmask generate --chat $'Numbers: [87, 28, 35]\\nTarget: 94' --length 64 --watch
"""
add_command(api.generate, HELP, length=options.Own("the model's own"))
