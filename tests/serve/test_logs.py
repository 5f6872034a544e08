"""Logs are JSON lines, and keep prompts to themselves unless they are asked."""

from __future__ import annotations

import json
import logging

from unmask.serve.operations import Lines, RequestLog
from unmask.serve.queue import Ticket
from unmask.serve.request import RequestLimits, read_request


def logged(model, caplog, prompts: bool) -> dict:
    request = read_request(model, "secret", {"decoder": "ar", "length": 4}, RequestLimits(), client="someone")
    with caplog.at_level(logging.INFO, "unmask.serve"):
        RequestLog("toy", prompts).ended(Ticket(request, [].append), "cancelled", None)
    return json.loads(Lines().format(caplog.records[-1]))


def test_prompts_are_logged_only_if_asked_for(model, caplog):
    line = logged(model, caplog, prompts=False)
    assert (line["event"], line["outcome"], line["client"], line["length"]) == ("request", "cancelled", "someone", 4)
    assert "secret" not in json.dumps(line)
    assert logged(model, caplog, prompts=True)["prompt"] == "secret"
