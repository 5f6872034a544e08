"""`unmask generate`, `unmask fill` and `unmask score`: decode prompts, fill gaps, score given texts.

A file of prompts has a prompt per line, or JSON lines of texts, chat messages, `{"prompt": …}` or `{"messages": …}`. In
both, a prompt of several lines is a JSON string: "Numbers: [87, 28, 35]\\nTarget: 94".
"""

from __future__ import annotations

import functools
import json as jsons
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unmask.cli import options
from unmask.cli.boundary import print_answer, print_json, read_text
from unmask.cli.options import option
from unmask.cli.progress import counting, watching
from unmask.errors import UnmaskError

if TYPE_CHECKING:
    from unmask.runs.scoring import Scored

JSON_LINES = (".jsonl", ".ndjson", ".json")
BRIEF = (
    "prompt",
    "text",
    "score",
    "verdict",
    "finish_reason",
    "error",
)  # printed for each of many prompts without --json
PROMPT = "The prompt; - reads it from standard input."
PromptText = Annotated[str | None, typer.Argument(metavar="PROMPT", help=PROMPT, show_default=False)]
PROMPTS = """Answer each line of this file; the answers are JSON lines. A line in double quotes is a JSON string, in
which \\n is a line break; a .jsonl file may also contain chat messages."""


def _answering(answer: str, text: str, *omit: str, **defaults: Any) -> Callable[..., None]:
    """Return the command that calls the API's function `answer`; `text` is its help."""

    @options.expand("precision", "batch", "memory", *omit, **defaults)  # these are for many problems
    def command(
        prompt: PromptText = None,
        model: options.ModelName = options.MODEL,
        *,
        prompts: Annotated[Path | None, option(PROMPTS, metavar="FILE")] = None,
        decoding: options.DecodingFields,
        max_forward_passes: options.MaxForwardPasses = None,
        chat: options.Chat = False,
        trace: Annotated[Path | None, option("Write a trace of the run here.", metavar="FILE")] = None,
        watch: Annotated[bool, option("Show the texts on standard error as they fill.", "--watch")] = False,
        placement: options.PlacementFields,
        json: options.Json = False,
    ) -> None:
        given = _given(prompt, prompts, trace, chat)
        from unmask import api
        from unmask.cli.watch import watched
        from unmask.runs.settings import Decoding, Placement

        Decoding.from_dict(decoding)  # refused before the model is loaded
        if trace is not None:
            api.check_writable(trace)
        loaded = Placement(**placement).load(model)
        call = functools.partial(getattr(api, answer), loaded, given, max_forward_passes=max_forward_passes, **decoding)
        if prompts is not None:
            _answer_all(call, json)
            return
        with watched(loaded) if watch else watching("decoding") as see:
            output = call(trace=trace or False, watch=see)
        print_answer(json, output.json() | {"trace": trace and str(trace)}, output.text)
        if output.verdict is not None and output.verdict < 1:
            typer.echo(f"unmask: no text passed the check; this one has a score of {output.verdict:g}", err=True)

    command.__name__, command.__doc__ = answer, text
    return command


def _given(prompt: str | None, prompts: Path | None, trace: Path | None, chat: bool) -> Any:
    if prompts is None:
        if prompt is None:
            raise UnmaskError("a prompt is missing: write one, - to read it from standard input, or --prompts FILE")
        return read_prompt(prompt, chat)
    if prompt is not None:
        raise UnmaskError("both a prompt and --prompts are given: choose one of them")
    if trace is not None:
        raise UnmaskError("--trace is for one prompt: remove --prompts")
    return read_prompts(prompts, chat)


def _answer_all(call: Callable[..., list[Any]], json: bool) -> None:
    """Print a JSON object per prompt, in their order; a prompt that cannot be answered has its error there."""
    with counting("prompts") as progress:
        outcomes = call(errors="return", progress=progress)
    for number, outcome in enumerate(outcomes):
        facts = {"error": str(outcome)} if isinstance(outcome, Exception) else outcome.json()
        shown = facts if json else {key: facts[key] for key in BRIEF if key in facts}
        print_json({"index": number, **shown})
    if failed := sum(isinstance(outcome, Exception) for outcome in outcomes):
        raise UnmaskError(f"{failed} of {len(outcomes)} prompts were not answered: their lines have an error")


