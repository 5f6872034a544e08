"""An experiment's folder: what it asks (`experiment.json`), a run for each part, what was measured, and the results.

Everything that is shown is computed from these files. `pack` puts them into one small file without the texts.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from unmask.errors import UnmaskError
from unmask.experiments.cells import Method, Part
from unmask.experiments.found import Found
from unmask.experiments.setting import Setting
from unmask.runs.compact import pack, read_lines, unpack, write_lines
from unmask.runs.store import HEAD, difference, read_run, write_whole

ASKED, MEASURED = "experiment.json", "measured.json"
FORMAT = 1


@dataclass(frozen=True)
class Asked:
    """What was asked of an experiment, as its folder remembers it."""

    experiment: str
    command: str  # that asks for it again
    setting: Setting
    parts: list[Part]

    def plain(self) -> dict[str, Any]:
        return json.loads(json.dumps({"format": FORMAT, **asdict(self)}))  # tuples are lists on the disk

    @classmethod
    def of(cls, said: dict[str, Any], where: str) -> Asked:
        if said.get("format") != FORMAT:
            raise UnmaskError(f"{where} is an experiment of format {said.get('format')!r}: this unmask reads {FORMAT}")
        setting = Setting(**{key: _tuple(value) for key, value in said["setting"].items()})
        return cls(said["experiment"], said["command"], setting, [_part(part) for part in said["parts"]])


def begin(folder: Path, asked: Asked) -> None:
    """A folder that holds something else is refused with the difference."""
    path = folder / ASKED
    if path.exists():
        there, here = json.loads(path.read_text("utf-8")), asked.plain()
        apart = {key: value for key, value in there.items() if key != "command"}
        if apart != {key: value for key, value in here.items() if key != "command"}:
            said = difference(there["setting"], here["setting"]) or "other cells"
            raise UnmaskError(f"{str(folder)!r} holds another experiment ({said}): choose another folder")
        return
    folder.mkdir(parents=True, exist_ok=True)
    write_whole(path, json.dumps(asked.plain(), ensure_ascii=False, indent=1) + "\n")


def read(folder: Path) -> tuple[Asked, Found]:
    path = folder / ASKED
    if not path.exists():
        raise UnmaskError(f"{str(folder)!r} holds no experiment: it has no {ASKED}")
    asked = Asked.of(json.loads(path.read_text("utf-8")), repr(str(folder)))
    runs = {part.name: read_run(folder / part.name) for part in asked.parts if (folder / part.name / HEAD).exists()}
    kept = folder / MEASURED
    measured = json.loads(kept.read_text("utf-8")) if kept.exists() else None
    return asked, Found(asked.experiment, asked.setting, asked.parts, runs, measured)


def pack_folder(folder: Path, path: Path) -> None:
    write_lines(path, packed(*read(folder)))


def packed(asked: Asked, found: Found) -> Iterator[dict[str, Any]]:
    yield {"asked": asked.plain(), "measured": found.measured}
    for part, run in found.runs.items():
        yield {"part": part}
        yield from pack(run)


def read_packed(path: Path) -> tuple[Asked, Found]:
    first, *rest = read_lines(path)
    asked = Asked.of(first["asked"], repr(str(path)))
    starts = [place for place, line in enumerate(rest) if "part" in line]
    ends = [*starts[1:], len(rest)]
    runs = {
        rest[start]["part"]: unpack(rest[start + 1 : end], rest[start]["part"])
        for start, end in zip(starts, ends, strict=False)
    }
    return asked, Found(asked.experiment, asked.setting, asked.parts, runs, first["measured"])


def _part(said: dict[str, Any]) -> Part:
    methods = tuple(Method(**method) for method in said["methods"])
    plain = {key: _tuple(value) for key, value in said.items() if key != "methods"}
    return Part(**plain, methods=methods)


def _tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
