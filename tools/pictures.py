"""Draw the pictures of the README and the pages: `python -m tools.pictures [DOCS]`, or `make results`.

The embedded model writes and scores the texts, so a machine with the same float32 sums draws the same pictures. Each is
drawn for light and for dark pages.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import unmask
from unmask.experiments import frontier
from unmask.experiments.results import read_packed
from unmask.report.plots import render
from unmask.tasks import Problem
from unmask.tasks.generated.countdown import Countdown

FOLDER = "pictures"
RECORDS = Path("data/results/frontier.jsonl.gz")
LENGTH = 64
WORST = 4.0  # −log p of the darkest cell
CELL, GAP = 1.0, 0.35
LEFT, END = 4.2, 6.4  # width of the names and of log p
ANSWER = "<…>"  # the tag that begins an answer, shortened
LEGEND = "The darker a token, the less the model predicts it once it is hidden."
DOUBT = (213 / 255, 94 / 255, 0.0)

QUESTION = "Numbers: [87, 28, 35]\nTarget: 94"
TEXTS = {
    "right": "87-28=59\n35+59=94\n<answer>35+87-28</answer>",
    "wrong": "87-28=59\n59+35=94\n<answer>87+28+35</answer>",
}
SCORERS = {"everything hidden at once (block)": "block", "every second position (interleaved)": "interleaved(combs=2)"}
SCORE = "sum(first=interleaved(combs=2), second=interleaved(combs=3))"  # of the search

NUMBERS = {"numbers": [93, 95, 36, 53], "target": 99}
HARD = Problem("hard", "Numbers: [93, 95, 36, 53]\nTarget: 99", "<answer>95-36-53+93</answer>", NUMBERS)
SHOWN = 3  # texts of the search
ROWS, MASKS, PROMPT = "best-of(n=3, inner=random(block=16, temperature=0.7))", 32, 4  # of the canvas that is shown


@dataclass(frozen=True)
class Line:
    """A text with log p of each of its tokens."""

    name: str
    words: list[str]
    logps: tuple[float, ...]
    end: str


Section = tuple[str, list[Line]]  # a heading and its lines
Draw = Callable[[bool], bytes]  # on dark pages or light ones


def pictures(docs: Path) -> dict[str, bytes]:
    """Return every picture by its path under the documentation's folder."""
    model = unmask.load("tiny")
    drawn: Mapping[str, Draw] = {
        "scores": lambda dark: draw(list(two_scores(model)), dark, LEGEND),
        "search": lambda dark: draw(list(path_and_search(model)), dark, LEGEND),
        "canvas": lambda dark: draw([canvas(model)], dark),
        "frontier": lambda dark: _frontier(docs / RECORDS, dark),
    }
    kinds = {"": False, "-dark": True}
    return {f"{FOLDER}/{name}{kind}.svg": each(dark) for name, each in drawn.items() for kind, dark in kinds.items()}


def two_scores(model: unmask.Model) -> Iterator[Section]:
    """Yield a right and a wrong text, scored by two scorers."""
    for heading, scorer in SCORERS.items():
        yield heading, _wrapped(_line(model, name, QUESTION, text, scorer) for name, text in TEXTS.items())


def path_and_search(model: unmask.Model) -> Iterator[Section]:
    """Yield a wrong path and the best texts of a search on the same problem, all scored by the search's likelihood."""
    prompt = [{"role": "user", "content": HARD.question}]
    headings = {
        "low-confidence": f"{HARD.question} · one path".replace("\n", " · "),
        "search": "the best texts of a search",
    }
    for spec, heading in headings.items():
        output = unmask.generate(model, prompt, decoder=spec, length=LENGTH)
        ranked = sorted(output.hypotheses, key=lambda row: -row.score)[:SHOWN]
        lines = (_line(model, _mark(row.text), HARD.question, row.text, SCORE) for row in ranked)
        yield f"{heading} ({spec}, {output.cost.forward_passes} forward passes)", _wrapped(lines)