generate = _answering(
    "generate",
    """Answer a prompt, or each prompt of a file.

    A line break is typed as it is, or as \\n in $'…', which most shells read.

    \b
    Examples:
      unmask generate --chat $'Numbers: [87, 28, 35]\\nTarget: 94' --length 64
      unmask generate --chat $'Numbers: [87, 28, 35]\\nTarget: 94' --decoder 'vote(n=5)' --json
      printf 'Numbers: [87, 28, 35]\\nTarget: 94' | unmask generate - --chat --decoder 'ots(beams=4)' --trace t.jsonl
      unmask generate --prompts questions.txt --chat > answers.jsonl
      unmask generate --chat $'Numbers: [87, 28, 35]\\nTarget: 94' --length 64 --watch
    """,
    length=options.Own("the model's own"),
)
fill = _answering(
    "fill",
    """Fill the gaps of a text, each written `<mask:n>` for n tokens.

    \b
    Examples:
      unmask fill $'Numbers: [87, 28, 35]\\nTarget: 94\\n<mask:17>\\n<answer>87-28+35</answer>'
      unmask fill $'Numbers: [87, 28, 35]\\nTarget: 94\\n87-28=<mask:2>' --length 30 --decoder search --json
    """,
    "early_end",
)


@options.expand("precision", "memory")
def score(
    prompt: PromptText,
    texts: Annotated[list[str], typer.Argument(metavar="TEXT…", help="Texts that are scored after the prompt.")],
    model: options.ModelName = options.MODEL,
    scorer: options.ScorerName = options.SCORER,
    length: Annotated[int | None, option("Pad each text with end-of-text to N tokens.", metavar="N")] = None,
    block: options.ScoreBlock = None,
    seed: Annotated[int, option("Seed of the random masks of elbo.", "--seed", "-s", metavar="N")] = 0,
    chat: options.Chat = False,
    *,
    placement: options.PlacementFields,
    json: options.Json = False,
) -> None:
    """Score texts after a prompt: the log-likelihood of each.

    \b
    Examples:
      unmask score abc de fg -m toy-chain
      unmask score --chat 'Numbers: [87, 28, 35]\\nTarget: 94' '<answer>87-28+35</answer>' --length 64
      unmask score abc de fg -m toy-chain --scorer 'elbo(n=64)' --json
    """
    from unmask import api
    from unmask.runs.scoring import make_scorer
    from unmask.runs.settings import Placement

    message = read_prompt(prompt, chat) if prompt else ""  # a text can be scored without a prompt
    chosen, where = make_scorer(scorer), Placement(**placement)
    how = {"scorer": chosen, "length": length, "block": block, "seed": seed, "batch": where.batch or api.BATCH}
    with counting("texts") as progress:
        scores = api.score(where.load(model), message, texts, progress=progress, **how)
    best = max(range(len(scores)), key=lambda number: scores[number].logp)
    facts = {"best": best, "scores": [each.json() for each in scores]}
    print_answer(json, facts, "\n".join(map(_score_line, scores)))


def _score_line(scored: Scored) -> str:
    """Return the figures, then the text as JSON, which keeps it on one line."""
    error = "" if scored.error is None else f" ± {scored.error:.4f}"
    cost = f"{scored.forward_passes} forward pass{'' if scored.forward_passes == 1 else 'es'}"
    text = jsons.dumps(scored.text, ensure_ascii=False)
    return f"{scored.logp:.4f}{error}  {scored.per_token:.4f} per token  {cost}  {text}"


def read_prompt(prompt: str, chat: bool = False) -> str | list[dict[str, str]]:
    """Return the given prompt, or standard input for `-`; with `chat` as a user message."""
    if prompt == "-":
        prompt = read_text("-", "the prompt").removesuffix("\n")
    if not prompt.strip():
        raise UnmaskError("the prompt is empty: write one, or - to read it from standard input")
    return [{"role": "user", "content": prompt}] if chat else prompt


def read_prompts(path: Path, chat: bool = False) -> list[Any]:
    """Return the prompts of a file without empty lines; with `chat` each text becomes a user message."""
    lines = [(number, line) for number, line in enumerate(read_text(path, "prompts").split("\n"), 1) if line.strip()]
    if not lines:
        raise UnmaskError(f"{str(path)!r} has no prompts: write one per line")
    if path.suffix in JSON_LINES:
        prompts = [_parse(line, f"line {number} of {str(path)!r}") for number, line in lines]
    else:
        prompts = [_unquote(line.removesuffix("\r")) for _, line in lines]
    return [[{"role": "user", "content": each}] if chat and isinstance(each, str) else each for each in prompts]


def _unquote(line: str) -> str:
    """Return the text of a JSON string; any other line is returned unchanged."""
    try:
        value = jsons.loads(line) if line.strip().startswith('"') else line
    except ValueError:
        return line
    return value if value.strip() else line


def _parse(line: str, where: str) -> Any:
    try:
        value = jsons.loads(line)
    except (ValueError, RecursionError):
        raise UnmaskError(f"{where} is not JSON: {line[:40]!r}") from None
    if isinstance(value, dict):
        value = next((value[key] for key in ("prompt", "messages", "question") if key in value), None)
    if not isinstance(value, str | list) or not value:
        raise UnmaskError(f'{where} has no prompt: write a text, or {{"prompt": …}} or {{"messages": …}}')
    return value
