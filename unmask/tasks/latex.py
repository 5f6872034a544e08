"""The normal form in which LaTeX answers of MATH (arXiv 2103.03874) are compared as strings."""

from __future__ import annotations

import re

_REMOVED = re.compile(r"\n|\\!|\\left|\\right|\^\{\\circ\}|\^\\circ|\\\$|\\?%")
_WHOLE = re.compile(r"(-?[0-9]+)/(-?[0-9]+)")


def normalise(text: str) -> str:
    text = text.replace("\\\\", "\\").replace("\\tfrac", "\\frac").replace("\\dfrac", "\\frac")
    text = _REMOVED.sub("", text)
    text = text.partition("\\text{ ")[0]  # a unit
    text = text.replace(" .", " 0.").replace("{.", "{0.")
    if text.startswith("."):
        text = "0" + text
    left, equals, right = text.partition("=")
    if equals and len(left) <= 2 and "=" not in right:
        text = right
    text = re.sub(r"\\sqrt([^{\s\\])", r"\\sqrt{\1}", text).replace(" ", "")
    text = _brace(text)
    if text == "0.5":
        return "\\frac{1}{2}"
    whole = _WHOLE.fullmatch(text)
    return f"\\frac{{{whole[1]}}}{{{whole[2]}}}" if whole else text


def _brace(text: str) -> str:
    """`\\frac12` and `\\frac1{2}` are `\\frac{1}{2}`."""
    text = re.sub(r"\\frac([^{\\])([^{\\])", r"\\frac{\1}{\2}", text)
    return re.sub(r"\\frac([^{\\])\{", r"\\frac{\1}{", text)
