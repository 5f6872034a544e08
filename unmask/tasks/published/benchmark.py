"""The base class of published benchmarks: fixed problems, a wording, and answers in boxes or tags.

    {"system": "You are careful with numbers.", "question": "Q: {question}", "prefill": "<reasoning>"}

A JSON file such as this one replaces a wording. A file for several tasks has one such object per task, by the task's
name: `{"gsm8k": {"system": …}, "countdown-d1": {"system": …}}`. One user message holds the system text, a blank line
and the question; the prefill starts the model's turn.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import ClassVar

from unmask.errors import UnmaskError, nearest
from unmask.tasks.task import Grade, Problem, Task, task

LONGEST = 100_000  # characters of an output that are read, from its end
_BOX = "\\boxed"
_BRACE = re.compile(r"[{}]")
_PLACE = re.compile(r"\{([a-z_]+)\}")


@dataclass(frozen=True)
class Wording:
    system: str
    question: str = "{question}"  # {question} and the task's own fields are filled in; other braces are literal
    prefill: str = "<reasoning>"

    def messages(self, values: Mapping[str, object]) -> list[dict[str, str]]:
        question = _PLACE.sub(lambda place: str(values.get(place[1], place[0])), self.question)
        content = f"{self.system}\n\n{question}" if self.system else question
        prefill = [{"role": "assistant", "content": self.prefill}] if self.prefill else []
        return [{"role": "user", "content": content}, *prefill]


@cache
def load_wording(path: str, name: str = "") -> Wording:
    """Return the wording of a task; it is cached, so that a run keeps the wording it started with."""
    known = [field.name for field in fields(Wording)]
    try:
        texts = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise UnmaskError(f"the prompts file {path} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise UnmaskError(f"the prompts file {path} is not JSON: {error}") from None
    if isinstance(texts, dict) and texts and all(isinstance(text, dict) for text in texts.values()):
        if name not in texts:
            raise UnmaskError(f"the prompts file {path} has no wording of {name!r}: it has {', '.join(texts)}")
        texts = texts[name]
    if not isinstance(texts, dict) or not all(isinstance(text, str) for text in texts.values()):
        raise UnmaskError(f"the prompts file {path} is not an object of texts: {', '.join(known)}")
    for key in texts:
        if key not in known:
            raise UnmaskError(f"the prompts file {path} has an unknown key {key!r}: {nearest(key, known)}")
    if "{question}" not in texts.get("question", "{question}") and not _PLACE.search(texts["question"]):
        raise UnmaskError(f"the question template in {path} must contain {{question}}, got {texts['question'][:60]!r}")
    return Wording(**{"system": "", **texts})


@dataclass(frozen=True)
class Benchmark(Task):
    version: ClassVar[int] = 1
    wording: ClassVar[Wording]

    prompts: str | None = None  # a JSON file with a different wording

    def messages(self, problem: Problem) -> list[dict[str, str]]:
        return self.chosen_wording().messages({**problem.data, "question": problem.question})

    def chosen_wording(self) -> Wording:
        """Return the wording in the prompts file, if there is one; raise if the file lacks it."""
        return load_wording(self.prompts, task.name(self)) if self.prompts else self.wording


def grade_of(right: bool, answer: str | None, note: str = "a different answer") -> Grade:
    """Return a grade without partial credit."""
    if answer is None:
        note = "no answer"
    return Grade(right, float(right), answer, "" if right else note)


def clip(text: str) -> str:
    """Return the part of an output that is read."""
    return text[-LONGEST:]


def boxes(text: str, longest: int = LONGEST) -> Iterator[str]:
    """Yield the contents of balanced `\\boxed{…}` of at most `longest` characters, the last to open first.

    They are not returned together, because the contents of nested boxes can be far longer than the text.
    """
    spans: list[tuple[int, int]] = []
    opened: list[int] = []
    for brace in _BRACE.finditer(text):
        place = brace.start()
        if brace[0] == "{":
            opened.append(place)
        elif opened:
            start = opened.pop()
            if text.startswith(_BOX, max(start - len(_BOX), 0)) and start >= len(_BOX):
                spans.append((start + 1, place))
    return (text[start:end] for start, end in sorted(spans, reverse=True) if end - start <= longest)


def loose_boxes(text: str) -> list[str]:
    """Return the text between each `\\boxed{` and the next `}` on its line, whatever braces are inside."""
    contents: list[str] = []
    start = text.find(_BOX + "{")
    while start >= 0:
        start += len(_BOX) + 1
        end = text.find("}", start)
        if end < 0:
            break
        inside = text[start:end]
        if "\n" not in inside:
            contents.append(inside)
            start = end
        start = text.find(_BOX + "{", start)
    return contents


def tagged(text: str) -> str | None:
    """Return the content of the first closed `<answer>…</answer>`."""
    start = text.find("<answer>")
    end = text.find("</answer>", start)
    return text[start + len("<answer>") : end].strip() if 0 <= start < end else None
