"""The curves of a training: loss and decoding accuracy against steps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from unmask.errors import UnmaskError


def draw_curves(history: list[dict[str, Any]], path: Path) -> None:
    try:
        import matplotlib

        matplotlib.use("svg")
        from matplotlib import pyplot
    except ImportError:
        raise UnmaskError("curves need matplotlib: pip install 'unmask[plot]'") from None
    pyplot.rcParams["svg.hashsalt"] = "unmask"
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
    left.plot([entry["step"] for entry in history], [entry["loss"] for entry in history])
    left.set(xlabel="step", ylabel="loss, nats an answer token", yscale="log", title="training problems")
    watched = [entry for entry in history if "accuracy" in entry]
    for name in watched[0]["accuracy"] if watched else ():
        steps = [entry["step"] for entry in watched]
        right.plot(steps, [100 * entry["accuracy"][name] for entry in watched], marker=".", label=name)
    right.set(xlabel="step", ylabel="right, %", ylim=(0, 100), title="validation problems, low-confidence")
    if watched:
        right.legend(fontsize=8)
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)
