"""Texts that attack a page, and what a browser makes of a page."""

from __future__ import annotations

import re
from html.parser import HTMLParser

from unmask.report.html import content_hash

HOSTILE = (
    "</script><script>document.title='owned'</script>",
    "<img src=x onerror=\"document.title='owned'\">",
    "<!--<script>",
    "-->",
    "]]>",
    "{{script}}",
    "{% raw %}",
    "\\u003cscript>",
    "a\u2028b\u2029c",
    "\ud800 half a pair",
    "\x00\x1b[31m\x07",
    "'\"><svg onload=alert(1)>&lt;b&gt;",
    "javascript:alert(1)",
    "שלום \u202eעולם",
    "e\u0301\u0323\u0323\u0323 ",
    "\u0301alone",
)


class Elements(HTMLParser):
    """The tags of a page with their attributes, and the text inside each script."""

    def __init__(self, page: str):
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self.inside = False
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        assert not any(name.startswith("on") for name, _ in attrs), (tag, attrs)
        self.tags.append((tag, dict(attrs)))
        self.inside = tag == "script"
        if self.inside:
            self.scripts.append("")

    def handle_endtag(self, tag):
        self.inside = False

    def handle_data(self, data):
        if self.inside:
            self.scripts[-1] += data


def check_policy(page: str) -> str:
    """Return the content policy of a page, which must allow its own style and script only; the page fetches nothing."""
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)
    style = re.search(r"<style>(.*?)</style>", page, re.DOTALL)
    assert policy is not None
    assert style is not None
    assert policy[1].startswith("default-src 'none'; img-src data:; ")
    assert "unsafe" not in policy[1]
    assert content_hash(style[1]) in policy[1]
    assert content_hash(Elements(page).scripts[-1]) in policy[1]
    assert not re.search(r"(src|href)=[\"']?(https?:)?//", page)
    return policy[1]
