"""A real browser plays the traces of every decoder, whatever their texts say, by mouse, touch and keyboard."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.view.conftest import check_accessible
from tests.view.traces import hostile, large, traced
from unmask.core import decoder
from unmask.runs.trace import Trace
from unmask.view.trace_page import Shown, trace_page

pytestmark = pytest.mark.slow
SPECS = [
    *decoder,
    "ots(beams=3, block=4)",
    "vote(n=3, inner=ots(beams=2, block=6))",
    "search(sure=1.0, plausible=0.01)",
]

# Remembers which elements of the rows change.
WATCH = """() => {
    window.cells = new Set();
    const note = (change) => window.cells.add(change.target.nodeType === 3 ? change.target.parentNode : change.target);
    const everything = {subtree: true, characterData: true, attributes: true, childList: true};
    new MutationObserver((changes) => changes.forEach(note)).observe(document.querySelector(".rows"), everything);
}"""


@pytest.fixture
def show(tmp_path: Path, tab) -> Iterator[Callable[..., Page]]:
    """Opens a page of traces, which may complain of nothing and fetch nothing."""
    tabs = []

    def show(*traces: Trace, right: Sequence[bool | None] = (None, None), place: str = "", **options: Any) -> Page:
        answers = ["x" if known is not None else None for known in right]
        shown = [Shown(*each) for each in zip(traces, right, answers, strict=False)]
        (tmp_path / "page.html").write_text(trace_page(shown), encoding="utf-8")
        tabs.append(tab(**options))
        return tabs[-1].open(tmp_path / "page.html", place)

    yield show
    for opened in tabs:
        opened.check()


@pytest.mark.parametrize("spec", SPECS)
def test_a_trace_of_every_decoder_plays_and_scrubs(spec: str, show):
    trace = traced(spec, length=8)
    page = show(trace)
    answer = re.sub(r"\s+", "", trace.end["texts"][trace.end["chosen"]])
    row = page.locator(".row.leads .canvas")
    assert answer in re.sub(r"[\s↵∎]+", "", row.inner_text())
    page.get_by_role("button", name="First step").click()
    assert set(row.inner_text().strip()) == {"░"}
    page.get_by_role("button", name="Step on").click()
    assert page.locator(".canvas .new").count() > 0
    page.get_by_role("combobox", name="Speed").select_option("4")
    page.get_by_role("button", name="Play").click()
    expect(page.locator(".player input")).to_have_value(page.locator(".player input").get_attribute("max") or "")
    assert answer in re.sub(r"[\s↵∎]+", "", row.inner_text())
    page.locator(".row.leads .canvas span").first.click()
    assert re.search(r"position 1: .*step \d+", page.locator(".inspector").inner_text())


def test_candidates_are_kept_and_pruned_and_two_are_compared(show):
    trace = traced("ots(beams=3, block=4, temperature=2.0)")
    branch = next(step["branch"] for step in trace.steps if "branch" in step)
    page = show(trace, place="#step=4")
    table = page.locator(".branches")
    if page.get_by_role("button", name="Show all").is_visible():
        page.get_by_role("button", name="Show all").click()
    assert table.locator("tbody tr").count() == len(branch["kept"])
    assert table.locator("tbody tr.pruned").count() == branch["kept"].count(False)
    table.get_by_label("Compare as A: branch 1,").check()
    table.get_by_label("Compare as B: branch 9,").check()
    sides = page.get_by_role("region", name="Two branches compared")
    assert sides.locator("mark").count() > 0
    assert "pruned" in sides.inner_text()
    assert page.locator("svg.tree path.answer").count() == 1


def test_a_text_has_one_number_and_its_answer_wherever_it_is_named(show):
    trace = traced("search(sure=1.0, plausible=0.01)", length=8)
    page = show(trace)
    number = page.locator(".row.leads .name").inner_text().lower()
    lane = page.locator("svg.tree text.name.answer").text_content() or ""
    answer = page.locator(".branches tr.leads .brief").inner_text()
    assert page.locator("svg.tree text.name").count() > 1
    assert re.fullmatch(r"text \d+", number)
    assert page.locator(".branches tr.leads td").nth(-4).inner_text() == number
    assert lane.startswith(f"{number} · ")
    assert lane.endswith(answer)


def test_two_runs_are_shown_at_equal_cost(show):
    first, second = traced("low-confidence(steps=12)"), traced("best-of(n=3, inner=low-confidence(steps=6))")
    page = show(first, second, right=(True, False))
    assert "is right" in page.locator("h1").inner_text()
    assert "is wrong" in page.locator("h1").inner_text()
    for tick in range(int(page.locator(".player input").get_attribute("max") or 0) + 1):
        page.locator(".player input").fill(str(tick))
        rows = int(re.search(r"([\d,]+) forward pass(?:es)?$", page.locator(".status").inner_text())[1])  # type: ignore[index]
        badges = [int(badge.split()[0]) for badge in page.locator(".badge").all_inner_texts()]
        for trace, badge in zip((first, second), badges, strict=True):
            assert badge == max(
                spent for spent in [0, *(step["forward_passes"] for step in trace.steps)] if spent <= rows
            )


def test_repairs_are_told_in_rounds(show):
    trace = traced("repair(share=0.5, rounds=3)")
    masked = sum(any(write[2] == trace.header["mask"] for write in step["writes"]) for step in trace.steps)
    page = show(trace)
    assert masked == page.locator(".rounds li").count() > 0
    page.locator(".player input").fill("0")
    while page.locator(".canvas .again").count() == 0:
        page.get_by_role("button", name="Step on").click()


def test_everything_works_by_keyboard(show):
    page = show(traced("ots(beams=2, block=6)"))
    slider = page.locator(".player input")
    last = slider.get_attribute("max")
    page.keyboard.press("Home")
    assert slider.input_value() == "0"
    page.keyboard.press("ArrowRight")
    assert slider.input_value() == "1"
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Space")
    expect(slider).not_to_have_value("0")
    page.keyboard.press("Space")
    page.keyboard.press("End")
    assert slider.input_value() == last
    page.keyboard.press("?")
    assert page.locator("#help").is_visible()
    page.keyboard.press("Escape")
    assert not page.locator("#help").is_visible()
    seen = set()
    for _ in range(40):
        page.keyboard.press("Tab")
        seen.add(page.evaluate("document.activeElement.getAttribute('aria-label') || document.activeElement.className"))
    for name in ("Play", "Step on", "Step back", "Step", "Speed", "First step", "Last step"):
        assert name in seen, (name, seen)
    page.locator(".row .canvas").first.focus()
    page.keyboard.press("ArrowRight")
    assert re.match(r"Text \d+, position 2:", page.locator(".inspector").inner_text())
    assert page.locator(".ticks.down span").last.inner_text() == last
    assert slider.input_value() == last


def test_hostile_texts_are_text(show):
    page = show(hostile())
    page.locator("details.prompt summary").click()
    assert page.evaluate("document.querySelectorAll('script, img, iframe').length") == 2
    assert "owned" not in page.title()[:5]
    shown = page.locator("body").inner_text()
    for part in (
        "<script>document.title='owned'</script>",
        "]]>",
        "{{script}}",
        "␛[31m",
        "עולם",
        "👩‍👩‍👧‍👦",
        "x" * 10_000,
    ):
        assert part in shown, part
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_a_finger_seeks_on_a_phone(show):
    page = show(traced("low-confidence(steps=12)"), width=360, height=740, has_touch=True, is_mobile=True)
    last = page.locator(".player input").input_value()
    page.locator("canvas.map").tap(position={"x": 50, "y": 75})
    assert page.locator(".player input").input_value() == "6" != last
    page.get_by_role("button", name="Step on").tap()
    assert page.locator(".player input").input_value() == "7"


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280])
def test_axe_finds_no_serious_violation(scheme: str, width: int, show):
    traces = traced("repair"), traced("ots(beams=2, block=6)")
    check_accessible(show(*traces, right=(True, False), place="#step=8", width=width, color_scheme=scheme))


def test_ten_megabytes_of_trace_play_and_a_step_touches_only_what_it_changed(show, tmp_path: Path):
    trace = large(rows=16, positions=512, steps=256, searches=64)
    assert sum(map(len, trace.lines())) > 10_000_000
    page = show(trace)
    assert (tmp_path / "page.html").stat().st_size < 6_000_000
    assert page.locator(".row").count() == 16
    page.evaluate(WATCH)
    page.locator(".player input").fill("100")
    rested = page.locator(".viewer[aria-busy=false]")
    expect(rested).to_have_count(1)
    page.evaluate("window.cells.clear()")
    page.get_by_role("button", name="Step on").click()
    expect(rested).to_have_count(1)
    step, before = trace.steps[100], trace.steps[99]
    changes = sum(len(line["writes"]) + len(line["drafts"]) for line in (step, before))
    touched = page.evaluate("[...window.cells].filter((cell) => cell.parentNode.className === 'canvas').length")
    assert 0 < touched <= changes


def test_paper_has_no_buttons(show):
    page = show(traced("ots(beams=2, block=6)"))
    page.emulate_media(media="print", color_scheme="dark")
    assert page.evaluate("getComputedStyle(document.body).color") == "rgb(29, 33, 41)"
    assert not page.locator(".player").is_visible()
    assert page.locator(".row.leads .canvas").is_visible()
