"""Draw the moving picture of the README: `python -m tools.animation [DOCS]`, or `make results`.

The embedded model searches a Countdown problem. Its trace says when each token was written: first a path that ends with
a wrong answer, then a text that takes one second choice of the path and is right. Without motion the end is shown.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

import unmask
from unmask.tasks import Problem
from unmask.tasks.generated.countdown import Countdown

NUMBERS, TARGET = [93, 95, 36, 53], 99
QUESTION = f"Numbers: {NUMBERS}\nTarget: {TARGET}"
DECODER, LENGTH = "search(budget=48)", 64
SECONDS, PAUSE, END = 0.25, 1.5, 5.0  # a step, between the two texts, after the second
CELL, WIDTH, HEIGHT, TOP = 19, 800, 206, 72
COLOURS = {  # text, faint text, mask, written, kept, second choice, right, wrong
    False: ("#1f2328", "#656d76", "#eaeef2", "#ddf4ff", "#eaeef2", "#ffd8b5", "#1a7f37", "#cf222e"),
    True: ("#e6edf3", "#8d96a0", "#21262d", "#0c2d6b", "#30363d", "#762d0a", "#3fb950", "#ff7b72"),
}


@dataclass(frozen=True)
class Text:
    words: list[str]  # the tokens up to the end of the text
    frames: list[int]  # for each token, the frame that wrote it
    changed: int | None  # the token that is a second choice
    score: float
    right: bool


@dataclass(frozen=True)
class Scene:
    path: Text
    found: Text
    first: int  # the frame at which the second text begins
    passes: list[int]  # forward passes so far, by frame


def record(model: unmask.Model | None = None) -> Scene:
    """Search the problem and read from the trace when each token was written."""
    model = model or unmask.load("tiny")
    prompt = [{"role": "user", "content": QUESTION}]
    trace = unmask.generate(model, prompt, decoder=DECODER, length=LENGTH, trace=True).trace
    assert trace is not None
    frames = [frame.canvas.tokens[:, trace.slots].tolist() for frame in trace.replay()]
    frames, last = frames[:-1], frames[-2]  # the last frame orders the texts by their scores
    first = next(number for number, rows in enumerate(frames) if len(rows) == 2)
    scores = sorted(trace.steps[-1]["score"])
    changed = next(
        slot for slot in range(LENGTH) if frames[first][1][slot] not in (last[0][slot], trace.header["mask"])
    )
    path = _text(model, [rows[0] for rows in frames], None, scores[0])
    found = _text(model, [rows[-1] for rows in frames], changed, scores[1], first)
    return Scene(path, found, first, [step["forward_passes"] for step in trace.steps])


def _text(model: unmask.Model, rows: Sequence[list[int]], changed: int | None, score: float, first: int = 0) -> Text:
    last = rows[-1]
    length = next(slot for slot, token in enumerate(last) if token in model.eos)
    written = [min(f for f in range(first, len(rows)) if rows[f][slot] == last[slot]) for slot in range(length)]
    words = [model.text.decode([token]) for token in last[:length]]
    problem = Problem("shown", QUESTION, "", {"numbers": NUMBERS, "target": TARGET})
    return Text(words, written, changed, score, Countdown().grade(problem, "".join(words)).right)


def animation(scene: Scene, dark: bool) -> str:
    """Return the picture as SVG, for dark pages or light ones."""
    ink, faint, _, _, _, _, _, _ = COLOURS[dark]
    times = [SECONDS * frame + (PAUSE if frame >= scene.first else 0.0) for frame in range(len(scene.passes))]
    total = times[-1] + END
    parts = [*_style(times, total, COLOURS[dark]), f'<text x="8" y="22" class="b" fill="{ink}">']
    parts += [f"Countdown: reach {TARGET} with {', '.join(map(str, NUMBERS))}, each used once</text>"]
    for text, x, title in ((scene.path, 8, "1. a path"), (scene.found, WIDTH / 2 + 8, "2. one second choice")):
        parts += [f'<text x="{x}" y="50" fill="{faint}">{title}</text>', *_cells(text, x, scene.first)]
        seen = scene.first if text is scene.path else len(times) - 1
        mark, kind = ("✓ right", "good") if text.right else ("✗ wrong", "bad")
        score = f"{text.score + 0.0:.1f}".replace("-0.0", "0.0").replace("-", "−")
        parts.append(f'<text x="{x}" y="{HEIGHT - 32}" class="b {kind} f{seen}">{mark}, log p = {score}</text>')
    for frame, passes in enumerate(scene.passes[:-1]):
        parts.append(f'<text x="8" y="{HEIGHT - 8}" fill="{faint}" class="n n{frame}">{passes} forward passes</text>')
    parts.append(f'<text x="8" y="{HEIGHT - 8}" fill="{faint}" class="f{len(times) - 1}">')
    parts.append(f"{scene.passes[-1]} forward passes, the scores included</text>")
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}">'
    return "\n".join(
        [head, "<title>A search: a wrong path, one second choice, a right answer</title>", *parts, "</svg>\n"]
    )


def _style(times: Sequence[float], total: float, colours: tuple[str, ...]) -> Iterator[str]:
    """Yield the rules: `f7` appears with frame 7 and stays, `n7` is seen during frame 7 only."""
    _, _, mask, written, kept, second, right, wrong = colours
    yield "<style>"
    yield "text{font:12px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace}.b{font-weight:bold}"
    fills = {"m": mask, "w": written, "k": kept, "s": second, "good": right, "bad": wrong}
    yield "".join(f".{name}{{fill:{colour}}}" for name, colour in fills.items())
    yield f".t{{fill:{colours[0]};text-anchor:middle}}.n{{opacity:0}}"
    yield "@media (prefers-reduced-motion:no-preference){"
    for frame, start in enumerate(times):
        begin = 100 * start / total
        end = 100 * times[frame + 1] / total if frame + 1 < len(times) else 100
        hidden = f"0%{{opacity:{0 if frame else 1}}}{begin:.2f}%"
        yield f"@keyframes f{frame}{{{hidden},100%{{opacity:1}}}}"
        yield f"@keyframes n{frame}{{{hidden}{{opacity:1}}{end:.2f}%,100%{{opacity:0}}}}"
        yield f".f{frame}{{animation:f{frame} {total:.2f}s step-end infinite}}"
        yield f".n{frame}{{animation:n{frame} {total:.2f}s step-end infinite}}"
    yield "}</style>"


def _cells(text: Text, left: float, first: int) -> Iterator[str]:
    """Yield a mask and a token for each place, lines broken where the finished text breaks them."""
    x, y = left, TOP
    for place, (word, frame) in enumerate(zip(text.words, text.frames, strict=True)):
        shown = word.replace("\n", "↵")
        width = CELL * max(1.0, 0.42 * len(shown))
        kind = "s" if place == text.changed else "k" if text.changed is not None and frame == first else "w"
        box = f'x="{x:.1f}" y="{y - 15}" width="{width - 2:.1f}" height="{CELL - 1}" rx="3"'
        begin = first if text.changed is not None else 0
        yield f'<g class="f{begin}"><rect {box} class="m"/></g><g class="f{frame}"><rect {box} class="{kind}"/>'
        yield f'<text x="{x + width / 2 - 1:.1f}" y="{y}" class="t">{escape(shown)}</text></g>'
        x, y = (left, y + CELL + 2) if "\n" in word else (x + width, y)


def main(docs: Path = Path("docs")) -> None:
    scene = record()
    for dark, name in ((False, "animation.svg"), (True, "animation-dark.svg")):
        (docs / "pictures" / name).write_text(animation(scene, dark), "utf-8")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:2]))
