"""The end of an answer and the checks of a prompt, as functions of token ids and strings that all packages use."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from unmask.errors import UnmaskError


def end_of_text(ids: Sequence[int], eos: Collection[int]) -> int:
    """Return the place of the first end-of-text token, or the number of ids if there is none."""
    return next((place for place, token in enumerate(ids) if token in eos), len(ids))


def find_stop(text: str, stop: Sequence[str]) -> int:
    """Return the place of the first stop string, or -1 if the text has none."""
    return min((place for word in stop if (place := text.find(word)) >= 0), default=-1)


def cut_at_stop(text: str, stop: Sequence[str]) -> str:
    """Return the text before its first stop string."""
    place = find_stop(text, stop)
    return text if place < 0 else text[:place]


def check_prompt(ids: Sequence[int], length: int, mask_id: int, infill: bool = False) -> None:
    """Refuse an empty prompt, an answer without masks, and masks inside a prompt unless they are to be filled."""
    masks = sum(token == mask_id for token in ids)
    if not len(ids):
        raise UnmaskError("the prompt is empty: give at least one token")
    if length < 0 or length + masks < 1:
        raise UnmaskError(f"length must be at least 1, got {length}")
    if masks and not infill:
        raise UnmaskError(
            f"the prompt contains the mask token (id {mask_id}) {masks} times: use fill() to have masks filled in"
        )


def check_context(positions: int, context: int) -> None:
    """Refuse a prompt and answer of more positions than the model takes."""
    if positions > context:
        raise UnmaskError(
            f"prompt and answer need {positions} positions, the model takes {context}: "
            f"shorten the length by {positions - context} or the prompt"
        )
