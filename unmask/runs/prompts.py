"""A prompt as tokens: from text, chat messages or ids, with `<mask:n>` for a gap of n tokens."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain
from numbers import Integral
from typing import Any, TypeAlias

from unmask.errors import UnmaskError
from unmask.models import Messages, Model

OnePrompt: TypeAlias = str | Messages | Sequence[int]
log = logging.getLogger("unmask")

_MASK = re.compile(r"<mask(?::([^<>]*))?>")


@dataclass(frozen=True)
class EncodedPrompt:
    text: str
    ids: tuple[int, ...]
    parts: tuple[str | int, ...]  # the text in order: given text, and the number of masks of each gap


def read_prompt(model: Model, prompt: OnePrompt, length: int = 0, infill: bool = False) -> EncodedPrompt:
    """Chat messages go through the model's template; text is continued as it is. `length` masks must fit as well."""
    if _are_ids(prompt):
        ids = tuple(int(i) for i in prompt)  # type: ignore[arg-type]
        check_ids(model, ids)
        text = model.text.decode(ids)
        check_room(model, len(ids) + length)
        return EncodedPrompt(text, ids, (text,))
    text = _render(model, prompt)
    parts = _parts(text)
    if infill and not any(isinstance(part, int) for part in parts):
        raise UnmaskError("the prompt has no gap: write <mask:8> for 8 tokens to be filled in")
    if not infill and len(parts) > 1:
        gap = _MASK.search(text)
        raise UnmaskError(f"the prompt holds {gap and gap.group()!r}: use fill to fill gaps")
    encoded = [part if isinstance(part, int) else tuple(model.text.encode(part)) for part in parts]
    check_room(model, sum(part if isinstance(part, int) else len(part) for part in encoded) + length)
    for part in encoded:
        check_ids(model, () if isinstance(part, int) else part)
    gaps = ((model.denoiser.mask_id,) * part if isinstance(part, int) else part for part in encoded)
    return EncodedPrompt(text, tuple(chain.from_iterable(gaps)), parts)


def check_room(model: Model, positions: int) -> None:
    """Called before the masks are made: a typing error should not take all memory."""
    if positions > model.denoiser.context:
        raise UnmaskError(
            f"prompt and answer need {positions} positions, the model takes {model.denoiser.context}: "
            f"shorten the length by {positions - model.denoiser.context} or the prompt"
        )


def check_ids(model: Model, ids: Sequence[int]) -> None:
    """Given by a caller, or by a tokenizer that knows more tokens than the model."""
    vocab = getattr(model.denoiser, "vocab", None)
    for place, number in enumerate(ids):
        if number < 0 or (vocab is not None and number >= vocab):
            known = "0 or more" if vocab is None else f"0 to {vocab - 1}"
            where = f"token id {str(number)[:20]} (number {place} of {len(ids)})"
            raise UnmaskError(f"{where} is not in the vocabulary of {model.name}: ids are {known}")


def plain_prompt(given: Any) -> Any:
    """Tensors, arrays and what a tokenizer of `transformers` returns, as lists of ids; anything else as it is."""
    prompt: Any = given
    if isinstance(given, Mapping) and "input_ids" in given:
        return _without_padding(plain_prompt(given["input_ids"]), plain_prompt(given.get("attention_mask")))
    if hasattr(prompt, "tolist") and hasattr(prompt, "ndim"):
        if prompt.ndim > 2 or "int" not in str(prompt.dtype):
            raise UnmaskError(
                f"token ids are whole numbers in at most two dimensions, not {prompt.ndim} of {prompt.dtype}"
            )
        return prompt.tolist()
    if isinstance(prompt, list | tuple) and any(
        hasattr(each, "tolist") or isinstance(each, Mapping) for each in prompt
    ):
        return [plain_prompt(each) if not isinstance(each, dict) else each for each in prompt]
    return prompt


def _without_padding(ids: Any, real: Any) -> Any:
    if real is None:
        return ids
    if ids and isinstance(ids[0], list):
        return [_without_padding(*pair) for pair in zip(ids, real, strict=True)]
    return [number for number, kept in zip(ids, real, strict=True) if kept]


def is_one(prompt: Any) -> bool:
    """Whether this is one prompt rather than a list of them."""
    if isinstance(prompt, bytes | bytearray) or not isinstance(prompt, Sequence):
        hint = ": decode it first" if isinstance(prompt, bytes | bytearray) else ""
        raise UnmaskError(f"a prompt is text, chat messages or token ids, not {type(prompt).__name__}{hint}")
    if isinstance(prompt, str):
        return True
    if len(prompt) and _is_id(prompt[0]):
        for place, item in enumerate(prompt):
            if not _is_id(item):
                raise UnmaskError(
                    f"token ids are whole numbers, not {repr(item)[:40]} (number {place} of {len(prompt)})"
                )
    return bool(len(prompt)) and (_are_ids(prompt) or all(isinstance(item, dict) for item in prompt))


def _are_ids(prompt: Any) -> bool:
    if isinstance(prompt, str | bytes) or not isinstance(prompt, Sequence):
        return False
    return bool(prompt) and all(map(_is_id, prompt))


def _is_id(item: Any) -> bool:
    return isinstance(item, Integral) and not isinstance(item, bool)


def _render(model: Model, prompt: Any) -> str:
    if isinstance(prompt, str):
        return prompt
    if not isinstance(prompt, Sequence) or not all(isinstance(message, dict) for message in prompt):
        raise UnmaskError(f"a prompt is text, chat messages or token ids, not {type(prompt).__name__}")
    for message in prompt:
        if not isinstance(message.get("role"), str) or not isinstance(message.get("content"), str):
            raise UnmaskError(f"a chat message needs a role and a content, both text, not {message!r}")
        if message["role"] not in ("system", "user", "assistant"):
            raise UnmaskError(f"unknown role {message['role']!r}: known: assistant, system, user")
    if not getattr(model.text, "templated", True):
        _say_plain(model.name)
    return model.text.chat(prompt)


@cache
def _say_plain(name: str) -> None:
    log.warning("%s has no chat template: messages are joined as plain text", name)


def _parts(text: str) -> tuple[str | int, ...]:
    parts: list[str | int] = []
    end = 0
    for gap in _MASK.finditer(text):
        count = gap.group(1) if gap.group(1) is not None else "1"
        if not re.fullmatch("[0-9]{1,9}", count) or int(count) < 1:
            raise UnmaskError(f"{gap.group()[:40]!r} is not a gap: write <mask:8> for 8 tokens")
        parts += [text[end : gap.start()], int(count)]
        end = gap.end()
    parts.append(text[end:])
    return tuple(part for part in parts if part != "") or ("",)
