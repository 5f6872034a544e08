r"""Arithmetic in worked solutions: statements such as `96-12=84` are found in a text and computed exactly.

    "First 3 + 4 = 7, then 7*2 = 15."  ->  3 + 4 = 7 holds, 7*2 = 15 does not

A statement is a chain of two or more expressions joined by `=`, of which at least one has an operator. Expressions are
numbers, `+ - * / ^` and brackets; `%` is a percentage, or the remainder if `modulo` is set. A side with anything else
in it (a variable, a root) is not part of a statement. A decimal may be rounded. Nothing is evaluated as code, and the
work on a text is bounded by its length: numbers, powers and expressions are limited, and a statement beyond a limit
does not hold.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import NamedTuple

from unmask.tasks.checkers import PASS, Check, Span, Verdict
from unmask.tasks.expressions import OPERATIONS, fold, parse

LONGEST = 100_000  # characters of a text that are read, from its end
LONGEST_SIDE = 300  # characters of an expression
LONGEST_NUMBER = 30  # characters
BITS = 4096  # size of a power
_PLAIN = {r"\times": "*", r"\cdot": "*", r"\div": "/", r"\%": "%", r"\$": "", "×": "*", "·": "*", "÷": "/", "−": "-"}
_TIMES = re.compile(r"(?<=[0-9) ]) x (?=[ $]?[0-9(])")  # 3 x 4
_BREAK = re.compile(r"[.,](?![0-9])|\\[()\[\]]|\*\*(?![0-9(])|(?<![0-9) ])\*\*")  # ends of sentences, formulas, bold
_RUN = re.compile(r"[0-9.,+\-*/%^()= \t]+")
_BEFORE = re.compile(r"[\w)}\]√]\Z|\b(?:and|of)[ \t]{1,9}\Z")  # what makes a side a part of something larger
_BEFORE_SIGN = re.compile(r"[\w)}\]√][ \t]{0,9}\Z")
_AFTER = re.compile(r"[\w{^_!√°\[]|[ \t]*\\(?!text|mathrm|mbox|quad|[,;!\\])|[ \t]*[*/^√]|[ \t]+and [0-9]")
_TOKEN = re.compile(r"(?:(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]+)(?:\.[0-9]+)?|\.[0-9]+)(?:[ \t]*p)?|\S")


class Side(NamedTuple):
    value: Fraction
    numbers: list[Fraction]  # as written, without signs
    places: int  # decimal places if it is a single number, else -1
    percent: bool  # it contains a percentage


class Statement(NamedTuple):
    span: Span
    sides: list[Side]  # without those that exceed a limit
    holds: bool

    @property
    def result(self) -> Fraction | None:
        """Return the last number that stands alone on a side."""
        return next((side.value for side in reversed(self.sides) if side.places >= 0), None)


def statements(text: str, modulo: bool = False) -> Iterator[Statement]:
    """Yield the statements of a text in order, with their places in it."""
    offset = max(len(text) - LONGEST, 0)
    plain = _plain(text[offset:])
    for run in _RUN.finditer(plain):
        if "=" not in run[0]:
            continue
        chain: list[tuple[Span, Side | None]] = []
        for span in (*_sides(plain, run), (0, 0)):
            try:
                chain.append((span, _evaluate(plain[slice(*span)], modulo)))
            except ArithmeticError:  # it exceeds a limit or divides by zero
                chain.append((span, None))
            except ValueError:  # it is not an expression, so it ends the chain
                yield from _closed(chain, offset)
                chain = []


def _plain(text: str) -> str:
    """Replace notations by plain ones of the same length, so that places stay the same."""
    for notation, sign in _PLAIN.items():
        text = text.replace(notation, sign.ljust(len(notation)))
    text = _TIMES.sub(" * ", text.replace("$", " "))
    return _BREAK.sub(lambda match: "\n" * len(match[0]), text).replace("**", "^ ")


def _sides(text: str, run: re.Match[str]) -> Iterator[Span]:
    """Yield the places of the sides, without spaces; the first and last are empty if they go on outside the run."""
    start = run.start()
    parts = run[0].split("=")
    for place, part in enumerate(parts):
        end = start + len(part)
        left, right = end - len(part.lstrip()), start + len(part.rstrip())
        first, last = place == 0, place == len(parts) - 1
        cut = (first and _continues(text, left)) or (last and _AFTER.match(text, right))
        yield (left, left) if cut or left >= right else (left, right)
        start = end + 1


def _continues(text: str, left: int) -> bool:
    """Return whether the expression at this place is the end of a larger one."""
    before = text[max(left - 12, 0) : left]
    return bool(_BEFORE.search(before) or (text[left : left + 1] in tuple("-+*/^%") and _BEFORE_SIGN.search(before)))


def _closed(chain: list[tuple[Span, Side | None]], offset: int) -> Iterator[Statement]:
    if len(chain) < 2 or all(side and side.places >= 0 for _, side in chain):
        return
    span = (offset + chain[0][0][0], offset + chain[-1][0][1])
    sides = [side for _, side in chain if side]
    holds = len(sides) == len(chain) and all(_same(sides[0], side) for side in sides[1:])
    yield Statement(span, sides, holds)


def _same(left: Side, right: Side) -> bool:
    """Return whether two sides are equal, where a decimal may be rounded; `1/4 = 25%` and `100/4 = 25%` both occur."""
    places = max(left.places, right.places)
    scales = (1, 100, Fraction(1, 100)) if left.percent != right.percent else (1,)
    return any(abs(left.value - scale * right.value) * 10 ** max(places, 0) * 2 <= (places > 0) for scale in scales)


def _evaluate(text: str, modulo: bool) -> Side:
    """Return the value of an expression; raise a ValueError if it is none, an ArithmeticError if it has no value."""
    text = text if modulo else text.replace("%", "p")
    tokens = _TOKEN.findall(text)
    if len(text) > LONGEST_SIDE or any(len(token) > LONGEST_NUMBER for token in tokens):
        raise OverflowError("it is too long")
    value = fold(parse(tokens, negative=True), _number, _apply)
    numbers = [_number(token.rstrip("p")) for token in tokens if token[-1].isalnum()]
    single = len(numbers) == 1 and not set(text) & set("(%^p")
    return Side(value, numbers, len(text.partition(".")[2]) if single else -1, "p" in text)


def _number(token: str) -> Fraction:
    return Fraction(token.rstrip("p").replace(",", "")) / (100 if token.endswith("p") else 1)


def _apply(left: Fraction, sign: str, right: Fraction) -> Fraction:
    if sign != "^":
        return OPERATIONS[sign](left, right)
    size = max(left.numerator.bit_length(), left.denominator.bit_length())
    if right.denominator != 1 or abs(right) * size > BITS:
        raise OverflowError("a power is too large")
    return left ** int(right)


def worked_check(read: Callable[[str], str | None], modulo: bool = False, concludes: bool = True) -> Check:
    """Return the check that every statement holds and that there is an answer, which `read` finds in a text.

    If the text `concludes`, a number as an answer must be what the last statement yields. A text without statements
    passes if it has an answer, because nothing in it can be checked.
    """

    def check(text: str) -> Verdict:
        found, answer = list(statements(text, modulo)), read(text)
        wrong = first_wrong(text, found)
        if wrong or answer is None:
            return wrong or Verdict(0.0, note="there is no answer")
        value = number(answer)
        if not concludes or not found or value is None or value in (found[-1].result, _last_result(text)):
            return PASS
        return Verdict(0.0, place_of(text, answer), "the answer is not what the last line yields")

    return check


def _last_result(text: str) -> Fraction | None:
    """Return the number after the last `=`, also if the left side has words in it."""
    stated = re.match(r"\s*(-?\$?[0-9][0-9,]{0,30}(?:\.[0-9]{1,30})?)", text[-LONGEST:].rpartition("=")[2])
    return number(stated[1].replace("$", "").rstrip(",")) if stated else None


def first_wrong(text: str, found: list[Statement]) -> Verdict | None:
    """Return the verdict on the first statement that does not hold; its score is the share of those that hold."""
    wrong = [statement.span for statement in found if not statement.holds]
    if not wrong:
        return None
    share = (len(found) - len(wrong)) / (len(found) + 1)
    return Verdict(share, wrong[0], f"{text[slice(*wrong[0])][:100]} does not hold")


def number(text: str) -> Fraction | None:
    """Return the number that a text is, if it is one."""
    text = text.strip().lstrip("$")
    if len(text) > LONGEST_NUMBER or not re.fullmatch(r"-?[0-9]+(?:,[0-9]{3})*(?:\.[0-9]+|/[0-9]*[1-9][0-9]*)?", text):
        return None
    return Fraction(text.replace(",", ""))


def place_of(text: str, answer: str) -> Span | None:
    """Return where the answer is written last, or else what the last answer tags contain."""
    start = text.rfind(answer) if answer else -1
    if start >= 0:
        return start, start + len(answer)
    end = text.rfind("</answer>")
    start = text.rfind("<answer>", 0, max(end, 0)) + len("<answer>")
    return (start, end) if len("<answer>") <= start < end else None
