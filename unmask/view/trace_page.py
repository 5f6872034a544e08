"""A page of one trace, or of several decoders' traces of the same prompt, as one file that fetches nothing.

The traces are embedded as gzip in base64, so that no text in them can be read as markup, and shown as text only.
"""

from __future__ import annotations

import base64
import gzip
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unmask.errors import UnmaskError
from unmask.report.html import render_template
from unmask.runs.files import strict_json
from unmask.runs.grid import decoder_label
from unmask.runs.record import trace_file
from unmask.runs.store import read_run
from unmask.runs.trace import Trace
from unmask.version import __version__

FOLDER = Path(__file__).parent
SHARED = ("dom", "words", "run", "canvases", "charts", "tree", "branches", "sentences", "player", "viewer", "page")
MOST = 4  # traces side by side


def render(template: str, style: str, scripts: Sequence[str], start: str, **values: Any) -> str:
    """Render a page with one script: the shared files and these in one scope, started by the expression `start`."""
    files = "\n".join(read(f"js/{name}.js") for name in (*SHARED, *scripts))
    code = f'"use strict";\n(() => {{\n{files}\n{start}.catch((error) => failed(error));\n}})();\n'
    return render_template(FOLDER / template, style, code, version=__version__, **values)


def read(name: str) -> str:
    return FOLDER.joinpath(name).read_text(encoding="utf-8")


@dataclass(frozen=True)
class Shown:
    """A trace, and the grade of its answer, if it is known."""

    trace: Trace
    right: bool | None = None
    answer: str | None = None  # as the task extracted it

    @property
    def label(self) -> str:
        header = self.trace.header
        masks = header["ids"].count(header["mask"]) + header["length"]
        return decoder_label(header["decoder"], masks)

    def data(self) -> dict[str, Any]:
        grade = None if self.right is None else {"right": self.right, "answer": self.answer}
        lines = [self.trace.header, *self.trace.steps, {"end": self.trace.end}]
        return {"label": self.label, "grade": grade, "lines": lines}


def read_shown(path: Path) -> Shown:
    """Read the file of a trace, and its grade from the records if it belongs to an evaluation run."""
    trace = Trace.load(path)
    for _ in trace.replay():  # raises an error if the trace is damaged
        pass
    if not (path.parent.name == "traces" and (path.parent.parent / "run.json").exists()):
        return Shown(trace)
    records = (record for record in read_run(path.parent.parent).records)
    record = next((each for each in records if Path(trace_file(each.name)).name == path.name), None)
    return Shown(trace) if record is None else Shown(trace, record.right, record.answer)


def blank_page() -> str:
    """Return a page without traces, which a browser can add."""
    return _page("trace", "")


def trace_page(every: Sequence[Shown]) -> str:
    """Return a page of one to four traces of the same prompt."""
    if not 1 <= len(every) <= MOST:
        raise UnmaskError(f"traces on a page must be 1 to {MOST}, got {len(every)}: make several pages")
    try:
        _check_same(every)
        title = " and ".join(shown.label for shown in every)
        data = _packed([shown.data() for shown in every])
    except (KeyError, TypeError, AttributeError) as error:
        raise UnmaskError(f"the trace is incomplete or damaged: {type(error).__name__} {error}") from None
    return _page(title, data)


def _page(title: str, data: str) -> str:
    return render("page.html", read("page.css"), (), "startPage()", title=title, data=data)


def _check_same(every: Sequence[Shown]) -> None:
    """Raise an error unless all traces have the same prompt and length."""
    names = ("ids", "mask", "length")
    first = [every[0].trace.header[name] for name in names]
    for shown in every[1:]:
        if [shown.trace.header[name] for name in names] != first:
            raise UnmaskError("these traces answer different prompts or lengths: show them on separate pages")


def _packed(value: Any) -> str:
    return base64.b64encode(gzip.compress(strict_json(value).encode(), 6, mtime=0)).decode()
