"""Text at both ends of decoding: a prompt as token ids, with `<mask:n>` for a gap of n tokens, and ids as an answer."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain, groupby
from numbers import Integral
from typing import Any, Literal, TypeAlias

from unmask.core.text import check_context, cut_at_stop, end_of_text, find_stop
from unmask.errors import UnmaskError
from unmask.models import Messages, Model

OnePrompt: TypeAlias = str | Messages | Sequence[int]
Finish = Literal["stop", "length"]  # an answer ended by end-of-text or a stop string, or by its last mask
MASK_SIGN = "░"  # a mask in partial texts
ROLES = ("system", "user", "assistant")
log = logging.getLogger("unmask")

_MASK = re.compile(r"<mask(?::([^<>]*))?>")


@dataclass(frozen=True)
class EncodedPrompt:
    """A prompt as a model reads it."""

    text: str
    ids: tuple[int, ...]
    parts: tuple[str | int, ...]  # the text in order: given text, and the number of masks of each gap
    messages: tuple[Mapping[str, str], ...] = ()  # the chat messages that it was given as, if it was

    @property
    def gaps(self) -> int:
        """The number of masks in all gaps."""
        return sum(part for part in self.parts if isinstance(part, int))


def read_prompt(model: Model, prompt: OnePrompt, length: int = 0, infill: bool = False) -> EncodedPrompt:
    """Encode a prompt that `length` masks will follow, and refuse it if they do not fit the model together.

    Chat messages go through the model's template; text and ids are continued as they are.
    """
    if _are_ids(prompt):
        ids = tuple(int(i) for i in prompt)  # type: ignore[arg-type]
        check_ids(model, ids)
        text = model.text.decode(ids)
        check_context(len(ids) + length, model.denoiser.context)
        return EncodedPrompt(text, ids, (text,))
    text = _render(model, prompt)
    parts = _parts(text, infill)
    encoded = [part if isinstance(part, int) else tuple(model.text.encode(part)) for part in parts]
    positions = sum(part if isinstance(part, int) else len(part) for part in encoded) + length
    check_context(positions, model.denoiser.context)  # before the masks are made: a typing error may ask for billions
    for part in encoded:
        check_ids(model, () if isinstance(part, int) else part)
    gaps = ((model.denoiser.mask_id,) * part if isinstance(part, int) else part for part in encoded)
    messages = () if isinstance(prompt, str) else tuple(prompt)
    return EncodedPrompt(text, tuple(chain.from_iterable(gaps)), parts, messages)  # type: ignore[arg-type]


def check_ids(model: Model, ids: Sequence[int]) -> None:
    """Refuse ids outside the vocabulary, from a caller or from a tokenizer that knows more tokens than the model."""
    vocab = model.denoiser.vocab
    for place, number in enumerate(ids):
        if not 0 <= number < vocab:
            where = f"token id {str(number)[:20]} (number {place} of {len(ids)})"
            raise UnmaskError(f"{where} is not in the vocabulary of {model.name}: ids are 0 to {vocab - 1}")


def plain_prompt(given: Any) -> Any:
    """Return tensors, arrays and what a tokenizer of `transformers` returns as lists of ids; the rest as it is."""
    prompt: Any = given
    if isinstance(given, Mapping) and "input_ids" in given:
        return without_padding(plain_prompt(given["input_ids"]), plain_prompt(given.get("attention_mask")))
    if hasattr(prompt, "tolist") and hasattr(prompt, "ndim"):
        if prompt.ndim > 2 or "int" not in str(prompt.dtype):
            raise UnmaskError(f"token ids must be integers in 1 or 2 dimensions, got {prompt.ndim} of {prompt.dtype}")
        return prompt.tolist()
    if isinstance(prompt, list | tuple) and any(
        hasattr(each, "tolist") or isinstance(each, Mapping) for each in prompt
    ):
        return [plain_prompt(each) if not isinstance(each, dict) else each for each in prompt]
    return prompt


def without_padding(ids: Any, attention_mask: Any, left_only: bool = False) -> Any:
    """Return the ids of one prompt, or of each of a list, that its attention mask does not hide."""
    if attention_mask is None:
        return ids
    if len(ids) != len(attention_mask):
        raise UnmaskError(f"attention_mask must have the shape of the ids, got {len(attention_mask)} for {len(ids)}")
    if ids and isinstance(ids[0], list):
        return [without_padding(*pair, left_only) for pair in zip(ids, attention_mask, strict=True)]
    real = [number for number, seen in zip(ids, attention_mask, strict=True) if seen]
    if left_only and not (real and all(attention_mask[-len(real) :])):
        raise UnmaskError("attention_mask must hide padding on the left only: use padding_side='left'")
    return real


def is_one(prompt: Any) -> bool:
    """Tell one prompt from a list of prompts."""
    if isinstance(prompt, bytes | bytearray) or not isinstance(prompt, Sequence):
        hint = ": decode it first" if isinstance(prompt, bytes | bytearray) else ""
        raise UnmaskError(f"a prompt must be text, chat messages or token ids, got {type(prompt).__name__}{hint}")
    if isinstance(prompt, str):
        return True
    ids = [_is_id(item) for item in prompt]
    if any(ids[:1]) and not all(ids):
        place = ids.index(False)
        raise UnmaskError(
            f"token ids must be integers, got {repr(prompt[place])[:40]} (number {place} of {len(prompt)})"
        )
    return bool(ids) and (all(ids) or all(isinstance(item, dict) for item in prompt))


def decode_until_end(model: Model, ids: Sequence[int]) -> str:
    """Return the text of the ids before the first end-of-text."""
    return model.text.decode(list(ids[: end_of_text(ids, model.eos)]))


def answer_text(model: Model, prompt: EncodedPrompt, ids: Sequence[int], stop: Sequence[str] = ()) -> str:
    """Return the text of a finished row after its prompt, cut at end-of-text and stop strings."""
    return cut_at_stop(decode_until_end(model, ids[len(prompt.ids) :]), stop)


def filled_text(model: Model, prompt: EncodedPrompt, ids: Sequence[int], stop: Sequence[str] = ()) -> str:
    """Return the given text with its gaps filled, and the text written after it."""
    text, at = "", 0
    for part in prompt.parts:
        size = part if isinstance(part, int) else len(model.text.encode(part))
        text += decode_until_end(model, ids[at : at + size]) if isinstance(part, int) else part
        at += size
    return text + cut_at_stop(decode_until_end(model, ids[at:]), stop)


def finish_reason(model: Model, prompt: EncodedPrompt, ids: Sequence[int], stop: Sequence[str] = ()) -> Finish:
    """Return `stop` if end-of-text or a stop string ended the text after the prompt before its last mask."""
    rest = ids[len(prompt.ids) :]
    ended = end_of_text(rest, model.eos) < len(rest) or find_stop(model.text.decode(list(rest)), stop) >= 0
    return "stop" if ended else "length"


def partial_text(model: Model, ids: Sequence[int]) -> str:
    """Return the text of an unfinished answer, with a sign for each mask."""
    text = ""
    for masked, run in groupby(ids, lambda token: token == model.denoiser.mask_id):
        tokens = list(run)
        text += MASK_SIGN * len(tokens) if masked else model.text.decode(tokens)
    return text


def _are_ids(prompt: Any) -> bool:
    if isinstance(prompt, str | bytes) or not isinstance(prompt, Sequence):
        return False
    return bool(prompt) and all(map(_is_id, prompt))


def _is_id(item: Any) -> bool:
    return isinstance(item, Integral) and not isinstance(item, bool)


def _render(model: Model, prompt: Any) -> str:
    """Return a prompt's text, or its chat messages in the model's template."""
    if isinstance(prompt, str):
        return prompt
    if not isinstance(prompt, Sequence) or not all(isinstance(message, dict) for message in prompt):
        raise UnmaskError(f"a prompt must be text, chat messages or token ids, got {type(prompt).__name__}")
    for message in prompt:
        if not isinstance(message.get("role"), str) or not isinstance(message.get("content"), str):
            raise UnmaskError(f"a chat message must have a role and a content, both text, got {message!r}")
        if message["role"] not in ROLES:
            raise UnmaskError(f"unknown role {message['role']!r}: known: {', '.join(sorted(ROLES))}")
    if not getattr(model.text, "templated", True):
        warn_once(f"{model.name} has no chat template: messages are joined as plain text")
    return model.text.chat(prompt)


@cache
def warn_once(sentence: str) -> None:
    """Log a warning the first time that it is given."""
    log.warning(sentence)


def _parts(text: str, infill: bool) -> tuple[str | int, ...]:
    """Split a text at its gaps, which `infill` requires and a plain prompt may not have."""
    parts: list[str | int] = []
    end = 0
    for gap in _MASK.finditer(text):
        count = gap.group(1) if gap.group(1) is not None else "1"
        if not re.fullmatch("[0-9]{1,9}", count) or int(count) < 1:
            raise UnmaskError(f"{gap.group()[:40]!r} is not a gap: write <mask:8> for 8 tokens")
        if not infill:
            raise UnmaskError(f"the prompt contains {gap.group()!r}: use fill to fill gaps")
        parts += [text[end : gap.start()], int(count)]
        end = gap.end()
    if infill and not parts:
        raise UnmaskError("the prompt has no gap: write <mask:8> for 8 tokens to be filled in")
    parts.append(text[end:])
    return tuple(part for part in parts if part != "") or ("",)
