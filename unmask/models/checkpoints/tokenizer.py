"""The tokenizer and chat template of a checkpoint, and how its small files are read."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tokenizers import AddedToken, Regex, Tokenizer, decoders, normalizers, pre_tokenizers
from tokenizers.models import BPE

from unmask.errors import UnmaskError
from unmask.models.checkpoints.chat_template import RENDERER
from unmask.models.checkpoints.config import shown
from unmask.models.model import Messages

HALF = "\ufffd"  # what a tokenizer writes for bytes that are not a whole character yet
LARGEST = 2**28  # bytes of a file that is not weights

# How Qwen2.5 splits text before its merges. Checkpoints with only vocab.json and merges.txt leave this to code.
QWEN_WORDS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)


@dataclass(frozen=True)
class Numbers:
    """A text that is its ids, where nobody reads words."""

    def encode(self, text: str) -> list[int]:
        return [int(word) for word in text.split()]

    def decode(self, ids: Sequence[int]) -> str:
        return " ".join(map(str, ids))

    def chat(self, messages: Messages) -> str:
        return " ".join(message["content"] for message in messages)


@dataclass(frozen=True)
class Subwords:
    """A tokenizer and its template. Special tokens written in the text become their ids; none are added."""

    tokenizer: Tokenizer
    template: str | None = None  # None: a base model, where messages are joined as plain text
    specials: dict[str, str] = field(default_factory=dict)  # bos_token, eos_token, mask_token, … where set

    def encode(self, text: str) -> list[int]:
        return self.tokenizer.encode(text, add_special_tokens=False).ids

    def decode(self, ids: Sequence[int]) -> str:
        return self.tokenizer.decode(list(ids), skip_special_tokens=False)

    def id(self, token: str | None) -> int | None:
        return None if token is None else self.tokenizer.token_to_id(token)

    @property
    def templated(self) -> bool:
        return self.template is not None

    def chat(self, messages: Messages) -> str:
        for message in messages:
            if not isinstance(message.get("role"), str) or not isinstance(message.get("content"), str):
                raise UnmaskError(f"a message is {{'role': …, 'content': …}}, both of them text, not {message!r}")
        if self.template is None:
            return "\n\n".join(message["content"] for message in messages)
        if messages and messages[-1]["role"] == "assistant":  # the answer begins with this text
            return self._render(list(messages[:-1])) + messages[-1]["content"]
        return self._render(list(messages))

    def _render(self, messages: list[dict[str, str]]) -> str:
        return RENDERER.render(self.template or "", messages=messages, add_generation_prompt=True, **self.specials)


def read_text(folder: Path) -> Subwords:
    settings = read_json(folder / "tokenizer_config.json", {})
    tokens = {**read_json(folder / "special_tokens_map.json", {}), **settings}
    specials = {key: _content(value) for key, value in tokens.items() if key.endswith("_token") and _content(value)}
    return Subwords(_tokenizer(folder, settings), _template(folder, settings), specials)


def read_json(path: Path, missing: Any = None) -> Any:
    if not path.exists() and missing is not None:
        return missing
    try:
        content = json.loads(read_file(path))
    except FileNotFoundError:
        if not path.parent.exists():
            raise UnmaskError(f"there is no folder {str(path.parent)!r}: name the folder of a checkpoint") from None
        raise UnmaskError(f"{path.parent} has no {path.name}: it is not the folder of a checkpoint") from None
    except (ValueError, RecursionError) as error:  # also of numbers with thousands of digits
        raise UnmaskError(f"{path} cannot be read ({error}): fetch the file again") from None
    if not isinstance(content, dict):
        raise UnmaskError(f"{path} is not a JSON object: fetch the file again")
    return content


def read_file(path: Path) -> str:
    """The text of a file, which must be a file: a pipe of that name would be waited for."""
    check_file(path)
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UnmaskError(f"{path} cannot be read ({error}): fetch the file again") from None


def check_file(path: Path) -> None:
    if not path.exists():
        raise FileNotFoundError(path)
    if not path.is_file():
        raise UnmaskError(f"{path} is not a file: fetch it again")
    if path.suffix != ".safetensors" and path.stat().st_size > LARGEST:
        raise UnmaskError(f"{path} has {path.stat().st_size} bytes, which no such file needs: fetch it again")


def flat_ids(values: Iterable[Any]) -> list[Any]:
    """Ids may be missing, single, or lists."""
    return [
        number for value in values for number in (value if isinstance(value, list) else [value]) if number is not None
    ]


def _content(value: Any) -> str:
    """A special token is given as text, or as an object with the text."""
    content = value.get("content") if isinstance(value, dict) else value
    return content if isinstance(content, str) else ""


def _template(folder: Path, settings: dict[str, Any]) -> str | None:
    if (folder / "chat_template.jinja").exists():
        return read_file(folder / "chat_template.jinja")
    template = settings.get("chat_template")
    if isinstance(template, list):  # several, each with a name
        named = [entry for entry in template if isinstance(entry, dict) and entry.get("name") == "default"]
        template = named[0].get("template") if named else None
    if template is not None and not isinstance(template, str):
        raise UnmaskError(f"chat_template in tokenizer_config.json is {shown(template)}: it must be text")
    return template


def _tokenizer(folder: Path, settings: dict[str, Any]) -> Tokenizer:
    whole, vocab, merges = folder / "tokenizer.json", folder / "vocab.json", folder / "merges.txt"
    files = [file for file in (whole, vocab, merges) if file.exists()]
    for file in files:
        check_file(file)
    try:
        if whole in files:
            return Tokenizer.from_file(str(whole))
        if vocab in files and merges in files:
            return _qwen(BPE.from_file(str(vocab), str(merges)), settings)
    except Exception as error:  # the tokenizers library raises bare Exceptions
        raise UnmaskError(f"the tokenizer in {folder} cannot be read ({error}): fetch its files again") from None
    raise UnmaskError(f"{folder} has no tokenizer: it needs tokenizer.json, or vocab.json with merges.txt")


def _qwen(model: BPE, settings: dict[str, Any]) -> Tokenizer:
    tokenizer = Tokenizer(model)
    tokenizer.normalizer = normalizers.NFC()
    words = pre_tokenizers.Split(Regex(QWEN_WORDS), behavior="isolated")
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([words, pre_tokenizers.ByteLevel(False, use_regex=False)])
    tokenizer.decoder = decoders.ByteLevel()
    added = settings.get("added_tokens_decoder", {})
    for number in sorted(added, key=int):
        entry = added[number]
        flags = {key: bool(entry.get(key)) for key in ("lstrip", "rstrip", "single_word", "normalized", "special")}
        tokenizer.add_tokens([AddedToken(entry["content"], **flags)])
        if tokenizer.token_to_id(entry["content"]) != int(number):
            raise UnmaskError(f"token {entry['content']!r} needs id {number}, but it would not follow the vocabulary")
    return tokenizer
