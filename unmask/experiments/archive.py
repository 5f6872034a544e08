"""An experiment's folder: its cells (`experiment.json`), a run for each part, what was measured, and the results.

All results are computed from these files. Packing puts them into one small file without the texts.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from unmask.errors import UnmaskError
from unmask.experiments.methods import Method, Part
from unmask.experiments.results import Evidence
from unmask.experiments.setup import Setup
from unmask.runs.files import write_whole
from unmask.runs.header import HEAD, difference
from unmask.runs.store import pack, read_lines, read_run, unpack, write_lines

EXPERIMENT, MEASURED = "experiment.json", "measured.json"
FORMAT = 1


def header(evidence: Evidence) -> dict[str, Any]:
    head = {"format": FORMAT, "experiment": evidence.experiment, "command": evidence.command}
    plain = head | {"setting": asdict(evidence.setup), "parts": [asdict(part) for part in evidence.parts]}
    return json.loads(json.dumps(plain))  # tuples become lists


def begin(folder: Path, evidence: Evidence) -> None:
    """A folder that holds another experiment is refused with the difference."""
    path, new = folder / EXPERIMENT, header(evidence)
    if path.exists():
        old = header(_evidence(json.loads(path.read_text("utf-8")), folder, {}, None))  # with settings that are newer
        if old | {"command": ""} != new | {"command": ""}:
            change = difference(old["setting"], new["setting"]) or "other cells"
            raise UnmaskError(f"{str(folder)!r} holds another experiment ({change}): choose another folder")
        return
    folder.mkdir(parents=True, exist_ok=True)
    write_whole(path, json.dumps(new, ensure_ascii=False, indent=1) + "\n")


def read(folder: Path) -> Evidence:
    path = folder / EXPERIMENT
    if not path.exists():
        raise UnmaskError(f"{str(folder)!r} holds no experiment: it has no {EXPERIMENT}")
    head = json.loads(path.read_text("utf-8"))
    names = [part["name"] for part in head["parts"]]
    runs = {name: read_run(folder / name) for name in names if (folder / name / HEAD).exists()}
    kept = folder / MEASURED
    return _evidence(head, folder, runs, json.loads(kept.read_text("utf-8")) if kept.exists() else None)


def pack_folder(folder: Path, path: Path) -> None:
    write_lines(path, packed(read(folder)))


def packed(evidence: Evidence) -> Iterator[dict[str, Any]]:
    yield {"asked": header(evidence), "measured": evidence.measured}
    for part, run in evidence.runs.items():
        yield {"part": part}
        yield from pack(run)


def read_packed(path: Path) -> Evidence:
    first, *rest = read_lines(path)
    starts = [place for place, line in enumerate(rest) if "part" in line]
    ends = [*starts[1:], len(rest)]
    runs = {
        rest[start]["part"]: unpack(rest[start + 1 : end], rest[start]["part"])
        for start, end in zip(starts, ends, strict=False)
    }
    return _evidence(first["asked"], path, runs, first["measured"])


def _evidence(head: dict[str, Any], path: Path, runs: dict[str, Any], measured: Any) -> Evidence:
    if head.get("format") != FORMAT:
        raise UnmaskError(
            f"{str(path)!r} is an experiment of format {head.get('format')!r}: this unmask reads {FORMAT}"
        )
    setup, parts = Setup(**_tuples(head["setting"])), [_part(part) for part in head["parts"]]
    return Evidence(head["experiment"], head["command"], setup, parts, runs, measured)


def _part(plain: dict[str, Any]) -> Part:
    fields: dict[str, Any] = {"methods": tuple(Method(**method) for method in plain["methods"])}
    return Part(**_tuples(plain) | fields)


def _tuples(plain: dict[str, Any]) -> dict[str, Any]:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in plain.items()}
