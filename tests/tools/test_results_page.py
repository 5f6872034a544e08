"""The results page and the marked tables of other pages are what the stored records say, to the byte."""

import json
import re
import shlex
from pathlib import Path

import pytest

from tests.experiments.made_up import results, small
from tools.results_page import PAGE, RECORDS, fill, main, marked_pages, pages, read_results, settings_run
from unmask.errors import UnmaskError
from unmask.experiments import EXPERIMENTS
from unmask.experiments.results import Results, packed
from unmask.experiments.setup import TEN
from unmask.runs.store import write_lines

DOCS = Path(__file__).parents[2] / "docs"
STORED = sorted(path.name.removesuffix(".jsonl.gz") for path in (DOCS / RECORDS).glob("*.jsonl.gz"))
SECTIONS = dict(re.findall(r"^## (\S+)\n(.*?)(?=^## |\Z)", (DOCS / PAGE).read_text("utf-8"), re.MULTILINE | re.DOTALL))


def store(docs: Path, name: str, skill: dict[str, float]) -> None:
    invented = results(name, skill, small(benchmarks=("Countdown", "MATH500", "Sudoku")), problems=40)
    write_lines(docs / RECORDS / f"{name}.jsonl.gz", packed(invented))


def test_the_page_has_a_section_for_each_experiment_that_is_stored(tmp_path: Path):
    assert pages(tmp_path, read_results(tmp_path)) == {}
    store(tmp_path, "nfe-scaling", {})
    assert set(pages(tmp_path, read_results(tmp_path))) == {tmp_path / PAGE, tmp_path / "results/nfe-scaling.svg"}
    store(tmp_path, "table-1", dict.fromkeys(TEN, 0.3) | {"ots": 0.9})
    text = pages(tmp_path, read_results(tmp_path))[tmp_path / PAGE].decode()
    assert text.index("## table-1") < text.index("## nfe-scaling")
    assert "unmask reproduce table-1" in text
    assert "float32 on a machine, torch 2; seeds 0, 1" in text
    assert re.search(r"\| \[table-1\]\(#table-1\) \| OTS has the best average of all methods .* \| ✓ holds \|", text)


def test_the_same_records_give_the_same_bytes(tmp_path: Path):
    store(tmp_path, "block-size", {})
    store(tmp_path, "temperature", {"ots": 0.8})
    main(tmp_path)
    again = pages(tmp_path, read_results(tmp_path))
    assert {path: path.read_bytes() for path in again} == again


def test_a_marked_table_is_written_and_the_text_around_it_stays(tmp_path: Path):
    docs = tmp_path / "docs"
    docs.mkdir()
    stored = {"frontier": results("frontier", {}, small(), problems=3)}
    (docs / "other.md").write_text("no table\n")
    (tmp_path / "README.md").write_text("before\n<!-- results:summary -->\nold\n<!-- /results -->\nafter\n")
    ((path, content),) = marked_pages(docs, stored).items()
    text = content.decode()
    assert path == tmp_path / "README.md"
    assert text.startswith("before\n<!-- results:summary -->\n| decoder | right, % (mean of 5 families, n = 15)")
    assert text.endswith("|\n<!-- /results -->\nafter\n")
    assert text.count("\n|") == 6
    assert "old" not in text
    assert fill(text, stored) == text
    with pytest.raises(UnmaskError, match="did you mean 'families'"):
        fill("<!-- results:familes -->\n<!-- /results -->", stored)


@pytest.fixture(scope="module")
def stored() -> dict[str, Results]:
    return read_results(DOCS)


@pytest.mark.slow  # hundreds of thousands of records
def test_the_stored_page_and_the_marked_tables_are_not_stale(stored: dict[str, Results]):
    for path, content in pages(DOCS, stored).items():
        assert path.read_bytes() == content, f"{path} is stale: run `make results`"


@pytest.mark.slow
@pytest.mark.parametrize("name", STORED)
def test_every_command_of_the_page_plans_its_experiment(name: str, command):
    assert name in EXPERIMENTS
    (line,) = re.findall(r"^unmask reproduce .*$", SECTIONS[name], re.MULTILINE)
    words = shlex.split(line)[1:]
    code, out, err = command(*words, "--plan", "--device", "cpu", "--json")
    assert code == 0, err
    assert name in {cell["experiment"] for cell in json.loads(out)["cells"]}


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("table-2", "K = 3, 5; τ = 1 (searches); L = 64"),
        ("pass-at-k", "τ = 0.8 (paths); L = 64"),
        ("temperature", "K = 1, 5; τ = 0, 1 (searches); L = 64"),
        ("table-1", "K = 4; τ = 1 (searches), 0, 0.7 (paths); votes of 3, 5; L = 64"),
    ],
)
def test_settings_are_those_of_the_records(name: str, words: str):
    assert settings_run(results(name, {}, small(benchmarks=("Countdown",)), problems=2)) == words
