"""Answers to many prompts: a prompt that cannot be answered is named by its index, and need not stop the others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, get_args

from unmask.core import Frame, Watch, block_size
from unmask.core.decoder import fit
from unmask.errors import UnmaskError, nearest
from unmask.runs.bounds import check_rows
from unmask.runs.generation import Generation
from unmask.runs.output import Output
from unmask.runs.prompt import EncodedPrompt, read_prompt
from unmask.runs.telling import Progress, telling

Errors = Literal["raise", "return"]


def read_prompts(generation: Generation, prompts: Sequence[Any], most: int) -> list[EncodedPrompt | UnmaskError]:
    """Each as tokens, or the reason why it cannot be answered; each may cost `most` rows."""
    return [_read(generation, prompt, most) for prompt in prompts]


def _read(generation: Generation, prompt: Any, most: int) -> EncodedPrompt | UnmaskError:
    decoding, denoiser = generation.decoding, generation.model.denoiser
    try:
        encoded = read_prompt(generation.model, prompt, decoding.length, generation.infill)
        masks = decoding.length + (encoded.ids.count(denoiser.mask_id) if generation.infill else 0)
        if masks > 0:
            chosen, width = fit(decoding.decoder, block_size(denoiser), masks), len(encoded.ids) + decoding.length
            check_rows(chosen, masks, most, 2 if decoding.guidance > 0 else 1, positions=width)
    except UnmaskError as error:
        return error
    return encoded


def in_batches(
    generation: Generation,
    prompts: Sequence[EncodedPrompt | UnmaskError],
    batch: int,
    *,
    traced: bool = False,
    watch: Watch | None = None,
    errors: Errors = "raise",
    progress: Progress = False,
) -> list[Output | UnmaskError]:
    """Results do not depend on `batch`; memory does. A refusal is raised, or takes the place of its output."""
    if isinstance(batch, bool) or not isinstance(batch, int) or batch < 1:
        raise UnmaskError(f"batch={batch!r} does not work: choose 1 or more")
    if errors not in get_args(Errors):
        raise UnmaskError(f"errors={errors!r} does not work: {nearest(str(errors), get_args(Errors))}")
    if not prompts:
        raise UnmaskError("there is nothing to decode: give at least one prompt")
    outcomes: list[Any] = [_named(each, number, len(prompts)) for number, each in enumerate(prompts)]
    refused = [each for each in outcomes if isinstance(each, UnmaskError)]
    if refused and errors == "raise":
        raise refused[0]
    able = [number for number, each in enumerate(outcomes) if isinstance(each, EncodedPrompt)]
    with telling(progress, len(prompts)) as tell:
        for start in range(0, len(able), batch):
            numbers = able[start : start + batch]
            decoded = _decode(generation, outcomes, numbers, traced, watch, errors)
            for number, outcome in zip(numbers, decoded, strict=True):
                outcomes[number] = outcome
            tell(len(refused) + start + len(numbers))
    return outcomes


def _decode(
    generation: Generation,
    prompts: Sequence[Any],
    numbers: list[int],
    traced: bool,
    watch: Watch | None,
    errors: Errors,
) -> list[Output | UnmaskError]:
    """Each prompt alone where together they are refused, so that the rest is answered."""

    def see(some: list[int], frame: Frame) -> None:
        assert watch is not None
        watch([numbers[each] for each in some], frame)

    try:
        return [*generation.outputs([prompts[number] for number in numbers], traced, see if watch else None)]
    except UnmaskError as error:
        if errors == "raise":
            raise
        if len(numbers) == 1:
            return [_named(error, numbers[0], len(prompts))]
    return [each for number in numbers for each in _decode(generation, prompts, [number], traced, watch, errors)]


def _named(outcome: Any, number: int, of: int) -> Any:
    return UnmaskError(f"prompt {number}: {outcome}") if isinstance(outcome, UnmaskError) and of > 1 else outcome
