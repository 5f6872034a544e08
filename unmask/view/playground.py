"""The playground of a server: one page that runs decoders live, and the settings from which its forms are made."""

from __future__ import annotations

from functools import cache
from typing import Any

import unmask.decoders  # noqa: F401  importing registers
from unmask.core import decoder
from unmask.describe import describe_entry
from unmask.policies.likelihood import likelihood
from unmask.view.trace_page import read, render

# What a browser may do with the page; its scripts, styles and requests are named in the page itself.
HEADERS = {
    "content-security-policy": "frame-ancestors 'none'",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "cache-control": "no-cache",
}


@cache
def playground_page() -> str:
    style = read("page.css") + read("playground.css")
    return render("playground.html", style, ("settings", "stream", "playground"), "startPlayground()")


def describe_registry() -> dict[str, Any]:
    """Return all decoders and likelihoods with their settings."""
    return {
        "decoders": [describe_entry(decoder, name) for name in decoder],
        "likelihoods": [describe_entry(likelihood, name) for name in likelihood],
    }
