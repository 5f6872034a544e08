"""What `unmask demo` prints: a table of answers, or a list in a narrow terminal; then what they cost, in a sentence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from unmask.spelling import spell
from unmask.tasks import Problem

TITLE = "Countdown: reach the target with every number used once"
HEAD = "numbers → target"
GAP = 2  # columns between two columns of the table
ENOUGH = 1000  # problems, as many of each kind as docs/results.md has
Results = Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class Total:
    """One decoder's results together."""

    name: str
    right: int
    problems: int
    rows: int
    computed: int

    def cost(self, unit: str = "") -> str:
        """Rows per problem: those asked, and those computed where they are fewer."""
        asked, computed = (f"{count / self.problems:.0f}" for count in (self.rows, self.computed))
        return asked + unit + (f" ({computed} computed)" if computed != asked else "")


def show(problems: Sequence[Problem], results: Results, specs: Mapping[str, str], console: Console) -> None:
    """`specs` are the decoders by the names they have here."""
    totals = [_total(name, [each for each in results if each["decoder"] == spec]) for name, spec in specs.items()]
    answers = [_line(problem, results, specs) for problem in problems]
    sums = [
        ["right", *(str(total.right) for total in totals)],
        ["rows asked", *(str(total.rows) for total in totals)],
        ["rows computed", *(str(total.computed) for total in totals)],
    ]
    console.print(Text(TITLE, "bold"))
    draw = _print_table if _fits([*answers, *sums], specs, console.width) else _print_list
    draw(answers, sums, list(specs), console)
    for sentence in (_decoders(specs), verdict(totals), *_remarks(len(problems))):
        console.print(Text(sentence))


def verdict(totals: Sequence[Total]) -> str:
    """Who solved how many, and at which cost."""
    best, *others = sorted(totals, key=lambda total: (-total.right, total.rows))
    first = f"{best.name} solved {best.right} of {best.problems} with {best.cost(' rows per problem')}"
    return "; ".join([first, *(f"{each.name} {each.right} with {each.cost()}" for each in others)]) + "."


def _total(name: str, results: Results) -> Total:
    right, rows, computed = (sum(each[key] for each in results) for key in ("right", "rows", "computed"))
    return Total(name, right, len(results), rows, computed)


def _line(problem: Problem, results: Results, specs: Mapping[str, str]) -> list[str]:
    answers = {each["decoder"]: each for each in results if each["problem"] == problem.id}
    question = spell(f"{' '.join(map(str, problem.data['numbers']))} → {problem.data['target']}")
    return [question, *(_answer(answers[spec]) for spec in specs.values())]


def _answer(result: Mapping[str, Any]) -> str:
    return spell(f"{'✓' if result['right'] else '✗'} {result['answer'] or '(no answer)'}")


def _fits(lines: Sequence[Sequence[str]], names: Mapping[str, str], width: int) -> bool:
    columns = zip([spell(HEAD), *names], *lines, strict=True)
    return sum(max(map(cell_len, column)) + GAP for column in columns) - GAP <= width


def _print_table(
    answers: Sequence[Sequence[str]], sums: Sequence[Sequence[str]], names: Sequence[str], console: Console
) -> None:
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, collapse_padding=True)
    for head in (spell(HEAD), *names):
        table.add_column(Text(head), no_wrap=True)
    for place, line in enumerate([*answers, *sums], 1):
        table.add_row(*map(Text, line), end_section=place == len(answers))
    console.print(table)
    console.print()


def _print_list(
    answers: Sequence[Sequence[str]], sums: Sequence[Sequence[str]], names: Sequence[str], console: Console
) -> None:
    """Each problem above its answers, every answer with the name of its decoder."""
    for line in (*answers, *sums):
        console.print(Text(line[0]))
        width = max(map(cell_len, line[1:]))
        for text, name in zip(line[1:], names, strict=True):
            console.print(Text.assemble(f"  {text:<{width}}  ", (name, "dim")))
    console.print()


def _decoders(specs: Mapping[str, str]) -> str:
    named = [name if name == spec else f"{name} is {spec}" for name, spec in specs.items()]
    return f"Decoders: {'; '.join(named)}. A setting that is not written is at its default."


def _remarks(problems: int) -> list[str]:
    words = [
        "A row is one text passed through the network once. Asked: as the paper counts. "
        "Computed: identical rows of a problem only once."
    ]
    if problems < ENOUGH:
        few = "1 problem decides" if problems == 1 else f"{problems} problems decide"
        words.append(f"{few} little: docs/results.md has {ENOUGH:,} of each kind.")
    return words
