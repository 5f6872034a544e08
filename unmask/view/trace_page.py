"""A page of one trace, or of several decoders' traces of the same prompt, as one file that fetches nothing.

The traces are embedded as gzip in base64, so that no text in them can be read as markup, and shown as text only.
"""

from __future__ import annotations

import base64
import gzip
import html
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unmask.errors import UnmaskError
from unmask.runs.grid import decoder_label
from unmask.runs.record import trace_file
from unmask.runs.store import read_run
from unmask.runs.files import strict_json
from unmask.runs.trace import Trace
from unmask.view.assets import compose, read, script

MOST = 4  # traces side by side


@dataclass(frozen=True)
class Shown:
    """A trace, and whether its answer is right, where that is known."""

    trace: Trace
    right: bool | None = None
    answer: str | None = None  # as the task read it

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
    """A trace's file; a trace of an evaluation run has its grade in the run's records."""
    trace = Trace.load(path)
    for _ in trace.replay():  # damage is refused here, not in a browser
        pass
    if not (path.parent.name == "traces" and (path.parent.parent / "run.json").exists()):
        return Shown(trace)
    records = (record for record in read_run(path.parent.parent).records)
    record = next((each for each in records if Path(trace_file(each.name)).name == path.name), None)
    return Shown(trace) if record is None else Shown(trace, record.right, record.answer)


def blank_page() -> str:
    """A page without traces, for a browser to put some into."""
    return _page("trace", "")


def trace_page(every: Sequence[Shown]) -> str:
    if not 1 <= len(every) <= MOST:
        raise UnmaskError(f"a page shows 1 to {MOST} traces, not {len(every)}: make several pages")
    try:
        _check_same(every)
        title = " and ".join(shown.label for shown in every)
        data = _packed([shown.data() for shown in every])
    except (KeyError, TypeError, AttributeError) as error:
        raise UnmaskError(f"the trace is incomplete or damaged: {type(error).__name__} {error}") from None
    return _page(title, data)


def _page(title: str, data: str) -> str:
    parts = {"title": html.escape(title.encode("utf-8", "replace").decode()), "data": data}
    return compose("page.html", read("page.css"), script(start="startPage()"), parts)


def _check_same(every: Sequence[Shown]) -> None:
    """Only texts at the same positions of the same prompt can be compared."""
    names = ("ids", "mask", "length")
    first = [every[0].trace.header[name] for name in names]
    for shown in every[1:]:
        if [shown.trace.header[name] for name in names] != first:
            raise UnmaskError("these traces answer different prompts or lengths: show them on separate pages")


def _packed(value: Any) -> str:
    return base64.b64encode(gzip.compress(strict_json(value).encode(), 6, mtime=0)).decode()
