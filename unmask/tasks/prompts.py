"""How a problem is worded: system text, question template, prefill. Wordings are data, so a JSON file can
replace ours.

    {"system": "You are careful with numbers.", "question": "Q: {question}", "prefill": "<reasoning>"}

One user message holds the system text, a blank line and the question; the prefill opens the model's own turn.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path

from unmask.errors import UnmaskError, nearest

_PLACE = re.compile(r"\{([a-z_]+)\}")


@dataclass(frozen=True)
class Prompt:
    system: str
    question: str = "{question}"  # other braces than {question} and the task's own fields stand as they are
    prefill: str = "<reasoning>"

    def messages(self, values: Mapping[str, object]) -> list[dict[str, str]]:
        question = _PLACE.sub(lambda place: str(values.get(place[1], place[0])), self.question)
        asked = f"{self.system}\n\n{question}" if self.system else question
        opened = [{"role": "assistant", "content": self.prefill}] if self.prefill else []
        return [{"role": "user", "content": asked}, *opened]


@cache
def load(path: str) -> Prompt:
    """Read once: a run keeps the wording it began with."""
    known = [field.name for field in fields(Prompt)]
    try:
        said = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise UnmaskError(f"the prompts file {path} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise UnmaskError(f"the prompts file {path} is not JSON: {error}") from None
    if not isinstance(said, dict) or not all(isinstance(text, str) for text in said.values()):
        raise UnmaskError(f"the prompts file {path} is not an object of texts: {', '.join(known)}")
    for key in said:
        if key not in known:
            raise UnmaskError(f"the prompts file {path} has an unknown key {key!r}: {nearest(key, known)}")
    if "{question}" not in said.get("question", "{question}") and not _PLACE.search(said["question"]):
        raise UnmaskError(f"the question template in {path} never says {{question}}")
    return Prompt(**{"system": "", **said})
