"""Files of prompts: a prompt per line, or JSON lines of texts, chat messages, `{"prompt": …}` or `{"messages": …}`.

A prompt of several lines is a JSON string in either: "Numbers: [87, 28, 35]\\nTarget: 94".
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from unmask.cli.boundary import read_stdin
from unmask.errors import UnmaskError

JSON_LINES = (".jsonl", ".ndjson", ".json")


def read_prompts(path: Path, chat: bool = False) -> list[Any]:
    """Empty lines are left out; with `chat` each text becomes a user's message."""
    lines = [(number, line) for number, line in enumerate(_text(path).split("\n"), 1) if line.strip()]
    if not lines:
        raise UnmaskError(f"{str(path)!r} has no prompts: write one per line")
    if path.suffix in JSON_LINES:
        prompts = [_parse(line, f"line {number} of {str(path)!r}") for number, line in lines]
    else:
        prompts = [_unquote(line.removesuffix("\r")) for _, line in lines]
    return [[{"role": "user", "content": each}] if chat and isinstance(each, str) else each for each in prompts]


def _text(path: Path) -> str:
    try:
        raw = read_stdin("the prompts") if str(path) == "-" else path.read_bytes()
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise UnmaskError(f"{str(path)!r} is not UTF-8 text") from None
    except OSError as error:
        raise UnmaskError(f"{str(path)!r} cannot be read: {error.strerror}") from None


def _unquote(line: str) -> str:
    """What a JSON string holds; any other line as it is."""
    try:
        value = json.loads(line) if line.strip().startswith('"') else line
    except ValueError:
        return line
    return value if value.strip() else line


def _parse(line: str, where: str) -> Any:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        raise UnmaskError(f"{where} is not JSON: {line[:40]!r}") from None
    if isinstance(value, dict):
        value = next((value[key] for key in ("prompt", "messages", "question") if key in value), None)
    if not isinstance(value, str | list) or not value:
        raise UnmaskError(f'{where} holds no prompt: write a text, or {{"prompt": …}} or {{"messages": …}}')
    return value
