"""Compares two LaTeX answers by math-verify; the script of a child process (`unmask/child_process.py`)."""

from math_verify import parse, verify


def answer(pair: list[str]) -> bool:
    """Return whether two LaTeX texts are equal, without math-verify's timeouts, which need signals."""
    try:
        left, right = (parse(f"\\boxed{{{side}}}", parsing_timeout=None) for side in pair)  # pyright: ignore[reportArgumentType]
        return bool(verify(left, right, timeout_seconds=None))
    except Exception:
        return False
