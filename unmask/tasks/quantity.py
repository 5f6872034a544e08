"""Reads the one number that an answer states: `-\\$1{,}200.50`, `3/4`, `2\\frac{1}{2}`, `x = 18 \\text{ dollars}`.

A sum, a product, a power, a number in another base or a choice of two states none.
"""

from __future__ import annotations

import re
from fractions import Fraction

LONGEST = 300  # characters of an answer, and digits of a number, which is slow to compare if it is longer
_WORDS = re.compile(r"\\(?:text|textbf|textit|mathrm|mathbf|mbox|operatorname)\{([^{}]{0,200})\}")
_DECORATION = re.compile(r"\\[$!,;:% ]|[$%°]|\^?\{?\\circ\}?|\\left|\\right|(?<=[A-Za-z])\^\{?[23]\}?(?![0-9])|\*\*")
_FRACTION = re.compile(r"(-?)\\[dt]?frac\{(-?[0-9]{1,300})\}\{(-?[0-9]{1,300})\}")
_DIGITS = r"[0-9]{1,3}(?:,[0-9]{3})+(?![0-9])|[0-9]+"
_NUMBER = rf"(?P<sign>(?<![\w)])[-+] ?)?(?P<whole>{_DIGITS})?(?P<point>\.[0-9]+)?(?P<below>/[0-9]+)?"
_APART = r"(?:[^0-9=+*/^_\\{}.-]|\.(?![0-9]))"  # what stands before and after the number: words, brackets, stops
_UNIT = rf"(?:{_APART}|(?<=[A-Za-z])[-/](?=[A-Za-z]))"
_STATED = re.compile(rf"{_APART}{{0,200}}{_NUMBER}(?P<part> +[0-9]+/[0-9]+)?{_UNIT}{{0,200}}")
_ANY = re.compile(rf"(?<![\w.)}}]){_NUMBER}")
_OPERATOR_BEFORE = re.compile(r"(?:[0-9)}\]] ?[-+*/^_×÷]|\\\w{1,20}|\bor) ?\Z", re.IGNORECASE)
_OPERATOR_AFTER = re.compile(r" ?(?:[-+*/×÷] ?[0-9({]|[\^_]|\\\w)")


def stated(text: str) -> Fraction | None:
    """The number that the text states and nothing else; of an equation, its right side."""
    if len(text) > LONGEST:
        return None
    match = _STATED.fullmatch(_plain(text).rpartition("=")[2])
    return None if match is None else _value(match)


def last(text: str) -> Fraction | None:
    """The number that a sentence ends with, unless it is part of a larger expression."""
    text = _plain(text)
    numbers = [match for match in _ANY.finditer(text) if match["whole"] or match["point"]]
    if not numbers:
        return None
    end = numbers[-1]
    before = text[max(end.start() - 30, 0) : end.start()]
    if _OPERATOR_BEFORE.search(before + (end["sign"] or "").strip()) or _OPERATOR_AFTER.match(text, end.end()):
        return None
    return _value(end)


def _plain(text: str) -> str:
    text = text.replace("−", "-").replace("{,}", ",")
    text = _FRACTION.sub(_slash, _DECORATION.sub("", _WORDS.sub(r" \1", text)))
    return " ".join(text.split())


def _slash(match: re.Match[str]) -> str:
    sign, above, below = match.groups()
    negative = [sign, above[:1], below[:1]].count("-") % 2
    return f" {'-' if negative else ''}{above.lstrip('-')}/{below.lstrip('-')} "


def _value(match: re.Match[str]) -> Fraction | None:
    whole, point = (match["whole"] or "").replace(",", ""), match["point"] or ""
    if not whole + point or len(match[0]) > LONGEST:
        return None
    number = Fraction(whole + point if whole else f"0{point}")
    below, part = int((match["below"] or "/1")[1:]), match.groupdict().get("part") or "0/1"
    above, parts = map(int, part.split("/"))
    if not below or not parts or (above and (match["below"] or point)):
        return None
    number = number / below + Fraction(above, parts)
    return -number if (match["sign"] or "").startswith("-") else number
