"""Word problems in English made of fixed sentences; the level is the number of steps of arithmetic.

    Ada sells 6 toys at $9 each. Ada splits the money equally among 2 children. How many dollars does each
    child get?

    6*9=54
    54/2=27
    <answer>27</answer>

Half of the stories state how they ended and ask how they began: then the lines work forward from the answer.
Two stories with the same arithmetic are the same problem, so the steps of a test problem never occur in training.
The sentences are in `mini_gsm.toml`, each with the arithmetic it asks for.
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from pathlib import Path
from random import Random
from typing import ClassVar

from unmask.tasks.checkers import PASS, Check, Verdict
from unmask.tasks.generated.base import Generated, Sketch, between, choose, tagged
from unmask.tasks.task import Problem, question_in, task
from unmask.tasks.worked import first_wrong, number, place_of, statements

FRACTIONS = {2: "half", 3: "a third", 4: "a quarter", 5: "a fifth"}
_NUMBER = re.compile(r"\$?([0-9]{1,3}(?:,[0-9]{3})+|[0-9]{1,12})")

Numbers = dict[str, int]
Turn = tuple[Numbers, list[str], int]  # numbers of a sentence, lines that compute the new quantity, new quantity
Story = tuple[str, list[str], int]  # question, worked lines, result
Sentences = list[tuple[str, str]]  # an arithmetic and a sentence that asks for it


@dataclass(frozen=True)
class Scene:
    things: str  # separated by spaces
    openings: Sentences
    turns: Sentences
    ends: Sentences  # last turns that ask about something else
    ask: str  # question of a story without such an end
    some: str = ""  # opening of a story that asks how it began
    end: str = ""  # ending of such a story
    past: str = ""  # question of such a story
    cap: int = 999  # largest quantity


@cache
def sentences() -> tuple[list[str], list[Scene]]:
    """Return the names of people, and the scenes."""
    texts = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
    return texts["names"].split(), [Scene(**scene) for scene in texts["scenes"].values()]


@task("mini-gsm")
@dataclass(frozen=True)
class MiniGsm(Generated):
    levels: ClassVar[range] = range(2, 7)

    level: int = 5  # steps of arithmetic

    def sketch(self, rng: Random) -> Sketch:
        while True:
            backward = rng.random() >= 0.5
            story = write_story(rng, choose(rng, sentences()[1]), self.level, backward)
            if story is not None:
                question, lines, result = story
                steps = "\n".join(lines)
                return Sketch(steps, question, f"{steps}\n<answer>{result}</answer>", {"result": result})

    def read(self, text: str) -> str | None:
        """Return the number without its dollar sign and commas, or the text if it is not a number."""
        content = tagged(text)
        number = _NUMBER.fullmatch(content or "")
        return str(int(number[1].replace(",", ""))) if number else content or None

    def fault(self, problem: Problem, answer: str) -> str:
        return "" if answer == str(problem.data["result"]) else "a different number"

    def visible(self, messages: Sequence[Mapping[str, str]]) -> Check:
        return story_check(question_in(messages), self.read)


def write_story(rng: Random, scene: Scene, level: int, backward: bool) -> Story | None:
    """Return a story of `level` steps, or None if its numbers become too large or are not whole.

    A backward story states how it ended and asks how it began: the lines work forward from the answer.
    """
    if backward and not scene.past:
        return None
    names = rng.sample(sentences()[0], level + 2)
    people, thing = names[:2], choose(rng, scene.things.split())
    kind, sentence = ("?", scene.some) if backward else choose(rng, scene.openings)
    numbers, lines, quantity = _open(rng, kind)
    story, start, last = [_write(sentence, names, thing, numbers)], quantity, False
    while len(lines) < level:
        left = level - len(lines)
        last = not backward and left <= 2 and rng.random() < 0.6
        kind, sentence = choose(rng, scene.ends if last else scene.turns)
        turn = _turn(rng, kind.lstrip("="), quantity, scene.cap)
        if turn is None or len(turn[1]) > left or (last and len(turn[1]) < left):
            return None
        numbers, more, quantity = turn
        lines += more
        story.append(_write(sentence, names, thing, numbers))
        if kind[0] == "=":
            del names[0]
    if backward:
        story += [_write(scene.end, names, thing, {"v": quantity}), _write(scene.past, people, thing, {})]
    elif not last:
        story.append(_write(scene.ask, names, thing, {}))
    return " ".join(story), lines, start if backward else quantity


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
    """Change the quantity `v`; return None if it would not stay a whole number from 1 to the cap."""
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


def story_check(question: str, read: Callable[[str], str | None]) -> Check:
    """Return the check that lines hold, use only numbers of the question and of earlier lines, and lead to the answer.

    Each number of the question is used. If the question asks how a story began, the lines start from the answer and
    end with a number that the story states.
    """
    given = [Fraction(word) for word in re.findall(r"[0-9]{1,15}", question)]
    given += [Fraction(k) for k, word in FRACTIONS.items() for _ in range(question.count(f" {word} of "))]
    backward = question.rstrip().endswith("at first?")

    def check(text: str) -> Verdict:
        found, answer = list(statements(text)), read(text) or ""
        value = number(answer)
        if wrong := first_wrong(text, found):
            return wrong
        if value is None or not found:
            return Verdict(0.0, note="there is no number as an answer" if found else "there is no line of arithmetic")
        end, unused = found[-1].result, Counter(given)
        if backward and end is not None and end in unused:
            unused = unused - Counter([end]) + Counter([value])
        elif backward or end != value:
            span = found[-1].span if backward else place_of(text, answer)
            return Verdict(0.5, span, f"the last line does not yield {'how the story ended' if backward else answer}")
        known = set(unused)
        for line in found:
            operands = line.sides[0].numbers
            if not known.issuperset(operands):
                return Verdict(0.5, line.span, "a number of it is neither given nor computed before")
            unused -= Counter(operands)
            known.add(line.sides[-1].value)
        span = place_of(text, answer) if value in unused else None
        return Verdict(0.5, span, "a number of the question is not used") if unused else PASS

    return check
