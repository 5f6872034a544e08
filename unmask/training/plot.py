"""Training curves: loss and decoding accuracy against steps."""

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
    left.set(xlabel="step", ylabel="loss, nats per answer token", yscale="log", title="training problems")
    measured = [entry for entry in history if "accuracy" in entry]
    for name in measured[0]["accuracy"] if measured else ():
        steps = [entry["step"] for entry in measured]
        right.plot(steps, [100 * entry["accuracy"][name] for entry in measured], marker=".", label=name)
    right.set(xlabel="step", ylabel="right, %", ylim=(0, 100), title="validation problems, low-confidence")
    if measured:
        right.legend(fontsize=8)
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)
