r"""Checks of `mini-math` that the question itself determines: an answer is put into it, or an expression is computed.

    Solve 7x+12=96 for x.  ->  7*12+12 is 96
    Expand (x+2)(3x-4).    ->  both sides agree at three points

Every kind of exercise has one form of question; a question of any other form is left to its worked lines. Numbers of a
question are limited in length, so that the work is bounded.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import gcd, isqrt

from unmask.tasks.checkers import PASS, Checker, Verdict
from unmask.tasks.worked import first_wrong, number, place_of, statements

Holds = Callable[..., bool]  # from the parts of a question and an answer
_FORMS: list[tuple[re.Pattern[str], Holds]] = []
_N = r"(-?[0-9]{1,9})"  # a whole number
_P = r"([-+0-9x^]{1,60})"  # a polynomial in x
_TERM = re.compile(r"([-+]?)([0-9]{0,9})(x?)(?:\^([0-9]))?")
_BOX = re.compile(r"\\boxed\{[^{}]*\}")


@dataclass(frozen=True)
class ExerciseCheck(Checker):
    """The answer satisfies the question; if it does not, the span is the first wrong statement or else the answer."""

    question: str
    answer: Callable[[str], str | None]  # reads the answer of an output

    def __call__(self, text: str) -> Verdict:
        answer = self.answer(text)
        if answer is not None and satisfies(self.question, answer):
            return PASS
        wrong = first_wrong(text, list(statements(text, modulo=True)))
        if wrong:
            return wrong
        if answer is None:
            return Verdict(0.0, note="there is no answer")
        boxes = [match.span() for match in _BOX.finditer(text)]
        span = boxes[-1] if boxes else place_of(text, answer)
        return Verdict(0.0, span, "the answer does not satisfy the question")


def is_known(question: str) -> bool:
    """Return whether the question has a form that determines a check."""
    return any(form.fullmatch(question.strip()) for form, _ in _FORMS)


def satisfies(question: str, answer: str) -> bool:
    """Return whether an answer satisfies a question of a known form."""
    for form, holds in _FORMS:
        match = form.fullmatch(question.strip())
        if match:
            try:
                return holds(*match.groups(), answer)
            except (ValueError, ZeroDivisionError):
                return False
    return False


def _form(pattern: str) -> Callable[[Holds], Holds]:
    """Register a check; spaces of the pattern are those of the question, N and P are numbers and polynomials."""
    compiled = re.compile(pattern.replace("<N>", _N).replace("<P>", _P))

    def add(holds: Holds) -> Holds:
        _FORMS.append((compiled, holds))
        return holds

    return add


def _polynomial(text: str) -> list[int]:
    """Return the coefficients of a polynomial by power."""
    coefficients = [0] * 10
    at = 0
    while at < len(text):
        match = _TERM.match(text, at)
        if match is None or not (match[2] or match[3]) or (at and not match[1]) or (match[4] and not match[3]):
            raise ValueError(text)
        power = int(match[4] or 1) if match[3] else 0
        coefficients[power] += int(match[1] + (match[2] or "1"))
        at = match.end()
    return coefficients


def _at(polynomial: str, x: Fraction | int) -> Fraction:
    return Fraction(sum(c * x**power for power, c in enumerate(_polynomial(polynomial)) if c))


def _rational(text: str) -> Fraction:
    value = number(text)
    if value is None:
        raise ValueError(text)
    return value


def _whole(text: str) -> int:
    value = _rational(text)
    if value.denominator != 1:
        raise ValueError(text)
    return int(value)


@_form(r"Solve <P>=<P> for x\.")
def _linear(left: str, right: str, answer: str) -> bool:
    return _at(left, _rational(answer)) == _at(right, _rational(answer))


@_form(r"Solve <N>\(<P>\)=<P> for x\.")
def _scaled(factor: str, left: str, right: str, answer: str) -> bool:
    return int(factor) * _at(left, _rational(answer)) == _at(right, _rational(answer))


@_form(r"Solve <N>/<N>=x/<N> for x\.")
def _proportion(a: str, b: str, c: str, answer: str) -> bool:
    return Fraction(int(a), int(b)) == _rational(answer) / int(c)


@_form(r"If ([-+]?[0-9]{0,9})x([-+][0-9]{0,9})y=<N> and ([-+]?[0-9]{0,9})x([-+][0-9]{0,9})y=<N>, find x\.")
def _system(a: str, b: str, e: str, c: str, d: str, f: str, answer: str) -> bool:
    x = _rational(answer)
    y = (int(e) - _factor(a) * x) / _factor(b)
    return _factor(c) * x + _factor(d) * y == int(f)


def _factor(text: str) -> int:
    return int(text if text.strip("+-") else f"{text}1")


@_form(r"If x\+y=<N> and <N>x\+<N>y=<N>, find x\.")
def _split(total: str, p: str, q: str, value: str, answer: str) -> bool:
    return _system("", "+", total, p, f"+{q}", value, answer)


@_form(r"Find the greatest common divisor of <N> and <N>\.")
def _greatest(a: str, b: str, answer: str) -> bool:
    g = _whole(answer)
    return g > 0 and int(a) % g == int(b) % g == 0 and gcd(int(a) // g, int(b) // g) == 1


@_form(r"Find the least common multiple of <N> and <N>\.")
def _least(a: str, b: str, answer: str) -> bool:
    m = _whole(answer)
    return m > 0 and m % int(a) == m % int(b) == 0 and gcd(m // int(a), m // int(b)) == 1


@_form(r"Find the remainder when <N>\*<N>\^<N> is divided by <N>\.")
def _power(c: str, a: str, n: str, m: str, answer: str) -> bool:
    return _whole(answer) == int(c) * pow(int(a), int(n), int(m)) % int(m)


@_form(r"Find the remainder when <N>\*<N>\+<N> is divided by <N>\.")
def _remainder(a: str, b: str, c: str, m: str, answer: str) -> bool:
    return _whole(answer) == (int(a) * int(b) + int(c)) % int(m)


@_form(r"Let f\(x\)=<P>\. Find f\(<N>\)\.")
def _value(f: str, x: str, answer: str) -> bool:
    return _rational(answer) == _at(f, int(x))


@_form(r"Let f\(x\)=<P> and g\(x\)=<P>\. Find f\(g\(<N>\)\)\.")
def _compose(f: str, g: str, x: str, answer: str) -> bool:
    return _rational(answer) == _at(f, _at(g, int(x)))


@_form(r"Let f\(x\)=<P>\. Find x above 0 with f\(x\)=<N>\.")
def _preimage(f: str, value: str, answer: str) -> bool:
    return _rational(answer) > 0 and _at(f, _rational(answer)) == int(value)


@_form(r"Expand \(<P>\)\(<P>\)\.")
def _expand(left: str, right: str, answer: str) -> bool:
    return all(_at(left, x) * _at(right, x) == _at(answer, x) for x in range(20))  # powers up to 18


@_form(r"Find the derivative of <P>\.")
def _slope(f: str, answer: str) -> bool:
    derivative = [power * c for power, c in enumerate(_polynomial(f))][1:]
    return [*derivative, 0] == _polynomial(answer)


@_form(r"Find the (larger|smaller) root of <P>=0\.")
def _root(word: str, f: str, answer: str) -> bool:
    """The roots of a quadratic lie on either side of its vertex."""
    x, (_, b, a, *_) = _rational(answer), _polynomial(f)
    return _at(f, x) == 0 and (x >= Fraction(-b, 2 * a) if word == "larger" else x <= Fraction(-b, 2 * a))


@_form(r"Find term <N> of the arithmetic sequence <N>, <N>, -?[0-9]{1,9}, \.\.\.")
def _term(n: str, a: str, b: str, answer: str) -> bool:
    return _rational(answer) - int(a) == (int(n) - 1) * (int(b) - int(a))


@_form(r"Add the first <N> terms of <N>, <N>, -?[0-9]{1,9}, \.\.\.")
def _total(n: str, a: str, b: str, answer: str) -> bool:
    last = int(a) + (int(n) - 1) * (int(b) - int(a))
    return 2 * _rational(answer) == int(n) * (int(a) + last)


@_form(r"Find <N>/<N>([-+])<N>/<N> in lowest terms\.")
def _fractions(a: str, b: str, sign: str, c: str, d: str, answer: str) -> bool:
    return _rational(answer) == Fraction(int(a), int(b)) + int(f"{sign}1") * Fraction(int(c), int(d))


@_form(r"What is <N>% of <N>\?")
def _percent(p: str, n: str, answer: str) -> bool:
    return 100 * _rational(answer) == int(p) * int(n)


@_form(r"(In|De)crease <N> by <N>%\.")
def _change(word: str, n: str, p: str, answer: str) -> bool:
    return 100 * _rational(answer) == int(n) * (100 + (int(p) if word == "In" else -int(p)))


@_form(r"Write <N> in base ([2-9]|[12][0-9]|3[0-6])\.")
def _base(n: str, base: str, answer: str) -> bool:
    return len(answer) <= 40 and int(answer, int(base)) == int(n)


@_form(r"Two whole numbers add up to <N> and their product is <N>\. Find the larger one\.")
def _pair(total: str, product: str, answer: str) -> bool:
    x = _whole(answer)
    return x * (int(total) - x) == int(product) and 2 * x >= int(total)


@_form(r"Find x from 0 to <N> such that <N>x\+<N> leaves <N> when divided by <N>\.")
def _congruence(most: str, a: str, c: str, rest: str, m: str, answer: str) -> bool:
    x = _whole(answer)
    return 0 <= x <= int(most) and (int(a) * x + int(c)) % int(m) == int(rest)


@_form(r"The squares of two whole numbers above 0 add up to <N>\. Find the larger one\.")
def _squares(n: str, answer: str) -> bool:
    x, total = _whole(answer), int(n)
    other = total - x * x
    return 0 < other <= x * x and x > 0 and isqrt(other) ** 2 == other


@_form(r"Find the smallest prime divisor of <N>\.")
def _factor_of(n: str, answer: str) -> bool:
    x, whole = _whole(answer), int(n)
    return x > 1 and whole % x == 0 and all(whole % d for d in range(2, min(x, isqrt(whole) + 1)))