def canvas(model: unmask.Model) -> Section:
    """Return rows of an unfinished canvas, each filled in its own order."""
    prompt = [{"role": "user", "content": QUESTION}]
    frames = list(unmask.stream(model, prompt, decoder=ROWS, length=MASKS))
    tokens = frames[3 * len(frames) // 4].frame.canvas.tokens.tolist()
    start = len(tokens[0]) - MASKS - PROMPT
    lines = []
    for number, row in enumerate(tokens, 1):
        words = ["▢" if token == model.denoiser.mask_id else _word(model, token) for token in row[start:]]
        lines.append(Line(f"row {number}", words, (0.0,) * len(words), ""))
    return f"the end of a prompt, then {MASKS} slots in blocks of 16", lines


def _mark(text: str) -> str:
    return "✓ right" if Countdown().grade(HARD, text).right else "✗ wrong"


def _line(model: unmask.Model, name: str, question: str, text: str, scorer: str) -> Line:
    prompt = [{"role": "user", "content": question}]
    scored = unmask.score(model, prompt, text, scorer=scorer, length=LENGTH)
    end = f"log p = {scored.logp + 0.0:.1f}".replace("-0.0", "0.0").replace("-", "−")
    return Line(name, _words(model, text), scored.logps, end)


def _wrapped(lines: Iterable[Line]) -> list[Line]:
    """Put answers below the working that leads to them, so that narrow pages show large cells."""
    parts = []
    for line in lines:
        cut = line.words.index(ANSWER)
        parts.append(Line(line.name, line.words[:cut], line.logps[:cut], ""))
        parts.append(Line("", line.words[cut:], line.logps[cut:], line.end))
    return parts


def _words(model: unmask.Model, text: str) -> list[str]:
    """Return the tokens of a text, with short tags, and its end-of-text token."""
    return [_word(model, token) for token in model.text.encode(text)] + ["end"]


def _word(model: unmask.Model, token: int) -> str:
    if token in model.eos:
        return "end"
    return model.text.decode([token]).replace("\n", "↵").replace("answer", "…")


def draw(sections: list[Section], dark: bool, legend: str = "") -> bytes:
    colour = "#d8dee4" if dark else "#333333"
    right = max(len(line.words) + (END if line.end else 0.2) for _, lines in sections for line in lines)
    height = sum(1.7 + sum(map(_step, lines)) for _, lines in sections) + (0.9 if legend else 0.0)

    def paint(figure: Any) -> None:
        axes = figure.add_axes((0, 0, 1, 1))
        top = 0.0
        for heading, lines in sections:
            axes.text(0, top + 0.25, heading, fontsize=12, weight="bold", va="center")
            for line in lines:
                top -= _step(line)
                _paint_line(axes, top, line, colour)
            top -= 1.7
        axes.text(0, top + 0.4, legend, fontsize=10.5, va="center")
        axes.set(xlim=(-LEFT, right), ylim=(-height + 0.9, 1.0))
        axes.axis("off")

    style = {"text.color": colour, "savefig.transparent": True}
    return render(paint, (0.26 * (LEFT + right), 0.26 * (height + 0.1)), "svg", style=style)


def _step(line: Line) -> float:
    """Return the distance from the previous line; a line without a name continues it."""
    return CELL + (GAP if line.name else 0.05)


def _paint_line(axes: Any, y: float, line: Line, colour: str) -> None:
    from matplotlib.patches import Rectangle

    middle = {"va": "center", "fontsize": 11.5}
    axes.text(-0.3, y + CELL / 2, line.name, ha="right", **middle)
    for x, (word, logp) in enumerate(zip(line.words, line.logps, strict=False)):
        doubt = (*DOUBT, round(min(max(-logp, 0.0) / WORST, 1.0), 2))
        axes.add_patch(Rectangle((x, y), CELL, CELL, facecolor=doubt, edgecolor="#99999980", linewidth=0.5))
        size = 12 if len(word) < 3 else 7.5
        axes.text(x + CELL / 2, y + CELL / 2, word, ha="center", va="center", fontsize=size, family="DejaVu Sans Mono")
    axes.text(len(line.words) + 0.4, y + CELL / 2, line.end, **middle)


def _frontier(records: Path, dark: bool) -> bytes:
    picture = frontier.findings(read_packed(records)).pictures["frontier"]
    return picture("svg", dark=dark)  # type: ignore[call-arg]


def main(docs: Path = Path("docs")) -> None:
    for name, content in pictures(docs).items():
        (docs / name).parent.mkdir(parents=True, exist_ok=True)
        (docs / name).write_bytes(content)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:2]))
