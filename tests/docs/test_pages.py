"""The Python and shell blocks of README and documentation run as they stand, one folder and one namespace per page.

A block under `<!-- not run: reason -->` is left out. Of a shell block only the `unmask` commands are run. An answer to
a Countdown question must be right, so that every example shows a success.
"""

import re
import shlex
from pathlib import Path
from typing import Any

import pytest

import unmask
import unmask.decoders
from unmask.core import decoder
from unmask.tasks import Problem
from unmask.tasks.generated.countdown import Countdown

ROOT = Path(__file__).resolve().parents[2]
GENERATED = {"results.md", "performance.md"}
PAGES = [ROOT / "README.md", *(page for page in sorted((ROOT / "docs").glob("*.md")) if page.name not in GENERATED)]
QUICK = {"models.md", "extend.md", "design.md", "tasks.md"}
ELSEWHERE = {"extend.md", "serve.md"}  # run by tests of their own: they need a package and a server
ONLY_PLANNED = {"reproduce": "--plan", "serve": "--help", "lm-eval": "--help", "train": "--help"}
BLOCK = re.compile(r"^(<!-- not run: [^\n]+ -->\n)?```(python|sh)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page: Path, kind: str = "") -> list[tuple[str, str]]:
    """Return the kind and the text of each block of a page that is run."""
    found = BLOCK.findall(page.read_text("utf-8"))
    return [(name, text) for skipped, name, text in found if not skipped and kind in ("", name)]


def commands(block: str, variables: dict[str, str]) -> list[list[str]]:
    """Return the words of each `unmask` command, with $'…' and assigned variables replaced."""
    found = []
    for line in re.split(r"\n(?=\S)", block.replace("\\\n", " ")):
        text = re.sub(r"\$'([^']*)'", lambda quoted: shlex.quote(quoted[1].replace("\\n", "\n")), line)
        if assigned := re.fullmatch(r"(\w+)='([^']*)'\s*", text, re.DOTALL):
            variables[assigned[1]] = assigned[2]
        elif text.startswith("unmask "):
            words = shlex.split(text, comments=True)
            found.append([variables[word[1:]] if word.startswith("$") else word for word in words])
    return found


def is_right(question: str, text: str) -> bool:
    numbers, target = re.fullmatch(r"Numbers: \[(.*)\]\nTarget: (\d+)", question).groups()  # type: ignore[union-attr]
    gold = {"numbers": [int(number) for number in numbers.split(",")], "target": int(target)}
    return Countdown().grade(Problem("shown", question, "", gold), text).right


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, marks=[] if page.name in QUICK else [pytest.mark.slow], id=page.stem)
        for page in PAGES
        if page.name not in ELSEWHERE and blocks(page)
    ],
)
def test_a_page_runs_as_it_stands(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(decoder, "_classes", {**decoder._classes})  # pages register decoders of their own
    Path("DIR").mkdir()  # the folder of benchmark files in commands that are only planned
    names: dict[str, Any] = {}
    variables: dict[str, str] = {}
    for kind, block in blocks(page):
        if kind == "python":
            exec(compile(block, page.name, "exec"), names)
            continue
        for _, *words in commands(block, variables):
            words, to = (words[:-2], words[-1]) if ">" in words else (words, "")
            code, printed, error = command(*words, *{ONLY_PLANNED.get(words[0], words[-1])}.difference(words))
            assert code == 0, (words, error)
            if to:
                Path(to).write_text(printed, "utf-8")
            question = next((word for word in words if word.startswith("Numbers: ") and "\nTarget" in word), None)
            if words[0] == "generate" and question and "--stop" not in words:
                assert is_right(question, printed), (words, printed)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_and_their_headings_exist(page: Path):
    text = re.sub(r"```.*?```", "", page.read_text("utf-8"), flags=re.DOTALL)
    links = re.findall(r"\]\(([^)#\s]*)(?:#([^)]*))?\)|(?:src|srcset)=\"([^\"]+)\"", text)
    for path, place, source in links:
        if (path or source).startswith("https://"):
            continue
        target = (page.parent / (path or source)).resolve() if path or source else page
        assert target.exists(), path or source
        if place and target.suffix == ".md":
            assert place in headings(target), f"{path}#{place}"


def headings(page: Path) -> set[str]:
    """Return the anchors of a page's headings."""
    titles = re.findall(r"^#+ (.*)$", page.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).strip().replace(" ", "-") for title in titles}


def test_the_table_of_algorithm_1_quotes_the_code():
    page = (ROOT / "docs" / "ots.md").read_text("utf-8")
    source = " ".join((ROOT / "unmask/decoders/order_token_search.py").read_text("utf-8").split())
    rows = re.findall(r"^\| [\d–]+ \| .* \| `(.*)` \|$", page, re.MULTILINE)
    assert len(rows) >= 12
    assert [row for row in rows if row not in source] == []


@pytest.mark.slow
def test_the_code_of_the_serving_page_runs(capsys: pytest.CaptureFixture[str]):
    from tests.serve.conftest import Served

    names: dict[str, Any] = {}
    with Served(unmask.load("tiny"), name="tiny") as served:
        for _, block in blocks(ROOT / "docs" / "serve.md", "python"):
            exec(block.replace("http://127.0.0.1:8000", served.url), names)
    assert "<answer>" in capsys.readouterr().out
