"""Draw what two scores see in a right and in a wrong text: `python -m tools.score_picture FILE.svg`, or `make results`.

The embedded model scores both, so the same picture comes out wherever its sums do.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import unmask
from unmask.report.figures import kind_of, render

QUESTION = "Numbers: [87, 28, 35]\nTarget: 94"
TEXTS = {
    "right": "87-28=59\n35+59=94\n<answer>35+87-28</answer>",
    "wrong": "87-28=59\n59+35=94\n<answer>87+28+35</answer>",
}
WAYS = {"everything hidden at once (`block`)": "block", "every second position (`interleaved`)": "interleaved(combs=2)"}
LENGTH = 64
WORST = 4.0  # −log p of the darkest cell
CELL, GAP = 1.0, 0.35
RED = (213 / 255, 94 / 255, 0.0)


def score_picture(kind: str) -> bytes:
    model = unmask.load("tiny")
    prompt = [{"role": "user", "content": QUESTION}]
    words = {name: _words(model, text) for name, text in TEXTS.items()}
    scored = {
        (way, name): unmask.score(model, prompt, text, way=WAYS[way], length=LENGTH).logps
        for way in WAYS
        for name, text in TEXTS.items()
    }

    def paint(figure: Any) -> None:
        axes = figure.add_axes((0, 0, 1, 1))
        top = 0.0
        for way in WAYS:
            axes.text(0, top + 0.2, way.replace("`", ""), fontsize=9, weight="bold", va="center")
            for name in TEXTS:
                top -= CELL + GAP
                _row(axes, top, name, words[name], scored[way, name])
            top -= 1.7
        axes.set(xlim=(-3.2, max(map(len, words.values())) + 6), ylim=(top + 0.9, 1.0))
        axes.axis("off")

    return render(paint, (10.5, 2.9), kind)


def _words(model: unmask.Model, text: str) -> list[str]:
    """Its tokens, tags shortened, and the end-of-text that ends it."""
    words = (model.text.decode([token]) for token in model.text.encode(text))
    return [word.replace("\n", "↵").replace("answer", "…") for word in words] + ["end"]


def _row(axes: Any, y: float, name: str, words: list[str], logps: tuple[float, ...]) -> None:
    axes.text(-0.3, y + CELL / 2, name, fontsize=9, ha="right", va="center")
    for x, (word, logp) in enumerate(zip(words, logps, strict=False)):
        shade = (*RED, round(min(-logp / WORST, 1.0), 2))
        axes.add_patch(_rectangle(x, y, shade))
        small = {"fontsize": 8 if len(word) < 3 else 5.5, "ha": "center", "va": "center"}
        axes.text(x + CELL / 2, y + CELL / 2, word, family="DejaVu Sans Mono", **small)
    total = f"log p = {sum(logps):.1f}".replace("-", "−")
    axes.text(len(words) + 0.4, y + CELL / 2, total, fontsize=9, va="center")


def _rectangle(x: float, y: float, shade: tuple[float, ...]) -> Any:
    from matplotlib.patches import Rectangle

    return Rectangle((x, y), CELL, CELL, facecolor=shade, edgecolor="#bbbbbb", linewidth=0.5)


def main(path: Path) -> None:
    path.write_bytes(score_picture(kind_of(path)))


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
