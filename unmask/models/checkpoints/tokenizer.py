"""The tokenizer and chat template of a checkpoint."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tokenizers import AddedToken, Regex, Tokenizer, decoders, normalizers, pre_tokenizers
from tokenizers.models import BPE

from unmask.child_process import ChildError, ChildProcess, ChildStoppedError
from unmask.errors import UnmaskError
from unmask.models.checkpoints.config import check_file, read_file, read_json, shown
from unmask.models.model import Messages

HALF = "\ufffd"  # the character that a tokenizer writes for bytes that are not a whole character yet
TEMPLATES = ChildProcess(Path(__file__).with_name("chat_template.py"), memory=2**29, seconds=2)

# How Qwen2.5 splits text before its merges. Checkpoints with only vocab.json and merges.txt leave this to code.
QWEN_WORDS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)


@dataclass(frozen=True)
class Numbers:
    """A text made of the token ids themselves, for callers that only exchange ids."""

    def encode(self, text: str) -> list[int]:
        return [int(word) for word in text.split()]

    def decode(self, ids: Sequence[int]) -> str:
        return " ".join(map(str, ids))

    def chat(self, messages: Messages) -> str:
        return " ".join(message["content"] for message in messages)


@dataclass(frozen=True)
class Subwords:
    """A tokenizer and its chat template. Special tokens written in the text become their ids; none are added."""

    tokenizer: Tokenizer
    template: str | None = None  # None for a base model: messages are joined as plain text
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
                raise UnmaskError(f"a message must be {{'role': text, 'content': text}}, got {message!r}")
        return chat_text(messages, None if self.template is None else self._render)

    def _render(self, messages: list[dict[str, str]]) -> str:
        variables = {"messages": messages, "add_generation_prompt": True, **self.specials}
        try:
            return TEMPLATES.ask({"template": self.template, "variables": variables})
        except ChildStoppedError:
            raise UnmaskError("the chat template was stopped: it takes too much time or memory") from None
        except ChildError as error:
            sentence = " ".join(str(error).removeprefix("TemplateError: ").split())[:300]
            raise UnmaskError(f"the chat template does not accept these messages: {sentence}") from None


def chat_text(messages: Messages, render: Callable[[list[dict[str, str]]], str] | None) -> str:
    """Render messages, or join them where there is no template; a last assistant message is left open."""
    if render is None:
        return "\n\n".join(message["content"] for message in messages)
    if messages and messages[-1]["role"] == "assistant":  # the answer begins with this text
        return render(list(messages[:-1])) + messages[-1]["content"]
    return render(list(messages))


def read_text(folder: Path) -> Subwords:
    """Read a checkpoint's tokenizer, special tokens and chat template."""
    settings = read_json(folder / "tokenizer_config.json", {})
    tokens = {**read_json(folder / "special_tokens_map.json", {}), **settings}
    specials = {key: _content(value) for key, value in tokens.items() if key.endswith("_token") and _content(value)}
    return Subwords(_tokenizer(folder, settings), read_template(folder, settings), specials)


def read_template(folder: Path, settings: dict[str, Any]) -> str | None:
    """Read the chat template from its own file or from the settings in tokenizer_config.json."""
    if (folder / "chat_template.jinja").exists():
        return read_file(folder / "chat_template.jinja")
    template = settings.get("chat_template")
    if isinstance(template, list):  # several templates, each with a name
        named = [entry for entry in template if isinstance(entry, dict) and entry.get("name") == "default"]
        template = named[0].get("template") if named else None
    if template is not None and not isinstance(template, str):
        raise UnmaskError(f"chat_template in tokenizer_config.json must be text, got {shown(template)}")
    return template


def flat_ids(values: Iterable[Any]) -> list[Any]:
    """Return all ids of values that are None, an id, or a list of ids."""
    lists = (value if isinstance(value, list) else [value] for value in values)
    return [number for numbers in lists for number in numbers if number is not None]


def _content(value: Any) -> str:
    """Return the text of a special token, which is given as text or as an object that holds it."""
    content = value.get("content") if isinstance(value, dict) else value
    return content if isinstance(content, str) else ""


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
        raise UnmaskError(f"the tokenizer in {folder} cannot be read ({error}): download its files again") from None
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
