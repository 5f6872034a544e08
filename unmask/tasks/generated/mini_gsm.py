"""Word problems in English made of fixed sentences; the level is how many steps of arithmetic they take.

    Ada sells 6 toys at $9 each. Ada splits the money equally among 2 children. How many dollars does each
    child get?

    6*9=54
    54/2=27
    <answer>27</answer>

Half of the stories tell how it ended and ask how it began: then the lines work forward from the answer.
Two stories with the same arithmetic are the same problem, so the steps of a test problem never occur in training.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from random import Random
from typing import ClassVar

from unmask.tasks.generated.generated import Generated, Sketch, between, choose, tagged
from unmask.tasks.generated.word_problem_text import NAMES, SCENES, Scene
from unmask.tasks.task import Problem, task

FRACTIONS = {2: "half", 3: "a third", 4: "a quarter", 5: "a fifth"}
_NUMBER = re.compile(r"\$?([0-9]{1,3}(?:,[0-9]{3})+|[0-9]{1,12})")

Numbers = dict[str, int]
Turn = tuple[Numbers, list[str], int]  # the numbers of a sentence, the lines that compute the new quantity, and it
Story = tuple[str, list[str], int]  # question, worked lines, result


@task("mini-gsm")
@dataclass(frozen=True)
class MiniGsm(Generated):
    levels: ClassVar[range] = range(2, 7)

    level: int = 5  # steps

    def sketch(self, rng: Random) -> Sketch:
        while True:
            backward = rng.random() >= 0.5
            story = tell(rng, choose(rng, SCENES), self.level, backward)
            if story is not None:
                question, lines, result = story
                steps = "\n".join(lines)
                return Sketch(steps, question, f"{steps}\n<answer>{result}</answer>", {"result": result})

    def read(self, text: str) -> str | None:
        """The number without its dollar sign and commas; the text as it is if it is not a number."""
        content = tagged(text)
        number = _NUMBER.fullmatch(content or "")
        return str(int(number[1].replace(",", ""))) if number else content or None

    def fault(self, problem: Problem, answer: str) -> str:
        return "" if answer == str(problem.data["result"]) else "another number"


def tell(rng: Random, scene: Scene, level: int, backward: bool) -> Story | None:
    """A story of `level` steps; None if the numbers did not work out.

    A backward story tells how it ended and asks how it began: the lines work forward from the answer.
    """
    if backward and not scene.past:
        return None
    names = rng.sample(NAMES, level + 2)
    people, thing = names[:2], choose(rng, scene.things)
    kind, sentence = ("?", scene.some) if backward else choose(rng, scene.openings)
    numbers, lines, quantity = _open(rng, kind)
    sentences, start, last = [_write(sentence, names, thing, numbers)], quantity, False
    while len(lines) < level:
        left = level - len(lines)
        last = not backward and left <= 2 and rng.random() < 0.6
        kind, sentence = choose(rng, scene.ends if last else scene.turns)
        turn = _turn(rng, kind.lstrip("="), quantity, scene.cap)
        if turn is None or len(turn[1]) > left or (last and len(turn[1]) < left):
            return None
        numbers, more, quantity = turn
        lines += more
        sentences.append(_write(sentence, names, thing, numbers))
        if kind[0] == "=":
            del names[0]
    if backward:
        sentences += [_write(scene.end, names, thing, {"v": quantity}), _write(scene.past, people, thing, {})]
    elif not last:
        sentences.append(_write(scene.ask, names, thing, {}))
    return " ".join(sentences), lines, start if backward else quantity


def _write(sentence: str, names: list[str], thing: str, numbers: Numbers) -> str:
    return sentence.format(n=names[0], m=names[1], o=thing, f=FRACTIONS.get(numbers.get("k", 0), ""), **numbers)


def _open(rng: Random, kind: str) -> Turn:
    if kind == "?":
        return {}, [], between(rng, 3, 60)
    if kind == ".":
        k = between(rng, 5, 90)
        return {"k": k}, [], k
    if kind == "+":
        j, k = between(rng, 5, 60), between(rng, 5, 60)
    elif kind == "-":
        j = between(rng, 12, 99)
        k = between(rng, 2, j - 5)
    else:
        j, k = between(rng, 2, 9), between(rng, 3, 15)
    if kind == "/":
        j, k = j * k, j
    result = {"+": j + k, "-": j - k, "*": j * k, "/": j // k}[kind]
    return {"j": j, "k": k}, [f"{j}{kind}{k}={result}"], result


def _turn(rng: Random, kind: str, v: int, cap: int) -> Turn | None:
    """What happens to the quantity `v`; None if it would not stay a whole number from 1 to the cap."""
    if kind in ("/", "-/"):
        return _split(rng, kind, v)
    if kind in ("+*", "-*"):
        j, k = between(rng, 2, 9), between(rng, 2, 12)
        w = v + j * k if kind == "+*" else v - j * k
        return ({"j": j, "k": k}, [f"{j}*{k}={j * k}", f"{v}{kind[0]}{j * k}={w}"], w) if 0 < w <= cap else None
    if kind == "t-":
        t = v + between(rng, 2, 60)
        return ({"t": t}, [f"{t}-{v}={t - v}"], t - v) if t <= cap else None
    if kind in ("*", "*+"):
        k = between(rng, 2, 6)
        w = v * k
        lines = [f"{v}*{k}={w}"]
    else:
        k = between(rng, 2, min(60, v - 1) if kind == "-" else 60) if v > 3 else 1
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
    k = choose(rng, parts)
    q = v // k
    if kind == "/":
        return {"k": k}, [f"{v}/{k}={q}"], q
    return {"k": k}, [f"{v}/{k}={q}", f"{v}-{q}={v - q}"], v - q
