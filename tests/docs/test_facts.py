"""Pages name every field, option, argument and experiment that the code has, and the diagram is that of the layers."""

import json
import re
import tomllib
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from tests.docs.test_pages import ROOT
from tools.layers import diagram
from unmask.core import decoder
from unmask.experiments import EXPERIMENTS
from unmask.experiments.run import plan, totals
from unmask.experiments.setup import PUBLISHED
from unmask.integrations.arguments import DECODING, PLACEMENT
from unmask.serve.limits import RequestLimits
from unmask.serve.schemas import ChatCompletion, Settings

DOCS = ROOT / "docs"


def page(name: str) -> str:
    return (DOCS / f"{name}.md").read_text("utf-8")


def names_in(record: dict[str, Any]) -> list[str]:
    """Return the names of a record's fields, nested ones after a dot."""
    nested = [(name, value) for name, value in record.items() if name in ("cost", "measured")]
    return [name for name in record if name not in dict(nested)] + [f"{a}.{b}" for a, value in nested for b in value]


def test_the_page_on_runs_explains_every_field(tmp_path: Path, command):
    words = ["-m", "toy-chain", "-t", "countdown", "-d", "low-confidence", "-l", "16", "--limit", "1"]
    assert command("eval", *words, "--out", str(tmp_path))[0] == 0
    head = json.loads((tmp_path / "run.json").read_text("utf-8"))
    record = json.loads((tmp_path / "records.jsonl").read_text("utf-8").splitlines()[0])
    for name in [*head, *head["spec"], *names_in(record)]:
        assert re.search(rf"^\| .*`{name}`.* \| \S", page("runs"), re.MULTILINE), name


def test_the_page_on_serving_names_every_setting():
    neutral = {"top_p", "frequency_penalty", "presence_penalty", "logit_bias", "store", "service_tier", "metadata"}
    neutral |= {"tools", "functions", "tool_choice", "parallel_tool_calls", "modalities", "top_logprobs"}
    for name in {*Settings.model_fields, *ChatCompletion.model_fields} - neutral - {"model", "messages"}:
        assert f"`{name}`" in page("serve"), name


def test_the_page_on_harnesses_names_every_argument():
    text = page("harnesses")
    table = text[text.index("| argument |") : text.index("- **Generation.**")]
    assert set(re.findall(r"`(\w+)`", table)) >= DECODING | PLACEMENT | {"pretrained", "scorer", "block", "max_length"}


LOOPS = ("steps", "gen_length", "block_length", "temperature", "cfg_scale", "remasking", "mask_id", "alg_temp")
NAMED = {
    "migrating": [f"`{name}" for name in LOOPS],
    "decoders": [f"`{name.replace('order-token-search', 'ots')}" for name in decoder],
    "reproduce": [f"| `{name}` | {experiment.source} |" for name, experiment in EXPERIMENTS.items()],
    "serve": [f"`--{field.name.replace('_', '-')}`" for field in fields(RequestLimits)],
}


@pytest.mark.parametrize("name", NAMED)
def test_a_page_names_everything_that_the_code_has(name: str):
    assert [each for each in NAMED[name] if each not in page(name)] == []


def test_the_planned_hours_are_those_of_the_plan():
    row = re.compile(r"^\| `([a-z0-9-]+)`(?: \([^)]*\))? \| \d+ \| [\d.]+ M \| ([\d,]+) \|$", re.MULTILINE)
    shown = dict(row.findall(page("reproduce")))
    assert len(shown) == 12
    for name, hours in shown.items():
        assert round(totals(plan(EXPERIMENTS[name], PUBLISHED, "cuda"))["hours"]) == int(hours.replace(",", ""))


def test_the_diagram_of_imports_is_that_of_the_layers():
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]["contracts"]
    assert diagram(contracts[0]["layers"]) in page("design"), "run `python -m tools.layers`"


def test_every_package_of_the_tree_is_on_the_page_on_the_design():
    packages = [path.parent.name for path in (ROOT / "unmask").glob("*/__init__.py")]
    for name in packages:
        assert re.search(rf"^  {name}/ ", page("design"), re.MULTILINE), name


def test_every_page_that_the_code_names_exists():
    for folder in ("unmask", "tools", "benchmarks"):
        for path in (ROOT / folder).rglob("*.py"):
            for name in re.findall(r"docs/[\w/-]+\.md", path.read_text("utf-8")):
                assert (ROOT / name).exists(), (path, name)
