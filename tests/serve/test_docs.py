"""The code of docs/serve.md runs as it stands there, and the page names every limit."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import pytest

import unmask
from tests.serve.conftest import Served
from unmask.serve.request import RequestLimits
from unmask.serve.schemas import ChatCompletion, Settings

PAGE = (Path(__file__).parents[2] / "docs" / "serve.md").read_text("utf-8")


@pytest.mark.slow
def test_the_code_runs(capsys):
    with Served(unmask.load("tiny"), name="tiny") as served:
        names: dict = {}
        for block in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL):
            exec(block.replace("http://127.0.0.1:8000", served.url), names)
    printed = capsys.readouterr().out
    assert "<answer>" in printed


def test_the_page_names_every_limit_and_setting():
    for field in fields(RequestLimits):
        assert f"`--{field.name.replace('_', '-')}`" in PAGE
    for name in {*Settings.model_fields, *ChatCompletion.model_fields} - {"model", "messages"}:
        assert f"`{name}`" in PAGE, name
