"""`--watch`: the texts of a run in a terminal, as they fill and are pruned."""

import sys
import time
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from itertools import groupby

from rich.cells import chop_cells
from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from unmask.core import Frame, Watch
from unmask.models import Model
from unmask.runs.text import partial_text

END_SIGN = "∎"  # stands for any number of end tokens
LINES = 3  # lines per text
BAR = 10  # columns of a progress bar
PAUSE = 0.08  # seconds between two screens, so that drawing does not slow the decoder


class Board:
    """The screen of a run. Signs and words say everything; colours only help."""

    def __init__(self, model: Model, width: int, height: int):
        self.model, self.width, self.height = model, width, height
        self.last: Frame | None = None
        self.first = 0  # the first column that is written
        self.pruned = self.candidates = 0
        self.numbers = [1]  # number of the text in each row: ranking moves texts, and each keeps its number
        self.texts = 1  # number of texts so far

    def see(self, frame: Frame) -> None:
        if self.last is None:
            written = frame.canvas.masked | (frame.canvas.order > 0)
            self.first = int(written[0].byte().argmax())
            self._follow([0] * len(frame.canvas))
        elif frame.parent is not None:
            self._follow(frame.parent.tolist())
        if frame.branch is not None:
            self.candidates += len(frame.branch.kept)
        self.last = frame

    def _follow(self, parents: list[int]) -> None:
        """Give each row the number of its text: a text continues in the first row made from it, others are new."""
        before, numbers = self.numbers, []
        for parent in parents:
            number = before[parent]
            if number in numbers:
                self.texts += 1
                number = self.texts
            numbers.append(number)
        self.pruned += len(set(before) - set(numbers))
        self.numbers = numbers

    def __rich__(self) -> Group:
        frame = self.last
        if frame is None:
            return Group(Text("waiting for the first step"))
        best = frame.score.sort(descending=True, stable=True).indices.tolist()
        room = max(1, (self.height - 3) // (LINES + 1))
        rows = [part for row in sorted(best[:room]) for part in self._row(frame, row, row == best[0])]
        rest = [Text(f"  and {len(best) - room} more")] if len(best) > room else []
        return Group(Text(self.status(), style="bold", no_wrap=True, overflow="ellipsis"), *rows, *rest)

    def status(self) -> str:
        frame = self.last
        assert frame is not None
        alive, spent = len(frame.canvas), 0 if frame.forward_passes is None else int(frame.forward_passes.sum())
        facts = [f"step {frame.step}", f"{alive} text{'' if alive == 1 else 's'} alive"]
        facts += [f"{self.pruned} pruned", f"{spent} forward passes"]
        return " · ".join([*facts, f"{self.candidates} candidates"] if self.candidates else facts)

    def line(self) -> str:
        """Return one line for a log: the state, and the leading text."""
        frame = self.last
        assert frame is not None
        return f"{self.status()} · {self._text(frame, int(frame.score.argmax()))}"

    def _row(self, frame: Frame, row: int, leads: bool) -> list[Text]:
        slots = frame.canvas.masked[row] | (frame.canvas.order[row] > 0)
        left, every = int(frame.canvas.masked[row].sum()), max(1, int(slots.sum()))
        full = BAR * (every - left) // every
        sign = "★" if leads else "·"
        bar = "█" * full + "░" * (BAR - full)
        score = round(float(frame.score[row]), 2) + 0.0
        words = f"{sign} text {self.numbers[row]:<3} {bar} {every - left}/{every}  score {score:.2f}"
        head = Text(words, style="bold cyan" if leads else "dim", no_wrap=True, overflow="ellipsis")
        return [head, *(Text(f"    {line}") for line in self._wrapped(self._text(frame, row)))]

    def _text(self, frame: Frame, row: int) -> str:
        """Return the text of a row, without characters that could control the terminal."""
        text = ""
        for ends, run in groupby(frame.canvas.tokens[row, self.first :].tolist(), self.model.eos.__contains__):
            text += END_SIGN if ends else partial_text(self.model, list(run))
        return "".join(
            "↵" if sign == "\n" else "�" if unicodedata.category(sign) in ("Cc", "Cf", "Cs", "Zl", "Zp") else sign
            for sign in text
        )

    def _wrapped(self, text: str) -> list[str]:
        """Wrap into at most LINES lines; the end is cut."""
        lines = chop_cells(text, self.width - 5)
        return lines if len(lines) <= LINES else [*lines[: LINES - 1], lines[LINES - 1][:-1] + "…"]


@contextmanager
def watched(model: Model) -> Iterator[Watch]:
    """Yield a watcher that shows frames on standard error: in place in a terminal, else a line per step."""
    console = Console(stderr=True)
    board, shown = Board(model, console.width, console.height), 0.0
    in_place = console.is_terminal and not console.is_dumb_terminal
    with Live(board, console=console, auto_refresh=False) if in_place else nullcontext() as live:

        def show(numbers: list[int], frame: Frame) -> None:
            nonlocal shown
            board.see(frame)
            if live is None:
                print(board.line(), file=sys.stderr)
            elif (now := time.monotonic()) - shown > PAUSE:
                live.refresh()
                shown = now

        yield show
