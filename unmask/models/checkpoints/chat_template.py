"""Renders chat templates in jinja2's sandbox. `tokenizer.py` runs this script in a child process.

A template is a program that comes with a checkpoint: it may loop forever or ask for more memory than there is. In a
child process with limits it then fails alone.
"""

from __future__ import annotations

import json
from datetime import datetime
from functools import lru_cache
from typing import Any, NoReturn

from jinja2 import Template, TemplateError
from jinja2.sandbox import ImmutableSandboxedEnvironment

LONGEST = 2**24  # characters of a rendered prompt


def refuse(message: str) -> NoReturn:
    raise TemplateError(message)


ENVIRONMENT = ImmutableSandboxedEnvironment(
    trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"]
)
ENVIRONMENT.filters["tojson"] = lambda value, indent=None: json.dumps(value, ensure_ascii=False, indent=indent)
ENVIRONMENT.globals["raise_exception"] = refuse
ENVIRONMENT.globals["strftime_now"] = lambda form: datetime.now().strftime(form)


@lru_cache(maxsize=16)
def compiled(template: str) -> Template:
    return ENVIRONMENT.from_string(template)


def answer(request: dict[str, Any]) -> str:
    """Render the request's template with its variables."""
    text = compiled(request["template"]).render(**request["variables"])
    if len(text) > LONGEST:
        refuse(f"the prompt must have at most {LONGEST} characters, got {len(text)}")
    return text
