"""One page, whatever the texts say: nothing in them is markup, nothing is fetched, and a browser can use it."""

import json
import re
import shutil
import subprocess
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.report.examples import grid, record, run
from tests.report.pages import HOSTILE, Elements, check_policy
from unmask.report.html import embed
from unmask.report.run_report import run_report
from unmask.runs.record import trace_file

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
NO_BROWSER = pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium here")


def _hostile() -> list:
    texts = [
        record(spec, 64, f"{i}{bad}", text=bad, answer=bad, key=bad, prompt=bad, error=bad if i == 1 else None)
        for spec in ("low-confidence", "random")
        for i, bad in enumerate(HOSTILE)
    ]
    return texts + [
        record("low-confidence", 64, i, model=bad, decoder=f"{bad}{i % 2}", of="mini-gsm")
        for bad in HOSTILE
        for i in range(3)
    ]


def _whole(text: str) -> str:
    return text.replace("\ud800", "?")  # half a pair cannot be shown


def test_no_text_becomes_markup():
    tame, wild = (Elements(run_report([run(records)]).html()) for records in (grid(problems=3), _hostile()))
    active = ("script", "style", "iframe", "object", "link", "base")
    assert [tag for tag, _ in wild.tags if tag in active] == [tag for tag, _ in tame.tags if tag in active]
    assert len(wild.scripts) == 2
    assert wild.scripts[1] == tame.scripts[1]  # the page's own
    for _, attributes in wild.tags:
        source = attributes.get("src") or attributes.get("href") or "#"
        assert source.startswith(("#", "data:image/svg+xml;base64,")), source
    data = json.loads(wild.scripts[0])
    assert {row[data["fields"].index("text")] for row in data["records"]} >= set(map(_whole, HOSTILE))


def test_the_page_fetches_nothing_and_runs_only_its_own_script():
    page = run_report([run(grid(problems=3))]).html()
    assert check_policy(page).startswith("default-src 'none'; img-src data:; style-src 'sha256-")
    assert "{{" not in re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL)


@pytest.mark.parametrize("text", HOSTILE)
def test_embedded_json_reads_back_and_holds_no_bracket(text: str):
    assert json.loads(embed({text: [text, None, 1.5]})) == {_whole(text): [_whole(text), None, 1.5]}
    assert not set("<>&") & set(embed(text))


def test_a_record_whose_run_kept_its_trace_links_to_it(tmp_path: Path):
    folder, records = tmp_path / "javascript:run's", [record("low-confidence", problem=i) for i in range(2)]
    trace = folder / trace_file(records[1].name)
    trace.parent.mkdir(parents=True)
    trace.touch()
    report = run_report([run(records, str(folder))])
    data = json.loads(Elements(report.html(tmp_path / "pages" / "report.html")).scripts[0])
    traces = [dict(zip(data["fields"], row, strict=True))["trace"] for row in data["records"]]
    assert traces == [None, [0, trace.name]]
    assert data["folders"] == [["../javascript%3Arun%27s/traces", str(trace.parent)]]


def test_a_page_without_anything_to_draw_says_so():
    assert "There is nothing to draw." in run_report([run([record(problem=i) for i in range(2)])]).html()


def _browse(page: Path, asked: str, *flags: str) -> str:
    assert CHROMIUM is not None
    command = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={page.parent / 'profile'}"]
    done = subprocess.run(
        [*command, "--virtual-time-budget=4000", *flags, "--dump-dom", f"{page.as_uri()}#?{asked}"],
        capture_output=True,
        timeout=120,
        check=True,
    )
    return done.stdout.decode("utf-8", "replace")


@pytest.mark.slow
@NO_BROWSER
def test_a_browser_filters_and_shows_two_decoders_side_by_side(tmp_path: Path):
    records = [
        record("low-confidence", 64, 0, text="first add then carry", right=False, answer="1"),
        record("random", 64, 0, text="first subtract then carry", right=True, answer="2"),
        record("low-confidence", 64, 1, text="needle in the first", right=True),
        record("random", 64, 1, text="nothing", right=True),
    ]
    trace = tmp_path / "a run" / trace_file(records[1].name)
    trace.parent.mkdir(parents=True)
    trace.touch()
    page = tmp_path / "report.html"
    page.write_text(run_report([run(records, str(tmp_path / "a run"))]).html(page), encoding="utf-8")
    gained = _browse(page, "outcome=gained&open=1")
    assert "1 of 2 outputs: low-confidence right in 0 of 1, random right in 1 of 1" in gained
    shown = re.findall(r"<pre[^>]*>(.*?)</pre>", gained, re.DOTALL)
    assert shown[1:] == ["first <mark>add</mark> then carry", "first <mark>subtract</mark> then carry"]
    assert re.findall(r'<a href="([^"#]+)">trace file</a>', gained) == [f"a%20run/traces/{trace.name}"]
    assert f"unmask view --open '{trace}'" in gained
    shown = _browse(page, "search=NEEDLE&length=64&task=countdown")
    assert "1 of 2 outputs" in shown
    assert "countdown-1" in shown.partition('<ol id="list">')[2].partition("</ol>")[0]


@pytest.mark.slow
@NO_BROWSER
def test_a_browser_shows_hostile_texts_as_text(tmp_path: Path):
    page = tmp_path / "report.html"
    page.write_text(run_report([run(_hostile())]).html(), encoding="utf-8")
    for word in ("owned", "onerror", "svg onload"):
        dom = _browse(page, f"search={quote(word)}&open=1&first=low-confidence&second=random")
        assert "<title>unmask report</title>" in dom
        assert "Skip to the outputs" in dom
        inside = dom.partition('<ol id="list">')[2].partition("</ol>")[0]
        assert "<pre" in inside
        assert not re.search(r"<(img|svg|script)", inside)


@pytest.mark.slow
@NO_BROWSER
def test_a_browser_renders_ten_thousand_records_a_page_at_a_time(tmp_path: Path):
    page = tmp_path / "report.html"
    page.write_text(run_report([run(grid(["low-confidence", "random"], [64, 128], 2500))]).html(), encoding="utf-8")
    dom = _browse(page, "outcome=any", "--window-size=1200,800")
    assert "5000 of 5000 outputs" in dom
    assert 100 <= dom.partition('<ol id="list">')[2].count("<details") <= 1000
