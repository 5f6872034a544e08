"""The playground's page is open to anyone and runs only its own script; what it asks is behind the key."""

from __future__ import annotations

import httpx

import unmask
from tests.report.pages import check_policy
from tests.serve.conftest import Served
from unmask.core import decoder
from unmask.view.playground import describe_registry


def test_the_page_needs_no_key_and_what_it_asks_does():
    with Served(unmask.load("toy-chain"), keys=("secret",), decoder="threshold") as server:
        page = httpx.get(server.url)
        blank = httpx.get(f"{server.url}/page.html")
        locked = httpx.get(f"{server.url}/api/registry")
        known = httpx.get(f"{server.url}/api/registry", headers={"authorization": "Bearer secret"}).json()
    assert (page.status_code, blank.status_code, locked.status_code) == (200, 200, 401)
    assert page.headers["content-security-policy"] == "frame-ancestors 'none'"
    assert [entry["name"] for entry in known["decoders"]] == list(decoder)
    assert (known["default"], known["models"]) == ("threshold", [{"id": "toy", "length": 8}])
    assert "connect-src 'self'" in check_policy(page.text)


def test_every_setting_of_every_decoder_can_be_put_into_a_form():
    kinds = {"int", "float", "bool", "Decoder", "Likelihood", "str"}
    for entry in describe_registry()["decoders"]:
        assert entry["summary"]
        for setting in entry["settings"]:
            options = set(setting["type"].split(" | ")) - {"none"}
            assert setting["choices"] or options <= kinds, (entry["name"], setting)
