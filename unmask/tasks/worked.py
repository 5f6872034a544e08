r"""Arithmetic in worked solutions: statements such as `96-12=84` are found in a text and computed exactly.

    "First 3 + 4 = 7, then 7*2 = 15."  ->  3 + 4 = 7 holds, 7*2 = 15 does not

A statement is a chain of two or more expressions joined by `=`, of which at least one has an operator. Expressions are
numbers, `+ - * / ^` and brackets; `%` is a percentage, or the remainder if `modulo` is set. A side with anything else
in it (a variable, a root) is not part of a statement. A decimal may be rounded. Nothing is evaluated as code, and the
work on a text is bounded by its length: numbers, exponents, expressions and brackets are limited, and a statement
beyond a limit does not hold.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from operator import add, mod, mul, sub, truediv
from typing import NamedTuple

from unmask.tasks.checkers import PASS, Checker, Span, Verdict

LONGEST = 100_000  # characters of a text that are read, from its end
LONGEST_SIDE = 300  # characters of an expression
LONGEST_NUMBER = 30  # digits
DEEPEST = 20  # brackets inside brackets
BITS = 4096  # size of a power
_SIGNS = (
    (r"\times", "*"),
    (r"\cdot", "*"),
    (r"\div", "/"),
    ("\\%", "%"),
    ("×", "*"),
    ("·", "*"),
    ("÷", "/"),
    ("−", "-"),
)
_TIMES = re.compile(r"(?<=[0-9) ]) x (?=[ $]?[0-9(])")  # 3 x 4
_BREAK = re.compile(r"[.,](?![0-9])|\\[()\[\]]|\*\*(?![0-9(])|(?<![0-9) ])\*\*")  # ends of sentences, formulas, bold
_RUN = re.compile(r"[0-9.,+\-*/%^()= \t]+")
_BEFORE = re.compile(r"[\w)}\]√]\Z|\b(?:and|of)[ \t]{1,9}\Z")  # what makes a side a part of something larger
_BEFORE_SIGN = re.compile(r"[\w)}\]√][ \t]{0,9}\Z")
_AFTER = re.compile(r"[\w{^_!√°\[]|[ \t]*\\(?!text|mathrm|mbox|quad|[,;!\\])|[ \t]*[*/^√]|[ \t]+and [0-9]")
_NUMBER = re.compile(r"(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]+)(?:\.[0-9]+)?|\.[0-9]+")
_RANK = {"+": 1, "-": 1, "*": 2, "/": 2, "%": 2, "^": 4}
_OPERATIONS = {"+": add, "-": sub, "*": mul, "/": truediv, "%": mod}
_NEGATIVE = "~"  # the sign before a number; it binds less than a power
_RANK[_NEGATIVE] = 3


class ReadError(ValueError):
    """The text is not an expression of numbers."""


class LimitError(ValueError):
    """An expression is too large, or it has no value."""


class Side(NamedTuple):
    value: Fraction
    numbers: list[Fraction]  # as written, without signs
    places: int  # decimal places if it is a single number, else -1
    simple: bool  # a single number, with or without a sign
    percent: bool  # it contains a percentage


class Statement(NamedTuple):
    span: Span
    sides: list[Side]  # empty if it exceeds a limit
    holds: bool

    @property
    def result(self) -> Fraction | None:
        """Return the last number that stands alone on a side."""
        return next((side.value for side in reversed(self.sides) if side.simple), None)


def statements(text: str, modulo: bool = False) -> Iterator[Statement]:
    """Yield the statements of a text in order, with their places in it."""
    offset = max(len(text) - LONGEST, 0)
    plain = _plain(text[offset:])
    for run in _RUN.finditer(plain):
        if "=" not in run[0]:
            continue
        chain: list[tuple[Span, Side | None]] = []
        for span in _sides(plain, run):
            try:
                side = _evaluate(plain[slice(*span)], modulo)
            except ReadError:
                yield from _closed(chain, offset)
                chain = []
                continue
            except LimitError:
                side = None
            chain.append((span, side))
        yield from _closed(chain, offset)


def _plain(text: str) -> str:
    """Replace notations by plain ones of the same length, so that places stay the same."""
    for command, sign in _SIGNS:
        text = text.replace(command, sign.ljust(len(command)))
    text = _TIMES.sub(" * ", text.replace("\\$", "  ").replace("$", " "))
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
    if len(chain) < 2 or all(side and side.simple for _, side in chain):
        return
    span = (offset + chain[0][0][0], offset + chain[-1][0][1])
    sides = [side for _, side in chain if side]
    holds = len(sides) == len(chain) and all(_same(sides[0], side) for side in sides[1:])
    yield Statement(span, sides, holds)


def _same(left: Side, right: Side) -> bool:
    """Return whether two sides are equal.

    A decimal may be rounded to the places it is written with, and `1/4 = 25%` and `100/4 = 25%` both occur.
    """
    if left.value == right.value:
        return True
    places = max(left.places, right.places)
    scales = (1, 100, Fraction(1, 100)) if left.percent != right.percent else (1,)
    return any(abs(left.value - scale * right.value) * 10 ** max(places, 0) * 2 <= (places > 0) for scale in scales)


def _evaluate(text: str, modulo: bool) -> Side:
    """Return the value of an expression, by the shunting-yard algorithm, which does not recurse."""
    if not text:
        raise ReadError("it is empty")
    tokens = _tokens(text, modulo)
    values: list[Fraction] = []
    numbers: list[Fraction] = []
    waiting: list[str] = []
    operand = False  # whether the last token ended an operand
    for token in tokens:
        if isinstance(token, Fraction):
            if operand:
                raise ReadError("a sign is missing")
            values.append(token)
            numbers.append(token)
            operand = True
        elif token == "(":
            if operand or len(waiting) > DEEPEST:
                raise ReadError("a sign is missing") if operand else LimitError("too many brackets")
            waiting.append(token)
        elif token == "percent":
            if not operand:
                raise ReadError("a number is missing")
            values[-1] /= 100
        elif token == "-" and not operand:
            waiting.append(_NEGATIVE)
        elif not operand:
            raise ReadError("a number is missing")
        else:
            operand = _reduce(token, waiting, values)
    if not operand or "(" in waiting:
        raise ReadError("it is incomplete")
    while waiting:
        _apply(waiting.pop(), values)
    single = len(numbers) == 1 and not set(text) & set("(%^")
    places = len(text.partition(".")[2]) if single else -1
    return Side(values[0], numbers, places, single, "percent" in tokens)


def _reduce(token: str, waiting: list[str], values: list[Fraction]) -> bool:
    """Apply the waiting signs that bind before this one; return whether the token ends an operand."""
    while waiting and waiting[-1] != "(" and (token == ")" or _RANK[waiting[-1]] >= _RANK[token]):
        _apply(waiting.pop(), values)
    if token != ")":
        waiting.append(token)
        return False
    if not waiting:
        raise ReadError("a bracket is not open")
    waiting.pop()
    return True


def _tokens(text: str, modulo: bool) -> list[Fraction | str]:
    if len(text) > LONGEST_SIDE:
        raise LimitError("it is too long")
    tokens: list[Fraction | str] = []
    at = 0
    while at < len(text):
        number = _NUMBER.match(text, at)
        if number:
            if len(number[0]) > LONGEST_NUMBER:
                raise LimitError("a number is too long")
            tokens.append(Fraction(number[0].replace(",", "")))
        elif text[at] in ".,":
            raise ReadError("it is not a number")
        elif text[at] not in " \t":
            tokens.append("percent" if text[at] == "%" and not modulo else text[at])
        at = number.end() if number else at + 1
    return tokens


def _apply(sign: str, values: list[Fraction]) -> None:
    right = values.pop()
    if sign == _NEGATIVE:
        values.append(-right)
        return
    left = values.pop()
    if sign in "/%" and right == 0:
        raise LimitError("division by zero")
    if sign == "^":
        size = max(left.numerator.bit_length(), left.denominator.bit_length())
        if right.denominator != 1 or abs(right) * size > BITS or (left == 0 and right < 0):
            raise LimitError("a power is too large")
        values.append(Fraction(left ** int(right)))
        return
    values.append(_OPERATIONS[sign](left, right))


@dataclass(frozen=True)
class Worked(Checker):
    """Every statement of the text holds, there is an answer, and it is what the last statement yields.

    A text without statements passes if it has an answer, because nothing in it can be checked.
    """

    answer: Callable[[str], str | None]  # reads the answer of an output
    modulo: bool = False  # whether `%` is the remainder
    concludes: bool = True  # whether the answer must be what the last statement yields, if there are statements

    def __call__(self, text: str) -> Verdict:
        found = list(statements(text, self.modulo))
        wrong = first_wrong(text, found)
        if wrong:
            return wrong
        answer = self.answer(text)
        if answer is None:
            return Verdict(0.0, note="there is no answer")
        value = number(answer)
        if not self.concludes or not found or value is None or value in (found[-1].result, _last_result(text)):
            return PASS
        return Verdict(0.0, place_of(text, answer), "the answer is not what the last line yields")


def _last_result(text: str) -> Fraction | None:
    """Return the number after the last `=`, also if the left side has words in it."""
    stated = re.match(r"\s*(-?\$?[0-9][0-9,]{0,30}(?:\.[0-9]{1,30})?)", text[-LONGEST:].rpartition("=")[2])
    return number(stated[1].replace("$", "").rstrip(",")) if stated else None


def first_wrong(text: str, found: list[Statement]) -> Verdict | None:
    """Return the verdict on the first statement that does not hold; its score is the share of those that hold."""
    wrong = next((statement for statement in found if not statement.holds), None)
    if wrong is None:
        return None
    share = sum(statement.holds for statement in found) / (len(found) + 1)
    return Verdict(share, wrong.span, f"{text[slice(*wrong.span)][:100]} does not hold")


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
