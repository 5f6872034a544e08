"""Runs for other tools: every record in a flat table, tables that TeX can read."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path

import pytest

from tests.report.examples import grid, record, write_run
from unmask.report.export import COLUMNS, export, record_rows
from unmask.report.formats import escape_latex
from unmask.report.run_report import read_runs, run_report


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    odd = record(
        problem="odd", text='a, "b"\nc \ud800', answer=None, right=None, score=None, likelihood=None, error="no"
    )
    write_run(tmp_path / "r", [*grid(problems=3, samples=2), odd])
    return tmp_path / "r"


def test_csv_and_json_lines_hold_every_field_of_every_record(folder: Path):
    runs = read_runs([folder])
    rows = record_rows(runs)
    assert [list(row) for row in rows] == [list(COLUMNS)] * len(runs[0].records)
    lines = [json.loads(line) for line in export(runs, "jsonl").decode().splitlines()]
    table = list(csv.DictReader(io.StringIO(export(runs, "csv").decode())))
    for row, line, cells in zip(rows, lines, table, strict=True):
        shown = {name: value.replace("\ud800", "?") if isinstance(value, str) else value for name, value in row.items()}
        assert line == shown
        assert cells == {name: "" if value is None else str(value) for name, value in shown.items()}


def test_parquet_has_types_and_comes_back_whole(folder: Path, tmp_path: Path):
    from pyarrow import parquet

    runs = read_runs([folder])
    (tmp_path / "r.parquet").write_bytes(export(runs, "parquet"))
    table = parquet.read_table(tmp_path / "r.parquet")
    assert {name: str(table.schema.field(name).type) for name in ("right", "score", "forward_passes", "error")} == {
        "right": "bool",
        "score": "double",
        "forward_passes": "int64",
        "error": "string",
    }
    lines = [json.loads(line) for line in export(runs, "jsonl").decode().splitlines()]
    assert table.to_pylist() == lines


def test_the_command_goes_by_the_files_name(command, folder: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(folder.parent)
    code, out, _ = command("export", "r", "--out", "r.csv", "--json")
    told = json.loads(out)
    assert (code, told["format"], told["records"]) == (0, "csv", len(read_runs([folder])[0].records))
    assert Path("r.csv").read_bytes() == export(read_runs(["r"]), "csv")
    for words, sentence in (
        (("r", "--format", "exel"), "unknown --format 'exel': known: csv, jsonl, parquet"),
        (("r", "--out", "r.parket"), "unknown format 'parket': did you mean 'parquet'?"),
        (("r", "--json"), "--json describes the written file: give --out as well"),
        (("none",), "there is no folder 'none'"),
    ):
        assert command("export", *words) == (2, "", f"unmask: {sentence}\n")


def test_latex_tables_are_plain_tex(folder: Path, command, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(folder.parent)
    assert command("report", "r", "--latex", "t.tex")[0] == 0
    text = Path("t.tex").read_text()
    report = run_report(read_runs([folder]))
    assert text == report.latex()
    shown = "\n".join(line for line in text.splitlines() if not line.startswith("%"))
    assert shown.isascii()
    unescaped = re.sub(r"\\[\\&%$#_{}]", "", shown)
    assert unescaped.count("{") == unescaped.count("}")
    tables = re.findall(r"\\begin\{tabular\}\{(\w+)\}\n(.*?)\\end\{tabular\}", shown, re.DOTALL)
    assert len(tables) == len(report.tables)
    for (columns, body), table in zip(tables, report.tables, strict=True):
        rows = [line for line in body.splitlines() if line.endswith(r"\\")]
        assert len(rows) == len(table.rows) + 1
        assert {len(re.findall(r"(?<!\\)&", row)) + 1 for row in rows} == {len(columns)}
    assert r"\textbf{" in text


def test_latex_escapes_what_tex_would_take_for_a_command():
    assert escape_latex(r"50% of a_b & \x {y} ~ ^ #1 $") == (
        r"50\% of a\_b \& \textbackslash{}x \{y\} \textasciitilde{} \textasciicircum{} \#1 \$"
    )
