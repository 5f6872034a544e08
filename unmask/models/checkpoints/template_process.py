"""Renders chat templates in jinja2's sandbox: a script that chat_template.py runs, of bounded time and memory.

A template is a program that comes with a checkpoint, and may loop for ever or ask for more memory than there is. Here
it then ends this process alone. Requests and replies are lines of JSON.
"""

from __future__ import annotations

import json
import sys
from datetime import datetime
from functools import lru_cache
from typing import Any, NoReturn

from jinja2 import Template, TemplateError
from jinja2.sandbox import ImmutableSandboxedEnvironment

SECONDS = 2  # of computing, per request
MEMORY = 2**29  # bytes
LONGEST = 2**24  # characters of a prompt


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


def answer(template: str, variables: dict[str, Any]) -> dict[str, str]:
    try:
        text = compiled(template).render(**variables)
    except Exception as error:  # a template can raise whatever Python can
        return {"error": f"{error}" if isinstance(error, TemplateError) else f"{type(error).__name__}: {error}"}
    if len(text) > LONGEST:
        return {"error": f"it makes {len(text)} characters of them, and {LONGEST} are the most"}
    return {"text": text}


def limit_time() -> None:
    """Of the next request: beyond it the system ends the process."""
    try:
        import resource
    except ImportError:  # not on Windows
        return
    usage = resource.getrusage(resource.RUSAGE_SELF)
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(resource.RLIMIT_CPU, (int(usage.ru_utime + usage.ru_stime) + 1 + SECONDS, hard))


def limit_memory() -> None:
    try:
        import resource
    except ImportError:
        return
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def main() -> None:
    limit_memory()
    for line in sys.stdin:
        limit_time()
        print(json.dumps(answer(**json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
