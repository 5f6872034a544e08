"""A real browser. Where none can be found, the tests that need it say so and are skipped."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect, sync_playwright

expect.set_options(timeout=60_000)  # on a busy machine
NAMES = ("chromium", "chromium-browser", "google-chrome")


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with sync_playwright() as driver:
        own = driver.chromium.executable_path
        path = next(filter(None, map(shutil.which, NAMES)), own if Path(own).exists() else None)
        if path is None:
            pytest.skip("there is no chromium here: install one to test the pages")
        chromium = driver.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield chromium
        chromium.close()


class Tab:
    """A page of the browser that remembers what it complained of and what it fetched."""

    def __init__(self, page: Page):
        self.page, self.complaints, self.fetched = page, [], []
        page.on(
            "console", lambda line: self.complaints.append(line.text) if line.type in ("error", "warning") else None
        )
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("request", lambda request: self.fetched.append(request.url))

    def open(self, file: Path, place: str = "") -> Page:
        self.page.goto(file.as_uri() + place)
        self.page.wait_for_selector("html[data-ready]")
        return self.page

    def check(self) -> None:
        assert not self.complaints
        assert all(url.startswith(("file:", "data:", "blob:")) for url in self.fetched), self.fetched


@pytest.fixture
def tab(browser: Browser) -> Iterator[Callable[..., Tab]]:
    """Opens tabs; `tab(width=360)` as wide as a phone."""
    contexts = []

    def tab(width: int = 1280, height: int = 900, **options: Any) -> Tab:
        contexts.append(browser.new_context(viewport={"width": width, "height": height}, **options))
        return Tab(contexts[-1].new_page())

    yield tab
    for context in contexts:
        context.close()


def check_accessible(page: Page) -> None:
    """Check that a page is no wider than its window and that axe finds no serious violation."""
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    violations = [
        (each["id"], [node["html"][:120] for node in each["nodes"]][:3])
        for each in Axe().run(page).response["violations"]
        if each["impact"] in ("serious", "critical")
    ]
    assert not violations
