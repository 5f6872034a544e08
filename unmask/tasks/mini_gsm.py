"""Word problems in English from our own sentences; the level is how many steps of arithmetic they take.

    Ada sells 6 toys at $9 each. Ada splits the money equally among 2 children. How many dollars does each
    child get?

    6*9=54
    54/2=27
    <answer>27</answer>

Half of the stories tell how it ended and ask how it began: then the lines work forward from the answer.
Two stories with the same arithmetic are the same problem: a test problem's steps were never trained on under
another name.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from random import Random
from typing import ClassVar

from unmask.tasks.generated import Generated, Sketch, tagged
from unmask.tasks.stories import NAMES, SETTINGS, Setting
from unmask.tasks.task import Grade, Metric, Problem, task

FRACTIONS = {2: "half", 3: "a third", 4: "a quarter", 5: "a fifth"}
_NUMBER = re.compile(r"\$?([0-9]{1,3}(?:,[0-9]{3})+|[0-9]{1,12})")

Numbers = dict[str, int]
Turn = tuple[Numbers, list[str], int]  # the sentence's numbers, the lines that work them out, the new quantity


@task("mini-gsm")
@dataclass(frozen=True)
class MiniGsm(Generated):
    family: ClassVar[str] = "mini-gsm"
    version: ClassVar[int] = 2
    levels: ClassVar[range] = range(2, 7)

    level: int = 5  # steps

    def sketch(self, rng: Random) -> Sketch:
        while True:
            how = tell if rng.random() < 0.5 else tell_back
            told = how(rng, SETTINGS[int(rng.random() * len(SETTINGS))], self.level)
            if told is not None:
                question, lines, result = told
                steps = "\n".join(lines)
                return Sketch(steps, question, f"{steps}\n<answer>{result}</answer>", {"result": result})

    def answer(self, text: str, metric: Metric = "ours") -> str | None:
        """The number without its dollar sign and commas, or what stands there where it is none."""
        del metric
        read = tagged(text)
        found = _NUMBER.fullmatch(read or "")
        return str(int(found[1].replace(",", ""))) if found else read or None

    def grade(self, problem: Problem, text: str, metric: Metric = "ours") -> Grade:
        answer = self.answer(text, metric)
        right = answer == str(problem.data["result"])
        note = "" if right else "no answer" if answer is None else "another number"
        return Grade(right, float(right), answer, note)


def tell(rng: Random, setting: Setting, level: int) -> tuple[str, list[str], int] | None:
    """A story of `level` steps: question, lines and result; None where the numbers did not work out."""
    names = rng.sample(NAMES, level + 2)
    thing = setting.things[int(rng.random() * len(setting.things))]
    kind, sentence = setting.openings[int(rng.random() * len(setting.openings))]
    numbers, lines, held = _open(rng, kind)
    words = [_say(sentence, names, thing, numbers)]
    while len(lines) < level:
        left = level - len(lines)
        last = left <= 2 and rng.random() < 0.6
        choices = setting.ends if last else setting.turns
        kind, sentence = choices[int(rng.random() * len(choices))]
        swaps, kind = kind[0] == "=", kind.lstrip("=")
        turn = _turn(rng, kind, held, setting.cap)
        if turn is None or len(turn[1]) > left or (last and len(turn[1]) < left):
            return None
        numbers, more, held = turn
        lines += more
        words.append(_say(sentence, names, thing, numbers))
        if swaps:
            del names[0]
        if last:
            return " ".join(words), lines, held
    words.append(_say(setting.ask, names, thing, {}))
    return " ".join(words), lines, held


def tell_back(rng: Random, setting: Setting, level: int) -> tuple[str, list[str], int] | None:
    """A story that tells how it ended and asks how it began: the lines work forward from the answer."""
    if not setting.past:
        return None
    names = rng.sample(NAMES, level + 2)
    first, thing = names[:2], setting.things[int(rng.random() * len(setting.things))]
    began = held = _between(rng, 3, 60)
    words, lines = [_say(setting.some, names, thing, {})], list[str]()
    while len(lines) < level:
        kind, sentence = setting.turns[int(rng.random() * len(setting.turns))]
        turn = _turn(rng, kind.lstrip("="), held, setting.cap)
        if turn is None or len(turn[1]) > level - len(lines):
            return None
        numbers, more, held = turn
        lines += more
        words.append(_say(sentence, names, thing, numbers))
        if kind[0] == "=":
            del names[0]
    words += [_say(setting.end, names, thing, {"v": held}), _say(setting.past, first, thing, {})]
    return " ".join(words), lines, began


def _say(sentence: str, names: list[str], thing: str, numbers: Numbers) -> str:
    return sentence.format(n=names[0], m=names[1], o=thing, f=FRACTIONS.get(numbers.get("k", 0), ""), **numbers)


def _between(rng: Random, low: int, high: int) -> int:
    return low + int(rng.random() * (high - low + 1))


def _open(rng: Random, kind: str) -> Turn:
    if kind == ".":
        k = _between(rng, 5, 90)
        return {"k": k}, [], k
    if kind == "+":
        j, k = _between(rng, 5, 60), _between(rng, 5, 60)
        return {"j": j, "k": k}, [f"{j}+{k}={j + k}"], j + k
    if kind == "-":
        j = _between(rng, 12, 99)
        k = _between(rng, 2, j - 5)
        return {"j": j, "k": k}, [f"{j}-{k}={j - k}"], j - k
    j, k = _between(rng, 2, 9), _between(rng, 3, 15)
    if kind == "*":
        return {"j": j, "k": k}, [f"{j}*{k}={j * k}"], j * k
    return {"j": j * k, "k": j}, [f"{j * k}/{j}={k}"], k


def _turn(rng: Random, kind: str, v: int, cap: int) -> Turn | None:
    """What happens to the quantity `v`; None where it would not stay a whole number from 1 to the cap."""
    if kind in ("/", "-/"):
        return _split(rng, kind, v)
    if kind in ("+*", "-*"):
        j, k = _between(rng, 2, 9), _between(rng, 2, 12)
        w = v + j * k if kind == "+*" else v - j * k
        return ({"j": j, "k": k}, [f"{j}*{k}={j * k}", f"{v}{kind[0]}{j * k}={w}"], w) if 0 < w <= cap else None
    if kind == "t-":
        t = v + _between(rng, 2, 60)
        return ({"t": t}, [f"{t}-{v}={t - v}"], t - v) if t <= cap else None
    if kind in ("*", "*+"):
        k = _between(rng, 2, 6)
        w = v * k
        lines = [f"{v}*{k}={w}"]
    else:
        k = _between(rng, 2, min(60, v - 1) if kind == "-" else 60) if v > 3 else 1
        w = v - k if kind == "-" else v + k
        lines = [f"{v}{kind[0]}{k}={w}"]
    if kind in ("++", "*+"):
        lines.append(f"{v}+{w}={v + w}")
        w += v
    return ({"k": k}, lines, w) if 0 < w <= cap and k > 1 else None


def _split(rng: Random, kind: str, v: int) -> Turn | None:
    parts = [k for k in range(2, 13 if kind == "/" else 6) if v % k == 0 and v > k]
    if not parts:
        return None
    k = parts[int(rng.random() * len(parts))]
    q = v // k
    if kind == "/":
        return {"k": k}, [f"{v}/{k}={q}"], q
    return {"k": k}, [f"{v}/{k}={q}", f"{v}-{q}={v - q}"], v - q
