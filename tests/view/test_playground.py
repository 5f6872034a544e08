"""A real browser uses the playground of a real server: a race, its stop, its link, its files and its refusals."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

import unmask
from tests.serve.conftest import Served
from tests.view.conftest import check_accessible
from unmask.runs.trace import Trace

pytestmark = pytest.mark.slow
MODEL = "toy-transformer(letters=5)"


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    with Served(unmask.load(MODEL), decoder="ots(beams=2, block=8)") as server:
        yield server


@pytest.fixture
def playground(served: Served, tab):
    opened = tab(accept_downloads=True)
    opened.page.goto(served.url)
    opened.page.wait_for_selector("html[data-ready=true]")
    ask(opened.page, prompt="abc", kind="text", length="16", template="", seed="3")
    yield opened
    assert not opened.complaints
    assert all(url.startswith((served.url, "data:", "blob:")) for url in opened.fetched), opened.fetched


def ask(page: Page, **values: str) -> None:
    for name, value in values.items():
        field = page.locator(f"[name={name}]")
        if name == "template" and not field.is_visible():
            page.get_by_text("Fixed words in the answer").click()
        if name in ("model", "kind"):
            field.select_option(value)
        else:
            field.fill(value)


def choose(page: Page, first: str, second: str) -> None:
    for place, spec in (("#first", first), ("#second", second)):
        if not spec:
            page.locator(f"{place} > select").select_option("")
            continue
        page.locator(f"{place} > select").select_option(spec.partition("(")[0])
        page.locator(f"{place} .spec").fill(spec)
        page.locator(f"{place} .spec").blur()


def run(page: Page) -> None:
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.locator("#state")).to_have_text("Done.")


def answers(page: Page) -> list[str]:
    return [re.sub(r"[\s↵]+", "", text.removeprefix("Answer")) for text in page.locator("p.answer").all_inner_texts()]


def expected(spec: str, **options) -> str:
    text = unmask.generate(unmask.load(MODEL), "abc", decoder=spec, length=16, seed=3, **options).text
    return re.sub(r"\s+", "", text) or "(nothing)"


def test_a_race_ends_with_the_answers_of_generate_and_is_repeated_from_its_link(playground, served, tab):
    page = playground.page
    specs = ("order-token-search(beams=2, block=8)", "low-confidence(steps=4)")
    choose(page, *specs)
    run(page)
    assert answers(page) == [expected(spec) for spec in specs]
    assert page.locator("h1 span").count() == 2
    assert page.locator(".player input").input_value() == page.locator(".player input").get_attribute("max")
    again = tab()
    again.page.goto(page.url)
    again.page.wait_for_selector("html[data-ready=true]")
    expect(again.page.locator("#state")).to_contain_text("press Run to repeat it")
    assert again.page.locator("#second .spec").input_value() == specs[1]
    run(again.page)
    assert answers(again.page) == answers(page)
    again.page.get_by_role("button", name="First step").click()
    assert set(again.page.locator(".row .canvas").first.inner_text().strip()) == {"░"}
    assert not again.complaints


def test_settings_are_made_from_the_registry(playground):
    page = playground.page
    choose(page, "adaptive", "")
    page.locator("#first summary").click()
    page.locator("#first").get_by_label("sure").fill("0.5")
    page.locator("#first").get_by_label("rule").select_option("factor")
    assert page.locator("#first .spec").input_value() == "adaptive(sure=0.5, rule=factor)"
    run(page)
    assert answers(page) == [expected("adaptive(sure=0.5, rule=factor)")]


def test_a_run_that_ends_before_anything_is_drawn_is_done(playground):
    page = playground.page
    page.evaluate("window.requestAnimationFrame = () => 1")
    choose(page, "low-confidence(steps=4)", "")
    run(page)
    assert answers(page) == [expected("low-confidence(steps=4)")]


def test_a_race_is_stopped(playground, served):
    page = playground.page
    ask(page, length="512")
    choose(page, "left-to-right", "order-token-search(beams=4, block=64, steps=512)")
    page.get_by_role("button", name="Run", exact=True).click()
    page.wait_for_selector(".viewer .canvas .new")
    page.get_by_role("button", name="Stop").click()
    expect(page.locator("#state")).to_have_text("Stopped.")
    assert page.locator("#trouble").inner_text() == ""
    ask(page, length="4")
    choose(page, "left-to-right", "")
    run(page)
    assert served.metrics.text().count(b'outcome="cancelled"') > 0


def test_fixed_words_stay_where_they_were_typed(playground):
    page = playground.page
    ask(page, template="ab<mask:3>cd<mask:2>", length="")
    choose(page, "low-confidence", "")
    run(page)
    assert re.fullmatch(r"ab.{0,3}cd.{0,2}", answers(page)[0])
    assert page.locator(".canvas .given").count() > 0


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        ("adaptive(sure=2)", "sure must be between 0 and 1, got 2.0"),
        ("adaptive(shure=0.5)", "has no setting 'shure': did you mean 'sure'?"),
    ],
)
def test_an_error_is_the_sentence_of_the_command_line(playground, spec: str, sentence: str):
    page = playground.page
    choose(page, spec, "low-confidence")
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.get_by_role("alert")).to_contain_text(sentence)
    playground.complaints.clear()  # the browser's own line about status 400


def test_a_run_is_saved_as_a_trace_and_as_a_page(playground, tmp_path: Path, tab):
    page = playground.page
    choose(page, "order-token-search(beams=2, block=8)", "")
    run(page)
    with page.expect_download() as download:
        page.get_by_role("button", name="Save trace").click()
    download.value.save_as(tmp_path / "trace.jsonl")
    trace = Trace.load(tmp_path / "trace.jsonl")
    kept = unmask.generate(
        unmask.load(MODEL), "abc", decoder="ots(beams=2, block=8)", length=16, seed=3, trace=True
    ).trace
    assert kept is not None
    assert trace.steps == kept.steps
    assert (trace.end["words"], trace.end["texts"]) == (kept.end["words"], kept.end["texts"])
    with page.expect_download() as download:
        page.get_by_role("button", name="Save as page").click()
    download.value.save_as(tmp_path / "trace.html")
    opened = tab()
    assert opened.open(tmp_path / "trace.html").locator(".row").count() == 2
    opened.check()


def test_a_locked_server_asks_for_its_key(tab):
    with Served(unmask.load(MODEL), keys=("secret",)) as server:
        opened = tab()
        page = opened.page
        page.goto(server.url)
        expect(page.get_by_role("alert")).to_contain_text("the API key is missing or wrong")
        page.locator("#key").fill("secret")
        page.locator("#key").press("Tab")
        page.wait_for_selector("html[data-ready=true]")
        ask(page, prompt="abc", kind="text", length="8")
        choose(page, "low-confidence", "")
        run(page)
        assert len(answers(page)) == 1


@pytest.mark.parametrize(("width", "scheme"), [(360, "light"), (1280, "dark")])
def test_axe_finds_no_serious_violation_in_the_playground(width: int, scheme: str, served, tab):
    opened = tab(width=width, color_scheme=scheme)
    page = opened.page
    page.goto(served.url)
    page.wait_for_selector("html[data-ready=true]")
    ask(page, prompt="abc", kind="text", length="16", template="")
    choose(page, "order-token-search(beams=2, block=8)", "repair")
    run(page)
    top = page.locator("#stage").bounding_box()["y"]
    assert width > 700 or top < 150  # a phone is taken to the canvases
    check_accessible(page)
    assert not opened.complaints
