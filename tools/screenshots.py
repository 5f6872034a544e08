"""Write the pictures of docs/view.md: screenshots of pages of the embedded model.

    python -m tools.screenshots

This needs chromium.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import uvicorn
from playwright.sync_api import Browser, Page, sync_playwright

import unmask
from unmask.cli.demo import PATH, SEARCH, traced
from unmask.serve.app import make_app
from unmask.serve.engine import AsyncEngine
from unmask.serve.server import Metrics
from unmask.tasks import Countdown
from unmask.view.trace_page import trace_page

FOLDER = Path(__file__).parents[1] / "docs" / "view"
LENGTH = 64
TO_THE_TOP = "(element) => scrollBy(0, element.getBoundingClientRect().top - 20)"
WIDE = 1000  # pixels: two panels side by side, still readable in the column of a page


def main() -> None:
    model = unmask.load("tiny")
    task = Countdown()
    problem = next(iter(task.problems()))
    traces = [traced(model, task, problem, spec, LENGTH, 0) for spec in (SEARCH, PATH)]
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver, serving(model) as url:
        page = Path(folder) / "page.html"
        page.write_text(trace_page(traces), "utf-8")
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        take(browser, page.as_uri() + "#step=33", "page.png", WIDE, 1060)
        take(browser, page.as_uri(), "page-dark.png", WIDE, 760, scheme="dark", at="Branches")
        take(browser, page.as_uri() + "#step=33", "page-phone.png", 360, 740)
        race(browser, url, "playground.png", WIDE, 1280)
        race(browser, url, "playground-phone.png", 360, 740, scheme="dark")
        browser.close()


def opened(browser: Browser, address: str, width: int, height: int, scheme: str) -> Page:
    page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)  # type: ignore[arg-type]
    page.goto(address)
    page.wait_for_selector("html[data-ready]")
    return page


def take(
    browser: Browser, address: str, name: str, width: int, height: int, scheme: str = "light", at: str = ""
) -> None:
    page = opened(browser, address, width, height, scheme)
    if at:
        page.get_by_role("heading", name=at).evaluate(TO_THE_TOP)
    page.wait_for_timeout(500)
    page.screenshot(path=FOLDER / name)
    page.close()


def race(browser: Browser, url: str, name: str, width: int, height: int, scheme: str = "light") -> None:
    page = opened(browser, url, width, height, scheme)
    page.locator("#run").click()
    page.wait_for_selector("#state:text('Done.')")
    page.locator(".player input").fill("14")
    if width < 700:
        page.locator(".panel").first.evaluate(TO_THE_TOP)
    page.wait_for_timeout(500)
    page.screenshot(path=FOLDER / name)
    page.close()


@contextmanager
def serving(model: unmask.Model) -> Iterator[str]:
    metrics = Metrics()
    engine = AsyncEngine(model, decoding={"decoder": SEARCH, "length": LENGTH})
    metrics.follow("tiny", engine)
    server = uvicorn.Server(
        uvicorn.Config(make_app({"tiny": engine}, metrics.text), port=0, log_level="error", lifespan="on")
    )
    thread = threading.Thread(target=lambda: asyncio.run(server.serve()), daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    server.should_exit = True
    thread.join()


if __name__ == "__main__":
    main()
